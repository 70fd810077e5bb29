//! What the command line may say. Every text here is also the manual page.

use crate::background::arguments::BackgroundCommand;
use crate::cache::CacheCommand;
use crate::disk::DiskCommand;
use crate::quantity::{boost_amount, credits, duration, schedule_entry, size};
use minerva_client::{Access, BoostAmount, Level, Operation, v1};
use minerva_model::MicroCredits;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Sees, explains and undoes what Minerva does to the disks of this host, and asks it, as a tenant, for what one wants.
///
/// Data goes to standard output, everything for people to standard error. The exit status is 0 when all is well, 1 when
/// something was found (a disk that cannot be steered, a replay that differs, a refused file, a refused request), 2 when the
/// command itself failed.
///
/// What a tenant asks for itself (priority, credits, boost, when, whoami, run) needs no root, and no daemon on this machine: in a
/// container it goes to the host's socket, in a guest through minerva-agent. MINERVA_ADDRESS names the server if it is to be
/// another: unix:/path, vsock:2:7420, https://host:7420 (with MINERVA_CA, and MINERVA_CERTIFICATE and MINERVA_KEY, or
/// MINERVA_TOKEN_FILE).
#[derive(Debug, clap::Parser)]
#[command(name = "minerva-ctl", version)]
pub(crate) struct Arguments {
    /// Print JSON, one object a line
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// The daemon's socket [default: as the operator's file says]
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// The operator's file, which says where the daemon keeps its things [default: /etc/minerva/minerva.toml, where it may be absent]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
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
    /// Show what a tenant is expected to do on each disk, and what it was expected to do before beside what then came
    ///
    /// Reads and writes together, slice by slice, with the interval that four of five slices are to be within; what is expected of
    /// the next slice, the next 15 s and the rest of its session; and the skill of each forecast, measured on what came: 1 is
    /// perfect, 0 no better than the best naive forecast. The exit status is 1 where nothing is forecast.
    #[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
    Forecast {
        /// What else can be done with forecasts
        #[command(subcommand)]
        command: Option<ForecastCommand>,
        /// Its name, its id (t4) or its cgroup path; one that is called evaluate is named by its id or path. With --horizon a disk (sda,
        /// 8:0) or one of the operator's groups
        #[arg(required = true)]
        tenant: Option<String>,
        /// The day or the week ahead of a disk or a group, in place of the seconds ahead of a tenant
        #[arg(long, value_name = "HORIZON", value_parser = ["day", "week"])]
        horizon: Option<String>,
        /// Write it as a page to this file
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
    },
    /// Say for each disk and mount whether a weight will bite, why, and what to do; works without the daemon
    Doctor {
        /// Prove it: two tenants read from the disk at 8:1 for some seconds. Nothing is written to the disk
        #[arg(long)]
        probe: bool,
        /// What each elevator would give here: two heavy readers beside a light one under each arm. Nothing is written to the disk
        #[arg(long, conflicts_with = "probe")]
        compare: bool,
        /// Let the comparison try the other elevators as well, and put back the one in force, with its settings and weights
        #[arg(long, requires = "compare")]
        change_elevator: bool,
        /// How often the comparison goes through all arms
        #[arg(long, value_name = "NUMBER", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=100))]
        rounds: u32,
        /// Only this disk, such as sda
        #[arg(long, value_name = "NAME", conflicts_with = "mount")]
        device: Option<String>,
        /// Only the disk under this path
        #[arg(long, value_name = "PATH")]
        mount: Option<PathBuf>,
        /// How long the probe reads, or each arm of the comparison in each round
        #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "4s")]
        seconds: Duration,
    },
    /// Put every knob back as it was before Minerva; works without the daemon
    ///
    /// A daemon that runs in enforce mode will write again, which is said and is a finding: stop it first, or set mode = "shadow".
    Restore {
        /// Do nothing while a daemon runs; for the unit's ExecStopPost=
        #[arg(long)]
        if_daemon_gone: bool,
    },
    /// Record what the engine is told and what it wants, to replay it later
    ///
    /// A recording begins with a snapshot of the engine's state, so that nothing that is steered is disturbed. SIGINT and SIGTERM
    /// end a recording in order, with --for too.
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
    /// The pool of memory and fast disk that minerva-fs serves: who uses it, and files that wait there for their place
    ///
    /// It asks minerva-fs itself, and works without the daemon. Users see what is theirs, root everything.
    Cache {
        /// The service's socket [default: MINERVA_CACHE_SOCKET, else /run/minerva-fs/control.sock]
        #[arg(long, value_name = "PATH")]
        server: Option<PathBuf>,
        /// What to do
        #[command(subcommand)]
        command: CacheCommand,
    },
    /// Show and change the disks of guests that minerva-blk serves, while guests run
    ///
    /// It asks the server itself, and works without the daemon. What is changed holds at once, and is kept for the next start in
    /// blk.toml.d/disk-NAME.toml beside the server's file, unless --runtime says otherwise.
    Disk {
        /// Which server: the name of its socket below servers/ in the daemon's runtime directory
        #[arg(long, value_name = "NAME", default_value = "blk", global = true)]
        server: String,
        /// What to do
        #[command(subcommand)]
        command: DiskCommand,
    },
    /// Start a command as a tenant of its own, or as one that takes part
    ///
    /// With --priority or --when the command takes part without knowing of it: the level is held while it runs, it begins when
    /// it may, and its end is told. It stays in the calling tenant then, and with --tag, unless --name or --weight make it one of
    /// its own. With --job
    /// it becomes a tenant of its own where the caller may do that, and else its tenant is the job while it runs.
    /// Without a server, or when the server refuses, it runs all the same. The exit status is the command's: 128 and the
    /// signal's number when a signal ended it, 126 when it could not be started, 127 when there is no such command. Signals
    /// are passed on to it.
    Run {
        /// The tenant's name [default: the command's name and process id]
        #[arg(long)]
        name: Option<String>,
        /// The factor on its share, in percent; 200 is twice a neutral tenant's
        #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(1..=10_000))]
        weight: Option<u32>,
        /// How far to step back while it runs: low, lowest or idle
        #[arg(long, value_name = "LEVEL")]
        priority: Option<Level>,
        /// It is a batch job of this name: of jobs on one disk the shortest goes first, and runs of one name are taken to be alike
        #[arg(long, value_name = "NAME")]
        job: Option<String>,
        /// What the job will read and write in all [default: what earlier runs of its name did]
        #[arg(id = "job_size", long = "bytes", value_name = "BYTES", value_parser = size, requires = "job")]
        bytes: Option<u64>,
        /// How much it will move; it begins when the disk has room for it
        #[arg(id = "size", long = "when", value_name = "BYTES", value_parser = size)]
        when: Option<u64>,
        /// How long it can wait, and where it moves them
        #[command(flatten)]
        bounds: Bounds,
        /// In a guest whose disk minerva-blk serves: the tag of its requests, 1 to 254, more is better; no server is asked
        #[arg(long, value_name = "TAG", value_parser = clap::value_parser!(u8).range(1..=254))]
        tag: Option<u8>,
        /// Which of the guest's applications it is, 1 to 31 [default: one by its process and tag]
        #[arg(long, value_name = "NUMBER", requires = "tag", value_parser = clap::value_parser!(u8).range(1..=31))]
        stream: Option<u8>,
        /// The command and its arguments
        #[arg(required = true, last = true)]
        command: Vec<OsString>,
    },
    /// Delete files, and with -r directories with all that is in them, at a pace that others on the disk hardly feel
    ///
    /// It works for a part of the time only, longer pauses following what took long, and at level idle, with the tenant that it is called in, where a server grants it.
    /// No link is followed and no mount point entered, also if a directory is replaced by one meanwhile; what is left is told
    /// with the reason, and the exit status is 1. Interrupted it leaves the rest as it is.
    Rm {
        /// Directories too
        #[arg(short = 'r', long)]
        recursive: bool,
        /// For how much of the time it works, in percent
        #[arg(long, value_name = "PERCENT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
        pace: u32,
        /// What
        #[arg(required = true)]
        paths: Vec<PathBuf>,
    },
    /// Show batch jobs: which run, what they did so far, how long they still need, who goes first and why; and what is known of names
    ///
    /// A job is a tenant that says so (minerva-ctl run --job, or a client library) or that [[jobs]] of the operator's file names. The
    /// exit status is 1 where one moved much more than it declared.
    Jobs {
        /// What else can be shown of jobs
        #[command(subcommand)]
        command: Option<JobsCommand>,
    },
    /// Register work that can wait, see how far it is, and the plan for it
    Background {
        /// What
        #[command(subcommand)]
        command: BackgroundCommand,
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
    /// Step back so that others are served first, or come back; earns credits
    ///
    /// It is for the tenant that the server takes the caller for (see whoami), takes effect within one slice, and is printed as the
    /// level in force, which a program that holds a level or the schedule may set further back.
    Priority {
        /// normal, low (a part of what it would have), lowest (a small part) or idle (only when nobody else uses the disk)
        #[arg(required_unless_present_any = ["schedule", "no_schedule"])]
        level: Option<Level>,
        /// For how long; without it until another is set
        #[arg(long = "for", value_name = "DURATION", value_parser = duration, requires = "level")]
        duration: Option<Duration>,
        /// Until this process of the tenant ends
        #[arg(long, value_name = "PID", conflicts_with = "duration", requires = "level")]
        until_pid: Option<u32>,
        /// When to step back every day, such as "22:00-06:00 idle" or "mon-fri 08:00-18:00 low"; can be given several times
        #[arg(long, value_name = "PART", value_parser = schedule_entry)]
        schedule: Vec<v1::ScheduleEntry>,
        /// Forget the schedule
        #[arg(long, conflicts_with = "schedule")]
        no_schedule: bool,
        /// The time zone of the schedule, such as Europe/Berlin [default: this machine's]
        #[arg(long, value_name = "NAME")]
        time_zone: Option<String>,
    },
    /// Show the credits that the caller's account holds, and how it came by them; as the operator, give or take some
    #[command(args_conflicts_with_subcommands = true)]
    Credits {
        /// What the operator does
        #[command(subcommand)]
        command: Option<CreditsCommand>,
        /// How many of the last entries to show
        #[arg(long, value_name = "COUNT", default_value_t = 10)]
        entries: u32,
    },
    /// Spend credits for high priority, from now on
    Boost {
        /// How much: a time such as 30s, or 30-slices
        #[arg(value_name = "AMOUNT", value_parser = boost_amount)]
        amount: BoostAmount,
        /// On this disk only, as MAJ:MIN of the host; the price is the same
        #[arg(long, value_name = "MAJ:MIN")]
        device: Option<String>,
    },
    /// Ask when an operation may begin, and wait until then
    ///
    /// Prints the answer ("now", "in 3 slices (3 s)", "wait, at most 12 s"), and "now" when the time has come. Without a server
    /// that is at once. Never waits beyond the deadline.
    When {
        /// How much it will move: 500M (powers of 1000), 500MiB (of 1024), or bytes
        #[arg(id = "size", long = "bytes", value_name = "BYTES", value_parser = size)]
        bytes: u64,
        /// How long it can wait, and where it moves them
        #[command(flatten)]
        bounds: Bounds,
        /// Print the answer only; an operation that would have to wait for a call is given up
        #[arg(long)]
        no_wait: bool,
    },
    /// Show who the server takes the caller for, and what is in force for it
    Whoami,
    /// Show what tenants asked for and were answered, and every credit earned and spent
    Audit {
        /// Only this one: its name, id, cgroup path or account [default: everyone]
        tenant: Option<String>,
        /// Since when: 2026-03-01T14:30:00Z, 14:30, "10 minutes ago" [default: as far back as is kept]
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
        /// At most so many, the newest
        #[arg(long, value_name = "COUNT", default_value_t = 1000)]
        entries: u32,
    },
    /// One of the readers of a probe or a comparison
    #[command(hide = true)]
    ProbeReader {
        /// The disk
        node: PathBuf,
        /// What to read, as JSON
        job: String,
    },
    /// Write manual pages and shell completions, for packagers
    #[command(hide = true)]
    Generate {
        /// Where to
        directory: PathBuf,
    },
}

/// How long an operation can wait, what it does, and where.
#[derive(Debug, clap::Args)]
pub(crate) struct Bounds {
    /// It should be done within so long
    #[arg(long, value_name = "DURATION", value_parser = duration, requires = "size")]
    deadline: Option<Duration>,
    /// It must have begun within so long
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with = "deadline", requires = "size")]
    begin_by: Option<Duration>,
    /// What it mostly does: sequential-read, sequential-write, random-read or random-write [default: sequential-read]
    #[arg(long, value_name = "KIND", requires = "size")]
    access: Option<Access>,
    /// On which disk, as MAJ:MIN of the host [default: the disk that the tenant uses most]
    #[arg(long, value_name = "MAJ:MIN", requires = "size")]
    device: Option<String>,
}

impl Bounds {
    /// An operation of so many bytes within them.
    pub(crate) fn operation(self, bytes: u64) -> Operation {
        let mut operation = Operation::of_bytes(bytes).access(self.access.unwrap_or_default());
        if let Some(span) = self.deadline {
            operation = operation.done_within(span);
        }
        if let Some(span) = self.begin_by {
            operation = operation.begin_within(span);
        }
        match self.device {
            Some(device) => operation.device(device),
            None => operation,
        }
    }
}

/// What can be shown of jobs besides those that run.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum JobsCommand {
    /// Show what the last runs of a job were like: its phases and their bandwidths, how reading and writing go with processor and memory,
    /// and whether it lives by the disk
    Profile {
        /// The job's name
        name: String,
        /// Write it as a page to this file too
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
    },
}

/// What can be done with forecasts besides looking at a tenant's.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum ForecastCommand {
    /// Backtest every model on a recording, or on a CSV or Parquet file of one's own; works without the daemon
    ///
    /// Each model forecasts each value from those before it: the next step and the next 15, and, where a file spans more than eight
    /// days in steps of at most ten minutes, the day and the week from each midnight on. Printed are, for each model and horizon,
    /// mean absolute error, root of the mean squared error, SMAPE, MPE and MASE, how many 80 % intervals held, how often busy or
    /// idle was foreseen and its Brier score, and the time that a forecast takes, fits included.
    ///
    /// In a CSV or Parquet file each column of numbers is a series, but for the one with the time: seconds since 1970, or
    /// milliseconds, microseconds or nanoseconds, or dates. What cannot be used is named with its line and passed over, and missing
    /// steps are gaps; the exit status is then 1.
    Evaluate(Evaluated),
}

/// What is evaluated, and how.
#[derive(Debug, clap::Args)]
pub(crate) struct Evaluated {
    /// A recording of minerva-ctl record, or a file that ends in .csv, .csv.gz, .tsv or .parquet
    pub(crate) file: PathBuf,
    /// The column with the time [default: one called time, timestamp or date; without it each row is a step]
    #[arg(long, value_name = "COLUMN")]
    pub(crate) time: Option<String>,
    /// Only this column; can be given several times [default: every column of numbers]
    #[arg(long, value_name = "COLUMN")]
    pub(crate) column: Vec<String>,
    /// Rows with the same value of this column are series of their own
    #[arg(long, value_name = "COLUMN")]
    pub(crate) by: Option<String>,
    /// The length of a step [default: the median time from row to row, or 1s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) step: Option<Duration>,
    /// Write a report with plots: forecasts, autocorrelations, decomposition
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
}

/// What the operator does with an account.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum CreditsCommand {
    /// Give an account credits, as the operator
    ///
    /// They last as long as what the account earns. What was done is in the audit.
    Give(Adjusted),
    /// Take credits from an account, as the operator: no more than it holds
    Take(Adjusted),
}

/// Whose credits are adjusted, and by how many.
#[derive(Debug, clap::Args)]
pub(crate) struct Adjusted {
    /// A tenant's name, id or cgroup path, or its account (group:NAME)
    pub(crate) tenant: String,
    /// How many credits, such as 250 or 0.5
    #[arg(value_parser = credits)]
    pub(crate) amount: MicroCredits,
    /// Why, for the audit
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Do it once under this key, however often it is asked for [default: a new one]
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
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

#[cfg(test)]
mod tests {
    use super::Arguments;
    use clap::{CommandFactory, Parser};

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        let read = |line: &str| Arguments::try_parse_from(line.split(' ')).is_ok();
        assert!(read("minerva-ctl priority idle --for 8h"));
        assert!(read("minerva-ctl priority --no-schedule"));
        assert!(!read("minerva-ctl priority"));
        assert!(!read("minerva-ctl priority idle --for 8h --until-pid 7"));
        assert!(!read("minerva-ctl priority --for 8h --no-schedule"));
        assert!(read("minerva-ctl when --bytes 500M --deadline 20s"));
        assert!(!read("minerva-ctl when --bytes 500M --deadline 20s --begin-by 20s"));
        assert!(read("minerva-ctl run --when 500M --deadline 20s --priority low -- true"));
        assert!(!read("minerva-ctl run --deadline 20s -- true"));
    }
}
