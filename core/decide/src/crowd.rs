//! Who is on which disk beside whom: what the coordinator must know and cannot see.

use crate::bandwidth::Bandwidths;
use crate::coordination::Surroundings;
use crate::disk::Present;
use crate::participation::Member;
use minerva_model::{CoordinationSettings, DeviceId, Nanos, Operation, TenantId};
use std::collections::BTreeMap;

/// A tenant that a scheduler left unserved for a short slice is still there: BFQ serves one after the other, an eighth of a second
/// each, so that several busy tenants do not all get something in every slice of a tenth.
const REMEMBERED: Nanos = Nanos::from_millis(500);

/// Who used which disk in the last slice, or shortly before. Kept while somebody takes part.
#[derive(Clone, Debug, Default)]
pub(crate) struct Crowd {
    assumed_bytes_per_second: u64,
    raise_percent: u32,
    by_device: BTreeMap<DeviceId, Vec<Neighbour>>,
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
            for one in all.into_iter().filter(|one| now.since(one.seen_at) < REMEMBERED) {
                let tenant = one.present.tenant;
                if is_known(tenant) && here.iter().all(|other| other.present.tenant != tenant) {
                    here.push(Neighbour { seen_at: one.seen_at, ..neighbour(device, one.present) });
                }
            }
        }
    }

    pub(crate) fn device_gone(&mut self, device: DeviceId) {
        self.by_device.remove(&device);
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

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Neighbour {
    pub(crate) present: Present,
    /// It did not step back.
    pub(crate) forward: bool,
    /// Nor has it the turn of a coordinated operation.
    pub(crate) competes: bool,
    /// It is here and waits to begin, which makes it no reason for others to wait.
    pub(crate) waits: bool,
    /// When it last used the disk.
    pub(crate) seen_at: Nanos,
}

/// What the coordinator is told of a disk.
pub(crate) struct Around<'a> {
    pub(crate) crowd: &'a Crowd,
    pub(crate) bandwidths: &'a Bandwidths,
    pub(crate) members: &'a BTreeMap<TenantId, Member>,
    /// The factor of the tenant's place among the groups, and the operator's weight in percent.
    pub(crate) history: &'a dyn Fn(TenantId, DeviceId) -> (f64, u32),
}

impl Surroundings for Around<'_> {
    fn competitors(&self, device: DeviceId) -> u32 {
        self.crowd.on(device).iter().filter(|one| one.competes && !one.waits).count() as u32
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
        let others = self.crowd.on(operation.device).iter().filter(|one| one.present.tenant != tenant);
        let others: f64 = others.map(|one| f64::from(one.present.share.get())).sum();
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
