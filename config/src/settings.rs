//! What the operator's file says, validated: an immutable snapshot. The engine's part is a type of `core/model`, which also
//! holds its defaults; the rest is the daemon's own.

use crate::participation::ParticipationSettings;
use crate::problem::Problem;
use minerva_model::{EngineConfig, TenantRule};
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// The whole file, with its drop-ins, ready to be used.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// What the engine is told.
    pub engine: EngineConfig,
    /// Rules for tenants, in the order of the files.
    pub rules: Vec<TenantRule>,
    /// Tenants that are batch jobs, as rules to be read after the others.
    pub jobs: Vec<TenantRule>,
    /// Process groups that the operator names.
    pub named: NamedSettings,
    /// The daemon's own settings.
    pub daemon: DaemonSettings,
    /// The listeners for tenants.
    pub participation: ParticipationSettings,
    /// What is allowed but looks like a mistake.
    pub warnings: Vec<Problem>,
}

/// Process groups started by `minerva-ctl run` and adopted by `minerva-ctl attach`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NamedSettings {
    /// The cgroup in which they get one of their own, below the root of the hierarchy and without a leading slash.
    pub parent: String,
}

impl NamedSettings {
    /// The cgroup in which background work has one of its own for each piece. It is beside the other, so that what weighs there weighs against
    /// all named groups together.
    pub fn background_parent(&self) -> String {
        format!("{}-background", self.parent)
    }
}

impl Default for NamedSettings {
    fn default() -> Self {
        Self { parent: "minerva".to_owned() }
    }
}

/// The daemon's own settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DaemonSettings {
    /// What may vanish with a reboot: the socket, the journal of knobs, the lock.
    pub runtime_dir: PathBuf,
    /// What must not: the store.
    pub state_dir: PathBuf,
    /// Where tools talk to the daemon.
    pub socket: PathBuf,
    /// Who may use that socket and the one for metrics besides root; absent: the group that the daemon runs as.
    pub socket_group: Option<String>,
    /// Who may look, and nothing else.
    pub viewer_group: Option<String>,
    /// Where metrics can be read.
    pub metrics: Metrics,
    /// What is written to the log.
    pub log: LogSettings,
    /// The hierarchy with the io or blkio controller; absent: found in `/proc/self/mountinfo`.
    pub cgroup_root: Option<PathBuf>,
    /// Globs: only cgroups at or below a match are tenants. Empty: all.
    pub include: Vec<String>,
    /// Kernel names: only these disks are looked at. Empty: all.
    pub devices_only: Vec<String>,
    /// A second process restores every knob when the daemon dies without having done so.
    pub guard: bool,
}

impl Default for DaemonSettings {
    fn default() -> Self {
        Self {
            runtime_dir: PathBuf::from("/run/minerva"),
            state_dir: PathBuf::from("/var/lib/minerva"),
            socket: PathBuf::from("/run/minerva/minervad.sock"),
            socket_group: None,
            viewer_group: None,
            metrics: Metrics::None,
            log: LogSettings::default(),
            cgroup_root: None,
            include: Vec::new(),
            devices_only: Vec::new(),
            guard: true,
        }
    }
}

/// Where metrics can be read. Never on an address that other hosts reach.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metrics {
    /// Nowhere.
    #[default]
    None,
    /// On a Unix socket.
    Unix(PathBuf),
    /// On this TCP port of the loopback addresses.
    Loopback(u16),
}

impl fmt::Display for Metrics {
    /// The form of the file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Loopback(port) => write!(f, "loopback:{port}"),
        }
    }
}

/// What is written to the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LogSettings {
    /// Nothing below this.
    pub level: LogLevel,
    /// How a line looks.
    pub format: LogFormat,
}

/// How much is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogLevel {
    /// What stops the daemon.
    Error,
    /// What a person should act on.
    Warn,
    /// What changed.
    #[default]
    Info,
    /// Each decision.
    Debug,
    /// Each read and write.
    Trace,
}

impl LogLevel {
    /// Every level, from the quietest.
    pub const ALL: [Self; 5] = [Self::Error, Self::Warn, Self::Info, Self::Debug, Self::Trace];

    /// The word of the file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

/// How a line of the log looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl LogFormat {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Text, Self::Json];

    /// The word of the file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}
