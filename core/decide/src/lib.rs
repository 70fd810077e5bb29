//! Signals and history to shares, one file a policy.
//!
//! [`Decider`] remembers who used which disk how much, and says after each slice whose share changed and why:
//!
//! | file | says |
//! |---|---|
//! | `fennel`, `past_use`, `group_scale` | sparing tenants rise, heavy ones sink |
//! | `equal_part` | who holds the disk for longer than an equal part of its time |
//! | `foresight` | who is expected to be done soon goes ahead |
//! | `interleave` | the burst of one goes first while another's waits |
//! | `deal` | what shares are dealt anew by what is foreseen |
//! | `presence` | who is on a disk, though it was not served in every slice |
//! | `floor`, `floor_level` | everyone who uses the disk keeps a part of it |
//! | `levels` | who steps back, how far and until when |
//! | `credits`, `earning`, `account`, `boosts` | what stepping back earns, and the slices of high priority that it buys |
//! | `moved`, `reported` | what the cache moved for a tenant earns |
//! | `coordination`, `operation`, `queue`, `precedence_time` | who waits with an operation, who begins now, and for how long it goes ahead |
//! | `adjustments`, `adjusting` | what the operator gives accounts and takes from them |
//! | `bandwidth` | what each disk delivers |
//! | `crowd`, `demand` | who is beside whom, and who would have used the disk |
//! | `participation`, `member`, `requests`, `answers` | tenants that take part, and what they are answered |
//! | `makespan`, `shortest_first`, `jobs`, `batch_jobs` | which batch job goes first, and what the others keep |
//! | `job_trace`, `characterise` | what a batch job does, slice by slice, and what that makes it |
//! | `background` | work that takes time from others goes before them in it |
//! | `contracts` | what a server of ours needs for its guests' contracts beside others |
//! | `stance` | what a tenant's own requests say of its share |
//! | `room` | room below heavy tenants for those that step back or wait |
//! | `operator` | the operator's weight |
//! | `compose` | the factors in order, multiplied |
//! | `disk` | who competes on one disk; finds what changed |
//! | `usage` | one history: its averages, its group, what the store has of it |
//! | `histories` | what the store is given of them and gives back, and which are forgotten |
//! | `keys` | which tenants share a history |
//! | `migration` | which file of the cache's pool goes to its own disk next, and how fast |
//!
//! Only tenants on the same disk are compared, with everyone who is remembered there, idle or not. A tenant whom a rule
//! excludes is measured too, so that others are not called heavy beside it, but gets no decision and counts as neutral.
//!
//! To add a policy: a file with a type `Rule`, and its line in the list `policies!` below (docs/extending.md).

mod account;
mod adjusting;
mod adjustments;
mod answers;
mod background;
mod bandwidth;
mod batch_jobs;
mod boosts;
mod characterise;
mod claims;
mod compose;
mod contracts;
mod coordination;
mod credits;
mod crowd;
mod deal;
mod demand;
mod disk;
mod earning;
mod equal_part;
mod fennel;
mod floor;
mod floor_level;
mod foresight;
mod group_scale;
mod histories;
mod interleave;
mod job_makers;
mod job_trace;
mod jobs;
mod keys;
mod lag;
mod levels;
mod makespan;
mod member;
mod migration;
mod moved;
mod operation;
mod operator;
mod part;
mod participation;
mod past_use;
mod precedence_time;
mod presence;
mod queue;
mod reported;
mod requests;
mod room;
#[cfg(test)]
mod sample_policy;
mod shortest_first;
mod stance;
mod surroundings;
mod to_pool;
mod usage;
mod usual_disk;

pub use compose::DecideInput;
pub use contracts::ContractsView;
pub use jobs::{JobOnDisk, JobView, KnownJob};
pub use migration::{Migration, MigrationOrder, MigrationPace, MigrationUrgency, TargetDisk, ToldBy, WaitingFile};
pub use part::Part;

use crate::compose::SharePolicy;
use crate::deal::Dealing;
use crate::disk::{Deciding, Disk, TenantTerms};
use crate::keys::Keys;
use crate::participation::Participation;
use crate::past_use::Fennel;
use crate::stance::Stance;
use minerva_model::{
    Decision, DeviceId, Effect, EngineConfig, Finding, Nanos, Outlook, Signals, Tenant, TenantHistory, TenantId,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// One field a policy, in the order of multiplication.
macro_rules! policies {
    ($($(#[$attribute:meta])* $policy:ident,)+) => {
        /// What the policies keep from slice to slice. Recordings made before a policy was added know nothing of it.
        #[derive(Clone, Debug, Default, Serialize, Deserialize)]
        #[serde(default)]
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
    // Past use: always has a factor.
    fennel,
    // The operator's weight, where it is not 100 %.
    operator,
    #[cfg(test)]
    sample_policy,
    // Batch jobs go one before the other, the shortest first, where two or more use a busy disk; not during a boost.
    makespan,
    // Who is expected to be done soon goes ahead, where its forecast and those of others have skill.
    foresight,
    // The burst of one goes first while another's waits, where both alternate between the disk and other work.
    interleave,
    // A boost that was bought: past use does not count, and no operation and no level.
    boosts,
    // An operation is under way: the group that it began with counts, raised while others use the disk.
    operation,
    // A server of ours has beside others what the contracts of its guests reserve.
    contracts,
    // Background work takes time from others, and has it.
    background,
    // The tenant steps back.
    levels,
    // All are raised alike, to make room below for those that step back or for shares that are dealt anew.
    room,
    // Raises the share to the least one; never at level `idle`.
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
        self.policies.makespan.configure(&config.makespan, config.actuation.cap_jobs);
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
            if history.key == name && histories::is_sane(history) {
                self.restore(tenant.id, terms, history);
            } else {
                dropped += 1;
            }
        }
        (dropped > 0).then(|| histories::dropped(tenant, dropped)).into_iter().collect()
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

    /// A disk appeared: tenants can ask for something on it.
    pub fn device_seen(&mut self, id: DeviceId) {
        self.devices.insert(id);
    }

    /// A disk is gone, and with it what was known of its use: its number may come back as another disk. Who waited for it is
    /// called back.
    pub fn device_gone(&mut self, id: DeviceId) -> Vec<Effect> {
        self.devices.remove(&id);
        self.disks.remove(&id);
        self.policies.contracts.device_gone(id);
        self.policies.makespan.device_gone(id);
        self.participation.device_gone(id)
    }

    /// A slice ended: learns from it, and says what follows. Rows of unknown tenants are passed over.
    pub fn slice(&mut self, now: Nanos, input: DecideInput<'_>) -> Decided {
        // What tenants took part in comes first, since shares follow from it; it sees the shares of the slice that ended.
        let mut effects = self.take_part(now, input.signals);
        self.policies.slice(self.now, &input);
        effects.extend(self.policies.makespan.take_rested().into_iter().map(|run| Effect::JobEnded(Box::new(run))));
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
        self.claim_for_servers();
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
}
