//! Where the three parts of a split virtqueue lie in this process (Virtual I/O Device specification 1.3, section 2.7): found once, when a ring
//! is set up or the guest's memory changes, and shared with the guest as atomics. Every part lies within one region of the memory, as
//! QEMU itself demands.

use crate::mapped::Memory;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};
use vm_memory::GuestAddress;

/// Numbers of 16 bits in the available and the used ring: flags and index come before the entries, the index of an event behind.
const FLAGS: usize = 0;
const INDEX: usize = 1;
const ENTRIES: usize = 2;
/// Such numbers in an entry of the used ring.
const USED_ENTRY: usize = 4;

/// The device wants no kicks; the driver wants no signals.
const NO_NOTIFICATION: u16 = 1;

/// A ring as it was set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RingLayout {
    /// A power of two.
    pub(crate) size: u16,
    pub(crate) descriptors: GuestAddress,
    pub(crate) available: GuestAddress,
    pub(crate) used: GuestAddress,
}

/// A descriptor, as its 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Descriptor {
    pub(crate) address: GuestAddress,
    pub(crate) length: u32,
    flags: u16,
    pub(crate) next: u16,
}

impl Descriptor {
    /// From its bytes.
    pub(crate) fn parse(bytes: [u8; 16]) -> Self {
        let [a, b, c, d, e, f, g, h, length @ .., i, j, k, l] = bytes;
        Self {
            address: GuestAddress(u64::from_le_bytes([a, b, c, d, e, f, g, h])),
            length: u32::from_le_bytes(length),
            flags: u16::from_le_bytes([i, j]),
            next: u16::from_le_bytes([k, l]),
        }
    }

    pub(crate) fn has_next(&self) -> bool {
        self.flags & 1 != 0
    }

    pub(crate) fn is_write_only(&self) -> bool {
        self.flags & 2 != 0
    }

    pub(crate) fn refers_to_table(&self) -> bool {
        self.flags & 4 != 0
    }
}

/// The parts of a ring.
#[derive(Debug)]
pub(crate) struct SplitRing {
    /// As long as this holds it, the pointers name memory that is mapped.
    memory: Arc<Memory>,
    place: RingLayout,
    descriptors: NonNull<[[AtomicU64; 2]]>,
    available: NonNull<[AtomicU16]>,
    used: NonNull<[AtomicU16]>,
    /// The entries of the used ring: head and bytes written of each.
    used_entries: NonNull<[[AtomicU32; 2]]>,
}

impl SplitRing {
    /// Finds a ring; none where a part of it is not within one region of the memory, or not aligned as it has to be.
    pub(crate) fn find(memory: Arc<Memory>, place: RingLayout) -> Option<Self> {
        let size = usize::from(place.size);
        if !place.size.is_power_of_two() || !place.descriptors.0.is_multiple_of(16) {
            return None;
        }
        let descriptors = part(&memory, place.descriptors, size)?;
        let available = part(&memory, place.available, ENTRIES + size + 1)?;
        let used = part(&memory, place.used, ENTRIES + size * USED_ENTRY + 1)?;
        let used_entries = part(&memory, GuestAddress(place.used.0 + 4), size)?;
        Some(Self { memory, place, descriptors, available, used, used_entries })
    }

    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    pub(crate) fn place(&self) -> RingLayout {
        self.place
    }

    pub(crate) fn size(&self) -> u16 {
        self.place.size
    }

    fn available(&self) -> &[AtomicU16] {
        // SAFETY: so many aligned numbers are mapped there as long as `memory` is, and nobody but atomics names them.
        unsafe { self.available.as_ref() }
    }

    fn used(&self) -> &[AtomicU16] {
        // SAFETY: as in `available`.
        unsafe { self.used.as_ref() }
    }

    /// A descriptor of the ring's table; none with a number that there is not.
    pub(crate) fn descriptor(&self, number: u16) -> Option<Descriptor> {
        // SAFETY: as in `available`.
        let [first, second] = unsafe { self.descriptors.as_ref() }.get(usize::from(number))?;
        let words = u128::from(u64::from_le(first.load(Ordering::Relaxed)))
            | u128::from(u64::from_le(second.load(Ordering::Relaxed))) << 64;
        Some(Descriptor::parse(words.to_le_bytes()))
    }

    /// Where the guest writes up to where it made chains available.
    pub(crate) fn place_of_index(&self) -> NonNull<u8> {
        NonNull::from(&self.available()[INDEX]).cast()
    }

    /// Where a descriptor lies; none with a number that there is not.
    pub(crate) fn place_of_descriptor(&self, number: u16) -> Option<NonNull<u8>> {
        // SAFETY: as in `available`.
        unsafe { self.descriptors.as_ref() }.get(usize::from(number)).map(|descriptor| NonNull::from(descriptor).cast())
    }

    /// Up to where the guest made chains available.
    pub(crate) fn available_index(&self, order: Ordering) -> u16 {
        u16::from_le(self.available()[INDEX].load(order))
    }

    /// The head that the guest made available as the one with this index.
    pub(crate) fn available_head(&self, index: u16) -> u16 {
        u16::from_le(self.available()[ENTRIES + self.slot(index)].load(Ordering::Relaxed))
    }

    /// Whether the guest, without indices of events, wants to be told nothing.
    pub(crate) fn wants_no_signal(&self) -> bool {
        u16::from_le(self.available()[FLAGS].load(Ordering::Relaxed)) & NO_NOTIFICATION != 0
    }

    /// With which answer the guest wants to be told.
    pub(crate) fn signal_event(&self) -> u16 {
        u16::from_le(self.available()[ENTRIES + usize::from(self.place.size)].load(Ordering::Relaxed))
    }

    /// Without indices of events: whether the guest is to kick.
    pub(crate) fn set_wants_kicks(&self, wants: bool) {
        let flags = if wants { 0 } else { NO_NOTIFICATION };
        self.used()[FLAGS].store(flags.to_le(), Ordering::Relaxed);
    }

    /// With which chain the guest is to kick.
    pub(crate) fn set_kick_event(&self, index: u16) {
        self.used()[ENTRIES + usize::from(self.place.size) * USED_ENTRY].store(index.to_le(), Ordering::Relaxed);
    }

    /// Up to where answers are published.
    pub(crate) fn used_index(&self) -> u16 {
        u16::from_le(self.used()[INDEX].load(Ordering::Acquire))
    }

    /// Publishes the answers up to there.
    pub(crate) fn set_used_index(&self, index: u16) {
        self.used()[INDEX].store(index.to_le(), Ordering::Release);
    }

    /// Enters an answer: the chain with this head, into which so many bytes were written.
    pub(crate) fn put_used(&self, index: u16, head: u16, written: u32) {
        // SAFETY: as in `available`.
        let [first, second] = &unsafe { self.used_entries.as_ref() }[self.slot(index)];
        first.store(u32::from(head).to_le(), Ordering::Relaxed);
        second.store(written.to_le(), Ordering::Relaxed);
    }

    /// Below the ring's size.
    fn slot(&self, index: u16) -> usize {
        usize::from(index & (self.place.size - 1))
    }
}

/// So many `T` at an address; none where they are not all in one region, or not aligned.
fn part<T>(memory: &Memory, address: GuestAddress, count: usize) -> Option<NonNull<[T]>> {
    let first = memory.place(address, (count * size_of::<T>()) as u64)?.cast::<T>();
    first.is_aligned().then(|| NonNull::slice_from_raw_parts(first, count))
}

#[cfg(test)]
mod tests {
    use super::{Descriptor, RingLayout, SplitRing};
    use crate::mapped::Memory;
    use std::sync::Arc;
    use std::sync::atomic::Ordering;
    use vm_memory::{GuestAddress, GuestRegionMmap};

    const PLACE: RingLayout = RingLayout {
        size: 8,
        descriptors: GuestAddress(0x1000),
        available: GuestAddress(0x1100),
        used: GuestAddress(0x1200),
    };

    fn memory() -> Arc<Memory> {
        let region = |start| GuestRegionMmap::from_range(GuestAddress(start), 0x1000, None).unwrap();
        Arc::new(Memory::new(vec![region(0x1000), region(0x2000)]).unwrap())
    }

    #[test]
    fn each_field_is_where_the_specification_has_it() {
        let (memory, address) = (memory(), GuestAddress);
        let ring = SplitRing::find(Arc::clone(&memory), PLACE).expect("a ring");
        memory.write(address(0x1030), &[1, 2, 3, 4, 5, 6, 7, 8, 0x10, 0x20, 0, 0, 5, 0, 9, 0]).unwrap();
        let descriptor = ring.descriptor(3).expect("it is there");
        assert_eq!((descriptor.address, descriptor.length), (address(0x0807_0605_0403_0201), 0x2010));
        assert_eq!(
            (descriptor.has_next(), descriptor.is_write_only(), descriptor.refers_to_table()),
            (true, false, true)
        );
        assert_eq!((descriptor.next, ring.descriptor(8)), (9, None::<Descriptor>));
        memory.write(address(0x1100), &[1, 0, 0x34, 0x12]).unwrap();
        memory.write(address(0x1104 + 2 * 5), &[0x78, 0x56]).unwrap();
        memory.write(address(0x1104 + 2 * 8), &[0xbc, 0x9a]).unwrap();
        assert_eq!((ring.wants_no_signal(), ring.available_index(Ordering::Acquire)), (true, 0x1234));
        assert_eq!((ring.available_head(0xff0d), ring.signal_event()), (0x5678, 0x9abc));
        ring.set_wants_kicks(false);
        ring.set_used_index(0x1234);
        ring.put_used(0x1236, 7, 513);
        ring.set_kick_event(0x5678);
        assert_eq!(memory.block(address(0x1200)), Some([1, 0, 0x34, 0x12]));
        assert_eq!(memory.block(address(0x1204 + 8 * 6)), Some([7, 0, 0, 0, 1, 2, 0, 0]));
        assert_eq!(memory.block(address(0x1204 + 8 * 8)), Some([0x78, 0x56]));
        assert_eq!(ring.used_index(), 0x1234);
    }

    #[test]
    fn a_ring_lies_aligned_and_within_one_region() {
        let find = |place| SplitRing::find(memory(), place).is_some();
        assert!(find(PLACE));
        for (what, place) in [
            ("no power of two", RingLayout { size: 6, ..PLACE }),
            ("none", RingLayout { size: 0, ..PLACE }),
            ("descriptors at odd places", RingLayout { descriptors: GuestAddress(0x1008), ..PLACE }),
            ("an odd address", RingLayout { available: GuestAddress(0x1101), ..PLACE }),
            ("answers at odd places", RingLayout { used: GuestAddress(0x1202), ..PLACE }),
            ("across two regions", RingLayout { used: GuestAddress(0x1fe0), ..PLACE }),
            ("beyond the memory", RingLayout { descriptors: GuestAddress(0x2fc0), ..PLACE }),
            ("nowhere", RingLayout { available: GuestAddress(0x9000), ..PLACE }),
            ("at the end of all addresses", RingLayout { used: GuestAddress(u64::MAX - 3), ..PLACE }),
        ] {
            assert!(!find(place), "{what}");
        }
    }
}
