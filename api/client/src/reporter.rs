//! Reports of what the host cannot see from outside.

use crate::backoff::Backoff;
use crate::error::retry_after;
use crate::link::Link;
use minerva_api::v1;
use tokio::sync::watch;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::WatchStream;
use tonic::Code;

/// Sends reports, the latest again after a lost connection. Dropping it ends the stream.
#[derive(Debug)]
pub struct Reporter {
    latest: watch::Sender<Option<v1::ReportRequest>>,
}

impl Reporter {
    /// Without a link what is sent goes nowhere.
    pub(crate) fn start(link: Option<Link>) -> Self {
        let (latest, reports) = watch::channel(None);
        if let Some(link) = link {
            tokio::spawn(forward(link, reports));
        }
        Self { latest }
    }

    /// Never waits: a report that was not sent yet is replaced by this one.
    pub fn send(&self, report: v1::ReportRequest) {
        self.latest.send_replace(Some(report));
    }
}

/// One stream after the other, until the reporter is gone or the server wants no reports.
async fn forward(link: Link, reports: watch::Receiver<Option<v1::ReportRequest>>) {
    let mut backoff = Backoff::new();
    loop {
        let stream = WatchStream::new(reports.clone()).filter_map(|report| report);
        let status = match link.participation().report(stream).await {
            Ok(_) => None,
            Err(status) if matches!(status.code(), Code::Unimplemented | Code::PermissionDenied) => return,
            Err(status) => Some(status),
        };
        if reports.has_changed().is_err() {
            return;
        }
        let wait = backoff.after(status.as_ref().and_then(retry_after), fastrand::f64());
        tokio::time::sleep(wait).await;
    }
}
