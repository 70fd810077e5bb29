//! The service as programs see it: every call is carried to the server, unread, and its answer back. Some are more than carried: a hold
//! of a level and a wait are resumed after a break, a level that lasts as long as a process is held by the agent, and what names a
//! disk of the guest is told what that looks like.

use crate::kept::Record;
use crate::level::{self, Calls, ProcessLevel};
use crate::listening::{Attendances, Peer, UNKNOWN_USER};
use crate::message::{Unread, carried};
use crate::own_disk;
use crate::resume::{self, Kind};
use crate::upstream::{Carried, Upstream};
use crate::users::{Slot, Slots};
use bytes::Bytes;
use http::uri::PathAndQuery;
use minerva_api::v1::participation_server::SERVICE_NAME;
use minerva_api::v1::{CoordinateRequest, HoldDebtRequest};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::metadata::MetadataValue;
use tonic::server::{Grpc, NamedService};
use tonic::{Request, Response, Status};
use tower::{Service, service_fn};

/// A request is small; a longer one is refused before it is read.
const REQUEST_BYTES_MAX: usize = 64 << 10;
/// Streams that may be open at a time: the server allows some more over one connection, and single requests need room beside.
const STREAMS_MAX: usize = 224;

/// How a method is carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// One request, one answer, sent again when the server was away.
    Unary,
    /// The same, unless it is for a process.
    SetLevel,
    Resumed(Kind),
    /// For as long as the program holds it. It breaks off with the server, because the program says anew how things are by then.
    Held,
    /// As it is: streams of reports, and what a newer contract may bring.
    Straight,
}

impl How {
    fn of(method: &str) -> Self {
        match method {
            "Describe" | "SetSchedule" | "Credits" | "Boost" | "Begin" | "Finish" | "Cancel" => Self::Unary,
            "SetLevel" => Self::SetLevel,
            "HoldLevel" => Self::Resumed(Kind::Hold),
            "Coordinate" => Self::Resumed(Kind::Wait),
            "HoldJob" | "HoldDebt" => Self::Held,
            _ => Self::Straight,
        }
    }
}

/// The service.
#[derive(Clone, Debug)]
pub(crate) struct Proxy {
    upstream: Upstream,
    process_level: ProcessLevel,
    attendances: Attendances,
    streams: Slots,
}

impl Proxy {
    /// Holds on to what the agent before this one held, as `record` has it.
    pub(crate) fn new(upstream: Upstream, attendances: Attendances, record: Record) -> Self {
        let process_level = ProcessLevel::new(record);
        let recalled = path_of("HoldLevel")
            .map_err(anyhow::Error::new)
            .and_then(|hold| process_level.recall(&upstream, &hold, attendances.enter()));
        if let Err(error) = recalled {
            tracing::warn!("the level of the agent before this one is lost, ignoring: {error:#}");
        }
        Self { upstream, process_level, attendances, streams: Slots::new(STREAMS_MAX) }
    }

    async fn carry(self, request: http::Request<Body>) -> http::Response<Body> {
        if let Some(absence) = self.upstream.absence().await {
            return absence.into_http();
        }
        let Some(path) = request.uri().path_and_query().cloned() else {
            return Status::unimplemented("a call has a path").into_http();
        };
        let method = path.path().rsplit('/').next().unwrap_or_default();
        let mut server = Grpc::new(Unread).max_decoding_message_size(REQUEST_BYTES_MAX);
        match How::of(method) {
            How::Unary => server.unary(service_fn(|one| self.unary(&path, one)), request).await,
            How::SetLevel => server.unary(service_fn(|one| self.set_level(&path, one)), request).await,
            How::Resumed(kind) => {
                server.server_streaming(service_fn(|one| self.resumed(&path, kind, one)), request).await
            }
            How::Held => {
                let is_debt = method == "HoldDebt";
                server.server_streaming(service_fn(|one| self.held(&path, is_debt, one)), request).await
            }
            How::Straight => self.straight(request).await,
        }
    }

    async fn unary(&self, path: &PathAndQuery, request: Request<Bytes>) -> Result<Response<Bytes>, Status> {
        let response = self.upstream.unary(&message(path, request)).await?;
        let (metadata, answer, _) = response.into_parts();
        Ok(Response::from_parts(carried(metadata), answer, tonic::Extensions::default()))
    }

    async fn set_level(&self, path: &PathAndQuery, request: Request<Bytes>) -> Result<Response<Bytes>, Status> {
        let peer = peer_of(&request);
        let call = message(path, request);
        let Some((asked, number)) = level::process_of(&call) else {
            let answer = self
                .unary(path, Request::from_parts(call.metadata, tonic::Extensions::default(), call.message))
                .await?;
            self.process_level.replace();
            return Ok(answer);
        };
        let peer = peer.ok_or_else(|| Status::unauthenticated("The kernel does not say who asks."))?;
        let process = level::open_process(&peer, number)?;
        let calls = Calls { hold: path_of("HoldLevel")?, set: path.clone() };
        self.process_level.hold(&self.upstream, &calls, asked, process, self.attendances.enter()).await
    }

    async fn resumed(
        &self,
        path: &PathAndQuery,
        kind: Kind,
        request: Request<Bytes>,
    ) -> Result<Response<impl tokio_stream::Stream<Item = Result<Bytes, Status>> + use<>>, Status> {
        let slot = self.slot(&request)?;
        let mut call = message(path, request);
        if kind == Kind::Wait {
            call.message = own_disk::told::<CoordinateRequest>(call.message);
        }
        let answers = resume::open(self.upstream.clone(), call, kind);
        // The slot lives in the stream, and goes with it.
        let answers = ReceiverStream::new(answers).map(move |answer| {
            let _held = &slot;
            answer
        });
        Ok(Response::new(answers))
    }

    async fn held(
        &self,
        path: &PathAndQuery,
        is_debt: bool,
        request: Request<Bytes>,
    ) -> Result<Response<impl tokio_stream::Stream<Item = Result<Bytes, Status>> + use<>>, Status> {
        let slot = self.slot(&request)?;
        let mut call = message(path, request);
        if is_debt {
            call.message = own_disk::told::<HoldDebtRequest>(call.message);
        }
        let answers = self.upstream.stream(&call).await.map_err(|status| self.upstream.broken_off(&status))?;
        let upstream = self.upstream.clone();
        let answers = answers.map(move |answer| {
            let _held = &slot;
            answer.map_err(|status| upstream.broken_off(&status))
        });
        Ok(Response::new(answers))
    }

    async fn straight(&self, request: http::Request<Body>) -> http::Response<Body> {
        let (mut parts, body) = request.into_parts();
        let metadata = carried(tonic::metadata::MetadataMap::from_headers(std::mem::take(&mut parts.headers)));
        parts.headers = metadata.into_headers();
        parts.headers.insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/grpc"));
        parts.headers.insert(http::header::TE, http::HeaderValue::from_static("trailers"));
        parts.extensions = http::Extensions::default();
        let mut server = self.upstream.transport();
        let ready = std::future::poll_fn(|context| Service::<http::Request<Body>>::poll_ready(&mut server, context));
        let result = match ready.await {
            Ok(()) => server.call(http::Request::from_parts(parts, body)).await,
            Err(error) => Err(error),
        };
        match result {
            Ok(response) => response.map(Body::new),
            Err(error) => Status::from_error(Box::new(error)).into_http(),
        }
    }

    /// A stream for whoever asks.
    fn slot(&self, request: &Request<Bytes>) -> Result<Slot, Status> {
        self.streams.take(peer_of(request).map_or(UNKNOWN_USER, |peer| peer.user)).ok_or_else(|| {
            let message = format!(
                "{STREAMS_MAX} holds and waits can be open through this agent, {} of them of one user. End some first.",
                STREAMS_MAX / 4 * 3
            );
            let mut status = Status::resource_exhausted(message);
            status.metadata_mut().insert("minerva-refusal", MetadataValue::from_static("too-many-streams"));
            status
        })
    }
}

/// Who asks, as the kernel says.
fn peer_of(request: &Request<Bytes>) -> Option<Peer> {
    request.extensions().get::<Option<Peer>>().cloned().flatten()
}

/// What is sent on of a request.
fn message(path: &PathAndQuery, request: Request<Bytes>) -> Carried {
    let (metadata, _, message) = request.into_parts();
    Carried { path: path.clone(), metadata: carried(metadata), message }
}

fn path_of(method: &str) -> Result<PathAndQuery, Status> {
    format!("/{SERVICE_NAME}/{method}").parse().map_err(|_| Status::internal("no path"))
}

impl NamedService for Proxy {
    const NAME: &'static str = SERVICE_NAME;
}

impl Service<http::Request<Body>> for Proxy {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let proxy = self.clone();
        Box::pin(async move { Ok(proxy.carry(request).await) })
    }
}
