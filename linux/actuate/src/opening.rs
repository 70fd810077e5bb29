//! Opening and reading what lies below a directory, following no link and leaving the tree by no name.

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// The most that is read of a knob. A cgroup file with a line for each of 10,000 disks has a tenth of this.
const KNOB_BYTES_MAX: usize = 4 << 20;

/// `openat2` asks for another try when a rename anywhere raced with it; this many in a row do not happen by chance.
const OPEN_TRIES: usize = 16;

/// Reads from the start to the end. The kernel makes the text anew for each reading that starts at zero; a short answer
/// is no end, as a file of many lines comes in pieces.
pub(crate) fn read_whole(fd: &OwnedFd) -> Result<String, Errno> {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    while bytes.len() < KNOB_BYTES_MAX {
        match rustix::io::pread(fd, &mut piece, bytes.len() as u64) {
            Ok(0) => break,
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

pub(crate) fn read_relative(dir: &OwnedFd, name: &str) -> Result<String, Errno> {
    read_whole(&open_file_beneath(dir, name, OFlags::RDONLY)?)
}

pub(crate) fn open_root(path: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

pub(crate) fn open_dir_beneath(root: impl AsFd, relative: &str) -> Result<OwnedFd, Errno> {
    open2(root, relative, OFlags::PATH | OFlags::DIRECTORY)
}

pub(crate) fn open_file_beneath(dir: impl AsFd, name: &str, access: OFlags) -> Result<OwnedFd, Errno> {
    open2(dir, name, access)
}

pub(crate) fn open2(dir: impl AsFd, relative: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let mut last = Errno::AGAIN;
    for _ in 0..OPEN_TRIES {
        match rustix::fs::openat2(&dir, relative, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) => last = Errno::AGAIN,
            Err(errno) => {
                last = errno;
                break;
            }
            Ok(fd) => return Ok(fd),
        }
    }
    Err(last)
}
