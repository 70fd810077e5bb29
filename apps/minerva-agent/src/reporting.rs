//! Sends reports, for as long as the agent runs.

use crate::report::Watcher;
use crate::upstream::Upstream;
use futures_util::Stream;
use minerva_api::v1;
use minerva_api::v1::participation_client::ParticipationClient;
use minerva_client::{Backoff, retry_after};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};
use tonic::{Code, Status};

/// A server that wants no reports, as one that is older, may be replaced by one that does.
const REFUSED_PAUSE: Duration = Duration::from_secs(60);

/// One stream of reports after the other.
pub(crate) async fn run(upstream: Upstream, period: Duration) {
    let watcher = Arc::new(Mutex::new(Watcher::begin()));
    let mut backoff = Backoff::new();
    loop {
        let begin = Instant::now();
        let mut server = ParticipationClient::new(upstream.transport());
        let status = match server.report(reports(Arc::clone(&watcher), period)).await {
            Ok(_) => Status::unavailable("the server ended the stream of reports"),
            Err(status) => status,
        };
        if begin.elapsed() > period {
            // Some were taken meanwhile.
            backoff.reset();
        }
        if upstream.is_away(&status) || status.code() == Code::Unavailable {
            sleep(backoff.after(retry_after(&status), fastrand::f64())).await;
        } else {
            tracing::info!(reason = status.message(), "the server takes no reports, asking again in a minute");
            sleep(retry_after(&status).unwrap_or_default().max(REFUSED_PAUSE)).await;
        }
    }
}

/// A report each period, made when it can be sent and not before.
fn reports(watcher: Arc<Mutex<Watcher>>, period: Duration) -> impl Stream<Item = v1::ReportRequest> {
    futures_util::stream::unfold((watcher, Instant::now() + period), move |(watcher, due)| async move {
        sleep_until(due).await;
        let looking = Arc::clone(&watcher);
        // Reading of many processes takes a while, in which calls are carried.
        let looked =
            tokio::task::spawn_blocking(move || looking.lock().unwrap_or_else(PoisonError::into_inner).report());
        let report = looked.await.ok()?;
        Some((report, (watcher, Instant::now() + period)))
    })
}
