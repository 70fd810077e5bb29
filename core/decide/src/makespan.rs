//! Batch jobs that read and write at once seek more and end later, all of them; in turns, the shortest first, most end sooner and
//! the last no later (Matteussi and Geyer 2018). Jobs are tenants that the operator's settings name, and they pay: what the first
//! gains the others on its disk give up. Beside tenants that are no jobs that is exact where the jobs' past use is alike; where it is
//! not, factors of unequal shares do not cancel.

use crate::compose::{DecideInput, Pair, SharePolicy};
use crate::shortest_first::{self, Basis, Job, Remaining};
use minerva_model::{
    DeviceId, Horizon, IoSignals, JobSettings, MakespanSettings, Nanos, Outlook, PolicyName, Reason, Signals, TenantId,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A job counts while it used the disk within this time: phases of computing do not end it, but hold up nobody.
const RESTING: Nanos = Nanos::from_secs(2);
/// A disk that is less busy is not short.
const BUSY_PERMILLE: u32 = 800;
/// Slices in which a disk is not short until nobody is held back on it any more.
const SLICES_BEFORE_LIFTING: u32 = 2;
/// Of the newest run in what is known of a name.
const RUN_WEIGHT: f64 = 0.3;
/// Names whose runs are remembered.
const NAMES_MAX: usize = 1024;

/// Runs of one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Runs {
    mean_bytes: f64,
    /// Mean distance from the mean.
    spread_bytes: f64,
}

/// A job on one disk.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Running {
    attained_bytes: u64,
    bytes_per_second_max: f64,
    since: Nanos,
    last_used: Nanos,
}

/// What stands decided for a job.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct QueuePosition {
    place: usize,
    jobs: usize,
    remaining: Remaining,
    /// No tenant but jobs used the disk.
    alone: bool,
}

/// The policy.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Rule {
    settings: MakespanSettings,
    names: BTreeMap<TenantId, String>,
    running: BTreeMap<(DeviceId, TenantId), Running>,
    runs: BTreeMap<String, Runs>,
    /// Slices since a disk was short.
    slack: BTreeMap<DeviceId, u32>,
    places: BTreeMap<(DeviceId, TenantId), QueuePosition>,
}

impl Rule {
    /// Takes over the settings. A job whose settings changed has ended, and another begins.
    pub(crate) fn configure(&mut self, settings: &MakespanSettings) {
        let is_changed = |name: &String| self.settings.jobs.get(name) != settings.jobs.get(name);
        let changed: Vec<TenantId> =
            self.names.iter().filter(|(_, name)| is_changed(name)).map(|(tenant, _)| *tenant).collect();
        changed.into_iter().for_each(|tenant| self.end(tenant));
        self.settings = settings.clone();
    }

    pub(crate) fn tenant_seen(&mut self, tenant: TenantId, name: &str) {
        if self.names.get(&tenant).is_none_or(|known| known != name) {
            self.names.insert(tenant, name.to_owned());
        }
    }

    pub(crate) fn tenant_gone(&mut self, tenant: TenantId) {
        self.end(tenant);
        self.names.remove(&tenant);
    }

    /// What a job moved in all is what its name does.
    fn end(&mut self, tenant: TenantId) {
        let job = self.job(tenant).map(|job| job.name.clone());
        let mut attained_bytes = 0;
        self.running.retain(|(_, of), running| {
            attained_bytes += if *of == tenant { running.attained_bytes } else { 0 };
            *of != tenant
        });
        self.places.retain(|(_, of), _| *of != tenant);
        if let Some(name) = job.filter(|_| attained_bytes > 0) {
            self.learn(name, attained_bytes as f64);
        }
    }

    fn learn(&mut self, name: String, bytes: f64) {
        if self.runs.len() >= NAMES_MAX && !self.runs.contains_key(&name) {
            self.runs.pop_first();
        }
        let first = Runs { mean_bytes: bytes, spread_bytes: bytes / 2.0 };
        let runs = self.runs.entry(name).or_insert(first);
        let error = bytes - runs.mean_bytes;
        runs.mean_bytes += RUN_WEIGHT * error;
        runs.spread_bytes += RUN_WEIGHT * (error.abs() - runs.spread_bytes);
    }

    fn job(&self, tenant: TenantId) -> Option<&JobSettings> {
        self.settings.jobs.get(self.names.get(&tenant)?)
    }

    fn note(&mut self, now: Nanos, row: &IoSignals) {
        let bytes = row.transferred.bytes();
        if bytes == 0 || self.job(row.tenant).is_none() {
            return;
        }
        let new = Running { since: now, ..Running::default() };
        let running = self.running.entry((row.device, row.tenant)).or_insert(new);
        running.attained_bytes = running.attained_bytes.saturating_add(bytes);
        running.bytes_per_second_max = running.bytes_per_second_max.max(row.bytes_per_second());
        running.last_used = now;
    }

    /// Whether jobs are to go one before the other on a disk: where nothing is known of it, too.
    fn is_short(&mut self, signals: &Signals, device: DeviceId) -> bool {
        let row = signals.devices.iter().find(|row| row.device == device);
        let slack = self.slack.entry(device).or_default();
        *slack = if row.is_some_and(|row| row.busy_permille < BUSY_PERMILLE) { slack.saturating_add(1) } else { 0 };
        *slack < SLICES_BEFORE_LIFTING
    }

    fn known(&self, tenant: TenantId, device: DeviceId, running: &Running, now: Nanos, outlook: &Outlook) -> Job {
        let settings = self.job(tenant);
        let runs = settings.and_then(|job| self.runs.get(&job.name));
        let forecast = outlook.get(tenant, device, Horizon::Session);
        Job {
            declared_bytes: settings.and_then(|job| job.bytes).map(|bytes| bytes as f64),
            history_bytes: runs
                .map(|runs| (runs.mean_bytes, (1.0 - runs.spread_bytes / runs.mean_bytes).clamp(0.0, 1.0))),
            forecast_bytes: forecast.map(|forecast| (forecast.bytes(), forecast.skill)),
            attained_bytes: running.attained_bytes as f64,
            bytes_per_second: running.bytes_per_second_max,
            age_seconds: now.since(running.since).as_secs_f64(),
        }
    }

    fn sort(&mut self, now: Nanos, device: DeviceId, input: &DecideInput<'_>) {
        let is_short = self.is_short(input.signals, device);
        let present: Vec<(TenantId, Job)> = self
            .running
            .range((device, TenantId(0))..=(device, TenantId(u64::MAX)))
            .filter(|(_, running)| now.since(running.last_used) <= RESTING)
            .map(|((_, tenant), running)| (*tenant, self.known(*tenant, device, running, now, &input.outlook)))
            .collect();
        self.places.retain(|(on, _), _| *on != device);
        if !is_short || present.len() < 2 {
            return;
        }
        let is_other = |row: &IoSignals| row.device == device && row.active && self.job(row.tenant).is_none();
        let alone = !input.signals.io.iter().any(is_other);
        let jobs: Vec<Job> = present.iter().map(|(_, job)| *job).collect();
        for ((tenant, job), place) in present.iter().zip(shortest_first::places(&jobs)) {
            let place = QueuePosition { place, jobs: jobs.len(), remaining: job.remaining(), alone };
            self.places.insert((device, *tenant), place);
        }
    }

    fn place(&self, pair: &Pair<'_>) -> Option<&QueuePosition> {
        // Who bought a place has it.
        self.places.get(&(pair.device, pair.tenant)).filter(|_| pair.stance.boost.is_none())
    }
}

impl SharePolicy for Rule {
    fn name(&self) -> PolicyName {
        PolicyName::new("makespan")
    }

    fn slice(&mut self, now: Nanos, input: &DecideInput<'_>) {
        if self.settings.jobs.is_empty() {
            self.running.clear();
            self.places.clear();
            return;
        }
        input.signals.io.iter().for_each(|row| self.note(now, row));
        let mut devices: Vec<DeviceId> = self.running.keys().map(|(device, _)| *device).collect();
        devices.dedup();
        devices.into_iter().for_each(|device| self.sort(now, device, input));
    }

    fn factor(&self, pair: &Pair<'_>, _: f64) -> Option<f64> {
        let place = self.place(pair)?;
        // The past of jobs counts against others, not among themselves: at the least share there is no room below for who waits.
        let past = if place.alone { pair.history() } else { 1.0 };
        Some(shortest_first::part(place.place, place.jobs) / past)
    }

    fn reason(&self, pair: &Pair<'_>, _: f64) -> Reason {
        let Some(QueuePosition { place, jobs, remaining, .. }) = self.place(pair) else {
            return Reason::Stated { text: "no job".to_owned() };
        };
        let known = match remaining.basis {
            Basis::Attained => format!("size unknown, sorted by {}", remaining.basis.as_str()),
            basis => format!(
                "{} s left by {}, certainty {} %",
                remaining.seconds.round() as u64,
                basis.as_str(),
                (100.0 * remaining.certainty).round() as u64
            ),
        };
        let others = jobs - 1;
        let pays = if *place == 0 { format!("{others} other jobs pay") } else { "it pays for the first".to_owned() };
        Reason::Stated { text: format!("job {} of {jobs}: {known}; {pays}", place + 1) }
    }

    fn mark(&self, pair: &Pair<'_>) -> u8 {
        self.place(pair).map_or(0, |place| place.place.min(254) as u8 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use minerva_model::{DeviceSignals, IoCounters};

    const DISK: DeviceId = DeviceId { major: 8, minor: 0 };

    fn rule(jobs: &[(&str, Option<u64>)]) -> Rule {
        let job = |(name, bytes): &(&str, Option<u64>)| {
            ((*name).to_owned(), JobSettings { name: (*name).to_owned(), bytes: *bytes })
        };
        let mut rule = Rule::default();
        rule.configure(&MakespanSettings { jobs: jobs.iter().map(job).collect() });
        jobs.iter().zip(1..).for_each(|((name, _), number)| rule.tenant_seen(TenantId(number), name));
        rule
    }

    /// A slice in which tenants 1, 2, ... read so many bytes; the places of those that have one.
    fn slice(rule: &mut Rule, second: u64, busy_permille: u32, bytes: &[u64]) -> Vec<Option<usize>> {
        let row = |(read_bytes, number): (&u64, u64)| IoSignals {
            tenant: TenantId(number),
            device: DISK,
            elapsed: Nanos::SECOND,
            transferred: IoCounters { read_bytes: *read_bytes, ..IoCounters::default() },
            latency: None,
            served: None,
            disk_time: Nanos::ZERO,
            active: *read_bytes > 0,
        };
        let device = DeviceSignals {
            device: DISK,
            elapsed: Nanos::SECOND,
            transferred: IoCounters::default(),
            busy_permille,
            read_latency: None,
            write_latency: None,
            contention: 0,
            unattributed_bytes: 0,
            flushes: 0,
        };
        let signals =
            Signals { io: bytes.iter().zip(1..).map(row).collect(), devices: vec![device], ..Signals::default() };
        rule.slice(Nanos::from_secs(second), &DecideInput { signals: &signals, outlook: Outlook::default() });
        let place = |number| rule.places.get(&(DISK, TenantId(number))).map(|place| place.place);
        (1..=bytes.len() as u64).map(place).collect()
    }

    #[test]
    fn nobody_is_held_back_while_the_disk_is_not_short_or_one_job_is_alone() {
        let mut rule = rule(&[("a", Some(1_000)), ("b", Some(100))]);
        assert_eq!(slice(&mut rule, 1, 1000, &[10, 10]), [Some(1), Some(0)]);
        assert_eq!(slice(&mut rule, 2, 700, &[10, 10]), [Some(1), Some(0)], "one slice says little");
        assert_eq!(slice(&mut rule, 3, 700, &[10, 10]), [None, None]);
        assert_eq!(slice(&mut rule, 4, 1000, &[10, 10]), [Some(1), Some(0)]);
        let later: Vec<_> = (5..9).map(|second| slice(&mut rule, second, 1000, &[10, 0])).collect();
        assert_eq!(later[3], [None, None], "the other computes, and holds up nobody");
    }

    #[test]
    fn a_name_is_known_by_its_runs_and_forgotten_runs_are_bounded() {
        let mut rule = rule(&[("a", None), ("b", None)]);
        assert_eq!(slice(&mut rule, 1, 1000, &[500, 100]), [Some(0), Some(1)], "as fast as each other, both half done");
        rule.tenant_gone(TenantId(1));
        rule.tenant_seen(TenantId(1), "a");
        slice(&mut rule, 2, 1000, &[50, 600]);
        let known = rule.places[&(DISK, TenantId(1))].remaining;
        assert_eq!((known.basis, known.seconds), (Basis::History, 9.0));
        for number in 0..2 * NAMES_MAX {
            rule.learn(format!("run {number}"), 1.0);
        }
        assert_eq!(rule.runs.len(), NAMES_MAX);
    }

    #[test]
    fn a_job_whose_settings_changed_begins_anew_and_who_is_no_job_has_no_place() {
        let mut rule = rule(&[("a", Some(1_000)), ("b", Some(500))]);
        assert_eq!(slice(&mut rule, 1, 1000, &[900, 10, 10]), [Some(0), Some(1), None]);
        let jobs = [("a", 5_000), ("b", 500)]
            .map(|(name, bytes)| (name.to_owned(), JobSettings { name: name.to_owned(), bytes: Some(bytes) }));
        rule.configure(&MakespanSettings { jobs: jobs.into_iter().collect() });
        assert_eq!(rule.running.len(), 1);
        rule.configure(&MakespanSettings::default());
        assert_eq!(slice(&mut rule, 2, 1000, &[900, 10, 10]), [None, None, None]);
        assert!(rule.running.is_empty() && rule.runs.len() == 2);
    }
}
