//! A level that lasts as long as a value is kept.

use crate::backoff::Backoff;
use crate::error::{Error, is_worth_another_try, retry_after};
use crate::level::Level;
use crate::link::Link;
use minerva_api::v1;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tonic::Status;

/// Steps back until it is dropped. When the server was away, the level is taken again.
#[derive(Debug)]
#[must_use = "dropping it comes back at once"]
pub struct Held {
    /// Absent without a server.
    keeper: Option<Keeper>,
}

#[derive(Debug)]
struct Keeper {
    in_force: watch::Receiver<Option<Level>>,
    task: JoinHandle<()>,
}

/// What the task tells.
struct Told {
    in_force: watch::Sender<Option<Level>>,
    /// Used once: with the first answer.
    first: Option<oneshot::Sender<Result<(), Error>>>,
}

impl Held {
    /// Without a server there is nothing to hold.
    pub(crate) const fn of_nothing() -> Self {
        Self { keeper: None }
    }

    /// Returns when the level is in force. A server that goes away meanwhile does not fail it: it is taken when it is back.
    pub(crate) async fn take(link: Link, level: Level) -> Result<Self, Error> {
        let (tell, in_force) = watch::channel(None);
        let (first, answered) = oneshot::channel();
        let patience = link.patience;
        let task = tokio::spawn(keep(link, level, Told { in_force: tell, first: Some(first) }));
        let held = Self { keeper: Some(Keeper { in_force, task }) };
        match timeout(patience, answered).await {
            Ok(Ok(Err(refusal))) => Err(refusal),
            _ => Ok(held),
        }
    }

    /// The level in force for the tenant, which others of it may have set further back; absent while the server is away, or
    /// when it does not let this one step back any more.
    pub fn level(&self) -> Option<Level> {
        self.keeper.as_ref().and_then(|keeper| *keeper.in_force.borrow())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // The call ends with the task, and the level with the call.
        if let Some(keeper) = &self.keeper {
            keeper.task.abort();
        }
    }
}

/// Holds the level until it is aborted, or the server refuses for good.
async fn keep(link: Link, level: Level, mut told: Told) {
    let mut backoff = Backoff::new();
    loop {
        let ended = hold_once(&link, level, &mut told, &mut backoff).await;
        told.in_force.send_replace(None);
        let is_absent = told.first.is_some() && link.is_absence(&ended);
        if is_absent || !is_worth_another_try(&ended) {
            if let Some(first) = told.first.take() {
                // Whoever asked may have gone.
                let _ = first.send(Err(Error::refused(&ended)));
            }
            return;
        }
        sleep(backoff.after(retry_after(&ended), fastrand::f64())).await;
    }
}

/// One stream, from its begin to its end.
async fn hold_once(link: &Link, level: Level, told: &mut Told, backoff: &mut Backoff) -> Status {
    let request = v1::HoldLevelRequest { level: level.to_wire() };
    let mut changes = match link.participation().hold_level(request).await {
        Ok(changes) => changes.into_inner(),
        Err(status) => return status,
    };
    loop {
        match changes.message().await {
            Ok(Some(change)) => {
                backoff.reset();
                link.was_served();
                told.in_force.send_replace(Some(Level::from_wire(change.level)));
                if let Some(first) = told.first.take() {
                    let _ = first.send(Ok(()));
                }
            }
            Ok(None) => return Status::unavailable("the server ended the hold"),
            Err(status) => return status,
        }
    }
}
