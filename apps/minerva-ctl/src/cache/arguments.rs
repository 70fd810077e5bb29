//! What `minerva-ctl cache` may be asked.

use minerva_api::cache::Pool;
use std::ffi::OsString;
use std::path::PathBuf;

/// Where files wait.
#[derive(Debug, clap::Args)]
pub(crate) struct PoolArguments {
    /// In which pool: stable or temporary; what is in temporary is lost by a restart of the machine
    #[arg(long, value_name = "POOL", default_value = "stable")]
    pub(crate) pool: Pool,
    /// As which tenant, for root and for users who are several
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
}

/// What is to be done with the pool.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum CacheCommand {
    /// Write a file by way of the pool: it is at its place at once, as a link, and is moved there when the disk there is quiet
    Put {
        /// Its place; what was there is replaced
        file: PathBuf,
        /// What to write [default: standard input]
        #[arg(long, value_name = "FILE")]
        from: Option<PathBuf>,
        /// Where it waits
        #[command(flatten)]
        place: PoolArguments,
    },
    /// Show the files that wait for migration, and why
    ///
    /// It lists and changes nothing. A directory cannot be set to defer all that is made in it: programs make files on its own disk, past the
    /// pool, unless a file system of ours lay over it, and then every program there would depend on that. Ask for single files, with `cache
    /// put` or `minerva.deferred`, let a program write below its tree in the pool, or give single programs another directory there: `cache
    /// run`, `cache units`.
    Deferred {
        /// Only those that are to go to this directory or below it
        directory: Option<PathBuf>,
    },
    /// Move files now, slowly where others use the disk, and wait until they are at their place
    Flush {
        /// Only those that are to go to this directory or below it
        directory: Option<PathBuf>,
        /// Do not wait
        #[arg(long)]
        no_wait: bool,
    },
    /// Show who uses how much of which pool, and what waits
    Status,
    /// The same, live, with the files that wait; Ctrl-C ends it
    Top {
        /// Print it once and end
        #[arg(long)]
        once: bool,
    },
    /// Say where a file lies, why, and what happens next
    Explain {
        /// In a pool, or a link to a file that waits there
        file: PathBuf,
    },
    /// Run a command whose files below a directory go to the pool, and to their place when it has ended
    ///
    /// To the command, and to nobody else, the directory is another, empty one in the pool. What it leaves there is at its place as soon as it
    /// has ended, by links, and moves there when the disk there is quiet. For commands that make files and do not read what is there:
    /// dumps, builds, results. Signals are passed on to the command, and what it wrote goes to its place all the same; what a run left
    /// that was killed goes there before the next. Needs root, and util-linux. The exit status is the command's.
    Run {
        /// Whose files go to the pool; it belongs to the tenant's user
        directory: PathBuf,
        /// Where they wait
        #[command(flatten)]
        place: PoolArguments,
        /// The command and its arguments
        #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Print, or write, the drop-ins by which systemd services write to the pool, as `units` in fs.toml says
    ///
    /// Each such service sees, in place of its directory, another one in the pool, empty at each start; what it leaves there goes to its place
    /// when it stops, as with `cache run`. Where the pool is not there the service writes to the directory itself. Run it again after each
    /// change of the file: drop-ins of services that are no longer named are removed. Services take part from their next start on.
    Units {
        /// The cache's file
        #[arg(long, value_name = "FILE", default_value = "/etc/minerva/fs.toml")]
        file: PathBuf,
        /// Where the drop-ins are
        #[arg(long, value_name = "DIRECTORY", default_value = "/etc/systemd/system")]
        systemd: PathBuf,
        /// Write them, and let systemd read them
        #[arg(long)]
        write: bool,
    },
    /// Print how a virtual machine gets its trees: the unit on the host, QEMU's arguments, libvirt's XML and the guest's line of fstab
    AttachLine {
        /// By QEMU's or libvirt's name, or its tenant
        machine: String,
        /// The cache's file
        #[arg(long, value_name = "FILE", default_value = "/etc/minerva/fs.toml")]
        file: PathBuf,
    },
    /// Make the directory of the pool that stands for another; what drop-ins do before a service starts
    #[command(hide = true)]
    Prepare {
        /// The other
        directory: PathBuf,
        /// What it is called in the pool
        #[arg(long)]
        name: String,
        /// Where
        #[command(flatten)]
        place: PoolArguments,
    },
    /// Put what lies in such a directory to its place; what drop-ins do after a service stopped
    #[command(hide = true)]
    Settle {
        /// The directory in the pool
        from: PathBuf,
        /// The other
        to: PathBuf,
        /// As whoever calls, in place of the owner
        #[arg(long, hide = true)]
        as_caller: bool,
    },
    /// Remove a deferred file to which no link leads any more
    Drop {
        /// Its number, as `deferred` shows it
        id: u64,
    },
}
