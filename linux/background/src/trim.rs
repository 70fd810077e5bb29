//! Trims: telling a disk which blocks are unused, in ranges (`FITRIM` of ioctl_fitrim(2)).

use crate::error::WorkError;
use crate::worker::Worker;
use rustix::fs::{Mode, OFlags, fstatvfs, open};
use rustix::io::Errno;
use rustix::ioctl::{Updater, ioctl, opcode};
use std::os::fd::OwnedFd;
use std::path::Path;

/// A range at a time: the call is not interrupted by being stopped, and a disk may take long for it.
const RANGE_BYTES: u64 = 256 << 20;

/// `struct fstrim_range` of linux/fs.h.
#[repr(C)]
struct Range {
    start: u64,
    length: u64,
    smallest: u64,
}

const FITRIM: rustix::ioctl::Opcode = opcode::read_write::<Range>(b'X', 121);

/// Whether the file system at a path can be trimmed.
pub(crate) fn check(path: &Path) -> Result<(), WorkError> {
    let directory = open_directory(path)?;
    // Beyond its end there is nothing: a file system that cannot be trimmed says so before it looks.
    match trim(&directory, u64::MAX - RANGE_BYTES, RANGE_BYTES) {
        Ok(_) | Err(Errno::INVAL) => Ok(()),
        Err(Errno::OPNOTSUPP | Errno::NOTTY) => {
            let why = format!(
                "{} cannot be trimmed: its disk takes no discards, or its file system sends none",
                path.display()
            );
            Err(WorkError::Refused(why))
        }
        Err(errno) => Err(WorkError::io("trim", path)(errno)),
    }
}

/// Trims from the position on; says after each range how far it is.
pub(crate) fn run(worker: &mut Worker) -> Result<(), WorkError> {
    let path = worker.spec().path.clone();
    let directory = worker.spec().open()?;
    let facts = fstatvfs(&directory).map_err(WorkError::io("look at", &path))?;
    let size = facts.f_blocks * facts.f_frsize;
    let mut at = worker.spec().position.min(size);
    while at < size {
        match trim(&directory, at, RANGE_BYTES) {
            Ok(bytes) => worker.freed(bytes),
            // A file system that does not begin at 0, or ends before its size says.
            Err(Errno::INVAL) => {}
            Err(errno) => return Err(WorkError::io("trim", &path)(errno)),
        }
        at = (at + RANGE_BYTES).min(size);
        worker.progress(at as f64, Some(size as f64), at);
    }
    Ok(())
}

fn open_directory(path: &Path) -> Result<OwnedFd, WorkError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    open(path, flags, Mode::empty()).map_err(WorkError::io("open", path))
}

/// Trims what begins in a range; how many bytes.
fn trim(directory: &OwnedFd, start: u64, length: u64) -> Result<u64, Errno> {
    let mut range = Range { start, length, smallest: 0 };
    // SAFETY: `FITRIM` reads and writes one `struct fstrim_range`, which `Range` is, and keeps no pointer to it.
    unsafe { ioctl(directory, Updater::<FITRIM, Range>::new(&mut range)) }?;
    Ok(range.length)
}
