//! Where the daemon keeps its things and this host its trees, for what works without the daemon.

use anyhow::Context;
use minerva_config::{Config, ConfigError};
use minerva_linux_actuate::WriterSettings;
use minerva_linux_observe::Roots;
use minerva_model::CgroupVersion;
use std::path::Path;

/// The operator's settings; without a file, the defaults.
pub(crate) fn config(file: &Path) -> anyhow::Result<Config> {
    match minerva_config::load(file) {
        Err(ConfigError::Read { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(Config::default()),
        result => result.map_err(anyhow::Error::new),
    }
}

/// The host's trees; the operator's word on the hierarchy wins.
pub(crate) fn roots(config: &Config) -> anyhow::Result<Roots> {
    let mut roots = Roots::detect().context("failed to find the host's hierarchies")?;
    if let Some(root) = &config.daemon.cgroup_root {
        roots.version = if root.join("cgroup.controllers").exists() { CgroupVersion::V2 } else { CgroupVersion::V1 };
        roots.cgroup.clone_from(root);
    }
    Ok(roots)
}

/// What the writer works on.
pub(crate) fn writer_settings(config: &Config, roots: &Roots) -> WriterSettings {
    let mut settings = WriterSettings::new(&config.daemon.runtime_dir, &roots.cgroup);
    settings.sys_root.clone_from(&roots.sys);
    settings
}
