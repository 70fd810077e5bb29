//! Requests between their ring and their answer.

use crate::mapped::Lease;
use crate::request::Operation;
use crate::transfer::{Action, Pieces};
use libc::iovec;
use minerva_blocksched::Request;
use minerva_model::Nanos;
use vm_memory::GuestAddress;

/// What a write-zeroes request writes where the file system or disk has no other way.
#[repr(align(4096))]
struct Zeroes([u8; 64 << 10]);
static ZEROES: Zeroes = Zeroes([0; 64 << 10]);

/// A longer buffer is not kept for the next request.
const BOUNCE_BYTES_KEPT: usize = 256 << 10;

/// Which ring of which disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RingKey {
    pub(crate) disk: usize,
    pub(crate) queue: usize,
}

/// One request. Its lists are kept for the next one in the same slot.
pub(super) struct Slot {
    pub(super) key: RingKey,
    pub(super) head: u16,
    pub(super) status: GuestAddress,
    /// Held, so that what the pieces name stays mapped until the kernel is done with it. None while the slot is free.
    pub(super) memory: Option<Lease>,
    pub(super) operation: Operation,
    pub(super) request: Request,
    /// The scheduler sent it and is told when it completes.
    pub(super) is_scheduled: bool,
    /// When it was given to the disk.
    pub(super) sent: Nanos,
    /// What the clock of the host's disk said then.
    pub(super) begun: u64,
    /// From when its disk's contract allows it.
    pub(super) allowed: Nanos,
    /// An application of the guest gave it its priority.
    pub(super) is_tagged: bool,
    /// Where its data lies in the guest's memory.
    pub(super) pieces: Vec<iovec>,
    /// What the kernel is given: the pieces, or the bounce buffer, less what is done.
    given: Vec<iovec>,
    given_first: usize,
    bounce: Vec<u8>,
    bounce_start: usize,
    is_bounced: bool,
    is_zeroing: bool,
    done_bytes: u64,
}

impl Slot {
    fn free(request: Request) -> Self {
        Self {
            key: RingKey { disk: 0, queue: 0 },
            head: 0,
            status: GuestAddress(0),
            memory: None,
            operation: Operation::Flush,
            request,
            is_scheduled: false,
            sent: Nanos::ZERO,
            begun: 0,
            allowed: Nanos::ZERO,
            is_tagged: false,
            pieces: Vec::new(),
            given: Vec::new(),
            given_first: 0,
            bounce: Vec::new(),
            bounce_start: 0,
            is_bounced: false,
            is_zeroing: false,
            done_bytes: 0,
        }
    }

    /// Zeroes are written, because nothing better is known to the file system or disk.
    pub(super) fn is_zeroing(&self) -> bool {
        self.is_zeroing
    }

    /// Bytes that a read or write moves.
    pub(super) fn data_bytes(&self) -> u64 {
        match self.operation {
            Operation::Read { .. } | Operation::Write { .. } => u64::from(self.request.length_bytes),
            Operation::WriteZeroes { length_bytes, .. } => length_bytes,
            Operation::Flush | Operation::Discard { .. } | Operation::GetId => 0,
        }
    }

    /// Its bytes, if it is a read or a write of the guest's.
    pub(super) fn transfer_bytes(&self) -> Option<u64> {
        matches!(self.operation, Operation::Read { .. } | Operation::Write { .. }).then(|| self.data_bytes())
    }

    /// Makes the list for the kernel: of the guest's own memory where direct I/O can reach it, else of a buffer that fits.
    pub(super) fn prepare(&mut self, memory_alignment: usize, block_bytes: u32) {
        self.given.clear();
        self.given_first = 0;
        self.done_bytes = 0;
        self.is_zeroing = false;
        let block = if memory_alignment > 1 { block_bytes as usize } else { 1 };
        let fits = |piece: &iovec| {
            (piece.iov_base as usize).is_multiple_of(memory_alignment) && piece.iov_len.is_multiple_of(block)
        };
        self.is_bounced = !self.pieces.iter().all(fits);
        if !self.is_bounced {
            self.given.extend_from_slice(&self.pieces);
            return;
        }
        let length = self.pieces.iter().map(|piece| piece.iov_len).sum::<usize>();
        self.bounce.resize(length + memory_alignment, 0);
        self.bounce_start = self.bounce.as_ptr().align_offset(memory_alignment);
        let mut target = self.bounce[self.bounce_start..].as_mut_ptr();
        self.given.push(iovec { iov_base: target.cast(), iov_len: length });
        if matches!(self.operation, Operation::Write { .. }) {
            for piece in &self.pieces {
                // SAFETY: the pieces were located in memory that is mapped as long as `memory`, the buffer is as long as all of
                // them, and the two are apart. The guest may write meanwhile: then bytes of both are written, as on any disk.
                unsafe {
                    std::ptr::copy_nonoverlapping(piece.iov_base.cast::<u8>(), target, piece.iov_len);
                    target = target.add(piece.iov_len);
                }
            }
        }
    }

    /// A write-zeroes request becomes a write of zeroes.
    pub(super) fn prepare_zeroes(&mut self, length_bytes: u64) {
        self.given.clear();
        self.given_first = 0;
        self.done_bytes = 0;
        self.is_zeroing = true;
        let mut left = length_bytes as usize;
        while left > 0 {
            let now = left.min(ZEROES.0.len());
            self.given.push(iovec { iov_base: ZEROES.0.as_ptr().cast_mut().cast(), iov_len: now });
            left -= now;
        }
    }

    /// What the kernel is to do now. Direct discards and zeroes fail where the file system or disk knows neither.
    pub(super) fn action(&self, is_durable: bool) -> Action {
        const KEEP: i32 = libc::FALLOC_FL_KEEP_SIZE;
        let pieces = |offset_bytes| {
            let given = &self.given[self.given_first..];
            Pieces { first: given.as_ptr(), count: given.len() as u32, offset: offset_bytes + self.done_bytes }
        };
        match self.operation {
            Operation::Read { offset_bytes } => Action::Read(pieces(offset_bytes)),
            Operation::Write { offset_bytes } => Action::Write(pieces(offset_bytes), is_durable),
            Operation::WriteZeroes { offset_bytes, .. } if self.is_zeroing => {
                Action::Write(pieces(offset_bytes), is_durable)
            }
            Operation::WriteZeroes { offset_bytes: offset, length_bytes: length, may_unmap } => {
                let how = if may_unmap { libc::FALLOC_FL_PUNCH_HOLE } else { libc::FALLOC_FL_ZERO_RANGE };
                Action::Allocate { mode: how | KEEP, offset, length }
            }
            Operation::Discard { offset_bytes: offset, length_bytes: length } => {
                Action::Allocate { mode: libc::FALLOC_FL_PUNCH_HOLE | KEEP, offset, length }
            }
            // A serial number is told without the disk.
            Operation::Flush | Operation::GetId => Action::Sync,
        }
    }

    /// So many bytes more were moved; whether that is all of them.
    pub(super) fn moved(&mut self, mut bytes: usize) -> bool {
        self.done_bytes += bytes as u64;
        while let Some(piece) = self.given.get_mut(self.given_first) {
            if bytes < piece.iov_len {
                piece.iov_base = piece.iov_base.cast::<u8>().wrapping_add(bytes).cast();
                piece.iov_len -= bytes;
                return false;
            }
            bytes -= piece.iov_len;
            self.given_first += 1;
        }
        true
    }

    /// A read that went into the bounce buffer goes to the guest.
    pub(super) fn deliver(&mut self) {
        if !self.is_bounced || !matches!(self.operation, Operation::Read { .. }) {
            return;
        }
        let mut source = self.bounce[self.bounce_start..].as_ptr();
        for piece in &self.pieces {
            // SAFETY: as in `prepare`, the other way.
            unsafe {
                std::ptr::copy_nonoverlapping(source, piece.iov_base.cast::<u8>(), piece.iov_len);
                source = source.add(piece.iov_len);
            }
        }
    }
}

/// All requests of a worker. A number is a slot's as long as it is taken.
#[derive(Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
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

    /// Those that are taken.
    pub(super) fn taken(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(|slot| slot.memory.is_some())
    }

    /// It is answered.
    pub(super) fn release(&mut self, number: u32) {
        if let Some(slot) = self.slots.get_mut(number as usize) {
            slot.memory = None;
            if slot.bounce.capacity() > BOUNCE_BYTES_KEPT {
                slot.bounce = Vec::new();
            }
            self.free.push(number);
        }
    }
}
