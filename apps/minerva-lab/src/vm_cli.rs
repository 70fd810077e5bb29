//! The options of what is measured with real guests.

use crate::options::{Output, parse_size};
use clap::Args;
use std::path::PathBuf;

#[derive(Clone, Debug, Args)]
pub(crate) struct VmContractsArguments {
    /// Which disk to emulate.
    #[arg(long, default_value = "sata7200-80g")]
    pub(crate) profile: String,
    /// What orders the guests' requests; each is measured in each run, in an order that is drawn.
    #[arg(long, value_delimiter = ',', value_parser = ["htbs", "noop", "pclock", "mclock", "kernel-bfq", "qemu-throttle"],
        default_value = "htbs,noop,pclock,mclock,kernel-bfq,qemu-throttle")]
    pub(crate) arm: Vec<String>,
    /// Bytes a request.
    #[arg(long, value_parser = parse_size, default_value = "256KiB")]
    pub(crate) block: u64,
    /// Seconds measured in each run, after the first.
    #[arg(long, default_value_t = 60)]
    pub(crate) seconds: u64,
    /// Runs of each.
    #[arg(long, default_value_t = 5)]
    pub(crate) runs: u32,
    /// Seed of the order; drawn and printed unless given.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Keep the server's log of each run in this folder, as ARM-RUN.csv.
    #[arg(long)]
    pub(crate) logs: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct VmTagsArguments {
    /// Which disk to emulate.
    #[arg(long, default_value = "sata7200-80g")]
    pub(crate) profile: String,
    /// Bytes a request.
    #[arg(long, value_parser = parse_size, default_value = "256KiB")]
    pub(crate) block: u64,
    /// Requests that each program has under way.
    #[arg(long, default_value_t = 8)]
    pub(crate) depth: u32,
    /// Requests that `tag` has at the disk at once; its own choice unless given.
    #[arg(long)]
    pub(crate) tag_depth: Option<u32>,
    /// Seconds measured in each run, after the first.
    #[arg(long, default_value_t = 15)]
    pub(crate) seconds: u64,
    /// Runs of each arm.
    #[arg(long, default_value_t = 20)]
    pub(crate) runs: u32,
    /// Keep the server's log of each run in this folder, as ARM-RUN.csv.
    #[arg(long)]
    pub(crate) logs: Option<PathBuf>,
    /// Leave out plain `ionice` levels under the kernel's BFQ.
    #[arg(long)]
    pub(crate) no_kernel: bool,
    /// Seed of the order; drawn and printed unless given.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// What both experiments have in common.
#[derive(Clone, Debug, Args)]
pub(crate) struct RoundsArguments {
    /// Rounds: in each, every arm plays once, in an order that is drawn. The medians count.
    #[arg(long, default_value_t = 1)]
    pub(crate) rounds: u32,
    /// Seconds of each run, after the first.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(2..))]
    pub(crate) seconds: u64,
    /// Bytes a request.
    #[arg(long, value_parser = parse_size, default_value = "256KiB")]
    pub(crate) block: u64,
    /// Seed of orders and of the simulator; drawn and printed unless given.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ReproduceHtbsArguments {
    /// Which disk to emulate.
    #[arg(long, default_value = "sata7200-80g")]
    pub(crate) profile: String,
    /// What orders the requests of the four jobs.
    #[arg(long, value_delimiter = ',', value_parser = ["pclock", "htbs", "mclock", "kernel-bfq", "noop"],
        default_value = "pclock,htbs,kernel-bfq")]
    pub(crate) arm: Vec<String>,
    /// How many sequential readers share the disk; each number is measured under pclock, htbs and the kernel's BFQ. 0 for none.
    #[arg(long, value_delimiter = ',', default_value = "1,2,4", value_parser = clap::value_parser!(u32).range(0..=16))]
    pub(crate) readers: Vec<u32>,
    /// Where to write the HTML report with plots.
    #[arg(long, default_value = "minerva-htbs.html")]
    pub(crate) report: PathBuf,
    #[command(flatten)]
    pub(crate) rounds: RoundsArguments,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ReproduceTagArguments {
    /// Which disk to emulate. The paper's flash disk is faster than processors that are emulated in software.
    #[arg(long, default_value = "slow-ssd")]
    pub(crate) profile: String,
    /// What orders the requests.
    #[arg(long, value_delimiter = ',', value_parser = ["noop", "kernel-bfq", "tag"], default_value = "noop,kernel-bfq,tag")]
    pub(crate) arm: Vec<String>,
    /// Requests that each program has under way: the paper's read ahead by the page cache of their guest.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) depth: u32,
    /// Requests that `tag` has at the disk at once; its own choice unless given.
    #[arg(long)]
    pub(crate) tag_depth: Option<u32>,
    /// Where to write the HTML report with plots.
    #[arg(long, default_value = "minerva-tag.html")]
    pub(crate) report: PathBuf,
    #[command(flatten)]
    pub(crate) rounds: RoundsArguments,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct VmUrgentArguments {
    /// Which disk to emulate.
    #[arg(long, default_value = "sata7200-80g")]
    pub(crate) profile: String,
    /// Requests that `tag` has at the disk at once; each number is measured.
    #[arg(long, value_delimiter = ',', default_value = "1,2,4,8", value_parser = clap::value_parser!(u32).range(1..=32))]
    pub(crate) tag_depth: Vec<u32>,
    /// Bytes a request of those that ask all the time.
    #[arg(long, value_parser = parse_size, default_value = "256KiB")]
    pub(crate) block: u64,
    /// Requests that each of those has under way.
    #[arg(long, default_value_t = 8)]
    pub(crate) depth: u32,
    /// Seconds measured in each run, after the first.
    #[arg(long, default_value_t = 15)]
    pub(crate) seconds: u64,
    /// Runs of each in guests; in each every depth is measured once, in an order that is drawn. 0 for the simulator alone.
    #[arg(long, default_value_t = 3)]
    pub(crate) runs: u32,
    /// Seed of the order and of the simulator; drawn and printed unless given.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) output: Output,
}
