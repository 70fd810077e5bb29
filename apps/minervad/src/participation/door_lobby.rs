//! What all connections of the doors share: the way to the slice loop, who is who, and the limits.

use crate::clock::boottime;
use crate::command::{Command, Commands, NotTaken};
use crate::participation::ask::{Answer, Ask, What};
use crate::participation::directory::{Directory, Listed};
use crate::participation::door_log::RefusalLog;
use crate::participation::door_status::Denial;
use crate::participation::identity_table::Identities;
use crate::participation::limits::{Excess, Limits};
use crate::participation::refusals::Refusals;
use minerva_config::DoorLimits;
use minerva_linux_observe::Roots;
use minerva_model::{Nanos, TenantId};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
    pub(crate) identities: Identities,
    pub(crate) log: RefusalLog,
    slice: Nanos,
    asks: Arc<Semaphore>,
    limits: LimitsHandle,
}

/// The limits, for the doors and for whoever changes them.
#[derive(Clone, Debug)]
pub(crate) struct LimitsHandle(Arc<Mutex<(DoorLimits, Limits)>>);

impl LimitsHandle {
    pub(crate) fn new(settings: DoorLimits) -> Self {
        Self(Arc::new(Mutex::new((settings, Limits::new(settings)))))
    }

    /// New limits hold from the next request on.
    pub(crate) fn set(&self, settings: DoorLimits) {
        let mut both = self.lock();
        both.0 = settings;
        both.1.set(settings);
    }

    /// Looks at the counts; a denial names the limit.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&mut Limits, Nanos) -> Result<T, Excess>) -> Result<T, Denial> {
        let now = boottime();
        let mut both = self.lock();
        let settings = both.0;
        look(&mut both.1, now).map_err(|excess| Denial::excess(excess, &settings))
    }

    fn lock(&self) -> MutexGuard<'_, (DoorLimits, Limits)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who asks, found out.
#[derive(Clone, Debug)]
pub(crate) struct Asker {
    pub(crate) tenant: Listed,
    /// `cgroup`, `vsock`, `certificate` or `token`.
    pub(crate) identified_by: &'static str,
}

/// A request or stream that is counted while this is there.
#[derive(Debug)]
pub(crate) struct UnderWay {
    lobby: Arc<Lobby>,
    account: String,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        // It takes from counts, which cannot fail.
        let _ = self.lobby.limits.with(|limits, _| {
            limits.end(&self.account);
            Ok(())
        });
    }
}

impl Lobby {
    pub(crate) fn new(
        commands: Commands,
        directory: Directory,
        refusals: Refusals,
        roots: Roots,
        identities: Identities,
        limits: LimitsHandle,
        slice: Nanos,
    ) -> Self {
        Self {
            commands,
            directory,
            roots,
            identities,
            log: RefusalLog::new(refusals),
            slice,
            asks: Arc::new(Semaphore::new(ASKS_MAX)),
            limits,
        }
    }

    pub(crate) fn limits(&self) -> &LimitsHandle {
        &self.limits
    }

    /// Counts a request of the account, if there is room for it.
    pub(crate) fn begin(self: &Arc<Self>, account: &str) -> Result<UnderWay, Denial> {
        self.limits.with(|limits, now| limits.begin(now, account))?;
        Ok(UnderWay { lobby: Arc::clone(self), account: account.to_owned() })
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
