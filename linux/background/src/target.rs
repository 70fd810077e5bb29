//! What is to be deleted, held by descriptors: its path is resolved once.
//!
//! A path's directories may be another's, who can put a link in the place of one at any time. So the directory that it lies in is opened
//! once, and it itself by its name in that, with `RESOLVE_NO_SYMLINKS` and `RESOLVE_NO_XDEV` (openat2(2)).

use crate::facts::Facts;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

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

/// An entry of a directory.
#[derive(Debug)]
pub(crate) struct Target {
    /// For people only.
    pub(crate) path: PathBuf,
    pub(crate) parent: OwnedFd,
    pub(crate) name: CString,
    /// Of a directory.
    pub(crate) directory: Option<OwnedFd>,
    /// Of what was opened.
    pub(crate) facts: Facts,
}

impl Target {
    /// What is at a path. Links on the way to its last name are followed, as everywhere; the last is not.
    pub(crate) fn open(path: &Path) -> Result<Self, DeleteError> {
        let name = path.file_name().ok_or_else(|| DeleteError::NoName(path.to_owned()))?;
        let failed = |errno: Errno| DeleteError::Kernel { path: path.to_owned(), source: errno.into() };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parent = openat2(CWD, parent(path), flags, Mode::empty(), ResolveFlags::empty()).map_err(failed)?;
        let name = CString::new(name.as_bytes()).map_err(|_| failed(Errno::INVAL))?;
        let mut facts = Facts::of_entry(&parent, &name).map_err(failed)?;
        let mut directory = None;
        if facts.is_directory {
            let opened = match open_directory(&parent, &name) {
                Err(Errno::XDEV) => return Err(DeleteError::MountPoint(path.to_owned())),
                opened => opened.map_err(failed)?,
            };
            facts = Facts::of(&opened).map_err(failed)?;
            directory = Some(opened);
        }
        Ok(Self { path: path.to_owned(), parent, name, directory, facts })
    }

    /// It still has its name in the directory that it lay in.
    pub(crate) fn is_in_place(&self) -> bool {
        Facts::of_entry(&self.parent, &self.name) == Ok(self.facts)
    }
}

/// The directory that a path's last name is in.
pub(crate) fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
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
