//! Batch jobs: what tenants say they are while somebody listens, the runs that ended, and what operators are told.

mod show;
mod slices;

use minerva_api::v1;
use minerva_model::{JobSettings, TenantId};
use minerva_tenant_server::request::Refusal;
use std::collections::BTreeMap;
use tokio::sync::mpsc::Sender;

/// Jobs that one tenant may hold at once; the last one begun counts.
const HELD_MAX: usize = 16;

/// Where a tenant hears its position among the jobs.
pub(crate) type Positions = Sender<Result<v1::HoldJobResponse, Refusal>>;

/// What the loop knows of jobs.
#[derive(Default)]
pub(crate) struct Jobs {
    held: BTreeMap<TenantId, HeldJobs>,
    /// The runs of before are in the engine.
    is_recalled: bool,
}

/// What one tenant says that it is.
#[derive(Default)]
struct HeldJobs {
    jobs: Vec<(JobSettings, Positions, Option<v1::HoldJobResponse>)>,
    /// What the engine was told.
    told: Option<JobSettings>,
}

impl HeldJobs {
    fn end(&mut self) {
        self.jobs.retain(|(_, positions, _)| !positions.is_closed());
    }

    /// What the tenant is now, if that is news.
    fn news(&mut self) -> Option<Option<JobSettings>> {
        let now = self.jobs.last().map(|(job, ..)| job.clone());
        let is_news = now != self.told;
        self.told.clone_from(&now);
        is_news.then_some(now)
    }
}

impl Jobs {
    /// Those who listen are told that it is in vain: of one tenant, or of all.
    pub(crate) fn give_up(&mut self, only: Option<TenantId>, refusal: &Refusal) {
        self.held.retain(|tenant, held| {
            let concerned = only.is_none_or(|only| only == *tenant);
            for (_, positions, _) in held.jobs.iter().filter(|_| concerned) {
                // Whoever listens may have gone.
                let _ = positions.try_send(Err(refusal.clone()));
            }
            !concerned
        });
    }
}
