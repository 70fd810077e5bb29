//! Where this host's `/proc`, `/sys` and cgroup hierarchy are.

use crate::ObserveError;
use crate::parse::{MountRow, parse_cgroup_membership, parse_mountinfo, parse_process_stat};
use minerva_model::CgroupVersion;
use std::path::{Path, PathBuf};

/// The directories from which everything is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roots {
    /// Root of the hierarchy in which the disk controller lives: `io` of v2 or `blkio` of v1. Without one it is a directory
    /// that holds no tenants.
    pub cgroup: PathBuf,
    /// Which of the two it is.
    pub version: CgroupVersion,
    /// `/proc`.
    pub proc: PathBuf,
    /// `/sys`.
    pub sys: PathBuf,
}

impl Roots {
    /// Finds them on this host.
    pub fn detect() -> Result<Self, ObserveError> {
        Self::at(Path::new("/"))
    }

    /// Finds them below `prefix`, where a copy of a host's trees lies. `prefix`/proc/self/mountinfo names the mounts; their
    /// places are taken as below `prefix` too.
    ///
    /// A unified hierarchy that has the `io` controller wins. On a hybrid host the controller can be in one place only: where
    /// v1 has `blkio`, the unified tree's `cgroup.controllers` does not list `io`.
    pub fn at(prefix: &Path) -> Result<Self, ObserveError> {
        let proc = prefix.join("proc");
        let path = proc.join("self/mountinfo");
        let text = std::fs::read(&path).map_err(|source| ObserveError::Read { path, source })?;
        let mounts = parse_mountinfo(&text).rows;
        let place = |mount: &MountRow| prefix.join(mount.mount_point.trim_start_matches('/'));
        let mut unified = mounts.iter().filter(|mount| mount.file_system == "cgroup2").map(place);
        let unified = unified.find(|directory| lists_io(directory));
        let blkio = mounts
            .iter()
            .find(|mount| mount.file_system == "cgroup" && mount.super_options.split(',').any(|name| name == "blkio"))
            .map(place);
        let (cgroup, version) = match (unified, blkio) {
            (Some(directory), _) => (directory, CgroupVersion::V2),
            (None, Some(directory)) => (directory, CgroupVersion::V1),
            (None, None) => (prefix.join("sys/fs/cgroup"), CgroupVersion::Absent),
        };
        Ok(Self { cgroup, version, proc, sys: prefix.join("sys") })
    }

    /// The same host with the disk controller's hierarchy at `root`, where the operator says it is. What stands there tells the
    /// version: without the controller it is [`CgroupVersion::Absent`], whatever the operator thinks.
    pub fn with_cgroup_root(self, root: &Path) -> Self {
        let version = if lists_io(root) {
            CgroupVersion::V2
        } else if has_blkio_files(root) {
            CgroupVersion::V1
        } else {
            CgroupVersion::Absent
        };
        Self { cgroup: root.to_owned(), version, ..self }
    }

    /// The group of a process in the disk controller's hierarchy, without a leading slash; `None` when there is no such
    /// process or no such hierarchy.
    pub fn cgroup_of(&self, pid: u32) -> Option<String> {
        let text = std::fs::read(self.proc.join(pid.to_string()).join("cgroup")).ok()?;
        let membership = parse_cgroup_membership(&text).rows.into_iter().find(|row| match self.version {
            CgroupVersion::V1 => row.controllers.iter().any(|name| name == "blkio"),
            CgroupVersion::V2 => row.controllers.is_empty(),
            CgroupVersion::Absent => false,
        })?;
        Some(membership.path.trim_start_matches('/').to_owned())
    }

    /// When a process started, in clock ticks since boot; `None` when there is no such process. This may never return: a process that begins
    /// another program holds up who reads it, for as long as a file takes that it closes ([`crate::AsideThreads`]).
    pub fn start_ticks_of(&self, pid: u32) -> Option<u64> {
        let text = std::fs::read(self.proc.join(pid.to_string()).join("stat")).ok()?;
        parse_process_stat(&text).map(|stat| stat.start_ticks)
    }
}

/// The directory is of v2 and has the `io` controller.
fn lists_io(directory: &Path) -> bool {
    let controllers = std::fs::read_to_string(directory.join("cgroup.controllers")).unwrap_or_default();
    controllers.split_whitespace().any(|name| name == "io")
}

/// The directory is of v1 and has the `blkio` controller.
fn has_blkio_files(directory: &Path) -> bool {
    let mut entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.any(|entry| entry.file_name().as_encoded_bytes().starts_with(b"blkio."))
}

#[cfg(test)]
mod tests {
    use super::Roots;
    use minerva_model::CgroupVersion;
    use std::path::PathBuf;

    #[test]
    fn the_operators_root_is_judged_by_what_stands_there() {
        let here = tempfile::tempdir().unwrap();
        let version = |file: &str, text: &str| {
            std::fs::write(here.path().join(file), text).unwrap();
            let place = PathBuf::from("/");
            let host = Roots { cgroup: place.clone(), version: CgroupVersion::V2, proc: place.clone(), sys: place };
            let roots = host.with_cgroup_root(here.path());
            assert_eq!(roots.cgroup, here.path());
            roots.version
        };
        assert_eq!(version("cgroup.procs", ""), CgroupVersion::Absent);
        assert_eq!(version("cgroup.controllers", "cpu memory\n"), CgroupVersion::Absent);
        assert_eq!(version("blkio.reset_stats", ""), CgroupVersion::V1);
        assert_eq!(version("cgroup.controllers", "cpu io memory\n"), CgroupVersion::V2);
    }
}
