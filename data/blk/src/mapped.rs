//! The guest's memory where this process has it mapped. What lies at an address of the guest is found by its few regions,
//! without anything between.
//!
//! The guest and its front end write to it at any time, so no reference to plain data names it: it is copied out or in by volatile
//! accesses, each byte once, or shared with the guest as atomics ([`crate::split`]).

use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Arc;
use vm_memory::{GuestAddress, GuestMemoryMmap, GuestMemoryRegion, GuestRegionMmap};

/// Whoever has a request at the disk holds it, so that nothing is unmapped below the kernel's hands.
#[derive(Debug)]
pub(crate) struct Memory {
    /// In the order of the guest's addresses; none reaches into the next.
    spans: Vec<Span>,
    /// Mapped as long as this is.
    _regions: GuestMemoryMmap<()>,
}

// SAFETY: the pointers name memory that is mapped as long as this holds the regions, whichever thread looks there, and that every
// process which has it mapped may write to: it is accessed by volatile copies and atomics only.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

/// Keeps the memory mapped in which a request lies. Counted by one thread: with each request, a count that threads share would wait until
/// all that was written to the guest before has arrived.
pub(crate) type Lease = Rc<Arc<Memory>>;

/// One region: mapped in one piece.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: u64,
    length: u64,
    host: NonNull<u8>,
}

impl Memory {
    /// Of these regions; none where two of them overlap, or there is none.
    pub(crate) fn new(mut regions: Vec<GuestRegionMmap<()>>) -> Option<Self> {
        regions.sort_by_key(GuestRegionMmap::start_addr);
        let span = |region: &GuestRegionMmap<()>| {
            let host = NonNull::new(region.as_ptr())?;
            Some(Span { start: region.start_addr().0, length: region.len(), host })
        };
        let spans = regions.iter().map(span).collect::<Option<_>>()?;
        Some(Self { spans, _regions: GuestMemoryMmap::from_regions(regions).ok()? })
    }

    /// Where an address lies, and how many bytes of its region follow from there; at least one.
    fn find(&self, address: u64) -> Option<(NonNull<u8>, u64)> {
        let span = self.spans.iter().find(|span| address.wrapping_sub(span.start) < span.length)?;
        let offset = address - span.start;
        // SAFETY: the offset is within the region, which is mapped in one piece.
        Some((unsafe { span.host.add(offset as usize) }, span.length - offset))
    }

    /// Where so many bytes lie, in one piece; none where they are not all in one region. Valid as long as `self` is.
    pub(crate) fn place(&self, address: GuestAddress, length: u64) -> Option<NonNull<u8>> {
        let (place, left) = self.find(address.0)?;
        (length <= left).then_some(place)
    }

    /// Gives each piece of so many bytes, one after the other; none where they are not all in the guest's memory. The pieces are valid as
    /// long as `self` is.
    pub(crate) fn pieces(
        &self,
        address: GuestAddress,
        length: u64,
        mut give: impl FnMut(NonNull<u8>, usize),
    ) -> Option<()> {
        let (mut address, mut length) = (address.0, length);
        while length > 0 {
            let (place, left) = self.find(address)?;
            let now = length.min(left);
            give(place, now as usize);
            length -= now;
            // Behind the last address of all nothing lies.
            address = address.checked_add(now).or((length == 0).then_some(0))?;
        }
        Some(())
    }

    /// Copies so many bytes out, each read once; none where they are not all in the guest's memory.
    pub(crate) fn block<const BYTES: usize>(&self, address: GuestAddress) -> Option<[u8; BYTES]> {
        let mut bytes = [0; BYTES];
        let words = self.place(address, BYTES as u64).map(NonNull::cast::<u64>).filter(|words| words.is_aligned());
        let Some(words) = words.filter(|_| BYTES.is_multiple_of(8)) else {
            self.read(address, &mut bytes)?;
            return Some(bytes);
        };
        for (number, bytes) in bytes.chunks_exact_mut(8).enumerate() {
            // SAFETY: so many words are mapped there, aligned, and a word has no invalid values.
            bytes.copy_from_slice(&unsafe { words.add(number).read_volatile() }.to_ne_bytes());
        }
        Some(bytes)
    }

    /// Fills `bytes`, each read once; none where they are not all in the guest's memory.
    pub(crate) fn read(&self, address: GuestAddress, bytes: &mut [u8]) -> Option<()> {
        let mut target = bytes.iter_mut();
        self.pieces(address, target.len() as u64, |piece, length| {
            for (offset, byte) in target.by_ref().take(length).enumerate() {
                // SAFETY: the offset is below the piece's length.
                *byte = unsafe { piece.add(offset).read_volatile() };
            }
        })
    }

    /// Stores `bytes`; none where they have no room in the guest's memory.
    pub(crate) fn write(&self, address: GuestAddress, bytes: &[u8]) -> Option<()> {
        let mut source = bytes.iter();
        self.pieces(address, source.len() as u64, |piece, length| {
            for (offset, byte) in source.by_ref().take(length).enumerate() {
                // SAFETY: the offset is below the piece's length.
                unsafe { piece.add(offset).write_volatile(*byte) };
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Memory;
    use vm_memory::{GuestAddress, GuestRegionMmap};

    const PAGE: u64 = 4096;

    /// Two regions that follow each other, and one with a gap before.
    fn memory() -> Memory {
        let regions = [(PAGE, 2 * PAGE), (3 * PAGE, PAGE), (8 * PAGE, PAGE)];
        let region = |(start, length)| GuestRegionMmap::from_range(GuestAddress(start), length as usize, None).unwrap();
        Memory::new(regions.into_iter().rev().map(region).collect()).unwrap()
    }

    fn lengths(memory: &Memory, address: u64, length: u64) -> Option<Vec<usize>> {
        let mut lengths = Vec::new();
        memory.pieces(GuestAddress(address), length, |_, length| lengths.push(length)).map(|()| lengths)
    }

    #[test]
    fn bytes_are_found_within_regions_and_across_and_nowhere_else() {
        let memory = memory();
        assert_eq!(lengths(&memory, PAGE, 2 * PAGE), Some(vec![2 * PAGE as usize]));
        assert_eq!(lengths(&memory, 3 * PAGE - 100, 200), Some(vec![100, 100]), "regions that follow each other");
        assert_eq!(lengths(&memory, 0, 0), Some(vec![]));
        for (address, length) in
            [(0, 1), (PAGE - 1, 2), (4 * PAGE - 1, 2), (8 * PAGE, PAGE + 1), (u64::MAX, 1), (u64::MAX - 1, u64::MAX)]
        {
            assert_eq!(lengths(&memory, address, length), None, "{address:#x}, {length}");
        }
        let place = |address, length| memory.place(GuestAddress(address), length).is_some();
        assert!(place(PAGE, 2 * PAGE) && place(4 * PAGE - 1, 1) && place(9 * PAGE - 1, 1));
        assert!(!place(3 * PAGE - 1, 2) && !place(4 * PAGE, 1) && !place(PAGE, u64::MAX));
    }

    #[test]
    fn what_is_stored_across_regions_is_read_back() {
        let memory = memory();
        let bytes: [u8; 16] = std::array::from_fn(|number| number as u8 + 1);
        for address in [PAGE + 3, 3 * PAGE - 5, 9 * PAGE - 16] {
            memory.write(GuestAddress(address), &bytes).expect("room");
            assert_eq!(memory.block(GuestAddress(address)), Some(bytes));
        }
        assert_eq!(memory.block::<16>(GuestAddress(9 * PAGE - 15)), None);
        assert_eq!(memory.write(GuestAddress(PAGE - 1), &bytes), None);
    }

    #[test]
    fn regions_that_overlap_are_none() {
        let region = |start| GuestRegionMmap::from_range(GuestAddress(start), 2 * PAGE as usize, None).unwrap();
        assert!(Memory::new(vec![region(0), region(PAGE)]).is_none());
        assert!(Memory::new(Vec::new()).is_none());
    }
}
