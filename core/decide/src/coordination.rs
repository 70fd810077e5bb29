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

mod precedence;
#[cfg(test)]
mod tests;
mod waiting;

use crate::operation::{Asked, Running, Stage};
use crate::precedence_time::PrecedenceTime;
use crate::queue::can_wait;
use crate::surroundings::Surroundings;
use minerva_model::{CoordinationSettings, DeviceId, Grant, Nanos, Operation, RequestId, TenantId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) use precedence::Rank;

/// No shorter time without bytes or under way says anything of an operation, however short slices are.
const SECONDS_LEAST: Nanos = Nanos::from_secs(10);

/// By tenant, then key.
pub(crate) type OperationKey = (TenantId, RequestId);

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
    /// Disks on which operations do not go before those who say nothing, in the slice that is under way.
    #[serde(default)]
    held_back: BTreeSet<DeviceId>,
    /// Shares are not in force, so nothing is gained by precedence or by waiting.
    #[serde(default)]
    only_watches: bool,
}

impl Coordination {
    /// `enforces`: shares are in force.
    pub(crate) fn configure(&mut self, settings: CoordinationSettings, slice: Nanos, enforces: bool) {
        self.settings = settings;
        self.only_watches = settings.holds_only_while_it_steers && !enforces;
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
        if !self.makes_wait() {
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
        self.charge_precedence(now, around);
        let mut changes = SliceChanges { over: self.count(now, moved), ..SliceChanges::default() };
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

    /// Counts what operations moved in the slice, each byte for the one of its tenant's that began first and is not done; those that are over
    /// by that.
    fn count(&mut self, now: Nanos, moved: impl Fn(TenantId, DeviceId) -> u64) -> Vec<OperationKey> {
        let (least, counts_once) = (self.seconds_least(), self.settings.counts_what_it_had);
        let under_way = self.operations.iter_mut().filter_map(|(key, one)| match &mut one.stage {
            Stage::Running(running) => Some((key, one.operation, running)),
            Stage::Waiting { .. } => None,
        });
        let mut under_way: Vec<(&OperationKey, Operation, &mut Running)> = under_way.collect();
        under_way.sort_by_key(|(_, _, running)| running.begun_at);
        let mut uncounted: BTreeMap<(TenantId, DeviceId), u64> = BTreeMap::new();
        let mut over = Vec::new();
        for (key, operation, running) in under_way {
            let all = moved(key.0, operation.device);
            let left = uncounted.entry((key.0, operation.device)).or_insert(all);
            let bytes = if counts_once { running.lacks(&operation).min(*left) } else { all };
            *left = left.saturating_sub(bytes);
            running.moved_bytes = running.moved_bytes.saturating_add(bytes);
            running.note_silence(now, all == 0);
            if running.lacks(&operation) == 0 || running.is_over(now) || running.is_silent(now, least) {
                over.push(key.clone());
            }
        }
        over
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

    /// Operations may have to wait. Otherwise each begins as soon as it is asked for.
    fn makes_wait(&self) -> bool {
        self.settings.enabled && !self.only_watches
    }

    /// Nothing is gained by waiting or by going ahead, so nobody waits and no time is charged. In recordings of earlier versions both went on.
    fn is_out_of_force(&self) -> bool {
        self.settings.holds_only_while_it_steers && !self.makes_wait()
    }

    /// Operations go ahead of others: outside `enforce` that is decided and told all the same, but not while coordination is switched off.
    fn gives_precedence(&self) -> bool {
        self.settings.enabled || !self.settings.holds_only_while_it_steers
    }

    fn seconds_least(&self) -> Nanos {
        if self.settings.counts_what_it_had { SECONDS_LEAST } else { Nanos::ZERO }
    }

    fn begin(&mut self, now: Nanos, key: &OperationKey, around: &impl Surroundings) {
        let gives_precedence = self.gives_precedence();
        let Some(one) = self.operations.get_mut(key) else { return };
        one.stage = Stage::Running(Running {
            has_precedence: gives_precedence && self.precedence_time.left(now, around.account(key.0)) >= self.slice,
            begun_at: now,
            charged_at: now,
            done_at: now + around.estimate(key.0, &one.operation),
            moved_bytes: 0,
            silent_slices: 0,
            last_bytes_at: now,
            history_factor: around.history_factor(key.0, one.operation.device),
        });
    }
}
