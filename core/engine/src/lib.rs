//! The loop: events in, effects out (docs/ARCHITECTURE.md, section 1).
//!
//! [`Engine`] owns one of each stage and passes the nouns along: a sample becomes signals (`core/observe`), signals become an
//! outlook (`core/forecast`) and with it decisions (`core/decide`), decisions become inspections and writes
//! (`core/actuate`). It never blocks, cannot fail, and knows no clock but the instants it is given, so the same events give
//! the same effects, byte for byte: live, replayed and simulated.
//!
//! | mode | learns and remembers | says what it decides | writes |
//! |---|---|---|---|
//! | observe | yes | no | no |
//! | shadow | yes | yes | no |
//! | enforce | yes | yes | yes |
//!
//! [`Engine::snapshot`] is the whole of it as bytes, and [`Engine::restored`] goes on from there. Each stage's state serialises for
//! that; what a stage would keep elsewhere would be missing.
//!
//! Events may come in any order. What refers to something unknown is passed over, and an instant before the last one
//! counts as the last one.

mod background;
mod days_ahead;
mod family;
mod forecasts;
mod queries;
mod readings;
mod requests;
mod slices;
mod snapshot;
mod unreadable;

pub use background::BackgroundPlanning;
pub use minerva_background::{Plan, PlannedSlot, QueueOverTime, Shortage, Span, WorkView};
pub use minerva_decide::{JobOnDisk, JobView, KnownJob};
pub use minerva_forecast::TenantOutlook;
pub use minerva_forecast::load::LoadMember;
pub use minerva_forecast::tenant::{RateForecast, SessionClass};
pub use snapshot::SnapshotError;

use crate::background::Background;
use crate::forecasts::Forecasts;
use crate::readings::Ended;
use crate::slices::Slices;
use crate::unreadable::Unreadable;
use minerva_actuate::Actuator;
use minerva_decide::{DecideInput, Decided, Decider, Part};
use minerva_model::{
    AgentReport, Device, DeviceId, Effect, EngineConfig, Event, Finding, MigrationReport, Mode, Nanos, Outlook, Sample,
    ServedContracts, Signals, Tenant, TenantHistory, TenantId,
};
use minerva_observe::Observer;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};

/// The whole of Minerva's thinking. See the crate's documentation.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Engine {
    mode: Mode,
    observer: Observer,
    forecasts: Forecasts,
    decider: Decider,
    actuator: Actuator,
    #[serde(default)]
    background: Background,
    devices: BTreeSet<DeviceId>,
    unreadable: Unreadable,
    slices: Option<Slices>,
    last_sample: Option<Nanos>,
    signals: Signals,
    /// What decisions are to expect of the next slice, whatever the forecasts are.
    supposed: Option<Outlook>,
    effects: VecDeque<Effect>,
    now: Nanos,
    stopping: bool,
}

impl Engine {
    /// An engine that waits for its [`Event::Configured`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in what happened at `now`. What it asks for in return is there for [`Engine::poll_effect`].
    pub fn handle(&mut self, now: Nanos, event: Event) {
        self.now = self.now.max(now);
        match event {
            Event::Configured(config) => self.configured(&config),
            Event::DeviceSeen(device) => self.device_seen(&device),
            Event::DeviceGone(id) => self.device_gone(id),
            Event::ServerSeen(seen) => self.actuator.server_seen(&seen),
            Event::ContractsSeen(contracts) => self.contracts_seen(&contracts),
            Event::ServerGone(server) => self.server_gone(&server),
            Event::TenantSeen { tenant, history } => self.tenant_seen(&tenant, &history),
            Event::TenantGone(id) => self.tenant_gone(id),
            Event::Sampled(sample) => self.sampled(&sample),
            Event::Reported(report) => self.reported(report),
            Event::Answered { id, outcome } => self.actuator.answered(self.now, id, &outcome),
            Event::KnobsRestored => self.actuator.restored(),
            Event::Requested(request) => self.requested(request),
            Event::LevelClaimsChanged { tenant, claims } => {
                let (declaration, decisions) = self.decider.claims_changed(self.now, tenant, claims);
                self.asked_for(declaration.into_iter().collect(), decisions);
            }
            Event::Adjusted(adjustment) => self.effects.extend(self.decider.adjusted(self.now, &adjustment)),
            Event::MigrationReported(report) => self.migration_reported(report),
            Event::Committed { entry, fresh, known } => {
                let (effects, decisions) = self.decider.committed(self.now, entry, fresh, known);
                self.asked_for(effects, decisions);
            }
            Event::CommitFailed { entry, detail } => self.effects.extend(self.decider.commit_failed(entry, &detail)),
            Event::Recalled(recalled) => {
                let decisions = self.decider.recalled(self.now, &recalled);
                self.asked_for(Vec::new(), decisions);
            }
            Event::BandwidthRecalled(row) => self.decider.bandwidth_recalled(self.now, &row),
            Event::ModelRecalled(model) => {
                let finding = self.forecasts.recalled(&model);
                self.found(finding.into_iter().collect());
            }
            Event::JobDeclared { tenant, job } => self.effects.extend(self.decider.job_declared(tenant, job)),
            Event::JobRunsRecalled { name, bytes, phases } => self.decider.job_runs_recalled(&name, &bytes, &phases),
            Event::BackgroundSet(queue) => self.background.set(*queue),
            Event::BackgroundGone(id) => self.background.gone(id),
            Event::BackgroundReported(report) => self.background.reported(self.now, &report),
            Event::BackgroundCalibrate { device, length } => self.background.calibrate(self.now, device, length),
            Event::BackgroundCalibrated { device, calibration } => self.background.calibrated(device, calibration),
            Event::Stopping => self.stop(),
        }
        // At once, so that effects stand in the order of the events that caused them.
        while let Some(effect) = self.actuator.poll_effect() {
            self.effects.push_back(effect);
        }
    }

    fn reported(&mut self, report: AgentReport) {
        // Of a tenant that is not there nothing is kept, so that reports cannot pile up.
        if self.decider.knows(report.tenant) {
            self.observer.reported(report);
        }
    }

    fn migration_reported(&mut self, report: MigrationReport) {
        // One that is not answered is reported again.
        if !self.stopping {
            let effects = self.decider.migration_reported(self.now, report, &self.signals);
            self.effects.extend(effects);
        }
    }

    /// When the engine wants its next [`Event::Sampled`], and why; nothing before it is configured and once it is stopping.
    pub fn next_wakeup(&self) -> Option<(Nanos, &'static str)> {
        let slices = self.slices.filter(|_| !self.stopping)?;
        Some((slices.next(), "the slice ends"))
    }

    /// The next thing to do, in order.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    fn contracts_seen(&mut self, contracts: &ServedContracts) {
        self.decider.contracts_seen(contracts);
        self.actuator.contracts_seen(contracts);
    }

    fn server_gone(&mut self, server: &str) {
        self.decider.server_gone(server);
        self.actuator.server_gone(server);
    }

    fn device_seen(&mut self, device: &Device) {
        self.devices.insert(device.id);
        self.observer.device_seen(device.id, device.facts.rotational);
        self.decider.device_seen(device.id);
        self.background.device_seen(device);
        self.actuator.device_seen(device);
    }

    fn device_gone(&mut self, id: DeviceId) {
        self.devices.remove(&id);
        self.observer.device_gone(id);
        self.forecasts.device_gone(id);
        self.background.device_gone(id);
        let called_back = self.decider.device_gone(id);
        self.effects.extend(called_back);
        self.actuator.device_gone(id);
    }

    fn tenant_seen(&mut self, tenant: &Tenant, histories: &[TenantHistory]) {
        let findings = self.decider.tenant_seen(self.now, tenant, histories);
        self.found(findings);
        self.observer.tenant_seen(tenant);
        self.forecasts.tenant_seen(tenant);
        self.background.tenant_seen(tenant);
        self.actuator.tenant_seen(tenant);
    }

    fn tenant_gone(&mut self, id: TenantId) {
        self.observer.tenant_gone(id);
        self.forecasts.tenant_gone(id);
        self.background.tenant_gone(id);
        let forgotten = self.decider.tenant_gone(id);
        self.effects.extend(forgotten);
        self.actuator.tenant_gone(id);
    }

    fn configured(&mut self, config: &EngineConfig) {
        if self.stopping {
            return;
        }
        self.observer.configure(&config.observe);
        self.forecasts.configure(config.forecast, config.observe.slice);
        self.decider.configure(self.now, config);
        self.actuator.configure(config);
        self.background.configure(config.background);
        let slice = config.observe.slice;
        self.slices = Some(match self.slices {
            Some(slices) => slices.reconfigured(self.now, slice),
            None => Slices::starting(self.now, slice),
        });
        if std::mem::replace(&mut self.mode, config.mode) != config.mode {
            // Whoever listens from now on, a person or the kernel, knows nothing of what was decided so far.
            self.decider.forget_told();
        }
    }

    fn sampled(&mut self, sample: &Sample) {
        // A slice without length says nothing, and nothing is lost: the next one spans both.
        if self.stopping || self.last_sample.is_some_and(|last| self.now <= last) {
            return;
        }
        let elapsed = self.last_sample.replace(self.now).map_or(Nanos::ZERO, |last| self.now.since(last));
        if let Some(slices) = &mut self.slices {
            slices.sampled(self.now);
        }
        let (signals, findings) = self.observer.signals(self.now, sample);
        self.found(findings);
        let findings = self.unreadable.findings(&sample.skipped);
        self.found(findings);
        let ended = Ended { now: self.now, elapsed, wall_seconds: sample.wall_seconds, signals: &signals };
        let outlook = self.forecasts.slice(ended);
        let outlook = self.forecasts.with_jobs(outlook, self.decider.job_bursts(), self.now);
        let outlook = self.supposed.take().unwrap_or(outlook);
        self.effects.extend(self.forecasts.due(self.now));
        let (told, levels) = self.background.slice(self.now, (&signals, &outlook), &mut self.decider);
        self.effects.extend(told);
        self.asked_for(Vec::new(), levels);
        let is_weighted = |device| self.actuator.back_end(device).is_some_and(|(back_end, _)| back_end.is_weight());
        let (takers, stopped) = (self.background.takers(), self.background.stopped_elsewhere());
        self.decider.background_takes(&takers, is_weighted);
        self.actuator.stopped_elsewhere(&stopped);
        self.actuator.background_takes(&takers, &stopped);
        let input = DecideInput { signals: &signals, outlook };
        // Also in `observe`: what is learnt there is what the first decision in another mode is made from.
        let Decided { effects, mut decisions, histories } = self.decider.slice(self.now, input);
        self.effects.extend(effects);
        if self.mode == Mode::Observe {
            decisions.clear();
        }
        // In every mode: the actuator knows that only `enforce` writes, and after it may still have something to put back.
        self.actuator.waited_for_memory(self.now, sample.memory_pressure);
        self.actuator.plan(self.now, &decisions, &signals);
        self.effects.extend(decisions.into_iter().map(Effect::Decided));
        self.effects.extend(histories.into_iter().map(Effect::Remember));
        self.signals = signals;
    }

    fn stop(&mut self) {
        if std::mem::replace(&mut self.stopping, true) {
            return;
        }
        self.effects.extend(self.decider.all_histories(self.now).into_iter().map(Effect::Remember));
        let earned = self.decider.all_entries(self.now);
        self.effects.extend(earned);
        self.effects.extend(self.forecasts.keep(self.now));
        self.actuator.stop();
    }

    fn found(&mut self, findings: Vec<Finding>) {
        self.effects.extend(findings.into_iter().map(Effect::Found));
    }
}

/// The effects of a recorded run, each with the instant of the event that caused it.
pub fn replay(events: impl Iterator<Item = (Nanos, Event)>) -> Vec<(Nanos, Effect)> {
    let mut engine = Engine::new();
    let mut effects = Vec::new();
    for (now, event) in events {
        engine.handle(now, event);
        effects.extend(std::iter::from_fn(|| engine.poll_effect()).map(|effect| (now, effect)));
    }
    effects
}
