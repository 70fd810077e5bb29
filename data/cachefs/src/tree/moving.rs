//! A file on its way out of the tree: whether it may go, and that nobody changes it without its being noticed.

use super::Tree;
use crate::file_system::{Attributes, Result};
use crate::lease::{self, is_alone};
use crate::node::{Node, NodeState};
use crate::reopen::path_of;
use rustix::fs::{Stat, fstat, ftruncate, getxattr, listxattr};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

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
    /// Of a tree that another service serves: what it was when the lease was taken that tells who comes to it.
    leased: Option<Stat>,
}

/// Whether it may move now.
pub(super) fn judge(node: &Node, state: &NodeState, data: &OwnedFd) -> std::result::Result<(), MoveRefusal> {
    let links = fstat(&node.path).map_err(MoveRefusal::Failed)?.st_nlink as u32;
    match links {
        0 => Err(MoveRefusal::Gone),
        1 if state.opens > 0 || !is_alone(data) => Err(MoveRefusal::Open),
        1 => Ok(()),
        links => Err(MoveRefusal::Linked(links)),
    }
}

impl Moving {
    pub(super) fn locked(tree: Arc<Tree>, node: Arc<Node>, name: OsString, data: Arc<OwnedFd>, changes: u64) -> Self {
        Self { tree, node, name, data, changes, leased: None }
    }

    pub(super) fn leased(tree: Arc<Tree>, node: Arc<Node>, name: OsString, data: OwnedFd, found: Stat) -> Self {
        Self { tree, node, name, data: Arc::new(data), changes: 0, leased: Some(found) }
    }

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
        if self.leased.is_some() {
            return !lease::is_for_readers(&self.data);
        }
        let state = self.node.lock();
        state.opens > 0 || state.changes != self.changes
    }

    /// Lets `switch` put the copy in place, while nobody can open or change the file here, if it is still what was copied. When that
    /// succeeded, this is no longer the file, and [`Moving::remove`] is what is left to do.
    pub fn switch<E>(&self, switch: impl FnOnce() -> std::result::Result<(), E>) -> std::result::Result<(), E>
    where
        E: From<MoveRefusal>,
    {
        if let Some(leased) = &self.leased {
            judge_again(&self.data, leased)?;
            return switch();
        }
        let mut state = self.node.lock();
        judge(&self.node, &state, &self.data)?;
        if state.changes != self.changes {
            return Err(MoveRefusal::Changed.into());
        }
        switch()?;
        // As was just judged: what it occupies here is free at once.
        state.may_be_mapped = false;
        state.has_moved = true;
        Ok(())
    }

    /// Removes it here.
    pub fn remove(self) -> Result<()> {
        self.tree.remove_deferred(&self.name)?;
        // The kernel, which does not know that the name is gone, may remember the file for long, and as long we have it open: what it
        // occupied would not be free, though it is off the account. Nobody else has it open or mapped.
        if self.leased.is_none() {
            let _ = ftruncate(&self.data, 0);
        }
        Ok(())
    }
}

impl Drop for Moving {
    fn drop(&mut self) {
        self.tree.nodes.forget(self.node.number, 1);
    }
}

/// Whether it is still what was copied, and nobody has it open. From now on whoever opens it waits.
fn judge_again(data: &OwnedFd, leased: &Stat) -> std::result::Result<(), MoveRefusal> {
    if !lease::for_nobody(data) {
        return Err(MoveRefusal::Open);
    }
    let found = fstat(data).map_err(MoveRefusal::Failed)?;
    judge_links(&found)?;
    let what = |stat: &Stat| (stat.st_size, stat.st_mtime, stat.st_mtime_nsec, stat.st_ctime, stat.st_ctime_nsec);
    if what(&found) == what(leased) { Ok(()) } else { Err(MoveRefusal::Changed) }
}

pub(super) fn judge_links(stat: &Stat) -> std::result::Result<(), MoveRefusal> {
    match stat.st_nlink as u32 {
        0 => Err(MoveRefusal::Gone),
        1 => Ok(()),
        links => Err(MoveRefusal::Linked(links)),
    }
}
