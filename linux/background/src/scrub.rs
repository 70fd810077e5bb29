//! Scrubs of btrfs (`BTRFS_IOC_SCRUB` of linux/btrfs.h), device by device.
//!
//! A scrub runs inside one call until it is done, so it cannot be stopped as a program can: it is cancelled, and begun again where it
//! was. The one that stops it freezes the worker first, which takes effect when the call returns.

use crate::btrfs::{fs_info, open_btrfs, used_on_disks};
use crate::error::WorkError;
use crate::spec::{Found, Spec};
use crate::worker::Worker;
use rustix::io::Errno;
use rustix::ioctl::{NoArg, Opcode, Updater, ioctl, opcode};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often it is asked how far it is.
const PROGRESS_PERIOD: Duration = Duration::from_millis(300);
const POSITION_DEVICE_SHIFT: u32 = 56;

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
const UNCORRECTABLE: usize = 15;
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

/// Scrubs all devices, from the position on: a device and the byte in it. What workers before this one found up to there counts.
pub(crate) fn run(worker: &mut Worker) -> Result<(), WorkError> {
    let path = worker.spec().path.clone();
    let directory = Arc::new(worker.spec().open()?);
    let total = used_on_disks(&directory).map_err(WorkError::io("ask how much is used of the btrfs at", &path))?;
    let info = fs_info(&directory).map_err(WorkError::io("ask about the btrfs at", &path))?;
    let position = worker.spec().position;
    let (first, first_byte) = (position >> POSITION_DEVICE_SHIFT, position & ((1 << POSITION_DEVICE_SHIFT) - 1));
    let mut found = worker.spec().found;
    for device in first.max(1)..=info[0] {
        if !has_device(&directory, device) {
            continue;
        }
        let mut start = if device == first { first_byte } else { 0 };
        loop {
            let (ended, counts) = scrub_device(worker, &directory, (device, start), (found, total));
            found = found.with(&counts);
            start = start.max(counts[LAST_PHYSICAL]);
            let at = (device << POSITION_DEVICE_SHIFT) | start;
            worker.progress_with(found.bytes as f64, Some(total as f64), at, found);
            match ended {
                Ok(()) => break,
                Err(errno) if goes_on(errno, || worker.was_stopped()) => {}
                Err(Errno::CANCELED) => {
                    return Err(WorkError::Refused("the scrub was cancelled by somebody else".to_owned()));
                }
                Err(Errno::INPROGRESS) => {
                    let why = format!("a scrub of {} runs already, begun by somebody else", path.display());
                    return Err(WorkError::Refused(why));
                }
                Err(errno) => return Err(WorkError::io("scrub", &path)(errno)),
            }
        }
    }
    worker.say(&format!("{} errors, {} of them could not be corrected", found.errors, found.uncorrectable));
    Ok(())
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
            errors: self.errors + counts[ERRORS].iter().sum::<u64>(),
            uncorrectable: self.uncorrectable + counts[UNCORRECTABLE],
            ..self
        }
    }
}

/// One call, while another thread says how far it is.
fn scrub_device(
    worker: &mut Worker,
    directory: &Arc<OwnedFd>,
    (device, start): (u64, u64),
    (before, total): (Found, u64),
) -> (Result<(), Errno>, ScrubArgs) {
    let mut args: ScrubArgs = [0; 128];
    (args[DEVICE], args[START], args[END]) = (device, start, u64::MAX);
    let over = Arc::new(AtomicBool::new(false));
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                std::thread::sleep(PROGRESS_PERIOD);
                let mut now: ScrubArgs = [0; 128];
                now[DEVICE] = device;
                // SAFETY: `BTRFS_IOC_SCRUB_PROGRESS` reads and writes one `struct btrfs_ioctl_scrub_args`, which is 1,024 bytes.
                if unsafe { ioctl(&**directory, Updater::<SCRUB_PROGRESS, ScrubArgs>::new(&mut now)) }.is_ok() {
                    let found = before.with(&now);
                    let at = (device << POSITION_DEVICE_SHIFT) | start.max(now[LAST_PHYSICAL]);
                    worker.progress_with(found.bytes as f64, Some(total as f64), at, found);
                }
            }
        });
        // SAFETY: `BTRFS_IOC_SCRUB` reads and writes one `struct btrfs_ioctl_scrub_args`, which is 1,024 bytes.
        let ended = unsafe { ioctl(&**directory, Updater::<SCRUB, ScrubArgs>::new(&mut args)) };
        over.store(true, Ordering::Relaxed);
        // A watcher that panicked has nothing more to say.
        let _ = watcher.join();
        (ended, args)
    })
}

fn has_device(directory: &OwnedFd, device: u64) -> bool {
    let mut info: DevInfo = [0; 512];
    info[0] = device;
    // SAFETY: `BTRFS_IOC_DEV_INFO` reads and writes one `struct btrfs_ioctl_dev_info_args`, which is 4,096 bytes.
    unsafe { ioctl(directory, Updater::<DEV_INFO, DevInfo>::new(&mut info)) }.is_ok()
}

#[cfg(test)]
mod tests {
    use super::goes_on;
    use crate::btrfs::used_on_disks;
    use crate::loop_disk::LoopDisk;
    use crate::spec::Kind;
    use crate::worker::Worker;
    use rustix::io::Errno;
    use std::cell::Cell;
    use std::fs::{self, File};

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
        crate::loop_disk::run("sync", &["-f"], &disk.mounted);
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
}
