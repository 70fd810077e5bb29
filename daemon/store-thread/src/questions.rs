//! Questions to the store's thread from other threads.

use crate::in_full;
use crate::jobs::{Job, Look};
use minerva_store::{Store, StoreError};
use std::sync::mpsc::{SyncSender, TrySendError};
use tokio::sync::oneshot;

/// Asks the store's thread from other threads.
#[derive(Clone, Debug)]
pub struct Questions(SyncSender<Job>);

impl Questions {
    pub(crate) fn new(queue: SyncSender<Job>) -> Self {
        Self(queue)
    }

    /// Looks something up; the error is a sentence.
    pub async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, String> {
        let (answer, answered) = oneshot::channel();
        // The asker may have hung up.
        self.look_then(look, move |found| drop(answer.send(found)));
        answered.await.map_err(|_| "the daemon is stopping".to_owned())?
    }

    /// The same, and hands what was found to a function.
    pub fn look_then<T>(
        &self,
        look: impl FnOnce(&Store) -> Result<T, StoreError> + Send + 'static,
        then: impl FnOnce(Result<T, String>) + Send + 'static,
    ) {
        let look: Look = Box::new(move |store| {
            then(store.map_err(str::to_owned).and_then(|store| look(store).map_err(|error| in_full(&error))));
        });
        match self.0.try_send(Job::Look(look)) {
            Err(TrySendError::Full(Job::Look(look))) => look(Err("the store is too slow now, ask again in a second")),
            Err(TrySendError::Disconnected(Job::Look(look))) => look(Err("the daemon is stopping")),
            _ => {}
        }
    }
}
