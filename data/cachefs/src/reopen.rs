//! A file that is known by a descriptor with `O_PATH` only: opened, or named where a call takes nothing but a path.

use crate::file_system::Result;
use rustix::fs::{Mode, OFlags, open};
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
