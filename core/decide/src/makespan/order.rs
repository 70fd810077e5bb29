//! Who goes first on a disk in the next slice.

use super::Rule;
use super::lifting::Lifting;
use super::position::QueuePosition;
use crate::compose::DecideInput;
use crate::shortest_first::{self, Job};
use minerva_model::{DeviceId, IoSignals, Nanos, TenantId};

impl Rule {
    /// Settles for the next slice who goes first on a disk, if anybody does.
    pub(super) fn sort(&mut self, now: Nanos, device: DeviceId, input: &DecideInput<'_>) {
        let present = self.present(now, device, input);
        if let Some(lifting) = self.lifting.get_mut(&device) {
            lifting.gone(|tenant| present.iter().any(|(there, _)| *there == tenant));
        }
        let is_short = self.is_short(input.signals, device);
        self.told.remove(&device);
        let ordered: &[(TenantId, Job)] = if is_short && present.len() >= 2 { &present } else { &[] };
        self.forget_places(device, ordered);
        if !ordered.is_empty() {
            self.put_in_order(device, ordered, input);
        }
        self.note_waiting(device, slice_of(input, device), &present);
    }

    /// Jobs that are not put in order on a disk, which are all but these, have no place there; `ordered` is sorted by tenant.
    fn forget_places(&mut self, device: DeviceId, ordered: &[(TenantId, Job)]) {
        let of_disk = (device, TenantId(0))..=(device, TenantId(u64::MAX));
        let placed = self.places.range(of_disk).map(|((_, tenant), _)| *tenant);
        let is_left_out = |tenant: &TenantId| ordered.binary_search_by_key(tenant, |(of, _)| *of).is_err();
        let left_out: Vec<TenantId> = placed.filter(is_left_out).collect();
        for tenant in left_out {
            self.places.remove(&(device, tenant));
        }
    }

    fn put_in_order(&mut self, device: DeviceId, present: &[(TenantId, Job)], input: &DecideInput<'_>) {
        let is_other = |row: &IoSignals| row.device == device && row.active && self.job(row.tenant).is_none();
        let alone = !input.signals.io.iter().any(is_other);
        let jobs = self.led(device, present);
        let places = shortest_first::places(&jobs);
        let ahead = shortest_first::ahead(&jobs, &places, slice_of(input, device).as_secs_f64());
        // Beside others jobs pay each other the less exactly the more their parts differ.
        let parts = (alone && self.settings.waiting_counts).then(|| {
            let in_order = self.settings.in_order_within_slices;
            shortest_first::parts(&jobs, &places, ahead, in_order)
        });
        let tells_caps = self.lifting.get(&device).is_none_or(Lifting::tells_caps);
        for (index, ((tenant, job), place)) in present.iter().zip(places).enumerate() {
            let (remaining, rests) = (job.remaining(), job.rests);
            let part = parts.as_ref().map(|parts| parts[index]);
            let jobs = jobs.len();
            let position = QueuePosition { place, jobs, remaining, alone, ahead, rests, part, tells_caps, told: 0 };
            let before = self.places.get(&(device, *tenant));
            let position = position.after(before);
            self.places.insert((device, *tenant), position);
        }
        if self.settings.payers_are_named {
            self.told.insert(device, self.sides(device));
        }
    }
}

/// How long the slice was on a disk.
fn slice_of(input: &DecideInput<'_>, device: DeviceId) -> Nanos {
    let row = input.signals.devices.iter().find(|row| row.device == device);
    row.map_or(Nanos::ZERO, |row| row.elapsed)
}
