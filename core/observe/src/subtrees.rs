//! What was done below a group that was delegated to a user, and in no group that is known.
//!
//! A group that is made, used and removed between two looks is no tenant, so that a user who goes from one to the next would be charged
//! with nothing. The counters of the delegated group hold what such groups did: whatever they rise by beyond what its tenants
//! transferred is charged to the account that all of them share (docs/adr/0052).
//!
//! The two are not read at one instant. The delegated group comes first, so that its tenants may be ahead of it, never behind; a group
//! that came into view after its first transfers was charged to the account before it was known, and its counters repeat that. Both
//! leave a balance below zero, and only what goes beyond it is charged. So what is charged is never less than what was done,
//! and once nobody is ahead never more, but for what groups did before they came into view, and that once however many come and go.

use crate::counters::{Difference, Row, began_in_this_slice, difference};
use minerva_model::{DeviceId, IoCounters, Nanos, Signals, SubtreeIo, Tenant, TenantId, UnseenIo};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A delegated group that was not read in so many samples in a row is gone.
const SAMPLES_KEPT: u8 = 60;

/// Inode of a delegated group, which no other has within one boot, and a disk.
type Key = (u64, DeviceId);

/// What is known of delegated groups.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Subtrees {
    /// Below which delegated group a tenant is.
    below: BTreeMap<TenantId, u64>,
    balances: BTreeMap<Key, Balance>,
}

/// One delegated group on one disk.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Balance {
    at: Nanos,
    counters: IoCounters,
    /// How far what its tenants did is ahead of what it did: bytes read and written, requests read and written; at least 0.
    ahead: [u64; 4],
    samples_missed: u8,
}

impl Subtrees {
    pub(crate) fn tenant_seen(&mut self, tenant: &Tenant) {
        match &tenant.origin.delegated_from {
            Some(group) => self.below.insert(tenant.id, group.inode),
            None => self.below.remove(&tenant.id),
        };
    }

    pub(crate) fn tenant_gone(&mut self, id: TenantId) {
        self.below.remove(&id);
    }

    pub(crate) fn device_gone(&mut self, id: DeviceId) {
        self.balances.retain(|(_, device), _| *device != id);
    }

    /// Adds to the signals what no tenant accounts for. They hold already what tenants did.
    pub(crate) fn slice(&mut self, now: Nanos, rows: &[SubtreeIo], signals: &mut Signals) {
        if rows.is_empty() && self.balances.is_empty() {
            return;
        }
        let known = self.known(rows, signals);
        let done = |key: &Key| known.get(key).copied().unwrap_or_default();
        let is_told = |key: &Key| rows.iter().any(|row| (row.group.inode, row.device) == *key);
        for (key, balance) in self.balances.iter_mut().filter(|(key, _)| !is_told(key)) {
            balance.samples_missed += 1;
            balance.charge([0; 4], done(key));
        }
        self.balances.retain(|_, balance| balance.samples_missed < SAMPLES_KEPT);
        for row in rows {
            let key = (row.group.inode, row.device);
            let Some((elapsed, moved)) = self.moved(now, row, signals) else { continue };
            let Some(balance) = self.balances.get_mut(&key) else { continue };
            let transferred = balance.charge(parts(&moved), done(&key));
            if transferred == IoCounters::default() {
                continue;
            }
            if let Ok(index) = signals.devices.binary_search_by_key(&row.device, |device| device.device) {
                let rest = &mut signals.devices[index].unattributed_bytes;
                *rest = rest.saturating_sub(transferred.bytes());
            }
            signals.unseen.push(UnseenIo {
                history_key: row.history_key.clone(),
                weight_percent: row.weight_percent,
                device: row.device,
                elapsed,
                transferred,
                disk_time: Nanos::ZERO,
            });
        }
    }

    /// What tenants did, by delegated group and disk.
    fn known(&self, rows: &[SubtreeIo], signals: &Signals) -> BTreeMap<Key, [u64; 4]> {
        let own: BTreeMap<TenantId, u64> = rows.iter().filter_map(|row| Some((row.own?, row.group.inode))).collect();
        let mut known: BTreeMap<Key, [u64; 4]> = BTreeMap::new();
        for io in signals.io.iter().filter(|io| io.transferred != IoCounters::default()) {
            // The topmost group counts: a delegated group is below no other.
            let Some(inode) = self.below.get(&io.tenant).or_else(|| own.get(&io.tenant)) else { continue };
            let sum = known.entry((*inode, io.device)).or_default();
            sum.iter_mut().zip(parts(&io.transferred)).for_each(|(sum, part)| *sum = sum.saturating_add(part));
        }
        known
    }

    /// What the delegated group did since it was last read; nothing where that is not known.
    fn moved(&mut self, now: Nanos, row: &SubtreeIo, signals: &Signals) -> Option<(Nanos, IoCounters)> {
        let disk = signals.devices.binary_search_by_key(&row.device, |device| device.device).ok();
        let disk = disk.map(|index| &signals.devices[index]);
        let key = (row.group.inode, row.device);
        let fresh = Balance { at: now, counters: row.counters, ahead: [0; 4], samples_missed: 0 };
        let before = self.balances.get(&key).copied();
        let ahead = before.map_or([0; 4], |before| before.ahead);
        self.balances.insert(key, Balance { ahead, ..fresh });
        let io = |io| Row { io, ..Row::default() };
        match before.map(|before| (before.at, difference(&io(before.counters), &io(row.counters)))) {
            Some((at, Difference::Moved(moved))) => Some((now.since(at), moved.io)),
            // It began, or began again, in this slice, or it only came into view.
            _ => disk.filter(|disk| began_in_this_slice(&row.counters, disk)).map(|disk| (disk.elapsed, row.counters)),
        }
    }
}

impl Balance {
    /// Adds what the whole did and takes off what tenants did; what goes beyond is the answer.
    fn charge(&mut self, whole: [u64; 4], known: [u64; 4]) -> IoCounters {
        let mut beyond = [0; 4];
        for (index, ahead) in self.ahead.iter_mut().enumerate() {
            let known = known[index].saturating_add(*ahead);
            beyond[index] = whole[index].saturating_sub(known);
            *ahead = known.saturating_sub(whole[index]);
        }
        let [read_bytes, write_bytes, read_ops, write_ops] = beyond;
        IoCounters { read_bytes, write_bytes, read_ops, write_ops }
    }
}

fn parts(io: &IoCounters) -> [u64; 4] {
    [io.read_bytes, io.write_bytes, io.read_ops, io.write_ops]
}
