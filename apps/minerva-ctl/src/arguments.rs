//! What the command line may say. Every text here is also the manual page.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Sees, explains and undoes what Minerva does to the disks of this host.
///
/// Data goes to standard output, everything for people to standard error. The exit status is 0 when all is well, 1 when
/// something was found (a disk that cannot be steered, a replay that differs, a refused file), 2 when the command itself failed.
#[derive(Debug, clap::Parser)]
#[command(name = "minerva-ctl", version)]
pub(crate) struct Arguments {
    /// Print JSON, one object a line
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// The daemon's socket [default: as the operator's file says]
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// The operator's file, which says where the daemon keeps its things
    #[arg(long, global = true, value_name = "FILE", default_value = "/etc/minerva/minerva.toml")]
    pub(crate) config: PathBuf,
    /// What to do
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Show the daemon, its disks, and the latest findings
    Status,
    /// Watch tenants and disks live; q quits
    Top {
        /// Print one slice as text and end
        #[arg(long)]
        once: bool,
    },
    /// Say why a tenant has its share of each disk
    Explain {
        /// Its name, its id (t4) or its cgroup path
        tenant: String,
        /// When: 2026-03-01T14:30:00Z, "2026-03-01 14:30", 14:30, "10 minutes ago" [default: now]
        #[arg(long, value_name = "TIME")]
        at: Option<String>,
    },
    /// Say for each disk and mount whether a weight will bite, why, and what to do; works without the daemon
    Doctor {
        /// Prove it: two tenants read from the disk at 8:1 for some seconds. Nothing is written to the disk
        #[arg(long)]
        probe: bool,
        /// Only this disk, such as sda
        #[arg(long, value_name = "NAME", conflicts_with = "mount")]
        device: Option<String>,
        /// Only the disk under this path
        #[arg(long, value_name = "PATH")]
        mount: Option<PathBuf>,
        /// How long the probe reads
        #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "4s")]
        seconds: Duration,
    },
    /// Put every knob back as it was before Minerva; works without the daemon
    Restore {
        /// Do nothing while a daemon runs; for the unit's ExecStopPost=
        #[arg(long)]
        if_daemon_gone: bool,
    },
    /// Record what the engine is told and what it wants, to replay it later
    Record {
        /// Where to write the recording
        file: PathBuf,
        /// How long; without it until interrupted
        #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
        duration: Option<Duration>,
    },
    /// Replay a recording and compare every effect byte for byte; works without the daemon
    Replay {
        /// The recording
        file: PathBuf,
    },
    /// Judge or print the operator's file
    Config {
        /// Which
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Have the daemon read the operator's file again
    Reload,
    /// Start a command as a tenant of its own
    Run {
        /// The tenant's name [default: the command's name and process id]
        #[arg(long)]
        name: Option<String>,
        /// The factor on its share, in percent; 200 is twice a neutral tenant's
        #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(1..=10_000))]
        weight: Option<u32>,
        /// The command and its arguments
        #[arg(required = true, last = true)]
        command: Vec<OsString>,
    },
    /// Make a running process, with the children it will have, a tenant of its own
    Attach {
        /// The process
        pid: u32,
        /// The tenant's name [default: pid-PID]
        #[arg(long)]
        name: Option<String>,
        /// The factor on its share, in percent
        #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(1..=10_000))]
        weight: Option<u32>,
    },
    /// One of the probe's two readers
    #[command(hide = true)]
    ProbeReader {
        /// The disk
        node: PathBuf,
        /// First byte
        start: u64,
        /// Bytes to read round and round in
        length: u64,
        /// How long
        milliseconds: u64,
    },
    /// Write manual pages and shell completions, for packagers
    #[command(hide = true)]
    Generate {
        /// Where to
        directory: PathBuf,
    },
}

/// What to do with the operator's file.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum ConfigCommand {
    /// Judge a file; errors point at the place
    Check {
        /// The file [default: that of --config]
        file: Option<PathBuf>,
    },
    /// Print a file with every setting at its default, explained
    Default,
}

/// A duration as people write it: `60s`, `2 min`, `1h 30m`, or bare seconds.
fn duration(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse::<u32>() {
        return Ok(Duration::from_secs(u64::from(seconds)));
    }
    let span: jiff::SignedDuration = text.parse().map_err(|error: jiff::Error| error.to_string())?;
    Duration::try_from(span).map_err(|_| "a duration is not negative".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Arguments, duration};
    use clap::CommandFactory;
    use std::time::Duration;

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn durations_are_read_as_people_write_them() {
        assert_eq!(duration("60"), Ok(Duration::from_secs(60)));
        assert_eq!(duration("60s"), Ok(Duration::from_secs(60)));
        assert_eq!(duration("2 min"), Ok(Duration::from_secs(120)));
        assert!(duration("soon").is_err());
        assert!(duration("-5s").is_err());
    }
}
