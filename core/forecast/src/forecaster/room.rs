//! Room for pairs of tenants and disks beyond the most that have a state: the account that has most makes it.

use super::Key;
use super::parts::first_to_go;
use super::tenants::Tenant;
use crate::online::Account;
use std::collections::BTreeMap;
use std::iter::Peekable;
use std::vec::IntoIter;

/// In a slice. What would make it is worked out once, when the first finds none.
#[derive(Default)]
pub(super) struct Room(Option<Candidates>);

struct Candidates {
    first: Peekable<IntoIter<(usize, Account, Key)>>,
    counts: BTreeMap<Account, usize>,
}

impl Room {
    /// Drops a pair in favour of one of this account, if there is one of an account that then still has as many. What was under way teaches nothing:
    /// it is not over.
    pub(super) fn make(&mut self, account: Account, tenants: &mut BTreeMap<Key, Tenant>) -> bool {
        let Candidates { first, counts } = self.0.get_or_insert_with(|| Candidates::of(tenants));
        let has = if account == 0 { 0 } else { counts.get(&account).copied().unwrap_or(0) };
        let Some((_, from, key)) = first.next_if(|(count, _, _)| *count > has + 1) else { return false };
        tenants.remove(&key);
        counts.entry(from).and_modify(|count| *count -= 1);
        *counts.entry(account).or_insert(0) += 1;
        true
    }
}

impl Candidates {
    fn of(tenants: &BTreeMap<Key, Tenant>) -> Self {
        let mut counts = BTreeMap::new();
        for tenant in tenants.values() {
            *counts.entry(tenant.account()).or_insert(0) += 1;
        }
        let used = |tenant: &Tenant| u64::MAX - u64::from(tenant.idle_slices());
        let held = tenants.iter().map(|(key, tenant)| (tenant.account(), used(tenant), *key)).collect();
        Self { first: first_to_go(held).into_iter().peekable(), counts }
    }
}
