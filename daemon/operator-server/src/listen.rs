//! The operators' socket and where metrics are scraped, opened before the daemon says that it is ready, so that a failure ends the
//! start.

use anyhow::Context;
use minerva_config::{DaemonSettings, Metrics as MetricsAddress};
use minerva_metrics_server::MetricsListener;
use std::fs::{self, Permissions};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// Listening, but not yet serving.
#[derive(Debug)]
pub struct OperatorListeners {
    pub(crate) operator: UnixListener,
    pub(crate) operator_path: PathBuf,
    /// The group whose members may look.
    pub(crate) viewers: Option<u32>,
    pub(crate) metrics: Option<MetricsListener>,
}

impl OperatorListeners {
    /// Opens the sockets. The caller holds the lock that only one daemon has, so that a socket left behind is nobody's.
    pub fn open(settings: &DaemonSettings) -> anyhow::Result<Self> {
        let operator = &settings.socket;
        let (viewers, group) = groups(settings)?;
        let metrics = match &settings.metrics {
            MetricsAddress::None => None,
            MetricsAddress::Unix(path) => Some(MetricsListener::Unix(bind(path, 0o660, group)?, path.clone())),
            MetricsAddress::Loopback(port) => {
                let address = SocketAddr::from((Ipv4Addr::LOCALHOST, *port));
                let listener = std::net::TcpListener::bind(address).with_context(|| {
                    format!("failed to listen on {address} for metrics; set another daemon.metrics")
                })?;
                listener.set_nonblocking(true).context("failed to set up the metrics port")?;
                Some(MetricsListener::Loopback(listener))
            }
        };
        // A file has one group, so with viewers everyone may connect, and what each may do is decided then.
        let mode = if viewers.is_some() { 0o666 } else { 0o660 };
        Ok(Self { operator: bind(operator, mode, group)?, operator_path: operator.clone(), viewers, metrics })
    }
}

/// Whether the groups that the settings name are there; opens nothing.
pub fn check(settings: &DaemonSettings) -> anyhow::Result<()> {
    groups(settings).map(drop)
}

/// The numbers of the viewers' group and of the sockets' own.
fn groups(settings: &DaemonSettings) -> anyhow::Result<(Option<u32>, Option<u32>)> {
    let viewers = group("daemon.viewer_group", settings.viewer_group.as_deref())?;
    Ok((viewers, group("daemon.socket_group", settings.socket_group.as_deref())?))
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

/// A listening Unix socket with exactly these permissions. Until they are set only the daemon's own user may connect.
fn bind(path: &Path, mode: u32, group: Option<u32>) -> anyhow::Result<UnixListener> {
    let listener = minerva_tenant_server::listen::bind(path, 0o600)?;
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
    fs::set_permissions(path, Permissions::from_mode(mode))
        .with_context(|| format!("failed to listen at {}", path.display()))?;
    Ok(listener)
}
