//! The slice loop: real clock, real kernel. It turns the engine's crank and never waits for anyone but the clock.
//!
//! Everything that goes into the engine passes [`Driver::tell`] and everything that comes out [`Driver::handle`], so that a
//! recording made there is complete.

use crate::clock::{boottime, wait_until};
use crate::command::{Command, Commands};
use crate::findings::Findings;
use crate::jobs::Jobs;
use crate::knobs::Knobs;
use crate::metrics::{DeviceLabel, Metrics};
use crate::notify::ServiceManager;
use crate::operator::foreseen::Foreseen;
use crate::operator_file::OperatorFile;
use crate::progress::Progress;
use crate::recording::Recording;
use crate::tenants::pending::{Parts, Response};
use crate::tenants::together::Together;
use crate::watch::Watch;
use minerva_background_queues::Queues;
use minerva_engine::Engine;
use minerva_model::{
    Device, DeviceId, Effect, Event, Finding, FindingKind, Mode, Nanos, RefusalKind, Sample, Tenant, TenantHistory,
    TenantId,
};
use minerva_operator_server::service::Slices;
use minerva_served_disks::Servers;
use minerva_store::StoredClaim;
use minerva_store_thread::Memory;
use minerva_tenant_server::request::Refusal;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// Named tenants whose processes have ended are looked for once in this many slices.
const SWEEP_SLICES: u64 = 10;

/// The loop's parts. What it does with them is in `effects`, `commands`, `tenants` and `operator::status` too.
pub(crate) struct Driver {
    pub(crate) file: OperatorFile,
    pub(crate) engine: Engine,
    /// What the host shows.
    pub(crate) watch: Watch,
    /// What is written to it.
    pub(crate) knobs: Knobs,
    pub(crate) memory: Memory,
    pub(crate) background: Queues,
    pub(crate) jobs: Jobs,
    /// For what comes back from the store.
    pub(crate) commands: Commands,
    pub(crate) metrics: Metrics,
    pub(crate) manager: ServiceManager,
    pub(crate) level: crate::logging::LevelSwitch,
    pub(crate) slices: Slices,
    /// Tenants that take part.
    pub(crate) parts: Parts,
    /// Requests that are carried out together.
    pub(crate) together: Together,
    pub(crate) recording: Recording,
    pub(crate) tenants: BTreeMap<TenantId, Tenant>,
    pub(crate) devices: BTreeMap<DeviceId, Device>,
    pub(crate) foreseen: Foreseen,
    /// Servers of guests' disks.
    pub(crate) servers: Servers,
    pub(crate) findings: Findings,
    pub(crate) progress: Progress,
}

impl Driver {
    /// Runs until told to stop, then puts everything back.
    pub(crate) fn run(mut self, commands: &Receiver<Command>) -> anyhow::Result<()> {
        self.feed(Event::Configured(Box::new(self.file.config.engine.clone())));
        for finding in self.memory.models.take_damaged() {
            self.found(&finding);
        }
        self.tell_losses();
        for model in self.memory.models.take_recalled() {
            self.feed(Event::ModelRecalled(model));
        }
        let mut next = self.engine.next_wakeup().map_or_else(boottime, |(first, _)| first);
        let why = loop {
            match commands.recv_timeout(self.patience(next)) {
                Ok(command) => {
                    if let Some(why) = self.obey_waiting(command, commands) {
                        break why;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break "nobody is left to command it",
            }
            self.obey_late();
            self.manager.alive();
            if boottime() < next {
                continue;
            }
            self.slice();
            if self.progress.is_over() {
                break "the slices asked for are over";
            }
            next = self.following(next);
        };
        tracing::info!(why, "stopping");
        self.stop()
    }

    /// How long to wait for a command: until the next slice, or until the clock is to be looked at again, or until the service manager
    /// wants a sign of life.
    fn patience(&self, next: Nanos) -> Duration {
        let wait = wait_until(next);
        self.manager.longest_sleep().map_or(wait, |longest| wait.min(longest))
    }

    /// When the engine wants the next slice. One that was missed is not made up for.
    fn following(&self, instant: Nanos) -> Nanos {
        let slice = self.file.config.engine.observe.slice;
        if boottime().since(instant) > slice {
            self.metrics.slices_late.inc();
        }
        self.engine.next_wakeup().map_or(boottime() + slice, |(next, _)| next)
    }

    /// One slice.
    fn slice(&mut self) {
        let started = boottime();
        if self.file.has_changed() {
            drop(self.reload());
        }
        self.renew_lease();
        for event in self.watch.discover() {
            self.notice(event);
        }
        self.parts.directory.complete();
        self.look_at_servers(started);
        self.watch.hidden().iter().for_each(|finding| self.found(finding));
        self.look_at_file_systems();
        self.memory.look_for_store();
        self.tell_losses();
        self.recall_unread();
        self.review_claims();
        self.review_jobs();
        self.review_debts();
        self.carry_background();
        if self.progress.slices == 0 {
            self.find_unknown_disks();
        }
        let mut sample = self.watch.sample(self.engine.wants_usage() || self.recording.is_running());
        self.add_served(&mut sample);
        self.measure(&sample);
        self.feed(Event::Sampled(Box::new(sample)));
        self.findings.oversubscribed(|device| self.engine.is_oversubscribed(device));
        self.tell_servers(started);
        self.name_overwriters();
        self.parts.sweep();
        self.audit_refused();
        self.find_missing_tenants();
        self.memory.flush();
        // Those of this slice are not there yet; this is for those whose waking call found the queue full.
        self.take_acknowledgements();
        self.progress.count();
        if self.progress.slices.is_multiple_of(SWEEP_SLICES) {
            self.watch.sweep();
            self.knobs.keep_guard(&self.file.started, self.watch.observer.roots());
        }
        self.recording.flush();
        self.findings.end_slice(started, self.engine.mode() == Mode::Shadow);
        self.progress.cost = boottime().since(started);
        self.count_journal_syncs();
        self.metrics.slices.inc();
        self.metrics.slice_duration.observe(self.progress.cost.as_secs_f64());
        self.note_forecasts();
        self.publish();
    }

    /// Which file systems answer, and which do not.
    fn look_at_file_systems(&mut self) {
        self.watch.silent().iter().for_each(|finding| self.found(finding));
        self.watch.answering().into_iter().for_each(|device| self.findings.answers(device));
    }

    /// Renews the lease, and tells the engine if what it was for was put back.
    fn renew_lease(&mut self) {
        if self.knobs.renew_lease(self.file.config.engine.observe.slice) {
            self.feed(Event::KnobsRestored);
        }
    }

    /// Notes what came and went, and tells the engine, with what is remembered of it.
    fn notice(&mut self, event: Event) {
        match event {
            Event::TenantSeen { tenant, .. } => {
                let history = self.memory.recall(&tenant.history_key());
                self.introduce(tenant, history);
            }
            Event::DeviceSeen(device) => {
                self.devices.insert(device.id, device.clone());
                self.introduce_disk(device);
            }
            other => self.feed(other),
        }
    }

    /// Tells the engine of a tenant and all that is remembered of it.
    pub(crate) fn introduce(&mut self, tenant: Tenant, history: Vec<TenantHistory>) {
        self.tenants.insert(tenant.id, tenant.clone());
        self.parts.directory.enter(&tenant);
        self.feed(Event::TenantSeen { tenant: tenant.clone(), history });
        self.recall(&tenant);
    }

    /// Tells the engine of a disk and what is remembered of it.
    pub(crate) fn introduce_disk(&mut self, device: Device) {
        let id = device.id;
        let identity = self.watch.observer.disk_identity(&device.name);
        let is_new = self.memory.disk_seen(id, identity);
        self.feed(Event::DeviceSeen(device));
        if let Some(calibration) = self.memory.calibration(id) {
            self.feed(Event::BackgroundCalibrated { device: id, calibration });
        }
        if is_new {
            self.recall_histories_on(id);
        }
        for row in self.memory.bandwidths(id) {
            self.feed(Event::BandwidthRecalled(row));
        }
    }

    /// A disk came after the tenants: what is remembered of them on it.
    fn recall_histories_on(&mut self, device: DeviceId) {
        for tenant in self.tenants.values().cloned().collect::<Vec<_>>() {
            let mut history = self.memory.recall(&tenant.history_key());
            history.retain(|row| row.device == device);
            if !history.is_empty() {
                self.feed(Event::TenantSeen { tenant, history });
            }
        }
    }

    /// A tenant is gone: nothing of it is needed any more, and whoever waits for an answer waits in vain.
    fn tenant_gone(&mut self, id: TenantId) {
        let Some(tenant) = self.tenants.get(&id).cloned() else { return };
        self.parts.directory.strike(&tenant);
        let message = "The tenant that this process belonged to is gone.".to_owned();
        let refusal = Refusal::new(RefusalKind::UnknownTenant, message);
        self.parts.give_up(Some(id), &refusal);
        self.jobs.give_up(Some(id), &refusal);
        self.parts.reports.forget(id);
        self.servers.tenant_gone(id);
        self.findings.tenant_gone(id);
        self.memory.claim_later(&tenant, StoredClaim::default());
        self.parts.unread.remove(&id);
        self.memory.tenant_gone(&tenant, !self.watch.observer.is_there(&tenant.cgroup));
        self.tenants.remove(&id);
    }

    /// Tells the engine something, and does all that it then wants.
    pub(crate) fn feed(&mut self, event: Event) {
        let gone = match event {
            Event::TenantGone(id) => (Some(id), None),
            Event::DeviceGone(id) => (None, Some(id)),
            _ => (None, None),
        };
        let response = self.handle(event);
        self.settle(response, None);
        // Only now: what the engine had to say about them needed their names.
        if let Some(id) = gone.0 {
            self.tenant_gone(id);
        }
        if let Some(device) = gone.1.and_then(|id| self.devices.remove(&id)) {
            let message = format!(
                "{} ({}) is gone; what was written for it is put back, or gone with it",
                device.name, device.id
            );
            self.found(&Finding { kind: FindingKind::DiskGone, device: Some(device.id), tenant: None, message });
            self.memory.device_gone(device.id);
            self.metrics.contention.remove(&DeviceLabel { device: device.name.clone() });
            self.metrics.device_forecast.remove(&DeviceLabel { device: device.name.clone() });
            self.metrics.busy.remove(&DeviceLabel { device: device.name });
        }
    }

    /// Tells the engine something, and does all that it wants, also when it hears what came of it. What it says to those who asked
    /// is handed back, for [`Driver::settle`].
    pub(crate) fn handle(&mut self, event: Event) -> Response {
        self.tell(event);
        self.carry_out(Vec::new())
    }

    /// Does this, and all that the engine wants now and when it hears what came of it.
    pub(crate) fn carry_out(&mut self, mut wanted: Vec<Effect>) -> Response {
        let mut response = Response::default();
        loop {
            while let Some(effect) = self.engine.poll_effect() {
                self.recording.effect(boottime(), &effect);
                wanted.extend(self.together.defer(effect));
            }
            if wanted.is_empty() {
                return response;
            }
            self.knobs.prepare(&wanted);
            for effect in std::mem::take(&mut wanted) {
                let answer = self.perform(effect, &mut response);
                // Told before what was read then, which would pass for somebody else's doing.
                if self.knobs.take_restored() {
                    self.tell(Event::KnobsRestored);
                }
                answer.into_iter().for_each(|answer| self.tell(answer));
            }
        }
    }

    pub(crate) fn count_journal_syncs(&self) {
        let counted = self.metrics.journal_syncs.get();
        self.metrics.journal_syncs.inc_by(self.knobs.syncs().saturating_sub(counted));
    }

    fn tell(&mut self, event: Event) {
        let now = boottime();
        self.recording.event(now, &event);
        self.engine.handle(now, event);
    }

    /// Says which disks of the operator's file are not there: a misspelt name would else be obeyed by silence.
    pub(crate) fn find_unknown_disks(&mut self) {
        for finding in self.watch.unknown_disks(&self.file.config) {
            self.found(&finding);
        }
    }

    /// Says which tenants of `[[identities]]` are not there: whoever is to be one of them is refused.
    fn find_missing_tenants(&mut self) {
        let settings = &self.file.config.participation;
        for tenant in self.parts.missing_tenants(settings, self.progress.slices) {
            tracing::warn!(
                tenant,
                "an [[identities]] of the operator's file names a tenant that is not there, or there twice"
            );
        }
    }

    fn measure(&self, sample: &Sample) {
        self.metrics.rows_read.inc_by((sample.devices.len() + sample.io.len()) as u64);
        self.metrics.rows_skipped.inc_by(sample.skipped.iter().map(|skipped| skipped.count).sum());
    }

    /// Hands the slice to those who watch; made only when somebody does.
    fn publish(&self) {
        self.measure_signals();
        if self.slices.receiver_count() > 0 {
            // Without reports, which would be sent anew in every slice. Fails only when the last of them has just gone.
            let _ = self.slices.send(Arc::new(self.picture(0)));
        }
    }

    /// Puts everything back and closes what must be closed, as far as possible whatever fails.
    fn stop(mut self) -> anyhow::Result<()> {
        self.manager.stopping();
        self.feed(Event::Stopping);
        let message = "Minerva is ending; ask again when it has started anew.".to_owned();
        let refusal = Refusal::new(RefusalKind::Stopping, message);
        self.parts.give_up(None, &refusal);
        self.jobs.give_up(None, &refusal);
        self.stop_background();
        self.memory.flush();
        self.recording.stop();
        self.memory.close();
        self.knobs.close()
    }
}
