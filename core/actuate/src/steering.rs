//! One disk: its facts, the suitability on it, and the means by which shares are made to bite on it.

mod hold_back;

use crate::cap_knobs::wish_cap;
use crate::caps::Dealer;
use crate::disk_use::{Claim, disk_use};
use crate::disk_wishes::{ByUse, DiskWish, disk_wishes};
use crate::groups::{GroupNumber, Groups};
use crate::hierarchy::{Own, Tree};
use crate::idle::IdleTenants;
use crate::knob::{self, Holder, KnobKey};
use crate::ledger::Ledger;
use crate::low_latency_by_use::LowLatencyByUse;
use crate::setting::Setting;
use crate::strict_by_use::StrictByUse;
use crate::suitability::{Suitability, not_calibrated, suitability};
use crate::waiting_jobs::WaitingJobs;
use minerva_model::{
    BackEnd, CgroupVersion, Device, DeviceFacts, DeviceSettings, Effect, EngineConfig, Finding, FindingKind, KnobFile,
    Nanos, Signals, TenantId,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// How shares are made to bite.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Means {
    /// Not at all: nothing bites, or the mode is not `enforce`.
    Watch,
    Weights {
        file: KnobFile,
        tree: Tree,
    },
    Caps {
        back_end: BackEnd,
        dealer: Dealer,
    },
}

/// One disk.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Steering {
    device: Device,
    #[serde(alias = "verdict")]
    suitability: Suitability,
    /// The suitability that people were last told.
    told: Option<Suitability>,
    means: Means,
    idle: IdleTenants,
    #[serde(default)]
    jobs: WaitingJobs,
    #[serde(default)]
    strict: StrictByUse,
    #[serde(default)]
    low_latency: LowLatencyByUse,
    /// The back end that `means` is for.
    in_use: BackEnd,
    /// Who is never capped here, though others make room for it.
    #[serde(default)]
    spared: BTreeSet<TenantId>,
    /// Background work that takes time from others here, and is never capped.
    #[serde(default)]
    takers: BTreeSet<TenantId>,
    /// In the slice that began a tenant would be capped if memory were not short.
    #[serde(default)]
    refuses_caps: bool,
}

impl Steering {
    /// A disk seen for the first time.
    pub(crate) fn new(device: &Device, config: &EngineConfig) -> Self {
        let suitability = suitability(&device.facts, config.devices.get(&device.name)).named(&device.name);
        Self {
            device: device.clone(),
            suitability,
            told: None,
            means: Means::Watch,
            idle: IdleTenants::default(),
            jobs: WaitingJobs::default(),
            strict: StrictByUse::default(),
            low_latency: LowLatencyByUse::default(),
            in_use: BackEnd::Observe,
            spared: BTreeSet::new(),
            takers: BTreeSet::new(),
            refuses_caps: false,
        }
    }

    /// Servers of ours with contracts, before each [`Steering::plan`]: a cap on one would hold back all its guests.
    pub(crate) fn spare(&mut self, servers: BTreeSet<TenantId>) {
        self.spared = servers;
    }

    /// What the kernel calls the disk.
    pub(crate) fn name(&self) -> &str {
        &self.device.name
    }

    pub(crate) fn suitability(&self) -> &Suitability {
        &self.suitability
    }

    /// The disk was looked at again.
    pub(crate) fn seen(&mut self, device: &Device) {
        self.device = device.clone();
    }

    /// One of the disk's own knobs was read: the facts follow at once, not when the disk is next looked at.
    pub(crate) fn knob_reads(&mut self, setting: Setting) {
        let facts = &mut self.device.facts;
        match setting {
            Setting::Elevator(name) if facts.elevator.as_deref() != Some(&*name) => {
                // BFQ always starts with low_latency 1 and strict_guarantees 0.
                facts.bfq_low_latency = (name == "bfq").then_some(true);
                facts.bfq_strict_guarantees = (name == "bfq").then_some(false);
                facts.elevator = Some(name);
            }
            Setting::LowLatency(on) => facts.bfq_low_latency = Some(on),
            Setting::StrictGuarantees(on) => facts.bfq_strict_guarantees = Some(on),
            Setting::IoCost(enabled) => facts.iocost_enabled = enabled,
            Setting::Elevator(_)
            | Setting::Weight(_)
            | Setting::ServerWeight(_)
            | Setting::Limits { .. }
            | Setting::Limit(_) => {}
        }
    }

    /// Draws the consequences of new facts or settings. True if the means are new, so that every tenant has to be entered.
    pub(crate) fn refresh(&mut self, config: &EngineConfig, enforce: bool, ledger: &mut Ledger) -> bool {
        let settings = config.devices.get(&self.device.name);
        self.suitability = suitability(&self.device.facts, settings).named(&self.device.name);
        let wishes = disk_wishes(&self.device.facts, settings, self.by_use());
        let id = self.device.id;
        let key = |file| KnobKey { holder: Holder::Disk(id), device: id, file };
        // Weights go before the elevator that obeys them does.
        let leaving = wishes.iter().any(|wish| {
            !matches!(wish.file, KnobFile::BfqStrictGuarantees | KnobFile::BfqLowLatency)
                && wish.asked.is_none()
                && ledger.held_setting(key(wish.file)).is_some()
        });
        let wanted = if enforce && !leaving { self.suitability.back_end } else { BackEnd::Observe };
        if enforce {
            for DiskWish { file, asked, due } in &wishes {
                if let Some(setting) = asked.as_ref().filter(|_| *due) {
                    ledger.wish(key(*file), setting.clone());
                    if ledger.held_setting(key(*file)) == Some(setting) {
                        // It was seen to stand and the facts say otherwise: somebody changed it, or the facts are old.
                        ledger.look_at(key(*file));
                    }
                }
            }
        }
        let throttle = throttle(&self.device.facts, settings).filter(|_| enforce);
        self.idle.held_back.cap_by(id, throttle, ledger);
        self.jobs.held_back.cap_by(id, throttle, ledger);
        let renewed = wanted != self.in_use;
        if renewed {
            self.leave(ledger);
        }
        if enforce {
            wishes.iter().rev().filter(|wish| wish.asked.is_none()).for_each(|wish| ledger.release(key(wish.file)));
        }
        if renewed {
            self.enter(wanted, config, ledger);
        }
        renewed
    }

    /// Tells people of a new suitability, unless the disk is just being changed: what holds on the way is no news.
    pub(crate) fn tell(&mut self, ledger: &mut Ledger) {
        if self.told.as_ref() != Some(&self.suitability) && !ledger.is_under_way(Holder::Disk(self.device.id)) {
            ledger.effects.push_back(Effect::Found(found(&self.device, &self.suitability)));
            ledger.effects.extend(not_calibrated(&self.device, &self.suitability).map(Effect::Found));
            self.told = Some(self.suitability.clone());
        }
    }

    /// Forgets what was planned, so that everything is wished for again.
    pub(crate) fn plan_afresh(&mut self) {
        self.means = Means::Watch;
        self.in_use = BackEnd::Observe;
    }

    fn leave(&mut self, ledger: &mut Ledger) {
        let id = self.device.id;
        match self.means {
            Means::Watch => {}
            // The kernel dropped the weights when the disk left BFQ, and refuses them until it is back.
            Means::Weights { file: file @ (KnobFile::BfqWeight | KnobFile::BfqV1WeightDevice), .. }
                if self.device.facts.elevator.as_deref() != Some("bfq") =>
            {
                ledger.suspend(id, file);
            }
            Means::Weights { .. } | Means::Caps { .. } => ledger.release_cgroups(id),
        }
    }

    fn enter(&mut self, back_end: BackEnd, config: &EngineConfig, ledger: &mut Ledger) {
        self.in_use = back_end;
        self.means = match (knob::weight_knob(back_end), back_end) {
            (Some((file, weight_max)), _) => {
                ledger.resume(self.device.id, file);
                Means::Weights { file, tree: Tree::new(weight_max, config.actuation.manage_ancestors) }
            }
            (None, BackEnd::Max | BackEnd::ThrottleV1) => Means::Caps { back_end, dealer: Dealer::default() },
            (None, _) => Means::Watch,
        };
    }

    /// A tenant's share or activity changed.
    pub(crate) fn set(&mut self, groups: &Groups, group: GroupNumber, own: Own) {
        if let Means::Weights { tree, .. } = &mut self.means {
            tree.set(groups, group, Some(own));
        }
    }

    /// A tenant is gone; its group still stands in `groups`.
    pub(crate) fn unset(&mut self, groups: &Groups, group: GroupNumber, tenant: TenantId) {
        self.idle.held_back.forget(tenant);
        self.jobs.held_back.forget(tenant);
        match &mut self.means {
            Means::Watch => {}
            Means::Weights { tree, .. } => tree.set(groups, group, None),
            Means::Caps { dealer, .. } => dealer.forget(tenant),
        }
    }

    /// A tenant was excluded or is steered again: what was dealt to it counts no more.
    pub(crate) fn forget_cap(&mut self, tenant: TenantId) {
        self.idle.held_back.forget(tenant);
        self.jobs.held_back.forget(tenant);
        if let Means::Caps { dealer, .. } = &mut self.means {
            dealer.forget(tenant);
        }
    }

    /// What kept a tenant's cap from being set may be no more: it is set again though it is the same.
    pub(crate) fn deal_afresh(&mut self, tenant: TenantId) {
        if let Means::Caps { dealer, .. } = &mut self.means {
            dealer.deal_afresh(tenant);
        }
    }

    /// Groups are gone with their last tenant.
    pub(crate) fn forget(&mut self, gone: &[GroupNumber]) {
        if let Means::Weights { tree, .. } = &mut self.means {
            tree.forget(gone);
        }
    }

    /// Wishes for what changed since the last slice.
    pub(crate) fn plan(
        &mut self,
        now: Nanos,
        config: &EngineConfig,
        groups: &Groups,
        claims: &BTreeMap<TenantId, Claim>,
        signals: &Signals,
        ledger: &mut Ledger,
    ) {
        let device = self.device.id;
        match &mut self.means {
            Means::Watch => {}
            Means::Weights { file, tree } => {
                for (holder, weight) in tree.changes(groups) {
                    let key = KnobKey { holder, device, file: *file };
                    match weight {
                        Some(weight) => ledger.wish(key, Setting::Weight(weight)),
                        None => ledger.release(key),
                    }
                }
            }
            Means::Caps { back_end, dealer } => {
                let capacity = config.devices.get(&self.device.name).and_then(|disk| disk.bandwidth_bytes_per_second);
                let (disk, uses) = disk_use(device, capacity, config, claims, signals);
                let dealt = dealer.deal(now, disk, &uses);
                for (tenant, cap) in dealt.into_iter().filter(|(tenant, _)| !self.spared.contains(tenant)) {
                    wish_cap(ledger, *back_end, tenant, device, cap.map(|cap| [cap.read, cap.write]));
                }
            }
        }
    }

    /// Which of BFQ's switches are to differ from how they were found because of what the tenants do.
    const fn by_use(&self) -> ByUse {
        ByUse { strict: self.strict.is_set(), no_low_latency: self.low_latency.is_taken() }
    }

    /// What a slice shows of the disk, before each [`Steering::plan`]; true if one of its own settings is to be switched.
    pub(crate) fn watch_use(&mut self, config: &EngineConfig, signals: &Signals, ledger: &mut Ledger) -> bool {
        let (id, before, rotational) = (self.device.id, self.by_use(), self.device.facts.rotational);
        let settings = config.devices.get(&self.device.name);
        let row =
            signals.devices.binary_search_by_key(&id, |disk| disk.device).ok().map(|index| &signals.devices[index]);
        let rows = || signals.io.iter().filter(|row| row.device == id);
        // Measured on disks that turn only.
        let follows = settings.and_then(|settings| settings.strict_guarantees_by_use);
        let strict = if !rotational || !follows.unwrap_or(config.actuation.strict_guarantees_by_use) {
            self.strict = StrictByUse::default();
            None
        } else {
            row.and_then(|row| self.strict.slice(row, rows()))
        };
        let low_latency = if settings.is_some_and(|settings| settings.low_latency_by_use) {
            row.and_then(|row| self.low_latency.slice(rotational, row, rows()))
        } else {
            self.low_latency = LowLatencyByUse::default();
            None
        };
        let said = [("strict_guarantees", strict), ("low_latency", low_latency)];
        for (name, why) in said.into_iter().filter_map(|(name, why)| Some((name, why?))) {
            let message = format!("{name} of {} {why}", self.device.name);
            let (kind, device) = (FindingKind::Switched, Some(id));
            ledger.effects.push_back(Effect::Found(Finding { kind, device, tenant: None, message }));
        }
        self.by_use() != before
    }

    /// Whether caps may stand; before each [`Steering::plan`].
    pub(crate) fn may_cap(&mut self, may: bool) {
        if let Means::Caps { dealer, .. } = &mut self.means {
            dealer.may_cap(may);
        }
    }

    /// The disk is steered by caps.
    pub(crate) fn has_caps(&self) -> bool {
        matches!(self.means, Means::Caps { .. })
    }
}

/// How a tenant can be capped on a disk, whatever its back end is; not where the operator wants it watched only.
fn throttle(facts: &DeviceFacts, settings: Option<&DeviceSettings>) -> Option<BackEnd> {
    let asked = settings.and_then(|settings| settings.back_end).or(facts.back_end_forced);
    match facts.cgroup {
        _ if !facts.throttle_available || !facts.controller_enabled || asked == Some(BackEnd::Observe) => None,
        CgroupVersion::V1 => Some(BackEnd::ThrottleV1),
        CgroupVersion::V2 => Some(BackEnd::Max),
        CgroupVersion::Absent => None,
    }
}

fn found(device: &Device, suitability: &Suitability) -> Finding {
    let Suitability { back_end, bites, reason, remedy } = suitability;
    let name = &device.name;
    let mut message = match bites {
        true => format!("{name} can be steered through {back_end}: {reason}."),
        false => format!("{name} is only watched: {reason}."),
    };
    if let Some(remedy) = remedy {
        message.push_str(&format!(" Remedy: {remedy}."));
    }
    let kind = if *bites { FindingKind::Steerable } else { FindingKind::NotSteerable };
    Finding { kind, device: Some(device.id), tenant: None, message }
}
