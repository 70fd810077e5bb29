//! What is told of disks: times, priorities, contracts, who had the time; and that telling it costs no allocation for a request.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says why by panicking")]

mod common;

use common::{Bench, TestDisk, disk};
use minerva_blk::tag::Priority;
use minerva_blk::{ContractTerms, TransferKind};
use minerva_blocksched::SchedulerName;
use minerva_model::{DiskFigures, Nanos};
use minerva_vhost_client::{Client, ClientOptions, Request, kind};
use rustix::thread::gettid;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

/// Allocations of one thread are counted: the worker's.
struct Counting;

static COUNTED: AtomicI32 = AtomicI32::new(0);
static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator with the arguments as they came; counting touches no memory of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let counted = COUNTED.load(Ordering::Relaxed);
        if counted != 0 && gettid().as_raw_nonzero().get() == counted {
            ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the caller's promise on `layout` is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `alloc` above, that is from the system's allocator, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const TAGS: [u8; 3] = [12, 100, 200];

fn figures(bench: &Bench, name: &str) -> DiskFigures {
    bench.server.as_ref().unwrap().measure(name).unwrap().1.figures
}

/// So many reads, with each priority in turn, sixteen under way.
fn read(client: &mut Client, count: usize) {
    let ring = &mut client.rings[0];
    let mut sent = 0;
    for _ in 0..count {
        while sent < count && ring.under_way() < 16 {
            let ioprio = Priority::encode(1, TAGS[sent % TAGS.len()]).unwrap();
            ring.submit(&Request {
                ioprio: u32::from(ioprio),
                ..Request::new(kind::IN, (sent % 1024) as u64 * 8, 4096)
            });
            sent += 1;
        }
        ring.kick();
        assert_eq!(ring.wait(std::time::Duration::from_secs(60)).expect("an answer").status, 0);
    }
}

fn promised(bytes_per_second: u64, delay: Nanos) -> Option<ContractTerms> {
    Some(ContractTerms { bytes_per_second, burst_bytes: 1 << 20, delay: Some(delay) })
}

#[test]
fn priorities_times_and_contracts_are_told_and_no_request_allocates() {
    let folder = Bench::folder();
    let [zero, one] = [0, 1].map(|number| disk(&folder.path().join(format!("disk{number}"))));
    let disks = vec![
        TestDisk { contract: promised(1 << 40, Nanos::from_secs(3600)), ..zero },
        TestDisk { contract: promised(1 << 40, Nanos(1)), ..one },
    ];
    let bench = Bench::start(folder, SchedulerName::Tag, 8, TransferKind::Uring, disks);
    let mut clients = [0, 1].map(|number| Client::connect(&bench.socket(number), ClientOptions::default()));
    clients.iter_mut().for_each(|client| read(client, 300));
    let worker = std::fs::read_dir("/proc/self/task").unwrap().find_map(|task| {
        let task = task.ok()?;
        let name = std::fs::read_to_string(task.path().join("comm")).ok()?;
        (name.trim() == bench.worker).then(|| task.file_name().to_str()?.parse::<i32>().ok())?
    });
    COUNTED.store(worker.expect("the worker's thread"), Ordering::Relaxed);
    clients.iter_mut().for_each(|client| read(client, 600));
    COUNTED.store(0, Ordering::Relaxed);
    assert_eq!(ALLOCATIONS.load(Ordering::Relaxed), 0, "allocations in 1200 requests");
    let [kept, missed] = ["disk0", "disk1"].map(|name| figures(&bench, name));
    assert_eq!(kept.tags_seen, TAGS);
    for tag in &kept.tags {
        assert_eq!((tag.ops, tag.given_ops, tag.bytes, tag.under_way), (300, 300, 300 * 4096, 0));
    }
    assert!(kept.recent.ops <= 900 && kept.recent.median <= kept.recent.p99 && kept.device_time > Nanos::ZERO);
    let contract = kept.contract.unwrap();
    assert!(contract.is_kept() && contract.requests == 900, "{contract:?}");
    let contract = missed.contract.unwrap();
    assert!(
        contract.late == 900 && contract.late_max > Nanos::ZERO,
        "no disk answers within a nanosecond: {contract:?}"
    );
}
