//! What the command line may say.

use std::path::PathBuf;

/// Serves the disks of virtual machines, so that contracts, weights and the priorities of guests' applications hold between them.
///
/// QEMU connects to a socket for each disk; what to tell it says `attach-line`.
#[derive(Debug, clap::Parser)]
#[command(name = "minerva-blk", version)]
pub(crate) struct Arguments {
    /// Which disks there are, and what they are promised
    #[arg(long, value_name = "FILE", default_value = "/etc/minerva/blk.toml", global = true)]
    pub(crate) config: PathBuf,
    /// Judge the file and all that it names, and serve nothing
    #[arg(long)]
    pub(crate) check: bool,
    /// Write a line for each request that is done to DIRECTORY/DEVICE.csv: what was asked for, and when
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) log_requests: Option<PathBuf>,
    /// Go on with what a running server of the same file serves, which then ends: guests wait for some milliseconds and see no error
    #[arg(long, conflicts_with_all = ["check", "log_requests"])]
    pub(crate) take_over: bool,
    /// With `--take-over`: in the background; the command ends once the disks are served
    #[arg(long, requires = "take_over")]
    pub(crate) detach: bool,
    /// Do this in place of serving
    #[command(subcommand)]
    pub(crate) action: Option<Action>,
}

/// What it does besides serving.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Action {
    /// Print QEMU's arguments and libvirt's XML for a disk
    AttachLine {
        /// Its name in the file
        disk: String,
    },
    /// Writes the manual page and the completions
    #[command(hide = true)]
    Generate {
        /// Into this directory
        directory: PathBuf,
    },
}
