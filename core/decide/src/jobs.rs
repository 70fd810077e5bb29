//! Which tenants are batch jobs and who says so, and what people are told of them.

use crate::job_makers::Makers;
use minerva_model::{DeviceId, JobPhase, JobSettings, Nanos, Tenant, TenantId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A job that moves more than this many times what was declared is not believed again, whatever else its tenant declares.
const OVERRUN_MAX: u64 = 2;
/// What was moved as earlier jobs counts half as much after it, so that honest jobs of one service do not add up for days.
const PAST_HALF_LIFE: Nanos = Nanos::from_secs(900);

/// Jobs that a rule of the operator's names, and those that tenants say they are, which counts for more.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Named {
    ruled: BTreeMap<TenantId, JobSettings>,
    declared: BTreeMap<TenantId, JobSettings>,
    /// Tenants whose declarations are not believed.
    overrun: BTreeSet<TenantId>,
    /// What tenants that declared anything moved as jobs that they declared and that are over.
    past: BTreeMap<TenantId, u64>,
    /// Up to when that was halved: whole half-lives, the same for all, so that jobs that end often do not put it off.
    #[serde(default)]
    halved_at: Nanos,
    #[serde(default)]
    makers: Makers,
}

impl Named {
    pub(crate) fn is_empty(&self) -> bool {
        self.ruled.is_empty() && self.declared.is_empty()
    }

    pub(crate) fn job(&self, tenant: TenantId) -> Option<&JobSettings> {
        self.declared.get(&tenant).or_else(|| self.ruled.get(&tenant))
    }

    pub(crate) fn has_declared(&self, tenant: TenantId) -> bool {
        self.declared.contains_key(&tenant)
    }

    pub(crate) fn tenants(&self) -> BTreeSet<TenantId> {
        self.declared.keys().chain(self.ruled.keys()).copied().collect()
    }

    /// Whether that changes what is there.
    pub(crate) fn differs(&self, tenant: TenantId, declared: Option<&JobSettings>) -> bool {
        self.declared.get(&tenant) != declared
    }

    pub(crate) fn declare(&mut self, tenant: TenantId, job: Option<JobSettings>) {
        let Some(job) = job else {
            self.declared.remove(&tenant);
            return;
        };
        self.declared.insert(tenant, job);
        self.past.entry(tenant).or_insert_with(|| self.makers.past(tenant));
    }

    /// What other tenants of the same maker did is to count for a tenant, and what it does for them.
    pub(crate) fn note_maker(&mut self, tenant: &Tenant) {
        self.makers.tenant_seen(tenant);
    }

    /// A slice ended. `fades`: what was moved as jobs that are over counts less and less.
    pub(crate) fn advance(&mut self, now: Nanos, fades: bool) {
        self.makers.advance(now);
        let half_lives = now.since(self.halved_at).0 / PAST_HALF_LIFE.0;
        self.halved_at += Nanos(half_lives * PAST_HALF_LIFE.0);
        if fades && half_lives > 0 {
            let halvings = u32::try_from(half_lives).unwrap_or(u32::MAX);
            self.past.values_mut().for_each(|bytes| *bytes = bytes.checked_shr(halvings).unwrap_or(0));
        }
    }

    /// What the rules say; whether that changes what the tenant is.
    pub(crate) fn rule(&mut self, tenant: TenantId, job: Option<&JobSettings>) -> bool {
        if self.ruled.get(&tenant) == job {
            return false;
        }
        match job {
            Some(job) => self.ruled.insert(tenant, job.clone()),
            None => self.ruled.remove(&tenant),
        };
        !self.has_declared(tenant)
    }

    pub(crate) fn forget(&mut self, tenant: TenantId) {
        self.ruled.remove(&tenant);
        self.declared.remove(&tenant);
        self.overrun.remove(&tenant);
        self.past.remove(&tenant);
        self.makers.tenant_gone(tenant);
    }

    /// A job that the tenant declared is over, and has had so much. `fades`: see [`Named::advance`].
    pub(crate) fn ended(&mut self, tenant: TenantId, bytes: u64, fades: bool) {
        if self.has_declared(tenant) {
            let past = self.past.entry(tenant).or_default();
            *past = past.saturating_add(bytes);
            self.makers.ended(tenant, *past, fades);
        }
    }

    pub(crate) fn past(&self, tenant: TenantId) -> u64 {
        self.past.get(&tenant).copied().unwrap_or(0)
    }

    /// A job has had so much.
    pub(crate) fn attained(&mut self, tenant: TenantId, bytes: u64) {
        let declared = self.job(tenant).and_then(|job| job.bytes);
        if declared.is_some_and(|declared| bytes > declared.saturating_mul(OVERRUN_MAX)) {
            self.overrun.insert(tenant);
            // What the operator's rule has wrong is no lie of theirs.
            if self.has_declared(tenant) {
                self.makers.overrun(tenant);
            }
        }
    }

    /// What is said of the tenant counts again.
    pub(crate) fn believe(&mut self, tenant: TenantId) {
        self.overrun.remove(&tenant);
    }

    pub(crate) fn is_overrun(&self, tenant: TenantId) -> bool {
        self.overrun.contains(&tenant)
    }

    /// The tenant says how large its job is, and somebody of the same maker moved more than it said.
    pub(crate) fn is_of_overrun(&self, tenant: TenantId) -> bool {
        self.has_declared(tenant) && self.makers.is_overrun(tenant)
    }
}

/// A batch job, for people.
#[derive(Clone, Debug, PartialEq)]
pub struct JobView {
    /// Who runs it.
    pub tenant: TenantId,
    /// What it is.
    pub job: JobSettings,
    /// The tenant says so itself; else a rule or the settings do.
    pub is_declared: bool,
    /// It moved much more than was declared, which counts no longer. Of a size that does not count because of others the reason tells.
    pub is_overrun: bool,
    /// Since its first transfer.
    pub age: Nanos,
    /// What it did so far.
    pub phases: Vec<JobPhase>,
    /// The disks that it used, by number.
    pub disks: Vec<JobOnDisk>,
}

/// A batch job on one of its disks.
#[derive(Clone, Debug, PartialEq)]
pub struct JobOnDisk {
    /// Which.
    pub device: DeviceId,
    /// What it moved there.
    pub attained_bytes: u64,
    /// Seconds that it needs, at the highest rate that it had, or, of one with a place in the order, as that was found.
    pub remaining_seconds: f64,
    /// How that is known.
    pub basis: &'static str,
    /// How far that can be relied on, 0 to 1.
    pub certainty: f64,
    /// Its number in the order, from 1, and how many jobs there are; nothing while none goes before another.
    pub order: Option<(u32, u32)>,
    /// Why.
    pub reason: String,
}

/// What is known of a name.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownJob {
    /// The name.
    pub name: String,
    /// Runs that ended.
    pub runs: u32,
    /// What a run is expected to move.
    pub mean_bytes: f64,
    /// Mean distance from that.
    pub spread_bytes: f64,
}
