//! Which of the operations that wait for a disk begin, and what those that do not are told.

use super::{Coordination, OperationKey};
use crate::operation::{Asked, Stage};
use crate::queue::{Moment, Waiting, begin_now};
use crate::surroundings::Surroundings;
use minerva_model::{Deadline, DeviceId, Nanos, TenantId};

/// A tenant that waits this long for its start is told to wait for a callback instead of counting slices.
const SLICES_COUNTED_MAX: u64 = 60;

impl Coordination {
    /// What is to begin now on a disk.
    pub(super) fn due(&self, now: Nanos, device: DeviceId, around: &impl Surroundings) -> Vec<OperationKey> {
        let running = self.running_on(device).count();
        let (keys, waiting) = self.waiting_on(device, around);
        if self.is_out_of_force() {
            return keys;
        }
        let moment = Moment {
            now,
            next_look: self.next_look(now),
            slots_free: (self.settings.running_max as usize).saturating_sub(running),
            contended: !self.has_room(device, around),
        };
        begin_now(moment, &waiting).into_iter().map(|index| keys[index].clone()).collect()
    }

    /// Those that wait for a disk.
    pub(super) fn waiting_on(&self, device: DeviceId, around: &impl Surroundings) -> (Vec<OperationKey>, Vec<Waiting>) {
        let waiting = |(key, one): (&OperationKey, &Asked)| {
            let Stage::Waiting { promised } = one.stage else { return None };
            let latest = self.latest_start(key.0, one, around);
            let waiting = Waiting {
                asked_at: one.asked_at,
                estimate: around.estimate(key.0, &one.operation),
                // What was promised is kept.
                latest_start: promised.map_or(latest, |at| at.min(latest)),
            };
            Some((key.clone(), waiting))
        };
        self.operations.iter().filter(|(_, one)| one.operation.device == device).filter_map(waiting).unzip()
    }

    /// No more others are on the disk than are no reason to wait.
    pub(crate) fn has_room(&self, device: DeviceId, around: &impl Surroundings) -> bool {
        around.is_watched(device) && around.competitors(device) <= self.settings.contention_accepted
    }

    /// When waiting operations are looked at again, at the latest: the next slice may come late.
    pub(super) fn next_look(&self, now: Nanos) -> Nanos {
        now + self.slice + Nanos(self.slice.0 / 2)
    }

    pub(super) fn latest_start(&self, tenant: TenantId, one: &Asked, around: &impl Surroundings) -> Nanos {
        match one.operation.deadline {
            Some(Deadline::StartBefore(at)) => at,
            Some(Deadline::DoneBefore(at)) => at - around.estimate(tenant, &one.operation),
            None => one.asked_at + self.settings.hold_max,
        }
    }

    /// After how many slices an operation can be told to begin: when nothing is before it but operations that are
    /// coordinated too, and those are known well enough.
    pub(super) fn promise(
        &mut self,
        now: Nanos,
        key: &OperationKey,
        latest: Nanos,
        around: &impl Surroundings,
    ) -> Option<u32> {
        let operation = self.operations.get(key)?.operation;
        let device = operation.device;
        let known = self.running_on(device).next().is_some()
            && around.is_measured(&operation)
            && self.has_room(device, around)
            && self.settings.running_max == 1;
        if !known {
            return None;
        }
        let busy_until = self.running_on(device).map(|running| running.done_at).max()?.max(now);
        let ahead = self.operations.iter().filter(|(other, one)| {
            *other != key && one.operation.device == device && matches!(one.stage, Stage::Waiting { .. })
        });
        let begins = ahead.fold(busy_until, |at, (other, one)| at + around.estimate(other.0, &one.operation));
        let slices = begins.since(now).0.div_ceil(self.slice.0).max(1);
        let at = now + Nanos(slices * self.slice.0);
        if slices > SLICES_COUNTED_MAX || at > latest {
            return None;
        }
        let one = self.operations.get_mut(key)?;
        one.stage = Stage::Waiting { promised: Some(at) };
        u32::try_from(slices).ok()
    }
}
