//! The options of the cache's measurements.

use crate::options::Output;
use clap::Args;
use std::path::PathBuf;

/// A burst beside busy neighbours, by each way.
#[derive(Clone, Debug, Args)]
pub(crate) struct CacheMigrationArguments {
    /// Which disk to emulate for the neighbours, where the burst belongs.
    #[arg(long, default_value = "sata7200-80g")]
    pub(crate) profile: String,
    /// Under which elevators; each is measured.
    #[arg(long, value_delimiter = ',', default_value = "bfq,mq-deadline")]
    pub(crate) elevator: Vec<String>,
    /// Which disk to emulate for the pool.
    #[arg(long, default_value = "sata-ssd")]
    pub(crate) pool_profile: String,
    /// Megabytes of the burst, in eight files.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u64).range(8..=2048))]
    pub(crate) megabytes: u64,
    /// Seconds for which the neighbours work without a pause.
    #[arg(long, default_value_t = 40)]
    pub(crate) seconds: u64,
    /// Bursts of the neighbours after that, 3 to 6 s long, with a pause of 4 to 8 s before each.
    #[arg(long, default_value_t = 4)]
    pub(crate) bursts: u32,
    /// How often all arms play, in an order that is drawn. The medians count.
    #[arg(long, default_value_t = 5)]
    pub(crate) rounds: u32,
    /// Seed of orders, bursts and pauses; drawn and printed unless given.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Let minervad steer the disk in all arms, and tell the service who uses it; without it the disk's counters do.
    #[arg(long)]
    pub(crate) daemon: bool,
    /// Write every single run to this file, as JSON.
    #[arg(long)]
    pub(crate) runs: Option<PathBuf>,
    /// Write an HTML report with plots to this file, of the elevator measured last.
    #[arg(long)]
    pub(crate) report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// The pools' speed, beside what lies below and other FUSE file systems.
#[derive(Clone, Debug, Args)]
pub(crate) struct CacheThroughputArguments {
    /// A directory on the disk that `stable` is to lie on; without it a disk is emulated.
    #[arg(long)]
    pub(crate) pool: Option<PathBuf>,
    /// Which disk to emulate for `stable`.
    #[arg(long, default_value = "sata-ssd", conflicts_with = "pool")]
    pub(crate) pool_profile: String,
    /// Megabytes of the file that is read, and of the one that is written.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) megabytes: u64,
    /// Milliseconds of random requests each time.
    #[arg(long, default_value_t = 1000)]
    pub(crate) span_ms: u64,
    /// How often everything is measured, in an order that is drawn. The medians count; the paper has 100.
    #[arg(long, default_value_t = 10)]
    pub(crate) rounds: u32,
    /// libfuse's example `passthrough_hp`, of 3.17 or later so that the kernel reads by itself; by default it is looked for in PATH.
    #[arg(long)]
    pub(crate) passthrough_hp: Option<PathBuf>,
    /// Seed of the orders; drawn and printed unless given.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Many tenants, and a hostile one.
#[derive(Clone, Debug, Args)]
pub(crate) struct CacheTenantsArguments {
    /// How many tenants.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) tenants: u32,
    /// Files of all together; the figure in full has 1,000,000.
    #[arg(long, default_value_t = 20_000)]
    pub(crate) files: u64,
    /// Seconds in which nobody does anything.
    #[arg(long, default_value_t = 20)]
    pub(crate) idle_seconds: u64,
    /// Seconds of each window of the neighbour.
    #[arg(long, default_value_t = 5)]
    pub(crate) seconds: u64,
    /// How often the neighbour is measured beside each kind of hostility, in an order that is drawn; 0 leaves that out.
    #[arg(long, default_value_t = 3)]
    pub(crate) rounds: u32,
    /// Leave out the many tenants.
    #[arg(long)]
    pub(crate) hostile_only: bool,
    /// A directory on the disk for `stable`.
    #[arg(long, default_value = "/var/tmp")]
    pub(crate) pool: PathBuf,
    /// Seed of the orders; drawn and printed unless given.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) output: Output,
}
