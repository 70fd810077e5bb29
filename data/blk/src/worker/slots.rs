//! Requests between their ring and their answer.

use super::given::{Alignment, Bounces, Given};
use crate::mapped::Lease;
use crate::request::{Operation, PART_BYTES_MAX, SEGMENTS_MAX};
use crate::transfer::Action;
use libc::iovec;
use minerva_blocksched::Request;
use minerva_model::Nanos;
use vm_memory::GuestAddress;

/// A free slot keeps room for so many pieces in each of its lists: those of the longest request of a driver that keeps to what is offered. A
/// guest can have thousands of requests under way with eight times as many pieces each.
const PIECES_KEPT: usize = SEGMENTS_MAX as usize + 2;

/// Which ring of which disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RingKey {
    pub(crate) disk: usize,
    pub(crate) queue: usize,
}

/// What is being done for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// What it asks for.
    Asked,
    /// Zeroes are written, because nothing better is known to the file system or disk.
    Zeroing,
    /// What was zeroed is made durable.
    Syncing,
    /// The disk is told to forget, because it cannot do that by zeroing.
    Trimming,
}

/// One request. Its lists are kept for the next one in the same slot.
pub(super) struct Slot {
    pub(super) key: RingKey,
    pub(super) head: u16,
    pub(super) status: GuestAddress,
    /// Held, so that what the pieces name stays mapped until the kernel is done with it. None while the slot is free.
    pub(super) memory: Option<Lease>,
    pub(super) operation: Operation,
    /// As the guest made it.
    pub(super) whole: Request,
    /// The part of it that the scheduler has, or the disk. Parts come one after the other.
    pub(super) request: Request,
    /// The scheduler sends it and is told when it completes.
    pub(super) is_scheduled: bool,
    /// When its first part was given to the disk.
    pub(super) sent: Nanos,
    /// What the clock of the host's disk said then.
    pub(super) begun: u64,
    /// From when its disk's contract allows it.
    pub(super) allowed: Nanos,
    /// An application of the guest gave it its priority.
    pub(super) is_tagged: bool,
    /// How many syncs of its image had failed when it began; see [`super::syncs`].
    pub(super) syncs_failed: u64,
    /// Where its data lies in the guest's memory.
    pub(super) pieces: Vec<iovec>,
    given: Given,
    stage: Stage,
}

impl Slot {
    fn free(request: Request) -> Self {
        Self {
            key: RingKey { disk: 0, queue: 0 },
            head: 0,
            status: GuestAddress(0),
            memory: None,
            operation: Operation::Flush,
            whole: request,
            request,
            is_scheduled: false,
            sent: Nanos::ZERO,
            begun: 0,
            allowed: Nanos::ZERO,
            is_tagged: false,
            syncs_failed: 0,
            pieces: Vec::new(),
            given: Given::default(),
            stage: Stage::Asked,
        }
    }

    /// Takes a request of the guest's; its first part.
    pub(super) fn take(&mut self, operation: Operation, whole: Request) -> Request {
        (self.operation, self.whole, self.stage) = (operation, whole, Stage::Asked);
        self.request = self.part_from(whole.offset_bytes, whole.arrived);
        self.request
    }

    /// Goes on to the next part; none where there is no more.
    pub(super) fn next_part(&mut self, now: Nanos) -> Option<Request> {
        if !self.has_next_part() {
            return None;
        }
        self.request = self.part_from(self.request.end_bytes(), now);
        Some(self.request)
    }

    pub(super) fn has_next_part(&self) -> bool {
        self.request.end_bytes() < self.whole.end_bytes()
    }

    fn part_from(&self, offset_bytes: u64, arrived: Nanos) -> Request {
        let left = (self.whole.end_bytes() - offset_bytes) as u32;
        let length_bytes = match self.operation {
            Operation::Read { .. } | Operation::Write { .. } | Operation::WriteZeroes { .. } => {
                left.min(PART_BYTES_MAX)
            }
            Operation::Flush | Operation::Discard { .. } | Operation::GetId => left,
        };
        Request { offset_bytes, length_bytes, arrived, ..self.whole }
    }

    /// Whether the kernel says of it how many bytes it moved.
    pub(super) fn is_transfer(&self) -> bool {
        match self.operation {
            Operation::Read { .. } | Operation::Write { .. } => self.stage != Stage::Syncing,
            Operation::WriteZeroes { .. } => self.stage == Stage::Zeroing,
            Operation::Flush | Operation::Discard { .. } | Operation::GetId => false,
        }
    }

    /// What it stored has to be made durable before it is answered. Past the page cache what is written is, but for zeroes that an earlier
    /// part stored otherwise; else syncs are shared.
    pub(super) fn must_sync(&self, is_durable: bool, shares_syncs: bool) -> bool {
        let is_left = match self.operation {
            Operation::WriteZeroes { .. } => true,
            Operation::Write { .. } => shares_syncs,
            Operation::Read { .. } | Operation::Flush | Operation::Discard { .. } | Operation::GetId => false,
        };
        is_durable && is_left && self.stage != Stage::Syncing
    }

    /// Whether what it does now is to make durable.
    pub(super) fn is_sync(&self) -> bool {
        self.operation == Operation::Flush || self.stage == Stage::Syncing
    }

    pub(super) fn begin_to_sync(&mut self) {
        self.stage = Stage::Syncing;
    }

    /// Bytes that it moves, or zeroes: that is a write, since many a disk can do it in no other way.
    pub(super) fn data_bytes(&self) -> u64 {
        match self.operation {
            Operation::Read { .. } | Operation::Write { .. } | Operation::WriteZeroes { .. } => {
                u64::from(self.whole.length_bytes)
            }
            Operation::Flush | Operation::Discard { .. } | Operation::GetId => 0,
        }
    }

    /// Its bytes, if it is a read or a write.
    pub(super) fn transfer_bytes(&self) -> Option<u64> {
        Some(self.data_bytes()).filter(|bytes| *bytes > 0)
    }

    /// Finds the memory of the present part.
    fn prepare(&mut self, to: Alignment, spare: &mut Bounces) {
        let length = self.request.length_bytes as usize;
        if self.stage == Stage::Zeroing {
            return self.given.prepare_zeroes(length);
        }
        let from = (self.request.offset_bytes - self.whole.offset_bytes) as usize;
        let is_write = matches!(self.operation, Operation::Write { .. });
        self.given.prepare(&self.pieces, (from, length), to, is_write, spare);
    }

    /// A discard becomes an order to the disk itself; false where it is one.
    pub(super) fn begin_to_trim(&mut self) -> bool {
        let is_new = matches!(self.operation, Operation::Discard { .. }) && self.stage == Stage::Asked;
        if is_new {
            self.stage = Stage::Trimming;
        }
        is_new
    }

    /// A write-zeroes request becomes a write of zeroes; false where it is one.
    pub(super) fn begin_to_zero(&mut self) -> bool {
        let is_new = matches!(self.operation, Operation::WriteZeroes { .. }) && self.stage == Stage::Asked;
        if is_new {
            self.stage = Stage::Zeroing;
            self.given.prepare_zeroes(self.request.length_bytes as usize);
        }
        is_new
    }

    /// What the kernel is to do now. Direct discards and zeroes fail where the file system or disk knows neither.
    pub(super) fn action(&self, is_durable: bool) -> Action {
        const KEEP: i32 = libc::FALLOC_FL_KEEP_SIZE;
        let Request { offset_bytes: offset, length_bytes, .. } = self.request;
        let length = u64::from(length_bytes);
        let pieces = || self.given.pieces(offset);
        match (self.operation, self.stage) {
            // A serial number is told without the disk.
            (Operation::Flush | Operation::GetId, _) | (_, Stage::Syncing) => Action::Sync,
            (Operation::Read { .. }, _) => Action::Read(pieces()),
            (Operation::Write { .. }, _) | (Operation::WriteZeroes { .. }, Stage::Zeroing) => {
                Action::Write(pieces(), is_durable)
            }
            (Operation::WriteZeroes { may_unmap, .. }, Stage::Asked | Stage::Trimming) => {
                let how = if may_unmap { libc::FALLOC_FL_PUNCH_HOLE } else { libc::FALLOC_FL_ZERO_RANGE };
                Action::Allocate { mode: how | KEEP, offset, length }
            }
            (Operation::Discard { .. }, Stage::Trimming) => Action::Discard { offset, length },
            (Operation::Discard { .. }, Stage::Asked | Stage::Zeroing) => {
                Action::Allocate { mode: libc::FALLOC_FL_PUNCH_HOLE | KEEP, offset, length }
            }
        }
    }

    /// So many bytes more were moved; whether that is all of the part. Then the guest has what was read.
    pub(super) fn moved(&mut self, bytes: usize) -> bool {
        let is_all = self.given.moved(bytes);
        if is_all && matches!(self.operation, Operation::Read { .. }) {
            self.given.deliver();
        }
        is_all
    }
}

/// All requests of a worker. A number is a slot's as long as it is taken.
#[derive(Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
    spare: Bounces,
}

impl Slots {
    /// A free slot, for a request like this.
    pub(super) fn reserve(&mut self, request: Request) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::free(request));
            self.slots.len() as u32 - 1
        })
    }

    pub(super) fn get(&mut self, number: u32) -> Option<&mut Slot> {
        self.slots.get_mut(number as usize)
    }

    /// Finds the memory of a request's present part.
    pub(super) fn prepare(&mut self, number: u32, to: Alignment) {
        if let Some(slot) = self.slots.get_mut(number as usize) {
            slot.prepare(to, &mut self.spare);
        }
    }

    /// A request waits for its turn, and needs no memory of its own meanwhile.
    pub(super) fn give_back(&mut self, number: u32) {
        if let Some(slot) = self.slots.get_mut(number as usize) {
            slot.given.give_back(&mut self.spare);
        }
    }

    /// Those that are taken.
    pub(super) fn taken(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(|slot| slot.memory.is_some())
    }

    /// It is answered.
    pub(super) fn release(&mut self, number: u32) {
        if let Some(slot) = self.slots.get_mut(number as usize) {
            slot.memory = None;
            slot.given.give_back(&mut self.spare);
            slot.given.shrink_to(PIECES_KEPT);
            slot.pieces.clear();
            slot.pieces.shrink_to(PIECES_KEPT);
            self.free.push(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Alignment, Bounces, PIECES_KEPT, Slot, Slots};
    use crate::request::{Operation, PART_BYTES_MAX};
    use crate::transfer::Action;
    use libc::iovec;
    use minerva_blocksched::{FlowId, Kind, Request, RequestId};
    use minerva_model::Nanos;

    const PART: u32 = PART_BYTES_MAX;

    fn request(kind: Kind, length_bytes: u32) -> Request {
        Request {
            id: RequestId(0),
            flow: FlowId(0),
            kind,
            sync: true,
            tag: None,
            offset_bytes: 4096,
            length_bytes,
            arrived: Nanos(5),
        }
    }

    #[test]
    fn zeroes_are_durable_before_they_are_answered_where_each_write_is() {
        let operation = Operation::WriteZeroes { offset_bytes: 4096, length_bytes: 0, may_unmap: false };
        for is_durable in [true, false] {
            let mut slot = Slot::free(request(Kind::Write, 0));
            let mut part = slot.take(operation, request(Kind::Write, 2 * PART + 512));
            let mut lengths = vec![part.length_bytes];
            while let Some(next) = slot.next_part(Nanos(9)) {
                assert_eq!(next.offset_bytes, part.end_bytes());
                part = next;
                lengths.push(part.length_bytes);
                slot.prepare(Alignment { memory: 512, block_bytes: 512 }, &mut Bounces::default());
                assert!(
                    matches!(slot.action(is_durable), Action::Allocate { length, .. } if length == u64::from(part.length_bytes))
                );
            }
            assert_eq!((lengths, slot.whole.arrived), (vec![PART, PART, 512], Nanos(5)));
            assert!([true, false].iter().all(|shares| slot.must_sync(is_durable, *shares) == is_durable));
            slot.begin_to_sync();
            assert!(
                matches!(slot.action(is_durable), Action::Sync)
                    && !slot.must_sync(is_durable, true)
                    && !slot.is_transfer()
            );
        }
    }

    #[test]
    fn a_durable_write_has_a_sync_behind_it_where_syncs_are_shared() {
        let mut slot = Slot::free(request(Kind::Write, 0));
        slot.take(Operation::Write { offset_bytes: 4096 }, request(Kind::Write, 512));
        let of = |slot: &Slot| {
            [(true, true), (true, false), (false, true)].map(|(durable, shares)| slot.must_sync(durable, shares))
        };
        assert_eq!((of(&slot), slot.is_sync(), slot.is_transfer()), ([true, false, false], false, true));
        slot.begin_to_sync();
        assert_eq!((of(&slot), slot.is_sync(), slot.is_transfer()), ([false; 3], true, false));
        slot.take(Operation::Read { offset_bytes: 4096 }, request(Kind::Read, 512));
        assert_eq!((of(&slot), slot.is_sync()), ([false; 3], false));
        slot.take(Operation::Flush, request(Kind::Flush, 0));
        assert_eq!((of(&slot), slot.is_sync()), ([false; 3], true));
    }

    #[test]
    fn a_free_slot_keeps_room_for_the_pieces_of_a_usual_request_however_many_there_were() {
        let mut memory = vec![0u8; 1000];
        let at = &raw mut memory[0];
        for (count, kept) in [(1000, 0..=PIECES_KEPT), (PIECES_KEPT, PIECES_KEPT..=PIECES_KEPT)] {
            let (mut slots, length) = (Slots::default(), count as u32);
            let number = slots.reserve(request(Kind::Write, length));
            let slot = slots.get(number).unwrap();
            slot.take(Operation::Write { offset_bytes: 4096 }, request(Kind::Write, length));
            slot.pieces =
                (0..count).map(|piece| iovec { iov_base: at.wrapping_add(piece).cast(), iov_len: 1 }).collect();
            slots.prepare(number, Alignment { memory: 1, block_bytes: 512 });
            assert!(slots.slots[0].given.capacity() >= count);
            slots.release(number);
            let slot = &slots.slots[0];
            for capacity in [slot.pieces.capacity(), slot.given.capacity()] {
                assert!(kept.contains(&capacity), "{capacity} of {count}");
            }
        }
    }
}
