//! The doors at which tenants ask, on a thread and a runtime of their own: whatever tenants do there, operators and the slice
//! loop do not wait.

use crate::operator::listen::bind;
use crate::participation::door_connection::{Connection, Peer};
use crate::participation::door_gate::Gate;
use crate::participation::door_lobby::Lobby;
use crate::participation::door_place::Place;
use crate::participation::door_service::Door;
use crate::participation::door_status::Denial;
use crate::participation::door_stream::Begun;
use crate::participation::door_tls::Tls;
use crate::participation::identity::Process;
use crate::participation::identity_machine::machine_of_cid;
use crate::participation::strangers::Source;
use anyhow::Context;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use minerva_config::{KnownBy, ParticipationSettings};
use minerva_linux_observe::Machines;
use rustix::process::{Resource, getrlimit, setrlimit};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::runtime::Runtime;
use tokio::sync::watch;
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
/// The kernel's number for a user whom this host does not know.
const NO_USER: u32 = 65_534;
/// How often those are looked for who have not said who they are.
const ROUND: Duration = Duration::from_secs(1);
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

    /// The certificates, which can be read anew while the doors stand open.
    pub(crate) fn tls(&self) -> Option<Tls> {
        self.network.as_ref()?.1.clone()
    }
}

/// The TCP door. Without a certificate the settings allow loopback addresses only.
fn network(settings: &ParticipationSettings) -> anyhow::Result<Option<(TcpListener, Option<Tls>)>> {
    let Some(address) = settings.listen else { return Ok(None) };
    let tls = Tls::load(settings)?;
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
    let host = Host::new(lobby, doors.keepalive);
    let porter = Arc::clone(&host);
    doors.runtime.spawn(async move { porter.see_out().await });
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
    for (number, (listener, tenant)) in doors.machines.into_iter().enumerate() {
        let host = Arc::clone(&host);
        let source = Source::Socket(number);
        doors.runtime.spawn(async move { host.accept_machine(listener, source, tenant).await });
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
pub(crate) struct Host {
    lobby: Arc<Lobby>,
    gate: Gate,
    http: http2::Builder<TokioExecutor>,
    machines: Arc<Machines>,
}

impl Host {
    pub(crate) fn new(lobby: Lobby, keepalive: Duration) -> Arc<Self> {
        let lobby = Arc::new(lobby);
        let gate = Gate::new(Door::new(Arc::clone(&lobby)));
        let machines = Arc::new(Machines::new(lobby.roots.clone()));
        Arc::new(Self { lobby, gate, http: http(keepalive), machines })
    }

    async fn accept_processes(&self, listener: UnixListener) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let source = Source::User(stream.peer_cred().map_or(NO_USER, |credentials| credentials.uid()));
                    let Some(place) = self.arrive(source) else { continue };
                    let peer = Peer::from(Process::of_peer(&stream, &self.lobby.roots));
                    self.welcome(stream, source, peer, place);
                }
                Err(error) => failed_to_accept(&error).await,
            }
        }
    }

    async fn accept_machine(&self, listener: UnixListener, source: Source, tenant: String) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let Some(place) = self.arrive(source) else { continue };
                    self.welcome(stream, source, Peer::Socket { tenant: tenant.clone() }, place);
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
                    let Some(place) = self.arrive(source) else { continue };
                    let (host, tls) = (Arc::clone(&self), tls.clone());
                    self.begin(place, |place| async move { host.serve_network(stream, source, tls, place).await });
                }
                Err(error) => failed_to_accept(&error).await,
            }
        }
    }

    async fn serve_network(&self, stream: TcpStream, source: Source, tls: Option<Tls>, place: Place) {
        // Small messages are not to wait for each other; a socket that refuses that has gone.
        let _ = stream.set_nodelay(true);
        let Some(tls) = tls else { return self.welcome(stream, source, Peer::Token, place) };
        match tokio::time::timeout(PREFACE_PATIENCE, tls.accept(stream)).await {
            Ok(Ok((stream, peer))) => self.welcome(stream, source, peer, place),
            Ok(Err(error)) => tracing::debug!(%error, %source, "a client's TLS was not understood"),
            Err(_) => tracing::debug!(%source, "a client's TLS took too long"),
        }
    }

    async fn accept_vsock(self: Arc<Self>, listener: VsockListener) {
        loop {
            match listener.accept().await {
                Ok((stream, address)) => {
                    let source = Source::Machine(address.cid());
                    let Some(place) = self.arrive(source) else { continue };
                    let host = Arc::clone(&self);
                    self.begin(place, |place| async move {
                        let peer = host.machine(address.cid()).await;
                        host.welcome(stream, source, peer, place);
                    });
                }
                Err(error) => failed_to_accept(&error).await,
            }
        }
    }

    /// The machine of a number on vsock: as the operator's file says, else as its process does.
    async fn machine(&self, cid: u32) -> Peer {
        if self.lobby.identities.get().of_cid(cid).is_some() {
            return Peer::Machine { cid };
        }
        let (machines, roots, asked_at) = (Arc::clone(&self.machines), self.lobby.roots.clone(), Instant::now());
        match tokio::task::spawn_blocking(move || machine_of_cid(cid, asked_at, &machines, &roots)).await {
            Ok(Ok((process, cgroup))) => Peer::Process { process, cgroup, identified_by: "vsock" },
            Ok(Err(why)) => Peer::Nobody(why),
            Err(_) => Peer::Nobody("The server could not look for this machine.".to_owned()),
        }
    }

    /// A place for one who comes in, at the cost of one who dawdles if need be.
    pub(crate) fn arrive(&self, source: Source) -> Option<Place> {
        match self.lobby.limits().arrive(source) {
            Ok((place, dropped)) => {
                if let Some(dropped) = dropped {
                    self.lobby.refused_stranger(dropped, &dropped.to_string(), "connection", &Denial::made_room());
                }
                Some(place)
            }
            Err(denial) => {
                self.lobby.refused_stranger(source, &source.to_string(), "connect", &denial);
                None
            }
        }
    }

    /// Hangs up on those who do not say in time who they are.
    async fn see_out(&self) {
        loop {
            tokio::time::sleep(ROUND).await;
            for source in self.lobby.limits().drop_overdue() {
                self.lobby.refused_stranger(source, &source.to_string(), "connection", &Denial::said_nothing());
            }
        }
    }

    /// Finds out who it is on a task of its own, which can be ended while nobody knows.
    fn begin<W: Future<Output = ()> + Send + 'static>(&self, place: Place, work: impl FnOnce(Place) -> W) {
        let ending = place.ending();
        ending.is(tokio::spawn(work(place)).abort_handle());
    }

    /// Serves the connection until it ends, if there is room for it.
    pub(crate) fn welcome<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        &self,
        stream: S,
        source: Source,
        peer: Peer,
        place: Place,
    ) {
        // Refused, it has said so.
        let Ok(connection) = Connection::new(Arc::clone(&self.lobby), source, peer, place) else { return };
        let (connection, http, gate) = (Arc::new(connection), self.http.clone(), self.gate.clone());
        let same = Arc::clone(&connection);
        let begun = tokio::spawn(async move {
            let stream = match Begun::begin(stream, PREFACE_PATIENCE).await {
                Ok(stream) => stream,
                Err(error) => return tracing::debug!(%error, who = connection.describe(), "a connection did not begin"),
            };
            let same = Arc::clone(&connection);
            let service = service_fn(move |request| gate.clone().serve(Arc::clone(&connection), request));
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
