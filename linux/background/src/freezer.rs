//! Stopping every process of a group: `cgroup.freeze` (Documentation/admin-guide/cgroup-v2.rst), or the freezer of v1
//! (cgroup-v1/freezer-subsystem.rst). Both let a call into the kernel end first, so that no lock of the kernel is held meanwhile.

use crate::error::WorkError;
use rustix::io::Errno;
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

    /// Makes the group, frozen, without any process: what an earlier worker left in it would go on with the next one.
    pub(crate) fn make_frozen(&self) -> Result<(), WorkError> {
        if self.group.is_dir() {
            self.kill()?;
        }
        crate::groups::make(&self.group)?;
        self.set(true)
    }

    /// Makes the group, frozen, unless it is there.
    pub(crate) fn make_frozen_if_gone(&self) -> Result<(), WorkError> {
        if self.group.is_dir() {
            return Ok(());
        }
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
        let list = self.group.join("cgroup.procs");
        let processes = fs::read_to_string(&list).unwrap_or_default();
        let mut outcome = Ok(());
        for pid in processes.lines().filter_map(|line| Pid::from_raw(line.trim().parse().ok()?)) {
            // One that has ended by itself is no error.
            if kill_process(pid, Signal::KILL) == Err(Errno::PERM) {
                outcome = Err(WorkError::io("end a process of", &list)(Errno::PERM));
            }
        }
        // One that may not be ended would have all of the disk, let go on.
        outcome?;
        // A frozen process of v1 takes the signal when it goes on.
        self.set(false)
    }

    /// Removes the group once it is empty, and the one above it if that is then too; whether it is gone.
    pub(crate) fn remove(&self) -> bool {
        crate::groups::remove(&self.group)
    }
}

#[cfg(test)]
mod tests {
    use super::Freezer;
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    use std::fs;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    #[test]
    fn what_is_left_in_a_group_is_ended_before_the_next_worker_enters_it() {
        let group = tempfile::tempdir().unwrap();
        let mut left = Command::new("sleep").arg("600").spawn().unwrap();
        fs::write(group.path().join("cgroup.procs"), left.id().to_string()).unwrap();
        let freezer = Freezer::at(group.path());
        freezer.make_frozen().unwrap();
        left.wait().unwrap();
        assert_eq!(freezer.is_set(), Some(true));
    }

    #[test]
    fn who_cannot_be_ended_is_not_let_go_on_instead() {
        if !rustix::process::geteuid().is_root() {
            return println!("skipped: needs root, to run as another user");
        }
        let group = tempfile::tempdir().unwrap();
        let mut other = Command::new("sleep").arg("600").uid(65_534).spawn().unwrap();
        fs::write(group.path().join("freezer.state"), "FROZEN").unwrap();
        fs::write(group.path().join("cgroup.procs"), other.id().to_string()).unwrap();
        let freezer = Freezer::at(group.path());
        let path = group.path().to_owned();
        // Only this thread's.
        let refused = std::thread::spawn(move || {
            let mut held = capabilities(None).unwrap();
            held.effective.remove(CapabilitySet::KILL);
            set_capabilities(None, held).unwrap();
            Freezer::at(&path).kill()
        });
        assert!(refused.join().unwrap().is_err());
        assert_eq!(freezer.is_set(), Some(true));
        freezer.kill().unwrap();
        other.wait().unwrap();
        assert_eq!(freezer.is_set(), Some(false));
    }
}
