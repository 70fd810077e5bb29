//! Jobs from slice to slice: what tenants say goes to the engine, what they hear comes from it, and runs go to the store.

use super::{HELD_MAX, Positions};
use crate::clock::unix_ns;
use crate::slice_loop::Driver;
use minerva_api::v1;
use minerva_model::{Event, JobRun, JobSettings, RefusalKind, Tenant, TenantId};
use minerva_store::{AnswerKind, JobRunRow};
use minerva_tenant_server::request::Refusal;

impl Driver {
    /// A tenant is a job for as long as somebody listens.
    pub(crate) fn hold_job(&mut self, tenant: TenantId, job: JobSettings, positions: Positions) -> bool {
        if self.tenants.get(&tenant).is_some_and(|tenant| tenant.excluded) {
            let refusal = Refusal::new(RefusalKind::NotAllowed, RefusalKind::EXCLUDED.to_owned());
            let _ = positions.try_send(Err(refusal));
            return false;
        }
        let held = self.jobs.held.entry(tenant).or_default();
        held.end();
        if held.jobs.len() >= HELD_MAX {
            let message = format!("This tenant is {HELD_MAX} jobs already, which is the limit. End one of them first.");
            // Whoever asked may have gone.
            let _ = positions.try_send(Err(Refusal::new(RefusalKind::TooMany, message)));
            return false;
        }
        let size = job.bytes.map_or_else(|| "unknown size".to_owned(), |bytes| format!("{bytes} bytes"));
        let text = format!("job {} of {size}", job.name);
        held.jobs.push((job, positions, None));
        let key = self.parts.own_key("job");
        self.audit_request(tenant, AnswerKind::Granted, &key, text);
        self.review_job(tenant);
        true
    }

    /// Once a slice: jobs that ended are over, and those who listen hear their place.
    pub(crate) fn review_jobs(&mut self) {
        if !self.jobs.is_recalled
            && let Some(names) = self.memory.job_pasts()
        {
            self.jobs.is_recalled = true;
            for (name, pasts) in names {
                let (bytes, phases) = pasts.into_iter().map(|past| (past.bytes, past.phases)).unzip();
                self.feed(Event::JobRunsRecalled { name, bytes, phases });
            }
        }
        let tenants: Vec<TenantId> = self.jobs.held.keys().copied().collect();
        tenants.into_iter().for_each(|tenant| self.review_job(tenant));
    }

    fn review_job(&mut self, tenant: TenantId) {
        let Some(held) = self.jobs.held.get_mut(&tenant) else { return };
        held.end();
        if let Some(job) = held.news() {
            self.feed(Event::JobDeclared { tenant, job });
        }
        let (place, jobs) = self.engine.job_order(tenant).unwrap_or((0, 0));
        let now = v1::HoldJobResponse { place, jobs };
        let Some(held) = self.jobs.held.get_mut(&tenant) else { return };
        for (_, positions, told) in &mut held.jobs {
            // One that does not read is told the next time.
            if *told != Some(now) && positions.try_send(Ok(now)).is_ok() {
                *told = Some(now);
            }
        }
        if held.jobs.is_empty() {
            self.jobs.held.remove(&tenant);
        }
    }

    /// A run ended: it is kept.
    pub(crate) fn job_ended(&self, run: JobRun) {
        let tenant = self.tenants.get(&run.tenant);
        let tenant_name = tenant.map_or_else(|| run.tenant.to_string(), |one| one.name.clone());
        let owner = tenant.map(Tenant::owner).unwrap_or_default();
        let device_name = self.disk_called(run.device);
        let (name, seconds, bytes) = (&run.name, run.profile.seconds, run.bytes());
        tracing::info!(name, tenant = tenant_name, seconds, bytes, "a run of a batch job ended");
        let row = JobRunRow {
            name: run.name,
            tenant_name,
            owner,
            device_name,
            ended_unix_ms: unix_ns() / 1_000_000,
            declared_bytes: run.declared_bytes,
            profile: run.profile,
        };
        let tell = |kept: Result<(), String>| {
            if let Err(error) = kept {
                tracing::warn!(error, "a run of a batch job was not kept; it counts until the daemon ends");
            }
        };
        self.memory.questions().look_then(move |store| store.keep_job_run(&row), tell);
    }
}
