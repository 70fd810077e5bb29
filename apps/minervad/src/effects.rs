//! What the engine wants, done: knobs read and written, decisions logged and kept, findings told.

use crate::clock::unix_ns;
use crate::slice_loop::Driver;
use crate::tenants::pending::{Answered, Response};
use minerva_model::{
    BackEnd, Decision, DeviceSettings, Effect, Event, Finding, FindingKind, Granted, KnobWrite, Outcome, Refused,
    WriteId,
};
use minerva_store::AuditRow;
use minerva_tenant_server::request::Refusal;

impl Driver {
    /// Performs one effect; the answer, if it has one, goes back into the engine at once. What is for those who asked is added to
    /// `response`.
    pub(crate) fn perform(&mut self, effect: Effect, response: &mut Response) -> Option<Event> {
        match effect {
            Effect::Inspect(inspection) => {
                self.metrics.inspections.inc();
                return Some(answer(inspection.id, self.knobs.inspect(&inspection)));
            }
            Effect::Write(write) => return Some(answer(write.id, self.write(&write))),
            Effect::Watch(watch) => self.knobs.overwritten(&watch),
            Effect::LetGo(release) => self.knobs.let_go(&release),
            Effect::Decided(decision) => self.decided(decision),
            Effect::Remember(history) => self.memory.remember(history),
            Effect::Found(finding) => self.found(&finding),
            Effect::Granted(Granted { id, tenant, grant }) => {
                response.answers.push(Answered { tenant, id, result: Ok(grant) });
            }
            Effect::Refused(Refused { id, tenant, kind, message }) => {
                let result = Err(Refusal::new(kind, message));
                response.answers.push(Answered { tenant, id, result });
            }
            Effect::MigrationCounted(answer) => response.migrations.push(answer),
            Effect::Ready { tenant, id } => self.called_back(tenant, &id),
            Effect::Ledger(entry) => response.entries.push(entry),
            Effect::Declare(declaration) => self.memory.declare(declaration),
            Effect::KeepModel(model) => self.memory.models.keep(model),
            Effect::JobEnded(run) => self.job_ended(*run),
            Effect::Background(order) => {
                tracing::debug!(id = %order.id, pace = ?order.pace, "background work: {}", order.reason);
                self.background.order(order);
            }
            Effect::BackgroundLearnt { id, cost } => self.background_learnt(id, cost),
            Effect::BackgroundCalibrated { device, calibration } => self.background_calibrated(device, calibration),
            Effect::Learnt(row) => self.memory.learn(row),
        }
        None
    }

    fn write(&mut self, write: &KnobWrite) -> Outcome {
        let outcome = self.knobs.write(write);
        self.metrics.wrote(match &outcome {
            Outcome::Text(_) => "done",
            Outcome::Vanished => "vanished",
            Outcome::Refused { .. } | Outcome::Busy => "refused",
        });
        outcome
    }

    fn decided(&mut self, decision: Decision) {
        self.metrics.decisions.inc();
        let tenant = self.tenants.get(&decision.tenant);
        let device = self.devices.get(&decision.device);
        let (Some(tenant), Some(device)) = (tenant, device) else { return };
        let text = decision.on(&device.name);
        tracing::debug!(tenant = tenant.name, device = device.name, share = decision.share.get(), "{text}");
        self.findings.decided(decision.share.get(), &tenant.name, &device.name);
        self.memory.audit(AuditRow {
            at_unix_ms: unix_ns() / 1_000_000,
            tenant_name: tenant.name.clone(),
            cgroup_path: tenant.cgroup.path.clone(),
            account: tenant.history_key(),
            device_name: device.name.clone(),
            decision,
            text,
        });
    }

    /// Says which damaged stores were replaced.
    pub(crate) fn tell_losses(&mut self) {
        for finding in self.memory.take_losses() {
            self.found(&finding);
        }
    }

    /// Logs a finding, counts it, and keeps it for `status`.
    pub(crate) fn found(&mut self, finding: &Finding) {
        self.metrics.found(finding.kind);
        let device = finding.device.and_then(|id| self.devices.get(&id)).map(|device| device.name.as_str());
        let settings = device.and_then(|name| self.file.config.engine.devices.get(name));
        let warning = asks_for_something(finding.kind, settings);
        let tenant = finding.tenant.and_then(|id| self.tenants.get(&id)).map(|tenant| tenant.name.as_str());
        let kind = finding.kind.as_str();
        if warning {
            tracing::warn!(kind, device, tenant, "{}", finding.message);
        } else {
            tracing::info!(kind, device, tenant, "{}", finding.message);
        }
        let mut message = finding.message.clone();
        if let Some(name) = tenant.or(device) {
            message.insert_str(0, &format!("{name}: "));
        }
        self.findings.show(finding.kind, warning, (finding.device, finding.tenant), message);
    }
}

/// Whether an operator should act on what was found of a disk with these settings: not on one that is watched only because the file says so.
fn asks_for_something(kind: FindingKind, settings: Option<&DeviceSettings>) -> bool {
    let is_watched = settings.is_some_and(|settings| settings.back_end == Some(BackEnd::Observe));
    kind.is_warning() && !(kind == FindingKind::NotSteerable && is_watched)
}

const fn answer(id: WriteId, outcome: Outcome) -> Event {
    Event::Answered { id, outcome }
}
