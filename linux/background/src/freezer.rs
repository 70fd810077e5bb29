//! Stopping every process of a group: `cgroup.freeze` (Documentation/admin-guide/cgroup-v2.rst), or the freezer of v1
//! (cgroup-v1/freezer-subsystem.rst). Both let a call into the kernel end first, so that no lock of the kernel is held meanwhile.

use crate::error::WorkError;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::{Path, PathBuf};

/// A group that can be frozen.
#[derive(Clone, Debug)]
pub(crate) struct Freezer {
    group: PathBuf,
}

impl Freezer {
    pub(crate) fn at(group: &Path) -> Self {
        Self { group: group.to_owned() }
    }

    /// Makes the group, frozen.
    pub(crate) fn make_frozen(&self) -> Result<(), WorkError> {
        crate::groups::make(&self.group)?;
        self.set(true)
    }

    /// Moves this process in.
    pub(crate) fn enter(&self) -> Result<(), WorkError> {
        fs::write(self.group.join("cgroup.procs"), "0").map_err(WorkError::io("enter", &self.group))
    }

    /// Freezes the group, or lets it go on.
    pub(crate) fn set(&self, frozen: bool) -> Result<(), WorkError> {
        let unified = self.group.join("cgroup.freeze");
        let (file, text) = if unified.exists() {
            (unified, if frozen { "1" } else { "0" })
        } else {
            (self.group.join("freezer.state"), if frozen { "FROZEN" } else { "THAWED" })
        };
        fs::write(&file, text).map_err(WorkError::io("write", &file))
    }

    /// What it was last told; nothing where there is no such group.
    pub(crate) fn is_set(&self) -> Option<bool> {
        let read = |file: &str| fs::read_to_string(self.group.join(file)).ok();
        let unified = read("cgroup.freeze").map(|text| text.trim() == "1");
        unified.or_else(|| read("freezer.state").map(|text| text.trim() != "THAWED"))
    }

    /// Every process in it has stopped.
    pub(crate) fn is_frozen(&self) -> bool {
        let read = |file: &str| fs::read_to_string(self.group.join(file)).unwrap_or_default();
        read("cgroup.events").lines().any(|line| line == "frozen 1") || read("freezer.state").trim() == "FROZEN"
    }

    /// Ends every process in it.
    pub(crate) fn kill(&self) -> Result<(), WorkError> {
        let all = self.group.join("cgroup.kill");
        if all.exists() {
            return fs::write(&all, "1").map_err(WorkError::io("write", &all));
        }
        let processes = fs::read_to_string(self.group.join("cgroup.procs")).unwrap_or_default();
        for pid in processes.lines().filter_map(|line| Pid::from_raw(line.trim().parse().ok()?)) {
            // It may have ended by itself.
            let _ = kill_process(pid, Signal::KILL);
        }
        // A frozen process of v1 takes the signal when it goes on.
        self.set(false)
    }

    /// Removes the group once it is empty, and the one above it if that is then too; whether it is gone.
    pub(crate) fn remove(&self) -> bool {
        crate::groups::remove(&self.group)
    }
}
