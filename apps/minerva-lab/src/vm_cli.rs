//! The options of what is measured with real guests.

use crate::options::{Output, parse_size};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Clone, Debug, Args)]
pub(crate) struct VmContractsArguments {
    /// Profile of the disk to emulate.
    #[arg(long, default_value = "sata7200-80g")]
    pub(crate) profile: String,
    /// Schedulers of the guests' requests. Each is measured once in each run, in random order.
    #[arg(long, value_delimiter = ',', value_parser = ["htbs", "noop", "pclock", "mclock", "kernel-bfq", "qemu-throttle"],
        default_value = "htbs,noop,pclock,mclock,kernel-bfq,qemu-throttle")]
    pub(crate) arm: Vec<String>,
    /// Request size.
    #[arg(long, value_parser = parse_size, default_value = "256KiB")]
    pub(crate) block: u64,
    /// Seconds to measure in each run, after the first second.
    #[arg(long, default_value_t = 60)]
    pub(crate) seconds: u64,
    /// Runs of each arm.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: u32,
    /// Judge what so many sequential readers with equal contracts have together, in place of the four readers: under htbs at least
    /// twice what they have under pclock, and 95 % of what the kernel's BFQ gives. In each run each of the three is measured once.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(2..=16), conflicts_with_all = ["arm", "logs"])]
    pub(crate) readers: Vec<u32>,
    /// Seed of the order; by default a random one, which is printed.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Write the server's log of each run to ARM-RUN.csv in this folder.
    #[arg(long)]
    pub(crate) logs: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// What programs with priorities do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TagsAccess {
    Read,
    Write,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct VmTagsArguments {
    /// Profile of the disk to emulate.
    #[arg(long, default_value = "sata7200-80g")]
    pub(crate) profile: String,
    /// Request size.
    #[arg(long, value_parser = parse_size, default_value = "256KiB")]
    pub(crate) block: u64,
    /// Requests that each program has in flight.
    #[arg(long, default_value_t = 8)]
    pub(crate) depth: u32,
    /// What the programs do, at random places and past their guests' page caches.
    #[arg(long, value_enum, default_value_t = TagsAccess::Read)]
    pub(crate) access: TagsAccess,
    /// Requests that `tag` has at the disk at once; by default it chooses.
    #[arg(long)]
    pub(crate) tag_depth: Option<u32>,
    /// Seconds to measure in each run, after the first second.
    #[arg(long, default_value_t = 15)]
    pub(crate) seconds: u64,
    /// Runs of each arm.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: u32,
    /// Write the server's log of each run to ARM-RUN.csv in this folder.
    #[arg(long)]
    pub(crate) logs: Option<PathBuf>,
    /// Do not measure plain `ionice` levels under the kernel's BFQ.
    #[arg(long)]
    pub(crate) no_kernel: bool,
    /// The third guest has arm64 processors, Debian's kernel for them, and its busybox's `ionice` and `dd` for programs. Without the arm of
    /// plain `ionice`.
    #[arg(long)]
    pub(crate) arm64: bool,
    /// Seed of the order; by default a random one, which is printed.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// What both experiments have in common.
#[derive(Clone, Debug, Args)]
pub(crate) struct RoundsArguments {
    /// Rounds. In each round every arm runs once, in random order; the medians count.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Seconds of each run, after the first second.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(2..))]
    pub(crate) seconds: u64,
    /// Request size.
    #[arg(long, value_parser = parse_size, default_value = "256KiB")]
    pub(crate) block: u64,
    /// Seed of the order and of the simulator; by default a random one, which is printed.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ReproduceHtbsArguments {
    /// Profile of the disk to emulate.
    #[arg(long, default_value = "sata7200-80g")]
    pub(crate) profile: String,
    /// Schedulers of the four jobs' requests.
    #[arg(long, value_delimiter = ',', value_parser = ["pclock", "htbs", "mclock", "kernel-bfq", "noop"],
        default_value = "pclock,htbs,kernel-bfq")]
    pub(crate) arm: Vec<String>,
    /// Numbers of sequential readers; each is measured under pclock, htbs and the kernel's BFQ. 0 skips that.
    #[arg(long, value_delimiter = ',', default_value = "1,2,4", value_parser = clap::value_parser!(u32).range(0..=16))]
    pub(crate) readers: Vec<u32>,
    /// File for the HTML report with plots.
    #[arg(long, default_value = "minerva-htbs.html")]
    pub(crate) report: PathBuf,
    #[command(flatten)]
    pub(crate) rounds: RoundsArguments,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ReproduceTagArguments {
    /// Profile of the disk to emulate. The paper's flash disk is faster than processors that are emulated in software.
    #[arg(long, default_value = "slow-ssd")]
    pub(crate) profile: String,
    /// Schedulers of the requests.
    #[arg(long, value_delimiter = ',', value_parser = ["noop", "kernel-bfq", "tag"], default_value = "noop,kernel-bfq,tag")]
    pub(crate) arm: Vec<String>,
    /// Requests that each program has in flight. The paper's programs read ahead through their guest's page cache.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) depth: u32,
    /// Requests that `tag` has at the disk at once; by default it chooses.
    #[arg(long)]
    pub(crate) tag_depth: Option<u32>,
    /// File for the HTML report with plots.
    #[arg(long, default_value = "minerva-tag.html")]
    pub(crate) report: PathBuf,
    #[command(flatten)]
    pub(crate) rounds: RoundsArguments,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct VmUrgentArguments {
    /// Profile of the disk to emulate.
    #[arg(long, default_value = "sata7200-80g")]
    pub(crate) profile: String,
    /// How many requests `tag` has at the disk at once; each number is measured.
    #[arg(long, value_delimiter = ',', default_value = "1,2,4,8", value_parser = clap::value_parser!(u32).range(1..=32))]
    pub(crate) tag_depth: Vec<u32>,
    /// Request size of the programs that read all the time.
    #[arg(long, value_parser = parse_size, default_value = "256KiB")]
    pub(crate) block: u64,
    /// Requests that each of those programs has in flight.
    #[arg(long, default_value_t = 8)]
    pub(crate) depth: u32,
    /// Seconds to measure in each run, after the first second.
    #[arg(long, default_value_t = 15)]
    pub(crate) seconds: u64,
    /// Runs in guests. In each run every depth is measured once, in random order. 0 for the simulator only.
    #[arg(long, default_value_t = 3)]
    pub(crate) runs: u32,
    /// Seed of the order and of the simulator; by default a random one, which is printed.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct VmMixArguments {
    /// Profile of the disk to emulate.
    #[arg(long, default_value = "sata7200-80g")]
    pub(crate) profile: String,
    /// Schedulers of the guests' requests. Each is measured once in each run, in random order.
    #[arg(long, value_delimiter = ',', value_parser = ["htbs", "noop", "pclock", "mclock", "kernel-bfq", "qemu-throttle"],
        default_value = "htbs,noop,pclock,mclock,kernel-bfq,qemu-throttle")]
    pub(crate) arm: Vec<String>,
    /// Seconds to measure in each run, after the first second.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(2..))]
    pub(crate) seconds: u64,
    /// Runs of each arm in guests. 0 for the simulator only.
    #[arg(long, default_value_t = 5)]
    pub(crate) runs: u32,
    /// Seed of the order and of the simulator; by default a random one, which is printed.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Write the server's log of each run to mix-ARM-RUN.csv in this folder.
    #[arg(long)]
    pub(crate) logs: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct VmEndogenicArguments {
    /// Profile of the disk to emulate.
    #[arg(long, default_value = "sata7200-80g")]
    pub(crate) profile: String,
    /// Scale of the paper's bytes and times.
    #[arg(long, default_value_t = minerva_lab::scene::ENDOGENIC_SCALE_DEFAULT)]
    pub(crate) scale: f64,
    /// Level to which one tenant steps back; each is measured.
    #[arg(long, value_delimiter = ',', value_parser = ["low", "lowest"], default_value = "lowest")]
    pub(crate) level: Vec<String>,
    /// What the deadline of the coordinating tenant means: begin by then, or be done by then; each is measured.
    #[arg(long, value_delimiter = ',', value_parser = ["begin", "done"], default_value = "done")]
    pub(crate) deadline: Vec<String>,
    /// Rounds. In each round every arm runs once, in random order; the medians count.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Do not measure the kernel's BFQ as it is shipped, beside equal weights under the same without `low_latency`.
    #[arg(long)]
    pub(crate) no_kernel: bool,
    /// Seed of the order; by default a random one, which is printed.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) output: Output,
}
