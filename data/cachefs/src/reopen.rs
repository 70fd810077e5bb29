//! A file that is known by a descriptor with `O_PATH` only: opened, or named where a call takes nothing but a path.

use crate::file_system::Result;
use rustix::fs::{Mode, OFlags, fcntl_getfl, open};
use rustix::io::Errno;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;

/// The path of an open file of this process, whatever its name became.
pub(crate) fn path_of(file: impl AsFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_fd().as_raw_fd()))
}

/// Opens it anew, for reading or writing.
pub(crate) fn reopen(file: impl AsFd, flags: OFlags) -> Result<OwnedFd> {
    open(path_of(file), flags | OFlags::CLOEXEC, Mode::empty())
}

/// Opens something for both ways; what takes no writes any more, as a disk that has turned read-only, can be read all the same.
pub(crate) fn for_both_or_to_read(open: impl Fn(OFlags) -> Result<OwnedFd>) -> Result<OwnedFd> {
    match open(OFlags::RDWR) {
        Err(Errno::ROFS) => open(OFlags::RDONLY),
        opened => opened,
    }
}

/// Whether it was opened to read only.
pub(crate) fn only_reads(file: impl AsFd) -> bool {
    fcntl_getfl(file).is_ok_and(|flags| flags & OFlags::ACCMODE == OFlags::RDONLY)
}
