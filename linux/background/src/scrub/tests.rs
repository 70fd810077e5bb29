//! Scrubs of real file systems, and when a call is made again.

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
    assert!(total > 200 << 20 && progress.total.is_some_and(|all| (all - total as f64).abs() < 1e6), "{progress:?}");
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
