//! Temporally-coordinated scheduling (Malensek et al. 2016, section 3.2): tenants say what they are about to do, and are told when.
//!
//! An operation waits here until its disk is nearly free or it cannot wait longer (`queue`). How long it will take is its
//! size over what the disk was measured to deliver, times the part of it that its share will get; both are looked at anew in
//! every slice.
//!
//! Once begun, it has precedence: it takes a place, it has the place among the groups that it had then, so that it runs evenly,
//! and while others use the disk at the same time its share is raised. Precedence ends with the operation, when it takes four
//! times as long as it should, or when the account has had its time (`precedence_time`); from then on the tenant is as everyone.
//!
//! An operation ends when the tenant says so, is gone, has moved what it declared, falls silent, or is long overdue.

use crate::operation::{Asked, Running, Stage};
use crate::precedence_time::PrecedenceTime;
use crate::queue::{Moment, Waiting, begin_now, can_wait};
use crate::surroundings::Surroundings;
use minerva_model::{CoordinationSettings, Deadline, DeviceId, Grant, Nanos, Operation, RequestId, TenantId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A tenant that waits this long for its start is told to wait for a callback instead of counting slices.
const SLICES_COUNTED_MAX: u64 = 60;
/// An operation that moved nothing for so many slices is over: its tenant crashed, or never heard the call.
const SILENT_SLICES_MAX: u32 = 10;
/// An operation is done when it moved what it declared and a quarter more, for what is read beside it.
const DONE_AT_PERCENT: u128 = 125;

/// By tenant, then key.
pub(crate) type OperationKey = (TenantId, RequestId);

/// See [`Coordination::rank`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rank {
    /// Another is to be done before it, and has the disk first.
    Yields,
    /// Another is to be done after it.
    Leads,
    /// None is.
    Equal,
}

/// What changed in a slice.
#[derive(Clone, Debug, Default)]
pub(crate) struct SliceChanges {
    /// To be called back.
    pub(crate) ready: Vec<OperationKey>,
    /// Over without having been finished.
    pub(crate) over: Vec<OperationKey>,
}

/// The operations of all disks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Coordination {
    settings: CoordinationSettings,
    slice: Nanos,
    operations: BTreeMap<OperationKey, Asked>,
    #[serde(alias = "turns")]
    precedence_time: PrecedenceTime,
}

impl Coordination {
    pub(crate) fn configure(&mut self, settings: CoordinationSettings, slice: Nanos) {
        self.settings = settings;
        self.slice = Nanos(slice.0.max(1));
        self.precedence_time.configure(settings.precedence_max, settings.precedence_window);
    }

    pub(crate) fn settings(&self) -> &CoordinationSettings {
        &self.settings
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    pub(crate) fn get(&self, key: &OperationKey) -> Option<&Asked> {
        self.operations.get(key)
    }

    /// A tenant's operations, by key.
    pub(crate) fn of(&self, tenant: TenantId) -> impl Iterator<Item = (&RequestId, &Asked)> {
        let first = (tenant, RequestId(String::new()));
        self.operations.range(first..).take_while(move |((id, _), _)| *id == tenant).map(|((_, id), one)| (id, one))
    }

    /// How many there are of these tenants.
    pub(crate) fn count_of(&self, is_one: impl Fn(TenantId) -> bool) -> usize {
        self.operations.keys().filter(|(tenant, _)| is_one(*tenant)).count()
    }

    /// The operation whose precedence a tenant's share on a disk is for: the one that began first.
    pub(crate) fn precedence(&self, tenant: TenantId, device: DeviceId) -> Option<(&RequestId, Operation, Running)> {
        let with_precedence =
            self.of(tenant).filter_map(|(id, one)| Some((id, one.operation, one.precedence_on(device)?)));
        with_precedence.min_by_key(|(_, _, running)| running.begun_at)
    }

    /// How a tenant's precedence stands to those of others on the disk, by when each is to be done.
    pub(crate) fn rank(&self, tenant: TenantId, device: DeviceId) -> Rank {
        let due = |one: &Asked| match one.operation.deadline {
            Some(Deadline::DoneBefore(at)) => at,
            // It was to begin in time, which it did.
            Some(Deadline::StartBefore(_)) | None => Nanos(u64::MAX),
        };
        let with_precedence = self.operations.iter().filter(|(_, one)| one.precedence_on(device).is_some());
        let (mut own, mut first, mut last) = (Nanos(u64::MAX), Nanos(u64::MAX), Nanos::ZERO);
        for ((other, _), one) in with_precedence {
            if *other == tenant {
                own = own.min(due(one));
            } else {
                (first, last) = (first.min(due(one)), last.max(due(one)));
            }
        }
        match () {
            () if first < own => Rank::Yields,
            () if own < last => Rank::Leads,
            () => Rank::Equal,
        }
    }

    /// Somebody announced something for the disk.
    pub(crate) fn has_operations_on(&self, device: DeviceId) -> bool {
        self.operations.values().any(|one| one.operation.device == device)
    }

    /// Those that wait to begin on a disk.
    pub(crate) fn waiting_for(&self, device: DeviceId) -> impl Iterator<Item = TenantId> {
        let waits = move |((tenant, _), one): (&OperationKey, &Asked)| one.waits_for(device).then_some(*tenant);
        self.operations.iter().filter_map(waits)
    }

    /// A tenant waits to begin on a disk.
    pub(crate) fn waits(&self, tenant: TenantId, device: DeviceId) -> bool {
        self.of(tenant).any(|(_, one)| one.waits_for(device))
    }

    /// A tenant asks. It begins at once unless it can wait and has a reason to.
    pub(crate) fn ask(
        &mut self,
        now: Nanos,
        key: OperationKey,
        operation: Operation,
        around: &impl Surroundings,
    ) -> Grant {
        let asked = Asked { operation, asked_at: now, stage: Stage::Waiting { promised: None } };
        self.operations.insert(key.clone(), asked);
        if !self.settings.enabled {
            self.begin(now, &key, around);
            return Grant::Now;
        }
        let latest = self.latest_start(key.0, &asked, around);
        // One that can wait for two slices lets one pass, to see who else begins: those that are launched together are
        // not on the disk yet when the first of them asks.
        let patient = operation.deadline.is_some() && latest.since(now).0 >= 2 * self.slice.0;
        let looks_first = patient && can_wait(self.next_look(now), &self.waiting_on(operation.device, around).1);
        if !looks_first {
            // Only this one: the others are looked at when the slice ends, which is soon enough for each.
            if self.due(now, operation.device, around).contains(&key) {
                self.begin(now, &key, around);
                return Grant::Now;
            }
        }
        match self.promise(now, &key, latest, around) {
            Some(slices) => Grant::AfterSlices(slices),
            None => Grant::OnCallback,
        }
    }

    /// A slice ended: `moved` tells the bytes of a tenant on a disk.
    pub(crate) fn slice(
        &mut self,
        now: Nanos,
        moved: impl Fn(TenantId, DeviceId) -> u64,
        around: &impl Surroundings,
    ) -> SliceChanges {
        let mut changes = SliceChanges::default();
        self.charge_precedence(now, around);
        for (key, one) in &mut self.operations {
            let Stage::Running(running) = &mut one.stage else { continue };
            let bytes = moved(key.0, one.operation.device);
            running.moved_bytes = running.moved_bytes.saturating_add(bytes);
            running.silent_slices = if bytes > 0 { 0 } else { running.silent_slices + 1 };
            let done = u128::from(running.moved_bytes) * 100 > u128::from(one.operation.bytes) * DONE_AT_PERCENT;
            if done || running.is_over(now) || running.silent_slices >= SILENT_SLICES_MAX {
                changes.over.push(key.clone());
            }
        }
        for key in &changes.over {
            self.operations.remove(key);
        }
        let waits = |one: &&Asked| matches!(one.stage, Stage::Waiting { .. });
        let devices: BTreeSet<DeviceId> =
            self.operations.values().filter(waits).map(|one| one.operation.device).collect();
        for device in devices {
            changes.ready.extend(self.release(now, device, around));
        }
        changes
    }

    /// Every precedence is charged, and ends if its time is up.
    fn charge_precedence(&mut self, now: Nanos, around: &impl Surroundings) {
        let with_precedence = |one: &Asked| matches!(one.stage, Stage::Running(Running { has_precedence: true, .. }));
        let keys: Vec<OperationKey> =
            self.operations.iter().filter(|(_, one)| with_precedence(one)).map(|(key, _)| key.clone()).collect();
        // Nobody begins meanwhile.
        let mut waiting: BTreeMap<DeviceId, BTreeSet<TenantId>> = BTreeMap::new();
        for ((tenant, _), one) in &self.operations {
            if let Stage::Waiting { .. } = one.stage {
                waiting.entry(one.operation.device).or_default().insert(*tenant);
            }
        }
        let is_waited_for = |tenant: TenantId, device: DeviceId| {
            waiting.get(&device).is_some_and(|all| all.len() > usize::from(all.contains(&tenant)))
        };
        for key in keys {
            self.charge(now, &key, is_waited_for, around);
            let left = self.precedence_time.left(now, around.account(key.0));
            let Some(Stage::Running(running)) = self.operations.get_mut(&key).map(|one| &mut one.stage) else {
                continue;
            };
            running.has_precedence = left >= self.slice && !running.is_overdue(now, self.slice);
        }
        self.precedence_time.forget_whole(now);
    }

    /// Charges precedence for the time since it was last charged, a slice at most, if somebody else could have had the disk.
    fn charge(
        &mut self,
        now: Nanos,
        key: &OperationKey,
        is_waited_for: impl Fn(TenantId, DeviceId) -> bool,
        around: &impl Surroundings,
    ) {
        let Some(Asked { operation: Operation { device, .. }, stage: Stage::Running(running), .. }) =
            self.operations.get(key).copied()
        else {
            return;
        };
        if running.has_precedence && (around.is_shared(device, key.0) || is_waited_for(key.0, device)) {
            let length = now.since(running.charged_at).min(self.slice);
            self.precedence_time.take(now, around.account(key.0), length);
        }
        if let Some(Stage::Running(running)) = self.operations.get_mut(key).map(|one| &mut one.stage) {
            running.charged_at = now;
        }
    }

    /// The tenant has begun of its own accord, or confirms that it has. False if it never asked.
    pub(crate) fn start(&mut self, now: Nanos, key: &OperationKey, around: &impl Surroundings) -> bool {
        match self.operations.get(key).map(|one| one.stage) {
            None => false,
            Some(Stage::Running(_)) => true,
            Some(Stage::Waiting { .. }) => {
                self.begin(now, key, around);
                true
            }
        }
    }

    /// It is done, or will not be done.
    pub(crate) fn end(&mut self, now: Nanos, key: &OperationKey, around: &impl Surroundings) {
        let waited_for = self.get(key).is_some_and(|one| {
            let device = one.operation.device;
            self.operations.iter().any(|((other, _), one)| *other != key.0 && one.waits_for(device))
        });
        self.charge(now, key, |_, _| waited_for, around);
        self.operations.remove(key);
    }

    /// Begins what is to begin now on a disk.
    pub(crate) fn release(&mut self, now: Nanos, device: DeviceId, around: &impl Surroundings) -> Vec<OperationKey> {
        let due = self.due(now, device, around);
        due.iter().for_each(|key| self.begin(now, key, around));
        due
    }

    pub(crate) fn tenant_gone(&mut self, tenant: TenantId) {
        self.operations.retain(|(id, _), _| *id != tenant);
    }

    pub(crate) fn device_gone(&mut self, device: DeviceId) -> Vec<OperationKey> {
        let on_it = |(key, one): (&OperationKey, &Asked)| (one.operation.device == device).then(|| key.clone());
        let gone: Vec<OperationKey> = self.operations.iter().filter_map(on_it).collect();
        for key in &gone {
            self.operations.remove(key);
        }
        gone
    }

    /// An operation that was remembered.
    pub(crate) fn restore(
        &mut self,
        now: Nanos,
        key: OperationKey,
        declared: (Operation, Nanos, bool),
        around: &impl Surroundings,
    ) {
        let (operation, asked_at, released) = declared;
        if self.operations.contains_key(&key) {
            return;
        }
        let stage = Stage::Waiting { promised: None };
        self.operations.insert(key.clone(), Asked { operation, asked_at: asked_at.min(now), stage });
        if released {
            self.begin(now, &key, around);
        }
    }

    /// What is to begin now on a disk.
    fn due(&self, now: Nanos, device: DeviceId, around: &impl Surroundings) -> Vec<OperationKey> {
        let running = self.running_on(device).count();
        let (keys, waiting) = self.waiting_on(device, around);
        let moment = Moment {
            now,
            next_look: self.next_look(now),
            slots_free: (self.settings.running_max as usize).saturating_sub(running),
            contended: !self.has_room(device, around),
        };
        begin_now(moment, &waiting).into_iter().map(|index| keys[index].clone()).collect()
    }

    /// Those that wait for a disk.
    fn waiting_on(&self, device: DeviceId, around: &impl Surroundings) -> (Vec<OperationKey>, Vec<Waiting>) {
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
    fn next_look(&self, now: Nanos) -> Nanos {
        now + self.slice + Nanos(self.slice.0 / 2)
    }

    fn begin(&mut self, now: Nanos, key: &OperationKey, around: &impl Surroundings) {
        let Some(one) = self.operations.get_mut(key) else { return };
        one.stage = Stage::Running(Running {
            has_precedence: self.precedence_time.left(now, around.account(key.0)) >= self.slice,
            begun_at: now,
            charged_at: now,
            done_at: now + around.estimate(key.0, &one.operation),
            moved_bytes: 0,
            silent_slices: 0,
            history_factor: around.history_factor(key.0, one.operation.device),
        });
    }

    fn latest_start(&self, tenant: TenantId, one: &Asked, around: &impl Surroundings) -> Nanos {
        match one.operation.deadline {
            Some(Deadline::StartBefore(at)) => at,
            Some(Deadline::DoneBefore(at)) => at - around.estimate(tenant, &one.operation),
            None => one.asked_at + self.settings.hold_max,
        }
    }

    /// After how many slices an operation can be told to begin: when nothing is before it but operations that are
    /// coordinated too, and those are known well enough.
    fn promise(&mut self, now: Nanos, key: &OperationKey, latest: Nanos, around: &impl Surroundings) -> Option<u32> {
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

    /// Those that have precedence on a disk, and so take a place.
    pub(crate) fn running_on(&self, device: DeviceId) -> impl Iterator<Item = Running> {
        self.operations.values().filter_map(move |one| one.precedence_on(device))
    }
}
