//! What the command line may say.

use minerva_model::Mode;
use std::path::PathBuf;

/// Where the operator's file is looked for.
pub(crate) const CONFIG_DEFAULT: &str = "/etc/minerva/minerva.toml";

/// Share each disk well: watch who uses it, and set the kernel's I/O weights so that light users are served first.
///
/// Without the operator's file it runs with the defaults, in shadow mode: it decides and explains, but writes nothing.
#[derive(Debug, clap::Parser)]
#[command(name = "minervad", version)]
pub(crate) struct Arguments {
    /// The operator's file [default: /etc/minerva/minerva.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// What to do, whatever the file says
    #[arg(long, value_enum)]
    pub(crate) mode: Option<ModeArgument>,
    /// Check the file, list what is missing on this host, and exit
    #[arg(long)]
    pub(crate) check: bool,
    /// Put everything back and exit after this many slices
    #[arg(long, value_name = "COUNT")]
    pub(crate) slices: Option<u64>,
    /// For the daemon itself
    #[command(subcommand)]
    pub(crate) hidden: Option<Hidden>,
}

/// What the daemon starts itself as.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Hidden {
    /// Waits for the daemon to die and then puts everything back
    #[command(hide = true)]
    Guard {
        /// The daemon's runtime directory
        runtime_dir: PathBuf,
        /// Root of the hierarchy that it writes to
        cgroup_root: PathBuf,
    },
    /// Does the background work that a directory holds, in a process of its own
    #[command(hide = true)]
    Background {
        /// The directory
        runtime: PathBuf,
    },
    /// Ends all background work, for a package that is removed
    #[command(hide = true)]
    EndBackground {
        /// The daemon's runtime directory
        runtime_dir: PathBuf,
    },
    /// Writes the manual page and the completions
    #[command(hide = true)]
    Generate {
        /// Into this directory
        directory: PathBuf,
    },
}

/// The modes as the command line spells them.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum ModeArgument {
    /// Watch only
    Observe,
    /// Decide and explain, write nothing
    Shadow,
    /// Decide and write
    Enforce,
}

impl From<ModeArgument> for Mode {
    fn from(argument: ModeArgument) -> Self {
        match argument {
            ModeArgument::Observe => Self::Observe,
            ModeArgument::Shadow => Self::Shadow,
            ModeArgument::Enforce => Self::Enforce,
        }
    }
}
