//! An image on a file system that answers nothing any more, as over a network whose server has gone: its own guest waits, and nobody else.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says why by panicking")]

mod common;
#[path = "common/hanging.rs"]
mod storage;

use common::{Bench, IMAGE_BYTES, PATIENCE, disk};
use minerva_blk::{ImageOptions, Server, ServerError, TransferKind};
use minerva_blocksched::{BuildOptions, Contract, Promise, SchedulerName};
use minerva_model::Nanos;
use minerva_vhost_client::{Client, ClientOptions, Request, kind};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use storage::{Hanging, can_hang};
use vhost::vhost_user::VhostUserFrontend;
use vm_memory::Bytes;

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
    let hanging = Hanging::mount(&first.image, IMAGE_BYTES);
    let mut bench = Bench::start(folder, SchedulerName::Noop, 8, TransferKind::Uring, vec![first]);
    hanging.hang();
    let told = ask(&mut bench, hanging, |server| {
        let told = server.measure("disk0").map(|(_, measures, length)| (length, measures.figures.image_removed));
        (told, server.grow("disk0", Some(2 * IMAGE_BYTES)).is_some_and(|grown| grown.is_err()))
    });
    assert_eq!(told.expect("it waits for the file system"), (Some((IMAGE_BYTES, None)), true));
}

/// With a request of its guest under way: the guest waits, and nobody else, be it a guest or who asks, sets and removes.
#[test]
fn a_guest_whose_images_file_system_hangs_waits_alone() {
    wait_beside_one_that_hangs(SchedulerName::Noop);
}

/// Each of these keeps the disk idle for a guest whose last read is under way. The other one weighs more.
#[test]
fn who_shares_a_scheduler_that_waits_for_a_guest_does_not_wait_for_one_whose_images_file_system_hangs() {
    for name in [SchedulerName::Bfq, SchedulerName::Cfq, SchedulerName::Htbs, SchedulerName::Tag] {
        wait_beside_one_that_hangs(name);
    }
}

fn wait_beside_one_that_hangs(name: SchedulerName) {
    if !can_hang() {
        return;
    }
    let folder = Bench::folder();
    let mut disks: Vec<_> = (0..2).map(|number| disk(&folder.path().join(format!("disk{number}")))).collect();
    disks[0].options = ImageOptions { is_read_only: false, is_direct: false };
    let contract = Contract { rate_per_second: 1e4, burst: 1e4, delay: Nanos::from_millis(100) };
    disks[0].parameters.contract = name.keeps(Promise::Contract).then_some(contract);
    disks[1].parameters.weight = 300;
    let hanging = Hanging::mount(&disks[0].image, IMAGE_BYTES);
    // Tag has two at the disk by itself, and as many hang.
    let build = BuildOptions::for_disk(false, 8);
    let physical = common::physical(&format!("hanging-{name}"), name, build, TransferKind::Uring);
    let mut bench = Bench::start_on(folder, physical, disks);
    let [mut waiting, mut neighbour] =
        [0, 1].map(|number| Client::connect(&bench.socket(number), ClientOptions::default()));
    hanging.hang();
    // Behind what the kernel has read of it already.
    for (sector, what) in [(8192, kind::OUT), (8200, kind::IN)] {
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
        // As many as that it is owed no more than the other one.
        let served = (0..256u64).take_while(|number| {
            ring.submit(&Request::new(kind::IN, 8 * number, 4096));
            ring.kick();
            ring.wait(PATIENCE / 4).is_some_and(|answer| answer.status == 0)
        });
        let served = served.count();
        let terms = common::terms(Default::default(), None);
        let set = (server.set_terms("disk0", terms), server.remove("disk0"), server.measure("disk0").is_none());
        // Its worker would end only with what the removed disk has under way, and all guests would wait for that.
        (served, set, matches!(server.park(PATIENCE), Err(ServerError::Leaving { .. })))
    });
    assert_eq!(told, Some((256, (true, true, true), true)), "{name}");
}

/// Processors of this host, also those that this process may not use: the kernel counts all of them.
fn processors_online() -> usize {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    let count = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        last.parse::<usize>().unwrap() + 1 - first.parse::<usize>().unwrap()
    };
    text.trim().split(',').map(count).sum()
}

/// With more under way of what keeps one of the kernel's threads until it is done than there are, which is four a processor unless the kernel is
/// told otherwise. Of flushes one does, as they share it.
#[test]
fn a_guest_whose_images_file_system_hangs_leaves_its_neighbours_what_is_left_of_the_depth() {
    if !can_hang() {
        return;
    }
    let workers = 4 * processors_online();
    let queue_size = u16::try_from((workers + 1).next_power_of_two()).unwrap();
    if queue_size > 1024 {
        println!("skipped: no ring is as long as to hold a request for each of {workers} threads");
        return;
    }
    let folder = Bench::folder();
    let mut disks: Vec<_> = (0..2).map(|number| disk(&folder.path().join(format!("disk{number}")))).collect();
    disks[0].options = ImageOptions { is_read_only: false, is_direct: false };
    let hanging = Hanging::mount(&disks[0].image, IMAGE_BYTES);
    let depth = u32::try_from(workers + 16).unwrap();
    let mut bench = Bench::start(folder, SchedulerName::Noop, depth, TransferKind::Uring, disks);
    let [mut waiting, mut neighbour] = [0, 1]
        .map(|number| Client::connect(&bench.socket(number), ClientOptions { queue_size, ..ClientOptions::default() }));
    hanging.hang();
    let hung = workers + 1;
    assert!(waiting.rings[0].free_slots() >= hung);
    for _ in 0..hung {
        let range = [&0u64.to_le_bytes()[..], &8u32.to_le_bytes(), &[0; 4]].concat();
        let data = waiting.rings[0].data(waiting.rings[0].next_slot().unwrap());
        waiting.memory().write_slice(&range, data).unwrap();
        waiting.rings[0].submit(&Request::new(kind::WRITE_ZEROES, 0, range.len() as u32));
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
    let hanging = Hanging::mount(&place, IMAGE_BYTES);
    let file = File::open(&place).unwrap();
    let mut bench = Bench::start(folder, SchedulerName::Noop, 8, TransferKind::Uring, disks);
    let [mut client, mut neighbour] = [0, 1].map(|number| {
        Client::connect(&bench.socket(number), ClientOptions { has_channel: true, ..ClientOptions::default() })
    });
    hanging.hang();
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
