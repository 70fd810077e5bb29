//! One split virtqueue in service: what its guest makes available is taken, what is done is published, and the guest is told
//! where it wants to be. Nothing that a guest writes there is an error of this process: a ring that makes no sense is *broken*, which
//! ends its service until it is set up anew.

use crate::chain::{Chain, Frame, Malformed};
use crate::inflight::InflightQueue;
use crate::memory::Memory;
use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use virtio_queue::{Queue, QueueOwnedT, QueueT};
use vm_memory::{Bytes, GuestAddress};

/// The greatest ring. QEMU's are 128 unless it is told otherwise.
pub(crate) const RING_SIZE_MAX: u16 = 1024;

/// How a ring was set up.
#[derive(Debug)]
pub(crate) struct RingSetup {
    pub(crate) size: u16,
    pub(crate) descriptors: GuestAddress,
    pub(crate) available: GuestAddress,
    pub(crate) used: GuestAddress,
    /// From where in the available ring.
    pub(crate) next_available: u16,
    pub(crate) has_event_index: bool,
    pub(crate) memory: Arc<Memory>,
    pub(crate) kick: File,
    pub(crate) call: Option<File>,
    pub(crate) inflight: Option<InflightQueue>,
    /// Heads that the server before had taken and not begun at the disk; where there is an inflight region, it tells them too.
    pub(crate) begun: Vec<u16>,
}

/// A chain that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) head: u16,
    pub(crate) frame: Result<Frame, Malformed>,
}

/// A ring in service.
#[derive(Debug)]
pub(crate) struct Ring {
    queue: Queue,
    memory: Arc<Memory>,
    kick: File,
    call: Option<File>,
    inflight: Option<InflightQueue>,
    /// Heads that a crash left begun: they come before what is available.
    again: VecDeque<u16>,
    /// Heads that were taken and not published: a guest that makes one available twice would have more requests under way than
    /// its ring has descriptors.
    taken: Vec<bool>,
    under_way: u16,
    is_broken: bool,
    has_published: bool,
}

impl Ring {
    /// Puts a ring into service; none where it does not lie in the guest's memory.
    pub(crate) fn start(setup: RingSetup) -> Option<Self> {
        let mut queue = Queue::new(RING_SIZE_MAX).ok()?;
        queue.try_set_size(setup.size).ok()?;
        queue.try_set_desc_table_address(setup.descriptors).ok()?;
        queue.try_set_avail_ring_address(setup.available).ok()?;
        queue.try_set_used_ring_address(setup.used).ok()?;
        queue.set_event_idx(setup.has_event_index);
        queue.set_ready(true);
        let memory = setup.memory;
        if !queue.is_valid(&*memory) {
            return None;
        }
        let used = queue.used_idx(&*memory, Ordering::Acquire).ok()?.0;
        let mut inflight = setup.inflight;
        let again: VecDeque<u16> = inflight.as_mut().map_or(setup.begun, |queue| queue.recover(used)).into();
        // What was begun was taken one after the other, behind what was answered.
        let is_after_crash = !again.is_empty();
        let next = if is_after_crash { used.wrapping_add(again.len() as u16) } else { setup.next_available };
        queue.set_next_avail(next);
        queue.set_next_used(used);
        let taken = vec![false; usize::from(setup.size)];
        let (kick, call) = (setup.kick, setup.call);
        let mut ring = Self {
            queue,
            memory,
            kick,
            call,
            inflight,
            again,
            taken,
            under_way: 0,
            is_broken: false,
            has_published: false,
        };
        // The guest may wait for answers that were published and not told.
        ring.signal();
        Some(ring)
    }

    pub(crate) fn kick(&self) -> BorrowedFd<'_> {
        self.kick.as_fd()
    }

    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// The next requests are in this memory. Those under way hold the one that they were taken from.
    pub(crate) fn set_memory(&mut self, memory: Arc<Memory>) {
        self.memory = memory;
        self.is_broken |= !self.queue.is_valid(&*self.memory);
    }

    pub(crate) fn set_call(&mut self, call: Option<File>) {
        self.call = call;
        // What was published since the front end changed it may not have been heard.
        self.signal();
    }

    /// Taken and not published.
    pub(crate) fn under_way(&self) -> u16 {
        self.under_way
    }

    /// From where the next one to serve this ring goes on.
    pub(crate) fn next_available(&self) -> u16 {
        self.queue.next_avail()
    }

    /// Takes the next chain, if the guest made one available.
    pub(crate) fn take(&mut self, chain: &mut Chain) -> Option<Taken> {
        let head = self.next_head()?;
        let slot = self.taken.get_mut(usize::from(head));
        match slot {
            Some(slot) if !*slot => *slot = true,
            _ => {
                self.is_broken = true;
                return None;
            }
        }
        self.under_way += 1;
        if let Some(inflight) = &mut self.inflight {
            inflight.begin(head);
        }
        let table = GuestAddress(self.queue.desc_table());
        Some(Taken { head, frame: chain.read(&self.memory, table, self.queue.size(), head) })
    }

    fn next_head(&mut self) -> Option<u16> {
        if self.is_broken {
            return None;
        }
        if let Some(head) = self.again.pop_front() {
            return Some(head);
        }
        let head = self.queue.iter(&*self.memory).map(|mut chains| chains.next().map(|chain| chain.head_index()));
        // What cannot be read would be tried for ever.
        self.is_broken |= match head {
            Ok(head) => head.is_none() && self.has_more() && !self.can_read_next(),
            Err(_) => true,
        };
        head.ok().flatten()
    }

    /// Whether there is something to take, as far as one look at the guest's memory tells.
    pub(crate) fn has_more(&self) -> bool {
        let index = || self.queue.avail_idx(&*self.memory, Ordering::Relaxed);
        !self.is_broken && (!self.again.is_empty() || index().is_ok_and(|index| index.0 != self.queue.next_avail()))
    }

    /// What the guest makes available is looked for without a kick, until [`Ring::ask_for_kick`].
    pub(crate) fn forgo_kicks(&mut self) {
        // With indices of events nothing is written: a guest kicks once for each index that it is told.
        self.is_broken |= self.queue.disable_notification(&*self.memory).is_err();
    }

    /// Asks the guest to kick for what it makes available next; whether it made something available meanwhile.
    pub(crate) fn ask_for_kick(&mut self) -> bool {
        if self.is_broken {
            return false;
        }
        let has_more = self.queue.enable_notification(&*self.memory);
        self.is_broken |= has_more.is_err();
        has_more.unwrap_or(false) || !self.again.is_empty()
    }

    fn can_read_next(&self) -> bool {
        let at = u64::from(self.queue.next_avail() % self.queue.size()) * 2 + 4;
        let address = self.queue.avail_ring().checked_add(at).map(GuestAddress);
        address.is_some_and(|address| self.memory.load::<u16>(address, Ordering::Relaxed).is_ok())
    }

    /// Publishes that a chain was served, and that `written` bytes of it were written; whether it is the first since the guest was told.
    pub(crate) fn publish(&mut self, head: u16, written: u32) -> bool {
        if let Some(slot) = self.taken.get_mut(usize::from(head)) {
            *slot = false;
        }
        self.under_way = self.under_way.saturating_sub(1);
        if let Some(inflight) = &mut self.inflight {
            inflight.will_publish(head);
        }
        let was_told = !self.has_published;
        match self.queue.add_used(&*self.memory, head, written) {
            Ok(()) => self.has_published = true,
            Err(_) => self.is_broken = true,
        }
        if let Some(inflight) = &mut self.inflight {
            inflight.published(head, self.queue.next_used());
        }
        was_told && self.has_published
    }

    /// Takes back what was taken and not begun at the disk, in a ring that nobody serves any more: the inflight region still says
    /// that it was begun, so the next one who serves the ring does it.
    pub(crate) fn abandon(&mut self, head: u16) {
        self.under_way = self.under_way.saturating_sub(1);
        self.again.push_back(head);
    }

    /// Heads that the next one who serves the ring has to do, before what is available.
    pub(crate) fn abandoned(&mut self) -> Vec<u16> {
        std::mem::take(&mut self.again).into()
    }

    /// Tells the guest what was published since it was last told, if it wants to hear of it.
    pub(crate) fn notify(&mut self) {
        if !std::mem::take(&mut self.has_published) {
            return;
        }
        match self.queue.needs_notification(&*self.memory) {
            Ok(true) => self.signal(),
            Ok(false) => {}
            Err(_) => self.is_broken = true,
        }
    }

    fn signal(&mut self) {
        if let Some(call) = &mut self.call {
            // It fails only when it holds so many signals already that one more says nothing.
            let _ = call.write(&1u64.to_ne_bytes());
        }
    }
}
