//! What a tenant has on a disk, and what it and others claim of the groups above them.

use crate::groups::GroupNumber;
use crate::setting::WEIGHT_DEFAULT;
use minerva_model::TenantId;
use serde::{Deserialize, Serialize};

/// A tenant's part on this disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Own {
    pub(crate) tenant: TenantId,
    /// The decided share; without a decision nothing is written and 100 counts.
    pub(crate) share: Option<u32>,
    /// It uses the disk these slices, so it counts in the groups above.
    pub(crate) active: bool,
    /// The group above it in which somebody besides root makes as many groups as it likes.
    #[serde(default)]
    pub(crate) maker: Option<GroupNumber>,
    /// It is background work while some takes time from others: it is stopped while others use a disk, but in that time.
    #[serde(default)]
    pub(crate) is_work: bool,
}

impl Own {
    fn share(self) -> u64 {
        if self.active { u64::from(self.share.unwrap_or(WEIGHT_DEFAULT)) } else { 0 }
    }

    /// What it claims of the groups above, whoever else is beneath them.
    pub(super) fn claim(self) -> u64 {
        if self.is_work { self.share().min(u64::from(WEIGHT_DEFAULT)) } else { self.share() }
    }

    /// All that it claims of them.
    pub(super) fn upwards(self) -> Claim {
        let shares = self.claim();
        let work = if self.is_work { shares } else { 0 };
        Claim { shares, steered: u64::from(self.share.is_some()), work, beyond: self.share() - shares }
    }
}

/// What a group's tenants claim of the groups above it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Claim {
    /// Sum of the active tenants' shares, of background work as far as it counts beside others.
    pub(super) shares: u64,
    /// Tenants that are steered, active or not.
    pub(super) steered: u64,
    /// As much as `shares` where all of it is background work, else nothing.
    #[serde(default)]
    work: u64,
    /// What that work claims in addition where it is alone.
    #[serde(default)]
    beyond: u64,
}

impl Claim {
    /// What all beneath claim together, now that one's claim is another.
    pub(super) fn with(self, before: Self, after: Self) -> Self {
        Self {
            shares: self.shares + after.shares - before.shares,
            steered: self.steered + after.steered - before.steered,
            work: self.work + after.work - before.work,
            beyond: self.beyond + after.beyond - before.beyond,
        }
    }

    /// What a group claims in which this is claimed, and in which its maker's tenants are one claim of so much at most.
    pub(super) fn of_group(self, shares_max: u64) -> Self {
        let shares = self.shares.min(shares_max);
        let is_work = self.shares == self.work;
        let [work, beyond] = if is_work { [shares, self.beyond] } else { [0, 0] };
        Self { shares, work, beyond, ..self }
    }

    /// The weight of a group that claims this.
    pub(super) fn weight(self) -> u64 {
        self.shares + self.beyond
    }
}
