//! What a front end that connects again neither says nor asks again: whether its guest turned its write cache off, and sends no flushes any
//! more, and how long the disk is.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says why by panicking")]

mod common;

use common::{Bench, IMAGE_BYTES, PATIENCE, disk};
use minerva_blk::TransferKind;
use minerva_blocksched::SchedulerName;
use minerva_vhost_client::{Client, ClientOptions, Request, kind};
use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;
use vhost::VhostBackend;

/// Where the configuration space says whether the guest has a write-back cache.
const AT_WRITEBACK: usize = 32;
/// `cachestat(2)`, of Linux 6.5, which has the same number everywhere.
const CACHESTAT: libc::c_long = 451;

/// A server whose writes go through the page cache, where they can be seen.
fn start(folder: tempfile::TempDir) -> Bench {
    let mut disk = disk(&folder.path().join("disk0"));
    disk.options.is_direct = false;
    Bench::start(folder, SchedulerName::Noop, 8, TransferKind::Uring, vec![disk])
}

/// The next server after a crash: it knows nothing but the image.
fn start_again(mut bench: Bench) -> Bench {
    bench.server.take().unwrap().stop();
    start(std::mem::replace(&mut bench.folder, Bench::folder()))
}

/// Pages of the image that are not on the disk yet; none where the kernel does not say.
fn volatile_pages(bench: &Bench) -> Option<u64> {
    let image = File::open(bench.image()).unwrap();
    // From its start to its end.
    let range = [0u64; 2];
    // Cached, dirty, being written, and two of pages that were evicted.
    let mut pages = [0u64; 5];
    // SAFETY: the kernel reads the two numbers of the range and writes the five of the answer.
    let done = unsafe { libc::syscall(CACHESTAT, image.as_raw_fd(), range.as_ptr(), pages.as_mut_ptr(), 0) };
    (done == 0).then_some(pages[1] + pages[2])
}

/// Writes, and judges whether that is on the disk, and what the server says of the guest's cache.
fn judge_durable(bench: &Bench, client: &mut Client, what: &str) {
    assert_eq!(client.rings[0].ask(&Request::new(kind::OUT, 0, 128 << 10)).status, 0);
    match volatile_pages(bench) {
        Some(pages) => assert_eq!(pages, 0, "{what}: an answered write is in memory only"),
        None => println!("{what}: this kernel does not say what is in memory only"),
    }
    assert_eq!(client.config(60)[AT_WRITEBACK], 0, "{what}");
}

#[test]
fn a_guest_that_turned_its_write_cache_off_has_each_write_durable_also_from_the_next_server() {
    for has_inflight in [true, false] {
        let mut bench = start(Bench::folder());
        let mut client = Client::connect(&bench.socket(0), ClientOptions { has_inflight, ..ClientOptions::default() });
        assert_eq!(client.config(60)[AT_WRITEBACK], 1);
        client.set_config(AT_WRITEBACK as u32, 0);
        judge_durable(&bench, &mut client, "before");
        for what in ["once", "twice"] {
            bench = start_again(bench);
            client.reconnect(&bench.socket(0));
            judge_durable(&bench, &mut client, what);
        }
        // Over a connection to the same server as well.
        client.reconnect(&bench.socket(0));
        judge_durable(&bench, &mut client, "hung up on");
        bench.hand_over(SchedulerName::Noop);
        judge_durable(&bench, &mut client, "handed over");
    }
}

#[test]
fn a_guest_keeps_its_write_back_cache_where_the_front_end_keeps_what_was_agreed() {
    let mut bench = start(Bench::folder());
    let mut client = Client::connect(&bench.socket(0), ClientOptions::default());
    for turns in [&[][..], &[0, 1]] {
        for turn in turns {
            client.set_config(AT_WRITEBACK as u32, *turn);
        }
        bench = start_again(bench);
        client.reconnect(&bench.socket(0));
        assert_eq!(client.config(60)[AT_WRITEBACK], 1, "after {turns:?}");
    }
}

/// Without a region nobody knows whether its guest has turned the cache off; it may be told again.
#[test]
fn a_front_end_that_keeps_nothing_has_each_write_durable_until_it_says_otherwise() {
    let mut bench = start(Bench::folder());
    let options = ClientOptions { has_inflight: false, ..ClientOptions::default() };
    let mut client = Client::connect(&bench.socket(0), options);
    bench = start_again(bench);
    client.reconnect(&bench.socket(0));
    judge_durable(&bench, &mut client, "nothing is known");
    client.set_config(AT_WRITEBACK as u32, 1);
    assert_eq!(client.config(60)[AT_WRITEBACK], 1);
}

/// What there is to be told is told before the next message is answered.
fn is_told_of_a_change(client: &mut Client) -> bool {
    client.frontend().get_features().unwrap();
    client.wait_for_change(Duration::from_millis(1))
}

/// Hangs up, and waits until the server has noticed.
fn hang_up(bench: &Bench, client: &mut Client) {
    let connection = client.frontend().as_raw_fd();
    // SAFETY: the connection is open as long as `client` is.
    let connection = unsafe { BorrowedFd::borrow_raw(connection) };
    rustix::net::shutdown(connection, rustix::net::Shutdown::Both).unwrap();
    let begun = std::time::Instant::now();
    while bench.server.as_ref().unwrap().front_end("disk0").is_some() {
        assert!(begun.elapsed() < PATIENCE, "the server notices no end");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_front_end_that_did_not_hear_that_its_disk_grew_is_told_once_its_guest_is_served() {
    let mut bench = Bench::one(3);
    let options = ClientOptions { has_channel: true, ..ClientOptions::default() };
    let mut client = Client::connect(&bench.socket(0), options);
    assert!(!is_told_of_a_change(&mut client), "it has just read how long it is");
    bench.hand_over(SchedulerName::Noop);
    assert!(!is_told_of_a_change(&mut client), "it has read that over the same connection");
    let grow = |times: u64| {
        let grown = bench.server.as_ref().unwrap().grow("disk0", Some(times * IMAGE_BYTES));
        assert_eq!(grown.unwrap().unwrap(), times * IMAGE_BYTES);
    };
    // QEMU passes over what it is told while its guest is not served.
    let base = client.stop_ring(0);
    grow(2);
    assert!(client.wait_for_change(PATIENCE), "at once");
    client.start_ring(0, base);
    assert!(client.wait_for_change(PATIENCE), "and once its guest is served");
    assert_eq!(client.config(8), (2 * IMAGE_BYTES / 512).to_le_bytes());
    hang_up(&bench, &mut client);
    grow(3);
    client.reconnect(&bench.socket(0));
    assert!(client.wait_for_change(PATIENCE), "when it has come back");
    assert_eq!(client.config(8), (3 * IMAGE_BYTES / 512).to_le_bytes());
    assert!(!is_told_of_a_change(&mut client), "once");
}
