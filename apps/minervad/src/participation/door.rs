//! The doors at which tenants ask, on a thread and a runtime of their own: whatever tenants do there, operators and the slice
//! loop do not wait.

use crate::participation::door_connection::{Connection, Peer};
use crate::participation::door_gate::Gate;
use crate::participation::door_lobby::Lobby;
use crate::participation::door_service::Door;
use crate::participation::door_stream::Begun;
use crate::participation::door_tls::Tls;
use crate::participation::identity::Process;
use crate::participation::identity_machine::machine_of_cid;
use crate::server::bind;
use anyhow::Context;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use minerva_config::{KnownBy, ParticipationSettings};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, watch};
use tokio_vsock::{VMADDR_CID_ANY, VsockAddr, VsockListener};

/// Requests and streams that one connection may have open; an agent carries those of a whole guest.
const STREAMS_PER_CONNECTION: u32 = 256;
/// What a client may send before it is read, on a stream and on a connection; a message fits.
const STREAM_WINDOW_BYTES: u32 = 64 << 10;
const CONNECTION_WINDOW_BYTES: u32 = 256 << 10;
/// What waits for a slow client of one stream.
const SEND_BUFFER_BYTES: usize = 16 << 10;
const HEADERS_BYTES_MAX: u32 = 8 << 10;
/// Whoever connects has to say so within this.
const PREFACE_PATIENCE: Duration = Duration::from_secs(5);
/// Handshakes of TLS and looks for machines under way at once; whoever dawdles is dropped.
const HANDSHAKES_MAX: usize = 64;
/// When no descriptor is left, accepting again at once would fail again at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Descriptors that the daemon needs beside those of connections.
const DESCRIPTORS_OWN: u64 = 256;

/// Listening, but not yet serving. Made before the daemon says that it is ready, so that failures end the start.
#[derive(Debug)]
pub(crate) struct TenantDoors {
    runtime: Runtime,
    processes: Option<UnixListener>,
    /// Of user-space vsock devices, with the tenant that the machine is.
    machines: Vec<(UnixListener, String)>,
    network: Option<(TcpListener, Option<Tls>)>,
    vsock: Option<VsockListener>,
    sockets: Vec<PathBuf>,
    keepalive: Duration,
}

impl TenantDoors {
    /// Opens the sockets. The caller holds the lock that only one daemon has, so that a socket left behind is nobody's.
    pub(crate) fn open(settings: &ParticipationSettings) -> anyhow::Result<Self> {
        raise_descriptor_limit(settings.limits.connections_max);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            // Looks into /proc for the machines on vsock.
            .max_blocking_threads(1)
            .build()
            .context("failed to start the runtime for tenants")?;
        let entered = runtime.enter();
        let mut sockets = Vec::new();
        let mut listen = |path: &PathBuf, mode| -> anyhow::Result<UnixListener> {
            let listener = UnixListener::from_std(bind(path, mode, None)?);
            sockets.push(path.clone());
            listener.with_context(|| format!("failed to serve {}", path.display()))
        };
        // Everyone may knock: the kernel says who it is.
        let processes = settings.socket.as_ref().map(|path| listen(path, 0o666)).transpose()?;
        let mut machines = Vec::new();
        for identity in &settings.identities {
            if let Some(KnownBy::VsockSocket(path)) = &identity.known_by {
                // Whoever may connect speaks for the machine: nobody but root and the directory's group.
                machines.push((listen(path, 0o660)?, identity.tenant.clone()));
            }
        }
        let network = network(settings)?;
        let vsock = settings.vsock_port.map(|port| {
            VsockListener::bind(VsockAddr::new(VMADDR_CID_ANY, port)).with_context(|| {
                format!("failed to listen on port {port} of vsock; load the module vhost_vsock, or unset participation.vsock_port")
            })
        });
        let vsock = vsock.transpose()?;
        drop(entered);
        let keepalive = Duration::from_nanos(settings.keepalive.0);
        Ok(Self { runtime, processes, machines, network, vsock, sockets, keepalive })
    }
}

/// The TCP door. Without a certificate the settings allow loopback addresses only.
fn network(settings: &ParticipationSettings) -> anyhow::Result<Option<(TcpListener, Option<Tls>)>> {
    let Some(address) = settings.listen else { return Ok(None) };
    let tls = match (&settings.certificate, &settings.key) {
        (Some(certificate), Some(key)) => Some(Tls::load(certificate, key, settings.client_ca.as_deref())?),
        _ => None,
    };
    let context = || format!("failed to listen on {address}; set another participation.listen");
    let listener = std::net::TcpListener::bind(address).with_context(context)?;
    listener.set_nonblocking(true).with_context(context)?;
    Ok(Some((TcpListener::from_std(listener).with_context(context)?, tls)))
}

/// Two of the usual limit of 1,024 are soon one too many; the service manager's hard limit is meant for this.
fn raise_descriptor_limit(connections_max: u32) {
    let mut limit = getrlimit(Resource::Nofile);
    let wanted = u64::from(connections_max) + DESCRIPTORS_OWN;
    if limit.current.is_none_or(|current| current >= wanted) {
        return;
    }
    limit.current = Some(limit.maximum.map_or(wanted, |most| most.min(wanted)));
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "the number of open files was not raised, so that fewer tenants can connect, ignoring");
    }
    if limit.current < Some(wanted) {
        tracing::warn!(
            "{} connections of tenants need {wanted} open files; raise LimitNOFILE= of the unit, or lower \
             participation.connections_max",
            connections_max
        );
    }
}

/// The doors, open.
#[derive(Debug)]
pub(crate) struct DoorThread {
    stop: watch::Sender<bool>,
    thread: JoinHandle<()>,
    sockets: Vec<PathBuf>,
}

impl DoorThread {
    /// Starts serving on a thread of its own.
    pub(crate) fn start(doors: TenantDoors, lobby: Lobby) -> anyhow::Result<Self> {
        let (stop, mut stopped) = watch::channel(false);
        let sockets = doors.sockets.clone();
        let thread = std::thread::Builder::new()
            .name("tenants".to_owned())
            .spawn(move || {
                let runtime = open_all(doors, lobby);
                // Ends with an error when the sender is gone, which is an end as well.
                let _ = runtime.block_on(stopped.wait_for(|stop| *stop));
                // Streams that still run are cut: their clients ask again.
                runtime.shutdown_background();
            })
            .context("failed to start the thread for tenants")?;
        Ok(Self { stop, thread, sockets })
    }

    /// Ends serving and removes the sockets.
    pub(crate) fn stop(self) {
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

/// Begins to accept at every door.
fn open_all(doors: TenantDoors, lobby: Lobby) -> Runtime {
    let lobby = Arc::new(lobby);
    let gate = Gate::new(Door::new(Arc::clone(&lobby)));
    let handshakes = Arc::new(Semaphore::new(HANDSHAKES_MAX));
    let host = Arc::new(Host { lobby, gate, http: http(doors.keepalive), handshakes });
    if let Some(listener) = doors.processes {
        let host = Arc::clone(&host);
        doors.runtime.spawn(async move { host.accept_processes(listener).await });
    }
    if let Some((listener, tls)) = doors.network {
        let host = Arc::clone(&host);
        doors.runtime.spawn(async move { host.accept_network(listener, tls).await });
    }
    if let Some(listener) = doors.vsock {
        let host = Arc::clone(&host);
        doors.runtime.spawn(async move { host.accept_vsock(listener).await });
    }
    for (listener, tenant) in doors.machines {
        let host = Arc::clone(&host);
        doors.runtime.spawn(async move { host.accept_machine(listener, tenant).await });
    }
    doors.runtime
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
struct Host {
    lobby: Arc<Lobby>,
    gate: Gate,
    http: http2::Builder<TokioExecutor>,
    handshakes: Arc<Semaphore>,
}

impl Host {
    async fn accept_processes(&self, listener: UnixListener) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let peer = Peer::from(Process::of_peer(&stream, &self.lobby.roots));
                    self.welcome(stream, peer);
                }
                Err(error) => failed_to_accept(&error).await,
            }
        }
    }

    async fn accept_machine(&self, listener: UnixListener, tenant: String) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    self.welcome(stream, Peer::Named { tenant: tenant.clone(), identified_by: "vsock" });
                }
                Err(error) => failed_to_accept(&error).await,
            }
        }
    }

    async fn accept_network(self: Arc<Self>, listener: TcpListener, tls: Option<Tls>) {
        loop {
            // Those who come meanwhile wait in the kernel's queue.
            let Ok(handshake) = Arc::clone(&self.handshakes).acquire_owned().await else { return };
            let (stream, from) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    failed_to_accept(&error).await;
                    continue;
                }
            };
            let (host, tls) = (Arc::clone(&self), tls.clone());
            tokio::spawn(async move {
                let _handshake = handshake;
                let Some(tls) = tls else { return host.welcome(stream, Peer::Token) };
                match tokio::time::timeout(PREFACE_PATIENCE, host.shake_hands(stream, &tls)).await {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => tracing::debug!(%error, %from, "a client's TLS was not understood"),
                    Err(_) => tracing::debug!(%from, "a client's TLS took too long"),
                }
            });
        }
    }

    async fn shake_hands(&self, stream: TcpStream, tls: &Tls) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let stream = tls.accept(stream).await?;
        let peer = tls.peer(&stream, &self.lobby.identities);
        self.welcome(stream, peer);
        Ok(())
    }

    async fn accept_vsock(self: Arc<Self>, listener: VsockListener) {
        loop {
            let Ok(handshake) = Arc::clone(&self.handshakes).acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, address)) => {
                    let host = Arc::clone(&self);
                    tokio::spawn(async move {
                        let _handshake = handshake;
                        let peer = host.machine(address.cid()).await;
                        host.welcome(stream, peer);
                    });
                }
                Err(error) => failed_to_accept(&error).await,
            }
        }
    }

    /// The machine of a number on vsock: as the operator's file says, else as its process does.
    async fn machine(&self, cid: u32) -> Peer {
        const BY: &str = "vsock";
        if let Some(tenant) = self.lobby.identities.of_cid(cid) {
            return Peer::Named { tenant: tenant.to_owned(), identified_by: BY };
        }
        let roots = self.lobby.roots.clone();
        match tokio::task::spawn_blocking(move || machine_of_cid(cid, &roots)).await {
            Ok(Ok((process, cgroup))) => Peer::Process { process, cgroup, identified_by: BY },
            Ok(Err(why)) => Peer::Nobody(why),
            Err(_) => Peer::Nobody("The server could not look for this machine.".to_owned()),
        }
    }

    /// Serves the connection until it ends, if there is room for it.
    fn welcome<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(&self, stream: S, peer: Peer) {
        let connection = match Connection::new(Arc::clone(&self.lobby), peer) {
            Ok(connection) => Arc::new(connection),
            Err(denial) => return self.lobby.log.refused_stranger("somebody", "connect", &denial),
        };
        let (http, gate) = (self.http.clone(), self.gate.clone());
        tokio::spawn(async move {
            let stream = match Begun::begin(stream, PREFACE_PATIENCE).await {
                Ok(stream) => stream,
                Err(error) => return tracing::debug!(%error, who = connection.describe(), "a connection did not begin"),
            };
            let service = service_fn(move |request| gate.clone().serve(Arc::clone(&connection), request));
            // A task of its own, in which there is nothing but the connection: with thousands of them its size counts.
            tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
        });
    }
}

async fn failed_to_accept(error: &std::io::Error) {
    tracing::warn!(%error, "a tenant's connection was not accepted, trying again");
    tokio::time::sleep(ACCEPT_PAUSE).await;
}
