//! Who asks, over vsock: the process of the virtual machine that has the number, and its cgroup.

use crate::authenticate::process::{AuthenticationError, LiveProcess};
use minerva_linux_observe::{Machines, Roots};
use std::time::Instant;

/// The process and its cgroup; a sentence when there is none, or more than one. May look at every process of the host.
pub(crate) fn machine_of_cid(
    cid: u32,
    asked_at: Instant,
    machines: &Machines,
    roots: &Roots,
) -> Result<(LiveProcess, String), String> {
    let pid = machines.of_cid(cid, asked_at).map_err(|error| error.to_string())?;
    let (process, cgroup) =
        LiveProcess::of_number(pid, roots).map_err(|error: AuthenticationError| error.to_string())?;
    // Another process may have the number by now.
    if !roots.is_machine(&cgroup) {
        return Err(AuthenticationError::Ended(pid).to_string());
    }
    Ok((process, cgroup))
}
