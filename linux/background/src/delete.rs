//! Deleting a file, or a directory with all that is in it, in small steps.
//!
//! Every directory is opened by its name in its parent's descriptor, with `RESOLVE_NO_SYMLINKS` and `RESOLVE_NO_XDEV` (openat2(2)), and
//! every entry is unlinked by its name in the descriptor of the directory that it was read from. So a directory that is replaced by a
//! link or a mount point meanwhile is never entered: a link is removed as a link, a mount point is left with a reason, and
//! nothing outside the tree is touched whatever others do to it.

use crate::commits::Commits;
use crate::facts::{Facts, Seen};
use crate::target::{DeleteError, Target, open_directory, parent};
use rustix::fs::{AtFlags, Dir, FileType, statat, unlinkat};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Names read from a directory at a time: of one with millions of entries not all are held.
const NAMES_AT_A_TIME: usize = 1_024;
/// Each level holds a descriptor.
const DEPTH_MAX: usize = 256;

/// What a step removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Directories.
    pub directories: u64,
    /// Other entries.
    pub files: u64,
    /// Bytes that were allocated to files of which this was the only name.
    pub bytes: u64,
}

/// An entry that was left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Which.
    pub path: PathBuf,
    /// Why.
    pub reason: String,
}

/// A deletion under way.
#[derive(Debug)]
pub struct Deletion {
    /// The directories that are open, the innermost last; the first is the parent of what is deleted.
    open: Vec<Frame>,
    /// What was opened to be deleted.
    facts: Facts,
    /// Something may have been removed.
    is_begun: bool,
    removed: Removed,
    left: Vec<Left>,
}

/// An open directory.
#[derive(Debug)]
struct Frame {
    directory: OwnedFd,
    path: PathBuf,
    /// Names to be removed.
    names: Vec<CString>,
    /// Names that stay.
    kept: BTreeSet<CString>,
    /// Names that were not there when they were to be removed.
    vanished: BTreeSet<CString>,
    /// Only the names that were given belong to the deletion, not what else is in it.
    is_parent: bool,
}

impl Deletion {
    /// Begins to delete what is at `path`. Links on the way to its last name are followed, as everywhere; the last is not. The path is not
    /// resolved again.
    ///
    /// # Errors
    /// There is nothing, it is a mount point, or a directory and `recursive` is not set.
    pub fn begin(path: &Path, recursive: bool) -> Result<Self, DeleteError> {
        let target = Target::open(path)?;
        if target.directory.is_some() && !recursive {
            return Err(DeleteError::Directory(path.to_owned()));
        }
        Ok(Self::of(target))
    }

    /// Begins to delete what is held, with all that is in it.
    pub(crate) fn of(target: Target) -> Self {
        let Target { path, parent: directory, name, directory: inner, facts } = target;
        let first = Frame { names: vec![name], is_parent: true, ..Frame::of(directory, parent(&path).to_owned()) };
        let mut open = vec![first];
        open.extend(inner.map(|inner| Frame::of(inner, path)));
        Self { open, facts, is_begun: false, removed: Removed::default(), left: Vec::new() }
    }

    /// Removes one entry, or opens one directory; whether there is more to do.
    pub fn step(&mut self) -> bool {
        if !std::mem::replace(&mut self.is_begun, true) {
            match self.is_in_place() {
                Ok(true) => {}
                Err(Errno::NOENT) => self.open.clear(),
                Ok(false) | Err(_) => self.leave_all(),
            }
        }
        let depth = self.open.len();
        let Some(frame) = self.open.last_mut() else { return false };
        let Some(name) = frame.names.pop() else {
            if frame.is_parent || !frame.read(&mut self.left) {
                self.close();
            }
            return !self.open.is_empty();
        };
        match frame.remove(&name) {
            Ok(removed) => self.removed.add(removed),
            // A directory.
            Err(Errno::ISDIR) if depth > DEPTH_MAX => frame.keep(name, "directories lie too deep here", &mut self.left),
            Err(Errno::ISDIR) => match open_directory(&frame.directory, &name) {
                Ok(directory) => {
                    let path = frame.path.join(OsStr::from_bytes(name.to_bytes()));
                    // Removed once it is empty, when it is closed.
                    frame.names.push(name);
                    self.open.push(Frame::of(directory, path));
                }
                Err(Errno::XDEV) => frame.keep(name, "something is mounted there", &mut self.left),
                // It is no directory any more: what it is now is looked at again.
                Err(Errno::LOOP | Errno::NOTDIR) => frame.names.push(name),
                Err(Errno::NOENT) => frame.vanished(name, &mut self.left),
                Err(errno) => frame.keep(name, &errno.to_string(), &mut self.left),
            },
            Err(Errno::NOENT) => frame.vanished(name, &mut self.left),
            Err(errno) => frame.keep(name, &errno.to_string(), &mut self.left),
        }
        true
    }

    /// What was opened to be deleted.
    pub fn seen(&self) -> Seen {
        self.facts.seen()
    }

    /// Removed so far.
    pub fn removed(&self) -> Removed {
        self.removed
    }

    /// All that is to be removed is, and the directory that held it is still open.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.open.as_slice(), [parent] if parent.names.is_empty())
    }

    /// Has what was removed so far written, so that nothing of it is left for later.
    pub(crate) fn commit(&self, commits: &mut Commits) {
        if let Some(frame) = self.open.last() {
            commits.commit(frame.directory.as_fd());
        }
    }

    /// What was left so far, and why.
    pub fn left(&self) -> &[Left] {
        &self.left
    }

    /// What was opened has its name still.
    fn is_in_place(&self) -> Result<bool, Errno> {
        let first = self.open.first().and_then(|frame| Some((&frame.directory, frame.names.last()?)));
        let (directory, name) = first.ok_or(Errno::NOENT)?;
        Facts::of_entry(directory, name).map(|found| found == self.facts)
    }

    /// Another has taken its place, which is left, as is what is still in what was opened.
    fn leave_all(&mut self) {
        let first = self.open.first_mut().and_then(|frame| Some((frame.names.pop()?, frame)));
        if let Some((name, frame)) = first {
            frame.keep(name, "another has taken its place", &mut self.left);
        }
        self.open.clear();
    }

    /// The innermost directory is done: removes it from the one that it lies in.
    fn close(&mut self) {
        if self.open.len() == 2 && self.is_in_place() == Ok(false) {
            return self.leave_all();
        }
        let closed = self.open.pop();
        let (Some(closed), Some(parent)) = (closed, self.open.last_mut()) else { return };
        let Some(name) = parent.names.pop() else { return };
        match unlinkat(&parent.directory, &name, AtFlags::REMOVEDIR) {
            Ok(()) => self.removed.directories += 1,
            Err(Errno::NOENT) => parent.vanished(name, &mut self.left),
            // What is left in it was told already.
            Err(Errno::NOTEMPTY | Errno::EXIST) if !closed.kept.is_empty() => drop(parent.kept.insert(name)),
            Err(errno) => parent.keep(name, &errno.to_string(), &mut self.left),
        }
    }
}

impl Frame {
    /// Of which nothing was read yet.
    fn of(directory: OwnedFd, path: PathBuf) -> Self {
        let (kept, vanished) = (BTreeSet::new(), BTreeSet::new());
        Self { directory, path, names: Vec::new(), kept, vanished, is_parent: false }
    }

    /// Reads more names; whether there are any that do not stay.
    fn read(&mut self, left: &mut Vec<Left>) -> bool {
        let entries = match Dir::read_from(&self.directory) {
            Ok(entries) => entries,
            Err(errno) => {
                left.push(Left { path: self.path.clone(), reason: errno.to_string() });
                return false;
            }
        };
        let names = entries.filter_map(Result::ok).map(|entry| entry.file_name().to_owned());
        let is_entry = |name: &CString| !matches!(name.to_bytes(), b"." | b"..");
        let new = |name: &CString| is_entry(name) && !self.kept.contains(name);
        self.names = names.filter(new).take(NAMES_AT_A_TIME).collect();
        // Of what is gone nothing is remembered.
        let mut vanished = std::mem::take(&mut self.vanished);
        self.vanished = self.names.iter().filter_map(|name| vanished.take(name)).collect();
        !self.names.is_empty()
    }

    /// Removes an entry that is no directory; `ISDIR` if it is one.
    fn remove(&self, name: &CStr) -> Result<Removed, Errno> {
        let stat = statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            return Err(Errno::ISDIR);
        }
        unlinkat(&self.directory, name, AtFlags::empty())?;
        let bytes = if stat.st_nlink == 1 { u64::try_from(stat.st_blocks).unwrap_or(0) * 512 } else { 0 };
        Ok(Removed { directories: 0, files: 1, bytes })
    }

    /// An entry is not there: somebody else removed it. But a damaged directory, and some file systems, list names that they do not find,
    /// again and again: one that was listed twice stays.
    fn vanished(&mut self, name: CString, left: &mut Vec<Left>) {
        if self.vanished.contains(&name) {
            self.keep(name, "it is listed and cannot be found", left);
        } else {
            self.vanished.insert(name);
        }
    }

    /// An entry stays.
    fn keep(&mut self, name: CString, reason: &str, left: &mut Vec<Left>) {
        let path = self.path.join(OsStr::from_bytes(name.to_bytes()));
        left.push(Left { path, reason: reason.to_owned() });
        self.kept.insert(name);
    }
}

impl Removed {
    fn add(&mut self, more: Self) {
        self.directories += more.directories;
        self.files += more.files;
        self.bytes += more.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::Deletion;
    use std::fs;

    /// As a damaged directory does, which cannot be made here.
    #[test]
    fn a_name_that_is_listed_again_and_again_and_never_found_is_left_with_a_reason() {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().join("tree");
        fs::create_dir(&tree).unwrap();
        let mut deletion = Deletion::begin(&tree, true).unwrap();
        let listed = |deletion: &mut Deletion, name: &std::ffi::CStr| {
            deletion.open.last_mut().unwrap().names = vec![name.to_owned()];
            assert!(deletion.step());
        };
        // Once is no harm: somebody else removed it.
        listed(&mut deletion, c"phantom");
        assert_eq!(deletion.left(), []);
        listed(&mut deletion, c"phantom");
        assert_eq!(deletion.left()[0].path, tree.join("phantom"));
        assert_eq!(deletion.left()[0].reason, "it is listed and cannot be found");
        assert!(deletion.open.last().unwrap().kept.contains(c"phantom"), "it is not listed any more");
        // One that is really gone is forgotten at the next look.
        listed(&mut deletion, c"gone");
        fs::write(tree.join("other"), []).unwrap();
        assert!(deletion.open.last_mut().unwrap().read(&mut Vec::new()));
        assert!(deletion.open.last().unwrap().vanished.is_empty());
        while deletion.step() {}
        assert_eq!((deletion.left().len(), deletion.removed().files, tree.exists()), (1, 1, false));
    }
}
