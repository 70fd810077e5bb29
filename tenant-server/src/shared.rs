//! What all connections share: the way to the slice loop, who is who, and the limits.

use crate::authenticate::table::SharedIdentities;
use crate::bounds::ANSWER_WAIT_MAX;
use crate::directory::{Directory, ListedTenant};
use crate::live_settings::LiveSettings;
use crate::refusals::{Refusals, Refused, Who};
use crate::request::{Answer, Call, NotTaken, RequestSink, TenantCall};
use crate::slots::{RequestSlot, SharedQuotas};
use crate::source::Source;
use crate::status::Denial;
use minerva_clock::boottime;
use minerva_linux_observe::Roots;
use minerva_model::{Nanos, TenantId};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Requests that may wait for their answer at once. The loop's queue is longer, so that operators still find a place in it.
const REQUESTS_WAITING_MAX: usize = 512;
/// A cgroup is seen within two slices; where slices are long nobody is kept waiting for so long.
const LISTED_WAIT_MAX: Nanos = Nanos::from_secs(5);
/// How often one that waits for its cgroup to be seen looks again.
const LOOK: Duration = Duration::from_millis(20);

/// Shared by all connections.
#[derive(Debug)]
pub struct Shared {
    requests: Arc<dyn RequestSink>,
    pub(crate) directory: Directory,
    pub(crate) roots: Roots,
    pub(crate) identities: SharedIdentities,
    refusals: Refusals,
    slice: Nanos,
    asks: Arc<Semaphore>,
    limits: SharedQuotas,
}

/// Who asks, found out.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) tenant: ListedTenant,
    /// `cgroup`, `vsock`, `certificate` or `token`.
    pub(crate) identified_by: &'static str,
}

impl Shared {
    /// `directory` and `refusals` are the loop's as well, `settings` can be changed while connections are served. `slice` is the
    /// loop's period, in which it sees new cgroups.
    pub fn new(
        requests: Arc<dyn RequestSink>,
        directory: Directory,
        refusals: Refusals,
        roots: Roots,
        settings: &LiveSettings,
        slice: Nanos,
    ) -> Self {
        let (identities, limits) = (settings.identities.clone(), settings.limits.clone());
        let asks = Arc::new(Semaphore::new(REQUESTS_WAITING_MAX));
        Self { requests, directory, roots, identities, refusals, slice, asks, limits }
    }

    pub(crate) fn limits(&self) -> &SharedQuotas {
        &self.limits
    }

    /// Counts a request of the account, if there is room for it.
    pub(crate) fn begin(&self, account: &str) -> Result<RequestSlot, Denial> {
        RequestSlot::begin(&self.limits, account)
    }

    /// Says what a tenant was refused, unless the loop has.
    pub(crate) fn refused(&self, tenant: &ListedTenant, request: &str, what: &str, denial: &Denial) {
        if denial.is_told {
            return;
        }
        let Denial { word, message, .. } = denial;
        let who = Who::Tenant { name: &tenant.name, account: &tenant.account };
        self.refusals.note(&Refused { who, request, what, word, message });
    }

    /// Says what somebody was refused of whom nobody knows which tenant it is.
    pub(crate) fn refused_unauthenticated(&self, source: Source, described: &str, what: &str, denial: &Denial) {
        let Denial { word, message, .. } = denial;
        self.refusals.note(&Refused {
            who: Who::Unauthenticated { source, described },
            request: "",
            what,
            word,
            message,
        });
    }

    /// Looks until the tenant is listed, for as long as the loop may need to see it.
    pub(crate) async fn await_listed(&self, cgroup: &str) -> Result<ListedTenant, Denial> {
        let wanted = Nanos(self.slice.0.saturating_mul(2));
        let patience = wanted.min(LISTED_WAIT_MAX);
        let begin = boottime();
        loop {
            if let Some(listed) = self.directory.of_cgroup(cgroup) {
                return Ok(listed);
            }
            if boottime().since(begin) >= patience {
                break;
            }
            tokio::time::sleep(LOOK).await;
        }
        if patience < wanted {
            return Err(Denial::not_seen_yet(cgroup, self.slice));
        }
        Err(Denial::unknown_tenant(format!(
            "The cgroup {cgroup} is no tenant of Minerva: the operator's file leaves it out (daemon.include), or it has no \
             disk controller."
        )))
    }

    /// Sends what is asked to the loop and waits for the answer.
    pub(crate) async fn ask<T>(&self, tenant: TenantId, call: impl FnOnce(Answer<T>) -> Call) -> Result<T, Denial> {
        let permit = self.permit()?;
        let (sender, receiver) = oneshot::channel();
        self.send(tenant, call(sender))?;
        let patience = Duration::from_nanos(ANSWER_WAIT_MAX.0);
        let answer = tokio::time::timeout(patience, receiver).await;
        drop(permit);
        match answer {
            Err(_) => Err(Denial::no_answer(ANSWER_WAIT_MAX)),
            Ok(Err(_)) => Err(Denial::stopping()),
            Ok(Ok(Err(refusal))) => Err(Denial::of_loop(refusal)),
            Ok(Ok(Ok(answer))) => Ok(answer),
        }
    }

    /// Room among the requests that wait for an answer.
    pub(crate) fn permit(&self) -> Result<OwnedSemaphorePermit, Denial> {
        Arc::clone(&self.asks).try_acquire_owned().map_err(|_| Denial::busy())
    }

    /// Sends what is asked to the loop, which answers by itself.
    pub(crate) fn send(&self, tenant: TenantId, call: Call) -> Result<(), Denial> {
        self.requests.send(TenantCall { tenant, call }).map_err(|error| match error {
            NotTaken::Full => Denial::busy(),
            NotTaken::Ended => Denial::stopping(),
        })
    }
}
