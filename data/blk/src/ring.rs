//! One split virtqueue in service: what its guest makes available is taken, what is done is published, and the guest is told
//! where it wants to be. Nothing that a guest writes there is an error of this process: a ring that makes no sense is *broken*, which
//! ends its service until it is set up anew.

use crate::chain::{Chain, Frame, Malformed};
use crate::inflight::InflightQueue;
use crate::mapped::{Lease, Memory};
use crate::signal::Signaller;
use crate::split::{RingLayout, SplitRing};
use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

/// The greatest ring. QEMU's are 128 unless it is told otherwise.
pub(crate) const RING_SIZE_MAX: u16 = 1024;

/// How a ring was set up.
#[derive(Debug)]
pub(crate) struct RingSetup {
    pub(crate) place: RingLayout,
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
    split: SplitRing,
    lease: Lease,
    kick: File,
    call: Option<File>,
    signaller: Rc<Signaller>,
    inflight: Option<InflightQueue>,
    has_event_index: bool,
    /// The next chain to be taken, and up to where the guest was seen to have made them available.
    next_available: u16,
    seen_available: u16,
    /// The next answer; those from `published` on the guest cannot see yet.
    next_used: u16,
    published: u16,
    /// Up to there the guest was told, or did not want to be.
    told: u16,
    /// Heads of the answers that the guest cannot see yet, where an inflight region has to know.
    unpublished: Vec<u16>,
    /// Heads that a crash left begun: they come before what is available.
    again: VecDeque<u16>,
    /// Heads that were taken and not answered: a guest that makes one available twice would have more requests under way than
    /// its ring has descriptors.
    taken: Vec<bool>,
    under_way: u16,
    /// Nothing more is taken from it.
    is_broken: bool,
    /// The guest's memory has no such ring any more.
    is_gone: bool,
}

impl Ring {
    /// Puts a ring into service; none where it does not lie in the guest's memory.
    pub(crate) fn start(setup: RingSetup, signaller: Rc<Signaller>) -> Option<Self> {
        let RingSetup { place, has_event_index, kick, call, mut inflight, .. } = setup;
        let lease = Rc::new(Arc::clone(&setup.memory));
        let split = SplitRing::find(setup.memory, place).filter(|split| split.size() <= RING_SIZE_MAX)?;
        let used = split.used_index();
        let again: VecDeque<u16> = inflight.as_mut().map_or(setup.begun, |queue| queue.recover(used)).into();
        // What was begun was taken one after the other, behind what was answered.
        let is_after_crash = !again.is_empty();
        let next_available = if is_after_crash { used.wrapping_add(again.len() as u16) } else { setup.next_available };
        let size = usize::from(place.size);
        let unpublished = Vec::with_capacity(if inflight.is_some() { size } else { 0 });
        let ring = Self {
            split,
            lease,
            kick,
            call,
            signaller,
            inflight,
            has_event_index,
            next_available,
            seen_available: next_available,
            next_used: used,
            published: used,
            told: used,
            unpublished,
            again,
            taken: vec![false; size],
            under_way: 0,
            is_broken: false,
            is_gone: false,
        };
        // The guest may wait for answers that were published and not told.
        ring.signal();
        Some(ring)
    }

    pub(crate) fn kick(&self) -> BorrowedFd<'_> {
        self.kick.as_fd()
    }

    pub(crate) fn memory(&self) -> &Arc<Memory> {
        self.split.memory()
    }

    /// The same, for a request that lies there.
    pub(crate) fn lease(&self) -> Lease {
        Rc::clone(&self.lease)
    }

    /// The next requests are in this memory. Those under way hold the one that they were taken from.
    pub(crate) fn set_memory(&mut self, memory: Arc<Memory>) {
        self.publish_all();
        let lease = Rc::new(Arc::clone(&memory));
        match SplitRing::find(memory, self.split.place()) {
            Some(split) => (self.split, self.lease, self.is_gone) = (split, lease, false),
            None => (self.is_broken, self.is_gone) = (true, true),
        }
    }

    pub(crate) fn set_call(&mut self, call: Option<File>) {
        self.call = call;
        // What was published since the front end changed it may not have been heard.
        self.signal();
    }

    /// Taken and not answered.
    pub(crate) fn under_way(&self) -> u16 {
        self.under_way
    }

    /// From where the next one to serve this ring goes on.
    pub(crate) fn next_available(&self) -> u16 {
        self.next_available
    }

    /// Takes the next chain, if the guest made one available.
    pub(crate) fn take(&mut self, chain: &mut Chain) -> Option<Taken> {
        let head = self.next_head()?;
        let Some(slot) = self.taken.get_mut(usize::from(head)).filter(|slot| !**slot) else {
            self.is_broken = true;
            return None;
        };
        *slot = true;
        self.under_way += 1;
        if let Some(inflight) = &mut self.inflight {
            inflight.begin(head);
        }
        Some(Taken { head, frame: chain.read(&self.split, head) })
    }

    /// Chains that can be taken now.
    pub(crate) fn available(&self) -> u16 {
        let available = self.split.available_index(Ordering::Acquire).wrapping_sub(self.next_available);
        available.min(self.split.size()).saturating_add(self.again.len() as u16)
    }

    fn next_head(&mut self) -> Option<u16> {
        if self.is_broken {
            return None;
        }
        if let Some(head) = self.again.pop_front() {
            return Some(head);
        }
        if self.next_available == self.seen_available {
            self.seen_available = self.split.available_index(Ordering::Acquire);
            // More than there are descriptors for cannot be available.
            self.is_broken = self.seen_available.wrapping_sub(self.next_available) > self.split.size();
            if self.is_broken || self.next_available == self.seen_available {
                return None;
            }
            self.split.begin_to_fetch(self.next_available, self.seen_available);
        }
        self.split.fetch_ahead(self.next_available, self.seen_available);
        let head = self.split.available_head(self.next_available);
        self.next_available = self.next_available.wrapping_add(1);
        Some(head)
    }

    /// One step towards having at hand what is taken next; see [`SplitRing::fetch_step`].
    pub(crate) fn fetch_step(&self, step: usize) {
        self.split.fetch_step(step, self.next_available);
    }

    /// Whether there is something to take, as far as one look at the guest's memory tells.
    pub(crate) fn has_more(&self) -> bool {
        !self.is_broken
            && (!self.again.is_empty() || self.split.available_index(Ordering::Relaxed) != self.next_available)
    }

    /// What the guest makes available is looked for without a kick, until [`Ring::ask_for_kick`].
    pub(crate) fn forgo_kicks(&mut self) {
        // With indices of events nothing is written: a guest kicks once for each index that it is told.
        if !self.has_event_index && !self.is_gone {
            self.split.set_wants_kicks(false);
        }
    }

    /// Asks the guest to kick for what it makes available next; whether it made something available meanwhile.
    pub(crate) fn ask_for_kick(&mut self) -> bool {
        if self.is_broken {
            return false;
        }
        match self.has_event_index {
            true => self.split.set_kick_event(self.next_available),
            false => self.split.set_wants_kicks(true),
        }
        // The guest writes its index and then looks whether to kick: one of the two sees what the other wrote.
        fence(Ordering::SeqCst);
        self.has_more()
    }

    /// Enters that a chain was served, and that `written` bytes of it were written; whether it is the first since the guest was told.
    /// The guest sees it with the next [`Ring::publish_all`], or before.
    pub(crate) fn publish(&mut self, head: u16, written: u32) -> bool {
        if let Some(slot) = self.taken.get_mut(usize::from(head)) {
            *slot = false;
        }
        self.under_way = self.under_way.saturating_sub(1);
        if self.is_gone {
            return false;
        }
        let is_first = self.next_used == self.told;
        if let Some(inflight) = &mut self.inflight {
            inflight.will_publish(head);
            self.unpublished.push(head);
        }
        self.split.put_used(self.next_used, head, written);
        self.next_used = self.next_used.wrapping_add(1);
        // The used ring has room for no more.
        if self.next_used.wrapping_sub(self.published) == self.split.size() {
            self.publish_all();
        }
        is_first
    }

    /// Lets the guest see every answer: one write for all of them.
    pub(crate) fn publish_all(&mut self) {
        if self.published == self.next_used || self.is_gone {
            return;
        }
        self.split.set_used_index(self.next_used);
        self.published = self.next_used;
        if let Some(inflight) = &mut self.inflight {
            inflight.published(self.unpublished.drain(..), self.next_used);
        }
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

    /// Tells the guest of what was published since it was last told, if it wants to hear of it. The guest says what it wants to hear of and
    /// then looks for answers: a fence after [`Ring::publish_all`] makes one of the two see what the other wrote.
    pub(crate) fn tell(&mut self) {
        let told = std::mem::replace(&mut self.told, self.published);
        if told == self.published || self.is_gone {
            return;
        }
        let wants_to_hear = match self.has_event_index {
            // Its event is among what was published since.
            true => {
                let since_event = self.published.wrapping_sub(self.split.signal_event()).wrapping_sub(1);
                since_event < self.published.wrapping_sub(told)
            }
            false => !self.split.wants_no_signal(),
        };
        if wants_to_hear {
            self.signal();
        }
    }

    fn signal(&self) {
        if let Some(call) = &self.call {
            self.signaller.signal(call.as_fd());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Ring, RingSetup};
    use crate::chain::Chain;
    use crate::mapped::Memory;
    use crate::signal::Signaller;
    use crate::split::RingLayout;
    use rustix::event::{EventfdFlags, eventfd};
    use std::fs::File;
    use std::rc::Rc;
    use std::sync::Arc;
    use vm_memory::{GuestAddress, GuestRegionMmap};

    const PLACE: RingLayout =
        RingLayout { size: 8, descriptors: GuestAddress(0), available: GuestAddress(0x80), used: GuestAddress(0xa0) };

    fn memory(start: u64) -> Arc<Memory> {
        let region = GuestRegionMmap::from_range(GuestAddress(start), 0x1000, None).unwrap();
        Arc::new(Memory::new(vec![region]).unwrap())
    }

    /// With these heads available.
    fn with(heads: &[u8]) -> Arc<Memory> {
        let memory = memory(0);
        let bytes: Vec<u8> = heads.iter().flat_map(|head| [*head, 0]).collect();
        memory.write(GuestAddress(0x84), &bytes).unwrap();
        memory.write(GuestAddress(0x82), &[heads.len() as u8, 0]).unwrap();
        memory
    }

    fn used_index(memory: &Memory) -> u8 {
        memory.block::<2>(GuestAddress(0xa2)).unwrap()[0]
    }

    fn ring(memory: &Arc<Memory>, has_event_index: bool, call: &File) -> Ring {
        let setup = RingSetup {
            place: PLACE,
            next_available: 0,
            has_event_index,
            memory: Arc::clone(memory),
            kick: File::from(eventfd(0, EventfdFlags::NONBLOCK).unwrap()),
            call: Some(call.try_clone().unwrap()),
            inflight: None,
            begun: Vec::new(),
        };
        let ring = Ring::start(setup, Rc::new(Signaller::open().unwrap())).expect("a ring");
        assert_eq!(signals(call), 1, "what was published before");
        ring
    }

    fn notify(ring: &mut Ring) {
        ring.publish_all();
        ring.tell();
    }

    fn signals(call: &File) -> u64 {
        let mut count = [0; 8];
        rustix::io::read(call, &mut count).map_or(0, |_| u64::from_ne_bytes(count))
    }

    fn call() -> File {
        File::from(eventfd(0, EventfdFlags::NONBLOCK).unwrap())
    }

    #[test]
    fn a_ring_goes_on_where_the_memory_lies_now_and_ends_where_there_is_none() {
        let (first, second, call) = (with(&[3, 1]), with(&[3, 1, 5]), call());
        let (mut ring, mut chain) = (ring(&first, true, &call), Chain::default());
        let head = |ring: &mut Ring, chain: &mut Chain| ring.take(chain).map(|taken| taken.head);
        assert_eq!([head(&mut ring, &mut chain), head(&mut ring, &mut chain)], [Some(3), Some(1)]);
        ring.publish(3, 1);
        ring.set_memory(Arc::clone(&second));
        assert_eq!(used_index(&first), 1, "what was answered before is published there");
        ring.publish(1, 1);
        assert_eq!(head(&mut ring, &mut chain), Some(5));
        notify(&mut ring);
        assert_eq!((used_index(&first), used_index(&second)), (1, 2));
        // Elsewhere: no such ring.
        ring.set_memory(memory(0x10_0000));
        assert!(!ring.has_more() && head(&mut ring, &mut chain).is_none());
        ring.publish(5, 1);
        notify(&mut ring);
        assert_eq!((ring.under_way(), used_index(&second)), (0, 2), "nobody hears of it");
    }

    #[test]
    fn answers_are_seen_at_once_and_told_where_the_guest_wants_to_hear_of_them() {
        for (has_event_index, flags, event, expected) in
            [(true, 1, 2, 1), (true, 0, 3, 0), (true, 0, 7, 0), (false, 0, 7, 1), (false, 1, 2, 0)]
        {
            let (memory, call) = (with(&[0, 1, 2, 3, 4, 5]), call());
            memory.write(GuestAddress(0x80), &[flags, 0]).unwrap();
            memory.write(GuestAddress(0x84 + 2 * 8), &[event, 0]).unwrap();
            let (mut ring, mut chain) = (ring(&memory, has_event_index, &call), Chain::default());
            let heads: Vec<u16> = std::iter::from_fn(|| ring.take(&mut chain)).map(|taken| taken.head).collect();
            assert_eq!(heads, [0, 1, 2, 3, 4, 5]);
            let are_first: Vec<bool> = heads[..3].iter().map(|head| ring.publish(*head, 1)).collect();
            assert_eq!((are_first, used_index(&memory)), (vec![true, false, false], 0));
            notify(&mut ring);
            notify(&mut ring);
            assert_eq!((used_index(&memory), signals(&call)), (3, expected), "{has_event_index} {flags} {event}");
        }
    }

    #[test]
    fn a_ring_that_is_full_of_answers_shows_them() {
        let (memory, call) = (with(&[0, 1, 2, 3, 4, 5, 6, 7]), call());
        let (mut ring, mut chain) = (ring(&memory, true, &call), Chain::default());
        while let Some(taken) = ring.take(&mut chain) {
            assert!(ring.under_way() <= 8 && used_index(&memory) == 0);
            ring.publish(taken.head, 1);
        }
        assert_eq!(used_index(&memory), 8, "without a word");
    }
}
