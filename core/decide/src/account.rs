//! One account: what it holds, what it has earned, and what it bought.

use minerva_model::{MicroCredits, Nanos, Purchase, RequestId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Credits that were entered together and expire together.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Lot {
    pub(crate) amount: MicroCredits,
    pub(crate) expires_at: Nanos,
}

/// See the file's documentation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Account {
    /// Committed and not used, oldest first.
    pub(crate) lots: VecDeque<Lot>,
    /// Earned and not entered yet.
    pub(crate) accruing: MicroCredits,
    /// How long that lasts from its entry, by the terms of the last slice it was earned in.
    pub(crate) expiry: Nanos,
    /// Entered and not committed yet.
    pub(crate) entering: MicroCredits,
    /// The slice in which it last earned, and what that slice is worth to it.
    #[serde(default)]
    pub(crate) slice: u64,
    #[serde(default)]
    pub(crate) earned_in_slice: MicroCredits,
    pub(crate) slices_since_entry: u32,
    /// Purchases that were committed, by tenant and key, and when they may be forgotten.
    pub(crate) purchases: BTreeMap<(String, RequestId), (Purchase, Nanos)>,
    /// The store was asked: what it says now is no news.
    pub(crate) known: bool,
    /// Its last tenant is gone. Another may have it yet (see `Credits::leave`).
    #[serde(default)]
    pub(crate) is_left: bool,
}

impl Account {
    pub(crate) fn held(&self) -> MicroCredits {
        self.lots.iter().map(|lot| lot.amount).sum()
    }

    /// What it may still earn, with what is under way.
    pub(crate) fn room(&self, held_max: MicroCredits) -> MicroCredits {
        held_max.less(self.held().plus(self.accruing).plus(self.entering))
    }

    /// A slice is worth so much to it: by how much more than was known.
    pub(crate) fn earn_in(&mut self, slice: u64, worth: MicroCredits) -> MicroCredits {
        if std::mem::replace(&mut self.slice, slice) != slice {
            self.earned_in_slice = MicroCredits::ZERO;
        }
        let more = worth.less(self.earned_in_slice);
        self.earned_in_slice = self.earned_in_slice.plus(more);
        more
    }

    /// When credits expire that are entered now: at an instant, but not before what is there already, `under_way` or not.
    pub(crate) fn expires_at(&self, at: Nanos, under_way: Option<Nanos>) -> Nanos {
        let held = self.lots.back().map(|lot| lot.expires_at);
        at.max(held.max(under_way).unwrap_or_default())
    }

    /// Nothing is lost with it while nothing of it is under way. What the store knows is asked for again when a tenant of it is seen.
    pub(crate) fn is_blank(&self) -> bool {
        let is_stored = self.is_left || self.lots.is_empty() && self.purchases.is_empty() && !self.known;
        is_stored && self.accruing == MicroCredits::ZERO && self.entering == MicroCredits::ZERO
    }

    pub(crate) fn take_expired(&mut self, now: Nanos) -> Vec<Lot> {
        // Strictly from the front, as the ledger is read back by.
        let count = self.lots.iter().take_while(|lot| lot.expires_at <= now).count();
        self.lots.drain(..count).collect()
    }

    pub(crate) fn take(&mut self, amount: MicroCredits) -> Result<Vec<Lot>, MicroCredits> {
        if self.held() < amount {
            return Err(self.held());
        }
        let (mut taken, mut missing) = (Vec::new(), amount);
        while missing > MicroCredits::ZERO {
            let Some(first) = self.lots.front_mut() else { break };
            let part = first.amount.min(missing);
            taken.push(Lot { amount: part, ..*first });
            first.amount = first.amount.less(part);
            missing = missing.less(part);
            if first.amount == MicroCredits::ZERO {
                self.lots.pop_front();
            }
        }
        Ok(taken)
    }

    /// Adds what was entered last. It does not expire before what the store told of meanwhile.
    pub(crate) fn append(&mut self, lot: Lot) {
        let expires_at = self.expires_at(lot.expires_at, None);
        self.lots.push_back(Lot { expires_at, ..lot });
    }

    /// Puts what was taken out back to where it stood. That is not always the front: what expires sooner, taken out after it,
    /// may have come back before it.
    pub(crate) fn give_back(&mut self, lots: Vec<Lot>) {
        for lot in lots.into_iter().rev() {
            let position = self.lots.partition_point(|held| held.expires_at < lot.expires_at);
            self.lots.insert(position, lot);
        }
    }
}
