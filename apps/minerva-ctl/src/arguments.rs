//! What the command line may say. Every text here is also the manual page.

#[cfg(test)]
mod tests;

use crate::background::arguments::BackgroundCommand;
use crate::cache::CacheCommand;
use crate::disk::DiskCommand;
use crate::quantity::{boost_amount, credits, duration, job_name, reading_time, schedule_entry, size};
use crate::words::words;
use minerva_client::cache::Pool;
use minerva_client::{Access, BoostAmount, Level, Operation, v1};
use minerva_model::MicroCredits;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Show, explain and undo what Minerva does to the disks of this host, or make requests as one of its tenants.
///
/// Data goes to standard output, messages for people to standard error. The exit status is 0 if all is well, 1 if there is
/// something to act on (a disk that cannot be steered, a replay that differs, a refused file, a refused request), and 2 if the
/// command itself failed.
///
/// Commands for tenants (priority, credits, boost, when, whoami, run) need neither root nor a daemon on this machine: in a
/// container they use the host's socket, in a guest minerva-agent. MINERVA_ADDRESS names another
/// server: unix:/path, vsock:2:7420, https://host:7420 (with MINERVA_CA, and MINERVA_CERTIFICATE and MINERVA_KEY, or
/// MINERVA_TOKEN or MINERVA_TOKEN_FILE).
#[derive(Debug, clap::Parser)]
#[command(name = "minerva-ctl", version)]
pub(crate) struct Arguments {
    /// Print JSON, one object per line
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// The daemon's socket [default: from the operator's file]
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// The operator's file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]
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
    /// Watch tenants and disks live; d shows the disks of guests, q quits
    Top {
        /// Print one slice, and the disks of guests, as text and exit
        #[arg(long)]
        once: bool,
    },
    /// Explain a tenant's share of each disk
    Explain {
        /// Its name, its id (t4) or its cgroup path
        tenant: String,
        /// When: 2026-03-01T14:30:00Z, "2026-03-01 14:30", 14:30, "10 minutes ago" [default: now]
        #[arg(long, value_name = "TIME")]
        at: Option<String>,
    },
    /// Show what a tenant is expected to do on each disk, and compare earlier forecasts with what it did
    ///
    /// Shows reads and writes together, slice by slice, with an 80 % interval; the forecasts for the next slice, the next 15 s and
    /// the rest of the session; and the measured skill of each forecast: 1 is perfect, 0 no better than the best naive forecast.
    /// The exit status is 1 if there is no forecast.
    #[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
    Forecast {
        /// Other commands for forecasts
        #[command(subcommand)]
        command: Option<ForecastCommand>,
        /// Its name, its id (t4) or its cgroup path; name a tenant called evaluate by its id or path. With --horizon, a disk (sda,
        /// 8:0) or one of the operator's groups
        #[arg(required = true)]
        tenant: Option<String>,
        /// Show the next day or week of a disk or a group instead of the next seconds of a tenant
        #[arg(long, value_name = "HORIZON", value_parser = ["day", "week"])]
        horizon: Option<String>,
        /// Write a page to this file
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
    },
    /// Check for each disk and mount whether weights take effect, and if not, why and what to do; works without the daemon
    Doctor {
        /// Test it: two tenants read from the disk at 8:1 for some seconds. Nothing is written to the disk
        #[arg(long)]
        probe: bool,
        /// Compare elevators, weights and caps here: two heavy readers beside a light one under each. Nothing is written to the disk
        #[arg(long, conflicts_with = "probe")]
        compare: bool,
        /// Let the comparison try the other elevators as well, and BFQ with other settings, and then put all back, with its weights
        #[arg(long, requires = "compare", conflicts_with = "probe")]
        change_elevator: bool,
        /// Write the lines for what was best into a drop-in of the operator's file, disk-NAME.toml, unless somebody else wrote one
        #[arg(long, requires = "compare", conflicts_with = "probe")]
        write: bool,
        /// Rounds of the comparison [default: 3; with --write as many as it takes that what is written is hardly chance]
        #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=100))]
        rounds: Option<u32>,
        /// Only this disk, such as sda
        #[arg(long, value_name = "NAME", conflicts_with = "mount")]
        device: Option<String>,
        /// Only the disk that holds this path
        #[arg(long, value_name = "PATH")]
        mount: Option<PathBuf>,
        /// How long the probe reads, or each part of the comparison in each round: at least 100ms [default: 4s; less in a comparison
        /// that would take longer than a minute]
        #[arg(long, value_name = "DURATION", value_parser = reading_time)]
        seconds: Option<Duration>,
    },
    /// Put every knob back as it was before Minerva; works without the daemon
    ///
    /// A daemon in enforce mode soon writes again, so stop it first, or set mode = "shadow"; otherwise this command says so and exits with 1.
    /// Where the operator's file names another runtime_dir than the default one and nothing is there, what a daemon left in the default one
    /// that was started before is put back; not with --config.
    Restore {
        /// Do nothing while a daemon runs; for the unit's ExecStopPost=
        #[arg(long)]
        if_daemon_gone: bool,
    },
    /// Record the engine's input and output, to replay it later
    ///
    /// A recording starts with a snapshot of the engine's state, so steering is not disturbed. SIGINT and SIGTERM
    /// end it cleanly, also with --for.
    Record {
        /// Where to write the recording
        file: PathBuf,
        /// How long [default: until interrupted]
        #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
        duration: Option<Duration>,
    },
    /// Replay a recording and compare every effect byte for byte; works without the daemon
    Replay {
        /// The recording
        file: PathBuf,
    },
    /// Check or print the operator's file
    Config {
        /// What to do
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Make the daemon read the operator's file again
    Reload,
    /// Show and manage the pool of memory and fast disk that minerva-fs serves, and the files in it that are still to be moved
    ///
    /// Talks to minerva-fs itself, and works without the daemon. Users see their own files, root sees all.
    Cache {
        /// The service's socket [default: MINERVA_CACHE_SOCKET, else /run/minerva-fs/control.sock]
        #[arg(long, value_name = "PATH", global = true)]
        server: Option<PathBuf>,
        /// What to do
        #[command(subcommand)]
        command: CacheCommand,
    },
    /// Show and change the disks of guests that minerva-blk serves, while guests run
    ///
    /// Talks to the server itself, and works without the daemon. Changes take effect at once and are saved for the next start in
    /// blk.toml.d/disk-NAME.toml beside the server's file, unless --runtime is given.
    Disk {
        /// Which server: the name of its socket below servers/ in the daemon's runtime directory
        #[arg(long, value_name = "NAME", default_value = "blk", global = true)]
        server: String,
        /// What to do
        #[command(subcommand)]
        command: DiskCommand,
    },
    /// Start a command as a tenant of its own, or make requests for it
    ///
    /// With --priority the calling tenant steps back while the command runs; with --when the command starts when the server
    /// allows it, and the server is told when it ends. The command then stays in the calling tenant, also with --tag, unless --name
    /// or --weight is given. With --job it becomes a tenant of its own if the caller may do that; otherwise the calling tenant is
    /// the job while the command runs. Without a server, or if the server refuses or does not answer, the command runs all the same, and
    /// why it is no tenant of its own is said; only a name that no tenant can have is refused. The exit status is the command's; 128
    /// plus the signal's number if a signal ended it, 126 if it could not be started, 127 if it does not exist. Signals are passed on
    /// to it.
    Run {
        /// The tenant's name [default: the command's name and process id]
        #[arg(long)]
        name: Option<String>,
        /// The factor on its share, in percent; 200 is twice a neutral tenant's
        #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(1..=10_000))]
        weight: Option<u32>,
        /// The level while it runs: low, lowest or idle
        #[arg(long, value_name = "LEVEL", value_parser = words::<Level>(Level::ALL.map(Level::as_str)), hide_possible_values = true)]
        priority: Option<Level>,
        /// Run it as a batch job with this name: the shortest job on a disk goes first, and runs with the same name are assumed to be alike
        #[arg(long, value_name = "NAME", value_parser = job_name)]
        job: Option<String>,
        /// How much the job will read and write in total [default: as much as earlier runs with its name]
        #[arg(id = "job_size", long = "bytes", value_name = "BYTES", value_parser = size, requires = "job")]
        bytes: Option<u64>,
        /// How much it will transfer; it starts when the disk has room for it
        #[arg(id = "size", long = "when", value_name = "BYTES", value_parser = size)]
        when: Option<u64>,
        /// How long it can wait, and on which disk
        #[command(flatten)]
        bounds: Bounds,
        /// In a guest whose disk minerva-blk serves: the priority of its requests, 1 to 254, higher is more urgent; no server is needed
        #[arg(long, value_name = "TAG", value_parser = clap::value_parser!(u8).range(1..=254))]
        tag: Option<u8>,
        /// The number of this application in the guest, 1 to 31 [default: derived from its process and tag]
        #[arg(long, value_name = "NUMBER", requires = "tag", value_parser = clap::value_parser!(u8).range(1..=31))]
        stream: Option<u8>,
        /// The command and its arguments
        #[arg(required = true, last = true)]
        command: Vec<OsString>,
    },
    /// Delete files, or with -r whole directories, without noticeably slowing others on the disk
    ///
    /// Where the daemon runs and the operator's socket is open to the caller, it deletes as background work by the daemon's plan: while
    /// nobody else uses the disk, and in time for --sla. `background list` shows it while it lasts. Otherwise, or with --pace, it
    /// works only part of the time, pausing longer after what took long, and at level idle if a server grants that; the level applies
    /// to the whole calling tenant. Links are not followed and mount points not entered, even if a directory is replaced by one
    /// meanwhile. Files that could not be deleted are listed with the reason, and the exit status is then 1. If interrupted it leaves
    /// the rest as it is.
    Rm {
        /// Delete directories too
        #[arg(short = 'r', long)]
        recursive: bool,
        /// The percentage of time in which it works, without the daemon's plan [default without a daemon: 20]
        #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(1..=100))]
        pace: Option<u32>,
        /// By the daemon's plan it is done within this time, whatever others do
        #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "1d", conflicts_with = "pace")]
        sla: Duration,
        /// What to delete
        #[arg(required = true)]
        paths: Vec<PathBuf>,
    },
    /// Show batch jobs: which are running, their progress and remaining time, which goes first and why, and what earlier runs did
    ///
    /// A tenant is a job if it says so (minerva-ctl run --job, or a client library) or if [[jobs]] in the operator's file names it. The
    /// exit status is 1 if a job transferred much more than it declared.
    Jobs {
        /// Other commands for jobs
        #[command(subcommand)]
        command: Option<JobsCommand>,
    },
    /// Register work that can wait, and show its progress and the plan for it
    Background {
        /// What to do
        #[command(subcommand)]
        command: BackgroundCommand,
    },
    /// Make a running process and its future children a tenant of their own
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
    /// Step back so that others are served first, which earns credits, or return to normal
    ///
    /// Applies to the caller's tenant (see whoami) within one slice. Prints the level in force, which is lower if a program holds a lower
    /// one or the schedule sets one.
    Priority {
        /// normal, low (a part of what it would have), lowest (a small part) or idle (only when nobody else uses the disk)
        #[arg(required_unless_present_any = ["schedule", "no_schedule"], value_parser = words::<Level>(Level::ALL.map(Level::as_str)), hide_possible_values = true)]
        level: Option<Level>,
        /// For how long [default: until another level is set]
        #[arg(long = "for", value_name = "DURATION", value_parser = duration, requires = "level")]
        duration: Option<Duration>,
        /// Until this process, which must be one of the tenant's, ends
        #[arg(long, value_name = "PID", conflicts_with = "duration", requires = "level")]
        until_pid: Option<u32>,
        /// Step back at these times, such as "22:00-06:00 idle" or "mon-fri 08:00-18:00 low"; can be given several times
        #[arg(long, value_name = "PART", value_parser = schedule_entry)]
        schedule: Vec<v1::ScheduleEntry>,
        /// Delete the schedule
        #[arg(long, conflicts_with = "schedule")]
        no_schedule: bool,
        /// The time zone of the schedule, such as Europe/Berlin [default: this machine's]
        #[arg(long, value_name = "NAME")]
        time_zone: Option<String>,
    },
    /// Show the credits of the caller's account and where they came from; as the operator, give or take credits
    #[command(args_conflicts_with_subcommands = true)]
    Credits {
        /// Commands for the operator
        #[command(subcommand)]
        command: Option<CreditsCommand>,
        /// How many of the last entries to show
        #[arg(long, value_name = "COUNT", default_value_t = 10)]
        entries: u32,
    },
    /// Buy high priority with credits, starting now
    Boost {
        /// How much: a time such as 30s, or 30-slices
        #[arg(value_name = "AMOUNT", value_parser = boost_amount)]
        amount: BoostAmount,
        /// On this disk only, as MAJ:MIN of the host; the price is the same
        #[arg(long, value_name = "MAJ:MIN")]
        device: Option<String>,
        /// Buy it only once for this key, however often the command is repeated [default: a new key]
        #[arg(long, value_name = "KEY")]
        key: Option<String>,
    },
    /// Ask when an operation may begin, and wait until then
    ///
    /// Prints the answer ("now", "in 3 slices (3 s)", "wait, at most 12 s"), then waits and prints "now". Without a server it does
    /// not wait. It never waits beyond the deadline. With --pool the answer may be "pool": others use the disk or are expected
    /// there, so write to the cache at once; `minerva-ctl cache put --pool stable FILE` does.
    When {
        /// How much it will transfer: 500M (powers of 1000), 500MiB (of 1024), or bytes
        #[arg(id = "size", long = "bytes", value_name = "BYTES", value_parser = size)]
        bytes: u64,
        /// How long it can wait, and on which disk
        #[command(flatten)]
        bounds: Bounds,
        /// Of an operation that writes: it may be told to write to this pool of the cache, temporary or stable
        #[arg(long, value_name = "POOL", requires = "access")]
        pool: Option<Pool>,
        /// Only print the answer; the operation is cancelled unless the answer gives a time
        #[arg(long)]
        no_wait: bool,
    },
    /// Show which tenant the server identifies the caller as, and what is in force for it
    Whoami,
    /// Show tenants' requests and the answers, and all credits earned and spent
    Audit {
        /// Only this one: its name, id, cgroup path or account [default: everyone]
        tenant: Option<String>,
        /// Since when: 2026-03-01T14:30:00Z, 14:30, "10 minutes ago" [default: everything that is kept]
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
        /// Show at most this many, the newest
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
    /// When it should be finished, from now
    #[arg(long, value_name = "DURATION", value_parser = duration, requires = "size")]
    deadline: Option<Duration>,
    /// When it must have started, from now
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with = "deadline", requires = "size")]
    begin_by: Option<Duration>,
    /// What it mostly does: sequential-read, sequential-write, random-read or random-write [default: sequential-read]
    #[arg(long, value_name = "KIND", requires = "size", value_parser = words::<Access>(Access::ALL.map(Access::as_str)), hide_possible_values = true)]
    access: Option<Access>,
    /// On which disk, as MAJ:MIN of the host [default: the disk that holds --path, or if there is none, the one that the tenant uses most]
    #[arg(long, value_name = "MAJ:MIN", requires = "size")]
    device: Option<String>,
    /// What it will read or write, or something beside it; this shows on which disk [default: the working directory]
    #[arg(long, value_name = "PATH", conflicts_with = "device", requires = "size")]
    path: Option<PathBuf>,
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
        Operation { device: self.device, path: self.path, ..operation }
    }
}

/// Other commands for jobs.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum JobsCommand {
    /// Show the last runs of a job: phases and their bandwidths, how disk use correlates with processor and memory use, and whether the
    /// disk limits the job
    Profile {
        /// The job's name
        name: String,
        /// Also write a page to this file
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
    },
}

/// Other commands for forecasts.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum ForecastCommand {
    /// Backtest every model on a recording, or on your own CSV or Parquet file; works without the daemon
    ///
    /// Each model forecasts each value from the values before it: the next step and the next 15 steps, and, if a file spans more than
    /// eight days in steps of at most ten minutes, the day and the week after each midnight. For each model and horizon this prints
    /// mean absolute error, root mean squared error, SMAPE, MPE and MASE, the coverage of the 80 % intervals, how often busy or
    /// idle was predicted correctly and the Brier score, and the time per forecast, fits included.
    ///
    /// In a CSV or Parquet file each column of numbers is a series, except the one with the time: seconds, milliseconds, microseconds
    /// or nanoseconds since 1970, or dates. A first line without numbers and dates names the columns. Rows that cannot be used are
    /// named with their line and skipped, and missing steps become gaps; the exit status is then 1.
    Evaluate(Evaluated),
}

/// What is evaluated, and how.
#[derive(Debug, clap::Args)]
pub(crate) struct Evaluated {
    /// A recording of minerva-ctl record, or a file that ends in .csv, .csv.gz, .tsv or .parquet
    pub(crate) file: PathBuf,
    /// The column with the time [default: one called time, timestamp or date, or the first with dates; without it each row is a step]
    #[arg(long, value_name = "COLUMN")]
    pub(crate) time: Option<String>,
    /// The unit of times that are numbers [default: by their size]
    #[arg(long, value_name = "UNIT", value_enum)]
    pub(crate) time_unit: Option<TimeUnit>,
    /// Only this column; can be given several times [default: every column of numbers]
    #[arg(long, value_name = "COLUMN")]
    pub(crate) column: Vec<String>,
    /// Rows with the same value in this column form a separate series
    #[arg(long, value_name = "COLUMN")]
    pub(crate) by: Option<String>,
    /// The length of a step [default: the median time from row to row, or 1s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) step: Option<Duration>,
    /// Write a report with plots: forecasts, autocorrelations, decomposition
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
}

/// The unit of times that are numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum TimeUnit {
    /// Seconds
    S,
    /// Milliseconds
    Ms,
    /// Microseconds
    Us,
    /// Nanoseconds
    Ns,
}

/// Commands for the operator on an account.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum CreditsCommand {
    /// Give an account credits, as the operator
    ///
    /// They expire like credits that the account earned. The audit records it.
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
    /// Do it only once for this key, however often the command is repeated [default: a new key]
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
}

/// What to do with the operator's file.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check a file; errors point at the line and column
    Check {
        /// The file [default: that of --config]
        file: Option<PathBuf>,
    },
    /// Print a file with every setting, its default and its meaning
    Default,
}
