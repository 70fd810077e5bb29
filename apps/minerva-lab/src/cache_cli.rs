//! The options of the cache's measurements.

use crate::options::Output;
use clap::Args;
use std::path::PathBuf;

/// A burst beside busy neighbours, by each way.
#[derive(Clone, Debug, Args)]
pub(crate) struct CacheMigrationArguments {
    /// Disk to emulate for the neighbours; the burst ends up there.
    #[arg(long, default_value = "sata7200-80g")]
    pub(crate) profile: String,
    /// Elevators; each is measured.
    #[arg(long, value_delimiter = ',', default_value = "bfq,mq-deadline")]
    pub(crate) elevator: Vec<String>,
    /// Disk to emulate for the pool.
    #[arg(long, default_value = "sata-ssd")]
    pub(crate) pool_profile: String,
    /// Size of the burst in megabytes; it is written as eight files.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u64).range(8..=2048))]
    pub(crate) megabytes: u64,
    /// Seconds for which the neighbours work without pauses.
    #[arg(long, default_value_t = 40)]
    pub(crate) seconds: u64,
    /// Bursts of the neighbours after that. Each is 3 to 6 s long and follows a pause of 4 to 8 s.
    #[arg(long, default_value_t = 4)]
    pub(crate) bursts: u32,
    /// Rounds. In each round every arm runs once, in random order; the medians count.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Seed of order, bursts and pauses; by default a random one, which is printed.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Run minervad in all arms. It steers the disk and tells the service when others use it; without it the service reads the disk's
    /// counters.
    #[arg(long)]
    pub(crate) daemon: bool,
    /// Write every run to this file, as JSON.
    #[arg(long)]
    pub(crate) runs: Option<PathBuf>,
    /// Write an HTML report with plots of the last elevator to this file.
    #[arg(long)]
    pub(crate) report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// The pools' speed, beside what lies below and other FUSE file systems.
#[derive(Clone, Debug, Args)]
pub(crate) struct CacheThroughputArguments {
    /// Directory for `stable`; without it a disk is emulated.
    #[arg(long)]
    pub(crate) pool: Option<PathBuf>,
    /// Disk to emulate for `stable`.
    #[arg(long, default_value = "sata-ssd", conflicts_with = "pool")]
    pub(crate) pool_profile: String,
    /// Size in megabytes of the file that is read and of the one that is written.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) megabytes: u64,
    /// Milliseconds of each measurement of random requests.
    #[arg(long, default_value_t = 1000)]
    pub(crate) span_ms: u64,
    /// Rounds. In each round everything is measured once, in random order; the medians count. The paper has 100.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Path of libfuse's example `passthrough_hp`, 3.17 or later, which lets the kernel read by itself; by default it is searched for in PATH.
    #[arg(long)]
    pub(crate) passthrough_hp: Option<PathBuf>,
    /// Seed of the order; by default a random one, which is printed.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// So many files the figure has.
pub(crate) const CROWD_FILES: u64 = 1_000_000;
/// And so many tenants.
pub(crate) const CROWD_TENANTS: u32 = 1000;

/// Many tenants, and a hostile one.
#[derive(Clone, Debug, Args)]
pub(crate) struct CacheTenantsArguments {
    /// Number of tenants.
    #[arg(long, default_value_t = CROWD_TENANTS, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) tenants: u32,
    /// Files of all tenants together; the figure has a million.
    #[arg(long, default_value_t = CROWD_FILES)]
    pub(crate) files: u64,
    /// Seconds in which all tenants are idle.
    #[arg(long, default_value_t = 20)]
    pub(crate) idle_seconds: u64,
    /// Seconds for which the neighbour is measured each time.
    #[arg(long, default_value_t = 5)]
    pub(crate) seconds: u64,
    /// How often the neighbour is measured beside each kind of hostile tenant, in random order; 0 for not at all.
    #[arg(long, default_value_t = 3)]
    pub(crate) rounds: u32,
    /// Do not measure the many tenants.
    #[arg(long)]
    pub(crate) hostile_only: bool,
    /// Directory for `stable`.
    #[arg(long, default_value = "/var/tmp")]
    pub(crate) pool: PathBuf,
    /// Seed of the order; by default a random one, which is printed.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) output: Output,
}
