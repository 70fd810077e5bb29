//! What the command line may say.

use std::path::PathBuf;

/// Serves a shared pool of memory and fast disk, in which every tenant has two directory trees.
///
/// MOUNT/TENANT/temporary is in memory, and spills to disk when memory is short. MOUNT/TENANT/stable is on a disk set aside for it;
/// files that were closed or synced there survive a power cut. On SIGTERM the trees are unmounted as soon as nobody uses them. After a
/// kill, start the program again: it mounts everything at the same paths.
#[derive(Debug, clap::Parser)]
#[command(name = "minerva-fs", version)]
pub(crate) struct Arguments {
    /// File with the pools and tenants
    #[arg(long, value_name = "FILE", default_value = "/etc/minerva/fs.toml", global = true)]
    pub(crate) config: PathBuf,
    /// Check the file and everything that it names, and exit
    #[arg(long)]
    pub(crate) check: bool,
    /// Do this instead of serving
    #[command(subcommand)]
    pub(crate) action: Option<Action>,
}

/// What it does besides serving.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Action {
    /// Check whether and how well it can serve here: passthrough, pools, mounts, and files left by an earlier run
    Doctor {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Make the running service read the file again, as SIGHUP does: tenants, quotas, watermarks. A file with a mistake changes nothing
    ///
    /// A tenant that is no longer in the file is unmounted once none of its files is open and none waits for migration; `status` shows
    /// what it waits for. Settings that need a restart are named.
    Reload,
    /// Show how much of each pool every tenant uses
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Serve the trees of a virtual machine to it, in place of the program that this becomes: virtiofsd, in a user namespace in which
    /// root is the machine's own
    ///
    /// It listens at RUNTIME/machines/TENANT.sock for QEMU and ends when the machine does; minerva-virtiofs@TENANT.service starts it again.
    /// `minerva-ctl cache attach-line MACHINE` prints what QEMU, libvirt and the guest need.
    Virtiofs {
        /// By QEMU's or libvirt's name, or its tenant
        machine: String,
        /// Another virtiofsd than the one that is installed
        #[arg(long, value_name = "FILE")]
        program: Option<PathBuf>,
    },
    /// Write the manual page and the completions
    #[command(hide = true)]
    Generate {
        /// Directory to write to
        directory: PathBuf,
    },
}
