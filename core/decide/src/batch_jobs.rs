//! What the decider is told of batch jobs, and tells of them.

use crate::{Decider, JobView, KnownJob};
use minerva_model::{Burst, DeviceId, Effect, JobPhase, JobSettings, TenantId};

impl Decider {
    /// A tenant says that it is this batch job, or that it is none any more; what is to be remembered of the one before.
    pub fn job_declared(&mut self, tenant: TenantId, job: Option<JobSettings>) -> Option<Effect> {
        self.policies.makespan.declared(tenant, job).map(|run| Effect::JobEnded(Box::new(run)))
    }

    /// What earlier runs of a job moved, oldest first, and in which phases, where those were kept.
    pub fn job_runs_recalled(&mut self, name: &str, bytes: &[u64], phases: &[Vec<JobPhase>]) {
        self.policies.makespan.recalled(name, bytes, phases);
    }

    /// What earlier runs of batch jobs say of the bursts of those that are there.
    pub fn job_bursts(&self) -> Vec<(TenantId, DeviceId, Burst)> {
        self.policies.makespan.bursts()
    }

    /// Whether any tenant is a batch job.
    pub fn has_jobs(&self) -> bool {
        self.policies.makespan.has_jobs()
    }

    /// All batch jobs that are there, by tenant.
    pub fn jobs(&self) -> Vec<JobView> {
        self.policies.makespan.views(self.now, &self.outlook)
    }

    /// A batch job's number in the order, from 1, and how many jobs there are; nothing while none goes before another.
    pub fn job_order(&self, tenant: TenantId) -> Option<(u32, u32)> {
        self.policies.makespan.order(tenant)
    }

    /// Names of batch jobs of which runs are known, by name.
    pub fn known_jobs(&self) -> impl Iterator<Item = KnownJob> {
        self.policies.makespan.known_jobs()
    }

    /// What each tenant that is there is called.
    pub fn tenant_names(&self) -> impl Iterator<Item = (TenantId, &str)> {
        self.policies.makespan.names()
    }
}
