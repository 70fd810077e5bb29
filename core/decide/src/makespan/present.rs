//! Who is on a disk, and what is known of each: who is held back is neither slow nor gone (docs/adr/0058).

use super::position::{QueuePosition, Running};
use super::{RESTING, Rule};
use crate::shortest_first::Job;
use minerva_model::{DeviceId, Horizon, Nanos, Outlook, TenantId};

impl Rule {
    pub(super) fn known(
        &self,
        tenant: TenantId,
        device: DeviceId,
        running: &Running,
        now: Nanos,
        outlook: &Outlook,
    ) -> Job {
        let settings = self.job(tenant);
        let forecast = outlook.get(tenant, device, Horizon::Session);
        Job {
            declared_bytes: settings
                .and_then(|job| job.bytes)
                .filter(|_| !self.named.is_overrun(tenant))
                .map(|bytes| bytes as f64),
            history_bytes: settings.and_then(|job| self.runs.bytes(&job.name)),
            forecast_bytes: forecast.map(|forecast| (forecast.bytes(), forecast.skill)),
            attained_bytes: self.attained(tenant) as f64,
            past_bytes: self.named.past(tenant) as f64,
            bytes_per_second: running.bytes_per_second_max,
            age_seconds: now.since(running.since).as_secs_f64(),
            rests: running.last_used < now && now.since(running.last_used) > self.turn_comes_within(device, tenant),
        }
    }

    /// How long a job's part may make it wait for its next turn.
    fn turn_comes_within(&self, device: DeviceId, tenant: TenantId) -> Nanos {
        let place = self.places.get(&(device, tenant)).filter(|_| self.settings.waiting_counts);
        place.map_or(Nanos::ZERO, QueuePosition::turn_comes_within)
    }

    /// What is known of all jobs on a disk that use it or wait for it.
    pub(super) fn present(&self, now: Nanos, device: DeviceId, outlook: &Outlook) -> Vec<(TenantId, Job)> {
        let is_there = |((_, tenant), running): &(&(DeviceId, TenantId), &Running)| {
            now.since(running.last_used) <= RESTING.max(self.turn_comes_within(device, *tenant))
        };
        let of_disk = (device, TenantId(0))..=(device, TenantId(u64::MAX));
        let rows: Vec<(TenantId, &Running)> =
            self.running.range(of_disk).filter(is_there).map(|((_, tenant), running)| (*tenant, running)).collect();
        let fastest = rows.iter().map(|(_, running)| running.bytes_per_second_max).fold(0.0, f64::max);
        let known = |(tenant, running): (TenantId, &Running)| {
            let job = self.known(tenant, device, running, now, outlook);
            // Whoever is held back looks slow, and who goes first looks fast.
            let is_measured = running.has_led || !self.settings.waiting_counts;
            (tenant, Job { bytes_per_second: if is_measured { job.bytes_per_second } else { fastest }, ..job })
        };
        rows.into_iter().map(known).collect()
    }
}
