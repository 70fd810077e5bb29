//! The thread that talks to clients: gRPC for tools on a Unix socket, metrics for Prometheus. It owns the only asynchronous
//! runtime; the slice loop has a thread of its own and is reached through bounded queues.

use crate::metrics;
use crate::operator_gate::{Groups, OperatorGate};
use crate::service::Service;
use anyhow::Context;
use axum::http::{StatusCode, header};
use axum::routing::get;
use minerva_api::v1::operator_server::OperatorServer;
use minerva_config::{DaemonSettings, Metrics as MetricsAddress};
use prometheus_client::registry::Registry;
use std::fs::{self, Permissions};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::watch;
use tokio_stream::wrappers::UnixListenerStream;

/// Streams that one connection may have open; a tool needs one.
const STREAMS_PER_CONNECTION: u32 = 16;
/// A message that a client sends is small; a longer one is refused before it is read.
const REQUEST_BYTES_MAX: usize = 64 * 1024;

/// Listening, but not yet serving. Made before the daemon says that it is ready, so that failures end the start.
#[derive(Debug)]
pub(crate) struct Doors {
    operator: UnixListener,
    operator_path: PathBuf,
    viewers: Option<u32>,
    metrics: Option<MetricsDoor>,
}

#[derive(Debug)]
enum MetricsDoor {
    Unix(UnixListener, PathBuf),
    Loopback(std::net::TcpListener),
}

impl Doors {
    /// Opens the sockets. The caller holds the lock that only one daemon has, so that a socket left behind is nobody's.
    pub(crate) fn open(settings: &DaemonSettings) -> anyhow::Result<Self> {
        let operator = &settings.socket;
        let (viewers, group) = (
            group("daemon.viewer_group", settings.viewer_group.as_deref())?,
            group("daemon.socket_group", settings.socket_group.as_deref())?,
        );
        let metrics = match &settings.metrics {
            MetricsAddress::None => None,
            MetricsAddress::Unix(path) => Some(MetricsDoor::Unix(bind(path, 0o660, group)?, path.clone())),
            MetricsAddress::Loopback(port) => {
                let address = SocketAddr::from((Ipv4Addr::LOCALHOST, *port));
                let listener = std::net::TcpListener::bind(address).with_context(|| {
                    format!("failed to listen on {address} for metrics; set another daemon.metrics")
                })?;
                listener.set_nonblocking(true).context("failed to set up the metrics port")?;
                Some(MetricsDoor::Loopback(listener))
            }
        };
        // A file has one group, so with viewers everyone may knock, and the gate looks who it is.
        let mode = if viewers.is_some() { 0o666 } else { 0o660 };
        Ok(Self { operator: bind(operator, mode, group)?, operator_path: operator.clone(), viewers, metrics })
    }
}

/// The number of the group that a key of the settings names.
fn group(key: &str, name: Option<&str>) -> anyhow::Result<Option<u32>> {
    let Some(name) = name else { return Ok(None) };
    if let Ok(number) = name.parse() {
        return Ok(Some(number));
    }
    let found = nix::unistd::Group::from_name(name).with_context(|| format!("failed to look up the group {name}"))?;
    let found = found.with_context(|| format!("there is no group '{name}'; mend {key}, or add the group"))?;
    Ok(Some(found.gid.as_raw()))
}

/// A listening Unix socket with exactly these permissions. Between binding and the change it is narrower, never wider.
pub(crate) fn bind(path: &Path, mode: u32, group: Option<u32>) -> anyhow::Result<UnixListener> {
    let context = || format!("failed to listen at {}", path.display());
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).with_context(context)?;
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error).with_context(context),
        _ => {}
    }
    let listener = UnixListener::bind(path).with_context(context)?;
    if let Some(group) = group {
        // Without CAP_CHOWN a process may give a file to a group of its own only.
        std::os::unix::fs::chown(path, None, Some(group)).with_context(|| {
            format!(
                "failed to give {} to the group of daemon.socket_group; name it in SupplementaryGroups= of the unit as well \
                 (systemctl edit minervad)",
                path.display()
            )
        })?;
    }
    fs::set_permissions(path, Permissions::from_mode(mode)).with_context(context)?;
    listener.set_nonblocking(true).with_context(context)?;
    Ok(listener)
}

/// The running server.
#[derive(Debug)]
pub(crate) struct Server {
    stop: watch::Sender<bool>,
    thread: JoinHandle<()>,
    sockets: Vec<PathBuf>,
}

impl Server {
    /// Starts serving on a thread of its own.
    pub(crate) fn start(doors: Doors, service: Service, registry: Registry) -> anyhow::Result<Self> {
        let (stop, stopped) = watch::channel(false);
        let mut sockets = vec![doors.operator_path.clone()];
        if let Some(MetricsDoor::Unix(_, path)) = &doors.metrics {
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
                if let Err(error) = runtime.block_on(serve(doors, service, registry, stopped)) {
                    tracing::error!(error = format!("{error:#}"), "clients are served no more, steering goes on");
                }
                // Streams that still run are cut: their clients see the end of the stream.
                runtime.shutdown_background();
            })
            .context("failed to start the thread for clients")?;
        Ok(Self { stop, thread, sockets })
    }

    /// Ends serving and removes the sockets.
    pub(crate) fn stop(self) {
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
    doors: Doors,
    service: Service,
    registry: Registry,
    mut stopped: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let owner_group = fs::metadata(&doors.operator_path).context("failed to look at the socket")?.gid();
    let listener = tokio::net::UnixListener::from_std(doors.operator).context("failed to serve the socket")?;
    if let Some(door) = doors.metrics {
        tokio::spawn(serve_metrics(door, registry));
    }
    let service = OperatorServer::new(service).max_decoding_message_size(REQUEST_BYTES_MAX);
    let guarded = OperatorGate::new(service, Groups { operators: owner_group, viewers: doors.viewers });
    let serving = tonic::transport::Server::builder()
        .max_concurrent_streams(STREAMS_PER_CONNECTION)
        .add_service(guarded)
        .serve_with_incoming(UnixListenerStream::new(listener));
    tokio::select! {
        result = serving => result.context("the server for clients ended"),
        _ = stopped.wait_for(|stop| *stop) => Ok(()),
    }
}

async fn serve_metrics(door: MetricsDoor, registry: Registry) {
    let registry = Arc::new(registry);
    let router = axum::Router::new().route("/metrics", get(move || scrape(Arc::clone(&registry))));
    let result = match door {
        MetricsDoor::Unix(listener, _) => match tokio::net::UnixListener::from_std(listener) {
            Ok(listener) => axum::serve(listener, router).await,
            Err(error) => Err(error),
        },
        MetricsDoor::Loopback(listener) => match tokio::net::TcpListener::from_std(listener) {
            Ok(listener) => axum::serve(listener, router).await,
            Err(error) => Err(error),
        },
    };
    if let Err(error) = result {
        tracing::error!(%error, "metrics are served no more");
    }
}

async fn scrape(registry: Arc<Registry>) -> (StatusCode, [(header::HeaderName, &'static str); 1], String) {
    const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    match metrics::render(&registry) {
        Ok(text) => (StatusCode::OK, [(header::CONTENT_TYPE, TYPE)], text),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, [(header::CONTENT_TYPE, "text/plain")], error.to_string()),
    }
}
