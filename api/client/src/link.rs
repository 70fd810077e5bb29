//! One server and the patience with it: requests that are sent again.

use crate::backoff::Backoff;
use crate::error::{Error, is_worth_another_try, retry_after};
use crate::transport::Transport;
use minerva_api::v1::participation_client::ParticipationClient;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};
use tonic::{Response, Status};

/// The generated client.
pub(crate) type Participation = ParticipationClient<Transport>;

/// A server.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    participation: Participation,
    pub(crate) address: Arc<str>,
    pub(crate) patience: Duration,
}

impl Link {
    pub(crate) fn new(transport: Transport, address: &str, patience: Duration) -> Self {
        Self { participation: ParticipationClient::new(transport), address: address.into(), patience }
    }

    pub(crate) fn participation(&self) -> Participation {
        self.participation.clone()
    }

    /// Sends a request until it is answered, refused for good, or the patience is over. Every request of the contract may be
    /// sent twice: what counts carries a key.
    pub(crate) async fn call<T, F>(&self, attempt: impl Fn(Participation) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let begin = Instant::now();
        let mut backoff = Backoff::new();
        let mut last = Status::unavailable("the server did not answer");
        loop {
            let left = self.patience.saturating_sub(begin.elapsed());
            match timeout(left, attempt(self.participation())).await {
                Ok(Ok(response)) => return Ok(response.into_inner()),
                Ok(Err(status)) => last = status,
                // What was heard before says more than the silence after it.
                Err(_) => return Err(Error::of_status(last, &self.address, begin.elapsed())),
            }
            let wait = backoff.after(retry_after(&last), fastrand::f64());
            if !is_worth_another_try(&last) || begin.elapsed() + wait > self.patience {
                return Err(Error::of_status(last, &self.address, begin.elapsed()));
            }
            sleep(wait).await;
        }
    }
}
