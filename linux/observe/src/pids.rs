//! Which processes are in a tenant's group and below it.

use crate::parse::parse_pids;
use crate::read::{Reader, for_each_entry, open_below};
use crate::skips::Skips;
use crate::tenants::{Extent, Known};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FileType, OFlags};
use std::ops::ControlFlow;

/// Of a tenant with more processes the rest is left out, and told so.
const PROCESSES_A_TENANT_MAX: usize = 512;
/// Groups inside a unit that are searched for processes.
const GROUPS_A_TENANT_MAX: usize = 256;

/// Processes of a tenant: of its group, and for a subtree of the groups inside.
pub(crate) fn pids_of(root: &OwnedFd, known: &Known, reader: &mut Reader, skips: &mut Skips) -> Vec<u32> {
    let mut pids = Vec::new();
    let mut groups = vec![known.tenant.cgroup.path.clone()];
    let mut searched = 0;
    while let Some(path) = groups.pop() {
        searched += 1;
        if searched > GROUPS_A_TENANT_MAX {
            skips
                .note("cgroup.procs", 1, || format!("more than {GROUPS_A_TENANT_MAX} groups in {}", known.tenant.name));
            break;
        }
        match reader.below(root.as_fd(), &format!("{path}/cgroup.procs")) {
            Ok(text) => {
                let parsed = parse_pids(text);
                skips.malformed("cgroup.procs", &path, &parsed.malformed);
                pids.extend(parsed.rows);
            }
            // A threaded group of v2 does not list processes; its domain does.
            Err(rustix::io::Errno::OPNOTSUPP) => {}
            Err(error) => skips.unreadable("cgroup.procs", &path, error),
        }
        if known.extent == Extent::Subtree {
            groups.extend(groups_in(root, &path).into_iter().map(|name| format!("{path}/{name}")));
        }
    }
    pids.sort_unstable();
    pids.dedup();
    if pids.len() > PROCESSES_A_TENANT_MAX {
        let left_out = pids.len() - PROCESSES_A_TENANT_MAX;
        skips.note("cgroup.procs", left_out as u64, || format!("too many processes in {}", known.tenant.name));
        pids.truncate(PROCESSES_A_TENANT_MAX);
    }
    pids
}

/// Names of the groups right inside one; none are there when its link count is two.
fn groups_in(root: &OwnedFd, path: &str) -> Vec<String> {
    if crate::read::directory_facts(root, path).is_none_or(|facts| facts.links <= 2) {
        return Vec::new();
    }
    let Ok(directory) = open_below(root.as_fd(), path, OFlags::RDONLY | OFlags::DIRECTORY) else { return Vec::new() };
    let mut names = Vec::new();
    for_each_entry(directory, |name, kind| {
        if kind == FileType::Directory {
            names.push(name.to_owned());
        }
        ControlFlow::Continue(())
    });
    names
}
