//! Where the daemon keeps its things and this host its trees, for what works without the daemon.

use anyhow::Context;
use minerva_config::{Config, ConfigError};
use minerva_linux_actuate::WriterSettings;
use minerva_linux_observe::Roots;
use std::path::{Path, PathBuf};

/// Where the operator's file is looked for.
pub(crate) const CONFIG_DEFAULT: &str = "/etc/minerva/minerva.toml";

/// Which operator's file holds.
#[derive(Clone, Debug)]
pub(crate) enum OperatorFile {
    /// The one that the command line names. It must be there and good.
    Named(PathBuf),
    /// The one at the default place, which may be absent.
    Default,
}

impl OperatorFile {
    pub(crate) fn new(named: Option<PathBuf>) -> Self {
        named.map_or(Self::Default, Self::Named)
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Named(path) => path,
            Self::Default => Path::new(CONFIG_DEFAULT),
        }
    }

    /// The operator's settings; where no file was named and there is none, the defaults and what drop-ins say.
    pub(crate) fn load(&self) -> anyhow::Result<Config> {
        self.judge().map_err(anyhow::Error::new)
    }

    /// The same, with what is wrong with each line.
    pub(crate) fn judge(&self) -> Result<Config, ConfigError> {
        match self {
            Self::Named(path) => minerva_config::load(path),
            Self::Default => minerva_config::load_default(Path::new(CONFIG_DEFAULT)),
        }
    }
}

/// The host's trees; the operator's word on the hierarchy wins.
pub(crate) fn roots(config: &Config) -> anyhow::Result<Roots> {
    let roots = Roots::detect().context("failed to find the host's hierarchies")?;
    Ok(match &config.daemon.cgroup_root {
        Some(root) => roots.with_cgroup_root(root),
        None => roots,
    })
}

/// What the writer works on.
pub(crate) fn writer_settings(config: &Config, roots: &Roots) -> WriterSettings {
    let mut settings = WriterSettings::new(&config.daemon.runtime_dir, &roots.cgroup);
    settings.sys_root.clone_from(&roots.sys);
    settings
}
