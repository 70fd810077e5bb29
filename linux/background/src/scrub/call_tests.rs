//! Calls of scrubs, and devices that the kernel does not scrub.

use super::{PROGRESS_PERIOD, is_missing, run, told, watched, why_left_out};
use crate::directories::Progress;
use crate::error::WorkError;
use crate::loop_disk::{self, LoopDisk};
use crate::spec::{Found, Kind};
use crate::worker::Worker;
use rustix::io::Errno;
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Instant;

/// On some kernels there is one for each extent.
#[test]
fn a_call_that_has_ended_is_not_waited_for_until_the_next_look() {
    let begun = Instant::now();
    assert_eq!((0..20).map(|call| watched(|| call, || ())).sum::<u32>(), 190);
    assert!(begun.elapsed() < 10 * PROGRESS_PERIOD, "{:?}", begun.elapsed());
    let mut looks = 0;
    watched(|| std::thread::sleep(3 * PROGRESS_PERIOD), || looks += 1);
    assert!(looks > 0);
}

#[test]
fn a_device_that_is_gone_or_read_only_is_left_out_and_where_nothing_is_left_that_is_told() {
    assert_eq!(why_left_out(Errno::NODEV, || true), Some("is not there"));
    assert_eq!(why_left_out(Errno::ROFS, || false), Some("is read-only"));
    assert_eq!(why_left_out(Errno::ROFS, || true), None, "all of it is");
    assert_eq!(why_left_out(Errno::CANCELED, || false), None);
    let ended = |bytes, scrubbed, left_out: &[&str]| {
        let left_out: Vec<String> = left_out.iter().map(|&device| device.to_owned()).collect();
        let found = Found { bytes, errors: 2, ..Found::default() };
        told(Path::new("/pool"), found, scrubbed, &left_out).map_err(|error| error.in_full())
    };
    let errors = "2 errors, 0 of them could not be corrected";
    assert_eq!(ended(0, 0, &[]), Ok(errors.to_owned()));
    assert_eq!(ended(7, 1, &["a", "b"]), Ok(format!("{errors}; not scrubbed: a, and b")));
    assert_eq!(ended(7, 0, &["a"]), Ok(format!("{errors}; not scrubbed: a")), "the worker before read the rest");
    assert_eq!(ended(0, 0, &["a", "b"]), Err("nothing of /pool can be scrubbed: a, and b".to_owned()));
}

/// A scrub of all of it; what it says, and whether as many bytes were read at least, and no fewer than were to be.
fn scrubbed(disk: &LoopDisk, bytes: u64) -> (Result<String, WorkError>, bool) {
    let mut worker = Worker::of(disk.root(), Kind::BtrfsScrub, &disk.mounted);
    let ended = run(&mut worker).map(|()| worker.message().to_owned());
    let progress = worker.assignment().place.progress();
    let is_all = |progress: Progress| progress.total.is_some_and(|total| (progress.done / total - 1.0).abs() < 0.05);
    (ended, progress.is_some_and(|progress| progress.done >= bytes as f64 && is_all(progress)))
}

#[test]
fn what_is_left_of_a_mirror_of_which_a_disk_is_gone_is_scrubbed() {
    let Some(disk) = LoopDisk::degraded() else { return };
    fs::write(disk.mounted.join("file"), vec![1; 64 << 20]).unwrap();
    loop_disk::run("sync", &["-f"], &disk.mounted);
    let directory: OwnedFd = File::open(&disk.mounted).unwrap().into();
    assert_eq!([1, 2, 3].map(|device| is_missing(&directory, device)), [Some(false), Some(true), None]);
    let (ended, is_read) = scrubbed(&disk, 64 << 20);
    let told = "0 errors, 0 of them could not be corrected; not scrubbed: device 2, which is not there";
    assert_eq!((ended.unwrap().as_str(), is_read), (told, true));
}

#[test]
fn of_a_btrfs_that_grew_from_a_seed_the_rest_is_scrubbed_and_of_one_that_is_read_only_nothing() {
    let Some(disk) = LoopDisk::new(&["mkfs.btrfs", "-q", "-f"]) else { return };
    disk.unmount();
    loop_disk::run("btrfstune", &["-f", "-S", "1"], &disk.image());
    disk.mount();
    let Some(node) = disk.node("second") else { return println!("skipped: needs loop devices") };
    loop_disk::run("btrfs", &["device", "add", "-f", &node], &disk.mounted);
    loop_disk::run("losetup", &["-d"], Path::new(&node));
    loop_disk::run("mount", &["-o", "remount,rw"], &disk.mounted);
    fs::write(disk.mounted.join("file"), vec![1; 4 << 20]).unwrap();
    loop_disk::run("sync", &["-f"], &disk.mounted);
    let (ended, is_read) = scrubbed(&disk, 4 << 20);
    let told = "0 errors, 0 of them could not be corrected; not scrubbed: device 1, which is read-only";
    assert_eq!((ended.unwrap().as_str(), is_read), (told, true));
    // Its worker dies at the end, and the next one goes on there.
    let mut next = Worker::of(disk.root(), Kind::BtrfsScrub, &disk.mounted);
    let progress = next.assignment().place.progress().unwrap();
    (next.spec_mut().position, next.spec_mut().found) = (progress.position, progress.found);
    run(&mut next).unwrap();
    assert_eq!(next.message(), told);
    loop_disk::run("mount", &["-o", "remount,ro"], &disk.mounted);
    let refused = scrubbed(&disk, 0).0.unwrap_err().in_full();
    assert!(refused.starts_with("failed to scrub"), "{refused}");
}
