//! Schedulers by the names people use.

use clap::ValueEnum;
use minerva_blocksched::{
    Anticipatory, AnticipatoryOptions, AtLimit, Bfq, BfqOptions, Cfq, CfqOptions, Contract, Cost, Deadline,
    DeadlineOptions, Htbs, HtbsOptions, MClock, Noop, PClock, Scheduler, Sfq, Tag, TagOptions,
};
use minerva_model::Nanos;

/// Contracts, reservations and weights count in units of this many bytes.
pub(crate) const UNIT_BYTES: u32 = 4096;

/// A scheduler and its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Name {
    /// First come, first served.
    Noop,
    /// The kernel's mq-deadline: expiry times and sorted batches.
    MqDeadline,
    /// The anticipatory scheduler that left the kernel with 2.6.33.
    Anticipatory,
    /// Completely fair queueing, by time; left the kernel with 5.0.
    Cfq,
    /// Budget fair queueing.
    Bfq,
    /// Start-time fair queueing with a bounded depth.
    Sfq,
    /// pClock: burst, rate and delay, work-conserving.
    Pclock,
    /// HTBS as Minerva mended it.
    Htbs,
    /// HTBS as it was published; its contracts count requests.
    HtbsOriginal,
    /// mClock: reservation, limit and weight.
    Mclock,
    /// The Tag Scheduler with plug and bounded depth.
    Tag,
    /// The Tag Scheduler as in Bai and Huang: neither plug nor bounded depth.
    TagSeed,
}

impl Name {
    /// A fresh scheduler for a disk that seeks, or not, and that has one request at once.
    pub(crate) fn build(self, rotational: bool) -> Box<dyn Scheduler> {
        self.build_for(rotational, 1)
    }

    /// The same for a disk that has so many requests at once.
    pub(crate) fn build_for(self, rotational: bool, depth: u32) -> Box<dyn Scheduler> {
        let cost = self.cost();
        match self {
            Self::Noop => Box::new(Noop::new()),
            Self::MqDeadline => Box::new(Deadline::new(DeadlineOptions::default())),
            Self::Anticipatory => Box::new(Anticipatory::new(AnticipatoryOptions::default())),
            Self::Cfq => Box::new(Cfq::new(CfqOptions::default())),
            Self::Bfq => Box::new(Bfq::new(bfq_options(rotational, depth))),
            Self::Sfq => Box::new(Sfq::new(sfq_depth(rotational), cost)),
            Self::Pclock => Box::new(PClock::new(cost)),
            Self::Htbs => Box::new(Htbs::new(htbs_options())),
            Self::HtbsOriginal => Box::new(Htbs::new(HtbsOptions::original())),
            Self::Mclock => Box::new(MClock::new(cost, AtLimit::Wait)),
            Self::Tag => Box::new(Tag::new(tag_options(rotational))),
            Self::TagSeed => Box::new(Tag::new(tag_seed_options())),
        }
    }

    /// Its settings that differ with the disk or from one scheduler to the next, for reports.
    pub(crate) fn settings(self, rotational: bool, depth: u32) -> String {
        match self {
            Self::Noop => "none".to_owned(),
            Self::MqDeadline => format!("{:?}", DeadlineOptions::default()),
            Self::Anticipatory => format!("{:?}", AnticipatoryOptions::default()),
            Self::Cfq => format!("{:?}", CfqOptions::default()),
            Self::Bfq => format!("{:?}", bfq_options(rotational, depth)),
            Self::Sfq => format!("depth {}, {:?}", sfq_depth(rotational), self.cost()),
            Self::Pclock => format!("{:?}", self.cost()),
            Self::Htbs => format!("{:?}", htbs_options()),
            Self::HtbsOriginal => format!("{:?}", HtbsOptions::original()),
            Self::Mclock => format!("{:?}, {:?}", self.cost(), AtLimit::Wait),
            Self::Tag => format!("{:?}", tag_options(rotational)),
            Self::TagSeed => format!("{:?}", tag_seed_options()),
        }
    }

    /// Requests that it has at a disk that takes `device_depth` at once. One that keeps contracts decides which request is
    /// next, and on a disk that seeks a queue of the disk's own would decide that again; `admit` counts with that. SFQ(D)
    /// and Tag bound the depth themselves as well.
    pub(crate) fn depth(self, rotational: bool, device_depth: u32) -> u32 {
        match self {
            Self::Pclock | Self::Htbs | Self::HtbsOriginal if rotational => 1,
            Self::Sfq => sfq_depth(rotational).min(device_depth),
            Self::Tag => tag_depth(rotational).min(device_depth),
            _ => device_depth,
        }
    }

    /// Whether it keeps what a key of a job file asks of it.
    pub(crate) fn keeps(self, key: &str) -> bool {
        match self {
            // The order is left to the host, which sees each process.
            Self::Noop => true,
            Self::Pclock | Self::Htbs | Self::HtbsOriginal => key == "minerva_contract",
            Self::Mclock => matches!(key, "minerva_reservation" | "minerva_limit"),
            Self::Tag | Self::TagSeed => key.starts_with("minerva_tag"),
            _ => false,
        }
    }

    /// Whether Minerva's engine steers it: it knows BFQ's weights.
    pub(crate) fn is_steered(self) -> bool {
        self == Self::Bfq
    }

    /// How it charges.
    pub(crate) fn cost(self) -> Cost {
        match self {
            Self::HtbsOriginal => Cost::PerRequest,
            _ => Cost::PerBytes(UNIT_BYTES),
        }
    }

    /// What a contract over bytes is in this scheduler's units, for requests of `block_bytes`.
    pub(crate) fn contract(self, bytes_per_second: f64, burst_bytes: f64, delay: Nanos, block_bytes: u32) -> Contract {
        let unit = f64::from(match self {
            Self::HtbsOriginal => block_bytes.max(1),
            _ => UNIT_BYTES.min(block_bytes.max(1)),
        });
        Contract { rate_per_second: bytes_per_second / unit, burst: burst_bytes / unit, delay }
    }

    /// The name on the command line.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Noop => "noop",
            Self::MqDeadline => "mq-deadline",
            Self::Anticipatory => "anticipatory",
            Self::Cfq => "cfq",
            Self::Bfq => "bfq",
            Self::Sfq => "sfq",
            Self::Pclock => "pclock",
            Self::Htbs => "htbs",
            Self::HtbsOriginal => "htbs-original",
            Self::Mclock => "mclock",
            Self::Tag => "tag",
            Self::TagSeed => "tag-seed",
        }
    }
}

/// The kernel's BFQ finds out whether a disk queues by how many requests it has at once.
fn bfq_options(rotational: bool, depth: u32) -> BfqOptions {
    BfqOptions { rotational, queues_internally: !rotational || depth > 1, ..BfqOptions::default() }
}

fn htbs_options() -> HtbsOptions {
    HtbsOptions { cost: Cost::PerBytes(UNIT_BYTES), ..HtbsOptions::default() }
}

fn sfq_depth(rotational: bool) -> u32 {
    if rotational { 1 } else { 4 }
}

fn tag_options(rotational: bool) -> TagOptions {
    TagOptions { cost: Cost::PerBytes(UNIT_BYTES), depth: tag_depth(rotational), ..TagOptions::default() }
}

fn tag_seed_options() -> TagOptions {
    TagOptions { cost: Cost::PerBytes(UNIT_BYTES), depth: 32, plug: Nanos::ZERO, ..TagOptions::default() }
}

/// One request on the medium and one on its way keep an SSD busy; a disk that seeks orders more itself.
fn tag_depth(rotational: bool) -> u32 {
    if rotational { 1 } else { 2 }
}
