//! What `minerva-ctl cache` may be asked.

use std::path::PathBuf;

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
        /// In which pool it waits; what is in temporary is lost by a restart of the machine
        #[arg(long, value_name = "POOL", value_parser = ["stable", "temporary"], default_value = "stable")]
        pool: String,
        /// As which tenant, for root and for users who are several
        #[arg(long, value_name = "NAME")]
        tenant: Option<String>,
    },
    /// Show the files that wait for migration, and why
    ///
    /// It lists and changes nothing. A directory cannot be set to defer all that is made in it: programs make files on its own disk, past the
    /// pool, unless a file system of ours lay over it, and then every program there would depend on that. Ask for single files, with `cache
    /// put` or `minerva.deferred`, or let a program write below its tree in the pool.
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
    /// Remove a deferred file to which no link leads any more
    Drop {
        /// Its number, as `deferred` shows it
        id: u64,
    },
}
