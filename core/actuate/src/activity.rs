//! Who used which disk lately.

use crate::{ACTIVE_LINGER_SLICES, Actuator, Pair};
use minerva_model::{DeviceId, Signals, TenantId};
use std::collections::BTreeSet;

impl Actuator {
    pub(crate) fn pairs_of(&self, tenant: TenantId) -> Vec<(TenantId, DeviceId)> {
        let first = (tenant, DeviceId { major: 0, minor: 0 });
        self.pairs.range(first..).map(|(pair, _)| *pair).take_while(|pair| pair.0 == tenant).collect()
    }

    /// Notes who used which disk. Signals and pairs are in the same order, so one walk over both does.
    ///
    /// On a disk that nobody used nobody ceases to count either: weights matter to nobody there, and moving them would be a write
    /// that no decision explains. Who has ceased meanwhile does so with the next use by anybody.
    pub(crate) fn note_activity(&mut self, signals: &Signals) {
        let (slice, mut changed, mut unknown) = (self.slice, Vec::new(), Vec::new());
        let in_use: BTreeSet<DeviceId> = signals.io.iter().filter(|row| row.active).map(|row| row.device).collect();
        let mut rows = signals.io.iter().filter(|row| row.active).map(|row| (row.tenant, row.device)).peekable();
        for (key, pair) in &mut self.pairs {
            unknown.extend(std::iter::from_fn(|| rows.next_if(|row| row < key)));
            if rows.next_if_eq(key).is_some() {
                pair.active_until = slice + ACTIVE_LINGER_SLICES;
            }
            let active = pair.active_until > slice || (pair.active && !in_use.contains(&key.1));
            if std::mem::replace(&mut pair.active, active) != active {
                changed.push(*key);
            }
        }
        unknown.extend(rows);
        // Tenants without a decision here are not steered, but they count in the groups above them.
        unknown.retain(|(tenant, _)| self.tenants.contains_key(tenant));
        for key in &unknown {
            let pair = Pair { share: None, active_until: slice + ACTIVE_LINGER_SLICES, active: true };
            self.pairs.insert(*key, pair);
        }
        changed.into_iter().chain(unknown).for_each(|pair| self.enter_pair(pair));
    }
}
