//! Has the processor fetch the parts of chains that are taken soon: they lie in the cache of the guest's processor, and each leads to the next
//! (descriptor, table, header), so that a request which waits for them one after the other waits for most of its time. What is looked at
//! here is judged when the chain is read.

use crate::split::{Descriptor, SplitRing};
use std::ptr::NonNull;
use std::sync::atomic::Ordering;
use vm_memory::Address;

/// So many chains before one is taken, what its first descriptor names is fetched: its table, or its header.
const FAR: u16 = 6;
/// And so many before, what its table names: the header, and the place of the status.
const NEAR: u16 = 3;
const DESCRIPTOR_BYTES: u32 = 16;

/// See [`SplitRing::fetch_step`].
pub(crate) const STEPS: usize = 4;

impl SplitRing {
    /// Chains from `next` up to before `end` are seen to be available, and were not before.
    pub(crate) fn begin_to_fetch(&self, next: u16, end: u16) {
        let count = end.wrapping_sub(next);
        (1..count.min(FAR)).for_each(|ahead| self.fetch_table(next.wrapping_add(ahead)));
        (1..count.min(NEAR)).for_each(|ahead| self.fetch_header(next.wrapping_add(ahead)));
    }

    /// The chain at `next` is about to be taken; those up to before `end` are seen to be available.
    pub(crate) fn fetch_ahead(&self, next: u16, end: u16) {
        let count = end.wrapping_sub(next);
        if count > FAR {
            self.fetch_table(next.wrapping_add(FAR));
        }
        if count > NEAR {
            self.fetch_header(next.wrapping_add(NEAR));
        }
    }

    /// One step towards the chain at `next`, of [`STEPS`], each of which looks at what the one before fetched: for rings that are looked at
    /// soon, while others' chains are taken.
    pub(crate) fn fetch_step(&self, step: usize, next: u16) {
        if step == 0 {
            return fetch(self.place_of_index());
        }
        if self.available_index(Ordering::Relaxed) == next {
            return;
        }
        match step {
            1 => self.place_of_descriptor(self.available_head(next)).into_iter().for_each(fetch),
            2 => self.fetch_table(next),
            _ => self.fetch_header(next),
        }
    }

    fn fetch_table(&self, index: u16) {
        if let Some(place) = self.first(index).and_then(|first| self.memory().place(first.address, 1)) {
            fetch(place);
        }
    }

    /// Of a chain in a table, as drivers make them, and where they put the header first and the status last.
    fn fetch_header(&self, index: u16) {
        let Some(table) = self.first(index).filter(Descriptor::refers_to_table) else { return };
        let memory = self.memory();
        let place = |number: u32| {
            let bytes = memory.block(table.address.checked_add(u64::from(number) * u64::from(DESCRIPTOR_BYTES))?)?;
            let descriptor = Descriptor::parse(bytes);
            memory.place(descriptor.address, 1)
        };
        place(0).into_iter().for_each(fetch);
        let last = (table.length / DESCRIPTOR_BYTES).saturating_sub(1);
        place(last).into_iter().for_each(fetch_to_write);
    }

    fn first(&self, index: u16) -> Option<Descriptor> {
        self.descriptor(self.available_head(index))
    }
}

/// Where it can be asked for: the processor is to have what lies there at hand.
fn fetch(place: NonNull<u8>) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: fetching has no effect but on caches.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(place.as_ptr().cast());
    };
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// The same, for itself alone.
fn fetch_to_write(place: NonNull<u8>) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as above; processors that do not know the instruction pass over it.
    unsafe {
        std::arch::asm!("prefetchw byte ptr [{place}]", place = in(reg) place.as_ptr(), options(nostack, preserves_flags, readonly));
    };
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
