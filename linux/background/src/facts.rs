//! What the kernel tells of a file or a directory by which it is told from another (statx(2)).

use rustix::fs::{AtFlags, FileType, Statx, StatxFlags, makedev, statx};
use rustix::io::Errno;
use std::ffi::CStr;
use std::os::fd::OwnedFd;

/// What a program found at a path, for another one that has to know whether it finds the same there: mounts may be its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Number of the file system.
    pub device: u64,
    /// In it.
    pub inode: u64,
    /// When it was made; 0 where the file system does not keep that.
    pub born_ns: u64,
}

/// Numbers of an inode, and when it was made, as another may get its numbers once it is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Number of the file system while it is mounted.
    pub(crate) device: u64,
    pub(crate) inode: u64,
    /// In nanoseconds; 0 where the file system does not keep it.
    pub(crate) born_ns: u64,
    pub(crate) is_directory: bool,
}

impl Facts {
    /// Of what is open.
    pub(crate) fn of(file: &OwnedFd) -> Result<Self, Errno> {
        statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS | StatxFlags::BTIME)
            .map(|found| Self::from(&found))
    }

    pub(crate) fn seen(&self) -> Seen {
        Seen { device: self.device, inode: self.inode, born_ns: self.born_ns }
    }

    /// Of an entry of a directory; a link is not followed.
    pub(crate) fn of_entry(directory: &OwnedFd, name: &CStr) -> Result<Self, Errno> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        statx(directory, name, flags, StatxFlags::BASIC_STATS | StatxFlags::BTIME).map(|found| Self::from(&found))
    }
}

impl From<&Statx> for Facts {
    fn from(found: &Statx) -> Self {
        let born = &found.stx_btime;
        let is_kept = found.stx_mask & StatxFlags::BTIME.bits() != 0;
        let seconds = u64::try_from(born.tv_sec).ok().filter(|_| is_kept).unwrap_or(0);
        Self {
            device: makedev(found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
            born_ns: seconds.saturating_mul(1_000_000_000).saturating_add(born.tv_nsec.into()),
            is_directory: FileType::from_raw_mode(found.stx_mode.into()) == FileType::Directory,
        }
    }
}
