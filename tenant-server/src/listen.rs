//! The sockets for tenants, opened before the daemon says that it is ready, so that a failure ends the start.

use crate::container_socket;
use crate::tls::{Tls, TlsError};
use minerva_config::ParticipationSettings;
use minerva_linux_observe::socket_path::remove_left_behind;
use std::fs::{self, Permissions};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::Runtime;
use tokio_vsock::{VMADDR_CID_ANY, VsockAddr, VsockListener};

/// Why tenants cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The runtime did not start.
    #[error("failed to start the runtime for tenants")]
    Runtime(#[source] io::Error),
    /// A Unix socket was not opened.
    #[error("failed to listen at {}", path.display())]
    Socket {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The TCP port was not opened.
    #[error("failed to listen on {address}; set another participation.listen")]
    Network {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The vsock port was not opened.
    #[error("failed to listen on port {port} of vsock; load the module vhost_vsock, or unset participation.vsock_port")]
    Vsock {
        /// Which port.
        port: u32,
        /// Why.
        source: io::Error,
    },
    /// The certificates are not good.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The thread did not start.
    #[error("failed to start the thread for tenants")]
    Thread(#[source] io::Error),
}

/// Listening, but not yet serving. Made before the daemon says that it is ready, so that failures end the start.
#[derive(Debug)]
pub struct TenantListeners {
    pub(crate) runtime: Runtime,
    pub(crate) processes: Option<UnixListener>,
    /// Of user-space vsock devices, with the path by which `[[identities]]` names the machine's tenant.
    pub(crate) machines: Vec<(UnixListener, PathBuf)>,
    pub(crate) network: Option<(TcpListener, Option<Tls>)>,
    pub(crate) vsock: Option<VsockListener>,
    pub(crate) sockets: Vec<PathBuf>,
    pub(crate) keepalive: Duration,
}

impl TenantListeners {
    /// Opens the sockets. The caller holds the lock that only one daemon has, so that a socket left behind is nobody's.
    pub fn open(settings: &ParticipationSettings) -> Result<Self, ListenError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            // Looks into /proc for the machines on vsock.
            .max_blocking_threads(1)
            .build()
            .map_err(ListenError::Runtime)?;
        let entered = runtime.enter();
        let mut sockets = Vec::new();
        let mut listen = |path: &Path, mode| -> Result<UnixListener, ListenError> {
            let listener = UnixListener::from_std(bind(path, mode)?);
            sockets.push(path.to_owned());
            listener.map_err(|source| ListenError::Socket { path: path.to_owned(), source })
        };
        // Everyone may connect: the kernel says who it is.
        let processes = settings.socket.as_ref().map(|path| listen(path, 0o666)).transpose()?;
        let mut machines = Vec::new();
        for path in settings.machine_sockets() {
            // Whoever may connect speaks for the machine: nobody but root and the directory's group.
            machines.push((listen(path, 0o660)?, path.to_owned()));
        }
        sockets.extend(settings.socket.as_deref().and_then(for_containers));
        let network = network(settings)?;
        let vsock = settings.vsock_port.map(|port| {
            VsockListener::bind(VsockAddr::new(VMADDR_CID_ANY, port))
                .map_err(|source| ListenError::Vsock { port, source })
        });
        let vsock = vsock.transpose()?;
        drop(entered);
        let keepalive = Duration::from_nanos(settings.keepalive.0);
        Ok(Self { runtime, processes, machines, network, vsock, sockets, keepalive })
    }

    /// The certificates, which can be read anew while connections are served.
    pub fn tls(&self) -> Option<Tls> {
        self.network.as_ref()?.1.clone()
    }
}

/// The socket once more where containers may mount it. Those do without if that cannot be, and everyone else is served.
fn for_containers(socket: &Path) -> Option<PathBuf> {
    let linked = container_socket::link(socket);
    let told = linked.inspect_err(|error| {
        tracing::warn!(%error, socket = %socket.display(), "tenants' socket is not there for containers to mount, ignoring");
    });
    told.ok()
}

/// Whether the certificates that the settings name can be used; opens nothing else.
pub fn check(settings: &ParticipationSettings) -> Result<(), ListenError> {
    if settings.listen.is_some() {
        Tls::load(settings)?;
    }
    Ok(())
}

/// The TCP listener. Without a certificate the settings allow loopback addresses only.
fn network(settings: &ParticipationSettings) -> Result<Option<(TcpListener, Option<Tls>)>, ListenError> {
    let Some(address) = settings.listen else { return Ok(None) };
    let tls = Tls::load(settings)?;
    let failed = |source| ListenError::Network { address, source };
    let listener = std::net::TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(Some((TcpListener::from_std(listener).map_err(failed)?, tls)))
}

/// A listening Unix socket with exactly these permissions, in place of one that was left behind. Between binding and the change it
/// is narrower, never wider.
pub fn bind(path: &Path, mode: u32) -> Result<std::os::unix::net::UnixListener, ListenError> {
    let listen = || -> io::Result<std::os::unix::net::UnixListener> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        remove_left_behind(path)?;
        let listener = std::os::unix::net::UnixListener::bind(path)?;
        fs::set_permissions(path, Permissions::from_mode(mode))?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    listen().map_err(|source| ListenError::Socket { path: path.to_owned(), source })
}
