//! Batch jobs that read and write at once seek more and end later, all of them; in turns, the shortest first, most end sooner and
//! the last no later (Matteussi and Geyer 2018). Jobs are tenants that say so, or whom the operator names (`jobs`), and they pay: what
//! the first gains the others on its disk give up. Beside tenants that are no jobs that is exact where the jobs' past use is alike; where it is
//! not, factors of unequal shares do not cancel.

mod bursts;
mod caps;
mod ending;
mod lifting;
mod order;
mod policy;
mod position;
mod present;
mod rested;
mod runs;
#[cfg(test)]
mod tests;
mod view;

use crate::compose::Pair;
use crate::job_trace::{Moved, Trace};
use crate::jobs::Named;
use bursts::Course;
use lifting::Lifting;
use minerva_model::{
    Burst, DeviceId, IoSignals, JobPhase, JobRun, JobSettings, MakespanSettings, Nanos, Signals, Tenant, TenantId,
};
use position::{QueuePosition, Running};
use runs::Runs;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A job counts while it used the disk within this time, because one that waits long for its turn rests as little as one that computes
/// for a moment; it holds up nobody meanwhile.
const RESTING: Nanos = Nanos::from_secs(2);

/// Slices in a row in which a job goes first until its own rate counts.
const LED_SLICES: u32 = 2;

/// What stands decided for jobs on the disks on which they go one before the other.
type QueuePositions = BTreeMap<(DeviceId, TenantId), QueuePosition>;

/// Who pays on a disk, and for whom.
#[derive(Clone, Debug, Default)]
struct Sides {
    payers: String,
    ahead: String,
}

/// The policy.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Rule {
    settings: MakespanSettings,
    names: BTreeMap<TenantId, String>,
    /// Whose they are ([`Tenant::owner`]).
    #[serde(default)]
    owners: BTreeMap<TenantId, String>,
    running: BTreeMap<(DeviceId, TenantId), Running>,
    runs: Runs,
    /// Whether anybody is held back on a disk.
    #[serde(alias = "slack")]
    lifting: BTreeMap<DeviceId, Lifting>,
    places: QueuePositions,
    /// By disk, who pays and who is ahead, as people read it; said for each job that waits, so worked out once.
    #[serde(skip)]
    told: BTreeMap<DeviceId, Sides>,
    /// The jobs that tenants are by their names; none until that is looked up.
    #[serde(skip)]
    by_name: Option<BTreeMap<TenantId, JobSettings>>,
    #[serde(default)]
    named: Named,
    /// What jobs did so far.
    #[serde(default)]
    traces: BTreeMap<TenantId, Trace>,
    /// What jobs moved so far, on all disks.
    #[serde(default)]
    attained: BTreeMap<TenantId, u64>,
    /// What of it they moved on disks that are gone, and the first of these.
    #[serde(default)]
    left: BTreeMap<TenantId, (u64, DeviceId)>,
    /// Where they are in what their names do.
    #[serde(default)]
    courses: BTreeMap<TenantId, Course>,
    /// When each job last transferred or computed.
    #[serde(default)]
    active: BTreeMap<TenantId, Nanos>,
    /// Runs that ended by a rest and were not told yet.
    #[serde(default)]
    rested: Vec<JobRun>,
    /// Whom the operator's rules exclude from steering.
    #[serde(default)]
    excluded: BTreeSet<TenantId>,
    /// Whose run that is under way is only a part of one.
    #[serde(default)]
    parts: BTreeSet<TenantId>,
    /// The operator has jobs that wait capped.
    #[serde(default)]
    cap_jobs: bool,
}

impl Rule {
    /// Takes over the settings. A job whose settings changed has ended, and another begins.
    pub(crate) fn configure(&mut self, settings: &MakespanSettings, cap_jobs: bool) {
        let is_changed = |name: &String| self.settings.jobs.get(name) != settings.jobs.get(name);
        let changed: Vec<TenantId> =
            self.names.iter().filter(|(_, name)| is_changed(name)).map(|(tenant, _)| *tenant).collect();
        changed.into_iter().for_each(|tenant| self.cut(tenant));
        (self.settings, self.cap_jobs) = (settings.clone(), cap_jobs);
        self.by_name = None;
    }

    pub(crate) fn tenant_seen(&mut self, tenant: &Tenant) {
        self.note_excluded(tenant);
        if self.named.rule(tenant.id, tenant.job.as_ref()) {
            self.cut(tenant.id);
            // What was wrong before the operator corrected.
            if self.settings.changed_rules_are_believed {
                self.named.believe(tenant.id);
            }
        }
        if self.names.get(&tenant.id).is_none_or(|known| *known != tenant.name) {
            self.names.insert(tenant.id, tenant.name.clone());
            self.told.clear();
            self.by_name = None;
        }
        self.owners.insert(tenant.id, tenant.owner());
        if self.settings.makers_are_remembered {
            self.named.note_maker(tenant);
        }
    }

    /// A job that becomes excluded has ended: nobody caps it, so nobody is to be capped for it.
    fn note_excluded(&mut self, tenant: &Tenant) {
        if !tenant.excluded {
            self.excluded.remove(&tenant.id);
        } else if !self.excluded.contains(&tenant.id) {
            if self.settings.excluded_are_no_jobs {
                self.cut(tenant.id);
            }
            self.excluded.insert(tenant.id);
        }
    }

    /// The tenant is gone, and with it the job that it ran.
    pub(crate) fn tenant_gone(&mut self, tenant: TenantId) -> Option<JobRun> {
        let run = self.end(tenant);
        self.names.remove(&tenant);
        if let Some(by_name) = &mut self.by_name {
            by_name.remove(&tenant);
        }
        self.owners.remove(&tenant);
        self.excluded.remove(&tenant);
        self.named.forget(tenant);
        run
    }

    /// The tenant says that it is this job from now on, or none; the run of the one before has ended.
    pub(crate) fn declared(&mut self, tenant: TenantId, job: Option<JobSettings>) -> Option<JobRun> {
        if !self.names.contains_key(&tenant) || !self.named.differs(tenant, job.as_ref()) {
            return None;
        }
        let run = self.end(tenant);
        self.named.declare(tenant, job);
        run
    }

    /// What earlier runs moved, oldest first, and in which phases, where those were kept.
    pub(crate) fn recalled(&mut self, name: &str, bytes: &[u64], phases: &[Vec<JobPhase>]) {
        for (run, bytes) in bytes.iter().enumerate().filter(|(_, bytes)| **bytes > 0) {
            self.runs.learn(name, None, *bytes as f64, phases.get(run).map_or(&[], Vec::as_slice));
        }
    }

    /// What the bursts of jobs transfer by earlier runs of their names, on the disks that they use.
    pub(crate) fn bursts(&self) -> Vec<(TenantId, DeviceId, Burst)> {
        let burst = |(device, tenant): &(DeviceId, TenantId)| {
            let known = self.runs.bursts(&self.job(*tenant)?.name)?;
            Some((*tenant, *device, self.courses.get(tenant)?.expected(known)?))
        };
        self.running.keys().filter_map(burst).collect()
    }

    /// A disk is gone; its number may come back as another.
    pub(crate) fn device_gone(&mut self, device: DeviceId) {
        if !self.settings.knowledge_fades {
            return;
        }
        self.leave(device);
        self.running.retain(|(on, _), _| *on != device);
        self.places.retain(|(on, _), _| *on != device);
        self.told.remove(&device);
        self.lifting.remove(&device);
    }

    fn job(&self, tenant: TenantId) -> Option<&JobSettings> {
        if self.settings.excluded_are_no_jobs && self.excluded.contains(&tenant) {
            return None;
        }
        self.named.job(tenant).or_else(|| self.job_by_name(tenant))
    }

    /// The job that a tenant of its name is.
    fn job_by_name(&self, tenant: TenantId) -> Option<&JobSettings> {
        match &self.by_name {
            Some(by_name) => by_name.get(&tenant),
            None => self.settings.jobs.get(self.names.get(&tenant)?),
        }
    }

    /// Looks up who is a job by its name, once until names or settings change: several times a slice that is asked of each tenant.
    fn look_up_names(&mut self) {
        if self.by_name.is_none() {
            let job = |(tenant, name): (&TenantId, &String)| Some((*tenant, self.settings.jobs.get(name)?.clone()));
            self.by_name = Some(self.names.iter().filter_map(job).collect());
        }
    }

    /// Something is known of a job's size beside what it had so far.
    fn is_sized(&self, job: &JobSettings) -> bool {
        job.bytes.is_some() || self.runs.bytes(&job.name).is_some()
    }

    /// Whether any tenant is a job.
    pub(crate) fn has_jobs(&self) -> bool {
        !(self.settings.jobs.is_empty() && self.named.is_empty())
    }

    /// What a tenant moved on all disks since its job began.
    fn attained(&self, tenant: TenantId) -> u64 {
        self.attained.get(&tenant).copied().unwrap_or(0)
    }

    /// What each job did in the slice, on all disks together.
    fn trace(&mut self, signals: &Signals) {
        let mut parts: BTreeMap<DeviceId, f64> = BTreeMap::new();
        signals.io.iter().for_each(|row| *parts.entry(row.device).or_default() += row.disk_part());
        let mut moved: BTreeMap<TenantId, (f64, Moved)> = BTreeMap::new();
        for row in signals.io.iter().filter(|row| self.running.contains_key(&(row.device, row.tenant))) {
            let (seconds, moved) = moved.entry(row.tenant).or_default();
            *seconds = seconds.max(row.elapsed.as_secs_f64());
            moved.read_bytes += row.transferred.read_bytes;
            moved.write_bytes += row.transferred.write_bytes;
            if row.disk_part() > moved.part {
                let all = parts.get(&row.device).copied().unwrap_or(0.0);
                (moved.part, moved.others_part) = (row.disk_part(), (all - row.disk_part()).max(0.0));
            }
        }
        // Of who did not use a disk there may be no row; it computes.
        let slice = signals.devices.iter().map(|disk| disk.elapsed.as_secs_f64()).fold(0.0, f64::max);
        for (_, tenant) in self.running.keys() {
            self.traces.entry(*tenant).or_default();
        }
        let of = |tenant: &TenantId| moved.get(tenant).copied().unwrap_or((slice, Moved::default()));
        for (tenant, trace) in &mut self.traces {
            let (seconds, moved) = of(tenant);
            trace.slice(seconds, moved);
            let job = self.named.job(*tenant).or_else(|| self.by_name.as_ref()?.get(tenant));
            let bytes = moved.read_bytes.saturating_add(moved.write_bytes) as f64;
            let known = job.and_then(|job| self.runs.bursts(&job.name));
            self.courses.entry(*tenant).or_default().slice(seconds, bytes, known);
        }
        for usage in &signals.usage {
            if let Some(trace) = self.traces.get_mut(&usage.tenant) {
                trace.used(usage);
            }
        }
    }

    fn note(&mut self, now: Nanos, row: &IoSignals) {
        let bytes = row.transferred.bytes();
        let Some(job) = self.job(row.tenant).filter(|_| bytes > 0) else { return };
        let new = Running { since: now, ..Running::default() };
        let is_sized = self.is_sized(job);
        let leads = self.places.get(&(row.device, row.tenant)).is_some_and(QueuePosition::leads);
        let computes = self.is_computing(row);
        let running = self.running.entry((row.device, row.tenant)).or_insert(new);
        running.led_slices = if leads { running.led_slices.saturating_add(1) } else { 0 };
        // In the first of them an elevator still serves others, and what it has then would be all that is known of it for long. Without sizes
        // another may go first in each slice.
        let enough = if self.settings.in_order_within_slices && is_sized { LED_SLICES } else { 1 };
        running.has_led |= running.led_slices >= enough;
        running.attained_bytes = running.attained_bytes.saturating_add(bytes);
        let forgets = self.settings.knowledge_fades && running.has_led && leads && !computes;
        running.note_rate(row, forgets);
        running.last_used = now;
        let attained = self.attained.entry(row.tenant).or_default();
        *attained = attained.saturating_add(bytes);
        self.named.attained(row.tenant, *attained);
    }

    fn place(&self, pair: &Pair<'_>) -> Option<&QueuePosition> {
        // Who bought a place has it.
        self.places.get(&(pair.device, pair.tenant)).filter(|_| pair.stance.boost.is_none())
    }
}
