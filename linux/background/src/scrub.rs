//! Scrubs of btrfs (`BTRFS_IOC_SCRUB` of linux/btrfs.h), device by device.
//!
//! A scrub runs inside one call until it is done, so it cannot be stopped as a program can: it is cancelled, and begun again. The one that
//! stops it freezes the worker first, which takes effect when the call returns.
//!
//! The kernel scrubs whole device extents, that is chunks' parts on a device, of usually 1 GiB: all that overlap what it is asked for
//! (`scrub_enumerate_chunks` of fs/btrfs/scrub.c). One in the middle of which a call ended it begins again at its beginning, whatever byte
//! it is asked to begin at. So only extents that it was through count as finished ([`Finished`]), and there the next call, or the next
//! worker, goes on. Only what is told to be done includes what was read of the extent under way, and is less again after a call that was
//! cancelled. One call is for the rest of a device, as each writes two lines into the kernel's log.

mod finished;

use crate::btrfs::{device_extents, fs_info, open_btrfs, used_on_disks};
use crate::error::WorkError;
use crate::spec::{Found, Spec};
use crate::worker::Worker;
use finished::Finished;
use rustix::fs::{StatVfsMountFlags, fstatvfs};
use rustix::io::Errno;
use rustix::ioctl::{NoArg, Opcode, Updater, ioctl, opcode};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often it is asked how far it is.
const PROGRESS_PERIOD: Duration = Duration::from_millis(300);
/// A position is a device's number, and below that the byte in it.
const POSITION_DEVICE_SHIFT: u32 = 56;
const POSITION_BYTE: u64 = (1 << POSITION_DEVICE_SHIFT) - 1;

/// `struct btrfs_ioctl_scrub_args`: device, start, end, flags, 15 counts, and room.
type ScrubArgs = [u64; 128];
/// `struct btrfs_ioctl_dev_info_args`: number, identifier, bytes used, bytes in all, and what is not used here.
type DevInfo = [u64; 512];

const DEVICE: usize = 0;
const START: usize = 1;
const END: usize = 2;
const DATA_BYTES: usize = 6;
const TREE_BYTES: usize = 7;
/// Read errors, wrong checksums, wrong headers of metadata.
const ERRORS: std::ops::Range<usize> = 8..11;
const SUPERBLOCK_ERRORS: usize = 13;
const UNCORRECTABLE: usize = 15;
const CORRECTED: usize = 16;
const LAST_PHYSICAL: usize = 17;

const SCRUB: Opcode = opcode::read_write::<ScrubArgs>(0x94, 27);
const SCRUB_CANCEL: Opcode = opcode::none(0x94, 28);
const SCRUB_PROGRESS: Opcode = opcode::read_write::<ScrubArgs>(0x94, 29);
const DEV_INFO: Opcode = opcode::read_write::<DevInfo>(0x94, 30);

/// Whether there is a btrfs at a path.
pub(crate) fn check(path: &Path) -> Result<(), WorkError> {
    let directory = open_btrfs(path, "scrub")?;
    fs_info(&directory).map(drop).map_err(WorkError::io("ask about the btrfs at", path))
}

/// Cancels the scrub of a btrfs, if one runs.
pub(crate) fn cancel(spec: &Spec) -> Result<(), WorkError> {
    let directory = spec.open()?;
    // SAFETY: `BTRFS_IOC_SCRUB_CANCEL` has no argument.
    match unsafe { ioctl(&directory, NoArg::<SCRUB_CANCEL>::new()) } {
        Ok(()) | Err(Errno::NOTCONN) => Ok(()),
        Err(errno) => Err(WorkError::io("cancel the scrub of", &spec.path)(errno)),
    }
}

/// Scrubs all devices, from the position on. What workers before this one found up to there counts.
pub(crate) fn run(worker: &mut Worker) -> Result<(), WorkError> {
    let path = worker.spec().path.clone();
    let directory = worker.spec().open()?;
    let total = used_on_disks(&directory).map_err(WorkError::io("ask how much is used of the btrfs at", &path))?;
    let info = fs_info(&directory).map_err(WorkError::io("ask about the btrfs at", &path))?;
    let (position, found) = (worker.spec().position, worker.spec().found);
    let directory = &directory;
    let mut scrub = Scrub { worker: &*worker, directory, total, position, found, is_told_within: false };
    let (mut scrubbed, mut left_out) = (0, Vec::new());
    for device in (position >> POSITION_DEVICE_SHIFT).max(1)..=info[0] {
        if !has_device(directory, device) {
            continue;
        }
        match scrub.device(device)? {
            Some(why) => left_out.push(format!("device {device}, which {why}")),
            None => scrubbed += 1,
        }
    }
    let found = scrub.found;
    worker.say(&told(&path, found, scrubbed, &left_out)?);
    Ok(())
}

/// What people are told at the end. Where nothing could be read, also not by the worker before, it has failed.
fn told(path: &Path, found: Found, scrubbed: usize, left_out: &[String]) -> Result<String, WorkError> {
    let list = left_out.join(", and ");
    match left_out {
        [] => Ok(found.errors_told()),
        _ if scrubbed == 0 && found.bytes == 0 => {
            Err(WorkError::Refused(format!("nothing of {} can be scrubbed: {list}", path.display())))
        }
        _ => Ok(format!("{}; not scrubbed: {list}", found.errors_told())),
    }
}

/// Why a device is left out whose scrub the kernel refuses with this, where others may be scrubbed all the same.
fn why_left_out(errno: Errno, is_read_only: impl FnOnce() -> bool) -> Option<&'static str> {
    match errno {
        Errno::NODEV => Some("is not there"),
        // A seed. Else the whole file system is, from the start or because of an error meanwhile.
        Errno::ROFS if !is_read_only() => Some("is read-only"),
        _ => None,
    }
}

/// A scrub under way.
struct Scrub<'a> {
    worker: &'a Worker,
    directory: &'a OwnedFd,
    /// Bytes that there are.
    total: u64,
    /// Where it is, and what was found up to there.
    position: u64,
    found: Found,
    /// See [`Finished::tells_where_it_is`].
    is_told_within: bool,
}

impl Scrub<'_> {
    /// Scrubs the rest of a device; why that is left out, if it is.
    fn device(&mut self, device: u64) -> Result<Option<&'static str>, WorkError> {
        let (worker, path) = (self.worker, &self.worker.spec().path);
        self.position = self.position.max(device << POSITION_DEVICE_SHIFT);
        loop {
            // Others may have made and removed some since the last call.
            let extents = device_extents(self.directory, device).map_err(WorkError::io("read the chunks of", path))?;
            let mut finished = Finished::new(extents, self.position & POSITION_BYTE, self.found);
            // Until the kernel has told where it is within an extent, only the end of a call tells that one was finished.
            let end = if self.is_told_within { None } else { finished.end() };
            let ended = self.call(device, end, &mut finished);
            if let Some(why) = ended.err().and_then(|errno| why_left_out(errno, || is_read_only(self.directory))) {
                return Ok(Some(why));
            }
            self.is_told_within = finished.tells_where_it_is();
            self.position = match (ended, end) {
                (Ok(()), None) => (device + 1) << POSITION_DEVICE_SHIFT,
                _ => (device << POSITION_DEVICE_SHIFT) | finished.at,
            };
            self.found = finished.found;
            worker.progress_with(self.found.bytes as f64, Some(self.total as f64), self.position, self.found);
            match ended {
                Ok(()) if end.is_none() => return Ok(None),
                Ok(()) => {}
                Err(errno) if goes_on(errno, || worker.was_stopped()) => {}
                Err(Errno::CANCELED) => {
                    return Err(WorkError::Refused("the scrub was cancelled by somebody else".to_owned()));
                }
                Err(Errno::INPROGRESS) => {
                    let why = format!("a scrub of {} runs already, begun by somebody else", path.display());
                    return Err(WorkError::Refused(why));
                }
                Err(errno) => return Err(WorkError::io("scrub", path)(errno)),
            }
        }
    }

    /// One call for a device up to a byte, or for the rest of it, while another thread says how far it is.
    fn call(&self, device: u64, end: Option<u64>, finished: &mut Finished) -> Result<(), Errno> {
        let before = finished.found;
        let mut args: ScrubArgs = [0; 128];
        (args[DEVICE], args[START], args[END]) = (device, finished.at, end.unwrap_or(u64::MAX));
        let look = || {
            let mut now: ScrubArgs = [0; 128];
            now[DEVICE] = device;
            // SAFETY: `BTRFS_IOC_SCRUB_PROGRESS` reads and writes one `struct btrfs_ioctl_scrub_args`, which is 1,024 bytes.
            if unsafe { ioctl(self.directory, Updater::<SCRUB_PROGRESS, ScrubArgs>::new(&mut now)) }.is_ok() {
                let all = before.with(&now);
                finished.look(now[LAST_PHYSICAL], all);
                let position = (device << POSITION_DEVICE_SHIFT) | finished.at;
                self.worker.progress_with(all.bytes as f64, Some(self.total as f64), position, finished.found);
            }
        };
        let scrub = || {
            self.worker.begins_call();
            // SAFETY: `BTRFS_IOC_SCRUB` reads and writes one `struct btrfs_ioctl_scrub_args`, which is 1,024 bytes.
            unsafe { ioctl(self.directory, Updater::<SCRUB, ScrubArgs>::new(&mut args)) }
        };
        let ended = watched(scrub, look);
        let all = before.with(&args);
        match ended {
            Ok(()) => finished.done(end, all),
            Err(_) => finished.ended(args[LAST_PHYSICAL], all),
        }
        ended
    }
}

/// Makes a call, and looks meanwhile how far it is, on another thread.
fn watched<T>(call: impl FnOnce() -> T, mut look: impl FnMut() + Send) -> T {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            loop {
                std::thread::park_timeout(PROGRESS_PERIOD);
                // Whatever scrub there is then is somebody else's.
                if over.load(Ordering::Relaxed) {
                    break;
                }
                look();
            }
        });
        let outcome = call();
        over.store(true, Ordering::Relaxed);
        // The next call waits for its end.
        watcher.thread().unpark();
        // A watcher that panicked has nothing more to say.
        let _ = watcher.join();
        outcome
    })
}

/// Whether a call that ended so is made again, when the worker goes on.
fn goes_on(errno: Errno, was_stopped: impl FnOnce() -> bool) -> bool {
    match errno {
        Errno::CANCELED => was_stopped(),
        // Linux 6.19 and later end it by themselves where its process or the file system is frozen, be it by others, as when a host is
        // suspended.
        Errno::INTR => {
            // It is no reason any more to go on after the next end, which may be somebody else's doing.
            was_stopped();
            true
        }
        _ => false,
    }
}

impl Found {
    /// With what a call counted.
    fn with(self, counts: &ScrubArgs) -> Self {
        Self {
            bytes: self.bytes + counts[DATA_BYTES] + counts[TREE_BYTES],
            errors: self.errors + counts[ERRORS].iter().sum::<u64>() + counts[SUPERBLOCK_ERRORS],
            corrected: self.corrected + counts[CORRECTED] + counts[SUPERBLOCK_ERRORS],
            uncorrectable: self.uncorrectable + counts[UNCORRECTABLE],
            ..self
        }
    }

    fn errors_told(self) -> String {
        format!("{} errors, {} of them could not be corrected", self.errors, self.uncorrectable)
    }
}

fn has_device(directory: &OwnedFd, device: u64) -> bool {
    let mut info: DevInfo = [0; 512];
    info[0] = device;
    // SAFETY: `BTRFS_IOC_DEV_INFO` reads and writes one `struct btrfs_ioctl_dev_info_args`, which is 4,096 bytes.
    unsafe { ioctl(directory, Updater::<DEV_INFO, DevInfo>::new(&mut info)) }.is_ok()
}

/// Nothing can be written through this.
fn is_read_only(directory: &OwnedFd) -> bool {
    fstatvfs(directory).is_ok_and(|facts| facts.f_flag.contains(StatVfsMountFlags::RDONLY))
}

#[cfg(test)]
mod call_tests;

#[cfg(test)]
mod tests {
    use super::{DEVICE, END, POSITION_BYTE, POSITION_DEVICE_SHIFT, SCRUB, ScrubArgs, goes_on};
    use crate::btrfs::{device_extents, used_on_disks};
    use crate::directories::{Progress, replace};
    use crate::loop_disk::{LoopDisk, run};
    use crate::spec::{Found, Kind};
    use crate::worker::Worker;
    use rustix::io::Errno;
    use rustix::ioctl::{Updater, ioctl};
    use std::cell::Cell;
    use std::fs::{self, File};
    use std::os::fd::OwnedFd;
    use std::path::PathBuf;
    use std::time::{Duration, Instant};

    #[test]
    fn a_stop_and_a_freeze_are_gone_on_from_and_what_others_cancel_is_not() {
        let is_left = Cell::new(false);
        let ends = |errno, stopped| {
            is_left.set(stopped);
            (goes_on(errno, || is_left.take()), is_left.get())
        };
        assert_eq!(ends(Errno::CANCELED, true), (true, false));
        assert_eq!(ends(Errno::CANCELED, false), (false, false), "by somebody else");
        assert_eq!(ends(Errno::INTR, true), (true, false), "the next one is not excused");
        assert_eq!(ends(Errno::INTR, false), (true, false));
        assert_eq!(ends(Errno::IO, true), (false, true));
    }

    /// Each copy is read.
    #[test]
    fn what_is_to_be_read_of_a_mirror_is_known_before() {
        let Some(disk) = LoopDisk::mirrored() else { return };
        fs::write(disk.mounted.join("file"), vec![1; 100 << 20]).unwrap();
        run("sync", &["-f"], &disk.mounted);
        let total = used_on_disks(&File::open(&disk.mounted).unwrap().into()).unwrap();
        let mut worker = Worker::of(disk.root(), Kind::BtrfsScrub, &disk.mounted);
        super::run(&mut worker).unwrap();
        let progress = worker.assignment().place.progress().unwrap();
        assert!(
            total > 200 << 20 && progress.total.is_some_and(|all| (all - total as f64).abs() < 1e6),
            "{progress:?}"
        );
        assert!((progress.done / total as f64 - 1.0).abs() < 0.02, "{} of {total}", progress.done);
        assert_eq!(worker.message(), "0 errors, 0 of them could not be corrected");
    }

    /// What a scrub reads of the first device up to a byte of it.
    fn bytes_up_to(directory: &OwnedFd, byte: u64) -> u64 {
        let mut args: ScrubArgs = [0; 128];
        (args[DEVICE], args[END]) = (1, byte);
        // SAFETY: `BTRFS_IOC_SCRUB` reads and writes one `struct btrfs_ioctl_scrub_args`, which is 1,024 bytes.
        unsafe { ioctl(directory, Updater::<SCRUB, ScrubArgs>::new(&mut args)) }.unwrap();
        Found::default().with(&args).bytes
    }

    /// Lets a worker scrub until it is in the middle of an extent that is not the first one, and cancels it; what it said before that and
    /// after it.
    fn cancelled_within_an_extent(worker: &mut Worker) -> (Progress, Progress) {
        let (spec, place) = (worker.spec().clone(), worker.assignment().place.clone());
        let begun = Instant::now();
        // The one that stopped it before its call cancelled nothing.
        replace(&place.runtime.join("stopped"), &(), false).unwrap();
        let is_within = |progress: &Progress| {
            let since = progress.done - progress.found.bytes as f64;
            progress.position & POSITION_BYTE > 1 << 20 && since > 10e6 && since < 30e6
        };
        let before = std::thread::scope(|scope| {
            let scrub = scope.spawn(|| super::run(worker));
            let before = loop {
                assert!(begun.elapsed() < Duration::from_secs(60) && !scrub.is_finished(), "{:?}", place.progress());
                if let Some(progress) = place.progress().filter(is_within) {
                    break progress;
                }
                std::thread::sleep(Duration::from_millis(10));
            };
            super::cancel(&spec).unwrap();
            let ended = scrub.join().unwrap().map_err(|error| error.in_full());
            assert_eq!(ended, Err("the scrub was cancelled by somebody else".to_owned()));
            before
        });
        (before, place.progress().unwrap())
    }

    #[test]
    fn one_that_is_cancelled_within_an_extent_stands_at_its_beginning_with_what_was_found_up_to_there() {
        let Some(disk) = LoopDisk::new(&["mkfs.btrfs", "-q", "-f"]) else { return };
        fs::write(disk.mounted.join("file"), vec![1; 200 << 20]).unwrap();
        run("sync", &["-f"], &disk.mounted);
        let number = run("blkid", &["-s", "UUID", "-o", "value"], &disk.image());
        let speed = PathBuf::from(format!("/sys/fs/btrfs/{}/devinfo/1/scrub_speed_max", number.trim()));
        let Ok(fastest) = fs::read_to_string(&speed) else {
            println!("skipped: needs {}", speed.display());
            return;
        };
        let mut worker = Worker::of(disk.root(), Kind::BtrfsScrub, &disk.mounted);
        fs::write(&speed, "8388608").unwrap();
        let (before, after) = cancelled_within_an_extent(&mut worker);
        fs::write(&speed, fastest.trim()).unwrap();

        let directory: OwnedFd = File::open(&disk.mounted).unwrap().into();
        let extents = device_extents(&directory, 1).unwrap();
        let (device, byte) = (after.position >> POSITION_DEVICE_SHIFT, after.position & POSITION_BYTE);
        assert_eq!(device, 1);
        let at = extents.iter().position(|extent| extent.start == byte).unwrap();
        let read = bytes_up_to(&directory, byte);
        assert!(at > 0 && read > 0, "{after:?} of {extents:?}");
        assert!(after.found.bytes <= read && after.found.bytes + (20 << 20) > read, "{after:?}: {read} before it");
        let falls_back = (after.done - after.found.bytes as f64).abs() < 1.0 && after.done < before.done;
        assert!(falls_back, "{before:?}, {after:?}");

        let spec = worker.spec_mut();
        (spec.position, spec.found) = (after.position, after.found);
        super::run(&mut worker).unwrap();
        let progress = worker.assignment().place.progress().unwrap();
        let total = progress.total.unwrap();
        assert!(progress.done <= total && progress.done + 20e6 > total, "{progress:?}");
        assert_eq!(worker.message(), "0 errors, 0 of them could not be corrected");
    }
}
