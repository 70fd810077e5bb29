//! How much of the disk one guest can have at once: long requests go to it in parts, zeroes are writes, and a disk that is being stopped
//! goes past the scheduler with a few requests at a time.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says why by panicking")]

mod common;

use common::{Bench, IMAGE_BYTES, TestDisk, disk, physical, terms};
use minerva_blk::request::{PART_BYTES_MAX, REQUEST_BYTES_MAX};
use minerva_blk::{PhysicalDisk, RequestLog, TransferKind};
use minerva_blocksched::{BuildOptions, FlowParameters, SchedulerName};
use minerva_vhost_client::{Client, ClientOptions, ClientRing, Request, kind};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;
use vm_memory::{Address, Bytes};

const PATIENCE: Duration = Duration::from_secs(60);
const PART: u64 = PART_BYTES_MAX as u64;
const OPTIONS: ClientOptions = ClientOptions {
    queues: 1,
    queue_size: 4,
    is_indirect: true,
    has_event_index: true,
    has_inflight: true,
    has_channel: false,
    data_bytes: 8 << 20,
    without: 0,
};

/// A ring of many short requests.
const SMALL: ClientOptions = ClientOptions { queue_size: 64, data_bytes: 4096, ..OPTIONS };
/// One request a day.
const A_DAY: f64 = 1.0 / 86_400.0;

fn content(seed: u64, length: usize) -> Vec<u8> {
    (0..length as u64 / 8).flat_map(|word| (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seed).to_le_bytes()).collect()
}

#[test]
fn a_long_request_is_done_whole_by_both_ways_to_the_disk_and_wherever_its_pieces_lie() {
    for (transfer, is_direct) in
        [(TransferKind::Uring, true), (TransferKind::Uring, false), (TransferKind::Threads, true)]
    {
        let folder = Bench::folder();
        let mut disk = disk(&folder.path().join("disk0"));
        disk.options.is_direct &= is_direct;
        let bench = Bench::start(folder, SchedulerName::Sfq, 4, transfer, vec![disk]);
        let mut client = Client::connect(&bench.socket(0), OPTIONS);
        let file = std::fs::File::open(bench.image()).unwrap();
        for (seed, sector, length, skip, pieces) in [
            (1, 0, REQUEST_BYTES_MAX as u32, 0, 1),
            (2, 3, 5 << 20, 0, 126),
            (3, 1, 2 * PART as u32 + 512, 512, 7),
            (4, 9, 3 << 20, 1, 5),
        ] {
            let length = length.min(IMAGE_BYTES as u32 - sector as u32 * 512);
            let bytes = content(seed, length as usize);
            let request = Request { skip, pieces, ..Request::new(kind::OUT, sector, length) };
            let at = |client: &Client| {
                let data = client.rings[0].data(client.rings[0].next_slot().unwrap());
                data.unchecked_add(u64::from(skip))
            };
            client.memory().write_slice(&bytes, at(&client)).unwrap();
            let answer = client.rings[0].ask(&request);
            assert_eq!((answer.status, answer.written), (0, 1), "{request:?}");
            let mut stored = vec![0; bytes.len()];
            file.read_exact_at(&mut stored, sector * 512).unwrap();
            assert!(stored == bytes, "{request:?}: what is in the image");
            let place = at(&client);
            client.memory().write_slice(&vec![0xEE; bytes.len()], place).unwrap();
            let answer = client.rings[0].ask(&Request { kind: kind::IN, ..request });
            assert_eq!((answer.status, answer.written), (0, length + 1), "{request:?}");
            client.memory().read_slice(&mut stored, place).unwrap();
            assert!(stored == bytes, "{request:?}: what is read");
        }
    }
}

/// A request of this kind, to zero or to forget, about so many bytes from a sector on; it is made and not yet told of.
fn submit_range(client: &mut Client, kind: u32, sector: u64, bytes: u64, flags: u32) {
    let range = [&sector.to_le_bytes()[..], &((bytes / 512) as u32).to_le_bytes(), &flags.to_le_bytes()].concat();
    let slot = client.rings[0].next_slot().unwrap();
    client.memory().write_slice(&range, client.rings[0].data(slot)).unwrap();
    client.rings[0].submit(&Request::new(kind, 0, 16));
}

/// Zeroes of so many bytes from a sector on; the status.
fn zero(client: &mut Client, sector: u64, bytes: u64, flags: u32) -> u8 {
    submit_range(client, kind::WRITE_ZEROES, sector, bytes, flags);
    client.rings[0].kick();
    client.rings[0].wait(PATIENCE).expect("an answer").status
}

#[test]
fn zeroes_count_as_what_they_write_and_a_guest_without_flushes_has_them_durable() {
    // Without flushes, and with them.
    for without in [1 << 9, 0] {
        let bench = Bench::one(1);
        std::fs::write(bench.image(), vec![0x77; IMAGE_BYTES as usize]).unwrap();
        let mut client = Client::connect(&bench.socket(0), ClientOptions { without, ..OPTIONS });
        let (first, length) = (4096, 5 * PART / 2);
        for flags in [0, 1] {
            assert_eq!(zero(&mut client, first / 512, length, flags), 0);
        }
        let bytes = std::fs::read(bench.image()).unwrap();
        let is_right = |(at, byte): (u64, &u8)| *byte == if (first..first + length).contains(&at) { 0 } else { 0x77 };
        assert!((0..).zip(&bytes).all(is_right), "the range and no more");
        let server = bench.server.as_ref().unwrap();
        let counters = server.counters().next().unwrap();
        let of = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        assert_eq!((of(&counters.writes), of(&counters.write_bytes), of(&counters.others)), (2, 2 * length, 0));
    }
}

/// When each request of a log was sent and done, in the order in which they were sent.
fn times(log: &Path) -> Vec<(u64, u64)> {
    let text = std::fs::read_to_string(log).unwrap();
    let mut times: Vec<(u64, u64)> = text
        .lines()
        .skip(1)
        .map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            (fields[7].parse().unwrap(), fields[8].parse().unwrap())
        })
        .collect();
    times.sort_unstable();
    times
}

/// Otherwise the server would take memory for all of them at once, the disk would have no room for others, and no order would hold.
#[test]
fn a_disk_that_is_being_stopped_has_few_requests_at_the_disk_at_once() {
    let folder = Bench::folder();
    let mut disk = disk(&folder.path().join("disk0"));
    disk.parameters.limit_per_second = A_DAY;
    let log = folder.path().join("log");
    let build = BuildOptions::for_disk(false, 4);
    let physical = PhysicalDisk {
        request_log: Some(RequestLog::create(&log).unwrap()),
        ..physical("drained", SchedulerName::Mclock, build, TransferKind::Uring)
    };
    let mut bench = Bench::start_on(folder, physical, vec![disk]);
    let mut client = Client::connect(&bench.socket(0), ClientOptions { data_bytes: 64 << 10, ..SMALL });
    for number in 0..64u64 {
        client.rings[0].submit(&Request::new(kind::IN, number * 128, 64 << 10));
    }
    client.rings[0].kick();
    assert_eq!(client.rings[0].wait(PATIENCE).expect("the first is within the limit").status, 0);
    assert_eq!(client.stop_ring(0), 64);
    let answered =
        1 + std::iter::from_fn(|| client.rings[0].poll()).inspect(|answer| assert_eq!(answer.status, 0)).count();
    assert_eq!(answered, 64, "before the stop was");
    bench.server.take().unwrap().stop();
    let times = times(&log);
    assert_eq!(times.len(), 64);
    // One beside the first, which the limit allows.
    let together = |(sent, _): &(u64, u64)| times.iter().filter(|(other, done)| other <= sent && done > sent).count();
    let most = times.iter().map(together).max().unwrap();
    assert!(most <= 2, "{most} at once: {times:?}");
}

/// A disk with so many rings that may have one request a day, under mClock.
fn limited(queues: u16) -> Bench {
    let folder = Bench::folder();
    let mut disk = TestDisk { queues, ..disk(&folder.path().join("disk0")) };
    disk.parameters.limit_per_second = A_DAY;
    Bench::start(folder, SchedulerName::Mclock, 4, TransferKind::Uring, vec![disk])
}

fn limit(bench: &Bench, per_second: f64) {
    let parameters = FlowParameters { limit_per_second: per_second, ..FlowParameters::default() };
    assert!(bench.server.as_ref().unwrap().set_terms("disk0", terms(parameters, None)));
}

/// Fills a ring with reads, and tells of them.
fn fill(ring: &mut ClientRing) {
    while ring.free_slots() > 0 {
        ring.submit(&Request::new(kind::IN, 0, 4096));
    }
    ring.kick();
}

/// Stops a ring and hears all answers; up to where its requests were taken.
fn stop(client: &mut Client, queue: usize) -> u16 {
    let base = client.stop_ring(queue);
    while client.rings[queue].poll().is_some() {}
    base
}

/// Otherwise no limit, weight or contract of anybody would hold against a guest that does nothing else.
#[test]
fn a_guest_that_stops_its_disk_again_and_again_has_to_earn_what_goes_past_the_scheduler() {
    let bench = limited(1);
    let mut client = Client::connect(&bench.socket(0), SMALL);
    let mut bases = vec![0];
    for round in 0..4 {
        fill(&mut client.rings[0]);
        if round == 0 {
            assert_eq!(client.rings[0].wait(PATIENCE).expect("the first is within the limit").status, 0);
        }
        let base = stop(&mut client, 0);
        bases.push(base);
        client.start_ring(0, base);
    }
    let taken: Vec<u16> = bases.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // All at first, and then few, though the ring is full each time.
    assert!(taken[0] == 64 && taken[1..].iter().all(|taken| *taken <= 8), "{taken:?}");
}

/// Otherwise a front end would wait a second for each of its rings, and more would go past the scheduler with each.
#[test]
fn a_disk_that_has_to_earn_is_stopped_as_a_whole() {
    let queues = 4;
    let bench = limited(queues as u16);
    let mut client = Client::connect(&bench.socket(0), ClientOptions { queues: queues as u16, ..SMALL });
    client.rings.iter_mut().for_each(fill);
    let bases: Vec<u16> = (0..queues).map(|queue| stop(&mut client, queue)).collect();
    // Each has more than may be taken of all of them.
    client.rings.iter_mut().for_each(fill);
    (0..queues).for_each(|queue| client.start_ring(queue, bases[queue]));
    let stopped: Vec<u16> = (0..queues).map(|queue| stop(&mut client, queue)).collect();
    let taken: Vec<u16> = stopped.iter().zip(&bases).map(|(now, before)| now - before).collect();
    assert!(taken.iter().sum::<u16>() <= 8, "{taken:?}");
    // Where it stops one of them only, the others are served on after a while.
    (0..queues).for_each(|queue| client.start_ring(queue, stopped[queue]));
    stop(&mut client, 0);
    limit(&bench, f64::INFINITY);
    while client.rings[1].under_way() > 0 {
        assert_eq!(client.rings[1].wait(PATIENCE).expect("it is served").status, 0);
    }
}

/// The disk moves nothing for it, however long it says that it is.
#[test]
fn a_discard_earns_no_more_than_the_shortest_request() {
    let bench = limited(1);
    let mut client = Client::connect(&bench.socket(0), SMALL);
    fill(&mut client.rings[0]);
    assert_eq!(client.rings[0].wait(PATIENCE).expect("the first is within the limit").status, 0);
    let base = stop(&mut client, 0);
    assert_eq!(base, 64);
    client.start_ring(0, base);
    // In turn, as long as nothing is limited.
    limit(&bench, f64::INFINITY);
    submit_range(&mut client, kind::DISCARD, 0, IMAGE_BYTES, 0);
    client.rings[0].kick();
    assert_eq!(client.rings[0].wait(PATIENCE).expect("a discard in turn").status, 0);
    limit(&bench, A_DAY);
    fill(&mut client.rings[0]);
    let taken = stop(&mut client, 0) - base - 1;
    // One is in turn once more.
    assert!(taken <= 9, "{taken} were taken of who has to earn yet");
}
