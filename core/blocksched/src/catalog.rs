//! Every scheduler there is. Whatever builds, measures or tests schedulers goes through this list, so that none is left out
//! and none is taken for another.
//!
//! A new scheduler is one file in `catalog/` that holds its [`Entry`], and its two lines here: the module and the name. The
//! simulator, the admission test, the benchmark, the properties and the allocation tests then have it.

mod anticipatory;
mod bfq;
mod cfq;
mod deadline;
mod htbs;
mod mclock;
mod noop;
mod pclock;
mod sfq;
mod tag;

pub use anticipatory::{Anticipatory, AnticipatoryOptions};
pub use bfq::{Bfq, BfqOptions};
pub use cfq::{Cfq, CfqOptions};
pub use deadline::{Deadline, DeadlineOptions};
pub use htbs::{Htbs, HtbsOptions, SequentialTest, Spare, WithinFlow};
pub use mclock::{AtLimit, MClock};
pub use noop::Noop;
pub use pclock::PClock;
pub use sfq::Sfq;
pub use tag::{TAG_DEPTH_MAX, Tag, TagOptions, priority};

use crate::{Contract, Cost, Discipline, Scheduler};
use minerva_model::Nanos;
use std::fmt;
use std::str::FromStr;

/// Contracts, reservations and weights count in units of this many bytes, where a scheduler does not count requests.
pub const UNIT_BYTES: u32 = 4096;

/// What a scheduler is built for. The rest of its settings are its own defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BuildOptions {
    /// The disk seeks.
    pub rotational: bool,
    /// Requests that the disk has at once, at least 1.
    pub depth: u32,
    /// HTBS, both: cost units that one flow may have served in a row, B_max of the paper; none for the scheduler's own.
    pub turn_units_max: Option<u64>,
    /// HTBS, both: how long the disk is kept idle for the flow in service, T_wait of the paper; none for the scheduler's own.
    pub wait_max: Option<Nanos>,
    /// Tag: requests that it has at the disk at once, within `depth` and [`TAG_DEPTH_MAX`]; none for the scheduler's own.
    pub tag_depth: Option<u32>,
    /// BFQ: each flow has a part of the disk of its own, as the image of a guest is.
    pub flows_lie_apart: bool,
}

impl BuildOptions {
    /// For a disk, and with no other wish.
    pub const fn for_disk(rotational: bool, depth: u32) -> Self {
        Self { rotational, depth, turn_units_max: None, wait_max: None, tag_depth: None, flows_lie_apart: false }
    }

    /// For a disk with guests' images on it, each of which is a flow.
    pub const fn for_images(rotational: bool, depth: u32) -> Self {
        Self { flows_lie_apart: true, ..Self::for_disk(rotational, depth) }
    }
}

/// What a scheduler can be told of a flow, and then keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// [`Contract`].
    Contract,
    /// A rate that the flow has at least.
    Reservation,
    /// A rate that the flow has at most.
    Limit,
    /// Priorities of single requests.
    Tags,
    /// Weights of groups of flows.
    GroupWeights,
}

/// What there is to know of a scheduler without running it.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name on a command line.
    pub name: &'static str,
    /// What it is, in one sentence.
    pub summary: &'static str,
    /// Makes one.
    pub build: fn(BuildOptions) -> Box<dyn Scheduler>,
    /// The settings that it is built with, for reports.
    pub options: fn(BuildOptions) -> String,
    /// Requests that it has at a disk which takes [`BuildOptions::depth`] at once; never more.
    pub depth: fn(BuildOptions) -> u32,
    /// Once so many hang it sends as many of others beside them, as far as the disk takes them.
    pub sends_beside_hung: bool,
    /// How it charges.
    pub cost: Cost,
    /// What it keeps.
    pub promises: &'static [Promise],
    /// How it treats contracts, for the admission test; none if that knows nothing of it.
    pub discipline: Option<Discipline>,
    /// It never keeps a free disk idle while something is queued.
    pub conserves_work: bool,
}

macro_rules! catalogue {
    ($($name:ident: $entry:expr,)*) => {
        /// A scheduler by name. Every one that there is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum SchedulerName {
            $(
                #[doc = concat!("[`Entry::summary`] of `", stringify!($entry), "` says what it is.")]
                $name,
            )*
        }

        impl SchedulerName {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// What there is to know of it.
            pub const fn entry(self) -> &'static Entry {
                match self {
                    $(Self::$name => &$entry,)*
                }
            }
        }
    };
}

catalogue! {
    Noop: noop::ENTRY,
    MqDeadline: deadline::ENTRY,
    Anticipatory: anticipatory::ENTRY,
    Cfq: cfq::ENTRY,
    Bfq: bfq::ENTRY,
    Sfq: sfq::ENTRY,
    Pclock: pclock::ENTRY,
    Htbs: htbs::ENTRY,
    HtbsOriginal: htbs::ORIGINAL_ENTRY,
    Mclock: mclock::ENTRY,
    MclockAllow: mclock::ALLOW_ENTRY,
    Tag: tag::ENTRY,
    TagOriginal: tag::ORIGINAL_ENTRY,
}

impl SchedulerName {
    /// The name on a command line.
    pub const fn as_str(self) -> &'static str {
        self.entry().name
    }

    /// A fresh scheduler.
    pub fn build(self, options: BuildOptions) -> Box<dyn Scheduler> {
        (self.entry().build)(options)
    }

    /// The settings that it is built with, for reports.
    pub fn options(self, options: BuildOptions) -> String {
        (self.entry().options)(options)
    }

    /// Requests that it has at the disk at once. One that keeps contracts decides which request is next, and on a disk that
    /// seeks a queue of the disk's own would decide that again; the admission test counts with that.
    pub fn depth(self, options: BuildOptions) -> u32 {
        (self.entry().depth)(options)
    }

    /// Requests that it may have at the disk at once, with those that hang.
    pub fn places(self, options: BuildOptions) -> u32 {
        if self.entry().sends_beside_hung { options.depth } else { self.depth(options) }
    }

    /// How it charges.
    pub const fn cost(self) -> Cost {
        self.entry().cost
    }

    /// Whether it keeps such promises.
    pub fn keeps(self, promise: Promise) -> bool {
        self.entry().promises.contains(&promise)
    }

    /// What a contract over bytes is in this scheduler's units, for requests of `block_bytes`. A request is charged in whole units, so
    /// that one of 6 KiB in units of 4 KiB has 3 KiB a unit.
    pub fn contract(self, bytes_per_second: f64, burst_bytes: f64, delay: Nanos, block_bytes: u32) -> Contract {
        let block_bytes = block_bytes.max(1);
        let units = match self.cost() {
            Cost::PerRequest => 1,
            Cost::PerBytes(unit_bytes) => block_bytes.div_ceil(unit_bytes.max(1)),
        };
        let unit = f64::from(block_bytes) / f64::from(units);
        Contract { rate_per_second: bytes_per_second / unit, burst: burst_bytes / unit, delay }
    }
}

impl fmt::Display for SchedulerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// No scheduler has this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownScheduler(pub String);

impl fmt::Display for UnknownScheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = SchedulerName::ALL.iter().map(|name| name.as_str()).collect();
        write!(f, "there is no scheduler `{}`; there are: {}", self.0, names.join(", "))
    }
}

impl std::error::Error for UnknownScheduler {}

impl FromStr for SchedulerName {
    type Err = UnknownScheduler;

    fn from_str(text: &str) -> Result<Self, UnknownScheduler> {
        let found = Self::ALL.iter().find(|name| name.as_str().eq_ignore_ascii_case(text));
        found.copied().ok_or_else(|| UnknownScheduler(text.to_owned()))
    }
}
