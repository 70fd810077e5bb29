//! Has what a deletion changed written while nobody waits for the disk.
//!
//! ext4 keeps changes of metadata in memory for five seconds (`commit` in the kernel's Documentation/admin-guide/ext4.rst) and then
//! writes all of them into its journal at once, by a thread in the root group that nobody weighs. A pause is over by then, and who made it
//! waits: beside a deletion in its pauses a random reader on a 7200 rpm disk lost some 8 % of its requests by that. `fsync` of a
//! directory has the journal written at once (jbd2), so a deletion asks for it again and again for as long as it runs.

use rustix::fs::{FsWord, fstatfs, fsync};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// What is changed within it is written quickly; that often, a commit's own seeks take some percent of the time.
const EVERY: Duration = Duration::from_millis(500);
/// In statfs(2).
const EXT4: FsWord = 0xEF53;

/// When the journal was written last.
#[derive(Debug)]
pub(crate) struct Commits {
    last: Instant,
}

impl Commits {
    /// Of changes that begin now.
    pub(crate) fn new(now: Instant) -> Self {
        Self { last: now }
    }

    /// Whether the journal is to be written now. Then it counts as written.
    pub(crate) fn is_due(&mut self, now: Instant) -> bool {
        let is_due = now.saturating_duration_since(self.last) >= EVERY;
        if is_due {
            self.last = now;
        }
        is_due
    }
}

/// Has what was changed in a directory on ext4, and all that was changed there before, in the journal. An error changes nothing: the
/// directory is only worked on.
pub(crate) fn commit(directory: BorrowedFd<'_>) {
    if fstatfs(directory).is_ok_and(|found| found.f_type == EXT4) {
        let _ = fsync(directory);
    }
}

#[cfg(test)]
mod tests {
    use super::{Commits, EVERY, commit};
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
