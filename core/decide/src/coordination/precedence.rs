//! Who goes before others, and what that is charged.

use super::{Coordination, OperationKey};
use crate::operation::{Asked, Running, Stage};
use crate::surroundings::Surroundings;
use minerva_model::{Deadline, DeviceId, Nanos, Operation, RequestId, TenantId};
use std::collections::{BTreeMap, BTreeSet};

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

impl Coordination {
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

    /// Those that have precedence on a disk, and so take a place.
    pub(crate) fn running_on(&self, device: DeviceId) -> impl Iterator<Item = Running> {
        self.operations.values().filter_map(move |one| one.precedence_on(device))
    }

    /// Every precedence is charged, and ends if its time is up.
    pub(super) fn charge_precedence(&mut self, now: Nanos, around: &impl Surroundings) {
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
        let (least, gives_precedence) = (self.seconds_least(), self.gives_precedence());
        for key in keys {
            self.charge(now, &key, is_waited_for, around);
            let left = self.precedence_time.left(now, around.account(key.0));
            let Some(Stage::Running(running)) = self.operations.get_mut(&key).map(|one| &mut one.stage) else {
                continue;
            };
            running.has_precedence =
                gives_precedence && left >= self.slice && !running.is_overdue(now, self.slice, least);
        }
        self.precedence_time.forget_whole(now);
    }

    /// In the slice that began operations on these disks do not go before those who say nothing.
    pub(crate) fn hold_back(&mut self, devices: BTreeSet<DeviceId>) {
        self.held_back = devices;
    }

    /// Charges precedence for the time since it was last charged, a slice at most, if somebody else could have had the disk. One that is held
    /// back goes before nobody on the disk, but keeps its place from those that wait for it.
    pub(super) fn charge(
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
        let is_held_back = self.settings.counts_what_it_had && self.held_back.contains(&device);
        let costs_others = around.is_shared(device, key.0) && !is_held_back || is_waited_for(key.0, device);
        if running.has_precedence && costs_others && !self.is_out_of_force() {
            let length = now.since(running.charged_at).min(self.slice);
            self.precedence_time.take(now, around.account(key.0), length);
        }
        if let Some(Stage::Running(running)) = self.operations.get_mut(key).map(|one| &mut one.stage) {
            running.charged_at = now;
        }
    }
}
