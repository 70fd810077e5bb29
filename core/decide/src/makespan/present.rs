//! Who is on a disk, and what is known of each: who is held back is neither slow nor gone (docs/adr/0058).

use super::bursts::ACTIVE_PART;
use super::position::{QueuePosition, Running};
use super::{RESTING, Rule};
use crate::compose::DecideInput;
use crate::shortest_first::{Job, waited_after};
use minerva_model::{DeviceId, Horizon, IoSignals, Nanos, Outlook, Signals, TenantId};

/// A job that has no more of a disk's time, and less than [`ACTIVE_PART`] of its greatest rate, computes.
const COMPUTING_DISK_PART: f64 = 0.1;

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
                .filter(|_| !self.named.is_overrun(tenant) && !self.named.is_of_overrun(tenant))
                .map(|bytes| bytes as f64),
            history_bytes: settings.and_then(|job| self.runs.bytes(&job.name)),
            forecast_bytes: forecast.map(|forecast| (forecast.bytes(), forecast.skill)),
            attained_bytes: self.attained(tenant) as f64,
            past_bytes: self.named.past(tenant) as f64,
            bytes_per_second: running.bytes_per_second_max,
            age_seconds: now.since(running.since).as_secs_f64(),
            waited_seconds: self.waited(running, now).as_secs_f64(),
            rests: running.last_used < now && now.since(running.last_used) > self.turn_comes_within(device, tenant),
            // That stands once it is known who went first in the slice.
            leads: false,
        }
    }

    /// The jobs as they are put in order. Who goes first stays so while nobody is held back to try whether the disk is short.
    pub(super) fn led(&self, device: DeviceId, present: &[(TenantId, Job)]) -> Vec<Job> {
        let lifting = self.lifting.get(&device).filter(|_| self.settings.waiting_ages);
        let leads = |tenant| lifting.is_some_and(|lifting| lifting.went_first(tenant));
        present.iter().map(|(tenant, job)| Job { leads: leads(*tenant), ..*job }).collect()
    }

    /// What makes a job come sooner: how long it was held back, and not how old it is.
    fn waited(&self, running: &Running, now: Nanos) -> Nanos {
        if self.settings.waiting_ages { running.waited } else { now.since(running.since) }
    }

    /// Takes into account who waits on a disk in the slice that follows, which is taken to be as long as the last; `present` are the jobs
    /// there. Where nobody is held back although several are there, all stays as it is: that is tried now and then.
    pub(super) fn note_waiting(&mut self, device: DeviceId, slice: Nanos, present: &[(TenantId, Job)]) {
        for (tenant, _) in present {
            let is_ahead = self.places.get(&(device, *tenant)).map(QueuePosition::is_ahead);
            let Some(running) = self.running.get_mut(&(device, *tenant)) else { continue };
            match is_ahead {
                None if present.len() >= 2 => {}
                is_ahead => running.waited = waited_after(running.waited, is_ahead != Some(false), slice),
            }
        }
    }

    /// How long a job's part may make it wait for its next turn.
    fn turn_comes_within(&self, device: DeviceId, tenant: TenantId) -> Nanos {
        let place = self.places.get(&(device, tenant)).filter(|_| self.settings.waiting_counts);
        place.map_or(Nanos::ZERO, QueuePosition::turn_comes_within)
    }

    /// What is known of all jobs on a disk that use it or wait for it.
    pub(super) fn present(&self, now: Nanos, device: DeviceId, input: &DecideInput<'_>) -> Vec<(TenantId, Job)> {
        let is_there = |((_, tenant), running): &(&(DeviceId, TenantId), &Running)| {
            now.since(running.last_used) <= RESTING.max(self.turn_comes_within(device, *tenant))
        };
        let of_disk = (device, TenantId(0))..=(device, TenantId(u64::MAX));
        let rows: Vec<(TenantId, &Running)> =
            self.running.range(of_disk).filter(is_there).map(|((_, tenant), running)| (*tenant, running)).collect();
        let in_order = self.settings.in_order_within_slices;
        let together = if in_order { bytes_per_busy_second(input.signals, device) } else { 0.0 };
        let fastest = rows.iter().map(|(_, running)| running.bytes_per_second_max).fold(0.0, f64::max);
        let known = |(tenant, running): (TenantId, &Running)| {
            let job = self.known(tenant, device, running, now, &input.outlook);
            // Whoever is held back looks slow, and who goes first looks fast.
            let is_measured = running.has_led || !self.settings.waiting_counts;
            let is_sized = || self.job(tenant).is_some_and(|job| self.is_sized(job));
            let supposed = || if is_sized() { fastest.max(together) } else { fastest };
            (tenant, Job { bytes_per_second: if is_measured { job.bytes_per_second } else { supposed() }, ..job })
        };
        let computes = |tenant: TenantId| {
            let went_first = self.places.get(&(device, tenant)).is_some_and(|position| position.place == 0);
            self.settings.caps_are_tried && went_first && self.computes(device, tenant, input.signals)
        };
        // One that has had all that it was known to need, and uses the disk no more, is done.
        let there = rows.into_iter().map(known).filter(|(_, job)| !(in_order && job.is_done()));
        there.map(|(tenant, job)| (tenant, Job { rests: job.rests || computes(tenant), ..job })).collect()
    }

    /// A job whom nobody kept from the disk in the slice, and that hardly used it, though it may have written a line of its log. Little by bytes
    /// alone can be all that a disk that seeks gives it.
    pub(super) fn computes(&self, device: DeviceId, tenant: TenantId, signals: &Signals) -> bool {
        let row = signals.io.iter().find(|row| row.device == device && row.tenant == tenant);
        row.is_none_or(|row| self.is_computing(row))
    }

    /// The same, where there is a row.
    pub(super) fn is_computing(&self, row: &IoSignals) -> bool {
        let fastest = self.running.get(&(row.device, row.tenant)).map_or(0.0, |running| running.bytes_per_second_max);
        row.bytes_per_second() <= ACTIVE_PART * fastest && row.disk_part() < COMPUTING_DISK_PART
    }
}

/// What a disk transfers in a second in which it is busy, whoever it is for: about as much as one has who is first there.
fn bytes_per_busy_second(signals: &Signals, device: DeviceId) -> f64 {
    let row = signals.devices.iter().find(|row| row.device == device);
    row.filter(|row| row.busy_permille > 0).map_or(0.0, |row| {
        let seconds = row.elapsed.as_secs_f64() * f64::from(row.busy_permille) / 1000.0;
        if seconds > 0.0 { row.transferred.bytes() as f64 / seconds } else { 0.0 }
    })
}
