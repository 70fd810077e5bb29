//! From a ring to the scheduler.

use super::slots::RingKey;
use super::{DiskCounters, FEW, Worker};
use crate::ahead::STEPS;
use crate::chain::{Direction, Malformed};
use crate::measure::Coming;
use crate::request::{Header, Lengths, Operation, Refusal, SERIAL_BYTES};
use crate::ring::Taken;
use crate::tag::Priority;
use minerva_blocksched::{Kind, Request, RequestId};
use minerva_model::Nanos;
use vm_memory::GuestAddress;

/// Answers of the specification.
pub(super) const STATUS_OK: u8 = 0;
pub(super) const STATUS_FAILED: u8 = 1;
const STATUS_UNSUPPORTED: u8 = 2;
/// After so many descriptors of a ring the next ring has its turn: as many as the longest chain has. A guest can let each entry of its ring
/// refer to such a chain, and to read them all takes milliseconds.
const WALKED_MAX: u32 = 1024;

/// What a request is to the scheduler.
struct Work {
    kind: Kind,
    offset_bytes: u64,
    length_bytes: u64,
}

impl Work {
    fn of(operation: Operation, lengths: Lengths) -> Self {
        let (kind, offset_bytes, length_bytes) = match operation {
            Operation::Read { offset_bytes } => (Kind::Read, offset_bytes, lengths.writable),
            Operation::Write { offset_bytes } => (Kind::Write, offset_bytes, lengths.readable),
            Operation::Flush | Operation::GetId => (Kind::Flush, 0, 0),
            Operation::Discard { offset_bytes, length_bytes } => (Kind::Discard, offset_bytes, length_bytes),
            // Many a disk and file system can zero in no other way.
            Operation::WriteZeroes { offset_bytes, length_bytes, .. } => (Kind::Write, offset_bytes, length_bytes),
        };
        Self { kind, offset_bytes, length_bytes }
    }
}

/// As the guest gets it: cut off, or filled up with zeroes.
fn serial(name: &str) -> [u8; SERIAL_BYTES] {
    let mut serial = [0; SERIAL_BYTES];
    let length = name.len().min(SERIAL_BYTES);
    serial[..length].copy_from_slice(&name.as_bytes()[..length]);
    serial
}

impl Worker {
    /// Takes what guests made available in rings that are looked at; whether there was anything.
    pub(super) fn take_from_awake(&mut self, now: Nanos) -> bool {
        let mut has_taken = false;
        for number in 0..STEPS - 1 {
            self.fetch_ahead(number);
        }
        for number in 0..self.awake.len() {
            self.fetch_ahead(number + STEPS - 1);
            has_taken |= self.take_all(self.awake[number], now);
        }
        has_taken
    }

    /// Takes the first step towards the chains of the ring with this number among those that are looked at, and the next one towards each
    /// ring before it.
    fn fetch_ahead(&self, number: usize) {
        if self.awake.len() < 2 {
            return;
        }
        for step in 0..STEPS {
            let key = number.checked_sub(step).and_then(|number| self.awake.get(number));
            let ring = key.and_then(|key| self.disks.get(key.disk)?.rings.get(key.queue)?.as_ref());
            ring.into_iter().for_each(|served| served.ring.fetch_step(step));
        }
    }

    /// Takes what a guest made available in a ring, and queues it; whether there was anything. No more at once than `take_max`: a guest
    /// that goes on while it is answered holds up nobody. Of what no scheduler gains by seeing it whole it is less: few that are answered
    /// at once, and few descriptors. The rest has its turn after the other rings.
    fn take_all(&mut self, key: RingKey, now: Nanos) -> bool {
        let (mut answered, mut walked) = (0, 0);
        for count in 0..self.take_max {
            let is_held = self.is_held(key.disk);
            let ring = self.disks.get_mut(key.disk).and_then(|disk| disk.rings.get_mut(key.queue)?.as_mut());
            let ring = ring.filter(|served| served.stopping.is_none() && !is_held);
            let Some(taken) = ring.and_then(|served| served.ring.take(&mut self.chain)) else { return count > 0 };
            walked += self.chain.walked();
            answered += u16::from(!self.take(key, taken, now));
            if answered >= FEW || walked >= WALKED_MAX {
                break;
            }
        }
        true
    }

    /// Queues a request, or answers it; whether it is queued.
    fn take(&mut self, key: RingKey, taken: Taken, came: Nanos) -> bool {
        let Err((status, answer)) = self.queue(key, taken, came) else { return true };
        if answer != STATUS_OK {
            DiskCounters::add(&self.disks[key.disk].new.counters.refused, 1);
        }
        let written = u32::from(status.is_some());
        self.answer(key, taken.head, status, answer, written);
        false
    }

    /// Queues a request, or says with what and where it is answered at once.
    fn queue(&mut self, key: RingKey, taken: Taken, came: Nanos) -> Result<(), (Option<GuestAddress>, u8)> {
        let syncs_failed = self.syncs_failed(key);
        let frame = taken.frame.map_err(|malformed| match malformed {
            Malformed::NoStatus => (None, STATUS_FAILED),
            Malformed::Status(status) => (Some(status), STATUS_FAILED),
        })?;
        let answer = |status: u8| (Some(frame.status), status);
        let disk = &self.disks[key.disk];
        let served = disk.rings[key.queue].as_ref().ok_or(answer(STATUS_FAILED))?;
        let memory = served.ring.lease();
        let header = Header::parse(&frame.header);
        let range = if header.has_range() { self.chain.range(&memory) } else { None };
        let geometry = disk.new.image.as_ref().ok_or(answer(STATUS_FAILED))?.geometry();
        let operation =
            Operation::judge(&header, frame.lengths, range.as_ref(), &geometry).map_err(|refusal| match refusal {
                Refusal::Unsupported => answer(STATUS_UNSUPPORTED),
                Refusal::Invalid => answer(STATUS_FAILED),
            })?;
        if operation == Operation::GetId {
            let is_told = self.chain.fill(&memory, &serial(&disk.new.serial));
            return Err(answer(if is_told { STATUS_OK } else { STATUS_FAILED }));
        }
        let (request, is_tagged) = self.request(key, header.ioprio, Work::of(operation, frame.lengths), came);
        let number = self.slots.reserve(request);
        let request = Request { id: RequestId(u64::from(number)), ..request };
        let Some(slot) = self.slots.get(number) else { return Err(answer(STATUS_FAILED)) };
        slot.pieces.clear();
        let direction = match operation {
            Operation::Read { .. } => Some(Direction::Writable),
            Operation::Write { .. } => Some(Direction::Readable),
            _ => None,
        };
        let pieces = &mut slot.pieces;
        if direction.is_some_and(|direction| self.chain.locate(&memory, direction, pieces).is_none()) {
            self.slots.release(number);
            return Err(answer(STATUS_FAILED));
        }
        (slot.key, slot.head, slot.status) = (key, taken.head, frame.status);
        (slot.is_scheduled, slot.is_tagged, slot.memory) = (true, is_tagged, Some(memory));
        slot.syncs_failed = syncs_failed;
        let part = slot.take(operation, request);
        let tag = request.tag.unwrap_or_default();
        let coming = Coming { tag, transfer_bytes: slot.transfer_bytes() };
        slot.allowed = self.measures.came(request.arrived, key.disk, coming);
        self.scheduler.add(request.arrived, part);
        Ok(())
    }

    /// As the scheduler gets it, whose number is not known yet; and whether an application of the guest gave it its priority.
    fn request(&self, key: RingKey, ioprio: u16, work: Work, came: Nanos) -> (Request, bool) {
        let disk = &self.disks[key.disk].new;
        let priority = Priority::of(ioprio, disk.terms.tags);
        let is_tagged = priority.stream > 0;
        if is_tagged {
            DiskCounters::add(&disk.counters.tagged, 1);
        }
        let request = Request {
            id: RequestId(0),
            flow: self.flow(key.disk, priority.stream),
            kind: work.kind,
            // A guest says of no write whether somebody waits for it. Each may be waited for, as the kernel takes it of the direct writes of whoever
            // serves a guest: else no weight would hold for guests that write.
            sync: true,
            tag: Some(priority.tag),
            offset_bytes: work.offset_bytes,
            length_bytes: u32::try_from(work.length_bytes).unwrap_or(u32::MAX),
            arrived: came,
        };
        (request, is_tagged)
    }

    /// Answers a request: a status byte where there is room for one, and its place in the used ring.
    pub(super) fn answer(&mut self, key: RingKey, head: u16, status: Option<GuestAddress>, answer: u8, written: u32) {
        let Some(served) = self.disks[key.disk].rings[key.queue].as_mut() else { return };
        if let Some(status) = status {
            // The address was judged, in this memory or in one before it; a guest that gave its memory away hears nothing.
            let _ = served.ring.memory().write(status, &[answer]);
        }
        if served.ring.publish(head, written) {
            self.answered.push(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FEW, RingKey, Served, VmTerms, Worker, WorkerHandle, WorkerOptions, now};
    use crate::failure::Failure;
    use crate::image::{Image, ImageOptions};
    use crate::mapped::Memory;
    use crate::ring::{RING_SIZE_MAX, RingSetup};
    use crate::signal::Signaller;
    use crate::split::RingLayout;
    use crate::tag::TagBounds;
    use crate::transfer::{self, TransferKind};
    use crate::worker::NewDisk;
    use minerva_blocksched::{BuildOptions, FlowParameters, SchedulerName};
    use minerva_model::Nanos;
    use rustix::event::{EventfdFlags, eventfd};
    use std::fs::File;
    use std::sync::Arc;
    use std::sync::atomic::Ordering;
    use vm_memory::{GuestAddress, GuestRegionMmap};

    const PLACE: RingLayout = RingLayout {
        size: RING_SIZE_MAX,
        descriptors: GuestAddress(0),
        available: GuestAddress(0x4000),
        used: GuestAddress(0x5000),
    };
    const TABLE: u64 = 0x8000;
    const BUFFER: u64 = 0xc000;
    const NEXT: u16 = 1;
    const WRITE: u16 = 2;
    const INDIRECT: u16 = 4;

    /// With a ring of which so many entries are available, all of which refer to one table of buffers of these lengths.
    fn memory(heads: u16, table: &[(u32, u16)]) -> Arc<Memory> {
        let region = GuestRegionMmap::from_range(GuestAddress(0), 0x1_0000, None).unwrap();
        let memory = Memory::new(vec![region]).unwrap();
        let put = |at: u64, address: u64, length: u32, flags: u16, next: u16| {
            let flags = [flags.to_le_bytes(), next.to_le_bytes()].concat();
            let bytes = [&address.to_le_bytes()[..], &length.to_le_bytes(), &flags].concat();
            memory.write(GuestAddress(at), &bytes).unwrap();
        };
        for (number, (length, flags)) in (0u16..).zip(table) {
            let flags = flags | if usize::from(number) + 1 < table.len() { NEXT } else { 0 };
            let buffer = BUFFER + u64::from(number % 8) * 512;
            put(TABLE + u64::from(number) * 16, buffer, *length, flags, number + 1);
        }
        for head in 0..heads {
            put(u64::from(head) * 16, TABLE, table.len() as u32 * 16, INDIRECT, 0);
            memory.write(GuestAddress(0x4004 + u64::from(head) * 2), &head.to_le_bytes()).unwrap();
        }
        memory.write(GuestAddress(0x4002), &heads.to_le_bytes()).unwrap();
        Arc::new(memory)
    }

    fn used(memory: &Memory) -> u16 {
        u16::from_le_bytes(memory.block(GuestAddress(0x5002)).unwrap())
    }

    /// One that serves a ring in each of these memories, each of a disk of its own.
    fn worker(folder: &std::path::Path, memories: &[&Arc<Memory>]) -> Worker {
        let (scheduler, disk) = (SchedulerName::Bfq, BuildOptions::for_disk(false, 8));
        let options = WorkerOptions { scheduler, disk, transfer: TransferKind::Null, poll_max: Nanos::ZERO };
        let transfer = transfer::open(8, TransferKind::Null).unwrap();
        let (_, inbox) = WorkerHandle::new().unwrap();
        let mut worker = Worker::new(options, (transfer, Signaller::open().unwrap()), inbox).unwrap();
        for (number, memory) in memories.iter().enumerate() {
            let path = folder.join(number.to_string());
            File::create(&path).unwrap().set_len(1 << 20).unwrap();
            let image = Image::open(&path, ImageOptions { is_read_only: false, is_direct: false }).unwrap();
            let tags = TagBounds { default: 64, max: 254 };
            let disk = worker.add_disk(NewDisk {
                image: Some(Arc::new(image)),
                serial: number.to_string(),
                terms: VmTerms { parameters: FlowParameters::default(), tags, contract: None },
                queues: 1,
                counters: Arc::default(),
                tell_failure: |_, _| {},
            });
            let setup = RingSetup {
                place: PLACE,
                next_available: 0,
                has_event_index: false,
                memory: Arc::clone(memory),
                kick: File::from(eventfd(0, EventfdFlags::NONBLOCK).unwrap()),
                call: None,
                inflight: None,
                begun: Vec::new(),
            };
            assert!(worker.start_ring(RingKey { disk, queue: 0 }, setup));
        }
        worker
    }

    /// The ring of the first disk.
    fn served(worker: &mut Worker) -> &mut Served {
        worker.disks[0].rings[0].as_mut().unwrap()
    }

    /// As two rings of one disk can have flushes at once.
    #[test]
    fn a_flush_that_a_guest_sent_before_it_could_know_of_a_failure_fails_too() {
        let folder = tempfile::tempdir().unwrap();
        let memory = memory(3, &[(16, 0), (1, WRITE)]);
        memory.write(GuestAddress(BUFFER), &[4]).unwrap();
        let mut worker = worker(folder.path(), &[&memory]);
        let serve = |worker: &mut Worker| {
            worker.take_from_awake(now());
            // Each has a sync of its own in turn.
            for _ in 0..4 {
                worker.dispatch(now());
                worker.complete_all();
            }
            let counters = &worker.disks[0].new.counters;
            [&counters.failed, &counters.others].map(|counter| counter.load(Ordering::Relaxed))
        };
        worker.end_sync(0, Some(Failure::Error(libc::EIO)), now());
        memory.write(GuestAddress(0x4004 + 3 * 2), &[3, 0]).unwrap();
        assert_eq!(serve(&mut worker), [3, 0]);
        memory.write(GuestAddress(3 * 16), &memory.block::<16>(GuestAddress(0)).unwrap()).unwrap();
        memory.write(GuestAddress(0x4002), &[4, 0]).unwrap();
        assert_eq!(serve(&mut worker), [3, 1], "this one came later");
    }

    #[test]
    fn a_guest_is_told_of_a_sync_that_failed_after_what_it_sent_before_was_counted() {
        let folder = tempfile::tempdir().unwrap();
        let memory = memory(2, &[(16, 0), (1, WRITE)]);
        memory.write(GuestAddress(BUFFER), &[4]).unwrap();
        memory.write(GuestAddress(0x4002), &[1, 0]).unwrap();
        let mut worker = worker(folder.path(), &[&memory]);
        let call = File::from(eventfd(0, EventfdFlags::NONBLOCK).unwrap());
        let is_told = || rustix::io::read(&call, &mut [0; 8]).is_ok();
        served(&mut worker).ring.set_call(Some(call.try_clone().unwrap()));
        assert!(is_told(), "of what was published before");
        worker.take_from_awake(now());
        worker.dispatch(now());
        memory.write(GuestAddress(0x4002), &[2, 0]).unwrap();
        worker.end_sync(0, Some(Failure::Error(libc::EIO)), now());
        assert_eq!((used(&memory), served(&mut worker).early, is_told()), (1, 1, false));
        worker.notify();
        assert!(is_told());
    }

    /// A scheduler that orders requests sees all of them, but what never gets there has no right to that.
    #[test]
    fn chains_that_are_answered_at_once_or_long_leave_the_next_ring_its_turn() {
        let read = [(16, 0), (512, WRITE), (1, WRITE)];
        for (name, table, heads, most) in [
            ("long, without a status", vec![(16, 0); 1024], 1024, 1),
            ("long, too short a header", [vec![(1, 0)], vec![(1, WRITE); 1023]].concat(), 1024, 1),
            ("short, without a status", vec![(16, 0)], 1024, FEW),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let (hostile, honest) = (memory(heads, &table), memory(1, &read));
            let mut worker = worker(folder.path(), &[&hostile, &honest]);
            assert!(worker.take_from_awake(now()));
            worker.notify();
            assert_eq!((used(&hostile), used(&honest)), (most, 0), "{name}");
            let mut rounds = 1;
            while used(&hostile) < heads {
                assert!(worker.take_from_awake(now()), "{name}");
                worker.dispatch(now());
                worker.complete_all();
                worker.notify();
                rounds += 1;
                assert_eq!(used(&honest), 1, "{name}: at the latest in the second round");
            }
            assert_eq!(rounds, heads / most, "{name}: none is forgotten");
        }
    }
}
