//! Trims: telling a disk which blocks are unused, in ranges (`FITRIM` of ioctl_fitrim(2)).
//!
//! A range is of positions that each file system counts in its own way:
//!
//! | file system | from 0 to | |
//! |---|---|---|
//! | btrfs | anywhere | addresses of chunks, which grow with each balance; whatever the range, a call also trims what belongs to no chunk |
//! | XFS | its blocks | kernels such as 6.1 trim a free extent whole of which only a part is in the range |
//! | others | the end of the disk | the kernel answers `EINVAL` there, or trims nothing |
//!
//! What statvfs(3) calls their size is less: it leaves out what ext4 and XFS need themselves.

use crate::btrfs::{BTRFS_MAGIC, chunks, file_system_identifier};
use crate::error::WorkError;
use crate::facts::Facts;
use crate::identity::xfs_sizes;
use crate::spec::Found;
use crate::worker::Worker;
use rustix::fs::{Mode, OFlags, fstatfs, fstatvfs, major, minor, open};
use rustix::io::Errno;
use rustix::ioctl::{Updater, ioctl, opcode};
use std::fs;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// A range at a time: the call is not interrupted by being stopped, and a disk may take long for it. The first call on a btrfs since it was
/// mounted takes as long as the disk needs for all that belongs to no chunk. The kernel remembers that it trimmed it, so that further calls do
/// not do it again; there is no range of that alone.
const RANGE_BYTES: u64 = 256 << 20;
const SECTOR_BYTES: u64 = 512;

/// `struct fstrim_range` of linux/fs.h.
#[repr(C)]
struct TrimRange {
    start: u64,
    length: u64,
    smallest: u64,
}

const FITRIM: rustix::ioctl::Opcode = opcode::read_write::<TrimRange>(b'X', 121);

/// Whether the file system at a path can be trimmed.
pub(crate) fn check(path: &Path, sys: &Path) -> Result<(), WorkError> {
    let directory = open_directory(path)?;
    let answer = if is_btrfs(&directory).map_err(WorkError::io("look at", path))? {
        // No range is harmless there.
        let identifier = file_system_identifier(&directory).map_err(WorkError::io("ask about the btrfs at", path))?;
        if takes_discards(&sys.join("fs/btrfs").join(uuid(identifier))) { Ok(0) } else { Err(Errno::OPNOTSUPP) }
    } else {
        // Beyond its end there is nothing: a file system that cannot be trimmed says so before it looks.
        trim(&directory, u64::MAX - RANGE_BYTES..u64::MAX)
    };
    match answer {
        // f2fs, which says first whether its disk takes discards, lets nobody trim through a read-only mount, as the daemon's are. Work has others.
        Ok(_) | Err(Errno::INVAL | Errno::ROFS) => Ok(()),
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
pub(crate) fn run(worker: &mut Worker, sys: &Path) -> Result<(), WorkError> {
    let path = worker.spec().path.clone();
    let directory = worker.spec().open()?;
    let space = Space::of(&directory, sys).map_err(WorkError::io("look at", &path))?;
    let trimmed = |range| trim(&directory, range).inspect(|bytes| worker.freed(*bytes));
    let found = || worker.spec().found.with_trimmed(worker.freed_bytes());
    let say = |done, total, at| worker.progress_with(done as f64, Some(total as f64), at, found());
    space.trim(worker.spec().position, trimmed, say).map_err(WorkError::io("trim", &path))?;
    let all = found().bytes;
    worker.say(&format!("{all} bytes were told to be unused"));
    Ok(())
}

impl Found {
    /// With what this worker trimmed.
    const fn with_trimmed(self, bytes: u64) -> Self {
        Self { bytes: self.bytes + bytes, ..self }
    }
}

/// Where free space may be, as the file system counts.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Space {
    /// In order.
    stretches: Vec<Range<u64>>,
    /// It has no less than this.
    least: u64,
    /// Of an XFS: how large an allocation group is. No extent is in two.
    group: Option<u64>,
}

impl Space {
    fn of(directory: &OwnedFd, sys: &Path) -> Result<Self, Errno> {
        let facts = fstatvfs(directory)?;
        let least = facts.f_blocks * facts.f_frsize;
        if is_btrfs(directory)? {
            return Ok(Self { stretches: chunks(directory)?, least, group: None });
        }
        let xfs = xfs_sizes(directory)?;
        let sizes = [Some(least), disk_size(directory, sys), xfs.map(|(size, _)| size)];
        let size = sizes.into_iter().flatten().max().unwrap_or(least);
        let group = xfs.map(|(_, group)| group).filter(|group| *group > 0);
        Ok(Self { stretches: std::iter::once(0..size).collect(), least, group })
    }

    /// Trims all from a position on, range by range. `trim` says how much of a range it trimmed; `say` is told after each how much was done
    /// of how much, and where to go on.
    fn trim(
        &self,
        from: u64,
        mut trim: impl FnMut(Range<u64>) -> Result<u64, Errno>,
        mut say: impl FnMut(u64, u64, u64),
    ) -> Result<(), Errno> {
        let total = self.stretches.iter().map(|stretch| stretch.end - stretch.start).sum();
        let (mut done, mut by_groups) = (0, false);
        for stretch in &self.stretches {
            let mut at = from.clamp(stretch.start, stretch.end);
            done += at - stretch.start;
            while at < stretch.end {
                let next = self.next(at, by_groups).min(stretch.end);
                match trim(at..next) {
                    // Extents are trimmed whole. Were that to go on, a large one would be with every range that has a part of it.
                    Ok(bytes) => by_groups |= bytes > next - at,
                    // It ends before its disk does.
                    Err(Errno::INVAL) if at >= self.least => {
                        say(done, done, at);
                        return Ok(());
                    }
                    // A file system that does not begin at 0.
                    Err(Errno::INVAL) => {}
                    Err(errno) => return Err(errno),
                }
                done += next - at;
                at = next;
                say(done, total, at);
            }
        }
        Ok(())
    }

    /// Where the range from a position on ends.
    fn next(&self, at: u64, by_groups: bool) -> u64 {
        match self.group.filter(|_| by_groups) {
            Some(group) => (at / group + 1).saturating_mul(group),
            None => at.saturating_add(RANGE_BYTES),
        }
    }
}

fn is_btrfs(directory: &OwnedFd) -> Result<bool, Errno> {
    Ok(fstatfs(directory)?.f_type as u64 == BTRFS_MAGIC)
}

/// Of the disk or the partition that a file system is on, where that is one.
fn disk_size(directory: &OwnedFd, sys: &Path) -> Option<u64> {
    let device = Facts::of(directory).ok()?.device;
    let directory = sys.join(format!("dev/block/{}:{}", major(device), minor(device)));
    number(&directory.join("size"))?.checked_mul(SECTOR_BYTES)
}

/// Whether any disk of a btrfs takes discards; so it is taken to be where sysfs does not tell.
fn takes_discards(btrfs: &Path) -> bool {
    let devices = fs::read_dir(btrfs.join("devices")).into_iter().flatten().flatten();
    let disks: Vec<PathBuf> = devices.map(|device| device.path()).collect();
    // A partition's queue is that of its disk, in whose directory its own is.
    let of = |disk: &PathBuf| {
        let own = number(&disk.join("queue/discard_max_bytes"));
        own.or_else(|| number(&disk.join("../queue/discard_max_bytes"))).is_none_or(|most| most > 0)
    };
    disks.is_empty() || disks.iter().any(of)
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// As sysfs writes an identifier.
fn uuid((first, second): (u64, u64)) -> String {
    let hex: String =
        [first, second].iter().flat_map(|half| half.to_ne_bytes()).map(|byte| format!("{byte:02x}")).collect();
    [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| hex[part].to_owned()).join("-")
}

fn open_directory(path: &Path) -> Result<OwnedFd, WorkError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    open(path, flags, Mode::empty()).map_err(WorkError::io("open", path))
}

/// Trims what is in a range; how many bytes.
fn trim(directory: &OwnedFd, range: Range<u64>) -> Result<u64, Errno> {
    let mut range = TrimRange { start: range.start, length: range.end - range.start, smallest: 0 };
    // SAFETY: `FITRIM` reads and writes one `struct fstrim_range`, which `TrimRange` is, and keeps no pointer to it.
    unsafe { ioctl(directory, Updater::<FITRIM, TrimRange>::new(&mut range)) }?;
    Ok(range.length)
}

#[cfg(test)]
mod tests;
