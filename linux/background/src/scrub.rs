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
mod left_out;

use crate::btrfs::{device_extents, fs_info, open_btrfs, used_on, used_on_disks};
use crate::error::WorkError;
use crate::spec::{Found, Spec};
use crate::worker::Worker;
use finished::Finished;
use left_out::LeftOut;
use rustix::fs::{StatVfsMountFlags, fstatvfs};
use rustix::io::Errno;
use rustix::ioctl::{NoArg, Opcode, Updater, ioctl, opcode};
use std::collections::BTreeSet;
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
/// `struct btrfs_ioctl_dev_info_args`: number, identifier, bytes used, bytes in all, what is not used here, and the path of its node.
type DevInfo = [u64; 512];
const DEV_PATH: usize = 384;

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
    let info = fs_info(&directory).map_err(WorkError::io("ask about the btrfs at", &path))?;
    let (position, found) = (worker.spec().position, worker.spec().found);
    let directory = &directory;
    let first = (position >> POSITION_DEVICE_SHIFT).max(1);
    let mut left_out = LeftOut::before(&worker.assignment().place, first);
    let missing: BTreeSet<u64> =
        (first..=info[0]).filter(|device| is_missing(directory, *device) == Some(true)).collect();
    let to_read = |left_out: &LeftOut| {
        used_on_scrubbed(directory, info[0], |device| !left_out.has(device) && !missing.contains(&device))
            .map_err(WorkError::io("ask how much is used of the btrfs at", &path))
    };
    let total = to_read(&left_out)?;
    let mut scrub = Scrub { worker: &*worker, directory, total, position, found, is_told_within: false };
    let mut scrubbed = 0;
    for device in first..=info[0] {
        if is_missing(directory, device).is_none() {
            continue;
        }
        match scrub.device(device)? {
            Some(why) => {
                left_out.add(device, why);
                scrub.total = if missing.contains(&device) { scrub.total } else { to_read(&left_out)? };
            }
            None => scrubbed += 1,
        }
    }
    let found = scrub.found;
    worker.say(&told(&path, found, scrubbed, &left_out.told())?);
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

/// Whether a device of this number is missing: it is written on the file system, and has no node. Nothing if there is none.
fn is_missing(directory: &OwnedFd, device: u64) -> Option<bool> {
    let mut info: DevInfo = [0; 512];
    info[0] = device;
    // SAFETY: `BTRFS_IOC_DEV_INFO` reads and writes one `struct btrfs_ioctl_dev_info_args`, which is 4,096 bytes.
    unsafe { ioctl(directory, Updater::<DEV_INFO, DevInfo>::new(&mut info)) }.ok()?;
    Some(info[DEV_PATH] == 0)
}

/// Bytes that are used on those devices that are scrubbed, of numbers up to `last`.
fn used_on_scrubbed(directory: &OwnedFd, last: u64, is_scrubbed: impl Fn(u64) -> bool) -> Result<u64, Errno> {
    if (1..=last).all(&is_scrubbed) { used_on_disks(directory) } else { used_on(directory, is_scrubbed) }
}

/// Nothing can be written through this.
fn is_read_only(directory: &OwnedFd) -> bool {
    fstatvfs(directory).is_ok_and(|facts| facts.f_flag.contains(StatVfsMountFlags::RDONLY))
}

#[cfg(test)]
mod call_tests;

#[cfg(test)]
mod tests;
