//! What fuzzers call: a guest's memory holds whatever they say, and its ring and chains are read by the code that serves guests.

use crate::chain::{Chain, Direction};
use crate::mapped::Memory;
use crate::request::{Geometry, Header, Operation};
use crate::ring::{Ring, RingSetup};
use crate::signal::Signaller;
use crate::split::RingLayout;
use rustix::event::{EventfdFlags, eventfd};
use std::fs::File;
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Arc;
use vm_memory::{GuestAddress, GuestRegionMmap};

const MEMORY_BYTES: u64 = 64 << 10;
const FIRST_BYTES: u64 = 16 << 10;
const RING_SIZE: u16 = 16;
/// Where a ring of that size has its parts.
const AVAILABLE: u64 = RING_SIZE as u64 * 16;
const USED: u64 = 0x200;
const DISK: Geometry = Geometry { sectors: 1 << 11, block_bytes: 512, is_read_only: false };

thread_local! {
    // Kept, as giving it back to the kernel takes some 30 ms.
    static SIGNALLER: Option<Rc<Signaller>> = Signaller::open().ok().map(Rc::new);
}

/// Serves all that a ring in this memory makes available. Judged: no panic, no more requests than descriptors, and no piece outside the
/// memory.
pub fn ring(bytes: &[u8]) {
    let region = |(start, length)| GuestRegionMmap::from_range(GuestAddress(start), length as usize, None).ok();
    // Two regions that follow each other, as buffers may lie across them.
    let regions = [(0, FIRST_BYTES), (FIRST_BYTES, MEMORY_BYTES - FIRST_BYTES)].into_iter().map(region).collect();
    let Some(memory) = Option::and_then(regions, Memory::new) else { return };
    let memory = Arc::new(memory);
    let length = bytes.len().min(MEMORY_BYTES as usize);
    if memory.write(GuestAddress(0), &bytes[..length]).is_none() {
        return;
    }
    let Ok(kick) = eventfd(0, EventfdFlags::NONBLOCK) else { return };
    let setup = RingSetup {
        place: RingLayout {
            size: RING_SIZE,
            descriptors: GuestAddress(0),
            available: GuestAddress(AVAILABLE),
            used: GuestAddress(USED),
        },
        next_available: 0,
        has_event_index: bytes.first().is_some_and(|byte| byte & 1 == 1),
        memory: Arc::clone(&memory),
        kick: File::from(kick),
        call: None,
        inflight: None,
        begun: Vec::new(),
    };
    let signaller = SIGNALLER.with(Option::clone);
    assert!(signaller.is_some(), "needs the kernel's asynchronous I/O");
    let Some(mut ring) = signaller.and_then(|signaller| Ring::start(setup, signaller)) else { return };
    let (mut chain, mut heads) = (Chain::default(), Vec::new());
    while let Some(taken) = ring.take(&mut chain) {
        if let Ok(frame) = taken.frame {
            judge(&chain, &memory, &frame.header, frame.lengths);
        }
        heads.push(taken.head);
        assert!(heads.len() <= usize::from(RING_SIZE), "more requests than descriptors");
    }
    for head in heads {
        ring.publish(head, 1);
    }
    ring.publish_all();
    ring.tell();
    assert_eq!(ring.under_way(), 0, "each is answered once");
}

fn judge(chain: &Chain, memory: &Memory, header: &[u8; 16], lengths: crate::request::Lengths) {
    let header = Header::parse(header);
    let range = if header.has_range() { chain.range(memory) } else { None };
    let direction = match Operation::judge(&header, lengths, range.as_ref(), &DISK) {
        Ok(Operation::Read { .. }) => Direction::Writable,
        Ok(Operation::Write { .. }) => Direction::Readable,
        _ => return,
    };
    let mut pieces = Vec::new();
    if chain.locate(memory, direction, &mut pieces).is_none() {
        return;
    }
    let mut mapped = Vec::new();
    let note = |place: NonNull<u8>, length| mapped.push((place.as_ptr() as usize, length));
    if memory.pieces(GuestAddress(0), MEMORY_BYTES, note).is_none() {
        return;
    }
    for piece in pieces {
        let first = piece.iov_base as usize;
        let is_in = |(start, length): &(usize, usize)| *start <= first && first + piece.iov_len <= start + length;
        assert!(mapped.iter().any(is_in), "outside the guest's memory");
    }
}

#[cfg(test)]
mod tests {
    use super::{AVAILABLE, ring};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whatever_lies_in_a_guests_memory_is_survived(
            table in proptest::collection::vec((0..0x1_1000u64, 0..0x2000u32, 0..8u16, 0..20u16), 16),
            heads in proptest::collection::vec(0..18u16, 16),
            available: u16,
            noise in proptest::collection::vec(any::<u8>(), 0..4096),
        ) {
            let mut bytes = Vec::new();
            for (address, length, flags, next) in table {
                bytes.extend(address.to_le_bytes());
                bytes.extend(length.to_le_bytes());
                bytes.extend(flags.to_le_bytes());
                bytes.extend(next.to_le_bytes());
            }
            prop_assert_eq!(bytes.len() as u64, AVAILABLE);
            bytes.extend([0, 0]);
            bytes.extend((available % 20).to_le_bytes());
            bytes.extend(heads.iter().flat_map(|head| head.to_le_bytes()));
            bytes.resize(0x400, 0);
            bytes.extend(noise);
            ring(&bytes);
        }
    }
}
