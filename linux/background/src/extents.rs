//! Where a file's bytes lie, and which of them other files or snapshots have too (`FS_IOC_FIEMAP`,
//! Documentation/filesystems/fiemap.rst).

use crate::btrfs::{half_at, word_at};
use rustix::io::Errno;
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};
use std::os::fd::OwnedFd;

/// `struct fiemap` without extents, which the number of the call is made from.
const HEADER_BYTES: usize = 32;
/// `struct fiemap_extent`: where in the file, where on the disk, length, flags, and room.
const EXTENT_BYTES: usize = 56;
const EXTENTS: usize = 128;
const FIEMAP: Opcode = opcode::read_write::<[u8; HEADER_BYTES]>(b'f', 11);
const EXTENT_LAST: u32 = 0x1;
const EXTENT_SHARED: u32 = 0x2000;

type Map = [u8; HEADER_BYTES + EXTENTS * EXTENT_BYTES];

/// Bytes of a file on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Allocated {
    /// Only this file has them.
    pub(crate) own: u64,
    /// Others have them too.
    pub(crate) shared: u64,
}

/// Bytes of a file on the disk in a range.
pub(crate) fn allocated(file: &OwnedFd, start: u64, length: u64) -> Result<Allocated, Errno> {
    let end = start.saturating_add(length);
    let (mut found, mut at) = (Allocated::default(), start);
    while at < end {
        let mut map: Map = [0; HEADER_BYTES + EXTENTS * EXTENT_BYTES];
        map[0..8].copy_from_slice(&at.to_ne_bytes());
        map[8..16].copy_from_slice(&(end - at).to_ne_bytes());
        map[24..28].copy_from_slice(&(EXTENTS as u32).to_ne_bytes());
        // SAFETY: `FS_IOC_FIEMAP` reads one `struct fiemap` and writes as many extents behind it as it says there is room for.
        unsafe { ioctl(file, Updater::<FIEMAP, Map>::new(&mut map)) }?;
        match found.add(&map, at, end) {
            Some(next) if next > at => at = next,
            _ => break,
        }
    }
    Ok(found)
}

impl Allocated {
    /// Adds what was found between two bytes; where to go on, if there may be more.
    fn add(&mut self, map: &Map, start: u64, end: u64) -> Option<u64> {
        let count = half_at(map, 20) as usize;
        let mut next = None;
        for extent in map[HEADER_BYTES..].chunks_exact(EXTENT_BYTES).take(count) {
            let (at, flags) = (word_at(extent, 0), half_at(extent, 40));
            let over = at.saturating_add(word_at(extent, 16));
            let bytes = over.min(end).saturating_sub(at.max(start));
            *if flags & EXTENT_SHARED == 0 { &mut self.own } else { &mut self.shared } += bytes;
            next = (flags & EXTENT_LAST == 0).then_some(over);
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::{Allocated, EXTENT_BYTES, EXTENTS, HEADER_BYTES};

    #[test]
    fn what_others_have_too_is_told_from_what_only_this_file_has() {
        let mut map = [0; HEADER_BYTES + EXTENTS * EXTENT_BYTES];
        map[20..24].copy_from_slice(&2_u32.to_ne_bytes());
        for (at, (start, length, flags)) in [(0_u64, 8192_u64, 0x2000_u32), (8192, 4096, 1)].into_iter().enumerate() {
            let extent = HEADER_BYTES + at * EXTENT_BYTES;
            map[extent..extent + 8].copy_from_slice(&start.to_ne_bytes());
            map[extent + 16..extent + 24].copy_from_slice(&length.to_ne_bytes());
            map[extent + 40..extent + 44].copy_from_slice(&flags.to_ne_bytes());
        }
        let mut found = Allocated::default();
        assert_eq!(found.add(&map, 0, 10_000), None, "the last one says so");
        assert_eq!(found, Allocated { own: 1808, shared: 8192 });
        map[HEADER_BYTES + EXTENT_BYTES + 40] = 0;
        assert_eq!(Allocated::default().add(&map, 4096, u64::MAX), Some(12_288));
    }
}
