//! Scheduling credits and their ledger (Malensek et al. 2016, section 3.1). An account's balance is the sum of its entries.

use crate::{AccessKind, DeviceId, Level, Nanos, Operation, RequestId, TenantId};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::iter::Sum;

/// Millionths of a credit. Integers, so that what is earned, spent, expired and held adds up exactly. Arithmetic saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MicroCredits(pub u64);

impl MicroCredits {
    /// None.
    pub const ZERO: Self = Self(0);

    /// `count` whole credits.
    pub const fn credits(count: u64) -> Self {
        Self(count.saturating_mul(1_000_000))
    }

    /// The sum.
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference; nothing when `other` is more.
    pub const fn less(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// So many percent of it, rounded down.
    pub const fn percent(self, percent: u32) -> Self {
        let part = self.0 as u128 * percent as u128 / 100;
        Self(if part > u64::MAX as u128 { u64::MAX } else { part as u64 })
    }

    /// So many times as much.
    pub const fn times(self, count: u64) -> Self {
        Self(self.0.saturating_mul(count))
    }
}

impl Sum for MicroCredits {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::ZERO, Self::plus)
    }
}

impl fmt::Display for MicroCredits {
    /// Whole credits with as many decimals as there are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000);
        f.pad(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// Ties the store's acknowledgement to an entry. Numbers start anew with every start of the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EntryNumber(pub u64);

/// What an entry does to a balance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EntryKind {
    /// Earned while deprioritized.
    Earned,
    /// Given by the operator.
    Given,
    /// Paid for boosted slices.
    Spent,
    /// Too old.
    Expired,
    /// Taken by the operator.
    Taken,
}

impl EntryKind {
    /// The word in the store and in every output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Earned => "earned",
            Self::Given => "given",
            Self::Spent => "spent",
            Self::Expired => "expired",
            Self::Taken => "taken",
        }
    }

    /// Whether it adds to the balance; the others take from it, oldest credits first.
    pub const fn adds(self) -> bool {
        matches!(self, Self::Earned | Self::Given)
    }
}

/// One entry of the ledger, to be committed by the store and acknowledged with [`crate::Event::Committed`]. It counts only
/// then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerEntry {
    /// For the acknowledgement.
    pub number: EntryNumber,
    /// Whose: [`crate::Tenant::history_key`].
    pub account: String,
    /// What it does.
    pub kind: EntryKind,
    /// How much.
    pub amount: MicroCredits,
    /// Of what was added: how long until it expires.
    pub expires_in: Option<Nanos>,
    /// The request behind it. No tenant has two entries of one request.
    pub request: Option<RequestId>,
}

/// The operator gives an account credits, or takes some.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adjustment {
    /// Under it the account is adjusted once, also across restarts; one of [`RequestId::OWN_PREFIX`].
    pub id: RequestId,
    /// A tenant of the account.
    pub tenant: TenantId,
    /// They are given; otherwise taken.
    pub gives: bool,
    /// How many.
    pub amount: MicroCredits,
}

/// Credits that were added together and expire together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreditLot {
    /// What is left of them.
    pub amount: MicroCredits,
    /// How long until they expire.
    pub expires_in: Nanos,
}

/// A boost that was paid for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boost {
    /// The request that bought it.
    pub request: RequestId,
    /// On this disk only; absent: on every one.
    pub device: Option<DeviceId>,
    /// Slices that are left.
    pub slices_left: u32,
}

/// A purchase in the ledger, so that none is made twice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purchase {
    /// The key it was made under.
    pub request: RequestId,
    /// The slices it bought; absent if a version of Minerva entered it that did not say.
    pub slices: Option<u32>,
    /// On this disk only; absent: on every one.
    pub device: Option<DeviceId>,
    /// What was paid.
    pub price: MicroCredits,
}

impl Purchase {
    /// Whether it bought this. One that does not say is believed to.
    pub fn is_of(&self, slices: u32, device: Option<DeviceId>) -> bool {
        self.slices.is_none_or(|bought| (bought, self.device) == (slices, device))
    }
}

/// What a tenant declared and what it bought: to be stored whole, in place of what was stored under the same key before. Its
/// instants are of the boot in which it was written, as the key is. One that says nothing is to be deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declaration {
    /// Whose: [`crate::Tenant::declaration_key`].
    pub key: String,
    /// How far it steps back.
    pub level: Level,
    /// Until when; absent: until released.
    pub level_until: Option<Nanos>,
    /// The request that set it.
    #[serde(default)]
    pub level_request: Option<RequestId>,
    /// Boosts under way, in the order of their purchase.
    pub boosts: Vec<Boost>,
    /// Operations that wait or are under way.
    pub operations: Vec<DeclaredOperation>,
}

impl Declaration {
    /// Nothing is declared.
    pub fn is_empty(&self) -> bool {
        self.level == Level::Normal && self.boosts.is_empty() && self.operations.is_empty()
    }
}

/// A coordinated operation, to be remembered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredOperation {
    /// The request.
    pub request: RequestId,
    /// What it is.
    pub operation: Operation,
    /// When it was asked for.
    pub asked_at: Nanos,
    /// It was released.
    pub released: bool,
}

/// What the store knows of a tenant and its account, read back when the tenant is seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recalled {
    /// Who.
    pub tenant: TenantId,
    /// Credits that its account holds, oldest first, already aged by the time the daemon was away.
    pub lots: Vec<CreditLot>,
    /// Its latest purchases, so that none is made twice.
    #[serde(default, rename = "bought")]
    pub purchases: Vec<Purchase>,
    /// What the tenant declared, if it did.
    pub declaration: Option<Declaration>,
}

/// What a disk was measured to deliver, to be remembered.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LearntBandwidth {
    /// The disk's kernel number.
    pub device: DeviceId,
    /// Doing what.
    pub access: AccessKind,
    /// How much.
    pub bytes_per_second: f64,
    /// For how long that was measured, decayed.
    pub measured_seconds: f64,
    /// How long ago it was true: zero when written, set by the store when read back.
    pub age: Nanos,
}

#[cfg(test)]
mod tests {
    use super::MicroCredits;

    #[test]
    fn credits_read_without_needless_decimals() {
        let text = [0, 1, 2_500_000, 90_000_000_000].map(|amount| MicroCredits(amount).to_string());
        assert_eq!(text, ["0", "0.000001", "2.5", "90000"]);
    }
}
