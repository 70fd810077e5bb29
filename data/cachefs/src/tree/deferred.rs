//! Files that are to go to a place of their own outside the tree. They lie in a directory that only root may change, so that a name
//! stays what it was when the link to it was made; what is in them is their owner's.
//!
//! A file goes only while nobody has it open. Whoever comes between its move and the end of its name here is told to look it up again
//! (`ESTALE`, on which the kernel goes through the names once more) and finds it at its place.

use super::Tree;
use crate::caller::ActingAs;
use crate::file_system::{Attributes, Caller, Result};
use crate::node::{Node, NodeState};
use crate::reopen::path_of;
use crate::spill::is_alone;
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Uid, fchmod, fchown, ftruncate, getxattr, listxattr, mkdirat, openat, statat,
    unlinkat,
};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// The directory of such files, below the root of a tree. It is there once there were any.
pub const DEFERRED: &str = ".deferred";
/// The directory of directories of units, below the root of a tree. It is there once there were any.
pub const UNITS: &str = ".units";
/// Others than root go through them to names that they know.
const MODE: u32 = 0o711;
/// The longest value and the longest list of names that Linux has.
const XATTR_BYTES_MAX: usize = 64 << 10;

/// Why a file stays where it is for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoveRefusal {
    /// Somebody has it open, or mapped.
    #[error("a program has it open")]
    Open,
    /// It has further names, which would be left behind.
    #[error("it has {0} names in the pool; one file cannot lie in two places")]
    Linked(u32),
    /// It was written since the copy was begun.
    #[error("it was changed while it was copied")]
    Changed,
    /// It is not there.
    #[error("it is not in the pool any more")]
    Gone,
    /// It could not be looked at.
    #[error("the pool failed: {0}")]
    Failed(Errno),
}

/// A file that is being copied to its place. As long as it is there, the file does not go from memory to the disk.
#[derive(Debug)]
pub struct Moving {
    tree: Arc<Tree>,
    node: Arc<Node>,
    name: OsString,
    data: Arc<OwnedFd>,
    changes: u64,
}

impl Tree {
    /// Makes an empty file in the caller's name, for a place of its own elsewhere.
    pub fn create_deferred(&self, caller: Caller, name: &OsStr, mode: u32) -> Result<()> {
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
        let directory = self.own_directory(DEFERRED, false)?;
        let victim = openat(&directory, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
        unlinkat(&directory, name, AtFlags::empty())?;
        self.after_removal(victim);
        Ok(())
    }

    /// Removes our directories, if they are empty. Only for the end: the kernel remembers the directory for a while, and would look for new
    /// files in the one that is gone.
    pub fn remove_deferred_directory(&self) {
        for name in [DEFERRED, UNITS] {
            if unlinkat(&self.root.path, name, AtFlags::REMOVEDIR).is_ok() {
                self.account.release_file();
            }
        }
    }

    /// The names of all of them.
    pub fn deferred_names(&self) -> Result<Vec<OsString>> {
        let directory = match self.own_directory(DEFERRED, false) {
            Err(Errno::NOENT) => return Ok(Vec::new()),
            directory => directory?,
        };
        let names = crate::census::names(&directory)?;
        Ok(names.into_iter().map(|name| OsStr::from_bytes(name.as_bytes()).to_owned()).collect())
    }

    /// What `stat` shows of one of them.
    pub fn deferred_attributes(&self, name: &OsStr) -> Result<Attributes> {
        let node = self.counted(name)?;
        node.node.attributes(&node.node.lock())
    }

    /// Begins to move a file that nobody has open.
    pub fn begin_move(self: &Arc<Self>, name: &OsStr) -> std::result::Result<Moving, MoveRefusal> {
        let failed = |error| if error == Errno::NOENT { MoveRefusal::Gone } else { MoveRefusal::Failed(error) };
        let counted = self.counted(name).map_err(failed)?;
        let node = Arc::clone(&counted.node);
        let state = node.lock();
        if node.kind != FileType::RegularFile {
            return Err(MoveRefusal::Failed(Errno::INVAL));
        }
        let data = node.open_data(&state).map_err(failed)?;
        judge(&node, &state, &data)?;
        let changes = state.changes;
        drop(state);
        counted.keep();
        Ok(Moving { tree: Arc::clone(self), node, name: name.to_owned(), data, changes })
    }

    /// What is told of a name that is not there: among files that go elsewhere it may have gone a moment ago.
    pub(super) fn name_is_missing(&self, parent: &Node, error: Errno) -> Errno {
        let is_deferred = error == Errno::NOENT
            && statat(&self.root.path, DEFERRED, AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|stat| stat.st_ino == parent.number);
        if is_deferred { Errno::STALE } else { error }
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
    fn own_directory(&self, name: &str, is_made: bool) -> Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(&self.root.path, name, flags, Mode::empty()) {
            Err(Errno::NOENT) if is_made => (),
            opened => return opened,
        }
        self.reserve_file()?;
        if let Err(error) = mkdirat(&self.root.path, name, Mode::from_raw_mode(MODE)) {
            self.account.release_file();
            return Err(error);
        }
        let directory = openat(&self.root.path, name, flags, Mode::empty())?;
        // Whatever the mask of this process is.
        fchmod(&directory, Mode::from_raw_mode(MODE))?;
        Ok(directory)
    }

    /// The node of such a file, known for as long as what is returned.
    fn counted(&self, name: &OsStr) -> Result<Counted<'_>> {
        let directory = self.look_up(&self.root, OsStr::new(DEFERRED))?;
        let node = self.look_up(&directory, name);
        self.nodes.forget(directory.number, 1);
        Ok(Counted { tree: self, node: node?, is_kept: false })
    }
}

/// A node that is counted once.
struct Counted<'a> {
    tree: &'a Tree,
    node: Arc<Node>,
    is_kept: bool,
}

impl Counted<'_> {
    /// Somebody else takes the count back.
    fn keep(mut self) {
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

/// Whether it may move now.
fn judge(node: &Node, state: &NodeState, data: &OwnedFd) -> std::result::Result<(), MoveRefusal> {
    let links = rustix::fs::fstat(&node.path).map_err(MoveRefusal::Failed)?.st_nlink as u32;
    match links {
        0 => Err(MoveRefusal::Gone),
        1 if state.opens > 0 || !is_alone(data) => Err(MoveRefusal::Open),
        1 => Ok(()),
        links => Err(MoveRefusal::Linked(links)),
    }
}

impl Moving {
    /// The data, with their holes.
    pub fn data(&self) -> &OwnedFd {
        &self.data
    }

    /// What `stat` shows.
    pub fn attributes(&self) -> Result<Attributes> {
        self.node.attributes(&self.node.lock())
    }

    /// Extended attributes and access control lists.
    pub fn xattrs(&self) -> Result<Vec<(OsString, Vec<u8>)>> {
        if !self.tree.options.has_xattrs {
            return Ok(Vec::new());
        }
        let path = path_of(&self.node.path);
        let mut names = vec![0; XATTR_BYTES_MAX];
        let length = listxattr(&path, &mut names[..])?;
        names.truncate(length);
        let mut found = Vec::new();
        for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
            let name = OsStr::from_bytes(name);
            let mut value = vec![0; XATTR_BYTES_MAX];
            let length = getxattr(&path, name, &mut value[..])?;
            value.truncate(length);
            found.push((name.to_owned(), value));
        }
        Ok(found)
    }

    /// Whether a program has opened or changed it since, so that going on is in vain.
    pub fn is_disturbed(&self) -> bool {
        let state = self.node.lock();
        state.opens > 0 || state.changes != self.changes
    }

    /// Lets `switch` put the copy in place, while nobody can open or change the file here, if it is still what was copied. When that
    /// succeeded, this is no longer the file, and [`Moving::remove`] is what is left to do.
    pub fn switch<E>(&self, switch: impl FnOnce() -> std::result::Result<(), E>) -> std::result::Result<(), E>
    where
        E: From<MoveRefusal>,
    {
        let mut state = self.node.lock();
        judge(&self.node, &state, &self.data)?;
        if state.changes != self.changes {
            return Err(MoveRefusal::Changed.into());
        }
        switch()?;
        state.has_moved = true;
        Ok(())
    }

    /// Removes it here.
    pub fn remove(self) -> Result<()> {
        self.tree.remove_deferred(&self.name)?;
        // The kernel, which does not know that the name is gone, may remember the file for long, and as long we have it open: what it
        // occupied would not be free, though it is off the account. Nobody else has it open or mapped.
        let _ = ftruncate(&self.data, 0);
        Ok(())
    }
}

impl Drop for Moving {
    fn drop(&mut self) {
        self.tree.nodes.forget(self.node.number, 1);
    }
}
