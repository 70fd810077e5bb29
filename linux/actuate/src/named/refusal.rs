//! What cannot be a named tenant, and why.

use crate::error::ActuateError;
use rustix::io::Errno;
use std::borrow::Cow;
use std::path::PathBuf;

/// The longest name of a group.
const NAME_BYTES_MAX: usize = 64;

/// Why a process could not be put into a named group.
#[derive(Debug, thiserror::Error)]
pub enum NamedError {
    /// The name would not be a plain directory name.
    #[error(
        "'{name}' is no name for a tenant: use 1 to {NAME_BYTES_MAX} letters, digits, '.', '_' or '-', not starting with '.'"
    )]
    Name {
        /// The name.
        name: String,
    },
    /// There is no such process.
    #[error("there is no process {pid}")]
    NoProcess {
        /// The process id.
        pid: u32,
    },
    /// The number is no process's, or that of one which must stay where it is.
    #[error("{pid} is no process that can be made a tenant: {why}")]
    NotAProcess {
        /// The number.
        pid: u32,
        /// What it is.
        why: Cow<'static, str>,
    },
    /// Others who name tenants were not to be waited for.
    #[error("failed to wait for others that name tenants now")]
    Lock(#[source] ActuateError),
    /// The kernel refused.
    #[error("failed to {operation} {}", path.display())]
    Kernel {
        /// What was tried.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// The kernel's answer.
        #[source]
        source: std::io::Error,
    },
    /// The weight, or that the group is ours, could not be kept.
    #[error("failed to keep what is known of the tenant")]
    Weight(#[source] ActuateError),
}

impl NamedError {
    /// The caller may not do it.
    pub fn is_permission_denied(&self) -> bool {
        let source = match self {
            Self::Kernel { source, .. }
            | Self::Weight(ActuateError::Io { source, .. })
            | Self::Lock(ActuateError::Io { source, .. }) => source,
            // It is root's.
            Self::Lock(ActuateError::UnsafeRuntimeDir { .. }) => return !rustix::process::geteuid().is_root(),
            _ => return false,
        };
        source.kind() == std::io::ErrorKind::PermissionDenied
    }
}

/// The kernel takes 0 for whoever writes it, which is the daemon, and the number of a thread for its whole process.
pub(super) fn check_process(pid: u32) -> Result<(), NamedError> {
    let why: &'static str = match pid {
        0 => "0 stands for whoever asks, and that is Minerva",
        1 => "1 is the init of this host",
        2 => "2 is the kernel's",
        _ if i32::try_from(pid).is_err() => "no process has so high a number",
        _ => return check_is_no_thread(pid),
    };
    Err(NamedError::NotAProcess { pid, why: why.into() })
}

fn check_is_no_thread(pid: u32) -> Result<(), NamedError> {
    let path = PathBuf::from(format!("/proc/{pid}/status"));
    let status = std::fs::read_to_string(&path).map_err(|source| match Errno::from_io_error(&source) {
        Some(Errno::NOENT | Errno::SRCH) => NamedError::NoProcess { pid },
        _ => NamedError::Kernel { operation: "read", path, source },
    })?;
    let process = status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse::<u32>().ok());
    match process {
        Some(process) if process != pid => {
            let why =
                format!("it is a thread of {process}, with which the kernel would move all of that process").into();
            Err(NamedError::NotAProcess { pid, why })
        }
        _ => Ok(()),
    }
}

/// A plain directory name.
pub(super) fn check_name(name: &str) -> Result<(), NamedError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    match name.len() {
        1..=NAME_BYTES_MAX if name.bytes().all(plain) && !name.starts_with('.') => Ok(()),
        _ => Err(NamedError::Name { name: name.chars().take(2 * NAME_BYTES_MAX).collect() }),
    }
}
