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
    /// The Tag Scheduler as in seed 003: neither plug nor bounded depth.
    TagSeed,
}

impl Name {
    /// A fresh scheduler for a disk that seeks, or not.
    pub(crate) fn build(self, rotational: bool) -> Box<dyn Scheduler> {
        let cost = Cost::PerBytes(UNIT_BYTES);
        match self {
            Self::Noop => Box::new(Noop::new()),
            Self::MqDeadline => Box::new(Deadline::new(DeadlineOptions::default())),
            Self::Anticipatory => Box::new(Anticipatory::new(AnticipatoryOptions::default())),
            Self::Cfq => Box::new(Cfq::new(CfqOptions::default())),
            Self::Bfq => {
                let queues_internally = !rotational;
                Box::new(Bfq::new(BfqOptions { rotational, queues_internally, ..BfqOptions::default() }))
            }
            Self::Sfq => Box::new(Sfq::new(if rotational { 1 } else { 4 }, cost)),
            Self::Pclock => Box::new(PClock::new(cost)),
            Self::Htbs => Box::new(Htbs::new(HtbsOptions { cost, ..HtbsOptions::default() })),
            Self::HtbsOriginal => Box::new(Htbs::new(HtbsOptions::original())),
            Self::Mclock => Box::new(MClock::new(cost, AtLimit::Wait)),
            Self::Tag => Box::new(Tag::new(TagOptions { cost, depth: tag_depth(rotational), ..TagOptions::default() })),
            Self::TagSeed => {
                Box::new(Tag::new(TagOptions { cost, depth: 32, plug: Nanos::ZERO, ..TagOptions::default() }))
            }
        }
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

/// One request on the medium and one on its way keep an SSD busy; a disk that seeks orders more itself.
fn tag_depth(rotational: bool) -> u32 {
    if rotational { 1 } else { 2 }
}
