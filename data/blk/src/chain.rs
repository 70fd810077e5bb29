//! A descriptor chain of a guest: walked once, each descriptor judged and copied, and its buffers found in this process's
//! memory. The guest may write to its rings at any time, so nothing is read twice.

use crate::mapped::Memory;
use crate::request::{HEADER_BYTES, Lengths, RANGE_BYTES};
use crate::split::{Descriptor, SplitRing};
use libc::iovec;
use std::ptr::NonNull;
use vm_memory::{Address, GuestAddress};

/// Descriptors of one chain. Drivers keep to [`crate::request::SEGMENTS_MAX`] buffers and two more; more than a system call takes can never be
/// served.
const DESCRIPTORS_MAX: u32 = 1024;
const DESCRIPTOR_BYTES: u32 = 16;

/// A part of the guest's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Buffer {
    address: GuestAddress,
    length: u32,
}

/// What is wrong with a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// There is no place for an answer: it is given back without one.
    NoStatus,
    /// It is answered with an error here.
    Status(GuestAddress),
}

/// The chain that was read last; kept, so that the next one allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    readable: Vec<Buffer>,
    writable: Vec<Buffer>,
    header: [u8; HEADER_BYTES],
    header_length: usize,
    walked: u32,
}

/// What a chain holds besides its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) header: [u8; HEADER_BYTES],
    /// Where the answer goes.
    pub(crate) status: GuestAddress,
    /// Of the data.
    pub(crate) lengths: Lengths,
}

/// Which of a chain's buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// What the device reads.
    Readable,
    /// What the device writes.
    Writable,
}

impl Chain {
    /// Reads the chain that begins at `head` of a ring's table.
    pub(crate) fn read(&mut self, ring: &SplitRing, head: u16) -> Result<Frame, Malformed> {
        self.readable.clear();
        self.writable.clear();
        self.header_length = 0;
        self.walked = 0;
        self.walk(ring, head).ok_or(Malformed::NoStatus)?;
        let last = self.writable.last_mut().ok_or(Malformed::NoStatus)?;
        last.length -= 1;
        let status = last.address.checked_add(u64::from(last.length)).ok_or(Malformed::NoStatus)?;
        ring.memory().place(status, 1).ok_or(Malformed::NoStatus)?;
        if self.header_length < HEADER_BYTES {
            return Err(Malformed::Status(status));
        }
        let sum = |buffers: &[Buffer]| buffers.iter().map(|buffer| u64::from(buffer.length)).sum();
        let lengths = Lengths { readable: sum(&self.readable), writable: sum(&self.writable) };
        Ok(Frame { header: self.header, status, lengths })
    }

    /// Descriptors that were read of it, whatever it was.
    pub(crate) fn walked(&self) -> u32 {
        self.walked
    }

    /// The readable data, if it is as long as one range.
    pub(crate) fn range(&self, memory: &Memory) -> Option<[u8; RANGE_BYTES]> {
        let mut bytes = [0; RANGE_BYTES];
        let mut filled = 0;
        for buffer in &self.readable {
            let end = filled + buffer.length as usize;
            memory.read(buffer.address, bytes.get_mut(filled..end)?)?;
            filled = end;
        }
        (filled == RANGE_BYTES).then_some(bytes)
    }

    /// Writes to the beginning of the writable data; false where it is not in the guest's memory, or shorter.
    pub(crate) fn fill(&self, memory: &Memory, mut bytes: &[u8]) -> bool {
        for buffer in &self.writable {
            let (now, later) = bytes.split_at(bytes.len().min(buffer.length as usize));
            if memory.write(buffer.address, now).is_none() {
                return false;
            }
            bytes = later;
        }
        bytes.is_empty()
    }

    /// Where the data lies in this process, one piece after the other. None where a buffer is not in the guest's memory.
    /// The pieces are valid as long as `memory` is.
    pub(crate) fn locate(&self, memory: &Memory, direction: Direction, pieces: &mut Vec<iovec>) -> Option<()> {
        pieces.clear();
        let buffers = match direction {
            Direction::Readable => &self.readable,
            Direction::Writable => &self.writable,
        };
        for buffer in buffers {
            let piece = |iov_len, place: NonNull<u8>| iovec { iov_base: place.as_ptr().cast(), iov_len };
            memory.pieces(buffer.address, u64::from(buffer.length), |place, length| {
                pieces.push(piece(length, place));
            })?;
        }
        (pieces.len() <= DESCRIPTORS_MAX as usize).then_some(())
    }

    /// None where the chain does not end as it should.
    fn walk(&mut self, ring: &SplitRing, head: u16) -> Option<()> {
        let memory = ring.memory();
        let mut table = None;
        let mut size = u32::from(ring.size());
        let (mut next, mut left) = (u32::from(head), size.min(DESCRIPTORS_MAX));
        loop {
            // A chain of more descriptors than there are goes in a circle.
            if next >= size || left == 0 {
                return None;
            }
            left -= 1;
            self.walked += 1;
            let descriptor = match table {
                None => ring.descriptor(next as u16)?,
                Some(table) => in_table(memory, table, next)?,
            };
            if descriptor.refers_to_table() {
                let is_whole = descriptor.length > 0 && descriptor.length.is_multiple_of(DESCRIPTOR_BYTES);
                if table.is_some() || !is_whole || descriptor.has_next() {
                    return None;
                }
                (table, size) = (Some(descriptor.address), descriptor.length / DESCRIPTOR_BYTES);
                (next, left) = (0, size.min(DESCRIPTORS_MAX));
                continue;
            }
            self.take(memory, &descriptor)?;
            if !descriptor.has_next() {
                return Some(());
            }
            next = u32::from(descriptor.next);
        }
    }

    fn take(&mut self, memory: &Memory, descriptor: &Descriptor) -> Option<()> {
        let mut buffer = Buffer { address: descriptor.address, length: descriptor.length };
        if buffer.length == 0 {
            return None;
        }
        if descriptor.is_write_only() {
            self.writable.push(buffer);
            return Some(());
        }
        // What the device reads comes before what it writes.
        if !self.writable.is_empty() {
            return None;
        }
        let of_header = (HEADER_BYTES - self.header_length).min(buffer.length as usize);
        if of_header == HEADER_BYTES {
            self.header = memory.block(buffer.address)?;
        } else {
            let into = &mut self.header[self.header_length..self.header_length + of_header];
            memory.read(buffer.address, into)?;
        }
        if of_header > 0 {
            self.header_length += of_header;
            buffer.address = buffer.address.checked_add(of_header as u64)?;
            buffer.length -= of_header as u32;
        }
        if buffer.length > 0 {
            self.readable.push(buffer);
        }
        Some(())
    }
}

/// A descriptor of a table that a descriptor refers to, wherever it lies.
fn in_table(memory: &Memory, table: GuestAddress, number: u32) -> Option<Descriptor> {
    memory.block(table.checked_add(u64::from(number) * u64::from(DESCRIPTOR_BYTES))?).map(Descriptor::parse)
}
