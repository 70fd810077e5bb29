//! One server and the patience with it: requests that are sent again.

use crate::backoff::Backoff;
use crate::error::{Error, is_worth_another_try, may_be_done, retry_after, says_no_server};
use crate::transport::Transport;
use minerva_api::v1::participation_client::ParticipationClient;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};
use tonic::{Response, Status};

/// A server that says no says so sooner. One from which nothing comes for so long hangs, and what it said before counts no longer.
pub(crate) const SILENCE: Duration = Duration::from_secs(1);

/// The generated client.
pub(crate) type Participation = ParticipationClient<Transport>;

/// A server.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    participation: Participation,
    pub(crate) address: Arc<str>,
    pub(crate) patience: Duration,
    /// The server itself has answered, not only an agent that knows none.
    is_served: Arc<AtomicBool>,
}

impl Link {
    pub(crate) fn new(transport: Transport, address: &str, patience: Duration) -> Self {
        let participation = ParticipationClient::new(transport);
        Self { participation, address: address.into(), patience, is_served: Arc::default() }
    }

    pub(crate) fn participation(&self) -> Participation {
        self.participation.clone()
    }

    /// The server has answered.
    pub(crate) fn was_served(&self) {
        self.is_served.store(true, Ordering::Relaxed);
    }

    /// Whether there is no server at all. One that was there is away, and comes back.
    pub(crate) fn is_absence(&self, status: &Status) -> bool {
        says_no_server(status) && !self.is_served.load(Ordering::Relaxed)
    }

    /// As [`Link::call_under`], for a request without a key.
    pub(crate) async fn call<T, F>(&self, attempt: impl Fn(Participation) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        self.call_under(None, attempt).await
    }

    /// Sends a request until it is answered, refused for good, or the patience is over. Every request of the contract may be
    /// sent twice: what counts carries a key.
    pub(crate) async fn call_under<T, F>(
        &self,
        key: Option<&str>,
        attempt: impl Fn(Participation) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let begin = Instant::now();
        let mut backoff = Backoff::new();
        let mut tries = Tries::default();
        loop {
            let left = self.patience.saturating_sub(begin.elapsed());
            let status = match timeout(left, attempt(self.participation())).await {
                Ok(Ok(response)) => {
                    self.was_served();
                    return Ok(response.into_inner());
                }
                Ok(Err(status)) if tries.last.is_none() && self.is_absence(&status) => {
                    return Err(Error::refused(&status));
                }
                Ok(Err(status)) if !is_worth_another_try(&status) => return Err(Error::refused(&status)),
                Ok(Err(status)) => status,
                Err(_) => {
                    tries.silence(key);
                    return Err(tries.error(&self.address, begin.elapsed(), key));
                }
            };
            let left = self.patience.saturating_sub(begin.elapsed());
            let wait = backoff.within(left, self.patience, retry_after(&status), fastrand::f64());
            tries.failed(status);
            match wait {
                Some(wait) => sleep(wait).await,
                None => return Err(tries.error(&self.address, begin.elapsed(), key)),
            }
        }
    }
}

/// What the tries of a request came to so far.
#[derive(Default)]
struct Tries {
    last: Option<Status>,
    /// The last after which what was asked may have been done. A later `busy` does not undo it.
    unsure: Option<Status>,
}

impl Tries {
    fn failed(&mut self, status: Status) {
        if may_be_done(&status) {
            self.unsure = Some(status.clone());
        }
        self.last = Some(status);
    }

    /// Nothing was heard of the last try. What was heard before says more, but for a request that may have been done.
    fn silence(&mut self, key: Option<&str>) {
        if key.is_some() || self.last.is_none() {
            self.unsure.get_or_insert_with(|| Status::unavailable("the server did not answer"));
        }
    }

    fn error(self, address: &str, waited: Duration, key: Option<&str>) -> Error {
        let status = self.unsure.or(self.last).unwrap_or_else(|| Status::unavailable("the server did not answer"));
        Error::of_status(status, address, waited, key)
    }
}
