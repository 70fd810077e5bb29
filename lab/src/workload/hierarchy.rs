//! Where cgroups are mounted.

use crate::mounts::read_mounts;
use minerva_model::CgroupVersion;
use std::fs;
use std::path::PathBuf;

/// Where the controller is mounted, and in which version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hierarchy {
    pub(super) version: CgroupVersion,
    pub(super) root: PathBuf,
}

/// Which version of the disk controller this machine has.
pub fn blkio_version() -> CgroupVersion {
    find_hierarchy().map_or(CgroupVersion::Absent, |hierarchy| hierarchy.version)
}

pub(super) fn find_hierarchy() -> Option<Hierarchy> {
    read_mounts().into_iter().find_map(|mount| match mount.kind.as_str() {
        "cgroup" if mount.options.split(',').any(|option| option == "blkio") => {
            Some(Hierarchy { version: CgroupVersion::V1, root: mount.mount_point })
        }
        "cgroup2" => {
            let controllers = fs::read_to_string(mount.mount_point.join("cgroup.controllers")).unwrap_or_default();
            let has_io = controllers.split_whitespace().any(|controller| controller == "io");
            has_io.then_some(Hierarchy { version: CgroupVersion::V2, root: mount.mount_point })
        }
        _ => None,
    })
}

/// The roots of all hierarchies. A daemon that a run starts makes groups for background work below the run's parent in those of processors and
/// of the freezer too.
pub(super) fn hierarchy_roots() -> Vec<PathBuf> {
    let is_hierarchy = |kind: &str| kind == "cgroup" || kind == "cgroup2";
    read_mounts().into_iter().filter(|mount| is_hierarchy(&mount.kind)).map(|mount| mount.mount_point).collect()
}
