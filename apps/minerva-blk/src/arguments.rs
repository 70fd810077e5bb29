//! What the command line may say.

use std::path::PathBuf;

/// Serves the disks of virtual machines, and keeps contracts, weights and the priorities of guests' applications across all of them.
///
/// QEMU connects to one socket per disk; `attach-line` prints the arguments that it needs.
#[derive(Debug, clap::Parser)]
#[command(name = "minerva-blk", version)]
pub(crate) struct Arguments {
    /// File with the disks and their contracts
    #[arg(long, value_name = "FILE", default_value = "/etc/minerva/blk.toml", global = true)]
    pub(crate) config: PathBuf,
    /// Check the file and everything that it names, and exit
    #[arg(long)]
    pub(crate) check: bool,
    /// Log each finished request to DIRECTORY/DEVICE.csv: what was requested, and when
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) log_requests: Option<PathBuf>,
    /// Take over all disks from a running server with the same file, which then exits; guests wait some milliseconds and see no error
    #[arg(long, conflicts_with_all = ["check", "log_requests"])]
    pub(crate) take_over: bool,
    /// With `--take-over`: run in the background; the command returns once the disks are served
    #[arg(long, requires = "take_over")]
    pub(crate) detach: bool,
    /// Do this instead of serving
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
    /// Says which images' storage answers
    #[command(hide = true, name = Action::LOOK_AT_IMAGES)]
    LookAtImages {
        /// The images
        paths: Vec<PathBuf>,
    },
}

impl Action {
    /// What the server calls itself with.
    pub(crate) const LOOK_AT_IMAGES: &'static str = "look-at-images";
}
