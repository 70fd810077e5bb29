//! The command line's shape. Man page and completions are generated from it.

use crate::cache_cli::{CacheMigrationArguments, CacheTenantsArguments, CacheThroughputArguments};
pub(crate) use crate::options::Output;
use crate::options::parse_size;
use crate::vm_cli::{
    ReproduceHtbsArguments, ReproduceTagArguments, VmContractsArguments, VmTagsArguments, VmUrgentArguments,
};
use crate::worth_cli::{ReproduceWorthArguments, WorthArguments};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Minerva's real-kernel laboratory: emulated disks, measured workloads, and the demonstration.
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
    /// Run the demonstration: two scenes, each with equal weights and under minervad; the first with the kernel's own default too, the
    /// second, in which forecasts decide, with reaction alone.
    Demo(DemoArguments),
    /// Measure one of the figures in docs/figures.md.
    #[command(subcommand)]
    Figure(FigureCommand),
    /// Repeat an experiment of the papers on the real kernel, and print their figures beside ours.
    #[command(subcommand)]
    Reproduce(ReproduceCommand),
    /// Remove what killed runs left behind: disks, mounts, loop devices, cgroups.
    Sweep {
        /// Only leftovers whose name starts with this.
        #[arg(long, default_value = "minerva-")]
        prefix: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Do one workload in this process, as told by the parent.
    #[command(hide = true)]
    Worker {
        /// The job, as JSON.
        #[arg(long)]
        spec: String,
        /// The `cgroup.procs` to move into first.
        #[arg(long)]
        cgroup_processes: Option<PathBuf>,
    },
    /// Be many clients of the daemon, as told by the parent.
    #[command(hide = true)]
    Callers {
        /// The clients, as JSON.
        #[arg(long)]
        spec: String,
    },
    /// Be one process of a hostile tenant of the cache, as told by the parent.
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
    /// Make an emulated disk and print its device. It runs in the background until it is destroyed.
    Create(CreateArguments),
    /// List the emulated disks.
    List {
        /// Print JSON lines.
        #[arg(long)]
        json: bool,
    },
    /// Show what a disk has done.
    Stats {
        /// The disk.
        name: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Remove a disk. Requests still under way fail.
    Destroy {
        /// The disk.
        #[arg(required_unless_present = "all")]
        name: Option<String>,
        /// Every disk that `list` shows, and leftovers of dead ones.
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
    /// Which disk to emulate; `minerva-lab disk profiles` lists them.
    #[arg(long, default_value = "sata7200-80g")]
    pub(crate) profile: String,
    /// The name by which the other commands know it.
    #[arg(long)]
    pub(crate) name: String,
    /// Size, such as 8G (powers of 1000), 8GiB (of 1024), or bytes. The profile's own by default.
    #[arg(long, value_parser = parse_size)]
    pub(crate) size: Option<u64>,
    /// Elevator on top of it.
    #[arg(long, default_value = "bfq")]
    pub(crate) elevator: String,
    /// Keep the contents in this file. Without it writes are forgotten and reads are zeros.
    #[arg(long)]
    pub(crate) backing: Option<PathBuf>,
    /// Requests the disk takes at once. The profile's own by default.
    #[arg(long)]
    pub(crate) queue_depth: Option<u32>,
    /// Seed of what is random in the model.
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
    /// A burst beside busy neighbours, straight to their disk and through the pool of minerva-fs.
    Cache,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct DemoArguments {
    /// What to show: who gets the disk (the default), contracts of guests that `minerva-blk` keeps, or a burst that `minerva-fs` takes.
    #[arg(value_enum)]
    pub(crate) what: Option<DemoName>,
    /// Multiplies the bytes of the workloads: 200 MB, 500 MB, 3 GB and 12 GB at 1; of `cache`: a burst of 256 MB.
    #[arg(long)]
    pub(crate) scale: Option<f64>,
    /// Which disk to emulate.
    #[arg(long, default_value = "sata7200-80g")]
    pub(crate) profile: String,
    /// Run only these scenes.
    #[arg(long, value_parser = ["noisy-neighbour", "together"])]
    pub(crate) scene: Vec<String>,
    /// Where to write the HTML report with plots.
    #[arg(long, default_value = "minerva-demo.html")]
    pub(crate) report: PathBuf,
    /// Where its programs are.
    #[command(flatten)]
    pub(crate) output: Output,
    /// Run with equal weights only.
    #[arg(long)]
    pub(crate) equal_only: bool,
    /// In place of minervad let the four tenants hold these BFQ weights: a bound for what a controller can reach.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1000), conflicts_with_all = ["equal_only", "minervad"])]
    pub(crate) weights: Option<Vec<u32>>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ReproduceCommand {
    /// Minerva's Fig. 2: four tenants start together, one steps back, one coordinates.
    Endogenic(ReproduceEndogenicArguments),
    /// Matteussi and Geyer 2018: batch jobs that share a disk, all at once, and the shortest first.
    Makespan(MakespanArguments),
    /// Minerva's Fig. 3-a against 3-b: four tenants start together, after sessions like theirs.
    Proactive(ReproduceWorthArguments),
    /// Minerva's Fig. 3-d against 3-e: two tenants alternate between the disk and other work.
    Interleave(ReproduceWorthArguments),
    /// Rocha and Bona 2012: contracts of synchronous readers, each in a guest of its own, and what they cost in throughput; in guests and
    /// in the simulator.
    Htbs(ReproduceHtbsArguments),
    /// Bai and Huang: priorities of programs in different guests; in guests and in the simulator.
    Tag(ReproduceTagArguments),
    /// Scene one and Fig. 2 at every scale, level and meaning of the deadline, each tenant by name: a table as JSON and text.
    Table(ReproduceTableArguments),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ReproduceTableArguments {
    /// Which disk to emulate.
    #[arg(long, default_value = "sata7200-80g")]
    pub(crate) profile: String,
    /// Multiply the bytes and times; each is measured. At 1 a run takes seven minutes, and there are seven a round.
    #[arg(long, value_delimiter = ',', default_value = "0.1,0.25,1")]
    pub(crate) scale: Vec<f64>,
    /// Rounds; in each equal weights and every way play once, in an order that is drawn. The medians count.
    #[arg(long, default_value_t = 2)]
    pub(crate) rounds: u32,
    /// Seed of the order; drawn and printed unless given.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Where to write `table.json` and `table.txt`, anew after each scene.
    #[arg(long, default_value = "minerva-table")]
    pub(crate) folder: PathBuf,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ReproduceEndogenicArguments {
    /// Which disk to emulate.
    #[arg(long, default_value = "sata7200-80g")]
    pub(crate) profile: String,
    /// Multiplies the paper's bytes and times; at 1 two runs take a quarter of an hour.
    #[arg(long, default_value_t = minerva_lab::scene::ENDOGENIC_SCALE_DEFAULT)]
    pub(crate) scale: f64,
    /// Where to write the HTML report with plots.
    #[arg(long, default_value = "minerva-endogenic.html")]
    pub(crate) report: PathBuf,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct EndogenicArguments {
    /// Which disk to emulate.
    #[arg(long, default_value = "sata7200-80g")]
    pub(crate) profile: String,
    /// Multiply the paper's bytes and times; each is measured. At 1 a run takes seven minutes.
    #[arg(long, value_delimiter = ',', default_value = "0.125,0.25,1")]
    pub(crate) scale: Vec<f64>,
    /// How far the tenant steps back that does; each is measured.
    #[arg(long, value_delimiter = ',', value_parser = ["low", "lowest"], default_value = "low,lowest")]
    pub(crate) level: Vec<String>,
    /// What the deadline of who coordinates means: to have begun by it, or to be done; each is measured.
    #[arg(long, value_delimiter = ',', value_parser = ["begin", "done"], default_value = "begin,done")]
    pub(crate) deadline: Vec<String>,
    /// Seed of the order; drawn and printed unless given.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Pairs of runs of the paper's scene, equal weights and the daemon, in an order that is drawn for each; the median counts.
    #[arg(long, default_value_t = 2)]
    pub(crate) pairs: u32,
    /// Other scenes: 4, 8 and 16 tenants of other sizes and orders, sequential and random, this many of each.
    #[arg(long, default_value_t = 1)]
    pub(crate) others: u64,
    /// The scale of the other scenes.
    #[arg(long, default_value_t = 0.05)]
    pub(crate) others_scale: f64,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FigureCommand {
    /// What endogenic scheduling gains on the real kernel against equal weights, in the paper's scene and in others.
    Endogenic(EndogenicArguments),
    /// How close two equal readers at shares 800:100 get to 8:1.
    WeightsBite(WeightsBiteArguments),
    /// Minerva against what the kernel does by itself: each elevator as shipped, in scenes of short, committing and lasting
    /// tenants beside heavy ones.
    AgainstKernel(AgainstKernelArguments),
    /// How long BFQ takes to obey when the weight of a busy reader rises to that of the others.
    Rise(RiseArguments),
    /// What scene one of the demonstration gains under minervad against equal weights.
    NoisyNeighbour(NoisyNeighbourArguments),
    /// Processor time of the daemon in each slice, with many tenants.
    SliceCost(CrowdArguments),
    /// Memory of the daemon with many tenants.
    Memory(CrowdArguments),
    /// What the daemon writes in slices in which nothing changes.
    IdleWrites(CrowdArguments),
    /// Answers, memory and slices with many clients connected.
    Clients(ClientsArguments),
    /// What others lose beside a tenant at level `idle`, and what that gets of a disk that nobody else uses.
    Idle(IdleArguments),
    /// What background work takes of the pauses of a reader, and what that loses by it.
    Gaps(GapsArguments),
    /// What batch jobs that share a disk gain when the shortest goes first, of what running one after the other gains.
    Makespan(MakespanArguments),
    /// What a burst beside busy neighbours costs: straight to their disk, copied back from a fast one, and through the pool.
    CacheMigration(CacheMigrationArguments),
    /// How fast files of the pools are read and written, beside what lies below them and other FUSE file systems.
    CacheThroughput(CacheThroughputArguments),
    /// What many tenants with many files cost the cache, and what a hostile one costs its neighbour.
    CacheTenants(CacheTenantsArguments),
    /// Kills the daemon at random moments under load and restores.
    KillRestore(KillRestoreArguments),
    /// Whether two equal readers get after the daemon's end what they got before its start, for each back end.
    UndoBites(UndoBitesArguments),
    /// Whether `minerva-blk` keeps the contracts of four guests that read from one disk, and who else does.
    VmContracts(VmContractsArguments),
    /// Whether `minerva-blk` obeys the priorities of six programs in three guests.
    VmTags(VmTagsArguments),
    /// How long a seldom and urgent request waits beside programs that ask all the time, by how many requests `tag` has at the disk.
    VmUrgent(VmUrgentArguments),
    /// What forecasts are worth on the real kernel: tenants that start together after sessions like theirs, and bursts that are
    /// interleaved.
    Worth(WorthArguments),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct CrowdArguments {
    /// How many tenants; each number is measured.
    #[arg(long, value_delimiter = ',')]
    pub(crate) tenants: Option<Vec<usize>>,
    /// How many of them use the disk in the first half of the slices, with `--tenants`.
    #[arg(long, default_value_t = 16, requires = "tenants")]
    pub(crate) active: usize,
    /// Processes of each of those, with `--tenants`; all but one sleep.
    #[arg(long, default_value_t = 1, requires = "tenants")]
    pub(crate) processes: u32,
    /// Slices to measure with active tenants, and as many with idle ones.
    #[arg(long, default_value_t = 20)]
    pub(crate) slices: u32,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ClientsArguments {
    /// Clients in all, each with a connection of its own.
    #[arg(long, default_value_t = 10_000)]
    pub(crate) clients: usize,
    /// Requests in all.
    #[arg(long, default_value_t = 2_000)]
    pub(crate) requests_per_second: u32,
    /// For how long.
    #[arg(long, default_value_t = 30)]
    pub(crate) seconds: u32,
    /// Tenants that they belong to.
    #[arg(long, default_value_t = 4)]
    pub(crate) tenants: usize,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct KillRestoreArguments {
    /// How many kills.
    #[arg(long, default_value_t = 200)]
    pub(crate) kills: u32,
    /// After so many kills it is measured what tenants of equal weight get.
    #[arg(long, default_value_t = 20)]
    pub(crate) effect_checks: u32,
    /// Seconds of each such measurement.
    #[arg(long, default_value_t = 16)]
    pub(crate) effect_seconds: u64,
    /// How far a tenant's part of the disk may then be from what it was before the first kill.
    #[arg(long, default_value_t = 10)]
    pub(crate) effect_error_percent: u32,
    /// Seed of the moments.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct IdleArguments {
    /// Which disks to emulate; by default sata7200-80g and sata-ssd, in the guest sata7200-80g.
    #[arg(long, value_delimiter = ',')]
    pub(crate) profile: Vec<String>,
    /// Only the guest, on cgroup v2.
    #[arg(long, conflicts_with = "no_guest")]
    pub(crate) guest: bool,
    /// Leave out the guest, in which cgroup v2 is measured where this machine has v1.
    #[arg(long)]
    pub(crate) no_guest: bool,
    /// Under which elevators.
    #[arg(long, value_delimiter = ',', default_value = "bfq,mq-deadline")]
    pub(crate) elevator: Vec<String>,
    /// Pairs of windows, with and without the tenant at idle, in an order that is drawn. The medians count.
    #[arg(long, default_value_t = 5)]
    pub(crate) rounds: u32,
    /// Seconds of each window.
    #[arg(long, default_value_t = 10)]
    pub(crate) seconds: u64,
    /// Seed of the orders; without one it is drawn.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct GapsArguments {
    /// Which disks to emulate.
    #[arg(long, value_delimiter = ',', default_value = "sata7200-80g")]
    pub(crate) profile: Vec<String>,
    /// Under which elevators.
    #[arg(long, value_delimiter = ',', default_value = "bfq,mq-deadline")]
    pub(crate) elevator: Vec<String>,
    /// Pairs of windows, with background work and without, in an order that is drawn. They are pooled.
    #[arg(long, default_value_t = 10)]
    pub(crate) rounds: u32,
    /// Bursts of the reader in each window, 2 to 6 s long as are the pauses after each.
    #[arg(long, default_value_t = 4)]
    pub(crate) bursts: u32,
    /// Seed of bursts, pauses and orders; without one it is drawn.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct MakespanArguments {
    /// Which disk to emulate.
    #[arg(long, default_value = "sas10k-300g")]
    pub(crate) profile: String,
    /// Under which elevators.
    #[arg(long, value_delimiter = ',', default_value = "none,mq-deadline,bfq")]
    pub(crate) elevator: Vec<String>,
    /// Which jobs: mixed (TeraSort, Sort, WordCount, K-means, PageRank) or alike (four sorts).
    #[arg(long, value_delimiter = ',', default_value = "mixed,alike", value_parser = ["mixed", "alike"])]
    pub(crate) jobs: Vec<String>,
    /// Multiplies what they read and write; 1 is some 2.3 GB for mixed and 1.8 GB for alike.
    #[arg(long, default_value_t = 1.0)]
    pub(crate) scale: f64,
    /// How often all arms run, in an order that is drawn. The medians count.
    #[arg(long, default_value_t = 5)]
    pub(crate) rounds: u32,
    /// Seed of the orders; without one it is drawn.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct UndoBitesArguments {
    /// Which disk to emulate.
    #[arg(long, default_value = "sata7200-80g")]
    pub(crate) profile: String,
    /// Only these back ends: bfq, bfq-v1, iocost, max, throttle-v1. Those of the other cgroup version are measured in a guest.
    #[arg(long, value_delimiter = ',')]
    pub(crate) back_end: Vec<String>,
    /// Seconds of each window: before, during and after.
    #[arg(long, default_value_t = 12)]
    pub(crate) seconds: u64,
    /// Leave out the guest, in which cgroup v2 is measured where this machine has v1.
    #[arg(long)]
    pub(crate) no_guest: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct AgainstKernelArguments {
    /// Only these scenes.
    #[arg(long, value_delimiter = ',', value_parser = crate::arms::SCENES)]
    pub(crate) scene: Vec<String>,
    /// Only these arms.
    #[arg(long, value_delimiter = ',', value_parser = crate::arms::ALL_ARMS)]
    pub(crate) arm: Vec<String>,
    /// Which disks to emulate; by default sata7200-80g and sata-ssd, on cgroup v2 slow-ssd.
    #[arg(long, value_delimiter = ',')]
    pub(crate) profile: Vec<String>,
    /// Only the guest: without an elevator, through iocost and through caps, as on a host with NVMe and cgroup v2.
    #[arg(long, conflicts_with = "no_guest")]
    pub(crate) guest: bool,
    /// Leave out the guest, which by default follows when all arms play.
    #[arg(long)]
    pub(crate) no_guest: bool,
    /// Rounds; in each every arm plays once, in an order that is drawn. The medians count.
    #[arg(long, default_value_t = 3)]
    pub(crate) rounds: u32,
    /// Multiplies the work of tenants that end and the time of those that last.
    #[arg(long, default_value_t = 1.0)]
    pub(crate) scale: f64,
    /// Seed of the order; drawn and printed unless given.
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
    /// Which disk to emulate.
    #[arg(long, default_value = "sata7200-80g")]
    pub(crate) profile: String,
    /// Multiply the bytes of the workloads; each is measured. At 1 a run takes seven minutes.
    #[arg(long, value_delimiter = ',', default_value = "0.1,0.25,1")]
    pub(crate) scale: Vec<f64>,
    /// Pairs of runs, equal weights and the daemon, in an order that is drawn for each pair; the median counts.
    #[arg(long, default_value_t = 2)]
    pub(crate) pairs: u32,
    /// Seed of the order; drawn and printed unless given.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// In place of minervad let the four tenants hold these BFQ weights.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1000), conflicts_with = "minervad")]
    pub(crate) weights: Option<Vec<u32>>,
    /// The share of the heaviest group, in place of the daemon's own default.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10000), conflicts_with = "weights")]
    pub(crate) share_heavy: Option<u32>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct RiseArguments {
    /// Which disk to emulate.
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
    /// Which disk to emulate.
    #[arg(long, default_value = "sata7200-80g")]
    pub(crate) profile: String,
    /// Write the weights directly, without minervad: what the kernel makes of them.
    #[arg(long)]
    pub(crate) raw: bool,
    /// Bytes a request, with K or M; each is measured.
    #[arg(long, value_parser = parse_size, value_delimiter = ',', default_value = "64KiB,256KiB,1MiB")]
    pub(crate) block: Vec<u64>,
    /// Random instead of sequential reads.
    #[arg(long)]
    pub(crate) random: bool,
    /// Seconds measured for each.
    #[arg(long, default_value_t = 15)]
    pub(crate) seconds: u64,
    /// Leave out the guest, in which cgroup v2 is measured where this machine has v1.
    #[arg(long)]
    pub(crate) no_guest: bool,
    /// Windows measured; the median counts.
    #[arg(long, default_value_t = 3)]
    pub(crate) windows: u32,
    /// Further settings of the queue, such as `iosched/slice_idle=8` or `nr_requests=64`.
    #[arg(long = "set", value_name = "FILE=VALUE")]
    pub(crate) settings: Vec<String>,
    /// Requests the disk takes at once.
    #[arg(long)]
    pub(crate) queue_depth: Option<u32>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
