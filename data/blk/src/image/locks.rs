//! Locks of images: by the open file description, so that they go with its last reference, those of requests in the kernel included.

use crate::error::ImageError;
use nix::fcntl::{FcntlArg, fcntl};
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

const LOCK_STEP: Duration = Duration::from_millis(20);

/// A lock of the open file description, over the whole image: it ends when the last reference to the description does, those
/// of requests in the kernel included.
pub(super) fn lock(file: &File, path: &Path, is_read_only: bool, deadline: Instant) -> Result<(), ImageError> {
    let whole = whole(if is_read_only { libc::F_RDLCK } else { libc::F_WRLCK });
    loop {
        match fcntl(file, FcntlArg::F_OFD_SETLK(&whole)) {
            Ok(_) => return Ok(()),
            Err(nix::errno::Errno::EAGAIN | nix::errno::Errno::EACCES) if Instant::now() < deadline => {
                // The kernel waits for such a lock without an end, or not at all.
                std::thread::sleep(LOCK_STEP);
            }
            Err(nix::errno::Errno::EAGAIN | nix::errno::Errno::EACCES) => {
                return Err(ImageError::Locked { path: path.to_owned() });
            }
            Err(error) => return Err(ImageError::Open { path: path.to_owned(), source: error.into() }),
        }
    }
}

/// Gives back the lock of an open file description.
pub(super) fn unlock(file: &File) {
    // It has none if that fails.
    let _ = fcntl(file, FcntlArg::F_OFD_SETLK(&whole(libc::F_UNLCK)));
}

/// A lock of this kind over all of a file.
pub(super) fn whole(kind: libc::c_int) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    }
}
