//! What was written, on its way to the disk before anybody syncs it (sync_file_range(2)). The disk's own cache is not flushed and no journal is
//! committed: this is no promise of what is there after the power went.

use crate::file_system::Result;
use rustix::io::Errno;
use std::os::fd::{AsRawFd, OwnedFd};

/// Sends the data of a file to the disk.
pub(crate) fn send(data: &OwnedFd) -> Result<()> {
    ask(data, libc::SYNC_FILE_RANGE_WRITE)
}

/// And waits until the disk has them, or has failed.
pub(crate) fn send_and_wait(data: &OwnedFd) -> Result<()> {
    ask(data, libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER)
}

/// The whole file: the kernel passes over what is not dirty.
fn ask(data: &OwnedFd, how: libc::c_uint) -> Result<()> {
    // SAFETY: the call takes four numbers and touches no memory of ours; the descriptor is open.
    let done = unsafe { libc::sync_file_range(data.as_raw_fd(), 0, 0, how) };
    if done == 0 { Ok(()) } else { Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)) }
}
