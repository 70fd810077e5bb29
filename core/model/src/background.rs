//! Background work: what the operator put off, how far it is, and when it may run (docs/adr/0020).

use crate::{DeviceId, Nanos};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A queue of background work, numbered by the driver and never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BackgroundId(pub u32);

impl fmt::Display for BackgroundId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b{}", self.0)
    }
}

/// How work is kept from the disk while others use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackgroundHold {
    /// It is stopped: frozen, cancelled and resumed, or slowed by a knob of its own.
    Stop,
    /// It goes on with the least weight and a cap, because others may wait for what it holds.
    Cap,
    /// A tenant owes it, whose program is told when it may work; its level is its own.
    Told,
}

/// What work costs. Items are entries of directories, bytes, sectors or seconds, whatever the kind counts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackgroundCost {
    /// Time for which it runs for one item; above 0.
    pub seconds_per_item: f64,
    /// From how many seconds of running that was learnt; 0: it was assumed.
    pub measured_seconds: f64,
    /// Seconds of others' requests that are lost by a second of its work beside them: 1 where it takes just its time, more where it makes
    /// their own dearer, as by seeks. `None`: never measured.
    pub slow_down: Option<f64>,
}

/// What a disk serves to others than background work, measured while none ran.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DiskCalibration {
    /// Bytes in a second in which it is busy for them; above 0.
    pub bytes_per_busy_second: f64,
    /// Requests a second in slices in which they used it.
    pub requests_per_second: f64,
    /// For how long it was busy for them meanwhile.
    pub busy_seconds: f64,
}

/// A queue as the operator registered it, with what is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackgroundQueue {
    /// Which.
    pub id: BackgroundId,
    /// The operator's name.
    pub name: String,
    /// The disk that it works on.
    pub device: DeviceId,
    /// The cgroup that it runs in, as [`crate::CgroupRef::path`].
    pub cgroup: String,
    /// The greater goes first.
    pub priority: u8,
    /// When it was added; 0 if that was before the boot.
    pub added: Nanos,
    /// By when it is to be done; absent: 30 days from `added`.
    pub due: Option<Nanos>,
    /// The time that it was given when it was added, which may have been before the boot; absent: that from `added` to `due`. Recordings of
    /// earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<Nanos>,
    /// The operator paused it.
    pub is_paused: bool,
    /// How it is kept from the disk.
    pub hold: BackgroundHold,
    /// What it costs.
    pub cost: BackgroundCost,
    /// Items done before now.
    pub done_items: f64,
    /// Items in all, if that is known.
    pub total_items: Option<f64>,
}

/// How work stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackgroundState {
    /// Not begun, or stopped for now.
    #[default]
    Waiting,
    /// At work.
    Running,
    /// All done.
    Done,
    /// It ended without being done; only the operator begins it again.
    Failed,
}

impl BackgroundState {
    /// The word people see.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }

    /// Nothing is left to do.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Failed)
    }
}

/// What came of a queue's work since the report before.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackgroundReport {
    /// Whose.
    pub id: BackgroundId,
    /// How it stands.
    pub state: BackgroundState,
    /// Items done in all.
    pub done_items: f64,
    /// Items in all, if that is known.
    pub total_items: Option<f64>,
    /// Bytes that it ties until it is done, as far as known.
    pub tied_bytes: f64,
    /// For how long it ran since the report before.
    pub ran: Nanos,
    /// Bytes in use, and bytes in all, on the file system that it works on; 0 where there is none.
    pub used_bytes: u64,
    /// See `used_bytes`.
    pub size_bytes: u64,
    /// Which file system that is, of those on the disk; absent where there is none. Recordings of earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_system: Option<u64>,
    /// What was seen of the host's processors; absent where its processes cannot be confined to some of them. Recordings of earlier
    /// versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processors: Option<ProcessorUse>,
    /// Whether it got on since the report before, where items do not tell: of a command, whether its processes did anything. Recordings of
    /// earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gets_on: Option<bool>,
    /// It ran beside others at a limit, whatever its pace: what it did would be lost if it were stopped. Recordings of earlier versions do not
    /// say so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_beside_others: bool,
    /// For how much of `ran` others used the disk too: not in gaps. Recordings of earlier versions do not say so.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ran_beside: Nanos,
    /// How it can run beside others. Recordings of earlier versions do not say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<BackgroundBeside>,
}

/// How work can run beside others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackgroundBeside {
    /// For a part of the time, stopped for the rest of it.
    Stretches,
    /// All the time, slowed by the kernel.
    Limit,
    /// Not at all: whenever it is stopped it loses what it has done since it last got on, and nothing slows it.
    Nothing,
}

/// What was seen of the host's processors since the report before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessorUse {
    /// Processors that the group above the work's may use.
    pub available: u32,
    /// How long that was.
    pub elapsed: Nanos,
    /// Processor time that was used by others than background work, on all processors together.
    pub others: Nanos,
    /// Time in which another process than those of background work waited for a processor, at the least.
    pub others_waited: Nanos,
}

/// When work may run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackgroundPace {
    /// Not at all.
    #[default]
    Hold,
    /// While nobody else uses the disk.
    Gaps,
    /// In the gaps, and for this part of the time at least, in thousandths, whoever else uses the disk.
    Share(u16),
}

/// When a queue's work may run from now on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackgroundOrder {
    /// Whose.
    pub id: BackgroundId,
    /// When.
    pub pace: BackgroundPace,
    /// Why, for people.
    pub reason: String,
    /// Its processes may use so many processors; 0: as many as there are. Recordings of earlier versions have none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub processors: u32,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
