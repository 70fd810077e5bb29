//! The thread that talks to clients: gRPC for tools on a Unix socket, metrics for Prometheus. It owns an asynchronous runtime of
//! its own; the slice loop has another thread and is reached through bounded queues.

use crate::access::{Access, Groups};
use crate::idle::IdleTimeout;
use crate::listen::OperatorListeners;
use crate::refusals::RefusalCounts;
use crate::room::{Room, Taken};
use crate::service::Service;
use anyhow::Context;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use minerva_api::v1::operator_server::OperatorServer;
use minerva_clock::boottime;
use minerva_linux_observe::PeerCredentials;
use minerva_metrics_server::MetricsListener;
use prometheus_client::registry::Registry;
use std::convert::Infallible;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tonic::body::Body;
use tonic::codegen::Service as Handler;
use tonic::{Code, Status};

/// Streams that one connection may have open, until their answers are read; a tool needs one.
const STREAMS_PER_CONNECTION: u32 = 16;
/// And one of a client that may look, or nothing: what all of these have not read yet is to be little memory.
const STREAMS_PER_VIEWER: u32 = 4;
/// A message that a client sends is small; a longer one is refused before it is read.
const REQUEST_BYTES_MAX: usize = 64 * 1024;
const HEADERS_BYTES_MAX: u32 = 8 << 10;
/// Connections at the same time, by what their clients may do: those who may nothing take no operator's place.
const OPERATORS_MAX: usize = 64;
const VIEWERS_MAX: usize = 32;
const DENIED_MAX: usize = 8;
/// And of one user who may look, or nothing, so that others of these still get through.
const VIEWERS_OF_ONE_USER_MAX: usize = VIEWERS_MAX / 4;
const DENIED_OF_ONE_USER_MAX: usize = DENIED_MAX / 2;
/// A client that has connected says something within this.
const FIRST_BYTE_MAX: Duration = Duration::from_secs(10);
/// A connection on which nothing goes either way ends after this. The longest slice is a minute, and watching shows each.
const IDLE_MAX: Duration = Duration::from_secs(300);
/// Whoever may nothing is told so, and has no use for a connection after that.
const DENIED_IDLE_MAX: Duration = Duration::from_secs(5);
/// When no descriptor is left, accepting again at once would fail again at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How often it is looked whether refusals are to be summed up.
const REFUSALS_PERIOD: Duration = Duration::from_secs(10);

/// The running server.
#[derive(Debug)]
pub struct Server {
    stop: watch::Sender<bool>,
    thread: JoinHandle<()>,
    sockets: Vec<PathBuf>,
}

impl Server {
    /// Starts serving on a thread of its own.
    pub fn start(listeners: OperatorListeners, service: Service, registry: Registry) -> anyhow::Result<Self> {
        let (stop, stopped) = watch::channel(false);
        let mut sockets = vec![listeners.operator_path.clone()];
        if let Some(MetricsListener::Unix(_, path)) = &listeners.metrics {
            sockets.push(path.clone());
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            // Looks into the store, of which one at a time is enough.
            .max_blocking_threads(2)
            .build()
            .context("failed to start the runtime for clients")?;
        let thread = std::thread::Builder::new()
            .name("clients".to_owned())
            .spawn(move || {
                if let Err(error) = runtime.block_on(serve(listeners, service, registry, stopped)) {
                    tracing::error!(error = format!("{error:#}"), "clients are served no more, steering goes on");
                }
                // Streams that still run are cut: their clients see the end of the stream.
                runtime.shutdown_background();
            })
            .context("failed to start the thread for clients")?;
        Ok(Self { stop, thread, sockets })
    }

    /// Ends serving and removes the sockets.
    pub fn stop(self) {
        // Nobody listens when the thread has ended already.
        let _ = self.stop.send(true);
        if self.thread.join().is_err() {
            tracing::error!("the thread for clients had panicked");
        }
        for socket in self.sockets {
            if let Err(error) = fs::remove_file(&socket) {
                tracing::debug!(%error, socket = %socket.display(), "the socket was gone already, ignoring");
            }
        }
    }
}

async fn serve(
    listeners: OperatorListeners,
    service: Service,
    registry: Registry,
    mut stopped: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let operators = fs::metadata(&listeners.operator_path).context("failed to look at the socket")?.gid();
    let listener = UnixListener::from_std(listeners.operator).context("failed to serve the socket")?;
    if let Some(metrics) = listeners.metrics {
        tokio::spawn(async move {
            if let Err(error) = minerva_metrics_server::serve(metrics, registry).await {
                tracing::error!("metrics are not served: {error:#}");
            }
        });
    }
    let service = OperatorServer::new(service).max_decoding_message_size(REQUEST_BYTES_MAX);
    let clients = Clients::new(service, Groups { operators, viewers: listeners.viewers });
    tokio::select! {
        () = clients.accept(listener) => Ok(()),
        _ = stopped.wait_for(|stop| *stop) => Ok(()),
    }
}

/// Clients of the operators' socket, and the service behind it.
struct Clients<S> {
    service: S,
    groups: Groups,
    http: http2::Builder<TokioExecutor>,
    refusals: Arc<Mutex<RefusalCounts>>,
    operators: Arc<Room>,
    viewers: Arc<Room>,
    denied: Arc<Room>,
}

impl<S> Clients<S>
where
    S: Handler<http::Request<Incoming>, Response = http::Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    fn new(service: S, groups: Groups) -> Self {
        let mut http = http2::Builder::new(TokioExecutor::new());
        http.timer(TokioTimer::new()).max_header_list_size(HEADERS_BYTES_MAX);
        Self {
            service,
            groups,
            http,
            refusals: Arc::default(),
            operators: Room::new(OPERATORS_MAX, OPERATORS_MAX),
            viewers: Room::new(VIEWERS_MAX, VIEWERS_OF_ONE_USER_MAX),
            denied: Room::new(DENIED_MAX, DENIED_OF_ONE_USER_MAX),
        }
    }

    async fn accept(&self, listener: UnixListener) {
        let mut period = tokio::time::interval(REFUSALS_PERIOD);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = period.tick() => {
                    self.sum_up_refusals();
                    continue;
                }
            };
            match accepted {
                Ok((stream, _)) => self.connected(stream),
                Err(error) => {
                    tracing::warn!(%error, "a client's connection was not accepted, trying again");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Decides what a client may do, and serves it if there is room.
    fn connected(&self, stream: UnixStream) {
        let peer = match PeerCredentials::of(&stream) {
            Ok(peer) => peer,
            Err(error) => {
                // Closed: nobody is told anything of whom the kernel does not say who it is.
                let why = format!("the kernel does not say who connected: {error}");
                return log_refusal(&self.refusals, nobody(), "connect", &why);
            }
        };
        let access = self.groups.access(&peer);
        let (room, streams_max, idle) = match access {
            Access::Root | Access::Operator => (&self.operators, STREAMS_PER_CONNECTION, IDLE_MAX),
            Access::Viewer => (&self.viewers, STREAMS_PER_VIEWER, IDLE_MAX),
            Access::Denied => (&self.denied, STREAMS_PER_VIEWER, DENIED_IDLE_MAX),
        };
        let Some(taken) = room.take(peer.uid) else {
            return log_refusal(&self.refusals, peer, "connect", "too many clients are connected");
        };
        let stream = IdleTimeout::new(stream, FIRST_BYTE_MAX.min(idle), idle);
        let client = Client { peer, access, refusals: Arc::clone(&self.refusals), _taken: taken };
        self.serve(stream, streams_max, Arc::new(client));
    }

    fn serve(&self, stream: IdleTimeout<UnixStream>, streams_max: u32, client: Arc<Client>) {
        let service = self.service.clone();
        let handler = service_fn(move |request| handle(service.clone(), Arc::clone(&client), request));
        let mut http = self.http.clone();
        let connection = http.max_concurrent_streams(streams_max).serve_connection(TokioIo::new(stream), handler);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::trace!(%error, "a client hung up, or was hung up on");
            }
        });
    }

    fn sum_up_refusals(&self) {
        let unlogged = self.refusals.lock().unwrap_or_else(PoisonError::into_inner).end_period(boottime());
        if let Some(count) = unlogged {
            tracing::warn!(count, "more clients were refused at the operators' socket than are logged one by one");
        }
    }
}

/// The other end of one connection.
struct Client {
    peer: PeerCredentials,
    access: Access,
    refusals: Arc<Mutex<RefusalCounts>>,
    /// Its room among the connections.
    _taken: Taken,
}

/// Answers one request; a refusal is an answer too. What is refused for what it says, and not for its method, the service refuses.
async fn handle<S>(
    mut service: S,
    client: Arc<Client>,
    mut request: http::Request<Incoming>,
) -> Result<http::Response<Body>, Infallible>
where
    S: Handler<http::Request<Incoming>, Response = http::Response<Body>, Error = Infallible>,
{
    let path = request.uri().path().to_owned();
    let method = path.rsplit('/').next().unwrap_or_default();
    let response = match client.access.permit(method) {
        Ok(()) => {
            request.extensions_mut().insert(client.access);
            request.extensions_mut().insert(client.peer.clone());
            service.call(request).await?
        }
        Err(status) => status.into_http(),
    };
    if let Some(status) = Status::from_header_map(response.headers())
        && status.code() == Code::PermissionDenied
    {
        log_refusal(&client.refusals, client.peer.clone(), method, status.message());
    }
    Ok(response)
}

/// Logs a refusal, unless there were too many.
fn log_refusal(refusals: &Mutex<RefusalCounts>, peer: PeerCredentials, method: &str, why: &str) {
    if refusals.lock().unwrap_or_else(PoisonError::into_inner).count(peer.uid) {
        // A method's name is a client's text: shown so that it cannot look like a line of its own.
        tracing::warn!(uid = peer.uid, gid = peer.gid, ?method, "refused a client at the operators' socket: {why}");
    }
}

/// The kernel's numbers for a user and a group that it cannot name.
fn nobody() -> PeerCredentials {
    PeerCredentials { uid: 65_534, gid: 65_534, groups: Vec::new() }
}

#[cfg(test)]
mod tests;
