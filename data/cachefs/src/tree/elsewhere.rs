//! Trees that another service serves: in a guest, those that its host serves to it. Only files that are to go to a place of the guest's
//! own are handled here (docs/adr/0064). Who has a file open is the guest's kernel's to say, by leases; the account, and what whoever comes
//! too late is told, are the host's.

use super::Tree;
use super::deferred::{DEFERRED, MODE};
use super::moving::{MoveRefusal, Moving, judge_links};
use crate::file_system::{Caller, Result};
use crate::lease;
use crate::node::Node;
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid, fchmod, fchown, fstat, openat, unlinkat};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

/// Names of files that moved which are remembered: who read a link before is that many moves late at most.
const GONE_MAX: usize = 10_000;

/// Names that were in a machine's directory of such files and are gone.
#[derive(Debug, Default)]
pub(super) struct Gone(Mutex<VecDeque<OsString>>);

impl Tree {
    /// In a guest: makes the file as its root, and gives it to the caller, who may make none there.
    pub(super) fn create_elsewhere(&self, caller: Caller, name: &OsStr, mode: u32) -> Result<()> {
        let directory = self.own_directory(DEFERRED, false).map_err(|error| self.not_served(error))?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&directory, name, flags, Mode::RUSR | Mode::WUSR)?;
        let given = fchown(&file, Some(Uid::from_raw(caller.uid)), Some(Gid::from_raw(caller.gid)))
            .and_then(|()| fchmod(&file, Mode::from_raw_mode(mode & 0o777)));
        if given.is_err() {
            let _ = unlinkat(&directory, name, AtFlags::empty());
        }
        given
    }

    /// In a guest: begins to move a file that nobody has open to write. Nobody will from now on but it notices.
    pub(super) fn begin_move_elsewhere(self: &Arc<Self>, name: &OsStr) -> std::result::Result<Moving, MoveRefusal> {
        let failed = |error| if error == Errno::NOENT { MoveRefusal::Gone } else { MoveRefusal::Failed(error) };
        let counted = self.counted(name).map_err(failed)?;
        let directory = self.own_directory(DEFERRED, false).map_err(MoveRefusal::Failed)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let data = openat(&directory, name, flags, Mode::empty()).map_err(failed)?;
        if !lease::for_readers(&data) {
            return Err(MoveRefusal::Open);
        }
        let found = fstat(&data).map_err(MoveRefusal::Failed)?;
        judge_links(&found)?;
        if found.st_ino != counted.node.number {
            return Err(MoveRefusal::Changed);
        }
        let node = Arc::clone(&counted.node);
        counted.keep();
        Ok(Moving::leased(Arc::clone(self), node, name.to_owned(), data, found))
    }

    /// On the host: makes the directory in which a machine's root makes files that are to go to its own disk, also beyond the quota. In a
    /// tree that is no machine's the directory is root's again, if it was a machine's before.
    pub fn make_deferring(&self) -> Result<()> {
        let Some((uid, gid)) = self.options.deferring_root else { return self.take_deferring_back() };
        let directory = match self.own_directory(DEFERRED, false) {
            Err(Errno::NOENT) => {
                // A machine at its quota, or whose quota was lowered, must not keep others from being served.
                self.account.add_file();
                self.make_own_directory(DEFERRED)?
            }
            found => found?,
        };
        fchown(&directory, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))
    }

    /// Who could change the directory could have our own moves write and remove what it likes.
    fn take_deferring_back(&self) -> Result<()> {
        if self.options.is_served_elsewhere {
            return Ok(());
        }
        let directory = match self.own_directory(DEFERRED, false) {
            // What is no directory is not ours, and was no machine's.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
            found => found?,
        };
        let (found, own) = (fstat(&directory)?, geteuid());
        if found.st_uid == own.as_raw() {
            return Ok(());
        }
        fchown(&directory, Some(own), Some(getegid()))?;
        fchmod(&directory, Mode::from_raw_mode(MODE))
    }

    /// On the host: a machine removed a name. Who opens the file by what it knows of it, or looks for the name, is sent to look again.
    pub(super) fn note_gone(&self, parent: &Node, name: &OsStr, victim: &OwnedFd) {
        if self.options.deferring_root.is_none() || !self.is_deferred_directory(parent) {
            return;
        }
        let mut gone = self.gone.0.lock().unwrap_or_else(PoisonError::into_inner);
        if gone.len() >= GONE_MAX {
            gone.pop_front();
        }
        gone.push_back(name.to_owned());
        drop(gone);
        if let Ok(stat) = fstat(victim)
            && stat.st_nlink == 0
            && let Some(node) = self.nodes.get(stat.st_ino)
        {
            node.lock().has_moved = true;
        }
    }

    /// Whether a name was there.
    pub(super) fn has_gone(&self, name: &OsStr) -> bool {
        self.gone.0.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|gone| gone == name)
    }

    /// A name that the host says to look up again is gone.
    pub(super) fn gone_if_stale(&self, error: Errno) -> Errno {
        if self.options.is_served_elsewhere && error == Errno::STALE { Errno::NOENT } else { error }
    }

    /// Without the host's directory nothing is known of any file: it must not be taken for one that is gone.
    pub(super) fn not_served(&self, error: Errno) -> Errno {
        if self.options.is_served_elsewhere && matches!(error, Errno::NOENT | Errno::STALE) {
            Errno::NOTCONN
        } else {
            error
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::tree::DEFERRED;
    use crate::{Account, Tree, TreeOptions};
    use rustix::process::{getgid, getuid};
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    use std::path::Path;
    use std::sync::Arc;

    fn open(at: &Path, files_max: u64, deferring_root: Option<(u32, u32)>) -> Tree {
        let options = TreeOptions { deferring_root, ..TreeOptions::default() };
        Tree::open(at, Arc::new(Account::new(1 << 20, files_max)), options, None).unwrap()
    }

    #[test]
    fn a_machine_at_its_quota_of_files_is_served_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("one"), "").unwrap();
        fs::write(folder.path().join("two"), "").unwrap();
        for files_max in [2, 1] {
            let tree = open(folder.path(), files_max, Some((getuid().as_raw(), getgid().as_raw())));
            assert!(folder.path().join(DEFERRED).is_dir());
            assert_eq!(tree.usage().files, 3, "and the directory is counted");
            tree.remove_deferred_directory();
            assert_eq!(tree.usage().files, 2);
        }
    }

    #[test]
    fn what_has_the_name_of_the_directory_and_is_none_keeps_no_tree_from_being_served() {
        for deferring_root in [None, Some((getuid().as_raw(), getgid().as_raw()))] {
            let folder = tempfile::tempdir().unwrap();
            let at = folder.path().join(DEFERRED);
            fs::write(&at, "text").unwrap();
            assert_eq!(open(folder.path(), 9, deferring_root).usage().files, 1);
            assert_eq!(fs::read(&at).unwrap(), b"text");
            fs::remove_file(&at).unwrap();
            std::os::unix::fs::symlink(folder.path(), &at).unwrap();
            drop(open(folder.path(), 9, deferring_root));
            assert!(at.is_symlink());
        }
    }

    #[test]
    fn the_directory_of_a_tenant_that_is_no_machine_any_more_is_roots_again() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join(DEFERRED);
        if !getuid().is_root() {
            return eprintln!("skipped: only root gives a directory away");
        }
        drop(open(folder.path(), 9, Some((1_800_000, 1_800_000))));
        assert_eq!(at.metadata().unwrap().uid(), 1_800_000);
        fs::set_permissions(&at, Permissions::from_mode(0o777)).unwrap();
        drop(open(folder.path(), 9, None));
        let shown = at.metadata().unwrap();
        assert_eq!((shown.uid(), shown.gid(), shown.mode() & 0o7777), (0, 0, 0o711));
        // What is ours already stays as it is.
        chown(&at, None, Some(1)).unwrap();
        drop(open(folder.path(), 9, None));
        assert_eq!(at.metadata().unwrap().gid(), 1);
    }
}
