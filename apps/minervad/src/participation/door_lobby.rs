//! What all connections of the doors share: the way to the slice loop, who is who, and the limits.

use crate::clock::boottime;
use crate::command::{Command, Commands, NotTaken};
use crate::participation::ask::{Answer, Ask, What};
use crate::participation::directory::{Directory, Listed};
use crate::participation::door_place::{LimitsHandle, UnderWay};
use crate::participation::door_status::Denial;
use crate::participation::identity_table::IdentitiesHandle;
use crate::participation::refusals::{Refusals, Refused, Who};
use crate::participation::strangers::Source;
use minerva_linux_observe::Roots;
use minerva_model::{Nanos, TenantId};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Asks that may wait for their answer at once. The loop's queue is longer, so that operators still find a place in it.
const ASKS_MAX: usize = 512;
/// How long an answer may take. Those of the engine come at once; a purchase waits for the store's disk.
pub(crate) const ANSWER_PATIENCE: Nanos = Nanos::from_secs(5);
/// A cgroup is seen within two slices; where slices are long nobody is kept waiting for so long.
const SIGHT_PATIENCE_MAX: Nanos = Nanos::from_secs(5);
/// How often one that waits for its cgroup to be seen looks again.
const LOOK: Duration = Duration::from_millis(20);

/// Shared by all doors.
#[derive(Debug)]
pub(crate) struct Lobby {
    commands: Commands,
    pub(crate) directory: Directory,
    pub(crate) roots: Roots,
    pub(crate) identities: IdentitiesHandle,
    refusals: Refusals,
    slice: Nanos,
    asks: Arc<Semaphore>,
    limits: LimitsHandle,
}

/// Who asks, found out.
#[derive(Clone, Debug)]
pub(crate) struct Asker {
    pub(crate) tenant: Listed,
    /// `cgroup`, `vsock`, `certificate` or `token`.
    pub(crate) identified_by: &'static str,
}

impl Lobby {
    pub(crate) fn new(
        commands: Commands,
        directory: Directory,
        refusals: Refusals,
        roots: Roots,
        identities: IdentitiesHandle,
        limits: LimitsHandle,
        slice: Nanos,
    ) -> Self {
        Self {
            commands,
            directory,
            roots,
            identities,
            refusals,
            slice,
            asks: Arc::new(Semaphore::new(ASKS_MAX)),
            limits,
        }
    }

    pub(crate) fn limits(&self) -> &LimitsHandle {
        &self.limits
    }

    /// Counts a request of the account, if there is room for it.
    pub(crate) fn begin(&self, account: &str) -> Result<UnderWay, Denial> {
        UnderWay::begin(&self.limits, account)
    }

    /// Says what a tenant was refused, unless the loop has.
    pub(crate) fn refused(&self, tenant: &Listed, request: &str, what: &str, denial: &Denial) {
        if denial.is_told {
            return;
        }
        let Denial { word, message, .. } = denial;
        let who = Who::Tenant { name: &tenant.name, account: &tenant.account };
        self.refusals.note(&Refused { who, request, what, word, message });
    }

    /// Says what somebody was refused of whom nobody knows which tenant it is.
    pub(crate) fn refused_stranger(&self, source: Source, described: &str, what: &str, denial: &Denial) {
        let Denial { word, message, .. } = denial;
        self.refusals.note(&Refused { who: Who::Stranger { source, described }, request: "", what, word, message });
    }

    /// Looks until the tenant is listed, for as long as the loop may need to see it.
    pub(crate) async fn await_listed(&self, cgroup: &str) -> Result<Listed, Denial> {
        let wanted = Nanos(self.slice.0.saturating_mul(2));
        let patience = wanted.min(SIGHT_PATIENCE_MAX);
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
    pub(crate) async fn ask<T>(&self, tenant: TenantId, what: impl FnOnce(Answer<T>) -> What) -> Result<T, Denial> {
        let permit = self.permit()?;
        let (sender, receiver) = oneshot::channel();
        self.send(tenant, what(sender))?;
        let patience = Duration::from_nanos(ANSWER_PATIENCE.0);
        let answer = tokio::time::timeout(patience, receiver).await;
        drop(permit);
        match answer {
            Err(_) => Err(Denial::no_answer(ANSWER_PATIENCE)),
            Ok(Err(_)) => Err(Denial::stopping()),
            Ok(Ok(Err(refusal))) => Err(Denial::of_loop(refusal)),
            Ok(Ok(Ok(answer))) => Ok(answer),
        }
    }

    /// A place among those who wait for an answer.
    pub(crate) fn permit(&self) -> Result<OwnedSemaphorePermit, Denial> {
        Arc::clone(&self.asks).try_acquire_owned().map_err(|_| Denial::busy())
    }

    /// Sends what is asked to the loop, which answers by itself.
    pub(crate) fn send(&self, tenant: TenantId, what: What) -> Result<(), Denial> {
        self.commands.send(Command::Ask(Ask { tenant, what })).map_err(|error| match error {
            NotTaken::Full => Denial::busy(),
            NotTaken::Ended => Denial::stopping(),
        })
    }
}
