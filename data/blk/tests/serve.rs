//! What a well-behaved guest relies on, by a real front end, real rings and real files: content is judged, not only answers.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says why by panicking")]

mod common;

use common::{Bench, IMAGE_BYTES, disk};
use minerva_blk::{ImageOptions, TransferKind};
use minerva_blocksched::SchedulerName;
use minerva_vhost_client::{Client, ClientOptions, Request, kind};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::{Duration, Instant};
use vm_memory::Bytes;

const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes that no other place or time has.
fn pattern(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..length.div_ceil(8)).flat_map(|_| next()).take(length).collect()
}

/// Writes through the ring, and waits.
fn write(client: &mut Client, queue: usize, request: Request, bytes: &[u8]) {
    let slot = client.rings[queue].next_slot().unwrap();
    let at = vm_memory::Address::unchecked_add(&client.rings[queue].data(slot), u64::from(request.skip));
    client.memory().write_slice(bytes, at).unwrap();
    let answer = client.rings[queue].ask(&request);
    assert_eq!((answer.status, answer.written), (0, 1), "{request:?}");
}

/// Reads through the ring.
fn read(client: &mut Client, queue: usize, request: Request) -> Vec<u8> {
    let slot = client.rings[queue].next_slot().unwrap();
    let at = vm_memory::Address::unchecked_add(&client.rings[queue].data(slot), u64::from(request.skip));
    client.memory().write_slice(&vec![0xEE; request.length as usize], at).unwrap();
    let answer = client.rings[queue].ask(&request);
    assert_eq!((answer.status, answer.written), (0, request.length + 1), "{request:?}");
    let mut bytes = vec![0; request.length as usize];
    client.memory().read_slice(&mut bytes, at).unwrap();
    bytes
}

/// Every way in which data can lie, by both ways to the disk.
#[test]
fn what_is_written_is_in_the_image_and_is_read_back() {
    for (transfer, is_direct, is_indirect, has_event_index) in [
        (TransferKind::Uring, true, true, true),
        (TransferKind::Uring, true, false, false),
        (TransferKind::Uring, false, true, true),
        (TransferKind::Threads, true, true, true),
        (TransferKind::Threads, false, false, true),
    ] {
        let folder = Bench::folder();
        let mut disk = disk(&folder.path().join("disk0"));
        disk.options.is_direct &= is_direct;
        let bench = Bench::start(folder, SchedulerName::Noop, 32, transfer, vec![disk]);
        let options = ClientOptions { is_indirect, has_event_index, ..ClientOptions::default() };
        let mut client = Client::connect(&bench.socket(0), options);
        let file = std::fs::File::open(bench.image()).unwrap();
        let mut cases = vec![(0, 512, 0, 1), (1, 4096, 0, 1), (8, 131_072, 0, 1), (300, 512, 256, 1), (9, 8192, 3, 1)];
        if is_indirect {
            // In many pieces, of which none is where direct I/O could reach it.
            cases.extend([(700, 65_536, 0, 16), (1000, 65_536, 512, 7), (2000, 4096, 1, 64)]);
        }
        for (number, (sector, length, skip, pieces)) in cases.into_iter().enumerate() {
            let bytes = pattern(number as u64 + 1, length as usize);
            let request = Request { skip, pieces, ..Request::new(kind::OUT, sector, length) };
            write(&mut client, 0, request, &bytes);
            let mut stored = vec![0; bytes.len()];
            file.read_exact_at(&mut stored, sector * 512).unwrap();
            assert!(stored == bytes, "{request:?}: what is in the image");
            let request = Request { kind: kind::IN, ..request };
            assert!(read(&mut client, 0, request) == bytes, "{request:?}: what is read");
        }
    }
}

#[test]
fn many_requests_of_many_rings_are_each_answered_once_with_their_own_data() {
    let bench = Bench::one(4);
    let options = ClientOptions { queues: 4, queue_size: 64, data_bytes: 4096, ..ClientOptions::default() };
    let mut client = Client::connect(&bench.socket(0), options);
    let blocks = IMAGE_BYTES / 4096;
    let content: Vec<u8> = (0..blocks).flat_map(|block| pattern(block + 1, 4096)).collect();
    std::fs::File::options().write(true).open(bench.image()).unwrap().write_all_at(&content, 0).unwrap();
    for round in 0..20u64 {
        let mut asked = Vec::new();
        for queue in 0..4 {
            for number in 0..64u64 {
                let block = (round * 7919 + queue as u64 * 104_729 + number * 31) % blocks;
                let slot = client.rings[queue].submit(&Request::new(kind::IN, block * 8, 4096));
                asked.push((queue, slot, block));
            }
            client.rings[queue].kick();
        }
        for queue in 0..4 {
            for _ in 0..64 {
                let answer = client.rings[queue].wait(PATIENCE).expect("an answer");
                let at = asked.iter().position(|(q, s, _)| (*q, *s) == (queue, answer.slot)).expect("asked for");
                let (_, slot, block) = asked.swap_remove(at);
                let mut bytes = vec![0; 4096];
                client.memory().read_slice(&mut bytes, client.rings[queue].data(slot)).unwrap();
                assert!(bytes == pattern(block + 1, 4096), "block {block}");
            }
        }
        assert!(asked.is_empty());
    }
}

#[test]
fn a_flush_discard_and_zeroes_do_what_they_say() {
    let bench = Bench::one(1);
    let mut client = Client::connect(&bench.socket(0), ClientOptions::default());
    write(&mut client, 0, Request::new(kind::OUT, 0, 131_072), &pattern(5, 131_072));
    assert_eq!(client.rings[0].ask(&Request::new(kind::FLUSH, 0, 0)).status, 0);
    let blocks_before = std::fs::metadata(bench.image()).unwrap().blocks();

    let range = |client: &mut Client, kind, sector: u64, sectors: u32, flags: u32| {
        let bytes = [&sector.to_le_bytes()[..], &sectors.to_le_bytes(), &flags.to_le_bytes()].concat();
        let slot = client.rings[0].next_slot().unwrap();
        client.memory().write_slice(&bytes, client.rings[0].data(slot)).unwrap();
        client.rings[0].ask(&Request::new(kind, 0, 16)).status
    };
    assert_eq!(range(&mut client, kind::DISCARD, 0, 64, 0), 0);
    let blocks_after = std::fs::metadata(bench.image()).unwrap().blocks();
    assert!(blocks_after < blocks_before, "space was given back: {blocks_before} blocks, then {blocks_after}");
    assert_eq!(range(&mut client, kind::WRITE_ZEROES, 64, 64, 0), 0);
    assert_eq!(range(&mut client, kind::WRITE_ZEROES, 128, 32, 1), 0);
    let bytes = read(&mut client, 0, Request::new(kind::IN, 0, 131_072));
    assert!(bytes[..80 << 10].iter().all(|byte| *byte == 0), "discarded and zeroed");
    assert!(bytes[80 << 10..] == pattern(5, 131_072)[80 << 10..], "the rest is as it was");
    assert_eq!(range(&mut client, kind::DISCARD, IMAGE_BYTES / 512 - 1, 2, 0), 1, "beyond the end");
    assert_eq!(range(&mut client, kind::DISCARD, 0, 8, 1), 2, "a flag that is not known");
}

#[test]
fn a_guest_is_told_the_size_the_serial_number_and_what_is_refused() {
    let bench = Bench::one(2);
    let mut client = Client::connect(&bench.socket(0), ClientOptions { queues: 2, ..ClientOptions::default() });
    let config = client.config(60);
    assert_eq!(config[..8], (IMAGE_BYTES / 512).to_le_bytes());
    assert_eq!(config[34..36], 2u16.to_le_bytes());
    let bytes = read_serial(&mut client);
    assert_eq!(&bytes[..6], b"disk0\0");
    assert_eq!(client.rings[0].ask(&Request::new(2, 0, 512)).status, 2, "SCSI commands are unknown here");
    assert_eq!(client.rings[1].ask(&Request::new(kind::IN, IMAGE_BYTES / 512, 512)).status, 1);
    assert_eq!(client.rings[1].ask(&Request::new(kind::OUT, 0, 100)).status, 1);
    assert_eq!(client.rings[1].ask(&Request::new(kind::IN, 0, 512)).status, 0, "and it goes on");
}

fn read_serial(client: &mut Client) -> Vec<u8> {
    let slot = client.rings[0].next_slot().unwrap();
    assert_eq!(client.rings[0].ask(&Request::new(kind::GET_ID, 0, 20)).status, 0);
    let mut bytes = vec![0; 20];
    client.memory().read_slice(&mut bytes, client.rings[0].data(slot)).unwrap();
    bytes
}

#[test]
fn a_disk_that_is_only_read_is_never_written() {
    let folder = Bench::folder();
    let mut disk = disk(&folder.path().join("disk0"));
    std::fs::write(&disk.image, pattern(9, IMAGE_BYTES as usize)).unwrap();
    disk.options = ImageOptions { is_read_only: true, ..disk.options };
    let bench = Bench::start(folder, SchedulerName::Noop, 8, TransferKind::Uring, vec![disk]);
    let mut client = Client::connect(&bench.socket(0), ClientOptions::default());
    for kind in [kind::OUT, kind::DISCARD, kind::WRITE_ZEROES] {
        assert_eq!(client.rings[0].ask(&Request::new(kind, 0, 16)).status, 1, "{kind}");
    }
    assert_eq!(client.rings[0].ask(&Request::new(kind::OUT, 0, 512)).status, 1);
    assert!(read(&mut client, 0, Request::new(kind::IN, 0, 4096)) == pattern(9, IMAGE_BYTES as usize)[..4096]);
}

#[test]
fn an_image_that_became_shorter_fails_its_own_reads_and_no_other_disk() {
    let folder = Bench::folder();
    let disks = (0..2).map(|number| disk(&folder.path().join(format!("disk{number}")))).collect();
    let bench = Bench::start(folder, SchedulerName::Noop, 8, TransferKind::Uring, disks);
    let mut clients: Vec<Client> =
        (0..2).map(|number| Client::connect(&bench.socket(number), ClientOptions::default())).collect();
    std::fs::File::options().write(true).open(bench.image()).unwrap().set_len(4096).unwrap();
    assert_eq!(clients[0].rings[0].ask(&Request::new(kind::IN, 1024, 4096)).status, 1);
    let (_, measures, _) = bench.server.as_ref().unwrap().measure("disk0").unwrap();
    let failure = measures.figures.failure.expect("it is told");
    assert!(failure.errno == 0 && failure.why.contains("somebody made the image shorter"), "{failure:?}");
    assert_eq!(clients[0].rings[0].ask(&Request::new(kind::IN, 0, 4096)).status, 0, "what is left is there");
    assert_eq!(clients[1].rings[0].ask(&Request::new(kind::IN, 1024, 4096)).status, 0);
}

/// A guest that reboots stops its rings and waits: also with a contract by which its requests would wait for ever.
/// What is queued goes over, with the notes of an inflight region and without; the connection stays.
#[test]
fn another_server_goes_on_with_what_one_has_queued() {
    for has_inflight in [true, false] {
        let folder = Bench::folder();
        let mut disk = disk(&folder.path().join("disk0"));
        // One request a day.
        disk.parameters.limit_per_second = 1.0 / 86_400.0;
        disk.queues = 3;
        let mut bench = Bench::start(folder, SchedulerName::Mclock, 4, TransferKind::Uring, vec![disk]);
        let options = ClientOptions { queues: 3, has_inflight, ..ClientOptions::default() };
        let mut client = Client::connect(&bench.socket(0), options);
        for ring in &mut client.rings {
            for number in 0..50u64 {
                ring.submit(&Request::new(kind::IN, number * 8, 4096));
            }
            ring.kick();
        }
        let begun = Instant::now();
        // Of which ring it is, the server chooses.
        while !client.rings.iter_mut().any(|ring| ring.wait(Duration::from_millis(10)).is_some()) {
            assert!(begun.elapsed() < PATIENCE, "the first is within the limit");
        }
        bench.hand_over(SchedulerName::Noop);
        for ring in &mut client.rings {
            while ring.under_way() > 0 {
                assert_eq!(ring.wait(PATIENCE).expect("each is answered once").status, 0);
            }
            assert_eq!(ring.ask(&Request::new(kind::IN, 8, 4096)).status, 0, "and what comes later");
        }
        // The messages of the connection go on where they were.
        assert_eq!(client.config(8), (IMAGE_BYTES / 512).to_le_bytes());
        let base = client.stop_ring(1);
        assert_eq!(base, 51);
    }
}

#[test]
fn a_ring_that_is_stopped_is_drained_at_once_and_goes_on_where_it_was() {
    let folder = Bench::folder();
    let mut disk = disk(&folder.path().join("disk0"));
    // One request a day.
    disk.parameters.limit_per_second = 1.0 / 86_400.0;
    let bench = Bench::start(folder, SchedulerName::Mclock, 4, TransferKind::Uring, vec![disk]);
    let mut client = Client::connect(&bench.socket(0), ClientOptions::default());
    let ring = &mut client.rings[0];
    for number in 0..100u64 {
        ring.submit(&Request::new(kind::IN, number * 8, 4096));
    }
    ring.kick();
    let first = ring.wait(PATIENCE).expect("the first is within the limit");
    assert_eq!(first.status, 0);
    assert!(ring.wait(Duration::from_millis(300)).is_none(), "the limit holds");
    let base = client.stop_ring(0);
    assert_eq!(base, 100);
    let mut answered = 1;
    while let Some(answer) = client.rings[0].poll() {
        assert_eq!(answer.status, 0);
        answered += 1;
    }
    assert_eq!(answered, 100, "answered before the stop was");
    client.start_ring(0, base);
    client.rings[0].submit(&Request::new(kind::GET_ID, 0, 20));
    client.rings[0].kick();
    assert_eq!(client.rings[0].wait(PATIENCE).expect("served again").status, 0);
}

#[test]
fn a_server_that_ends_answers_first_what_it_was_asked() {
    let mut bench = Bench::one(1);
    let mut client = Client::connect(&bench.socket(0), ClientOptions::default());
    for number in 0..64u64 {
        client.rings[0].submit(&Request::new(kind::IN, number * 8, 4096));
    }
    client.rings[0].kick();
    client.rings[0].wait(PATIENCE).expect("it serves");
    bench.server.take().unwrap().stop();
    // What it had taken is answered; the rest was never begun. A next server goes on there.
    let answered = 1 + std::iter::from_fn(|| client.rings[0].poll()).count();
    let folder = std::mem::replace(&mut bench.folder, Bench::folder());
    let disk = common::TestDisk {
        image: folder.path().join("disk0"),
        options: ImageOptions { is_read_only: false, is_direct: false },
        parameters: Default::default(),
        contract: None,
        queues: 1,
    };
    let next = Bench::start(folder, SchedulerName::Noop, 8, TransferKind::Uring, vec![disk]);
    client.reconnect(&next.socket(0));
    for _ in answered..64 {
        assert_eq!(client.rings[0].wait(PATIENCE).expect("an answer").status, 0);
    }
    assert_eq!(client.rings[0].under_way(), 0);
}
