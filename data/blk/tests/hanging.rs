//! An image on a file system that answers nothing any more, as over a network whose server has gone: its own guest waits, and nobody else.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says why by panicking")]

mod common;

use common::{Bench, IMAGE_BYTES, PATIENCE, disk};
use minerva_blk::{ImageOptions, Server, ServerError, TransferKind};
use minerva_blocksched::SchedulerName;
use minerva_vhost_client::{Client, ClientOptions, Request, kind};
use std::ffi::CString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use vhost::vhost_user::VhostUserFrontend;

/// Requests of `include/uapi/linux/fuse.h`.
const FORGET: u32 = 2;
const GETATTR: u32 = 3;
const OPEN: u32 = 14;
const READ: u32 = 15;
const RELEASE: u32 = 18;
const INIT: u32 = 26;
const INTERRUPT: u32 = 36;
const REGULAR_FILE: u32 = 0o100_600;

/// A file system of one file in place of another, which answers until it hangs. Dropped, it ends, and whoever waits for it gets an error.
struct Hanging {
    place: CString,
    hangs: Arc<AtomicBool>,
}

impl Hanging {
    fn mount(place: &Path) -> Self {
        let device = File::options().read(true).write(true).open("/dev/fuse").unwrap();
        let place = CString::new(place.as_os_str().as_bytes()).unwrap();
        let options = format!("fd={},rootmode={REGULAR_FILE:o},user_id=0,group_id=0", device.as_raw_fd());
        let (name, kind, options) = (c"minerva-test-hanging", c"fuse", CString::new(options).unwrap());
        // SAFETY: all of them are texts that end, and are there during the call.
        let result = unsafe {
            libc::mount(name.as_ptr(), place.as_ptr(), kind.as_ptr(), libc::MS_NOSUID, options.as_ptr().cast())
        };
        assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
        let hangs = Arc::new(AtomicBool::new(false));
        let answers = Arc::clone(&hangs);
        std::thread::spawn(move || answer_all(device, &answers));
        Self { place, hangs }
    }
}

impl Drop for Hanging {
    fn drop(&mut self) {
        // SAFETY: the path is a text that ends, and is there during the call.
        unsafe { libc::umount2(self.place.as_ptr(), libc::MNT_FORCE | libc::MNT_DETACH) };
    }
}

/// Until it is unmounted.
fn answer_all(mut device: File, hangs: &AtomicBool) {
    let mut request = vec![0; 1 << 20];
    while let Ok(length @ 40..) = device.read(&mut request) {
        let number = |at: usize| u32::from_ne_bytes(request[at..at + 4].try_into().unwrap());
        let kind = number(4);
        if hangs.load(Ordering::Relaxed) || matches!(kind, FORGET | INTERRUPT) {
            continue;
        }
        let answer = match kind {
            INIT => Ok(numbers(&[7, 31, 0, 0, 0, 4096, 1], 64)),
            GETATTR => Ok(attributes()),
            OPEN => Ok(vec![0; 16]),
            READ if length >= 60 => Ok(vec![0; number(56) as usize]),
            RELEASE => Ok(Vec::new()),
            _ => Err(-libc::ENOSYS),
        };
        let (error, bytes) = answer.map_or_else(|error| (error, Vec::new()), |bytes| (0, bytes));
        let head = [&(16 + bytes.len() as u32).to_ne_bytes()[..], &error.to_ne_bytes(), &request[8..16]].concat();
        let _ = device.write_all(&[head, bytes].concat());
    }
}

/// So many bytes, which begin with these.
fn numbers(numbers: &[u32], length: usize) -> Vec<u8> {
    let mut bytes = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect::<Vec<u8>>();
    bytes.resize(length, 0);
    bytes
}

/// Of a file that is as long as an image, valid for no time: who wants to know asks again.
fn attributes() -> Vec<u8> {
    let mut bytes = numbers(&[0, 0, 0, 0, 1], 104);
    bytes[24..32].copy_from_slice(&IMAGE_BYTES.to_ne_bytes());
    bytes[76..80].copy_from_slice(&REGULAR_FILE.to_ne_bytes());
    bytes[80..84].copy_from_slice(&1u32.to_ne_bytes());
    bytes
}

fn can_hang() -> bool {
    let can = rustix::process::geteuid().is_root() && Path::new("/dev/fuse").exists();
    if !can {
        println!("skipped: needs root and /dev/fuse for a file system that hangs");
    }
    can
}

/// What the server says, if it says it in time; it is the bench's again once `hanging` has ended.
fn ask<T: Send + 'static>(
    bench: &mut Bench,
    hanging: Hanging,
    question: impl FnOnce(&mut Server) -> T + Send + 'static,
) -> Option<T> {
    let mut server = bench.server.take().unwrap();
    let (tell, told) = channel();
    let asking = std::thread::spawn(move || {
        let _ = tell.send(question(&mut server));
        server
    });
    let told = told.recv_timeout(PATIENCE);
    drop(hanging);
    bench.server = asking.join().ok();
    told.ok()
}

/// The daemon asks of all disks in each slice, and nobody changes a disk meanwhile.
#[test]
fn how_a_disk_is_doing_is_told_though_its_images_file_system_hangs() {
    if !can_hang() {
        return;
    }
    let folder = Bench::folder();
    let mut first = disk(&folder.path().join("disk0"));
    first.options = ImageOptions { is_read_only: false, is_direct: false };
    let hanging = Hanging::mount(&first.image);
    let mut bench = Bench::start(folder, SchedulerName::Noop, 8, TransferKind::Uring, vec![first]);
    hanging.hangs.store(true, Ordering::Relaxed);
    let told = ask(&mut bench, hanging, |server| {
        let told = server.measure("disk0").map(|(_, measures, length)| (length, measures.figures.image_removed));
        (told, server.grow("disk0", Some(2 * IMAGE_BYTES)).is_some_and(|grown| grown.is_err()))
    });
    assert_eq!(told.expect("it waits for the file system"), (Some((IMAGE_BYTES, None)), true));
}

/// With a request of its guest under way: the guest waits, and nobody else, be it a guest or who asks, sets and removes.
#[test]
fn a_guest_whose_images_file_system_hangs_waits_alone() {
    if !can_hang() {
        return;
    }
    let folder = Bench::folder();
    let mut disks: Vec<_> = (0..2).map(|number| disk(&folder.path().join(format!("disk{number}")))).collect();
    disks[0].options = ImageOptions { is_read_only: false, is_direct: false };
    let hanging = Hanging::mount(&disks[0].image);
    let mut bench = Bench::start(folder, SchedulerName::Noop, 8, TransferKind::Uring, disks);
    let [mut waiting, mut neighbour] =
        [0, 1].map(|number| Client::connect(&bench.socket(number), ClientOptions::default()));
    hanging.hangs.store(true, Ordering::Relaxed);
    // Behind what the kernel has read of it already.
    for (sector, what) in [(8192, kind::IN), (8200, kind::OUT)] {
        waiting.rings[0].submit(&Request::new(what, sector, 4096));
    }
    waiting.rings[0].kick();
    let told = ask(&mut bench, hanging, move |server| {
        let begun = Instant::now();
        while server.measure("disk0").is_some_and(|(_, measures, _)| measures.under_way < 2) {
            assert!(begun.elapsed() < PATIENCE, "the guest's requests are not taken");
            std::thread::sleep(Duration::from_millis(1));
        }
        let ring = &mut neighbour.rings[0];
        ring.submit(&Request::new(kind::IN, 0, 4096));
        ring.kick();
        let status = ring.wait(PATIENCE).map(|answer| answer.status);
        let terms = common::terms(Default::default(), None);
        let set = (server.set_terms("disk0", terms), server.remove("disk0"), server.measure("disk0").is_none());
        // Its worker would end only with what the removed disk has under way, and all guests would wait for that.
        (status, set, matches!(server.park(PATIENCE), Err(ServerError::Leaving { .. })))
    });
    assert_eq!(told, Some((Some(0), (true, true, true), true)));
}

/// With more flushes under way than the kernel has threads for, of which it has four a processor unless it is told otherwise.
#[test]
fn a_guest_whose_images_file_system_hangs_leaves_its_neighbours_what_is_left_of_the_depth() {
    if !can_hang() {
        return;
    }
    let folder = Bench::folder();
    let mut disks: Vec<_> = (0..2).map(|number| disk(&folder.path().join(format!("disk{number}")))).collect();
    disks[0].options = ImageOptions { is_read_only: false, is_direct: false };
    let hanging = Hanging::mount(&disks[0].image);
    let workers = 4 * std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let depth = u32::try_from(workers + 16).unwrap();
    let mut bench = Bench::start(folder, SchedulerName::Noop, depth, TransferKind::Uring, disks);
    let [mut waiting, mut neighbour] =
        [0, 1].map(|number| Client::connect(&bench.socket(number), ClientOptions::default()));
    hanging.hangs.store(true, Ordering::Relaxed);
    let hung = (workers + 1).min(waiting.rings[0].free_slots());
    for _ in 0..hung {
        waiting.rings[0].submit(&Request::new(kind::FLUSH, 0, 0));
    }
    waiting.rings[0].kick();
    let told = ask(&mut bench, hanging, move |server| {
        let begun = Instant::now();
        while server.measure("disk0").is_some_and(|(_, measures, _)| (measures.under_way as usize) < hung) {
            assert!(begun.elapsed() < PATIENCE, "the guest's requests are not taken");
            std::thread::sleep(Duration::from_millis(1));
        }
        let ring = &mut neighbour.rings[0];
        [Request::new(kind::OUT, 0, 4096), Request::new(kind::FLUSH, 0, 0)].map(|request| {
            ring.submit(&request);
            ring.kick();
            ring.wait(PATIENCE / 4).map(|answer| answer.status)
        })
    });
    assert_eq!(told, Some([Some(0); 2]));
}

/// Whoever closes its file waits.
#[test]
fn a_front_end_that_gives_a_file_that_hangs_for_a_channel_holds_up_its_own_disk_only() {
    if !can_hang() {
        return;
    }
    let folder = Bench::folder();
    let place = folder.path().join("file");
    let disks = (0..2).map(|number| disk(&folder.path().join(format!("disk{number}")))).collect();
    std::fs::write(&place, "").unwrap();
    let hanging = Hanging::mount(&place);
    let file = File::open(&place).unwrap();
    let mut bench = Bench::start(folder, SchedulerName::Noop, 8, TransferKind::Uring, disks);
    let [mut client, mut neighbour] = [0, 1].map(|number| {
        Client::connect(&bench.socket(number), ClientOptions { has_channel: true, ..ClientOptions::default() })
    });
    hanging.hangs.store(true, Ordering::Relaxed);
    client.frontend().set_hdr_flags(vhost::vhost_user::message::VhostUserHeaderFlag::empty());
    for _ in 0..2 {
        // The second one may find it hung up already.
        let _ = client.frontend().set_backend_request_fd(&file.as_raw_fd());
    }
    let told = ask(&mut bench, hanging, move |server| {
        let begun = Instant::now();
        while server.hang_up("disk0").is_none() && begun.elapsed() < Duration::from_millis(500) {
            std::thread::sleep(Duration::from_millis(1));
        }
        (server.front_end("disk1").is_some(), neighbour.rings[0].ask(&Request::new(kind::IN, 0, 4096)).status)
    });
    drop(file);
    assert_eq!(told, Some((true, 0)), "it waits for the file system");
}
