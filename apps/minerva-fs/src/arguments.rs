//! What the command line may say.

use std::path::PathBuf;

/// Serves a shared pool of memory and fast disk: every tenant has a tree of its own in each.
///
/// MOUNT/TENANT/temporary is memory, and spills to the disk when it is short; MOUNT/TENANT/stable is on the disk set aside, and what
/// was closed or synced there outlives a power cut. SIGTERM unmounts when nobody uses a tree any more; a program that was killed is
/// started again, and mounts at the same place.
#[derive(Debug, clap::Parser)]
#[command(name = "minerva-fs", version)]
pub(crate) struct Arguments {
    /// Which pools and tenants there are
    #[arg(long, value_name = "FILE", default_value = "/etc/minerva/fs.toml", global = true)]
    pub(crate) config: PathBuf,
    /// Judge the file and all that it names, and mount nothing
    #[arg(long)]
    pub(crate) check: bool,
    /// Do this in place of serving
    #[command(subcommand)]
    pub(crate) action: Option<Action>,
}

/// What it does besides serving.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Action {
    /// Can it serve here, and how well: passthrough, pools, mounts and files that an earlier run left
    Doctor {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Who uses how much of which pool
    Status {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Writes the manual page and the completions
    #[command(hide = true)]
    Generate {
        /// Into this directory
        directory: PathBuf,
    },
}
