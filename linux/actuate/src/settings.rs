//! Where things are.

use minerva_model::Nanos;
use std::path::PathBuf;

/// Where the writer works. All paths are absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriterSettings {
    /// Minerva's own directory, such as `/run/minerva`: the undo journal, the lease and the locks. It should not outlive
    /// a boot, because knobs do not; a journal of an earlier boot is recognised and discarded.
    pub runtime_dir: PathBuf,
    /// Where the hierarchy of the io (v2) or blkio (v1) controller is mounted.
    pub cgroup_root: PathBuf,
    /// Where sysfs is mounted.
    pub sys_root: PathBuf,
    /// How long after its end a lease is still honoured, so that a slice that came late undoes nothing.
    pub lease_grace: Nanos,
}

impl WriterSettings {
    /// Usual places, for the given runtime directory and hierarchy; ten seconds of grace.
    pub fn new(runtime_dir: impl Into<PathBuf>, cgroup_root: impl Into<PathBuf>) -> Self {
        Self {
            runtime_dir: runtime_dir.into(),
            cgroup_root: cgroup_root.into(),
            sys_root: PathBuf::from("/sys"),
            lease_grace: Nanos::from_secs(10),
        }
    }
}
