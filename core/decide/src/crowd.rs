//! Who is on which disk beside whom: what the coordinator must know and cannot see.

use crate::bandwidth::Bandwidths;
use crate::disk::Present;
use crate::member::Member;
use crate::surroundings::Surroundings;
use minerva_model::{CoordinationSettings, DeviceId, DeviceSignals, Nanos, Operation, TenantId};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// For how long BFQ serves a tenant before the next, an eighth of a second, and a request. Within a short slice not every busy
/// tenant is served; one that was not is still there until the others have had their service, as their shares are to its own.
const SERVICE: Nanos = Nanos::from_millis(150);
/// But not for longer, however small its share is.
const UNSERVED_MAX: Nanos = Nanos::from_millis(500);

/// Who used which disk in the last slice, or shortly before. Kept while somebody takes part.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Crowd {
    assumed_bytes_per_second: u64,
    raise_percent: u32,
    by_device: BTreeMap<DeviceId, Vec<Neighbour>>,
    /// Disks of which it is not known yet who uses them, and for how long they are still to be watched.
    #[serde(default)]
    unwatched: BTreeMap<DeviceId, Nanos>,
}

impl Crowd {
    pub(crate) fn configure(&mut self, settings: &CoordinationSettings) {
        self.assumed_bytes_per_second = settings.assumed_bytes_per_second;
        self.raise_percent = settings.raise_percent;
    }

    /// Those of the slice that ended, and those that were there shortly before and are still known.
    pub(crate) fn take(
        &mut self,
        now: Nanos,
        present: BTreeMap<DeviceId, Vec<Present>>,
        is_known: impl Fn(TenantId) -> bool,
        neighbour: impl Fn(DeviceId, Present) -> Neighbour,
    ) {
        let before = std::mem::take(&mut self.by_device);
        let seen = |(id, all): (DeviceId, Vec<Present>)| (id, all.into_iter().map(|one| neighbour(id, one)).collect());
        self.by_device = present.into_iter().map(seen).collect();
        for (device, all) in before {
            let here = self.by_device.entry(device).or_default();
            let served = |one: &Neighbour| here.iter().any(|other| other.present.tenant == one.present.tenant);
            let unserved: Vec<Neighbour> =
                all.into_iter().filter(|one| is_known(one.present.tenant) && !served(one)).collect();
            let total: u64 = here.iter().chain(&unserved).map(|one| u64::from(one.present.in_force.get())).sum();
            let still_there = unserved.into_iter().filter(|one| now.since(one.seen_at) < unserved_max(one, total));
            here.extend(still_there.map(|one| Neighbour { seen_at: one.seen_at, ..neighbour(device, one.present) }));
        }
    }

    pub(crate) fn device_gone(&mut self, device: DeviceId) {
        self.by_device.remove(&device);
        self.unwatched.remove(&device);
    }

    /// Nothing is known yet of who uses a disk: until each that is busy there has had the time in which it is served, it may be anybody.
    pub(crate) fn must_watch(&mut self, device: DeviceId) {
        self.unwatched.insert(device, UNSERVED_MAX);
    }

    /// Disks were watched for a slice.
    pub(crate) fn watched(&mut self, rows: &[DeviceSignals]) {
        for row in rows.iter().filter(|row| row.elapsed > Nanos::ZERO) {
            let Some(left) = self.unwatched.get_mut(&row.device) else { continue };
            *left = Nanos(left.0.saturating_sub(row.elapsed.0));
            if *left == Nanos::ZERO {
                self.unwatched.remove(&row.device);
            }
        }
    }

    /// By disk.
    pub(crate) fn devices(&self) -> impl Iterator<Item = (&DeviceId, &Vec<Neighbour>)> {
        self.by_device.iter()
    }

    /// Somebody competes for the disk with a tenant.
    pub(crate) fn competes_with(&self, tenant: TenantId, device: DeviceId) -> bool {
        self.on(device).iter().any(|one| one.competes && one.present.tenant != tenant)
    }

    fn on(&self, device: DeviceId) -> &[Neighbour] {
        self.by_device.get(&device).map_or(&[], Vec::as_slice)
    }
}

/// For how long a busy tenant may be left unserved where all have `total` shares.
fn unserved_max(one: &Neighbour, total: u64) -> Nanos {
    let own = u64::from(one.present.in_force.get()).max(1);
    Nanos((SERVICE.0 * total.saturating_sub(own) / own).clamp(SERVICE.0, UNSERVED_MAX.0))
}

/// One of them.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Neighbour {
    pub(crate) present: Present,
    /// It did not step back.
    pub(crate) forward: bool,
    /// Nor has it the precedence of a coordinated operation.
    pub(crate) competes: bool,
    /// It is here and waits to begin, which makes it no reason for others to wait.
    pub(crate) waits: bool,
    /// When it last used the disk.
    pub(crate) seen_at: Nanos,
}

/// What the coordinator is told of a disk.
pub(crate) struct Around<'a> {
    crowd: &'a Crowd,
    bandwidths: &'a Bandwidths,
    members: &'a BTreeMap<TenantId, Member>,
    /// The factor of the tenant's group, and the operator's weight in percent.
    history: &'a dyn Fn(TenantId, DeviceId) -> (f64, u32),
    /// Of the disks that were asked about: everybody on one is gone through once, however many operations are estimated.
    shares: RefCell<BTreeMap<DeviceId, Shares>>,
}

/// The shares of who is on a disk.
#[derive(Debug, Default)]
struct Shares {
    total: u64,
    by_tenant: BTreeMap<TenantId, u64>,
}

impl<'a> Around<'a> {
    pub(crate) fn new(
        crowd: &'a Crowd,
        bandwidths: &'a Bandwidths,
        members: &'a BTreeMap<TenantId, Member>,
        history: &'a dyn Fn(TenantId, DeviceId) -> (f64, u32),
    ) -> Self {
        Self { crowd, bandwidths, members, history, shares: RefCell::default() }
    }

    fn shares_of_others(&self, tenant: TenantId, device: DeviceId) -> u64 {
        let mut known = self.shares.borrow_mut();
        let Shares { total, by_tenant } = known.entry(device).or_insert_with(|| {
            let mut shares = Shares::default();
            for one in self.crowd.on(device) {
                let share = u64::from(one.present.share.get());
                shares.total += share;
                *shares.by_tenant.entry(one.present.tenant).or_default() += share;
            }
            shares
        });
        *total - by_tenant.get(&tenant).copied().unwrap_or_default()
    }
}

impl Surroundings for Around<'_> {
    fn competitors(&self, device: DeviceId) -> u32 {
        self.crowd.on(device).iter().filter(|one| one.competes && !one.waits).count() as u32
    }

    fn is_watched(&self, device: DeviceId) -> bool {
        !self.crowd.unwatched.contains_key(&device)
    }

    fn is_shared(&self, device: DeviceId, tenant: TenantId) -> bool {
        self.crowd.on(device).iter().any(|one| one.forward && one.present.tenant != tenant)
    }

    fn account(&self, tenant: TenantId) -> &str {
        self.members.get(&tenant).map_or("", |member| &member.account)
    }

    fn estimate(&self, tenant: TenantId, operation: &Operation) -> Nanos {
        let assumed = self.crowd.assumed_bytes_per_second as f64;
        let bandwidth = self.bandwidths.get(operation.device, operation.access).unwrap_or(assumed).max(1.0);
        let (history, weight_percent) = (self.history)(tenant, operation.device);
        let own = history * f64::from(weight_percent) * f64::from(self.crowd.raise_percent) / 100.0;
        let others = self.shares_of_others(tenant, operation.device) as f64;
        let seconds = operation.bytes as f64 / bandwidth * (own.max(1.0) + others) / own.max(1.0);
        Nanos((seconds * 1e9).clamp(0.0, u64::MAX as f64) as u64)
    }

    fn history_factor(&self, tenant: TenantId, device: DeviceId) -> f64 {
        (self.history)(tenant, device).0
    }

    fn is_measured(&self, operation: &Operation) -> bool {
        self.bandwidths.get(operation.device, operation.access).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::{Crowd, Neighbour, Present};
    use minerva_model::{DeviceId, Nanos, Share, TenantId};
    use std::collections::BTreeMap;

    const DISK: DeviceId = DeviceId { major: 8, minor: 0 };

    #[test]
    fn who_is_not_served_is_there_until_the_others_had_their_turns() {
        let present = |(id, share): &(u64, u32)| {
            let share = Share::new(*share);
            Present { tenant: TenantId(*id), key: 0, share, in_force: share }
        };
        type Shares = &'static [(u64, u32)];
        // (all, as tenant and share; who is served from then on; milliseconds until the first is taken for gone)
        let table: [(Shares, Shares, u64); 5] = [
            (&[(1, 100), (2, 100)], &[(2, 100)], 250),
            (&[(1, 100), (2, 2)], &[(2, 2)], 250),
            (&[(1, 100), (2, 100), (3, 100)], &[(2, 100)], 375),
            (&[(1, 2), (2, 100)], &[(2, 100)], 500),
            (&[(1, 100)], &[], 250),
        ];
        for (all, served, expected_ms) in table {
            let mut crowd = Crowd::default();
            let mut take = |ms: u64, served: &[(u64, u32)]| {
                let present = BTreeMap::from([(DISK, served.iter().map(present).collect())]);
                let now = Nanos::from_millis(ms);
                let neighbour =
                    |_, present| Neighbour { present, forward: true, competes: true, waits: false, seen_at: now };
                crowd.take(now, present, |_| true, neighbour);
                crowd.on(DISK).iter().any(|one| one.present.tenant == TenantId(1))
            };
            assert!(take(0, all));
            let gone_ms = (1..).map(|slice| slice * 125).find(|ms| !take(*ms, served));
            assert_eq!(gone_ms, Some(expected_ms), "{all:?}");
        }
    }
}
