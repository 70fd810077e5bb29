//! How the other end of a connection is known.

use crate::authenticate::process::{AuthenticationError, LiveProcess};
use std::path::PathBuf;

/// How the one at the other end is known.
#[derive(Debug)]
pub(crate) enum Peer {
    /// A process of this host. `machine`: it is the machine of this number on vsock, which the operator's file may name later.
    Process { process: LiveProcess, cgroup: String, machine: Option<u32> },
    /// By a certificate that was good when it was shown, for as long as it is. The operator's file names its tenant.
    Certificate { names: Vec<String>, not_after_unix_s: i64 },
    /// A machine on vsock whose number the operator's file names.
    Machine { cid: u32 },
    /// Whoever may connect to a machine's own socket. The operator's file names its tenant.
    Socket { path: PathBuf },
    /// By a token with each request.
    Token,
    /// Not at all, and why: everything is refused with this.
    Nobody(String),
}

impl From<Result<(LiveProcess, String), AuthenticationError>> for Peer {
    fn from(found: Result<(LiveProcess, String), AuthenticationError>) -> Self {
        match found {
            Ok((process, cgroup)) => Self::Process { process, cgroup, machine: None },
            Err(error) => Self::Nobody(error.to_string()),
        }
    }
}
