//! The operator's file, read.

use anyhow::Context;
use minerva_config::{FsConfig, load_fs};
use std::path::Path;

/// The file, with its warnings told.
pub(crate) fn load(path: &Path) -> anyhow::Result<FsConfig> {
    let config = load_fs(path).with_context(|| format!("failed to use {}", path.display()))?;
    for warning in &config.warnings {
        eprintln!("{warning}\n");
    }
    Ok(config)
}
