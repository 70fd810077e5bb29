//! Scheduling credits: earned while a tenant steps back, spent on boosted slices (Malensek et al. 2016, section 3.1, docs/adr/0005).
//!
//! Everything is an entry of the ledger that counts once the store has committed it:
//!
//! - what is earned accrues here and is entered once in a while; until committed it is not held and cannot be spent;
//! - a purchase takes the oldest credits out of the account at once and gives them back if the commit fails, so that two
//!   purchases under way never spend the same credit, and the boost begins with the commit;
//! - an expiry does the same.
//!
//! So `earned + given = spent + expired + taken + held + under way` at every instant, to the micro-credit, and no balance is
//! ever below zero.
//!
//! An account is an operator's group, or a tenant without one. It earns once a slice, at the best of its members' rates and of
//! what the cache moved for it (`moved`), and counts once towards contention: more processes or more tenants of one group earn
//! nothing more. What is earned is measured by the disk the tenant would really have used ([`Earning::demand_ppm`]), so an idle
//! tenant that steps back earns nothing. A slice counts once, however long it was, so no leap of a clock earns. Holdings are capped.
//!
//! When credits expire is settled with their entry, by the terms of the account at that time, and changes no more. They are
//! used in the order of their entries, so none expires before one that was entered earlier: under shorter terms an account's
//! new credits last as long as what it still has of the old.

use crate::account::{Account, Lot};
use minerva_model::{
    ContentionCounting, CreditLot, CreditSettings, EntryKind, EntryNumber, LedgerEntry, MicroCredits, Nanos, Purchase,
    RequestId,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// One tenant's claim to credits for a slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Earning {
    /// Accounts that used the disk, this one too.
    pub(crate) accounts_active: u32,
    /// Points of priority given up.
    pub(crate) points: u32,
    /// How much of what it was due the tenant really used or waited for, in millionths.
    pub(crate) demand_ppm: u32,
    /// An account that holds so many earns no more.
    pub(crate) held_max: MicroCredits,
    /// How long it lasts from its entry.
    pub(crate) expiry: Nanos,
}

/// An entry that the store has not acknowledged.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct UnderWay {
    account: String,
    kind: EntryKind,
    /// What goes in, or was taken out.
    lots: Vec<Lot>,
    /// Of a purchase: whose, and which.
    purchase: Option<(String, Purchase)>,
    /// Whoever reported it does so again where it is not committed.
    #[serde(default)]
    is_reported: bool,
}

/// What became of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settled {
    pub(crate) account: String,
    /// The key of its declaration.
    pub(crate) tenant: String,
    pub(crate) request: RequestId,
}

/// The accounts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Credits {
    settings: CreditSettings,
    accounts: BTreeMap<String, Account>,
    under_way: BTreeMap<EntryNumber, UnderWay>,
    last_number: u64,
    /// Counts slices.
    #[serde(default)]
    slice: u64,
}

impl Credits {
    pub(crate) fn configure(&mut self, settings: CreditSettings) {
        self.settings = settings;
    }

    pub(crate) fn settings(&self) -> &CreditSettings {
        &self.settings
    }

    /// What an account can spend.
    pub(crate) fn held(&self, account: &str) -> MicroCredits {
        self.accounts.get(account).map_or(MicroCredits::ZERO, Account::held)
    }

    /// The store was asked about an account: what it says of its credits is no news.
    pub(crate) fn is_known(&self, account: &str) -> bool {
        self.accounts.get(account).is_some_and(|account| account.known)
    }

    /// What all accounts hold together.
    pub(crate) fn held_in_all(&self) -> MicroCredits {
        self.accounts.values().map(Account::held).sum()
    }

    /// What an account has earned that is not in the ledger yet.
    pub(crate) fn accruing(&self, account: &str) -> MicroCredits {
        self.accounts.get(account).map_or(MicroCredits::ZERO, |one| one.accruing.plus(one.entering))
    }

    /// What a slice is worth.
    pub(crate) fn worth(&self, earning: Earning) -> MicroCredits {
        let others = earning.accounts_active.saturating_sub(1);
        let contention = match self.settings.counting {
            ContentionCounting::AllWhenShared if others == 0 => 0,
            ContentionCounting::AllWhenShared | ContentionCounting::All => others + 1,
            ContentionCounting::Others => others,
        };
        let points = self.settings.priority_weight.times(u64::from(earning.points));
        let whole = self.settings.contention_weight.times(u64::from(contention)).plus(points);
        let part = u128::from(whole.0) * u128::from(earning.demand_ppm.min(1_000_000)) / 1_000_000;
        MicroCredits(u64::try_from(part).unwrap_or(u64::MAX))
    }

    /// A slice ended, whoever earns in it.
    pub(crate) fn slice_ended(&mut self) {
        self.slice += 1;
    }

    /// What each account earned in the slice that ended is added up. The entries that are due come from [`Credits::entries`].
    pub(crate) fn earn<'a>(&mut self, earnings: impl Iterator<Item = (&'a str, Earning)>) {
        if !self.settings.enabled {
            return;
        }
        let mut best: BTreeMap<&str, (MicroCredits, MicroCredits, Nanos)> = BTreeMap::new();
        for (account, earning) in earnings {
            let worth = self.worth(earning);
            let (most, held_max, expiry) = best.entry(account).or_default();
            *most = worth.max(*most);
            *held_max = earning.held_max.max(*held_max);
            *expiry = earning.expiry.max(*expiry);
        }
        for (name, (worth, held_max, expiry)) in best {
            if !self.accounts.contains_key(name) {
                self.accounts.insert(name.to_owned(), Account::default());
            }
            let Some(account) = self.accounts.get_mut(name) else { continue };
            account.accruing = account.accruing.plus(worth.min(account.room(held_max)));
            account.expiry = expiry;
            account.earn_in(self.slice, worth);
        }
    }

    /// An account earned by what was reported of the slice that ended last, beyond what it earned in that slice already: the entry, if
    /// there is anything to enter.
    pub(crate) fn earn_reported(&mut self, now: Nanos, name: &str, earning: Earning) -> Option<LedgerEntry> {
        if !self.settings.enabled {
            return None;
        }
        let (worth, slice) = (self.worth(earning), self.slice);
        let latest = latest_expiries(&self.under_way).get(name).copied();
        let account = self.accounts.entry(name.to_owned()).or_default();
        let amount = account.earn_in(slice, worth).min(account.room(earning.held_max));
        if amount == MicroCredits::ZERO {
            return None;
        }
        account.entering = account.entering.plus(amount);
        let expires_at = account.expires_at(now + earning.expiry, latest);
        let entry = self.enter(now, name.to_owned(), EntryKind::Earned, vec![Lot { amount, expires_at }], None);
        if let Some(under_way) = self.under_way.get_mut(&entry.number) {
            under_way.is_reported = true;
        }
        Some(entry)
    }

    /// Entries that are due: what was earned, once in a while or `at_once`, and what is too old.
    pub(crate) fn entries(&mut self, now: Nanos, at_once: bool) -> Vec<LedgerEntry> {
        let mut due = Vec::new();
        let latest = latest_expiries(&self.under_way);
        for (name, account) in &mut self.accounts {
            account.purchases.retain(|_, (_, until)| *until > now);
            let expired = account.take_expired(now);
            if !expired.is_empty() {
                due.push((name.clone(), EntryKind::Expired, expired));
            }
            if account.accruing == MicroCredits::ZERO {
                continue;
            }
            account.slices_since_entry += 1;
            if at_once || account.is_left || account.slices_since_entry >= self.settings.slices_between_entries {
                account.slices_since_entry = 0;
                let amount = std::mem::take(&mut account.accruing);
                account.entering = account.entering.plus(amount);
                let expires_at = account.expires_at(now + account.expiry, latest.get(name.as_str()).copied());
                due.push((name.clone(), EntryKind::Earned, vec![Lot { amount, expires_at }]));
            }
        }
        let entries = due.into_iter().map(|(name, kind, lots)| self.enter(now, name, kind, lots, None)).collect();
        let under_way: BTreeSet<&str> = self.under_way.values().map(|entry| entry.account.as_str()).collect();
        self.accounts.retain(|name, account| under_way.contains(name.as_str()) || !account.is_blank());
        entries
    }

    /// What an account holds that is too old, so that it cannot be spent.
    pub(crate) fn expire(&mut self, now: Nanos, name: &str) -> Option<LedgerEntry> {
        let lots = self.accounts.get_mut(name)?.take_expired(now);
        (!lots.is_empty()).then(|| self.enter(now, name.to_owned(), EntryKind::Expired, lots, None))
    }

    /// What a tenant of the account bought under this key before.
    pub(crate) fn bought(&self, account: &str, tenant: &str, request: &RequestId) -> Option<&Purchase> {
        let purchases = &self.accounts.get(account)?.purchases;
        purchases.get(&(tenant.to_owned(), request.clone())).map(|(purchase, _)| purchase)
    }

    /// The purchase that waits for its commit under this key.
    pub(crate) fn being_bought(&self, account: &str, tenant: &str, request: &RequestId) -> Option<&Purchase> {
        let of_account = self.under_way.values().filter(|entry| entry.account == account);
        let mut purchases = of_account.filter_map(|entry| entry.purchase.as_ref());
        purchases.find(|(by, one)| by == tenant && one.request == *request).map(|(_, one)| one)
    }

    /// Pays for a tenant, if its account holds enough; otherwise says how much it holds.
    pub(crate) fn spend(
        &mut self,
        now: Nanos,
        (name, tenant): (&str, &str),
        purchase: Purchase,
    ) -> Result<LedgerEntry, MicroCredits> {
        let account = self.accounts.get_mut(name).ok_or(MicroCredits::ZERO)?;
        let lots = account.take(purchase.price)?;
        Ok(self.enter(now, name.to_owned(), EntryKind::Spent, lots, Some((tenant.to_owned(), purchase))))
    }

    /// The operator gives an account credits that last for `expiry`.
    pub(crate) fn give(&mut self, now: Nanos, name: &str, amount: MicroCredits, expiry: Nanos) -> LedgerEntry {
        let latest = latest_expiries(&self.under_way).get(name).copied();
        let account = self.accounts.entry(name.to_owned()).or_default();
        account.entering = account.entering.plus(amount);
        let expires_at = account.expires_at(now + expiry, latest);
        self.enter(now, name.to_owned(), EntryKind::Given, vec![Lot { amount, expires_at }], None)
    }

    /// The operator takes credits from an account, if it holds so many; otherwise says how many it holds.
    pub(crate) fn take(&mut self, now: Nanos, name: &str, amount: MicroCredits) -> Result<LedgerEntry, MicroCredits> {
        let lots = self.accounts.get_mut(name).ok_or(MicroCredits::ZERO)?.take(amount)?;
        Ok(self.enter(now, name.to_owned(), EntryKind::Taken, lots, None))
    }

    /// The store committed an entry. Of a purchase: which. `known` is what the key had bought before, if it had.
    pub(crate) fn committed(
        &mut self,
        now: Nanos,
        number: EntryNumber,
        fresh: bool,
        known: Option<Purchase>,
    ) -> Option<Settled> {
        let entry = self.under_way.remove(&number)?;
        let forget_at = now + self.settings.expiry;
        let account = self.accounts.entry(entry.account.clone()).or_default();
        if entry.kind.adds() {
            account.entering = account.entering.less(entry.lots.iter().map(|lot| lot.amount).sum());
            if fresh {
                entry.lots.into_iter().for_each(|lot| account.append(lot));
            }
        } else if !fresh {
            account.give_back(entry.lots);
        }
        let (tenant, asked) = entry.purchase?;
        let request = asked.request.clone();
        let purchase = known.filter(|_| !fresh).unwrap_or(asked);
        account.purchases.insert((tenant.clone(), request.clone()), (purchase, forget_at));
        Some(Settled { account: entry.account, tenant, request })
    }

    /// The store did not commit an entry: all is as before it. Of a purchase: which.
    pub(crate) fn failed(&mut self, number: EntryNumber) -> Option<Settled> {
        let entry = self.under_way.remove(&number)?;
        let account = self.accounts.entry(entry.account.clone()).or_default();
        if entry.kind.adds() {
            let amount = entry.lots.iter().map(|lot| lot.amount).sum();
            account.entering = account.entering.less(amount);
            // What the operator wanted to give was never the account's, and what was reported is reported again. Accounts that are left
            // do not wait for a store that fails for long: there may be ever more of them.
            if entry.kind == EntryKind::Earned && !entry.is_reported && !account.is_left {
                account.accruing = account.accruing.plus(amount);
            }
        } else {
            account.give_back(entry.lots);
        }
        let (tenant, purchase) = entry.purchase?;
        Some(Settled { account: entry.account, tenant, request: purchase.request })
    }

    /// What the store knows of an account, unless that is known already, and of what one of its tenants bought.
    pub(crate) fn recall(
        &mut self,
        now: Nanos,
        (name, tenant): (&str, &str),
        lots: &[CreditLot],
        purchases: &[Purchase],
    ) {
        let account = self.accounts.entry(name.to_owned()).or_default();
        if !std::mem::replace(&mut account.known, true) {
            // The wall clock, by which they were aged, may have put them out of order.
            let in_order = |latest: &mut Nanos, lot: &CreditLot| {
                *latest = (*latest).max(now + lot.expires_in);
                Some(Lot { amount: lot.amount, expires_at: *latest })
            };
            account.lots = lots.iter().scan(Nanos::ZERO, in_order).collect();
        }
        let forget_at = now + self.settings.expiry;
        let keyed = |one: &Purchase| ((tenant.to_owned(), one.request.clone()), (one.clone(), forget_at));
        account.purchases.extend(purchases.iter().map(keyed));
    }

    /// The last tenant of an account is gone. The next may have the same one, as all have that are made below one group: so it stays until
    /// what accrued is entered and nothing is under way. Were it asked for in the store before, what is being spent would be held again.
    pub(crate) fn leave(&mut self, name: &str) {
        if let Some(account) = self.accounts.get_mut(name) {
            account.is_left = true;
        }
    }

    /// An account has a tenant, perhaps again.
    pub(crate) fn join(&mut self, name: &str) {
        if let Some(account) = self.accounts.get_mut(name) {
            account.is_left = false;
        }
    }

    /// As [`Credits::leave`] in recordings of earlier versions: what accrued and what is under way is lost.
    pub(crate) fn forget(&mut self, name: &str) {
        self.accounts.remove(name);
        let orphans: BTreeSet<EntryNumber> =
            self.under_way.iter().filter(|(_, entry)| entry.account == name).map(|(number, _)| *number).collect();
        self.under_way.retain(|number, _| !orphans.contains(number));
    }

    fn enter(
        &mut self,
        now: Nanos,
        account: String,
        kind: EntryKind,
        lots: Vec<Lot>,
        purchase: Option<(String, Purchase)>,
    ) -> LedgerEntry {
        self.last_number += 1;
        let number = EntryNumber(self.last_number);
        let amount = lots.iter().map(|lot| lot.amount).sum();
        let expires_in = lots.first().filter(|_| kind.adds()).map(|lot| lot.expires_at.since(now));
        let request = purchase.as_ref().map(|(_, purchase)| purchase.request.clone());
        let entry = LedgerEntry { number, account: account.clone(), kind, amount, expires_in, request };
        self.under_way.insert(number, UnderWay { account, kind, lots, purchase, is_reported: false });
        entry
    }
}

/// The latest expiry of what is under way, by account.
fn latest_expiries(under_way: &BTreeMap<EntryNumber, UnderWay>) -> BTreeMap<&str, Nanos> {
    let mut latest: BTreeMap<&str, Nanos> = BTreeMap::new();
    for entry in under_way.values() {
        let of_account = latest.entry(&entry.account).or_default();
        *of_account = entry.lots.iter().map(|lot| lot.expires_at).fold(*of_account, Nanos::max);
    }
    latest
}

#[cfg(test)]
#[path = "credits_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "credits_conserved_tests.rs"]
mod conserved_tests;
