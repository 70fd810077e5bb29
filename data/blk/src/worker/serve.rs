//! From a ring to the scheduler.

use super::slots::RingKey;
use super::{DiskCounters, Worker};
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
    /// that goes on while it is answered holds up nobody.
    fn take_all(&mut self, key: RingKey, now: Nanos) -> bool {
        for count in 0..self.take_max {
            let is_held = self.is_held(key.disk);
            let ring = self.disks.get_mut(key.disk).and_then(|disk| disk.rings.get_mut(key.queue)?.as_mut());
            let ring = ring.filter(|served| served.stopping.is_none() && !is_held);
            let Some(taken) = ring.and_then(|served| served.ring.take(&mut self.chain)) else { return count > 0 };
            self.take(key, taken, now);
        }
        true
    }

    fn take(&mut self, key: RingKey, taken: Taken, came: Nanos) {
        match self.queue(key, taken, came) {
            Ok(()) => {}
            Err((status, answer)) => {
                if answer != STATUS_OK {
                    DiskCounters::add(&self.disks[key.disk].new.counters.refused, 1);
                }
                let written = u32::from(status.is_some());
                self.answer(key, taken.head, status, answer, written);
            }
        }
    }

    /// Queues a request, or says with what and where it is answered at once.
    fn queue(&mut self, key: RingKey, taken: Taken, came: Nanos) -> Result<(), (Option<GuestAddress>, u8)> {
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
            // A guest says of no write whether somebody waits for it; one that an application gave a stream is its own.
            sync: !matches!(work.kind, Kind::Write) || is_tagged,
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
