//! What of the pool's disk may still be used, beside what the operator keeps free there.

use crate::file_system::Result;
use rustix::fs::fstatvfs;
use std::os::fd::OwnedFd;

/// Bytes of a disk that may still be used.
pub(crate) fn left_on_disk(at: &OwnedFd, reserve_bytes: u64) -> Result<u64> {
    let below = fstatvfs(at)?;
    Ok(below.f_bavail.saturating_mul(below.f_frsize).saturating_sub(reserve_bytes))
}

/// The same for who is about to use it: where nothing is to stay free, or the disk cannot be asked, it says itself that it is full.
pub(crate) fn room_on_disk(at: &OwnedFd, reserve_bytes: u64) -> u64 {
    if reserve_bytes == 0 { u64::MAX } else { left_on_disk(at, reserve_bytes).unwrap_or(u64::MAX) }
}
