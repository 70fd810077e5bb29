//! Deleting a file, or a directory with all that is in it, in small steps.
//!
//! Every directory is opened by its name in its parent's descriptor, with `RESOLVE_NO_SYMLINKS` and `RESOLVE_NO_XDEV` (openat2(2)), and
//! every entry is unlinked by its name in the descriptor of the directory that it was read from. So a directory that is replaced by a
//! link or a mount point meanwhile is never entered: a link is removed as a link, a mount point is left with a reason, and
//! nothing outside the tree is touched whatever others do to it.

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, openat2, statat, unlinkat};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::ffi::{CStr, CString, OsStr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Names read from a directory at a time: of one with millions of entries not all are held.
const NAMES_AT_A_TIME: usize = 1_024;
/// Each level holds a descriptor.
const DEPTH_MAX: usize = 256;
/// The kernel asks for another attempt when names change while it resolves one.
const ATTEMPTS: usize = 16;

/// Why a deletion did not begin.
#[derive(Debug, thiserror::Error)]
pub enum DeleteError {
    /// The path has no last name, as `/` or `..`.
    #[error("{} names no entry of a directory: give the directory itself by its name", .0.display())]
    NoName(PathBuf),
    /// It is a directory, and those were not asked for.
    #[error("{} is a directory: use -r to delete it with all that is in it", .0.display())]
    Directory(PathBuf),
    /// It is where something is mounted.
    #[error("{} is a mount point: unmount it first, nothing was deleted", .0.display())]
    MountPoint(PathBuf),
    /// The kernel refused.
    #[error("cannot delete {}", path.display())]
    Kernel {
        /// What was to be opened.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

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
    /// Only the names that were given belong to the deletion, not what else is in it.
    is_parent: bool,
}

impl Deletion {
    /// Begins to delete what is at `path`. Links on the way to its last name are followed, as everywhere; the last is not.
    ///
    /// # Errors
    /// There is nothing, it is a mount point, or a directory and `recursive` is not set.
    pub fn begin(path: &Path, recursive: bool) -> Result<Self, DeleteError> {
        let name = path.file_name().ok_or_else(|| DeleteError::NoName(path.to_owned()))?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let failed = |errno: Errno| DeleteError::Kernel { path: path.to_owned(), source: errno.into() };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat2(CWD, parent, flags, Mode::empty(), ResolveFlags::empty()).map_err(failed)?;
        let name = CString::new(name.as_bytes()).map_err(|_| failed(Errno::INVAL))?;
        let stat = statat(&directory, &name, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            if !recursive {
                return Err(DeleteError::Directory(path.to_owned()));
            }
            match open_directory(&directory, &name) {
                Err(Errno::XDEV) => return Err(DeleteError::MountPoint(path.to_owned())),
                opened => drop(opened.map_err(failed)?),
            }
        }
        let frame =
            Frame { directory, path: parent.to_owned(), names: vec![name], kept: BTreeSet::new(), is_parent: true };
        Ok(Self { open: vec![frame], removed: Removed::default(), left: Vec::new() })
    }

    /// Removes one entry, or opens one directory; whether there is more to do.
    pub fn step(&mut self) -> bool {
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
                    let (names, kept) = (Vec::new(), BTreeSet::new());
                    self.open.push(Frame { directory, path, names, kept, is_parent: false });
                }
                Err(Errno::XDEV) => frame.keep(name, "something is mounted there", &mut self.left),
                // It is no directory any more: what it is now is looked at again.
                Err(Errno::LOOP | Errno::NOTDIR) => frame.names.push(name),
                Err(Errno::NOENT) => {}
                Err(errno) => frame.keep(name, &errno.to_string(), &mut self.left),
            },
            Err(Errno::NOENT) => {}
            Err(errno) => frame.keep(name, &errno.to_string(), &mut self.left),
        }
        true
    }

    /// Removed so far.
    pub fn removed(&self) -> Removed {
        self.removed
    }

    /// What was left so far, and why.
    pub fn left(&self) -> &[Left] {
        &self.left
    }

    /// The innermost directory is done: removes it from the one that it lies in.
    fn close(&mut self) {
        let closed = self.open.pop();
        let (Some(closed), Some(parent)) = (closed, self.open.last_mut()) else { return };
        let Some(name) = parent.names.pop() else { return };
        match unlinkat(&parent.directory, &name, AtFlags::REMOVEDIR) {
            Ok(()) => self.removed.directories += 1,
            Err(Errno::NOENT) => {}
            // What is left in it was told already.
            Err(Errno::NOTEMPTY | Errno::EXIST) if !closed.kept.is_empty() => drop(parent.kept.insert(name)),
            Err(errno) => parent.keep(name, &errno.to_string(), &mut self.left),
        }
    }
}

impl Frame {
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

/// The directory of this name itself: no link, no mount.
pub(crate) fn open_directory(parent: &OwnedFd, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    let mut attempts = 0;
    loop {
        match openat2(parent, name, flags, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) if attempts < ATTEMPTS => attempts += 1,
            result => return result,
        }
    }
}
