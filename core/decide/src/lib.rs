//! Signals and history to shares, one file a policy.
//!
//! [`Decider`] remembers who used which disk how much, and says after each slice whose share changed and why:
//!
//! | file | says |
//! |---|---|
//! | `fennel`, `past_use`, `places` | sparing tenants rise, heavy ones sink |
//! | `equal_part` | who holds the disk for longer than an equal part of its time |
//! | `foresight` | who is expected to be done soon goes ahead |
//! | `interleave` | the burst of one goes first while another's waits |
//! | `deal` | what shares are dealt anew by what is foreseen |
//! | `presence` | who is on a disk, though it was not served in every slice |
//! | `floor`, `floor_level` | everyone who uses the disk keeps a part of it |
//! | `levels` | who steps back, how far and until when |
//! | `credits`, `boosts` | what stepping back earns, and the slices of high priority that it buys |
//! | `coordination`, `operation`, `queue`, `precedence_time` | who waits with an operation, who begins now, and for how long it goes ahead |
//! | `adjustments`, `adjusting` | what the operator gives accounts and takes from them |
//! | `bandwidth` | what each disk delivers |
//! | `crowd`, `demand` | who is beside whom, and who would have used the disk |
//! | `participation`, `member`, `requests`, `answers` | tenants that take part, and what they are answered |
//! | `makespan`, `shortest_first`, `jobs` | which batch job goes first, and what the others keep |
//! | `job_trace`, `characterise` | what a batch job does, slice by slice, and what that makes it |
//! | `stance` | what a tenant's own requests say of its share |
//! | `room` | room below heavy tenants for those that step back or wait |
//! | `operator` | the operator's weight |
//! | `compose` | the factors in order, multiplied |
//! | `disk` | who competes on one disk; finds what changed |
//! | `usage` | one history: its averages, its group, what the store has of it |
//! | `keys` | which tenants share a history |
//! | `migration` | which file of the cache's pool goes to its own disk next, and how fast |
//!
//! Only tenants on the same disk are compared, with everyone who is remembered there, idle or not. A tenant whom a rule
//! excludes is measured too, so that others are not called heavy beside it, but gets no decision and counts as neutral.
//!
//! To add a policy: a file with a type `Rule`, and its line in the list below (docs/extending.md).

mod adjusting;
mod adjustments;
mod answers;
mod bandwidth;
mod boosts;
mod characterise;
mod claims;
mod compose;
mod coordination;
mod credits;
mod crowd;
mod deal;
mod demand;
mod disk;
mod equal_part;
mod fennel;
mod floor;
mod floor_level;
mod foresight;
mod interleave;
mod job_trace;
mod jobs;
mod keys;
mod lag;
mod levels;
mod makespan;
mod member;
mod migration;
mod operation;
mod operator;
mod part;
mod participation;
mod past_use;
mod places;
mod precedence_time;
mod presence;
mod queue;
mod requests;
mod room;
#[cfg(test)]
mod sample_policy;
mod shortest_first;
mod stance;
mod usage;
mod usual_disk;

pub use compose::DecideInput;
pub use jobs::{JobOnDisk, JobView, KnownJob};
pub use migration::{Migration, MigrationOrder, MigrationPace, TargetDisk, ToldBy, WaitingFile};
pub use part::Part;

use crate::compose::SharePolicy;
use crate::deal::Dealing;
use crate::disk::{Deciding, Disk, TenantTerms};
use crate::keys::{Key, Keys};
use crate::participation::Participation;
use crate::past_use::Fennel;
use crate::stance::Stance;
use crate::usage::{Averages, Usage};
use minerva_model::{
    Decision, DeviceId, Effect, EngineConfig, Finding, FindingKind, JobSettings, Nanos, Outlook, Signals, Tenant,
    TenantHistory, TenantId, UsageAverage,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A history is stored at most once in this many slices, however fast it changes: what a crash may cost is bounded by
/// what fits in them, and a store of 1,200 active tenants is not rewritten every second.
const SLICES_BETWEEN_STORES: u64 = 10;
/// No disk moves more than this; a stored average beyond it is damaged.
const BYTES_PER_SECOND_MAX: f64 = 1e15;
/// All of a disk's time at an operator's weight of 1 %; a stored part beyond it is damaged.
const DISK_PART_MAX: f64 = 100.0;

/// One field a policy, in the order of multiplication.
macro_rules! policies {
    ($($(#[$attribute:meta])* $policy:ident,)+) => {
        /// What the policies keep from slice to slice.
        #[derive(Clone, Debug, Default, Serialize, Deserialize)]
        struct Policies {
            $($(#[$attribute])* $policy: $policy::Rule,)+
        }

        impl Policies {
            fn each(&self) -> impl AsRef<[&dyn SharePolicy]> {
                [$($(#[$attribute])* compose::any(&self.$policy)),+]
            }

            fn slice(&mut self, now: Nanos, input: &DecideInput<'_>) {
                $($(#[$attribute])* self.$policy.slice(now, input);)+
            }
        }
    };
}

policies! {
    fennel,
    operator,
    #[cfg(test)]
    sample_policy,
    makespan,
    foresight,
    interleave,
    boosts,
    operation,
    levels,
    room,
    floor,
}

/// What came of a slice.
#[derive(Clone, Debug, Default)]
pub struct Decided {
    /// Who is called back, what was earned, what is to be remembered.
    pub effects: Vec<Effect>,
    /// Every pair whose share, group or requests changed since it was last told, by disk, then tenant.
    pub decisions: Vec<Decision>,
    /// Histories that the store should have.
    pub histories: Vec<TenantHistory>,
}

/// Decides shares. See the crate's documentation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Decider {
    policies: Policies,
    outlook: Outlook,
    fennel: Fennel,
    floor_permille: u32,
    #[serde(default)]
    dealing: Dealing,
    keys: Keys,
    /// Sorted by id.
    tenants: Vec<(TenantId, TenantTerms)>,
    disks: BTreeMap<DeviceId, Disk>,
    /// Disks on which tenants can ask for something, used or not.
    devices: BTreeSet<DeviceId>,
    participation: Participation,
    #[serde(alias = "turn")]
    slice_number: u64,
    now: Nanos,
}

impl Default for Decider {
    fn default() -> Self {
        let config = EngineConfig::default();
        Self {
            policies: Policies::default(),
            outlook: Outlook::default(),
            fennel: Fennel::new(&config.fennel, Nanos::ZERO),
            floor_permille: config.fennel.floor_permille,
            dealing: Dealing::default(),
            keys: Keys::default(),
            tenants: Vec::new(),
            disks: BTreeMap::new(),
            devices: BTreeSet::new(),
            participation: Participation::default(),
            slice_number: 0,
            now: Nanos::ZERO,
        }
    }
}

impl Decider {
    /// Takes over the operator's settings. Histories stay; what changes by them is told after the next slice.
    pub fn configure(&mut self, now: Nanos, config: &EngineConfig) {
        self.advance(now);
        // Averages are converted to epochs that begin now, which mean the same under any half-life.
        self.rebase();
        self.fennel = Fennel::new(&config.fennel, self.now);
        self.floor_permille = config.fennel.floor_permille;
        self.dealing = Dealing::of(&config.forecast);
        self.participation.configure(config);
        self.policies.makespan.configure(&config.makespan);
    }

    /// A tenant appeared, or its rule changed. Its past counts unless something fresher is known already; a row that
    /// belongs to someone else or holds no sane number is dropped and reported.
    pub fn tenant_seen(&mut self, now: Nanos, tenant: &Tenant, histories: &[TenantHistory]) -> Vec<Finding> {
        self.advance(now);
        let name = tenant.history_key();
        let key = self.keys.join(&name, tenant.group.is_some());
        let terms = TenantTerms { key, weight_percent: tenant.weight_percent, excluded: tenant.excluded };
        self.participation.tenant_seen(tenant);
        self.policies.makespan.tenant_seen(tenant);
        match self.tenants.binary_search_by_key(&tenant.id, |(id, _)| *id) {
            Ok(index) => {
                let old = std::mem::replace(&mut self.tenants[index].1, terms);
                self.leave(old.key);
                self.disks.values_mut().for_each(|disk| disk.set_terms(tenant.id, terms));
            }
            Err(index) => self.tenants.insert(index, (tenant.id, terms)),
        }
        let mut dropped = 0;
        for history in histories {
            if history.key == name && is_sane(history) {
                self.restore(tenant.id, terms, history);
            } else {
                dropped += 1;
            }
        }
        (dropped > 0).then(|| history_dropped(tenant, dropped)).into_iter().collect()
    }

    /// A tenant is gone. The history of an operator's group stays, that of a cgroup goes, as the cgroup never comes back. What
    /// it declared goes too, and is no longer to be remembered.
    pub fn tenant_gone(&mut self, id: TenantId) -> Vec<Effect> {
        let forgotten = self.participation.tenant_gone(id);
        let run = self.policies.makespan.tenant_gone(id);
        if let Ok(index) = self.tenants.binary_search_by_key(&id, |(tenant, _)| *tenant) {
            let (_, terms) = self.tenants.remove(index);
            self.disks.values_mut().for_each(|disk| disk.drop_claim(id));
            self.leave(terms.key);
        }
        let ended = run.map(|run| Effect::JobEnded(Box::new(run)));
        forgotten.into_iter().chain(ended).collect()
    }

    /// A tenant says that it is this batch job, or that it is none any more; what is to be remembered of the one before.
    pub fn job_declared(&mut self, tenant: TenantId, job: Option<JobSettings>) -> Option<Effect> {
        self.policies.makespan.declared(tenant, job).map(|run| Effect::JobEnded(Box::new(run)))
    }

    /// What earlier runs of a job moved, oldest first.
    pub fn job_runs_recalled(&mut self, name: &str, bytes: &[u64]) {
        self.policies.makespan.recalled(name, bytes);
    }

    /// Whether any tenant is a batch job.
    pub fn has_jobs(&self) -> bool {
        self.policies.makespan.has_jobs()
    }

    /// All batch jobs that are there, by tenant.
    pub fn jobs(&self) -> Vec<JobView> {
        self.policies.makespan.views(self.now, &self.outlook)
    }

    /// A batch job's number in the order, from 1, and how many jobs there are; nothing while none goes before another.
    pub fn job_order(&self, tenant: TenantId) -> Option<(u32, u32)> {
        self.policies.makespan.order(tenant)
    }

    /// Names of batch jobs of which runs are known, by name.
    pub fn known_jobs(&self) -> impl Iterator<Item = KnownJob> {
        self.policies.makespan.known_jobs()
    }

    /// A disk appeared: tenants can ask for something on it.
    pub fn device_seen(&mut self, id: DeviceId) {
        self.devices.insert(id);
    }

    /// A disk is gone, and with it what was known of its use: its number may come back as another disk. Who waited for it is
    /// called back.
    pub fn device_gone(&mut self, id: DeviceId) -> Vec<Effect> {
        self.devices.remove(&id);
        self.disks.remove(&id);
        self.participation.device_gone(id)
    }

    /// A slice ended: learns from it, and says what follows. Rows of unknown tenants are passed over.
    pub fn slice(&mut self, now: Nanos, input: DecideInput<'_>) -> Decided {
        // What tenants took part in comes first, since shares follow from it; it sees the shares of the slice that ended.
        let effects = self.take_part(now, input.signals);
        self.policies.slice(self.now, &input);
        let DecideInput { signals, outlook } = input;
        self.outlook = outlook;
        let decisions = self.decide(signals);
        let histories = self.histories();
        Decided { effects, decisions, histories }
    }

    /// What is expected of the slice that began.
    pub fn outlook(&self) -> &Outlook {
        &self.outlook
    }

    /// Whether the tenant is there.
    pub fn knows(&self, tenant: TenantId) -> bool {
        self.tenants.binary_search_by_key(&tenant, |(id, _)| *id).is_ok()
    }

    fn decide(&mut self, signals: &Signals) -> Vec<Decision> {
        self.slice_number += 1;
        self.learn(signals);
        let mut news = Vec::new();
        let Self { disks, participation, fennel, policies, outlook, .. } = self;
        let quiet = participation.is_quiet();
        let policies = policies.each();
        for (device, disk) in disks {
            let stance = |tenant| participation.stance(tenant, *device);
            let stance: Option<&dyn Fn(TenantId) -> Stance> = if quiet { None } else { Some(&stance) };
            let by = Deciding {
                device: *device,
                now: self.now,
                slice_number: self.slice_number,
                fennel,
                policies: policies.as_ref(),
                outlook,
                floor_permille: self.floor_permille,
                dealing: self.dealing,
            };
            disk.decide(by, stance, &mut news);
        }
        if !quiet {
            news.iter_mut().for_each(|decision| participation.name_requests(decision));
        }
        news
    }

    /// Every pair that differs from a newcomer is told again by the next [`Decider::slice`].
    pub fn forget_told(&mut self) {
        self.disks.values_mut().for_each(Disk::forget_told);
    }

    /// What stands decided for a pair, with its reasons; nothing if the tenant or the disk is unknown, or the tenant
    /// excluded.
    pub fn decision(&self, tenant: TenantId, device: DeviceId) -> Option<Decision> {
        let index = self.tenants.binary_search_by_key(&tenant, |(id, _)| *id).ok()?;
        let terms = self.tenants[index].1;
        let disk = self.disks.get(&device)?;
        if terms.excluded {
            return None;
        }
        let policies = self.policies.each();
        let mut decision = disk.decision(self.deciding(device, policies.as_ref()), tenant, terms);
        self.participation.name_requests(&mut decision);
        Some(decision)
    }

    /// What stands decided for every pair that ever used its disk, by disk, then tenant.
    pub fn decisions(&self) -> impl Iterator<Item = Decision> {
        self.disks.iter().flat_map(move |(device, disk)| {
            disk.steered().map(move |(tenant, terms)| {
                let policies = self.policies.each();
                let mut decision = disk.decision(self.deciding(*device, policies.as_ref()), tenant, terms);
                self.participation.name_requests(&mut decision);
                decision
            })
        })
    }

    /// Histories that changed by what would matter and were not stored lately. A slice in which nobody used a disk gives none.
    fn histories(&mut self) -> Vec<TenantHistory> {
        // In turns, so that histories that began together are not all stored in one slice for ever.
        let slice_number = self.slice_number;
        self.remember(|key, usage| {
            let its_turn = (slice_number + key as u64).is_multiple_of(SLICES_BETWEEN_STORES);
            (its_turn || !usage.was_stored()) && usage.store_due()
        })
    }

    /// Every history of which the store has not exactly what stands here; for the end.
    pub fn all_histories(&mut self, now: Nanos) -> Vec<TenantHistory> {
        self.advance(now);
        self.remember(|_, usage| usage.store_differs())
    }

    fn deciding<'a>(&'a self, device: DeviceId, policies: &'a [&'a dyn SharePolicy]) -> Deciding<'a> {
        Deciding {
            device,
            now: self.now,
            slice_number: self.slice_number,
            fennel: &self.fennel,
            policies,
            outlook: &self.outlook,
            floor_permille: self.floor_permille,
            dealing: self.dealing,
        }
    }

    fn remember(&mut self, due: impl Fn(Key, &Usage) -> bool) -> Vec<TenantHistory> {
        let mut rows = Vec::new();
        for (device, disk) in &mut self.disks {
            for (key, usage) in disk.usages_mut() {
                let (true, Some(group)) = (due(key, usage), usage.group) else { continue };
                usage.stored();
                rows.push(TenantHistory {
                    key: self.keys.name(key).to_owned(),
                    device: *device,
                    usage: self.fennel.rates(usage.averages, self.now),
                    disk_part: usage.held * self.fennel.held_scale(self.now),
                    group,
                    age: Nanos::ZERO,
                });
            }
        }
        rows
    }

    fn learn(&mut self, signals: &Signals) {
        // Nearly all rows of a slice have the same length, and the gain of a length costs four transcendental functions.
        let mut gain = (Nanos::ZERO, Averages::default());
        let mut known: Option<(TenantId, TenantTerms)> = None;
        for row in &signals.io {
            if known.is_none_or(|(tenant, _)| tenant != row.tenant) {
                let index = self.tenants.binary_search_by_key(&row.tenant, |(id, _)| *id);
                known = index.ok().map(|index| self.tenants[index]);
            }
            let Some((tenant, terms)) = known else { continue };
            if gain.0 != row.elapsed {
                gain = (row.elapsed, self.fennel.gain(self.now, row.elapsed));
            }
            let disk = self.disks.entry(row.device).or_default();
            let used = self.fennel.used(row, terms.weight());
            let active = row.active.then_some((self.slice_number, self.now));
            disk.learn(tenant, terms, active, used, gain.1);
        }
    }

    fn restore(&mut self, tenant: TenantId, terms: TenantTerms, history: &TenantHistory) {
        let averages = self.fennel.averages(history.usage, history.age, self.now);
        let held = self.fennel.held(history.disk_part, history.age, self.now);
        let group = self.fennel.known_group(history.group);
        let disk = self.disks.entry(history.device).or_default();
        let usage = disk.usage_mut(terms.key);
        if usage.group.is_none() && usage.averages == Averages::default() {
            *usage = Usage::restored(averages, held, terms.weight(), group);
        }
        disk.claim(tenant, terms);
    }

    fn leave(&mut self, key: Key) {
        if self.keys.leave(key) {
            self.disks.values_mut().for_each(|disk| disk.drop_usage(key));
        }
    }

    fn rebase(&mut self) {
        let factors = self.fennel.rebase(self.now);
        for disk in self.disks.values_mut() {
            disk.usages_mut().for_each(|(_, usage)| usage.convert(factors));
        }
    }

    /// Groups without members whose use has decayed to less than a byte a second, so that names which come and go do not
    /// pile up.
    fn forget_orphans(&mut self) {
        for key in self.keys.orphans() {
            let faded = self.disks.values().all(|disk| {
                let rates = self.fennel.rates(disk.usage(key).averages, self.now);
                rates.recent_bytes_per_second.max(rates.long_term_bytes_per_second) < 1.0
            });
            if faded {
                self.keys.forget(key);
                self.disks.values_mut().for_each(|disk| disk.drop_usage(key));
            }
        }
    }

    /// Time does not go back here, whatever the driver's clock says, and a leap of days, as after a suspension, is no more
    /// than a new epoch.
    fn advance(&mut self, now: Nanos) {
        self.now = self.now.max(now);
        if self.fennel.rebase_due(self.now) {
            self.rebase();
            self.forget_orphans();
        }
    }
}

fn is_sane(history: &TenantHistory) -> bool {
    let UsageAverage { recent_bytes_per_second, long_term_bytes_per_second } = history.usage;
    let rates = [recent_bytes_per_second, long_term_bytes_per_second];
    rates.iter().all(|rate| (0.0..=BYTES_PER_SECOND_MAX).contains(rate))
        && (0.0..=DISK_PART_MAX).contains(&history.disk_part)
}

fn history_dropped(tenant: &Tenant, rows: usize) -> Finding {
    Finding {
        kind: FindingKind::HistoryDropped,
        device: None,
        tenant: Some(tenant.id),
        message: format!(
            "{rows} remembered rows of {} belong to another tenant or hold no sane number. They are ignored, and its use \
             is learned afresh. If this comes again, the store is damaged: move it away and restart.",
            tenant.name
        ),
    }
}
