//! A driver's side of a split virtqueue.

use crate::kind;
use crate::request::{Answer, DIRECT, Layout, PAGE, Request};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};
use vm_memory::{Bytes, GuestAddress, GuestMemoryMmap};
use vmm_sys_util::eventfd::{EFD_NONBLOCK, EventFd};

const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;
/// Where in a slot's first page what lies.
const AT_STATUS: u64 = 64;
const AT_TABLE: u64 = 128;
/// Pieces that an indirect table of the first page has room for, header and status included.
const PIECES_MAX: u32 = 200;

/// One ring.
pub struct ClientRing {
    memory: Arc<GuestMemoryMmap>,
    layout: Layout,
    has_event_index: bool,
    /// The table.
    pub descriptors: GuestAddress,
    /// The available ring.
    pub available: GuestAddress,
    /// The used ring.
    pub used: GuestAddress,
    slots: u64,
    /// What the server waits for.
    pub kick: EventFd,
    /// What the server signals.
    pub call: EventFd,
    free: Vec<u16>,
    /// By slot.
    is_free: Vec<bool>,
    /// Of the request that was made last; kept, so that a measurement does not measure the allocator.
    chain: Vec<(u64, u32, u16)>,
    available_index: u16,
    kicked_index: u16,
    used_seen: u16,
}

impl ClientRing {
    pub(crate) fn new(memory: Arc<GuestMemoryMmap>, start: u64, layout: Layout, has_event_index: bool) -> Self {
        let size = usize::from(layout.size);
        let available = start + (size * 16).next_multiple_of(PAGE) as u64;
        let used = available + (size * 2 + 6).next_multiple_of(PAGE) as u64;
        let counter = || EventFd::new(EFD_NONBLOCK).expect("an event counter");
        Self {
            memory,
            layout,
            has_event_index,
            descriptors: GuestAddress(start),
            available: GuestAddress(available),
            used: GuestAddress(used),
            slots: start + layout.tables_bytes() as u64,
            kick: counter(),
            call: counter(),
            free: (0..layout.slots()).rev().collect(),
            is_free: vec![true; usize::from(layout.slots())],
            chain: Vec::new(),
            available_index: 0,
            kicked_index: 0,
            used_seen: 0,
        }
    }

    /// Slots with nothing under way.
    pub fn free_slots(&self) -> usize {
        self.free.len()
    }

    /// Requests under way.
    pub fn under_way(&self) -> usize {
        usize::from(self.layout.slots()) - self.free.len()
    }

    /// Where a slot's data lies.
    pub fn data(&self, slot: u16) -> GuestAddress {
        GuestAddress(self.slot(slot) + PAGE as u64)
    }

    fn slot(&self, slot: u16) -> u64 {
        self.slots + u64::from(slot) * self.layout.slot_bytes() as u64
    }

    /// The slot that the next request gets.
    pub fn next_slot(&self) -> Option<u16> {
        self.free.last().copied()
    }

    /// Makes a request available, with whatever its slot's data holds; the server hears of it with [`ClientRing::kick`].
    pub fn submit(&mut self, request: &Request) -> u16 {
        let slot = self.free.pop().expect("a free slot");
        self.is_free[usize::from(slot)] = false;
        let at = self.slot(slot);
        let mut header = [0; 16];
        header[..4].copy_from_slice(&request.kind.to_le_bytes());
        header[4..8].copy_from_slice(&request.ioprio.to_le_bytes());
        header[8..].copy_from_slice(&request.sector.to_le_bytes());
        self.put(at, header);
        self.put(at + AT_STATUS, [0xffu8]);
        let flags = if matches!(request.kind, kind::IN | kind::GET_ID) { WRITE } else { 0 };
        let mut chain = std::mem::take(&mut self.chain);
        chain.clear();
        chain.push((at, 16, 0));
        let pieces = request.pieces.clamp(1, PIECES_MAX);
        let data = at + PAGE as u64 + u64::from(request.skip);
        for piece in (0..pieces).filter(|_| request.length > 0) {
            let (begin, end) = (piece * (request.length / pieces), (piece + 1) * (request.length / pieces));
            let end = if piece + 1 == pieces { request.length } else { end };
            chain.push((data + u64::from(begin), end - begin, flags));
        }
        chain.push((at + AT_STATUS, 1, WRITE));
        self.publish_chain(slot, &chain);
        self.chain = chain;
        slot
    }

    fn publish_chain(&mut self, slot: u16, chain: &[(u64, u32, u16)]) {
        let (table, first, head) = if self.layout.is_indirect {
            (self.slot(slot) + AT_TABLE, 0, slot)
        } else {
            assert!(chain.len() <= usize::from(DIRECT), "a chain without a table has three descriptors");
            (self.descriptors.0, slot * DIRECT, slot * DIRECT)
        };
        for (number, (address, length, flags)) in chain.iter().enumerate() {
            let index = first + number as u16;
            let has_next = number + 1 < chain.len();
            let flags = flags | if has_next { NEXT } else { 0 };
            self.put_descriptor(table, index, *address, *length, flags, if has_next { index + 1 } else { 0 });
        }
        if self.layout.is_indirect {
            self.put_descriptor(self.descriptors.0, slot, table, chain.len() as u32 * 16, INDIRECT, 0);
        }
        self.make_available(head);
    }

    /// Writes one descriptor of a table.
    pub fn put_descriptor(&self, table: u64, index: u16, address: u64, length: u32, flags: u16, next: u16) {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&address.to_le_bytes());
        bytes[8..12].copy_from_slice(&length.to_le_bytes());
        bytes[12..14].copy_from_slice(&flags.to_le_bytes());
        bytes[14..].copy_from_slice(&next.to_le_bytes());
        self.put(table + u64::from(index) * 16, bytes);
    }

    /// Makes a chain available, whatever it is.
    pub fn make_available(&mut self, head: u16) {
        let place = u64::from(self.available_index % self.layout.size);
        self.put(self.available.0 + 4 + place * 2, head);
        self.available_index = self.available_index.wrapping_add(1);
        fence(Ordering::Release);
        self.put(self.available.0 + 2, self.available_index);
    }

    /// Moves the available index alone.
    pub fn set_available_index(&mut self, index: u16) {
        self.available_index = index;
        self.put(self.available.0 + 2, index);
    }

    /// As a ring that has been in use for long: both indices, and what was seen and told of them.
    pub fn set_indices(&mut self, index: u16) {
        self.set_available_index(index);
        self.put(self.used.0 + 2, index);
        (self.kicked_index, self.used_seen) = (index, index);
    }

    /// Tells the server of what became available, if it wants to hear of it; whether it did.
    pub fn kick(&mut self) -> bool {
        fence(Ordering::SeqCst);
        let (old, new) = (self.kicked_index, self.available_index);
        self.kicked_index = new;
        let is_wanted = if self.has_event_index {
            let event: u16 = self.get(self.used.0 + 4 + u64::from(self.layout.size) * 8);
            new.wrapping_sub(event).wrapping_sub(1) < new.wrapping_sub(old)
        } else {
            self.get::<u16>(self.used.0) & 1 == 0
        };
        if is_wanted {
            self.force_kick();
        }
        is_wanted
    }

    /// Tells the server, whatever it wants.
    pub fn force_kick(&self) {
        self.kick.write(1).expect("a signal");
    }

    /// The server's index of the used ring.
    pub fn used_index(&self) -> u16 {
        self.get(self.used.0 + 2)
    }

    /// The next answer, if there is one.
    pub fn poll(&mut self) -> Option<Answer> {
        if self.used_index() == self.used_seen {
            return None;
        }
        fence(Ordering::Acquire);
        let place = self.used.0 + 4 + u64::from(self.used_seen % self.layout.size) * 8;
        let (head, written): (u32, u32) = (self.get(place), self.get(place + 4));
        self.used_seen = self.used_seen.wrapping_add(1);
        let slot = if self.layout.is_indirect { head as u16 } else { head as u16 / DIRECT };
        let status = self.get(self.slot(slot) + AT_STATUS);
        let is_free = &mut self.is_free[usize::from(slot)];
        assert!(!*is_free, "an answer to a request that was not made: {slot}");
        *is_free = true;
        self.free.push(slot);
        Some(Answer { slot, status, written })
    }

    /// The next answer, waiting for the server's signal; none when it does not come in time.
    pub fn wait(&mut self, patience: Duration) -> Option<Answer> {
        let begun = Instant::now();
        loop {
            if let Some(answer) = self.poll() {
                return Some(answer);
            }
            if self.has_event_index {
                self.put(self.available.0 + 4 + u64::from(self.layout.size) * 2, self.used_seen);
                fence(Ordering::SeqCst);
                if self.used_index() != self.used_seen {
                    continue;
                }
            }
            let left = patience.checked_sub(begun.elapsed())?;
            let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
            // SAFETY: the counter is open as long as the ring is.
            let call = unsafe { BorrowedFd::borrow_raw(std::os::fd::AsRawFd::as_raw_fd(&self.call)) };
            let _ = poll(&mut [PollFd::new(&call, PollFlags::IN)], Some(&left));
            let _ = self.call.read();
        }
    }

    /// Makes one request and waits for its answer.
    pub fn ask(&mut self, request: &Request) -> Answer {
        self.submit(request);
        self.kick();
        self.wait(Duration::from_secs(60)).expect("an answer within a minute")
    }

    fn put<T: vm_memory::ByteValued>(&self, at: u64, value: T) {
        self.memory.write_obj(value, GuestAddress(at)).expect("within the memory");
    }

    fn get<T: vm_memory::ByteValued>(&self, at: u64) -> T {
        self.memory.read_obj(GuestAddress(at)).expect("within the memory")
    }
}
