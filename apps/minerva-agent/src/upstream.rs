//! The server, over one connection that is made again when it is lost, and the patience with it. Requests wait for a server that
//! is away; while none was ever there, programs are told so.

use crate::message::{Unread, carried_status};
use bytes::Bytes;
use http::uri::PathAndQuery;
use minerva_api::v1;
use minerva_api::v1::participation_client::ParticipationClient;
use minerva_client::{Address, Backoff, Credentials, Transport, retry_after};
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tonic::client::Grpc;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Extensions, Request, Response, Status, Streaming};

/// A request waits for so long for a server that is away. Clients are less patient by default and give up before.
const PATIENCE: Duration = Duration::from_secs(30);

/// A program waits no longer to hear whether there is a server: by then a first connection is made or has failed.
const FIRST_TRY_MAX: Duration = Duration::from_secs(5);
/// A server that takes the connection and does not answer is not reached.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// A request, unread, that can be sent more than once.
#[derive(Clone, Debug)]
pub(crate) struct Carried {
    pub(crate) path: PathAndQuery,
    pub(crate) metadata: MetadataMap,
    pub(crate) message: Bytes,
}

impl Carried {
    fn request(&self) -> Request<Bytes> {
        Request::from_parts(self.metadata.clone(), Extensions::default(), self.message.clone())
    }
}

/// The server.
#[derive(Clone, Debug)]
pub(crate) struct Upstream {
    transport: Transport,
    address: Arc<str>,
    /// Whether it was there when it was last needed; told in the log when that changes.
    is_there: Arc<AtomicBool>,
    reach: watch::Sender<Reach>,
}

/// Whether the server was ever there.
#[derive(Clone, Debug)]
enum Reach {
    /// Nobody knows yet.
    Trying,
    /// It was not there, for the reason given, as often as it was tried.
    Never(String),
    /// From then on it is there or away, and requests wait for it.
    Once,
}

impl Upstream {
    /// Connects when that is needed first.
    pub(crate) fn new(address: &Address, credentials: &Credentials) -> Result<Self, minerva_client::Error> {
        let transport = minerva_client::open_lazily(address, credentials)?;
        let address = address.to_string().into();
        let reach = watch::channel(Reach::Trying).0;
        Ok(Self { transport, address, is_there: Arc::new(AtomicBool::new(true)), reach })
    }

    /// Looks for the server until it is there for the first time. Its answer does not matter.
    pub(crate) async fn seek(&self) {
        let mut backoff = Backoff::new();
        loop {
            let mut server = ParticipationClient::new(self.transport());
            let answer = match timeout(ANSWER_MAX, server.describe(v1::DescribeRequest {})).await {
                Ok(answer) => answer,
                Err(_) => Err(Status::unavailable("it does not answer")),
            };
            let Err(status) = answer else { break };
            // What a server says is a server's, also that it cannot answer yet.
            if !self.is_away(&status) {
                break;
            }
            let reason = reason(&status);
            let is_sought = self.reach.send_if_modified(|reach| {
                let is_sought = !matches!(reach, Reach::Once);
                if is_sought {
                    *reach = Reach::Never(reason);
                }
                is_sought
            });
            // Somebody else has reached it meanwhile.
            if !is_sought {
                return;
            }
            sleep(backoff.after(retry_after(&status), fastrand::f64())).await;
        }
        self.was_there();
    }

    /// What a program is told while the server was never there: at once, so that it goes on as where there is none.
    pub(crate) async fn absence(&self) -> Option<Status> {
        let mut reach = self.reach.subscribe();
        let tried = timeout(FIRST_TRY_MAX, reach.wait_for(|reach| !matches!(reach, Reach::Trying))).await;
        let reason = match tried {
            Ok(Ok(reach)) => match &*reach {
                Reach::Once => return None,
                Reach::Never(reason) => reason.clone(),
                Reach::Trying => String::new(),
            },
            _ => "no connection yet".to_owned(),
        };
        let mut status = Status::unavailable(format!("No server answers at {} ({reason}).", self.address));
        status.metadata_mut().insert(WORD_KEY, MetadataValue::from_static("no-server"));
        Some(status)
    }

    /// What generated clients and raw requests run over.
    pub(crate) fn transport(&self) -> Transport {
        self.transport.clone()
    }

    /// Sends a request until it is answered, refused, or the patience is over. Every request of the contract may be sent twice:
    /// what counts carries a key.
    pub(crate) async fn unary(&self, request: &Carried) -> Result<Response<Bytes>, Status> {
        let begin = Instant::now();
        let mut backoff = Backoff::new();
        loop {
            let status = match self.unary_once(request).await {
                Ok(response) => {
                    self.was_there();
                    return Ok(response);
                }
                Err(status) => status,
            };
            let wait = backoff.after(retry_after(&status), fastrand::f64());
            if !self.is_away(&status) {
                return Err(carried_status(&status));
            }
            if begin.elapsed() + wait > PATIENCE {
                return Err(self.handed_on(&status));
            }
            sleep(wait).await;
        }
    }

    async fn unary_once(&self, request: &Carried) -> Result<Response<Bytes>, Status> {
        let mut server = Grpc::new(self.transport());
        ready(&mut server).await?;
        server.unary(request.request(), request.path.clone(), Unread).await
    }

    /// Sends a request that is answered by a stream, once.
    pub(crate) async fn stream(&self, request: &Carried) -> Result<Streaming<Bytes>, Status> {
        let mut server = Grpc::new(self.transport());
        ready(&mut server).await?;
        let answers = server.server_streaming(request.request(), request.path.clone(), Unread).await?;
        Ok(answers.into_inner())
    }

    /// The server answered, whoever asked it.
    pub(crate) fn was_there(&self) {
        self.reach.send_if_modified(|reach| {
            let is_first = !matches!(reach, Reach::Once);
            *reach = Reach::Once;
            is_first
        });
        if !self.is_there.swap(true, Ordering::Relaxed) {
            tracing::info!(server = %self.address, "the server is back");
        }
    }

    /// Whether a status means that the server was not there. What it refused it refused, also for now: programs ask again, and are told its
    /// word in the end.
    pub(crate) fn is_away(&self, status: &Status) -> bool {
        let made_here = status.source().is_some();
        let is_away = made_here || (status.code() == Code::Unavailable && !is_refusal(status));
        if is_away && self.is_there.swap(false, Ordering::Relaxed) {
            tracing::warn!(server = %self.address, error = reason(status), "the server is away, trying again");
        } else if !is_away {
            self.was_there();
        }
        is_away
    }

    /// The status that a program gets of a stream that is not resumed.
    pub(crate) fn broken_off(&self, status: &Status) -> Status {
        if self.is_away(status) { self.handed_on(status) } else { carried_status(status) }
    }

    /// The status that a program gets when the server stays away.
    fn handed_on(&self, status: &Status) -> Status {
        if status.source().is_none() {
            return carried_status(status);
        }
        Status::unavailable(format!("The agent does not reach the server at {}: {}", self.address, reason(status)))
    }
}

/// Metadata of a refusal: its word.
const WORD_KEY: &str = "minerva-refusal";

/// Whether a server refused. An agent between that has not reached one either is none.
fn is_refusal(status: &Status) -> bool {
    status.metadata().get(WORD_KEY).is_some_and(|word| word != "no-server")
}

async fn ready(server: &mut Grpc<Transport>) -> Result<(), Status> {
    server.ready().await.map_err(|error| Status::from_error(Box::new(error)))
}

/// The innermost cause: the layers around it say only that there was one.
fn reason(status: &Status) -> String {
    let mut cause: &dyn Error = status;
    while let Some(next) = cause.source() {
        cause = next;
    }
    match status.source() {
        Some(_) => cause.to_string(),
        None => status.message().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever resumes a level may reach a server that is back before the next of the growing pauses of [`Upstream::seek`] is over.
    #[tokio::test]
    async fn what_anybody_reached_is_there_for_programs_at_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let address = format!("unix:{}", directory.path().join("server.sock").display()).parse().expect("an address");
        let upstream = Upstream::new(&address, &Credentials::default()).expect("a transport");
        let sought = upstream.clone();
        let seek = tokio::spawn(async move { sought.seek().await });
        let absence = upstream.absence().await.expect("nobody listens");
        assert_eq!(absence.code(), Code::Unavailable);
        upstream.was_there();
        assert!(upstream.absence().await.is_none());
        // The search ends with its next failure, and takes nothing back.
        seek.await.expect("an end");
        assert!(upstream.absence().await.is_none());
    }
}
