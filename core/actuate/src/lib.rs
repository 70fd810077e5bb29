//! Shares to knob writes: conversion, diff, order, verification, undo.
//!
//! [`Actuator`] is fed with decisions and answers and yields effects: inspections, writes and findings. It is pure; a driver
//! performs the effects. What always holds:
//!
//! - only `enforce` writes, and leaving it puts everything back;
//! - nothing is written that was not read before, and nothing that stands already (`ledger`);
//! - only pairs with a decision get knobs, and groups above them if the operator lets (`hierarchy`);
//! - a disk's own settings change only by the operator's word, before the weights that need them, and are put back after;
//! - whoever else writes a knob is named, and wins in the end (`fights`).
//!
//! Read in this order: `suitability` (which back end bites), `steering` (one disk), `hierarchy` (shares to weights) or `caps`
//! (shares to limits; `memory` says when none may stand), `idle` (who waits until nobody else uses the disk), `background` (work that takes time
//! from others in stretches), `strict_by_use` and `low_latency_by_use` (switches of BFQ by what tenants do), `activity` (who used which disk
//! lately), `ledger` (wishes to requests), `knob` and the back ends' files (texts).

mod activity;
mod background;
mod bfq;
mod bfq_v1;
mod cap_knobs;
mod caps;
mod decided;
mod disk;
mod disk_use;
mod disk_wishes;
mod entry;
mod fights;
mod groups;
mod held_back;
mod hierarchy;
mod idle;
mod io_max;
mod iocost;
mod knob;
mod ledger;
mod low_latency_by_use;
mod memory;
mod pace;
mod room;
mod served;
mod server_use;
mod server_weight;
mod setting;
mod shortage;
mod split;
mod steering;
mod strict_by_use;
mod suitability;
mod tenant_use;
mod throttle_v1;
mod waiting;
mod waiting_jobs;
mod weight_file;

pub use suitability::{Suitability, suitability};

use disk_use::Claim;
use fights::{Owner, Rules};
use groups::{GroupNumber, Groups, manager_of_group};
use hierarchy::Own;
use knob::Holder;
use ledger::Ledger;
use memory::MemoryPressure;
use minerva_model::{
    BackEnd, CgroupRef, Decision, Device, DeviceId, Effect, EngineConfig, JobWait, KnobTarget, Mode, Nanos, Outcome,
    Share, Signals, Tenant, TenantId, WriteId,
};
use serde::{Deserialize, Serialize};
use served::Served;
use server_use::ServerUse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use steering::Steering;

/// Slices for which a tenant still counts in the groups above it after its last request: a pause of a few seconds in its work
/// should not move the weights of a whole hierarchy twice. What counts is slices in which somebody uses the disk (`activity`).
const ACTIVE_LINGER_SLICES: u64 = 10;

/// A tenant, as far as its knobs matter.
#[derive(Debug, Serialize, Deserialize)]
struct Known {
    group: GroupNumber,
    excluded: bool,
    /// The group above its own in which its maker makes groups.
    #[serde(default)]
    maker: Option<GroupNumber>,
    /// See [`Own::is_work`].
    #[serde(default)]
    is_work: bool,
}

/// A tenant on a disk.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Pair {
    /// As decided; without it nothing is written.
    share: Option<Share>,
    /// The slice until which it counts as active.
    active_until: u64,
    active: bool,
}

/// Turns decisions into inspections and writes of knobs.
#[derive(Debug, Serialize, Deserialize)]
pub struct Actuator {
    config: EngineConfig,
    slice: u64,
    stopped: bool,
    groups: Groups,
    tenants: BTreeMap<TenantId, Known>,
    disks: BTreeMap<DeviceId, Steering>,
    pairs: BTreeMap<(TenantId, DeviceId), Pair>,
    /// Who is to use which disk only when nobody else does.
    idle: BTreeMap<DeviceId, BTreeSet<TenantId>>,
    /// Which batch jobs wait for others on which disk, and how.
    #[serde(default)]
    waiting_jobs: BTreeMap<DeviceId, BTreeMap<TenantId, JobWait>>,
    ledger: Ledger,
    memory: MemoryPressure,
    served: Served,
    #[serde(default)]
    servers: ServerUse,
}

impl Default for Actuator {
    fn default() -> Self {
        Self::new()
    }
}

impl Actuator {
    /// Knows nothing and writes nothing until it is configured.
    pub fn new() -> Self {
        let config = EngineConfig::default();
        Self {
            ledger: Ledger::new(Rules::of(&config)),
            config,
            slice: 0,
            stopped: false,
            groups: Groups::default(),
            tenants: BTreeMap::new(),
            disks: BTreeMap::new(),
            pairs: BTreeMap::new(),
            idle: BTreeMap::new(),
            waiting_jobs: BTreeMap::new(),
            memory: MemoryPressure::default(),
            served: Served::default(),
            servers: ServerUse::default(),
        }
    }

    /// Takes the operator's settings. Knobs that were left to somebody else are tried again; leaving `enforce` puts
    /// everything back.
    pub fn configure(&mut self, config: &EngineConfig) {
        let enforced = self.enforces();
        let managed_ancestors = self.config.actuation.manage_ancestors;
        if self.config.mode != config.mode {
            // From now on decisions are told anew, and those that are as if nothing had been decided are not.
            self.forget_decisions(|_| true);
        }
        self.config = config.clone();
        let given_up = self.ledger.configure(Rules::of(config));
        self.deal_afresh(given_up);
        if enforced && !self.enforces() {
            self.ledger.release_all();
        }
        if managed_ancestors && !config.actuation.manage_ancestors {
            self.groups.numbers().for_each(|group| self.ledger.release_holder(Holder::Group(group)));
        }
        for id in self.disks.keys().copied().collect::<Vec<DeviceId>>() {
            self.refresh(id);
            // Also where the back end stays: a given-up knob, or a hierarchy, may have become ours.
            if let Some(disk) = self.disks.get_mut(&id).filter(|disk| !disk.has_caps()) {
                disk.plan_afresh();
            }
            self.refresh(id);
        }
        self.wish_served();
        self.tell();
    }

    /// A disk appeared, or its facts changed.
    pub fn device_seen(&mut self, device: &Device) {
        match self.disks.entry(device.id) {
            Entry::Occupied(mut disk) => disk.get_mut().seen(device),
            Entry::Vacant(vacant) => {
                vacant.insert(Steering::new(device, &self.config));
            }
        }
        let target = KnobTarget::Disk { name: device.name.clone() };
        self.ledger.own(Holder::Disk(device.id), Owner { target, manager: "another program".into() });
        self.refresh(device.id);
        self.tell();
    }

    /// A disk is gone. The kernel may keep what was written for it, as with a loop device that lost its file, so that is put back.
    pub fn device_gone(&mut self, id: DeviceId) {
        self.disks.remove(&id);
        self.pairs.retain(|(_, device), _| *device != id);
        self.idle.remove(&id);
        self.waiting_jobs.remove(&id);
        self.ledger.forget_device(id);
        self.ledger.disown(Holder::Disk(id));
    }

    /// A tenant appeared, or its rule changed. One that a rule newly excludes gets its knobs put back.
    pub fn tenant_seen(&mut self, tenant: &Tenant) {
        if let Some(known) = self.tenants.get_mut(&tenant.id) {
            let maker = maker_of(tenant, known.group, &self.groups, &self.config);
            let is_same = known.maker == maker && known.excluded == tenant.excluded;
            known.maker = maker;
            if std::mem::replace(&mut known.excluded, tenant.excluded) != tenant.excluded {
                self.ledger.release_holder(Holder::Tenant(tenant.id));
                // What was decided before it was excluded holds no more when it is steered again.
                self.forget_decisions(|id| id == tenant.id);
                self.disks.values_mut().for_each(|disk| disk.forget_cap(tenant.id));
            }
            if !is_same {
                self.pairs_of(tenant.id).into_iter().for_each(|pair| self.enter_pair(pair));
            }
            return;
        }
        let path = &tenant.cgroup.path;
        let former = self.groups.find(path).and_then(|group| self.groups.get(group)?.tenant);
        if let Some(former) = former {
            // Two directories never stand at one path: the former is gone, whatever the order of the news.
            self.tenant_gone(former);
        }
        let group = self.groups.enter(path, tenant.id);
        // Until now the group may have been one above tenants.
        self.ledger.release_holder(Holder::Group(group));
        let target = KnobTarget::Cgroup { tenant: Some(tenant.id), cgroup: tenant.cgroup.clone() };
        self.ledger.own(Holder::Tenant(tenant.id), Owner { target, manager: tenant.kind.manager().into() });
        let mut next = self.groups.parent(group);
        while let Some((number, above)) = next.and_then(|number| Some((number, self.groups.get(number)?))) {
            let cgroup = CgroupRef { path: above.path.clone(), inode: 0 };
            let manager = manager_of_group(&above.path).into();
            let target = KnobTarget::Cgroup { tenant: None, cgroup };
            self.ledger.own(Holder::Group(number), Owner { target, manager });
            next = above.parent;
        }
        let maker = maker_of(tenant, group, &self.groups, &self.config);
        self.tenants.insert(tenant.id, Known { group, excluded: tenant.excluded, maker, is_work: false });
    }

    /// A tenant is gone. Its group may well stand, with other groups in it, so what it held is put back where it can be.
    pub fn tenant_gone(&mut self, id: TenantId) {
        let Some(known) = self.tenants.remove(&id) else { return };
        for (_, device) in self.pairs_of(id) {
            self.pairs.remove(&(id, device));
        }
        self.forget_decisions(|tenant| tenant == id);
        self.disks.values_mut().for_each(|disk| disk.unset(&self.groups, known.group, id));
        self.wish_served();
        self.ledger.retire(Holder::Tenant(id));
        let forgotten = self.groups.leave(known.group);
        self.disks.values_mut().for_each(|disk| disk.forget(&forgotten));
        // A group above tenants may outlive the last of them.
        forgotten.iter().for_each(|group| self.ledger.retire(Holder::Group(*group)));
        self.groups.settle(|group| self.ledger.knows(Holder::Group(group)));
    }

    /// Once a slice: takes the decisions that changed and what the slice measured, and asks for what follows.
    pub fn plan(&mut self, now: Nanos, decisions: &[Decision], signals: &Signals) {
        self.slice += 1;
        let as_sent = self.servers.as_sent(signals);
        let signals = as_sent.as_ref();
        self.groups.settle(|group| self.ledger.knows(Holder::Group(group)));
        self.take_shares(decisions);
        self.note_activity(signals);
        self.watch_use(signals);
        if self.slice.is_multiple_of(u64::from(self.config.actuation.verify_every_slices.max(1))) {
            let limited = self.ledger.take_limited();
            self.deal_afresh(limited);
        }
        let Self { disks, pairs, tenants, idle, waiting_jobs, ledger, groups, config, memory, servers, .. } = self;
        for (id, disk) in disks {
            let idle = idle.get(id).filter(|_| config.actuation.cap_idle).into_iter().flatten().copied();
            let idle = idle.filter(|tenant| is_steered(tenants, *tenant));
            let waiting = waiting_jobs.get(id).filter(|_| config.actuation.cap_jobs).into_iter().flatten();
            let waiting =
                waiting.filter(|(tenant, _)| is_steered(tenants, **tenant)).map(|(tenant, wait)| (*tenant, *wait));
            let apart =
                disk.hold_back((now, config), &idle.collect(), waiting.collect(), signals, !memory.is_high(), ledger);
            let mut claims = BTreeMap::new();
            if disk.has_caps() {
                let on_disk = pairs.iter().filter(|((_, device), _)| device == id);
                let steered = on_disk.filter_map(|((tenant, _), pair)| {
                    let known = tenants.get(tenant).filter(|known| !known.excluded)?;
                    Some((*tenant, Claim { share: pair.share?.get(), maker: known.maker }))
                });
                claims = steered.filter(|(tenant, _)| !apart.contains(tenant)).collect();
            }
            disk.may_cap(!memory.is_high());
            disk.spare(servers.on(*id));
            disk.plan(now, config, groups, &claims, signals, ledger);
        }
        self.tell_refused_caps();
        self.ledger.slice_ended(self.slice);
        self.tell();
    }

    /// All that was written was put back, by the guard or an operator's restore: it is read, and written again where it is still wanted.
    pub fn restored(&mut self) {
        self.ledger.restored();
    }

    /// What came of an inspection or a write. An answer to a request that no longer matters is ignored.
    pub fn answered(&mut self, _now: Nanos, id: WriteId, outcome: &Outcome) {
        let answered = self.ledger.answered(id, outcome).filter(|(key, _)| key.is_of_disk());
        let Some((key, setting)) = answered else { return };
        if let Some(disk) = self.disks.get_mut(&key.device) {
            disk.knob_reads(setting);
            self.refresh(key.device);
        }
    }

    /// Puts everything back, newest first and disks last, and asks for nothing more.
    pub fn stop(&mut self) {
        self.stopped = true;
        self.ledger.stop();
    }

    /// The next thing for the driver to do.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.ledger.effects.pop_front()
    }

    /// The back end that bites on a disk and why, or [`BackEnd::Observe`] and why not; whatever the mode is.
    pub fn back_end(&self, device: DeviceId) -> Option<(BackEnd, &str)> {
        self.disks.get(&device).map(|disk| (disk.suitability().back_end, disk.suitability().reason.as_str()))
    }

    /// What the kernel calls each disk.
    pub fn device_names(&self) -> impl Iterator<Item = (DeviceId, &str)> {
        self.disks.iter().map(|(id, disk)| (*id, disk.name()))
    }

    /// Switches what follows from what the tenants do.
    fn watch_use(&mut self, signals: &Signals) {
        if !self.enforces() {
            return;
        }
        let Self { disks, config, ledger, .. } = self;
        let switched: Vec<DeviceId> =
            disks.iter_mut().filter_map(|(id, disk)| disk.watch_use(config, signals, ledger).then_some(*id)).collect();
        switched.into_iter().for_each(|id| self.refresh(id));
    }

    fn enforces(&self) -> bool {
        self.config.mode == Mode::Enforce && !self.stopped
    }

    fn tell(&mut self) {
        if !self.stopped {
            self.disks.values_mut().for_each(|disk| disk.tell(&mut self.ledger));
        }
    }

    fn refresh(&mut self, id: DeviceId) {
        let enforces = self.enforces();
        let disk = self.disks.get_mut(&id);
        if disk.is_some_and(|disk| disk.refresh(&self.config, enforces, &mut self.ledger)) {
            let pairs: Vec<_> = self.pairs.keys().filter(|(_, device)| *device == id).copied().collect();
            pairs.into_iter().for_each(|pair| self.enter_pair(pair));
        }
    }

    /// Tells the disk, and servers of ours, what the pair has there now.
    fn enter_pair(&mut self, (tenant, device): (TenantId, DeviceId)) {
        self.wish_served_of((tenant, device));
        let (Some(known), Some(pair), Some(disk)) =
            (self.tenants.get(&tenant), self.pairs.get(&(tenant, device)), self.disks.get_mut(&device))
        else {
            return;
        };
        let share = pair.share.filter(|_| !known.excluded).map(Share::get);
        // Until now the group may have been weighed here for the tenants beneath it.
        self.ledger.release_on(Holder::Group(known.group), device);
        let Known { group, maker, is_work, .. } = *known;
        disk.set(&self.groups, group, Own { tenant, share, active: pair.active, maker, is_work });
    }
}

/// The group above a tenant's `own` in which its maker makes groups, if what stands there is one claim.
fn maker_of(tenant: &Tenant, own: GroupNumber, groups: &Groups, config: &EngineConfig) -> Option<GroupNumber> {
    groups.find(tenant.maker()).filter(|maker| *maker != own && config.actuation.makers_are_one_claim)
}

fn is_steered(tenants: &BTreeMap<TenantId, Known>, tenant: TenantId) -> bool {
    tenants.get(&tenant).is_some_and(|known| !known.excluded)
}
