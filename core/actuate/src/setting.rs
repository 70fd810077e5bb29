//! What a knob can hold, whichever file it is.

use serde::{Deserialize, Serialize};

/// The weight of a group that nobody set: BFQ's, iocost's and the block controller's alike.
pub(crate) const WEIGHT_DEFAULT: u32 = 100;

/// A value in a knob. A limit of `None` is the kernel's `max`: no limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Setting {
    /// Relative to siblings; 100 is the kernel's default.
    Weight(u32),
    /// Of a guest's disk at a server of ours, relative to the others there; 100 is the default.
    ServerWeight(u32),
    /// `io.max`, in bytes a second.
    Limits { read: Option<u64>, write: Option<u64> },
    /// One of the files of `blkio.throttle`, in bytes a second.
    Limit(Option<u64>),
    /// The elevator in force.
    Elevator(String),
    /// BFQ's `low_latency`.
    LowLatency(bool),
    /// BFQ's `strict_guarantees`.
    StrictGuarantees(bool),
    /// iocost is enabled for the disk.
    IoCost(bool),
}

impl Setting {
    /// It is what a group has that nobody ever set.
    pub(crate) fn is_default(&self) -> bool {
        match self {
            Self::Weight(weight) | Self::ServerWeight(weight) => *weight == WEIGHT_DEFAULT,
            Self::Limits { read, write } => read.is_none() && write.is_none(),
            Self::Limit(limit) => limit.is_none(),
            Self::Elevator(_) | Self::LowLatency(_) | Self::StrictGuarantees(_) | Self::IoCost(_) => false,
        }
    }

    /// The same, but no looser than what stood there before Minerva: an operator's own limit stays in force under ours.
    pub(crate) fn within(&self, original: &Self) -> Self {
        let least = |ours: Option<u64>, theirs: Option<u64>| match (ours, theirs) {
            (Some(ours), Some(theirs)) => Some(ours.min(theirs)),
            (limit, None) | (None, limit) => limit,
        };
        match (self, original) {
            (Self::Limits { read, write }, Self::Limits { read: their_read, write: their_write }) => {
                Self::Limits { read: least(*read, *their_read), write: least(*write, *their_write) }
            }
            (Self::Limit(ours), Self::Limit(theirs)) => Self::Limit(least(*ours, *theirs)),
            _ => self.clone(),
        }
    }

    /// A cap, in either hierarchy.
    pub(crate) const fn is_limit(&self) -> bool {
        matches!(self, Self::Limits { .. } | Self::Limit(_))
    }

    /// Of a limit that was found where Minerva had set `ours`: what others set. A way that nobody else changed is as in `original`, which
    /// stood there before Minerva. Nothing if it is no limit.
    pub(crate) fn of_others(&self, ours: &Self, original: &Self) -> Option<Self> {
        let way = |found, ours, original| if found == ours { original } else { found };
        match (self, ours, original) {
            (
                Self::Limits { read, write },
                Self::Limits { read: our_read, write: our_write },
                Self::Limits { read: first_read, write: first_write },
            ) => Some(Self::Limits {
                read: way(*read, *our_read, *first_read),
                write: way(*write, *our_write, *first_write),
            }),
            (Self::Limit(found), Self::Limit(ours), Self::Limit(original)) => {
                Some(Self::Limit(way(*found, *ours, *original)))
            }
            _ => None,
        }
    }
}

/// What a file's text says of one disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reading {
    /// What holds now.
    pub(crate) setting: Setting,
    /// The text that brings exactly this back.
    pub(crate) undo: String,
}
