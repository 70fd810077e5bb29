//! What tenants ask for and what they are answered (Malensek et al. 2016, section 3). Nobody has to ask, and nobody pays for silence.

use crate::{DeviceId, Level, LevelClaims, Nanos, TenantId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A request's idempotency key, chosen by the client and unique within its tenant: a request that is sent again under the
/// same key is answered again and not done again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestId(pub String);

impl RequestId {
    /// A longer key is refused.
    pub const LENGTH_MAX: usize = 64;
    /// Keys that begin so are the driver's own. Each is used once, so what is answered to them need not be remembered.
    pub const OWN_PREFIX: &str = "minerva:";
    /// What keys of reports of the cache begin with.
    pub const MOVED_PREFIX: &str = "minerva:moved-";

    /// The driver made it for a request without a key of a client's.
    pub fn is_own(&self) -> bool {
        self.0.starts_with(Self::OWN_PREFIX)
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// How long a level lasts that is set alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lifetime {
    /// Until it is released or the tenant is gone.
    UntilReleased,
    /// Until this instant at the latest.
    Until(Nanos),
}

/// What a coordinated operation mostly does. The bandwidth of a disk is learnt for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccessKind {
    /// Reads of neighbouring blocks.
    #[default]
    SequentialRead,
    /// Writes of neighbouring blocks.
    SequentialWrite,
    /// Small reads all over.
    RandomRead,
    /// Small writes all over.
    RandomWrite,
}

impl AccessKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::SequentialRead, Self::SequentialWrite, Self::RandomRead, Self::RandomWrite];

    /// It writes.
    pub const fn is_write(self) -> bool {
        matches!(self, Self::SequentialWrite | Self::RandomWrite)
    }

    /// The word people use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SequentialRead => "sequential-read",
            Self::SequentialWrite => "sequential-write",
            Self::RandomRead => "random-read",
            Self::RandomWrite => "random-write",
        }
    }
}

/// Until when a coordinated operation can wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Deadline {
    /// It must have begun by this instant.
    StartBefore(Nanos),
    /// It should be done by this instant; it is held no longer than this less the time that it will take.
    DoneBefore(Nanos),
}

impl Deadline {
    /// The instant.
    pub const fn at(self) -> Nanos {
        match self {
            Self::StartBefore(at) | Self::DoneBefore(at) => at,
        }
    }
}

/// An operation that a tenant wants to fit in with what others do (Malensek et al. 2016, section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// On which disk.
    pub device: DeviceId,
    /// What it mostly does.
    pub access: AccessKind,
    /// How much it will move.
    pub bytes: u64,
    /// Until when it can wait, if it is bound by anything.
    pub deadline: Option<Deadline>,
}

/// An operation as it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationRequest {
    /// On which disk; absent: on the one that the tenant uses most, or the only one.
    pub device: Option<DeviceId>,
    /// See [`Operation`].
    pub access: AccessKind,
    /// See [`Operation`].
    pub bytes: u64,
    /// See [`Operation`].
    pub deadline: Option<Deadline>,
    /// Where the tenant can write in place of the disk, and allows to be told so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolOffer>,
}

/// A pool of the cache, as a tenant sees it that asks about an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolOffer {
    /// Bytes that it still takes.
    pub left_bytes: u64,
    /// On which disk it lies; absent: in memory.
    #[serde(default)]
    pub device: Option<DeviceId>,
}

impl OperationRequest {
    /// The operation, on this disk.
    pub const fn on(self, device: DeviceId) -> Operation {
        let Self { device: _, access, bytes, deadline, pool: _ } = self;
        Operation { device, access, bytes, deadline }
    }
}

impl From<Operation> for OperationRequest {
    fn from(Operation { device, access, bytes, deadline }: Operation) -> Self {
        Self { device: Some(device), access, bytes, deadline, pool: None }
    }
}

/// What a tenant asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wish {
    /// Step back by these claims, in place of those before. What ends or begins without being asked for comes as
    /// [`crate::Event::LevelClaimsChanged`].
    ClaimLevels(LevelClaims),
    /// Step back, or come back with [`Level::Normal`]: the only claim from now on. Older recordings have this and
    /// [`Self::ReleaseLevel`] alone.
    SetLevel {
        /// How far.
        level: Level,
        /// For how long.
        lifetime: Lifetime,
    },
    /// Come back to [`Level::Normal`]: no claim is left.
    ReleaseLevel,
    /// Buy slices of high priority, from now on and one after the other, whether used or not.
    Boost {
        /// How many.
        slices: u32,
        /// On this disk only; absent: on every one. The price is the same.
        device: Option<DeviceId>,
    },
    /// When should this be done?
    Coordinate(OperationRequest),
    /// The operation asked for under this key has begun. One that was told [`Grant::Now`] or was called back counts as begun
    /// without it.
    Start(RequestId),
    /// It is done.
    Finish(RequestId),
    /// It will not be done.
    Cancel(RequestId),
}

/// A request. Who asks was found out by the driver: a tenant can speak only for itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantRequest {
    /// The idempotency key.
    pub id: RequestId,
    /// Who.
    pub tenant: TenantId,
    /// What.
    pub wish: Wish,
}

/// A request that was granted, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grant {
    /// Done, or to be done now.
    Now,
    /// Begin after so many slices.
    AfterSlices(u32),
    /// Wait for [`crate::Effect::Ready`].
    OnCallback,
    /// Write to the pool that was offered, now, in place of the disk. Nothing is kept: what comes again is judged anew.
    ToPool,
}

/// The answer to a request that was granted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granted {
    /// The request.
    pub id: RequestId,
    /// Who asked.
    pub tenant: TenantId,
    /// How.
    pub grant: Grant,
}

/// Why a request was refused. Stable names: clients act by them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusalKind {
    /// Nobody has this number.
    UnknownTenant,
    /// No such disk.
    UnknownDevice,
    /// No operation was asked for under this key, or it is over.
    UnknownOperation,
    /// The operator excludes this tenant, or switched this off.
    NotAllowed,
    /// A number that cannot be meant.
    OutOfRange,
    /// A deadline that has passed.
    TooLate,
    /// Not enough credits.
    NotEnoughCredits,
    /// Too much is waiting or under way already.
    TooMany,
    /// The key was used for another request.
    KeyReused,
    /// The store could not commit the purchase. Nothing was spent.
    NotCommitted,
    /// The daemon is ending.
    Stopping,
}

impl RefusalKind {
    /// What a tenant is told that a rule excludes ([`Self::NotAllowed`]).
    pub const EXCLUDED: &str =
        "A rule of the operator excludes this tenant from steering, so there is nothing it could ask for.";

    /// The word people and metrics see.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UnknownTenant => "unknown-tenant",
            Self::UnknownDevice => "unknown-device",
            Self::UnknownOperation => "unknown-operation",
            Self::NotAllowed => "not-allowed",
            Self::OutOfRange => "out-of-range",
            Self::TooLate => "too-late",
            Self::NotEnoughCredits => "not-enough-credits",
            Self::TooMany => "too-many",
            Self::KeyReused => "key-reused",
            Self::NotCommitted => "not-committed",
            Self::Stopping => "stopping",
        }
    }
}

/// The answer to a request that was refused. Nothing changed by it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The request.
    pub id: RequestId,
    /// Who asked.
    pub tenant: TenantId,
    /// Why, for programs.
    pub kind: RefusalKind,
    /// Why, for people: what happened and what to do.
    pub message: String,
}
