//! The ways to make a share bite.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A way to make a share bite (docs/ARCHITECTURE.md, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackEnd {
    /// v2 `io.bfq.weight`.
    Bfq,
    /// v1 `blkio.bfq.weight_device`.
    BfqV1,
    /// v2 `io.weight` with iocost.
    IoCost,
    /// v2 `io.max`.
    Max,
    /// v1 `blkio.throttle.*`.
    ThrottleV1,
    /// Messages to a server of ours, for the guests' disks that it serves; beside whatever steers the device.
    Blk,
    /// None: watch only.
    Observe,
}

impl BackEnd {
    /// The word in the operator's file and in every output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bfq => "bfq",
            Self::BfqV1 => "bfq-v1",
            Self::IoCost => "iocost",
            Self::Max => "max",
            Self::ThrottleV1 => "throttle-v1",
            Self::Blk => "blk",
            Self::Observe => "observe",
        }
    }

    /// Whether shares are weights there, which say who goes before whom and hold nobody back from a disk that is free.
    pub const fn is_weight(self) -> bool {
        matches!(self, Self::Bfq | Self::BfqV1 | Self::IoCost)
    }
}

impl fmt::Display for BackEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
