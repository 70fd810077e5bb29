//! The command line's shape. Man pages and completions are generated from it.

use crate::experiment::proactive::Roles;
use crate::scheduler::{HtbsArguments, Name, parser};
use crate::trace_cli::{Reading, Replaying, TraceCommand};
use clap::{Args, Parser, Subcommand, ValueEnum};
use minerva_model::Nanos;
use minerva_sim_world::Fault;
use std::path::PathBuf;

/// Simulates disks and their tenants in virtual time, with the schedulers and the engine that also run on real disks.
#[derive(Parser)]
#[command(name = "minerva-sim", version, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Simulate a job file or a block trace under one scheduler.
    Run(RunArguments),
    /// Simulate the same jobs under several schedulers, side by side.
    Compare(CompareArguments),
    /// Check whether a disk can keep the contracts of a job file, and what is missing if it cannot.
    Admit(AdmitArguments),
    /// Repeat the experiments of a paper, and print its numbers beside ours.
    Reproduce(ReproduceArguments),
    /// Measure one of the figures in docs/figures.md.
    Figure(FigureArguments),
    /// Read and convert block traces.
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Fit an SSD profile to a fio run.
    Fit(FitArguments),
    /// Write man pages and shell completions.
    #[command(hide = true)]
    Generate {
        /// Where to.
        directory: PathBuf,
    },
}

/// What is simulated.
#[derive(Clone, Debug, Args)]
pub(crate) struct Scene {
    /// A fio-style job file (its name ends in .fio, .ini or .job) or a block trace (any other name); `-` reads a trace from standard
    /// input.
    pub(crate) job: PathBuf,
    /// Profile of the disk: a built-in one or a file that ends in `.toml`.
    #[arg(long, default_value = "sata7200-80g")]
    pub(crate) profile: String,
    /// Let Minerva's engine set the tenants' weights, as minervad does.
    #[arg(long)]
    pub(crate) engine: bool,
    /// Seed of the simulation. Equal seeds give equal reports, byte for byte.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// End the run after this many virtual seconds. By default a trace is replayed to its end, and jobs that do not end by themselves
    /// are stopped after 3600.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) until: Option<f64>,
    /// Requests at the disk at once, at most as many as it accepts. By default as many as it accepts, or fewer if the scheduler has to
    /// decide the order itself; 0 for as many as it accepts under any scheduler.
    #[arg(long)]
    pub(crate) depth: Option<u32>,
    #[command(flatten)]
    pub(crate) htbs: HtbsArguments,
    /// Make the disk slow or stop it for a while: FROM-UNTIL in seconds, then `x` and how many times slower, or `x0` to stop it, such
    /// as `10-20x4`. May be given several times.
    #[arg(long, value_name = "FAULT", value_parser = parse_fault)]
    pub(crate) fault: Vec<Fault>,
    #[command(flatten)]
    pub(crate) reading: Reading,
    /// Wrap a trace's addresses beyond the disk's end around, instead of stopping at the first.
    #[arg(long)]
    pub(crate) fold: bool,
    /// Replay the trace this many times faster.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub(crate) speed: f64,
    #[command(flatten)]
    pub(crate) replaying: Replaying,
    /// Write a report with plots to this file.
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    pub(crate) scene: Scene,
    /// Scheduler of the host.
    #[arg(long, value_parser = parser(), default_value_t = Name::Bfq)]
    pub(crate) scheduler: Name,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArguments {
    #[command(flatten)]
    pub(crate) scene: Scene,
    /// Schedulers of the host.
    #[arg(long, value_parser = parser(), value_delimiter = ',', required = true)]
    pub(crate) schedulers: Vec<Name>,
    /// Number of threads; the results do not depend on it. 0 for one per processor.
    #[arg(long, default_value_t = 0)]
    pub(crate) threads: usize,
}

#[derive(Debug, Args)]
pub(crate) struct AdmitArguments {
    /// A fio-style job file with `minerva_contract=RATE,BURST,DELAY` in its jobs.
    pub(crate) job: PathBuf,
    /// Profile of the disk: a built-in one or a file that ends in `.toml`.
    #[arg(long, default_value = "sata7200-80g")]
    pub(crate) profile: String,
    /// Scheduler that is to keep the contracts: pclock or htbs.
    #[arg(long, value_parser = parser(), default_value_t = Name::Htbs)]
    pub(crate) scheduler: Name,
    /// Take each contract's rate as what a job that always has a request waiting should get in every interval of this length, such as
    /// 1s. Print the contract that it needs for that, and check those contracts.
    #[arg(long, value_name = "TIME", value_parser = crate::every::parse)]
    pub(crate) every: Option<Nanos>,
    #[command(flatten)]
    pub(crate) htbs: HtbsArguments,
    /// Seed of the disk and of the positions at which it is measured.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A paper whose experiments can be rerun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Experiment {
    /// Rocha and Bona 2012: guarantees and throughput of HTBS.
    Htbs,
    /// Bai and Huang: the Tag Scheduler.
    Tag,
    /// Malensek et al. 2016: weights from history (Fig. 3-a).
    Fennel,
    /// Kachmar and Kaeli 2020: background work in forecast gaps (Fig. 13 and 14).
    Background,
    /// Matteussi and Geyer 2018: batch jobs, with the shortest first.
    Makespan,
    /// Malensek et al. 2016: weights from forecasts of sessions (Fig. 3-b), against an oracle and simpler arms. Takes minutes.
    Proactive,
    /// Malensek et al. 2016: a word count beside an ingest on 75 hosts (Fig. 3-c). Takes minutes.
    Mapreduce,
    /// Malensek et al. 2016: bursts that take turns (Fig. 3-d and 3-e).
    Interleave,
}

#[derive(Debug, Args)]
pub(crate) struct ReproduceArguments {
    /// The paper's experiment.
    #[arg(value_enum)]
    pub(crate) experiment: Experiment,
    /// Seed of the disk and the processes [default: 1, for mapreduce a random one]
    #[arg(long, value_parser = clap::value_parser!(u64).range(..1 << 40))]
    pub(crate) seed: Option<u64>,
    /// `background`: replay the last six days of these block traces, such as SYSTOR '17's, instead of a synthetic week. Their times
    /// are read as Unix seconds and converted to Japanese time.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) traces: Vec<PathBuf>,
    /// `background`: write plots of the days to this file.
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) plot: Option<PathBuf>,
    /// `proactive`, `interleave`, `mapreduce`, `makespan`: runs of each arm; each run has other sessions, and other jobs in mixes that
    /// are drawn.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub(crate) runs: u64,
    /// `proactive`: length of the engine's slices.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = slice)]
    pub(crate) slice: Nanos,
    /// `proactive`: scale of the paper's bytes and of the time between sessions.
    #[arg(long, default_value_t = 1.0, value_parser = scale)]
    pub(crate) scale: f64,
    /// `proactive`: play this scene alone.
    #[arg(long, value_enum)]
    pub(crate) scene: Option<Roles>,
    /// `proactive`: print JSON, a line for each arm of each scene.
    #[arg(long)]
    pub(crate) json: bool,
    /// `proactive`, `interleave`, `mapreduce`: write a report with plots to this file.
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
}

fn slice(text: &str) -> Result<Nanos, String> {
    let slice = crate::every::parse(text)?;
    let is_allowed = (Nanos::from_millis(100)..=Nanos::from_secs(60)).contains(&slice);
    is_allowed.then_some(slice).ok_or_else(|| format!("a slice cannot be `{text}`: use 100ms to 60s"))
}

fn scale(text: &str) -> Result<f64, String> {
    let scale = text.parse::<f64>().ok().filter(|scale| (0.01..=1.0).contains(scale));
    scale.ok_or_else(|| format!("a scale cannot be `{text}`: use 0.01 to 1"))
}

/// A figure that the simulator measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FigureId {
    /// Whether HTBS keeps its guarantees in every second, compared with pClock, and where the original fails.
    HtbsContracts,
    /// Whether HTBS keeps its guarantees on disks and workloads that it was not tuned for, compared with the admission test.
    HtbsElsewhere,
    /// Throughput of sequential readers under HTBS, compared with pClock and BFQ.
    HtbsThroughput,
    /// Inversions of priority under the Tag Scheduler, and under CFQ in guests.
    TagInversions,
    /// Means of simulated queues, compared with closed formulas.
    Queueing,
    /// Violations of background work under each policy, on usual and on harder days.
    Background,
    /// A word count beside an ingest on 75 hosts, with forecasts and without. Takes minutes.
    Mapreduce,
    /// Speed of the simulator, in requests a second.
    SimSpeed,
    /// What a random reader gets and leaves to others, by what counts as use.
    DiskTime,
    /// The disk model, compared with measured drives.
    DiskModel,
    /// Memory needed for traces of 1, 10 and 100 million requests.
    TraceMemory,
}

#[derive(Debug, Args)]
pub(crate) struct FigureArguments {
    /// The figure.
    #[arg(value_enum)]
    pub(crate) id: FigureId,
    /// `disk-model`: folder of the measured drives.
    #[arg(long, default_value = "../shared/data/disks")]
    pub(crate) disks: PathBuf,
    /// Print JSON lines.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Fit an SSD profile to a fio run. The profile goes to standard output, the error of each job to standard error.
///
/// Run fio with `--output-format=json` and one job per point: random and sequential reads and writes of a few block sizes at a few
/// depths, each with `stonewall`, so that they run one after the other.
#[derive(Args)]
pub(crate) struct FitArguments {
    /// What `fio --output-format=json` printed.
    pub(crate) fio_json: PathBuf,
    /// Profile to start from: a built-in one or a file that ends in `.toml`.
    #[arg(long, value_name = "PROFILE", default_value = "sata-ssd")]
    pub(crate) base: String,
    /// Print JSON lines instead of the profile: one per job, then one with the profile.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `FROM-UNTILxSLOWER`, for the command line.
fn parse_fault(text: &str) -> Result<Fault, String> {
    let shape = || format!("`{text}` is not FROM-UNTILxSLOWER, such as 10-20x4");
    let (times, slower) = text.split_once('x').ok_or_else(shape)?;
    let (from, until) = times.split_once('-').ok_or_else(shape)?;
    let second = |text: &str| {
        let second = text.parse::<f64>().ok().filter(|second| (0.0..1e9).contains(second));
        second.map(|second| Nanos((second * 1e9) as u64)).ok_or_else(shape)
    };
    let (from, until) = (second(from)?, second(until)?);
    if until <= from {
        return Err(format!("`{text}` ends before it starts"));
    }
    let slower: u32 = slower.parse().map_err(|_| shape())?;
    Ok(Fault { from, until, slower: (slower > 0).then_some(slower) })
}
