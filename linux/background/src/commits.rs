//! Has what a deletion changed written while nobody waits for the disk.
//!
//! ext4 keeps changes of metadata in memory for five seconds (`commit` in the kernel's Documentation/admin-guide/ext4.rst) and then
//! writes all of them into its journal at once, by a thread in the root group that nobody weighs. A pause is over by then, and who made it
//! waits: beside a deletion in its pauses a random reader on a 7200 rpm disk lost some 8 % of its requests by that. `fsync` of a
//! directory has the journal written at once (jbd2). What was written there stays to be written to its own place too, which flusher threads
//! do half a minute later, again all at once (`dirty_expire_centisecs` in Documentation/admin-guide/sysctl/vm.rst); the file system keeps it in
//! the page cache of its device, whose `fdatasync` writes it. So a deletion asks for both again and again for as long as it runs.

use rustix::fs::{FileType, FsWord, Mode, OFlags, fdatasync, fstat, fstatfs, fsync, major, minor, open};
use std::fs;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// What is changed within it is written quickly; that often, a commit's own seeks take some percent of the time.
const EVERY: Duration = Duration::from_millis(500);
/// In statfs(2).
const EXT4: FsWord = 0xEF53;

/// When changes were written last.
#[derive(Debug)]
pub(crate) struct Commits {
    last: Instant,
}

impl Commits {
    /// Of changes that begin now.
    pub(crate) fn new(now: Instant) -> Self {
        Self { last: now }
    }

    /// Whether they are to be written now. Then they count as written.
    pub(crate) fn is_due(&mut self, now: Instant) -> bool {
        let is_due = now.saturating_duration_since(self.last) >= EVERY;
        if is_due {
            self.last = now;
        }
        is_due
    }
}

/// Has what was changed in a directory on ext4, and all that was changed there before, in the journal and then at its place. An error changes
/// nothing: the kernel writes it later.
pub(crate) fn commit(directory: BorrowedFd<'_>) {
    if fstatfs(directory).is_ok_and(|found| found.f_type == EXT4) && fsync(directory).is_ok() {
        let _ = device(directory).map(fdatasync);
    }
}

/// The block device that a directory's file system lies on. Links below /dev/block are not everywhere.
fn device(directory: BorrowedFd<'_>) -> Option<OwnedFd> {
    let id = fstat(directory).ok()?.st_dev;
    let facts = fs::read_to_string(format!("/sys/dev/block/{}:{}/uevent", major(id), minor(id))).ok()?;
    let name = facts.lines().find_map(|line| line.strip_prefix("DEVNAME="))?;
    // What has the name and is something else, as a FIFO, may not hold up who opens it.
    let device =
        open(format!("/dev/{name}"), OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let found = fstat(&device).ok()?;
    (FileType::from_raw_mode(found.st_mode) == FileType::BlockDevice && found.st_rdev == id).then_some(device)
}

#[cfg(test)]
mod tests {
    use super::{Commits, EVERY, commit, device};
    use crate::loop_disk::LoopDisk;
    use std::fs::{self, File};
    use std::os::fd::AsFd;
    use std::os::linux::fs::MetadataExt;
    use std::time::{Duration, Instant};

    #[test]
    fn the_journal_is_written_once_in_each_span() {
        let begin = Instant::now();
        let mut commits = Commits::new(begin);
        assert!(!commits.is_due(begin) && !commits.is_due(begin + EVERY - Duration::from_millis(1)));
        assert!(commits.is_due(begin + EVERY) && !commits.is_due(begin + EVERY));
        assert!(commits.is_due(begin + 3 * EVERY) && !commits.is_due(begin + 3 * EVERY + EVERY / 2));
    }

    #[test]
    fn what_was_deleted_is_not_written_once_more_later() {
        let whole = "lazy_itable_init=0,lazy_journal_init=0";
        let Some(disk) = LoopDisk::new(&["mkfs.ext4", "-q", "-F", "-E", whole]) else { return };
        let file = disk.mounted.join("file");
        fs::write(&file, "text").unwrap();
        let directory = File::open(&disk.mounted).unwrap();
        let device = device(directory.as_fd()).unwrap();
        rustix::fs::syncfs(&directory).unwrap();
        let id = directory.metadata().unwrap().st_dev();
        let written = || {
            let counters = fs::read_to_string(format!("/sys/dev/block/{}:{}/stat", id >> 8, id & 0xff)).unwrap();
            counters.split_whitespace().nth(6).unwrap().parse::<u64>().unwrap()
        };
        fs::remove_file(&file).unwrap();
        let before = written();
        commit(directory.as_fd());
        let after = written();
        rustix::fs::fdatasync(&device).unwrap();
        assert!(after > before && written() == after, "{before} sectors, {after}, {}", written());
    }

    #[test]
    fn what_was_deleted_is_in_the_journal_at_once() {
        let Some(disk) = LoopDisk::new(&["mkfs.ext4", "-q", "-F"]) else { return };
        let device = fs::metadata(&disk.mounted).unwrap().st_dev();
        let name = fs::read_link(format!("/sys/dev/block/{}:{}", device >> 8, device & 0xff)).unwrap();
        let name = name.file_name().unwrap().to_string_lossy().into_owned();
        let transactions = || {
            let text = fs::read_to_string(format!("/proc/fs/jbd2/{name}-8/info")).unwrap();
            text.split(' ').next().unwrap().parse::<u64>().unwrap()
        };
        fs::write(disk.mounted.join("file"), "text").unwrap();
        let directory = File::open(&disk.mounted).unwrap();
        directory.sync_all().unwrap();
        fs::remove_file(disk.mounted.join("file")).unwrap();
        let before = transactions();
        commit(directory.as_fd());
        assert!(transactions() > before);
    }
}
