//! What the cache moved for a tenant while others left the disk alone, and what that earned.

use crate::{DeviceId, MicroCredits, RequestId, TenantId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Bytes that the cache wrote to a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovedBytes {
    /// Where to.
    pub device: DeviceId,
    /// How many that were not counted before.
    pub bytes: u64,
}

/// What the cache moved for a tenant since its last report. It is judged by the slice that ended last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigrationReport {
    /// Under it the account earns once, also across restarts; one of [`RequestId::OWN_PREFIX`].
    pub id: RequestId,
    /// Whose program asked for the files.
    pub tenant: TenantId,
    /// The tenant that the cache itself is, if it is one: what it uses is nobody else's use.
    pub service: Option<TenantId>,
    /// By disk.
    pub moved: Vec<MovedBytes>,
}

/// Why a report earned what it did, or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MigrationReason {
    /// So many other accounts used the disk in the slice.
    Beside(u32),
    /// Nobody else used the disk, so nothing was given up for anybody.
    Alone,
    /// The tenant used the disk itself, and did not step back to `idle` for it.
    OwnUse,
    /// In this slice the account earned as much already, or it holds as much as it may.
    NoMore,
    /// The report was entered before.
    Again,
    /// The daemon does not steer, credits are switched off, or the tenant is none that may take part.
    NotHere,
}

impl fmt::Display for MigrationReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Beside(1) => write!(f, "another tenant used the disk"),
            Self::Beside(others) => write!(f, "{others} other tenants used the disk"),
            Self::Alone => write!(f, "nobody else used the disk"),
            Self::OwnUse => write!(f, "the tenant used the disk itself at a level above idle"),
            Self::NoMore => write!(f, "its account earned as much already, or holds as much as it may"),
            Self::Again => write!(f, "it was counted before"),
            Self::NotHere => write!(f, "this tenant earns no credits here"),
        }
    }
}

/// The answer to a [`MigrationReport`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigrationAnswer {
    /// Which report.
    pub id: RequestId,
    /// Whose.
    pub tenant: TenantId,
    /// What came of it.
    pub outcome: MigrationOutcome,
}

/// What came of a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MigrationOutcome {
    /// It was counted and is not to be sent again.
    Counted {
        /// What it earned; it is in the ledger.
        earned: MicroCredits,
        /// Why so much.
        reason: MigrationReason,
    },
    /// The ledger could not be written, and nothing was counted: it is to be sent again.
    NotCommitted {
        /// A sentence for people.
        detail: String,
    },
}
