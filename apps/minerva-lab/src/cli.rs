//! The command line's shape. Man page and completions are generated from it.

use crate::cache_cli::{CacheMigrationArguments, CacheTenantsArguments, CacheThroughputArguments};
pub(crate) use crate::options::Output;
use crate::options::parse_size;
use crate::vm_cli::{
    ReproduceHtbsArguments, ReproduceTagArguments, VmContractsArguments, VmEndogenicArguments, VmMixArguments,
    VmTagsArguments, VmUrgentArguments,
};
use crate::worth_cli::{ReproduceWorthArguments, WorthArguments};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Emulated disks below the real block layer, measured workloads in real cgroups, and the demonstration.
#[derive(Debug, Parser)]
#[command(name = "minerva-lab", version, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make, list and remove emulated disks.
    #[command(subcommand)]
    Disk(DiskCommand),
    /// Run the demonstration: two scenes, each with equal weights, with the kernel's default settings and with minervad, in random order. The
    /// second also runs with a scheduler that only reacts.
    Demo(DemoArguments),
    /// Measure one of the figures in docs/figures.md.
    #[command(subcommand)]
    Figure(FigureCommand),
    /// Repeat a paper's experiment on the real kernel, and print the paper's numbers beside ours.
    #[command(subcommand)]
    Reproduce(ReproduceCommand),
    /// Remove the disks, mounts, loop devices and cgroups that killed runs left behind.
    Sweep {
        /// Only those whose name starts with this.
        #[arg(long, default_value = "minerva-")]
        prefix: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Run one workload in this process, as the parent asks.
    #[command(hide = true)]
    Worker {
        /// The job, as JSON.
        #[arg(long)]
        spec: String,
        /// The `cgroup.procs` to move into first.
        #[arg(long)]
        cgroup_processes: Option<PathBuf>,
    },
    /// Act as many clients of the daemon, as the parent asks.
    #[command(hide = true)]
    Callers {
        /// The clients, as JSON.
        #[arg(long)]
        spec: String,
    },
    /// Act as one process of a hostile tenant of the cache, as the parent asks.
    #[command(hide = true)]
    Hostile {
        /// What it does: fills, opens, renames, makes.
        #[arg(long)]
        act: String,
        /// A directory of its own.
        #[arg(long)]
        directory: PathBuf,
    },
    /// Write the man page and shell completions.
    #[command(hide = true)]
    Generate {
        /// Where to.
        directory: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum DiskCommand {
    /// Create an emulated disk and print its device. It runs in the background until it is destroyed.
    Create(CreateArguments),
    /// List the emulated disks.
    List {
        /// Print JSON lines.
        #[arg(long)]
        json: bool,
    },
    /// Show the statistics of a disk.
    Stats {
        /// The disk.
        name: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Remove a disk. Requests in flight fail.
    Destroy {
        /// The disk.
        #[arg(required_unless_present = "all")]
        name: Option<String>,
        /// Every disk that `list` shows, and what killed ones left behind.
        #[arg(long, conflicts_with = "name")]
        all: bool,
        /// Print JSON lines.
        #[arg(long)]
        json: bool,
    },
    /// List the disk profiles.
    Profiles {
        /// Print JSON lines.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Clone, Debug, Args)]
pub(crate) struct CreateArguments {
    /// Profile of the disk to emulate; `minerva-lab disk profiles` lists them.
    #[arg(long, default_value = "sata7200-80g")]
    pub(crate) profile: String,
    /// Name for the other commands.
    #[arg(long)]
    pub(crate) name: String,
    /// Size, such as 8G (powers of 1000), 8GiB (powers of 1024), or a number of bytes; by default the profile's.
    #[arg(long, value_parser = parse_size)]
    pub(crate) size: Option<u64>,
    /// Elevator of the disk.
    #[arg(long, default_value = "bfq")]
    pub(crate) elevator: String,
    /// Keep the contents in this file. Without it, writes are discarded and reads return zeros.
    #[arg(long)]
    pub(crate) backing: Option<PathBuf>,
    /// Requests that the disk accepts at once; by default the profile's.
    #[arg(long)]
    pub(crate) queue_depth: Option<u32>,
    /// Seed of the disk model.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Stay in the foreground until Ctrl-C.
    #[arg(long)]
    pub(crate) foreground: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A demonstration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum DemoName {
    /// Four tenants on one disk, under minervad.
    Tenants,
    /// Four guests with contracts on one disk, under minerva-blk.
    DataPath,
    /// A burst beside busy neighbours, written directly to their disk and through the pool of minerva-fs.
    Cache,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct DemoArguments {
    /// What to show: how tenants share a disk (the default), contracts that `minerva-blk` keeps, or a burst that `minerva-fs` absorbs.
    #[arg(value_enum)]
    pub(crate) what: Option<DemoName>,
    /// Scale of the workloads. At 1 they transfer 200 MB, 500 MB, 3 GB and 12 GB; in `cache` the burst is 256 MB.
    #[arg(long)]
    pub(crate) scale: Option<f64>,
    /// Profile of the disk to emulate.
    #[arg(long, default_value = "sata7200-80g")]
    pub(crate) profile: String,
    /// Run these scenes only.
    #[arg(long, value_parser = ["noisy-neighbour", "together"])]
    pub(crate) scene: Vec<String>,
    /// Seed of the order of the runs, and of what the sessions of the second scene are called and look like; by default a random one, which
    /// is printed.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// File for the HTML report with plots.
    #[arg(long, default_value = "minerva-demo.html")]
    pub(crate) report: PathBuf,
    /// Where its programs are.
    #[command(flatten)]
    pub(crate) output: Output,
    /// Run with equal weights only.
    #[arg(long)]
    pub(crate) equal_only: bool,
    /// Give the four tenants these BFQ weights instead of running minervad: a bound on what a controller can reach.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1000), conflicts_with_all = ["equal_only", "minervad"])]
    pub(crate) weights: Option<Vec<u32>>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ReproduceCommand {
    /// Malensek et al. 2016, Fig. 2: four tenants start together, one steps back, one coordinates.
    Endogenic(ReproduceEndogenicArguments),
    /// Matteussi and Geyer 2018: batch jobs that share a disk, all at once or the shortest first.
    Makespan(MakespanArguments),
    /// Matteussi and Geyer 2018: what eight kinds of batch programs do to a disk, beside what the daemon says of their runs.
    Characterise(CharacteriseArguments),
    /// Malensek et al. 2016, Fig. 3-a against 3-b: four tenants start together, after earlier sessions like theirs.
    Proactive(ReproduceWorthArguments),
    /// Malensek et al. 2016, Fig. 3-d against 3-e: two tenants alternate between the disk and other work.
    Interleave(ReproduceWorthArguments),
    /// Rocha and Bona 2012: contracts of synchronous readers, one per guest, and what the contracts cost in throughput; in guests and in
    /// the simulator.
    Htbs(ReproduceHtbsArguments),
    /// Bai and Huang: priorities of programs in different guests; in guests and in the simulator.
    Tag(ReproduceTagArguments),
    /// Run scene one and Fig. 2 at every scale, level and meaning of the deadline, and write a table of all tenants as JSON and
    /// text.
    Table(ReproduceTableArguments),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ReproduceTableArguments {
    /// Profile of the disk to emulate.
    #[arg(long, default_value = "sata7200-80g")]
    pub(crate) profile: String,
    /// Scales of bytes and times; each is measured. At 1 a run takes seven minutes, and a round has seven runs.
    #[arg(long, value_delimiter = ',', default_value = "0.1,0.25,1")]
    pub(crate) scale: Vec<f64>,
    /// Rounds. In each round every arm runs once, in random order; the medians count.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Seed of the order; by default a random one, which is printed.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Folder for `table.json` and `table.txt`, which are rewritten after each scene.
    #[arg(long, default_value = "minerva-table")]
    pub(crate) folder: PathBuf,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ReproduceEndogenicArguments {
    /// Profile of the disk to emulate.
    #[arg(long, default_value = "sata7200-80g")]
    pub(crate) profile: String,
    /// Scale of the paper's bytes and times. At 1, two runs take a quarter of an hour.
    #[arg(long, default_value_t = minerva_lab::scene::ENDOGENIC_SCALE_DEFAULT)]
    pub(crate) scale: f64,
    /// File for the HTML report with plots.
    #[arg(long, default_value = "minerva-endogenic.html")]
    pub(crate) report: PathBuf,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct EndogenicArguments {
    /// Profile of the disk to emulate.
    #[arg(long, default_value = "sata7200-80g")]
    pub(crate) profile: String,
    /// Scales of the paper's bytes and times; each is measured. At 1 a run takes seven minutes, and all runs 2.8 of the 3.9 hours that
    /// the figure takes; at the other two an hour is enough.
    #[arg(long, value_delimiter = ',', default_value = "0.125,0.25,1")]
    pub(crate) scale: Vec<f64>,
    /// Level to which one tenant steps back; each is measured.
    #[arg(long, value_delimiter = ',', value_parser = ["low", "lowest"], default_value = "low,lowest")]
    pub(crate) level: Vec<String>,
    /// What the deadline of the coordinating tenant means: begin by then, or be done by then; each is measured.
    #[arg(long, value_delimiter = ',', value_parser = ["begin", "done"], default_value = "begin,done")]
    pub(crate) deadline: Vec<String>,
    /// Seed of the order and of the other scenes; by default a random one, which is printed.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Pairs of runs of the paper's scene, with equal weights and with the daemon, each in random order; the median counts.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) pairs: u32,
    /// How many other scenes of each kind: 4, 8 and 16 tenants of random sizes and orders, sequential and random reads.
    #[arg(long, default_value_t = 1)]
    pub(crate) others: u64,
    /// Scale of the other scenes.
    #[arg(long, default_value_t = 0.05)]
    pub(crate) others_scale: f64,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FigureCommand {
    /// What endogenic scheduling gains over equal weights on the real kernel, in the paper's scene and in others.
    Endogenic(EndogenicArguments),
    /// How close two equal readers at shares 800:100 get to 8:1.
    WeightsBite(WeightsBiteArguments),
    /// Minerva against the kernel alone: each elevator with its default settings, in scenes of short, committing and long-running
    /// tenants beside heavy ones.
    AgainstKernel(AgainstKernelArguments),
    /// How long BFQ takes to follow when the weight of a busy reader rises to that of the others.
    Rise(RiseArguments),
    /// What minervad gains over equal weights in scene one of the demonstration.
    NoisyNeighbour(NoisyNeighbourArguments),
    /// Processor time that the daemon needs for a slice with many tenants.
    SliceCost(CrowdArguments),
    /// Memory that the daemon needs for many tenants.
    Memory(CrowdArguments),
    /// What the daemon writes in slices in which nothing changes.
    IdleWrites(CrowdArguments),
    /// Response times, memory and cost of a slice with many clients connected.
    Clients(ClientsArguments),
    /// What other tenants lose beside one at level `idle`, and what that one gets of a disk that nobody else uses.
    Idle(IdleArguments),
    /// How much of a reader's pauses background work uses, and what the reader loses.
    Gaps(GapsArguments),
    /// What batch jobs that share a disk gain when the shortest goes first, compared with running them one after the other.
    Makespan(MakespanArguments),
    /// How much of what eight kinds of batch programs do is told as it was by the profiles of their runs.
    Characterise(CharacteriseArguments),
    /// What a burst costs busy neighbours: written directly to their disk, copied there from a fast disk, or through the pool.
    CacheMigration(CacheMigrationArguments),
    /// How fast files in the pools are read and written, compared with the file systems below and with other FUSE file systems.
    CacheThroughput(CacheThroughputArguments),
    /// What many tenants with many files cost the cache, and what a hostile one costs its neighbour.
    CacheTenants(CacheTenantsArguments),
    /// Kill the daemon at random moments under load, and check that everything is restored.
    KillRestore(KillRestoreArguments),
    /// Whether two equal readers get the same after the daemon ended as before it started, for each back end.
    UndoBites(UndoBitesArguments),
    /// Whether `minerva-blk` and others keep the contracts of four guests that read from one disk.
    VmContracts(VmContractsArguments),
    /// What endogenic scheduling gains over equal weights where the tenants of the paper's scene are real guests.
    VmEndogenic(VmEndogenicArguments),
    /// Whether `minerva-blk` keeps the contracts of a database and a file server beside a greedy guest without one.
    VmMix(VmMixArguments),
    /// Whether `minerva-blk` obeys the priorities of six programs in three guests.
    VmTags(VmTagsArguments),
    /// How long a rare urgent request waits beside programs that read all the time, by how many requests `tag` has at the disk.
    VmUrgent(VmUrgentArguments),
    /// What forecasts are worth on the real kernel: for tenants that start together after earlier sessions like theirs, and for bursts
    /// that are interleaved.
    Worth(WorthArguments),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct CrowdArguments {
    /// Numbers of tenants; each is measured.
    #[arg(long, value_delimiter = ',')]
    pub(crate) tenants: Option<Vec<usize>>,
    /// How many of them use the disk in the first half of the slices, with `--tenants`.
    #[arg(long, default_value_t = 16, requires = "tenants")]
    pub(crate) active: usize,
    /// Processes of each active tenant, with `--tenants`; all but one of them sleep.
    #[arg(long, default_value_t = 1, requires = "tenants")]
    pub(crate) processes: u32,
    /// Slices to measure with active tenants; as many again are measured with idle ones.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) slices: u32,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ClientsArguments {
    /// Number of clients; each has its own connection.
    #[arg(long, default_value_t = 10_000)]
    pub(crate) clients: usize,
    /// Requests a second of all clients together.
    #[arg(long, default_value_t = 2_000)]
    pub(crate) requests_per_second: u32,
    /// Seconds to measure.
    #[arg(long, default_value_t = 30)]
    pub(crate) seconds: u32,
    /// Number of tenants that the clients belong to.
    #[arg(long, default_value_t = 4)]
    pub(crate) tenants: usize,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct KillRestoreArguments {
    /// Number of kills.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) kills: u32,
    /// Number of kills after which it is also measured what tenants of equal weight get.
    #[arg(long, default_value_t = 20)]
    pub(crate) effect_checks: u32,
    /// Seconds of each of these measurements.
    #[arg(long, default_value_t = 16)]
    pub(crate) effect_seconds: u64,
    /// How far, in percent, a tenant's part of the disk may then be from its part before the first kill.
    #[arg(long, default_value_t = 10)]
    pub(crate) effect_error_percent: u32,
    /// Seed of the moments at which the daemon is killed; by default a random one, which is printed.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct IdleArguments {
    /// Disks to emulate; by default sata7200-80g and sata-ssd, in the guest sata7200-80g.
    #[arg(long, value_delimiter = ',')]
    pub(crate) profile: Vec<String>,
    /// Measure in the guest only, with cgroup v2.
    #[arg(long, conflicts_with = "no_guest")]
    pub(crate) guest: bool,
    /// Do not start the guest in which cgroup v2 is measured if this machine has v1.
    #[arg(long)]
    pub(crate) no_guest: bool,
    /// Elevators to measure.
    #[arg(long, value_delimiter = ',', default_value = "bfq,mq-deadline")]
    pub(crate) elevator: Vec<String>,
    /// Pairs of windows, with and without the tenant at idle, in random order; the medians count.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Seconds of each window.
    #[arg(long, default_value_t = 10)]
    pub(crate) seconds: u64,
    /// Seed of the order; by default a random one.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct GapsArguments {
    /// Which disks to emulate.
    #[arg(long, visible_alias = "disk", value_delimiter = ',', default_value = "sata7200-80g,sata-ssd")]
    pub(crate) profile: Vec<String>,
    /// Elevators to measure.
    #[arg(long, value_delimiter = ',', default_value = "bfq,mq-deadline")]
    pub(crate) elevator: Vec<String>,
    /// Background work to measure.
    #[arg(
        long,
        visible_alias = "kind",
        value_delimiter = ',',
        default_value = "backup,delete,scrub",
        value_parser = ["backup", "delete", "scrub"]
    )]
    pub(crate) work: Vec<String>,
    /// Readers to measure it beside: one that pauses after each burst, and one that never does.
    #[arg(long, value_delimiter = ',', default_value = "pauses,steady", value_parser = ["pauses", "steady"])]
    pub(crate) reader: Vec<String>,
    /// Pairs of windows, with and without background work, in random order; the results are pooled.
    #[arg(long, visible_alias = "pairs", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Bursts of the reader in each window. Bursts and pauses are 2 to 6 s long; one that never pauses reads until the work is
    /// done, and without it for two minutes.
    #[arg(long, default_value_t = 4)]
    pub(crate) bursts: u32,
    /// Seed of bursts, pauses and order; by default a random one.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct CharacteriseArguments {
    /// Which disk to emulate.
    #[arg(long, default_value = "sas10k-300g")]
    pub(crate) profile: String,
    /// Under which elevator.
    #[arg(long, default_value = "bfq")]
    pub(crate) elevator: String,
    /// Only these programs: sort, terasort, wordcount, nutch, pagerank, k-means, bayes, hive.
    #[arg(long, value_delimiter = ',')]
    pub(crate) program: Vec<String>,
    /// Multiplies what they read and write and how long they compute; at 1 all take some five minutes.
    #[arg(long, default_value_t = 1.0)]
    pub(crate) scale: f64,
    /// Where to write the page with plots.
    #[arg(long, default_value = "minerva-characterise.html")]
    pub(crate) report: PathBuf,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct MakespanArguments {
    /// Profile of the disk to emulate.
    #[arg(long, default_value = "sas10k-300g")]
    pub(crate) profile: String,
    /// Elevators to measure.
    #[arg(long, value_delimiter = ',', default_value = "none,mq-deadline,bfq")]
    pub(crate) elevator: Vec<String>,
    /// Jobs to run: mixed (TeraSort, Sort, WordCount, K-means, PageRank) or alike (four sorts).
    #[arg(long, value_delimiter = ',', default_value = "mixed,alike", value_parser = ["mixed", "alike"])]
    pub(crate) jobs: Vec<String>,
    /// Scale of what the jobs read and write. At 1 that is about 2.3 GB for mixed and 1.8 GB for alike.
    #[arg(long, default_value_t = 1.0)]
    pub(crate) scale: f64,
    /// Rounds. In each round every arm runs once, in random order; the medians count.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Seed of the order; by default a random one.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct UndoBitesArguments {
    /// Profile of the disk to emulate.
    #[arg(long, default_value = "sata7200-80g")]
    pub(crate) profile: String,
    /// Measure these back ends only: bfq, bfq-v1, iocost, max, throttle-v1. Those of the other cgroup version are measured in a guest.
    #[arg(long, value_delimiter = ',')]
    pub(crate) back_end: Vec<String>,
    /// What makes the daemon put everything back: it ends, its mode becomes `shadow`, or a rule excludes the tenants.
    #[arg(long, value_delimiter = ',', default_value = "end", value_parser = ["end", "mode", "exclusion"])]
    pub(crate) by: Vec<String>,
    /// Rounds; the medians count.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Seconds of each of the windows before, during and after.
    #[arg(long, default_value_t = 12)]
    pub(crate) seconds: u64,
    /// Do not start the guest in which cgroup v2 is measured if this machine has v1.
    #[arg(long)]
    pub(crate) no_guest: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct AgainstKernelArguments {
    /// Run these scenes only.
    #[arg(long, value_delimiter = ',', value_parser = crate::arms::SCENES)]
    pub(crate) scene: Vec<String>,
    /// Run these arms only.
    #[arg(long, value_delimiter = ',', value_parser = crate::arms::ALL_ARMS)]
    pub(crate) arm: Vec<String>,
    /// Disks to emulate; by default sata7200-80g and sata-ssd, on cgroup v2 slow-ssd in place of the latter.
    #[arg(long, value_delimiter = ',')]
    pub(crate) profile: Vec<String>,
    /// Measure in the guest only, with cgroup v2: under each elevator, and without one through iocost and through caps.
    #[arg(long, conflicts_with = "no_guest")]
    pub(crate) guest: bool,
    /// Do not start the guest, which by default follows if all arms run.
    #[arg(long)]
    pub(crate) no_guest: bool,
    /// Rounds. In each round every arm runs once, in random order; the medians count.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Scale of the work of short tenants and of the time of long-running ones.
    #[arg(long, default_value_t = 1.0)]
    pub(crate) scale: f64,
    /// Seed of the order; by default a random one, which is printed.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Write every single run to this file, as JSON.
    #[arg(long)]
    pub(crate) runs: Option<PathBuf>,
    /// Write a plot of each scene into this folder.
    #[arg(long)]
    pub(crate) plots: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct NoisyNeighbourArguments {
    /// Profile of the disk to emulate.
    #[arg(long, default_value = "sata7200-80g")]
    pub(crate) profile: String,
    /// Scales of the workloads; each is measured. At 1 a run takes seven minutes, and all runs 43 of the 58 minutes that the figure takes.
    #[arg(long, value_delimiter = ',', default_value = "0.1,0.25,1")]
    pub(crate) scale: Vec<f64>,
    /// Pairs of runs, with equal weights and with the daemon, each in random order; the median counts.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) pairs: u32,
    /// Seed of the order; by default a random one, which is printed.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Give the four tenants these BFQ weights instead of running minervad.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1000), conflicts_with = "minervad")]
    pub(crate) weights: Option<Vec<u32>>,
    /// Share of the heaviest group, instead of the daemon's default.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10000), conflicts_with = "weights")]
    pub(crate) share_heavy: Option<u32>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct RiseArguments {
    /// Profile of the disk to emulate.
    #[arg(long, default_value = "sata7200-80g")]
    pub(crate) profile: String,
    /// What the reader weighs before; each is measured.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=100), default_value = "2,5,10")]
    pub(crate) weight: Vec<u32>,
    /// Readers of weight 100 beside it.
    #[arg(long, default_value_t = 4)]
    pub(crate) others: u32,
    /// Seconds for which it is watched after its weight has become 100 as well.
    #[arg(long, default_value_t = 55)]
    pub(crate) seconds: u64,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct WeightsBiteArguments {
    /// Profile of the disk to emulate.
    #[arg(long, default_value = "sata7200-80g")]
    pub(crate) profile: String,
    /// Write the weights directly, without minervad.
    #[arg(long)]
    pub(crate) raw: bool,
    /// Request sizes; each is measured.
    #[arg(long, value_parser = parse_size, value_delimiter = ',', default_value = "64KiB,256KiB,1MiB")]
    pub(crate) block: Vec<u64>,
    /// Read at random instead of sequentially.
    #[arg(long)]
    pub(crate) random: bool,
    /// Seconds to measure for each.
    #[arg(long, default_value_t = 15)]
    pub(crate) seconds: u64,
    /// Do not start the guest in which cgroup v2 is measured if this machine has v1.
    #[arg(long)]
    pub(crate) no_guest: bool,
    /// Windows to measure; the median counts.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) windows: u32,
    /// Other settings of the disk's queue, such as `iosched/slice_idle=8` or `nr_requests=64`.
    #[arg(long = "set", value_name = "FILE=VALUE")]
    pub(crate) settings: Vec<String>,
    /// Requests that the disk accepts at once.
    #[arg(long)]
    pub(crate) queue_depth: Option<u32>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::{Command, CommandFactory, Parser};

    #[test]
    fn no_figure_is_measured_by_nothing() {
        let counts = ["--rounds", "--pairs", "--runs", "--kills", "--windows", "--slices"];
        // Those that may leave out a part, and say so.
        let may_be_none = ["cache-tenants", "vm-mix", "vm-urgent"];
        let command = Cli::command();
        let figures = command.find_subcommand("figure").unwrap().get_subcommands();
        // Where it has no default, `--runs` is a file.
        let has = |figure: &Command, count: &str| {
            let mut arguments = figure.get_arguments().filter(|one| !one.get_default_values().is_empty());
            arguments.any(|one| one.get_long() == count.strip_prefix("--"))
        };
        let mut seen = 0;
        for (figure, count) in figures.flat_map(|figure| counts.map(|count| (figure, count))) {
            if has(figure, count) {
                let name = figure.get_name();
                let is_refused = |number| Cli::try_parse_from(["minerva-lab", "figure", name, count, number]).is_err();
                assert_eq!([is_refused("0"), is_refused("1")], [!may_be_none.contains(&name), false], "{name} {count}");
                seen += 1;
            }
        }
        assert!(seen > 15, "{seen}");
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
