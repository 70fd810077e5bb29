//! Leases of files (fcntl(2)): the kernel's word on who else has one open, and a wait for whoever comes.

use rustix::io::Errno;
use std::os::fd::{AsRawFd, OwnedFd};

/// Whether this process alone has the file open, and only by this descriptor. A mapping that outlived an earlier daemon counts too.
pub(crate) fn is_alone(file: &OwnedFd) -> bool {
    let is_alone = for_nobody(file);
    if is_alone {
        set(file, libc::F_UNLCK);
    }
    is_alone
}

/// Whether somebody else is known to have it open or mapped; not where the file system below has no leases.
pub(crate) fn is_shared(file: &OwnedFd) -> bool {
    !is_alone(file) && Errno::from_io_error(&std::io::Error::last_os_error()) == Some(Errno::AGAIN)
}

/// From now on whoever opens it to write waits until it is closed here, or until the kernel's patience (`fs.lease-break-time`) has ended;
/// not where somebody has it open to write already. Takes a descriptor that only reads.
pub(crate) fn for_readers(file: &OwnedFd) -> bool {
    set(file, libc::F_RDLCK)
}

/// The same for whoever opens it; not where anybody else has it open.
pub(crate) fn for_nobody(file: &OwnedFd) -> bool {
    set(file, libc::F_WRLCK)
}

/// Whether nobody has come yet who wants to write.
pub(crate) fn is_for_readers(file: &OwnedFd) -> bool {
    // SAFETY: the command takes no argument; the descriptor is open.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLEASE) == libc::F_RDLCK }
}

fn set(file: &OwnedFd, lease: libc::c_int) -> bool {
    // SAFETY: the command takes a number and touches no memory of ours; the descriptor is open.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, lease) == 0 }
}
