//! Free space on the file systems of each disk.

use crate::mounts::read_mount_facts;
use crate::{ObserveError, Roots};
use minerva_model::DeviceId;
use std::collections::{BTreeMap, BTreeSet};

/// Free bytes on the file systems that lie on one disk alone, summed by disk; those of machines elsewhere and of memory are left out.
///
/// Asks the file systems: one that is frozen, or whose disk is gone, may not answer for as long as it likes. So whoever cannot wait
/// asks from a thread of its own.
///
/// # Errors
/// The mount table cannot be read. A file system that does not answer well is left out.
pub fn free_bytes_by_disk(roots: &Roots) -> Result<BTreeMap<DeviceId, u64>, ObserveError> {
    let mut by_disk = BTreeMap::new();
    let mut counted = BTreeSet::new();
    for mount in read_mount_facts(roots)? {
        let ([device], None) = (&mount.devices[..], mount.hidden_because) else { continue };
        let (Ok(stat), Ok(space)) = (rustix::fs::stat(&mount.mount_point), rustix::fs::statvfs(&mount.mount_point))
        else {
            continue;
        };
        // The same file system may be mounted in several places.
        if counted.insert(stat.st_dev) {
            *by_disk.entry(*device).or_default() += space.f_bavail.saturating_mul(space.f_frsize);
        }
    }
    Ok(by_disk)
}

#[cfg(test)]
mod tests {
    use super::free_bytes_by_disk;
    use crate::Roots;

    /// What is known of this machine, whose disks nobody here has chosen: each that has a file system of its own is told once, and no
    /// more is free than `statvfs` says of all mounts together.
    #[test]
    fn each_file_system_counts_once() {
        let Ok(roots) = Roots::detect() else {
            println!("skipped: this machine has no hierarchy to look at");
            return;
        };
        let all: u64 = crate::read_mount_facts(&roots)
            .expect("the mount table")
            .iter()
            .filter_map(|mount| rustix::fs::statvfs(&mount.mount_point).ok())
            .map(|space| space.f_blocks.saturating_mul(space.f_frsize))
            .fold(0, u64::saturating_add);
        let by_disk = free_bytes_by_disk(&roots).expect("the mount table");
        assert!(by_disk.values().sum::<u64>() <= all, "{by_disk:?}");
    }
}
