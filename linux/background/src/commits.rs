//! Has what a deletion changed written while nobody waits for the disk.
//!
//! ext4 keeps changes of metadata in memory for five seconds (`commit` in the kernel's Documentation/admin-guide/ext4.rst) and then
//! writes all of them into its journal at once, by a thread in the root group that nobody weighs. A pause is over by then, and who made it
//! waits: beside a deletion in its pauses a random reader on a 7200 rpm disk lost some 8 % of its requests by that. `fsync` of a
//! directory has the journal written at once (jbd2). What was written there stays to be written to its own place too, which flusher threads
//! do half a minute later, again all at once (`dirty_expire_centisecs` in Documentation/admin-guide/sysctl/vm.rst); the file system keeps it in
//! the page cache of its device. So a deletion has both written again and again for as long as it runs.
//!
//! What lies in the page cache of the device is everybody's: `fdatasync` of the device would write all of it in one call, which nothing can
//! interrupt. It is written range by range, so that a worker can be stopped in between. On the unified hierarchy such writes are charged to the
//! group that the pages of the device belong to (Documentation/admin-guide/cgroup-v2.rst, "Writeback"), and the deletion would take its own for
//! somebody else's, and stop: there it is left to the flusher threads.

use rustix::fs::{FileType, FsWord, Mode, OFlags, SeekFrom, fstat, fstatfs, fsync, major, minor, open, seek};
use std::fs;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// What is changed within it is written quickly; that often, a commit's own seeks take some percent of the time.
const EVERY: Duration = Duration::from_millis(500);
/// No step of a deletion that runs takes longer: what is longer is a stop.
const STEP_MAX: Duration = Duration::from_millis(50);
/// In statfs(2).
const EXT4: FsWord = 0xEF53;
/// As much as a group of blocks of ext4, which has its inodes and bitmaps together.
const RANGE_BYTES_MIN: u64 = 128 << 20;
/// A call for each range, also where there is nothing to write.
const RANGES_MAX: u64 = 1024;

/// When changes were written last.
#[derive(Debug)]
pub(crate) struct Commits {
    last: Instant,
    /// For how long the deletion ran since changes were written, without the time for which it was stopped.
    ran: Duration,
    /// What is in the journal is written to its place too.
    is_to_its_place: bool,
}

impl Commits {
    /// Of changes that begin now.
    pub(crate) fn new(now: Instant) -> Self {
        let is_to_its_place = !charges_page_cache(Path::new("/sys/fs/cgroup"));
        Self { last: now, ran: Duration::ZERO, is_to_its_place }
    }

    /// A step ended, which removed something or did not: whether what was changed is to be written now.
    pub(crate) fn is_due(&mut self, now: Instant, removes: bool) -> bool {
        self.ran += now.saturating_duration_since(self.last).min(STEP_MAX);
        self.last = now;
        removes && self.ran >= EVERY
    }

    /// Has what was changed in a directory on ext4, and all that was changed there before, in the journal and then at its place. An error
    /// changes nothing: the kernel writes it later.
    pub(crate) fn commit(&mut self, directory: BorrowedFd<'_>) {
        if fstatfs(directory).is_ok_and(|found| found.f_type == EXT4)
            && fsync(directory).is_ok()
            && self.is_to_its_place
        {
            device(directory).as_ref().map(write_ranges);
        }
        (self.last, self.ran) = (Instant::now(), Duration::ZERO);
    }
}

/// Whether the groups of the unified hierarchy at `root` have both memory and disks, so that pages that are written are charged to whose they are.
fn charges_page_cache(root: &Path) -> bool {
    let controllers = fs::read_to_string(root.join("cgroup.subtree_control")).unwrap_or_default();
    ["io", "memory"].iter().all(|controller| controllers.split_whitespace().any(|found| found == *controller))
}

/// Writes what is changed in the page cache of a device, and waits for it, range by range.
fn write_ranges(device: &OwnedFd) {
    let size = seek(device, SeekFrom::End(0)).unwrap_or(0);
    let range = RANGE_BYTES_MIN.max(size.div_ceil(RANGES_MAX));
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    for number in 0..size.div_ceil(range) {
        let (Ok(offset), Ok(length)) = (i64::try_from(number * range), i64::try_from(range)) else { return };
        // SAFETY: the descriptor is open for as long as `device` lives, and the call touches no memory of ours.
        if unsafe { libc::sync_file_range(device.as_raw_fd(), offset, length, flags) } != 0 {
            return;
        }
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
    use super::{Commits, EVERY, STEP_MAX, charges_page_cache, device};
    use crate::loop_disk::LoopDisk;
    use std::fs::{self, File};
    use std::os::fd::AsFd;
    use std::os::linux::fs::MetadataExt;
    use std::time::{Duration, Instant};

    fn commits() -> Commits {
        Commits { is_to_its_place: true, ..Commits::new(Instant::now()) }
    }

    #[test]
    fn the_journal_is_written_once_in_each_span_of_running() {
        let mut now = Instant::now();
        let mut commits = Commits::new(now);
        let mut step = |commits: &mut Commits, span, removes| {
            now += span;
            commits.is_due(now, removes)
        };
        let short = Duration::from_millis(10);
        assert!((0..49).all(|_| !step(&mut commits, short, true)));
        assert!(!step(&mut commits, short, false), "nothing was changed since");
        assert!(step(&mut commits, short, true));
        commits.ran = Duration::ZERO;
        // Stopped again and again, for longer than it runs.
        let stops = EVERY.as_millis() / STEP_MAX.as_millis();
        assert!((1..stops).all(|_| !step(&mut commits, 3 * EVERY, true)));
        assert!(step(&mut commits, 3 * EVERY, true));
    }

    #[test]
    fn what_a_commit_takes_is_no_running() {
        let folder = tempfile::tempdir().unwrap();
        let long_ago = Instant::now().checked_sub(3 * EVERY).unwrap();
        let mut commits = Commits::new(long_ago);
        commits.commit(File::open(folder.path()).unwrap().as_fd());
        assert!(commits.last > long_ago + EVERY && commits.ran == Duration::ZERO);
    }

    #[test]
    fn writes_are_left_to_the_kernel_where_they_are_charged_to_whose_the_pages_are() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!charges_page_cache(folder.path()), "no unified hierarchy");
        for (controllers, charges) in [("cpu io memory pids\n", true), ("cpu io pids\n", false), ("memory\n", false)] {
            fs::write(folder.path().join("cgroup.subtree_control"), controllers).unwrap();
            assert_eq!(charges_page_cache(folder.path()), charges, "{controllers}");
        }
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
        commits().commit(directory.as_fd());
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
        commits().commit(directory.as_fd());
        assert!(transactions() > before);
    }
}
