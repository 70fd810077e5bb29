//! What a hostile driver can do to a block device, case by case: for each way to break a rule of the Virtual I/O Device
//! specification (1.3, sections 2.7 and 5.2), what the server answers, and that it goes on for this guest and for its neighbour.
//! The list of cases follows virtio-villain 1.0 (block devices and split rings, of the former also those above number 100 that reach a
//! back end; its numbers are kept), which boots a guest for each of them; here a front end of ours sends them straight to the server.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says why by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod protocol;
mod requests;
mod rings;

use common::{Bench, IMAGE_BYTES, disk};
use minerva_blk::TransferKind;
use minerva_blocksched::SchedulerName;
use minerva_vhost_client::{Client, ClientOptions, ClientRing, Request, kind};
use std::time::{Duration, Instant};
use vm_memory::{Bytes, GuestAddress};

const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;
const SECTORS: u64 = IMAGE_BYTES / 512;
const QUEUE_SIZE: u16 = 16;
const PATIENCE: Duration = Duration::from_secs(60);
/// So long nothing has to come for it to be silence. Where more is expected it is waited for as long at most.
const SILENCE: Duration = Duration::from_millis(300);
const OPTIONS: ClientOptions = ClientOptions {
    queues: 1,
    queue_size: QUEUE_SIZE,
    is_indirect: false,
    has_event_index: true,
    has_inflight: true,
    has_channel: false,
    data_bytes: 4096,
    without: 0,
};
/// What the first disk and the second hold at first.
const OWN: u8 = 0x33;
const NEIGHBOUR: u8 = 0x5A;

/// What the server makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The request is done.
    Done,
    /// It is answered with an error, or not supported.
    Refused,
    /// It comes back without a status, as there is no place for one.
    Returned,
    /// Nothing comes back: there is nothing that could.
    Silent,
    /// The specification leaves it open, or the guest has overwritten where one would look.
    Open,
}

/// A hostile guest on the first disk.
struct Guest {
    client: Client,
}

impl Guest {
    fn connect(bench: &Bench) -> Self {
        let client = Client::connect(&bench.socket(0), OPTIONS);
        client.memory().write_slice(&[0xFF], client.rings[0].data(2)).unwrap();
        Self { client }
    }

    fn ring(&mut self) -> &mut ClientRing {
        &mut self.client.rings[0]
    }

    /// Where the header of a request lies.
    fn header(&self) -> u64 {
        self.client.rings[0].data(0).0
    }

    /// A page of data.
    fn data(&self) -> u64 {
        self.client.rings[0].data(1).0
    }

    /// Where its status goes.
    fn status(&self) -> u64 {
        self.client.rings[0].data(2).0
    }

    /// The first address behind its memory.
    fn memory_end(&self) -> u64 {
        self.client.rings[0].data(4).0 + 4096
    }

    fn write(&self, address: u64, bytes: &[u8]) {
        self.client.memory().write_slice(bytes, GuestAddress(address)).unwrap();
    }

    fn put_header(&self, kind: u32, ioprio: u32, sector: u64) {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&kind.to_le_bytes());
        bytes[4..8].copy_from_slice(&ioprio.to_le_bytes());
        bytes[8..].copy_from_slice(&sector.to_le_bytes());
        self.write(self.header(), &bytes);
    }

    /// Writes a chain to the ring's table from `head` on.
    fn put_chain(&mut self, head: u16, parts: &[(u64, u32, u16)]) {
        let table = self.ring().descriptors.0;
        self.put_table(table, head, parts);
    }

    /// Writes a chain to a table.
    fn put_table(&mut self, table: u64, first: u16, parts: &[(u64, u32, u16)]) {
        for (number, (address, length, flags)) in (first..).zip(parts) {
            let has_next = usize::from(number - first) + 1 < parts.len();
            let flags = flags | if has_next { NEXT } else { 0 };
            self.ring().put_descriptor(table, number, *address, *length, flags, if has_next { number + 1 } else { 0 });
        }
    }

    /// Writes a chain to the ring's table, and makes it available.
    fn send(&mut self, parts: &[(u64, u32, u16)]) {
        self.put_chain(0, parts);
        self.ring().make_available(0);
    }

    /// Lets the server see it all, and waits until it has.
    fn outcome(&mut self) -> Outcome {
        self.ring().force_kick();
        let kicked = Instant::now();
        // A stop waits for what was taken from the ring; a kick that was not heard yet is for the next start.
        while self.ring().used_index() == 0 && kicked.elapsed() < SILENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.client.stop_ring(0);
        if self.ring().used_index() == 0 {
            return Outcome::Silent;
        }
        let status: u8 = self.client.memory().read_obj(GuestAddress(self.status())).unwrap();
        match status {
            0 => Outcome::Done,
            1 | 2 => Outcome::Refused,
            _ => Outcome::Returned,
        }
    }
}

/// Two disks on one physical one, and the honest guest of the second.
fn neighbours() -> (Bench, Client) {
    let folder = Bench::folder();
    let disks: Vec<_> = (0..2).map(|number| disk(&folder.path().join(format!("disk{number}")))).collect();
    for (disk, byte) in disks.iter().zip([OWN, NEIGHBOUR]) {
        std::fs::write(&disk.image, vec![byte; IMAGE_BYTES as usize]).unwrap();
    }
    let bench = Bench::start(folder, SchedulerName::Noop, 8, TransferKind::Uring, disks);
    let honest = Client::connect(&bench.socket(1), ClientOptions::default());
    (bench, honest)
}

/// The neighbour is served and its disk is as it was; the disk of the case is served to whoever comes next.
fn judge(name: &str, bench: &Bench, honest: &mut Client) {
    let slot = honest.rings[0].submit(&Request::new(kind::IN, 64, 4096));
    honest.rings[0].kick();
    let answer = honest.rings[0].wait(PATIENCE).unwrap_or_else(|| panic!("{name}: the neighbour is not served"));
    assert_eq!(answer.status, 0, "{name}: the neighbour is refused");
    let mut bytes = [0; 4096];
    honest.memory().read_slice(&mut bytes, honest.rings[0].data(slot)).unwrap();
    assert!(bytes.iter().all(|byte| *byte == NEIGHBOUR), "{name}: the neighbour reads what is not its own");
    let other = std::fs::read(bench.folder.path().join("disk1")).unwrap();
    assert!(other.iter().all(|byte| *byte == NEIGHBOUR), "{name}: the neighbour's disk was written");
    let mut next = Client::connect(&bench.socket(0), ClientOptions::default());
    assert_eq!(next.rings[0].ask(&Request::new(kind::IN, 0, 4096)).status, 0, "{name}: the next guest is refused");
}

/// No byte of the case's own disk changed.
fn is_untouched(bench: &Bench) -> bool {
    std::fs::read(bench.image()).unwrap().iter().all(|byte| *byte == OWN)
}

/// A case: its name, what is done, what comes of it.
type Case = (&'static str, fn(&mut Guest), Outcome);

/// Plays each case on a connection of its own. None of them may change the disk.
fn play(cases: &[Case]) {
    let (bench, mut honest) = neighbours();
    for (name, act, expected) in cases {
        let mut guest = Guest::connect(&bench);
        act(&mut guest);
        let outcome = guest.outcome();
        assert!(*expected == Outcome::Open || outcome == *expected, "{name}: {outcome:?}, {expected:?} expected");
        drop(guest);
        judge(name, &bench, &mut honest);
        assert!(is_untouched(&bench), "{name}: the disk was written");
    }
}
