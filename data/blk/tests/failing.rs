//! Disks that fill, fail, or lose their image while guests use them: an error for the guest whose request it was, one for each request,
//! and nothing for any other.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says why by panicking")]

mod common;

use common::{Bench, disk};
use minerva_blk::{Failure, ImageOptions, TransferKind};
use minerva_blocksched::SchedulerName;
use minerva_vhost_client::{Client, ClientOptions, Request, kind};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);
const BLOCK: u32 = 4096;
/// `VIRTIO_BLK_F_FLUSH`: without it each write is durable when it is answered.
const FLUSH: u64 = 1 << 9;

/// What a test set up on this machine, taken down again when dropped.
struct Undo(Vec<(&'static str, PathBuf)>);

impl Drop for Undo {
    fn drop(&mut self) {
        for (command, path) in self.0.drain(..).rev() {
            let mut words = command.split(' ');
            let program = words.next().unwrap();
            let _ = Command::new(program).args(words).arg(path).status();
        }
    }
}

fn text_of(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        println!("skipped: needs root for a file system and a block device of its own");
    }
    is_root
}

/// The first disk's image lies at `image`, the second's on the tests' file system.
fn serve(folder: tempfile::TempDir, image: &Path, is_direct: bool, transfer: TransferKind) -> (Bench, Vec<Client>) {
    let mut first = disk(&folder.path().join("disk0"));
    first.image = image.to_owned();
    first.options = ImageOptions { is_read_only: false, is_direct };
    let second = disk(&folder.path().join("disk1"));
    let bench = Bench::start(folder, SchedulerName::Noop, 8, transfer, vec![first, second]);
    let clients = (0..2).map(|number| Client::connect(&bench.socket(number), ClientOptions::default())).collect();
    (bench, clients)
}

/// A block device that fails to write what lies behind its first so many blocks, and is gone with `Undo`. A write across that end would be a
/// short one, which the kernel's loop device takes for a good one.
fn device_of(blocks: u64) -> (PathBuf, Undo) {
    let below = memfd_create("below", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    ftruncate(&below, common::IMAGE_BYTES).unwrap();
    let path = format!("/proc/{}/fd/{}", std::process::id(), below.as_raw_fd());
    let device = PathBuf::from(text_of(Command::new("losetup").args(["--find", "--show"]).arg(path)));
    // It ends there, and a write does not make it longer.
    ftruncate(&below, blocks * u64::from(BLOCK)).unwrap();
    fcntl_add_seals(&below, SealFlags::GROW).unwrap();
    (device.clone(), Undo(vec![("losetup --detach", device)]))
}

/// A disk on such a device, through the page cache, and its guest.
fn serve_buffered(blocks: u64, transfer: TransferKind, options: ClientOptions) -> (Client, Bench, Undo) {
    let folder = Bench::folder();
    let (device, undo) = device_of(blocks);
    let mut first = disk(&folder.path().join("disk0"));
    (first.image, first.queues) = (device, options.queues);
    first.options = ImageOptions { is_read_only: false, is_direct: false };
    let bench = Bench::start(folder, SchedulerName::Noop, 32, transfer, vec![first]);
    (Client::connect(&bench.socket(0), options), bench, undo)
}

/// So many requests at once of both guests; how many of each failed.
fn failures(clients: &mut [Client], kind: u32, blocks: std::ops::Range<u64>) -> Vec<usize> {
    for client in clients.iter_mut() {
        for block in blocks.clone() {
            client.rings[0].submit(&Request::new(kind, block * u64::from(BLOCK) / 512, BLOCK));
        }
        client.rings[0].kick();
    }
    let of = |client: &mut Client| {
        let ring = &mut client.rings[0];
        let mut failed = 0;
        while ring.under_way() > 0 {
            failed += usize::from(ring.wait(PATIENCE).expect("each is answered").status != 0);
        }
        // No answer comes twice: the ring would say so.
        assert!(ring.poll().is_none());
        failed
    };
    clients.iter_mut().map(of).collect()
}

/// What the server counted as failed, by disk.
fn counted(bench: &Bench) -> Vec<u64> {
    bench.server.as_ref().unwrap().counters().map(|counters| counters.failed.load(Ordering::Relaxed)).collect()
}

/// What is said of why the first disk's last request failed.
fn told(bench: &Bench) -> (i32, String) {
    let (_, measures, _) = bench.server.as_ref().unwrap().measure("disk0").unwrap();
    measures.figures.failure.map(|failure| (failure.errno, failure.why)).unwrap_or_default()
}

/// How often a failure was told for the log, of all servers of these tests.
fn times_told(failure: Failure) -> usize {
    common::FAILURES_TOLD.lock().unwrap().iter().filter(|told| **told == failure).count()
}

#[test]
fn a_disk_that_is_full_fails_what_its_guest_writes_and_no_other() {
    if !is_root() {
        return;
    }
    for transfer in [TransferKind::Uring, TransferKind::Threads] {
        let folder = Bench::folder();
        let full = folder.path().join("full");
        std::fs::create_dir(&full).unwrap();
        text_of(Command::new("mount").args(["-t", "tmpfs", "-o", "size=128k", "none"]).arg(&full));
        let undo = Undo(vec![("umount --lazy", full.clone())]);
        let image = full.join("disk");
        std::fs::File::create(&image).unwrap().set_len(common::IMAGE_BYTES).unwrap();
        let (bench, mut clients) = serve(folder, &image, false, transfer);
        let failed = failures(&mut clients, kind::OUT, 0..100);
        // 128 KiB are 32 blocks.
        assert_eq!(failed, [68, 0], "{transfer:?}");
        assert_eq!(counted(&bench), [68, 0], "each once");
        let (errno, why) = told(&bench);
        assert!(errno == libc::ENOSPC && why.contains("make room there or extend it"), "{errno}: {why}");
        assert_eq!(failures(&mut clients, kind::IN, 0..100), [0, 0], "what is there, and holes, can be read");
        text_of(Command::new("mount").args(["-o", "remount,size=1m"]).arg(&full));
        assert_eq!(failures(&mut clients, kind::OUT, 0..100), [0, 0], "there is room again");
        drop((clients, bench, undo));
    }
    // Of each server once, by a thread of its own.
    let begun = std::time::Instant::now();
    while times_told(Failure::Error(libc::ENOSPC)) < 2 {
        assert!(begun.elapsed() < PATIENCE, "nobody is told");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(times_told(Failure::Error(libc::ENOSPC)), 2, "once");
}

#[test]
fn a_disk_that_fails_costs_its_own_guest_an_error_for_each_request() {
    if !is_root() {
        return;
    }
    for transfer in [TransferKind::Uring, TransferKind::Threads] {
        let folder = Bench::folder();
        let below = folder.path().join("below");
        std::fs::File::create(&below).unwrap().set_len(common::IMAGE_BYTES).unwrap();
        let device = text_of(Command::new("losetup").args(["--find", "--show"]).arg(&below));
        let undo = Undo(vec![("losetup --detach", PathBuf::from(&device))]);
        let (bench, mut clients) = serve(folder, device.as_ref(), true, transfer);
        assert_eq!(failures(&mut clients, kind::OUT, 0..64), [0, 0]);
        // What the loop device has below it ends in its first half: the kernel gives `EIO` for the rest.
        std::fs::File::options().write(true).open(&below).unwrap().set_len(u64::from(BLOCK) * 32).unwrap();
        assert_eq!(failures(&mut clients, kind::IN, 0..64), [32, 0], "{transfer:?}");
        assert_eq!(counted(&bench), [32, 0], "each once");
        let (errno, why) = told(&bench);
        assert!(errno == libc::EIO && why.contains("smartctl"), "{errno}: {why}");
        assert_eq!(failures(&mut clients, kind::IN, 0..32), [0, 0], "the rest is served");
        drop((clients, bench, undo));
    }
}

/// The kernel tells an error of its page cache once to an open file: to whichever of the writes under way looks first.
#[test]
fn each_durable_write_through_the_page_cache_that_is_lost_is_an_error() {
    if !is_root() {
        return;
    }
    for transfer in [TransferKind::Uring, TransferKind::Threads] {
        let options = ClientOptions { without: FLUSH, ..ClientOptions::default() };
        let (mut client, bench, undo) = serve_buffered(32, transfer, options);
        let mut failed = |blocks: &mut dyn Iterator<Item = u64>| {
            let ring = &mut client.rings[0];
            let mut made = std::collections::HashMap::new();
            for block in blocks {
                made.insert(ring.submit(&Request::new(kind::OUT, block * u64::from(BLOCK) / 512, BLOCK)), block);
            }
            ring.kick();
            let answers = (0..made.len()).map(|_| ring.wait(PATIENCE).expect("each is answered"));
            let mut failed: Vec<u64> =
                answers.filter(|answer| answer.status != 0).map(|answer| made[&answer.slot]).collect();
            failed.sort_unstable();
            failed
        };
        for _ in 0..10 {
            // Those before the end may have shared a sync with some behind it.
            let lost: Vec<u64> = failed(&mut (0..16).chain(40..128)).into_iter().filter(|block| *block >= 32).collect();
            assert_eq!(lost, (40..128).collect::<Vec<_>>(), "{transfer:?}");
            assert_eq!(failed(&mut (0..16)), [0; 0], "{transfer:?}: nothing is left of it");
        }
        drop((client, bench, undo));
    }
}

/// The same of flushes.
#[test]
fn flushes_of_several_rings_are_all_told_that_the_page_cache_lost_something() {
    if !is_root() {
        return;
    }
    for transfer in [TransferKind::Uring, TransferKind::Threads] {
        let options = ClientOptions { queues: 2, ..ClientOptions::default() };
        let (mut client, bench, undo) = serve_buffered(32, transfer, options);
        let mut ask = |request: Request| {
            for ring in &mut client.rings {
                ring.submit(&request);
            }
            for ring in &mut client.rings {
                ring.kick();
            }
            [0, 1].map(|ring: usize| client.rings[ring].wait(PATIENCE).expect("an answer").status)
        };
        let mut told = Vec::new();
        for round in 0..20 {
            let write = Request::new(kind::OUT, (40 + round) * u64::from(BLOCK) / 512, BLOCK);
            assert_eq!(ask(write), [0, 0], "{transfer:?}: it is in the page cache");
            let flush = Request::new(kind::FLUSH, 0, 0);
            told.push(ask(flush).iter().filter(|status| **status == 1).count());
            assert_eq!(ask(flush), [0, 0], "{transfer:?}: once");
        }
        // Both count on it, but where the second was sent after the first had failed, as on a busy machine it may be now and then.
        assert!(!told.contains(&0) && told.iter().filter(|told| **told == 2).count() > 10, "{transfer:?}: {told:?}");
        assert_eq!(counted(&bench), [told.iter().sum::<usize>() as u64]);
        drop((client, bench, undo));
    }
}

#[test]
fn an_image_that_is_removed_under_its_guest_is_served_until_it_goes() {
    let folder = Bench::folder();
    let image = folder.path().join("gone");
    std::fs::File::create(&image).unwrap().set_len(common::IMAGE_BYTES).unwrap();
    let (bench, mut clients) = serve(folder, &image, false, TransferKind::Uring);
    std::fs::remove_file(&image).unwrap();
    assert_eq!(failures(&mut clients, kind::OUT, 0..64), [0, 0]);
    assert_eq!(clients[0].rings[0].ask(&Request::new(kind::FLUSH, 0, 0)).status, 0);
    assert_eq!(failures(&mut clients, kind::IN, 0..64), [0, 0]);
    assert_eq!(counted(&bench), [0, 0]);
    let (_, measures, _) = bench.server.as_ref().unwrap().measure("disk0").unwrap();
    let remedy = measures.figures.image_removed.expect("it is told");
    // Which is true: there it can be copied from.
    let copy = remedy.split(' ').find(|word| word.starts_with("/proc/")).unwrap();
    assert_eq!(std::fs::metadata(copy).unwrap().len(), common::IMAGE_BYTES, "{remedy}");
    let (_, measures, _) = bench.server.as_ref().unwrap().measure("disk1").unwrap();
    assert_eq!((measures.figures.image_removed, measures.figures.failure), (None, None));
}
