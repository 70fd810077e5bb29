//! When an operation is to be written to a pool of the cache in place of its disk: where it would find others there now, or
//! forecasts with skill expect them, and the pool has room for it (docs/adr/0041).

use crate::coordination::Coordination;
use crate::surroundings::Surroundings;
use minerva_model::{DeviceId, Horizon, Nanos, Operation, Outlook, PoolOffer, TenantId};

/// A tenant is expected on a disk within the next 15 s from this probability on, in thousandths.
const EXPECTED_PERMILLE: u32 = 500;
/// A forecast is acted on for so long after it was made: no longer than what it speaks of.
const FRESH: Nanos = Nanos::from_secs(15);

impl Coordination {
    /// Whether an operation that is asked about is to go to the pool that was offered. `expected` others are foreseen on its disk.
    ///
    /// The pool must not lie on that disk, and if it lies on one itself, there must be room on that by the same measure: else the
    /// data would meet the same crowd, twice.
    pub(crate) fn belongs_in_pool(
        &self,
        operation: &Operation,
        offer: Option<PoolOffer>,
        expected: u32,
        around: &impl Surroundings,
    ) -> bool {
        let Some(offer) = offer else { return false };
        let target = operation.device;
        let fits = operation.access.is_write() && operation.bytes <= offer.left_bytes;
        let elsewhere = offer.device != Some(target)
            && offer.device.is_none_or(|device| !around.is_watched(device) || self.has_room(device, around));
        let settings = self.settings();
        let is_taken = || self.running_on(target).count() >= settings.running_max as usize;
        // Right after a start nobody knows who uses the disk; that is no reason to write elsewhere.
        let is_crowded = || around.is_watched(target) && !self.has_room(target, around);
        settings.enabled && fits && elsewhere && (is_crowded() || is_taken() || expected > settings.contention_accepted)
    }
}

/// Other tenants that forecasts with skill expect on a disk within the next 15 s.
pub(crate) fn expected_others(outlook: &Outlook, now: Nanos, tenant: TenantId, device: DeviceId) -> u32 {
    let of_others = outlook.forecasts().iter().filter(|one| one.tenant != tenant && one.device == device);
    let expected = of_others.filter(|one| {
        one.horizon == Horizon::Pattern
            && one.skill > 0.0
            && one.busy_permille >= EXPECTED_PERMILLE
            && now.since(one.made_at) <= FRESH
    });
    expected.count() as u32
}
