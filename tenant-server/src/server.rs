//! Accepts whoever connects, on a thread and a runtime of its own: whatever tenants do, operators and the slice loop do not wait.

use crate::authenticate::peer::Peer;
use crate::authenticate::process::LiveProcess;
use crate::authenticate::vm::machine_of_cid;
use crate::connection::Connection;
use crate::dispatch::Dispatcher;
use crate::listen::{ListenError, TenantListeners};
use crate::preface::PrefacedStream;
use crate::rpc::RpcHandler;
use crate::shared::Shared;
use crate::slots::ConnectionSlot;
use crate::source::Source;
use crate::status::Denial;
use crate::tls::Tls;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use minerva_linux_observe::Machines;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio_vsock::VsockListener;

/// Requests and streams that one connection may have open; an agent carries those of a whole guest.
const STREAMS_PER_CONNECTION: u32 = 256;
/// What a client may send before it is read, on a stream and on a connection; a message fits.
const STREAM_WINDOW_BYTES: u32 = 64 << 10;
const CONNECTION_WINDOW_BYTES: u32 = 256 << 10;
/// What waits for a slow client of one stream.
const SEND_BUFFER_BYTES: usize = 16 << 10;
const HEADERS_BYTES_MAX: u32 = 8 << 10;
/// Whoever connects has to say so within this.
const PREFACE_WAIT_MAX: Duration = Duration::from_secs(5);
/// The kernel's number for a user whom this host does not know.
const NO_USER: u32 = 65_534;
/// How often those are looked for who have not said who they are.
const ROUND: Duration = Duration::from_secs(1);
/// When no descriptor is left, accepting again at once would fail again at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Tenants are served while this is there.
#[derive(Debug)]
pub struct TenantServer {
    stop: watch::Sender<bool>,
    thread: JoinHandle<()>,
    sockets: Vec<PathBuf>,
}

impl TenantServer {
    /// Starts serving on a thread of its own.
    pub fn start(listeners: TenantListeners, shared: Shared) -> Result<Self, ListenError> {
        let (stop, mut stopped) = watch::channel(false);
        let sockets = listeners.sockets.clone();
        let thread = std::thread::Builder::new()
            .name("tenants".to_owned())
            .spawn(move || {
                let runtime = accept_all(listeners, shared);
                // Ends with an error when the sender is gone, which is an end as well.
                let _ = runtime.block_on(stopped.wait_for(|stop| *stop));
                // Streams that still run are cut: their clients ask again.
                runtime.shutdown_background();
            })
            .map_err(ListenError::Thread)?;
        Ok(Self { stop, thread, sockets })
    }

    /// Ends serving and removes the sockets.
    pub fn stop(self) {
        // Nobody listens when the thread has ended already.
        let _ = self.stop.send(true);
        if self.thread.join().is_err() {
            tracing::error!("the thread for tenants had panicked");
        }
        for socket in self.sockets {
            if let Err(error) = fs::remove_file(&socket) {
                tracing::debug!(%error, socket = %socket.display(), "the socket was gone already, ignoring");
            }
        }
    }
}

/// Begins to accept at every socket.
fn accept_all(listeners: TenantListeners, shared: Shared) -> Runtime {
    let acceptor = Acceptor::new(shared, listeners.keepalive);
    let closing = Arc::clone(&acceptor);
    listeners.runtime.spawn(async move { closing.close_overdue().await });
    if let Some(listener) = listeners.processes {
        let acceptor = Arc::clone(&acceptor);
        listeners.runtime.spawn(async move { acceptor.accept_processes(listener).await });
    }
    if let Some((listener, tls)) = listeners.network {
        let acceptor = Arc::clone(&acceptor);
        listeners.runtime.spawn(async move { acceptor.accept_network(listener, tls).await });
    }
    if let Some(listener) = listeners.vsock {
        let acceptor = Arc::clone(&acceptor);
        listeners.runtime.spawn(async move { acceptor.accept_vsock(listener).await });
    }
    for (number, (listener, path)) in listeners.machines.into_iter().enumerate() {
        let acceptor = Arc::clone(&acceptor);
        let source = Source::Socket(number);
        listeners.runtime.spawn(async move { acceptor.accept_machine(listener, source, path).await });
    }
    listeners.runtime
}

/// HTTP/2 with bounds: what one client can make the server keep is small.
fn http(keepalive: Duration) -> http2::Builder<TokioExecutor> {
    let mut http = http2::Builder::new(TokioExecutor::new());
    http.timer(TokioTimer::new())
        .keep_alive_interval(keepalive)
        .keep_alive_timeout(keepalive)
        .max_concurrent_streams(STREAMS_PER_CONNECTION)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_send_buf_size(SEND_BUFFER_BYTES)
        .max_header_list_size(HEADERS_BYTES_MAX)
        // No client's headers are kept for its next request: they are few, and clients are many.
        .header_table_size(0);
    http
}

/// Serves whoever comes in.
#[derive(Debug)]
pub(crate) struct Acceptor {
    shared: Arc<Shared>,
    dispatcher: Dispatcher,
    http: http2::Builder<TokioExecutor>,
    machines: Arc<Machines>,
}

impl Acceptor {
    pub(crate) fn new(shared: Shared, keepalive: Duration) -> Arc<Self> {
        let shared = Arc::new(shared);
        let dispatcher = Dispatcher::new(RpcHandler::new(Arc::clone(&shared)));
        let machines = Arc::new(Machines::new(shared.roots.clone()));
        Arc::new(Self { shared, dispatcher, http: http(keepalive), machines })
    }

    async fn accept_processes(&self, listener: UnixListener) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let source = Source::User(stream.peer_cred().map_or(NO_USER, |credentials| credentials.uid()));
                    let Some(slot) = self.admit(source) else { continue };
                    let peer = Peer::from(LiveProcess::of_peer(&stream, &self.shared.roots));
                    self.serve(stream, source, peer, slot);
                }
                Err(error) => failed_to_accept(&error).await,
            }
        }
    }

    async fn accept_machine(&self, listener: UnixListener, source: Source, path: PathBuf) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let Some(slot) = self.admit(source) else { continue };
                    self.serve(stream, source, Peer::Socket { path: path.clone() }, slot);
                }
                Err(error) => failed_to_accept(&error).await,
            }
        }
    }

    async fn accept_network(self: Arc<Self>, listener: TcpListener, tls: Option<Tls>) {
        loop {
            match listener.accept().await {
                Ok((stream, from)) => {
                    let source = Source::of_address(from.ip());
                    let Some(slot) = self.admit(source) else { continue };
                    let (acceptor, tls) = (Arc::clone(&self), tls.clone());
                    self.begin(slot, |slot| async move { acceptor.serve_network(stream, source, tls, slot).await });
                }
                Err(error) => failed_to_accept(&error).await,
            }
        }
    }

    async fn serve_network(&self, stream: TcpStream, source: Source, tls: Option<Tls>, slot: ConnectionSlot) {
        // Small messages are not to wait for each other; a socket that refuses that has gone.
        let _ = stream.set_nodelay(true);
        let Some(tls) = tls else { return self.serve(stream, source, Peer::Token, slot) };
        let may_begin = || self.shared.may_begin_handshake(source);
        match tokio::time::timeout(PREFACE_WAIT_MAX, tls.accept(stream, may_begin)).await {
            Ok(Ok(None)) => {}
            Ok(Ok(Some((stream, peer)))) => self.serve(stream, source, peer, slot),
            Ok(Err(error)) => tracing::debug!(%error, %source, "a client's TLS was not understood"),
            Err(_) => tracing::debug!(%source, "a client's TLS took too long"),
        }
    }

    async fn accept_vsock(self: Arc<Self>, listener: VsockListener) {
        loop {
            match listener.accept().await {
                Ok((stream, address)) => {
                    let source = Source::Machine(address.cid());
                    let Some(slot) = self.admit(source) else { continue };
                    let acceptor = Arc::clone(&self);
                    self.begin(slot, |slot| async move {
                        let peer = acceptor.machine(address.cid()).await;
                        acceptor.serve(stream, source, peer, slot);
                    });
                }
                Err(error) => failed_to_accept(&error).await,
            }
        }
    }

    /// The machine of a number on vsock: as the operator's file says, else as its process does.
    async fn machine(&self, cid: u32) -> Peer {
        if self.shared.identities.get().of_cid(cid).is_some() {
            return Peer::Machine { cid };
        }
        let (machines, roots, asked_at) = (Arc::clone(&self.machines), self.shared.roots.clone(), Instant::now());
        match tokio::task::spawn_blocking(move || machine_of_cid(cid, asked_at, &machines, &roots)).await {
            Ok(Ok((process, cgroup))) => Peer::Process { process, cgroup, machine: Some(cid) },
            Ok(Err(why)) => Peer::Nobody(why),
            Err(_) => Peer::Nobody("The server could not look for this machine.".to_owned()),
        }
    }

    /// A slot for a new connection, at the cost of an idle unauthenticated one if need be.
    pub(crate) fn admit(&self, source: Source) -> Option<ConnectionSlot> {
        match self.shared.limits().admit(source) {
            Ok((slot, dropped)) => {
                if let Some(dropped) = dropped {
                    self.shared.refused_unauthenticated(
                        dropped,
                        &dropped.to_string(),
                        "connection",
                        &Denial::made_room(),
                    );
                }
                Some(slot)
            }
            Err(denial) => {
                self.shared.refused_unauthenticated(source, &source.to_string(), "connect", &denial);
                None
            }
        }
    }

    /// Hangs up on those who do not say in time who they are.
    async fn close_overdue(&self) {
        loop {
            tokio::time::sleep(ROUND).await;
            for source in self.shared.limits().drop_overdue() {
                self.shared.refused_unauthenticated(source, &source.to_string(), "connection", &Denial::said_nothing());
            }
        }
    }

    /// Finds out who it is on a task of its own, which can be ended while nobody knows.
    fn begin<W: Future<Output = ()> + Send + 'static>(
        &self,
        slot: ConnectionSlot,
        work: impl FnOnce(ConnectionSlot) -> W,
    ) {
        let eviction = slot.eviction();
        eviction.is(tokio::spawn(work(slot)).abort_handle());
    }

    /// Serves the connection until it ends, if there is room for it.
    pub(crate) fn serve<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        &self,
        stream: S,
        source: Source,
        peer: Peer,
        slot: ConnectionSlot,
    ) {
        // Refused, it has said so.
        let Ok(connection) = Connection::new(Arc::clone(&self.shared), source, peer, slot) else { return };
        let (connection, http, dispatcher) = (Arc::new(connection), self.http.clone(), self.dispatcher.clone());
        let same = Arc::clone(&connection);
        let begun = tokio::spawn(async move {
            let stream = match PrefacedStream::begin(stream, PREFACE_WAIT_MAX).await {
                Ok(stream) => stream,
                Err(error) => return tracing::debug!(%error, who = connection.describe(), "a connection did not begin"),
            };
            let same = Arc::clone(&connection);
            let service = service_fn(move |request| dispatcher.clone().serve(Arc::clone(&connection), request));
            // A task of its own, in which there is nothing but the connection: with thousands of them its size counts.
            let served = tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
            same.is_served_by(served.abort_handle());
        });
        same.is_served_by(begun.abort_handle());
    }
}

async fn failed_to_accept(error: &std::io::Error) {
    tracing::warn!(%error, "a tenant's connection was not accepted, trying again");
    tokio::time::sleep(ACCEPT_PAUSE).await;
}
