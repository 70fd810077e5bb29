//! Which groups have a QEMU process in them, so that people are shown a guest. A process chooses what it is called, so this gives nothing. Of
//! its command line nothing is read: that waits for the process's memory, which whoever serves a file in it can hold for ever. Nor is `stat`,
//! which waits for a process that begins another program: `comm` waits for nothing.

use crate::parse::parse_pids;
use crate::read::Reader;
use minerva_model::TenantKind;
use rustix::fd::{AsFd, OwnedFd};
use std::path::Path;

/// A guest has one QEMU process, and few beside it.
const GUEST_PROCESSES_MAX: usize = 4;

/// Whether a kind is so general that its processes may say more.
pub(crate) const fn may_be_guest(kind: TenantKind) -> bool {
    matches!(kind, TenantKind::Service | TenantKind::Scope | TenantKind::Cgroup)
}

/// The guest's name when one of the few processes of a group is QEMU.
pub(crate) fn guest_in(root: &OwnedFd, proc: &Path, group: &str, reader: &mut Reader) -> Option<String> {
    let text = reader.below(root.as_fd(), &format!("{group}/cgroup.procs")).ok()?;
    // A group with thousands of processes is no guest's, and need not be understood.
    if text.iter().filter(|byte| **byte == b'\n').count() > GUEST_PROCESSES_MAX {
        return None;
    }
    parse_pids(text).rows.into_iter().find_map(|pid| guest_name(&proc.join(pid.to_string()), pid, reader))
}

/// The guest's name if the process in `folder` is QEMU.
fn guest_name(folder: &Path, pid: u32, reader: &mut Reader) -> Option<String> {
    let name = reader.path(&folder.join("comm")).ok()?.trim_ascii_end();
    // The kernel cuts a program's name to 15 bytes: qemu-system-x86_64 is qemu-system-x86.
    (name.starts_with(b"qemu-system") || name == b"qemu-kvm").then(|| format!("qemu-{pid}"))
}
