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
    #[serde(default, skip_serializing_if = "is_zero")]
    pub processors: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it by reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// How background work is planned. Not the operator's to set: recordings of earlier versions replay as they ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackgroundSettings {
    /// The first hour of a plan in force is planned by minutes. In recordings of earlier versions it is one slot.
    #[serde(default)]
    pub first_hour_by_minutes: bool,
    /// A plan is made anew where the foreground or what is written differs from what was expected, and what the foreground did lately counts
    /// for the next hours. In recordings of earlier versions not.
    #[serde(default)]
    pub replan_on_error: bool,
    /// A queue whose end was seen to move away is planned as if it were due sooner. In recordings of earlier versions not.
    #[serde(default)]
    pub slips_count: bool,
    /// What is known of a disk goes with it, as another may get its number. In recordings of earlier versions it stays.
    #[serde(default)]
    pub forgets_gone_disks: bool,
    /// While work that must not be stopped uses a disk, that is not calibrated. In recordings of earlier versions it is.
    #[serde(default)]
    pub calibrates_alone: bool,
    /// By how far a queue's end moved is seen by the gaps alone, and only where its size is known and the same ones go before it as in the last
    /// plan; no end moves away faster than time passes. In recordings of earlier versions it is seen of all, with what is taken from others.
    #[serde(default)]
    pub compares_like_ends: bool,
    /// What tenants owe comes after all of the operator's work that gets on. In recordings of earlier versions it goes before that where its
    /// deadline is near.
    #[serde(default)]
    pub debts_come_last: bool,
    /// What is taken from others is planned without what tenants owe beside the operator's work, what hangs and what says nothing. In recordings
    /// of earlier versions all of that counts.
    #[serde(default)]
    pub takes_for_who_goes: bool,
    /// A file system grows by what is added less what goes, and only who does something frees. In recordings of earlier versions what goes
    /// counts for nothing.
    #[serde(default)]
    pub growth_is_net: bool,
    /// The time for which work only looks at what there is to do is not what its items cost. In recordings of earlier versions it is.
    #[serde(default)]
    pub looking_costs_nothing: bool,
    /// What a tenant does is work only on the disk for which it owes some, and while that may be done. In recordings of earlier versions always.
    #[serde(default)]
    pub debts_are_told_apart: bool,
    /// What was done and is to be done once more, as of a scrub that was cancelled within a chunk, counts as not done in what items cost. In
    /// recordings of earlier versions it was done twice.
    #[serde(default)]
    pub what_is_lost_counts: bool,
    /// In the time that work takes from others it goes before them. In recordings of earlier versions it has an ordinary share of it.
    #[serde(default)]
    pub goes_before_others: bool,
    /// How long a plan that erred stands follows the nearest deadline. In recordings of earlier versions it is ten minutes.
    #[serde(default)]
    pub replans_by_deadline: bool,
}

impl Default for BackgroundSettings {
    fn default() -> Self {
        Self {
            first_hour_by_minutes: true,
            replan_on_error: true,
            slips_count: true,
            forgets_gone_disks: true,
            calibrates_alone: true,
            compares_like_ends: true,
            debts_come_last: true,
            takes_for_who_goes: true,
            growth_is_net: true,
            looking_costs_nothing: true,
            debts_are_told_apart: true,
            what_is_lost_counts: true,
            goes_before_others: true,
            replans_by_deadline: true,
        }
    }
}

impl BackgroundSettings {
    /// As they were before there were any.
    pub const fn absent() -> Self {
        Self {
            first_hour_by_minutes: false,
            replan_on_error: false,
            slips_count: false,
            forgets_gone_disks: false,
            calibrates_alone: false,
            compares_like_ends: false,
            debts_come_last: false,
            takes_for_who_goes: false,
            growth_is_net: false,
            looking_costs_nothing: false,
            debts_are_told_apart: false,
            what_is_lost_counts: false,
            goes_before_others: false,
            replans_by_deadline: false,
        }
    }
}
