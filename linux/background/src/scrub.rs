//! Scrubs of btrfs (`BTRFS_IOC_SCRUB` of linux/btrfs.h), device by device.
//!
//! A scrub runs inside one call until it is done, so it cannot be stopped as a program can: it is cancelled, and begun again where it
//! was. The one that stops it freezes the worker first, which takes effect when the call returns.

use crate::btrfs::{fs_info, open_btrfs};
use crate::error::WorkError;
use crate::spec::{Found, Spec};
use crate::worker::Worker;
use rustix::fs::fstatvfs;
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
    let facts = fstatvfs(&*directory).map_err(WorkError::io("look at", &path))?;
    let total = (facts.f_blocks - facts.f_bfree) * facts.f_frsize;
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
                // Stopped: this goes on when the worker does.
                Err(Errno::CANCELED) if worker.was_stopped() => {}
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
