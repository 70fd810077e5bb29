//! Files that are to go to a place of their own outside the tree. They lie in a directory that only root may change, so that a name
//! stays what it was when the link to it was made; what is in them is their owner's.
//!
//! A file goes only while nobody has it open. Whoever comes between its move and the end of its name here is told to look it up again
//! (`ESTALE`, on which the kernel goes through the names once more) and finds it at its place.

use super::Tree;
use super::moving::{MoveRefusal, Moving, judge};
use crate::caller::ActingAs;
use crate::file_system::{Attributes, Caller, Result};
use crate::node::{Node, shown};
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Uid, fchmod, fchown, mkdirat, openat, statat, unlinkat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The directory of such files, below the root of a tree. It is there once there were any.
pub const DEFERRED: &str = ".deferred";
/// The directory of directories of units, below the root of a tree. It is there once there were any.
pub const UNITS: &str = ".units";
/// Others than root go through them to names that they know.
pub(super) const MODE: u32 = 0o711;

impl Tree {
    /// Makes an empty file in the caller's name, for a place of its own elsewhere.
    pub fn create_deferred(&self, caller: Caller, name: &OsStr, mode: u32) -> Result<()> {
        if self.options.is_served_elsewhere {
            return self.create_elsewhere(caller, name, mode);
        }
        if self.is_disk_full() {
            return Err(Errno::NOSPC);
        }
        let directory = self.own_directory(DEFERRED, true)?;
        self.reserve_file()?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = ActingAs::new(caller)
            .and_then(|_acting| openat(&directory, name, flags, Mode::from_raw_mode(mode & 0o777)).map(drop));
        if made.is_err() {
            self.account.release_file();
        }
        made
    }

    /// Removes such a file.
    pub fn remove_deferred(&self, name: &OsStr) -> Result<()> {
        let directory = self.own_directory(DEFERRED, false).map_err(|error| self.not_served(error))?;
        if self.options.is_served_elsewhere {
            return unlinkat(&directory, name, AtFlags::empty()).map_err(|error| self.gone_if_stale(error));
        }
        let victim = openat(&directory, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
        unlinkat(&directory, name, AtFlags::empty())?;
        self.after_removal(victim);
        Ok(())
    }

    /// Removes our directories, if they are empty. Only for the end: the kernel remembers the directory for a while, and would look for new
    /// files in the one that is gone.
    pub fn remove_deferred_directory(&self) {
        if self.options.is_served_elsewhere {
            return;
        }
        for name in [DEFERRED, UNITS] {
            if unlinkat(&self.root.path, name, AtFlags::REMOVEDIR).is_ok() {
                self.account.release_file();
            }
        }
    }

    /// What `stat` shows of one of them. To look takes none of the tree's descriptors, for which it would have to wait.
    pub fn deferred_attributes(&self, name: &OsStr) -> Result<Attributes> {
        let directory = self.own_directory(DEFERRED, false).map_err(|error| self.not_served(error))?;
        let found = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW).map_err(|error| self.gone_if_stale(error))?;
        // Only now: a file is empty only once its copy is known there.
        let spilled = self.spill.as_ref().filter(|spill| spill.has(found.st_ino));
        let mut shown = shown(&found);
        if let Some(spill) = spilled {
            shown.take_data_of(&spill.look_at(found.st_ino)?);
        }
        Ok(shown)
    }

    /// Bytes that one of them occupies, and whether a program may have it open; in a guest that is its kernel's to say.
    pub fn deferred_use(&self, name: &OsStr) -> Result<(u64, bool)> {
        let shown = self.deferred_attributes(name)?;
        let is_open = || self.nodes.get(shown.node).is_some_and(|node| node.lock().opens > 0);
        Ok((shown.blocks * 512, self.options.is_served_elsewhere || is_open()))
    }

    /// Begins to move a file that nobody has open.
    pub fn begin_move(self: &Arc<Self>, name: &OsStr) -> std::result::Result<Moving, MoveRefusal> {
        if self.options.is_served_elsewhere {
            return self.begin_move_elsewhere(name);
        }
        let failed = |error| if error == Errno::NOENT { MoveRefusal::Gone } else { MoveRefusal::Failed(error) };
        let counted = self.counted(name).map_err(failed)?;
        let node = Arc::clone(&counted.node);
        let state = node.lock();
        if node.kind != FileType::RegularFile {
            return Err(MoveRefusal::Failed(Errno::INVAL));
        }
        // It ends with the file's removal here, so that what can only be read stays.
        let data = node.open_to_write(&state).map_err(failed)?;
        judge(&node, &state, &data)?;
        let changes = state.changes;
        drop(state);
        counted.keep();
        Ok(Moving::locked(Arc::clone(self), node, name.to_owned(), data, changes))
    }

    /// What is told of a name that is not there: among files that go elsewhere it may have gone a moment ago.
    pub(super) fn name_is_missing(&self, parent: &Node, name: &OsStr, error: Errno) -> Errno {
        let is_deferred = error == Errno::NOENT && self.is_deferred_directory(parent);
        // A machine makes names there itself, which are not there before.
        let was_there = || self.options.deferring_root.is_none() || self.has_gone(name);
        if is_deferred && was_there() { Errno::STALE } else { error }
    }

    /// Whether it is where files lie that are to go elsewhere.
    pub(super) fn is_deferred_directory(&self, node: &Node) -> bool {
        statat(&self.root.path, DEFERRED, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|stat| stat.st_ino == node.number)
    }

    /// Directories of ours are no program's to make, to remove or to rename.
    pub(super) fn refuse_own(&self, parent: &Node, name: &OsStr) -> Result<()> {
        let is_own = parent.number == self.root.number && (name == DEFERRED || name == UNITS);
        if is_own { Err(Errno::PERM) } else { Ok(()) }
    }

    /// A directory of a unit, made for this owner where it is not there.
    pub fn unit_directory(&self, name: &OsStr, owner: (u32, u32), mode: u32) -> Result<()> {
        let directory = self.own_directory(UNITS, true)?;
        match statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => self.reserve_file()?,
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) != FileType::Directory => return Err(Errno::NOTDIR),
            found => return found.map(drop),
        }
        let made = mkdirat(&directory, name, Mode::from_raw_mode(0)).and_then(|()| {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let made = openat(&directory, name, flags, Mode::empty())?;
            fchown(&made, Some(Uid::from_raw(owner.0)), Some(Gid::from_raw(owner.1)))?;
            fchmod(&made, Mode::from_raw_mode(mode & 0o7777))
        });
        if made.is_err() && unlinkat(&directory, name, AtFlags::REMOVEDIR) != Err(Errno::NOTEMPTY) {
            self.account.release_file();
        }
        made
    }

    /// A directory that only root may change.
    pub(super) fn own_directory(&self, name: &str, is_made: bool) -> Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(&self.root.path, name, flags, Mode::empty()) {
            Err(Errno::NOENT) if is_made => (),
            opened => return opened,
        }
        self.reserve_file()?;
        self.make_own_directory(name)
    }

    /// Makes it. That file is on the account already, and is taken off again where this fails.
    pub(super) fn make_own_directory(&self, name: &str) -> Result<OwnedFd> {
        if let Err(error) = mkdirat(&self.root.path, name, Mode::from_raw_mode(MODE)) {
            self.account.release_file();
            return Err(error);
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = openat(&self.root.path, name, flags, Mode::empty())?;
        // Whatever the mask of this process is.
        fchmod(&directory, Mode::from_raw_mode(MODE))?;
        Ok(directory)
    }

    /// The node of such a file, known for as long as what is returned.
    pub(super) fn counted(&self, name: &OsStr) -> Result<Counted<'_>> {
        let directory = self.look_up(&self.root, OsStr::new(DEFERRED)).map_err(|error| self.not_served(error))?;
        let node = self.look_up(&directory, name);
        self.nodes.forget(directory.number, 1);
        Ok(Counted { tree: self, node: node.map_err(|error| self.gone_if_stale(error))?, is_kept: false })
    }
}

/// A node that is counted once.
pub(super) struct Counted<'a> {
    tree: &'a Tree,
    pub(super) node: Arc<Node>,
    is_kept: bool,
}

impl Counted<'_> {
    /// Somebody else takes the count back.
    pub(super) fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            self.tree.nodes.forget(self.node.number, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::file_system::Caller;
    use crate::{Account, Descriptors, SpillArea, Tree, TreeOptions};
    use rustix::io::Errno;
    use rustix::process::{getgid, getuid};
    use std::ffi::OsStr;
    use std::fs;
    use std::sync::Arc;

    #[test]
    fn a_file_is_looked_at_though_its_tree_has_no_descriptor_left() {
        const ALL: u64 = 1000;
        let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let [memory, stable] = [(); 2].map(|()| Arc::new(Account::new(1 << 30, 100)));
        let spill = SpillArea::open(folders[1].path(), stable).unwrap();
        let options = TreeOptions { descriptors: Arc::new(Descriptors::new(ALL, 1)), ..TreeOptions::default() };
        let tree = Tree::open(folders[0].path(), memory, options, Some(spill)).unwrap();
        let caller = Caller { uid: getuid().as_raw(), gid: getgid().as_raw(), umask: 0 };
        let name = OsStr::new("file");
        tree.create_deferred(caller, name, 0o600).unwrap();
        fs::write(folders[0].path().join(super::DEFERRED).join(name), [1; 5000]).unwrap();
        let _all = tree.hold(ALL).unwrap();
        let look = || (tree.deferred_attributes(name).map(|shown| shown.size), tree.deferred_use(name));
        assert_eq!(look(), (Ok(5000), Ok((8192, false))));
        // Its data go to the disk, and its name stays.
        tree.account.correct(0, 8192);
        assert_eq!(tree.spill_some(0, &|| false).files, 1);
        assert_eq!(look(), (Ok(5000), Ok((8192, false))));
        tree.remove_deferred(name).unwrap();
        assert_eq!(look(), (Err(Errno::NOENT), Err(Errno::NOENT)));
    }
}
