//! The listeners for tenants: `[participation]` and `[[identities]]`.

use minerva_model::Nanos;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The port of vsock and of TCP unless the file names another.
pub const PORT_DEFAULT: u16 = 7420;

/// Where tenants may ask, who they are, and how much they may ask.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ParticipationSettings {
    /// The Unix socket for processes and containers of this host; absent: none.
    pub socket: Option<PathBuf>,
    /// The TCP address; absent: none.
    pub listen: Option<SocketAddr>,
    /// The server's certificate chain, PEM.
    pub certificate: Option<PathBuf>,
    /// Its private key, PEM.
    pub key: Option<PathBuf>,
    /// Who signs the certificates of clients, PEM; absent: clients show tokens.
    pub client_ca: Option<PathBuf>,
    /// The port of vsock; absent: none.
    pub vsock_port: Option<u32>,
    /// How long a silent client is believed to be there, and how long it has to answer then.
    pub keepalive: Nanos,
    /// How long the ledger of credits has each entry; then it has what they came to.
    pub ledger_keep: Nanos,
    /// How much may be asked.
    pub limits: TenantLimits,
    /// Who is who where the kernel does not say it.
    pub identities: Vec<Identity>,
}

impl Default for ParticipationSettings {
    fn default() -> Self {
        Self {
            socket: Some(PathBuf::from("/run/minerva/tenant.sock")),
            listen: None,
            certificate: None,
            key: None,
            client_ca: None,
            vsock_port: None,
            keepalive: Nanos::from_secs(20),
            ledger_keep: Nanos::from_secs(90 * 86_400),
            limits: TenantLimits::default(),
            identities: Vec::new(),
        }
    }
}

impl ParticipationSettings {
    /// Listeners that were opened by these settings can go on by the `newer` ones, which differ in nothing but what can be changed while
    /// they run: the limits, who is who, and where the certificates are. A machine's own socket is opened at the start only.
    pub fn is_same_server(&self, newer: &Self) -> bool {
        let frame = |settings: &Self| {
            let Self { socket, listen, certificate, vsock_port, keepalive, ledger_keep, .. } = settings.clone();
            (socket, listen, certificate.is_some(), vsock_port, keepalive, ledger_keep)
        };
        let opened: BTreeSet<&Path> = self.machine_sockets().collect();
        frame(self) == frame(newer) && newer.machine_sockets().all(|socket| opened.contains(socket))
    }

    /// The sockets that `[[identities]]` name, each of one machine.
    pub fn machine_sockets(&self) -> impl Iterator<Item = &Path> {
        self.identities.iter().filter_map(|identity| match &identity.known_by {
            Some(KnownBy::VsockSocket(path)) => Some(path.as_path()),
            _ => None,
        })
    }
}

/// How much tenants may ask. An account is a group of the operator's, or a tenant without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TenantLimits {
    /// Requests of one account, on average.
    pub requests_per_second: u32,
    /// Requests of one account at once, after a pause.
    pub burst: u32,
    /// Connections in all.
    pub connections_max: u32,
    /// Connections of one account.
    pub connections_per_account_max: u32,
    /// Requests and streams under way in all.
    pub streams_max: u32,
    /// Requests and streams under way of one account.
    pub streams_per_account_max: u32,
}

impl Default for TenantLimits {
    fn default() -> Self {
        Self {
            requests_per_second: 100,
            burst: 200,
            connections_max: 16_384,
            connections_per_account_max: 256,
            streams_max: 16_384,
            streams_per_account_max: 256,
        }
    }
}

/// One who asks, and the tenant that it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Identity {
    /// The tenant's name, as `minerva-ctl status` shows it.
    pub tenant: String,
    /// How it is known; absent only in a file that is refused.
    pub known_by: Option<KnownBy>,
}

/// What proves who asks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum KnownBy {
    /// A client certificate with this common name or alternative DNS name.
    Certificate(String),
    /// A bearer token whose SHA-256 this is.
    TokenSha256([u8; 32]),
    /// A virtual machine's number on vsock.
    VsockCid(u32),
    /// A Unix socket to which the machine's user-space vsock device turns its connections.
    VsockSocket(PathBuf),
}

impl KnownBy {
    /// The key of the file.
    pub const fn key(&self) -> &'static str {
        match self {
            Self::Certificate(_) => "certificate",
            Self::TokenSha256(_) => "token_sha256",
            Self::VsockCid(_) => "vsock_cid",
            Self::VsockSocket(_) => "vsock_socket",
        }
    }
}

impl fmt::Display for KnownBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Certificate(name) => f.write_str(name),
            Self::TokenSha256(digest) => digest.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
            Self::VsockCid(cid) => write!(f, "{cid}"),
            Self::VsockSocket(path) => write!(f, "{}", path.display()),
        }
    }
}
