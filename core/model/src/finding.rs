//! Things a person should know. Core returns them; the shell logs them, counts them and shows them in `status`.

use crate::{DeviceId, TenantId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What sort of thing was found. Stable names: metrics and alerts count by them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// A disk cannot be steered, and why.
    NotSteerable,
    /// A disk can be steered, with which back end.
    Steerable,
    /// A counter went backwards.
    CounterReset,
    /// Some place in the kernel's files could not be read.
    Unreadable,
    /// A write was refused.
    WriteRefused,
    /// The kernel read back something else than was written.
    ReadBackDiffers,
    /// Somebody else wrote a knob that Minerva holds.
    Overwritten,
    /// Somebody else keeps writing a knob: Minerva leaves it to them.
    FightGivenUp,
    /// All knobs were put back while the daemon runs, by its guard or an operator.
    KnobsRestored,
    /// The history of a tenant was dropped or not understood.
    HistoryDropped,
    /// The operator's file has settings for a disk that this host does not have.
    UnknownDisk,
    /// Groups that could be tenants are not, because the controller ends above them.
    HiddenTenants,
    /// A disk is gone, and what was written for it.
    DiskGone,
    /// A fitted model that was kept for this start is damaged, or of another version.
    ModelDamaged,
    /// The store was damaged, and another is in its place.
    StoreDamaged,
    /// Caps are lifted while the host is short of memory.
    CapsLifted,
    /// The host is no longer short of memory, and caps are dealt again.
    CapsBack,
    /// Space or a deadline of background work would not hold even if the disk did nothing else.
    Oversubscribed,
    /// Space likely lasts, but may not if more is written than expected.
    SpaceMayRunOut,
    /// A setting of a disk was switched by what its tenants do.
    Switched,
    /// A file system does not say how much space is free.
    FileSystemSilent,
    /// A disk is steered through iocost by a model that nobody measured.
    NotCalibrated,
}

impl FindingKind {
    /// Every kind.
    pub const ALL: [Self; 22] = [
        Self::NotSteerable,
        Self::Steerable,
        Self::CounterReset,
        Self::Unreadable,
        Self::WriteRefused,
        Self::ReadBackDiffers,
        Self::Overwritten,
        Self::FightGivenUp,
        Self::KnobsRestored,
        Self::HistoryDropped,
        Self::UnknownDisk,
        Self::HiddenTenants,
        Self::DiskGone,
        Self::ModelDamaged,
        Self::StoreDamaged,
        Self::CapsLifted,
        Self::CapsBack,
        Self::Oversubscribed,
        Self::SpaceMayRunOut,
        Self::Switched,
        Self::FileSystemSilent,
        Self::NotCalibrated,
    ];

    /// The word people and metrics see.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotSteerable => "not-steerable",
            Self::Steerable => "steerable",
            Self::CounterReset => "counter-reset",
            Self::Unreadable => "unreadable",
            Self::WriteRefused => "write-refused",
            Self::ReadBackDiffers => "read-back-differs",
            Self::Overwritten => "overwritten",
            Self::FightGivenUp => "fight-given-up",
            Self::KnobsRestored => "knobs-restored",
            Self::HistoryDropped => "history-dropped",
            Self::UnknownDisk => "unknown-disk",
            Self::HiddenTenants => "hidden-tenants",
            Self::DiskGone => "disk-gone",
            Self::ModelDamaged => "model-damaged",
            Self::StoreDamaged => "store-damaged",
            Self::CapsLifted => "caps-lifted",
            Self::CapsBack => "caps-back",
            Self::Oversubscribed => "oversubscribed",
            Self::SpaceMayRunOut => "space-may-run-out",
            Self::Switched => "switched",
            Self::FileSystemSilent => "file-system-silent",
            Self::NotCalibrated => "not-calibrated",
        }
    }

    /// Whether an operator should act on it; the rest is information.
    pub const fn is_warning(self) -> bool {
        !matches!(
            self,
            Self::Steerable
                | Self::CounterReset
                | Self::KnobsRestored
                | Self::HistoryDropped
                | Self::DiskGone
                | Self::ModelDamaged
                | Self::CapsBack
                | Self::SpaceMayRunOut
                | Self::Switched
        )
    }
}

/// One thing found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What sort.
    pub kind: FindingKind,
    /// Which disk, if it is about one.
    pub device: Option<DeviceId>,
    /// Which tenant, if it is about one.
    pub tenant: Option<TenantId>,
    /// What happened, what it means and what to do, in one sentence each.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.as_str())?;
        if let Some(device) = self.device {
            write!(f, " {device}")?;
        }
        if let Some(tenant) = self.tenant {
            write!(f, " {tenant}")?;
        }
        write!(f, ": {}", self.message)
    }
}
