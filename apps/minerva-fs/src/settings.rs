//! The operator's file, read, and what of it is in force; where the service that runs by it is asked.

use anyhow::Context;
use minerva_config::{FsConfig, load_fs};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

/// The file, with its warnings told.
pub(crate) fn load(path: &Path) -> anyhow::Result<FsConfig> {
    let config = load_fs(path).with_context(|| format!("failed to use {}", path.display()))?;
    for warning in &config.warnings {
        eprintln!("{warning}\n");
    }
    Ok(config)
}

/// What is in force.
#[derive(Debug)]
pub(crate) struct Settings(RwLock<Arc<FsConfig>>);

impl Settings {
    pub(crate) fn new(config: FsConfig) -> Self {
        Self(RwLock::new(Arc::new(config)))
    }

    /// As it is now.
    pub(crate) fn now(&self) -> Arc<FsConfig> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// From now on this.
    pub(crate) fn set(&self, config: FsConfig) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
    }
}

/// Where the socket is.
pub(crate) fn socket(config: &FsConfig) -> PathBuf {
    config.server.runtime.join("control.sock")
}

/// What is said where nobody answers.
pub(crate) fn not_there(socket: &Path) -> String {
    format!("no minerva-fs answers at {}; start it: systemctl start minerva-fs", socket.display())
}
