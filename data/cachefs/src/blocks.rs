//! Which blocks of a range a file has below. Data are not the measure: room that `fallocate` reserved, or that XFS gave in advance, is the
//! file's and on its account, and yet a hole to `SEEK_DATA`. So the file system is asked for its extents, and memory, which has none, for its
//! pages; what can tell neither is asked where its data are.

use crate::file_system::Result;
use rustix::fs::{SeekFrom, fstatfs, seek};
use rustix::io::Errno;
use rustix::ioctl::{Opcode, opcode};
use std::os::fd::{AsRawFd, OwnedFd};

/// In such pieces file systems give room.
pub(crate) const BLOCK: u64 = 4096;
/// Extents that are asked for at once.
const EXTENTS: usize = 32;
/// `f_type` of memory, in `statfs`.
const TMPFS_MAGIC: u64 = 0x0102_1994;
/// The same call has this number on every architecture that we know; the C library has no name for it.
const SYS_CACHESTAT: libc::c_long = 451;
const FS_IOC_FIEMAP: Opcode = opcode::read_write::<MapHeader>(b'f', 11);

/// `struct fiemap` without the extents that follow it.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct MapHeader {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
}

/// `struct fiemap_extent`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    reserved_too: [u32; 3],
}

/// `struct fiemap`.
#[repr(C)]
#[derive(Default)]
struct Map {
    header: MapHeader,
    extents: [Extent; EXTENTS],
}

/// `struct cachestat_range`.
#[repr(C)]
struct PageRange {
    offset: u64,
    length: u64,
}

/// `struct cachestat`.
#[repr(C)]
#[derive(Default)]
struct Pages {
    cached: u64,
    dirty: u64,
    under_writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// The blocks that a range touches: where they begin and end.
fn touched(offset: u64, length: u64) -> (u64, u64) {
    let start = offset / BLOCK * BLOCK;
    if length == 0 {
        return (start, start);
    }
    (start, offset.saturating_add(length).div_ceil(BLOCK).saturating_mul(BLOCK))
}

/// Bytes of the blocks that a range touches.
pub(crate) fn spanned(offset: u64, length: u64) -> u64 {
    let (start, end) = touched(offset, length);
    end - start
}

/// Bytes of those that the file does not have.
pub(crate) fn missing(data: &OwnedFd, offset: u64, length: u64) -> Result<u64> {
    let (start, end) = touched(offset, length);
    let there = match on_disk(data, start, end).or_else(|| in_memory(data, start, end)) {
        Some(there) => there,
        None => in_data(data, start, end)?,
    };
    Ok((end - start).saturating_sub(there))
}

/// How much of a range, up to the end of one of its blocks, can be written with `left` bytes of further blocks.
pub(crate) fn fitting(data: &OwnedFd, offset: u64, length: u64, left: u64) -> Result<u64> {
    let up_to = |blocks: u64| (blocks * BLOCK).saturating_sub(offset % BLOCK).min(length);
    let (mut fits, mut beyond) = (0, spanned(offset, length) / BLOCK + 1);
    while beyond - fits > 1 {
        let middle = fits + (beyond - fits) / 2;
        if missing(data, offset, up_to(middle))? <= left {
            fits = middle;
        } else {
            beyond = middle;
        }
    }
    Ok(up_to(fits))
}

/// Bytes between two places that the extents of the file hold, those that were reserved and never written included.
fn on_disk(data: &OwnedFd, start: u64, end: u64) -> Option<u64> {
    let (mut at, mut there) = (start, 0);
    while at < end {
        let header = MapHeader { start: at, length: end - at, extent_count: EXTENTS as u32, ..MapHeader::default() };
        let mut map = Map { header, ..Map::default() };
        // SAFETY: the descriptor is open, and the kernel writes one `struct fiemap` with as many extents as are announced in it.
        let done = unsafe { libc::ioctl(data.as_raw_fd(), FS_IOC_FIEMAP as _, &raw mut map) };
        if done != 0 {
            return None;
        }
        let before = at;
        let found = &map.extents[..(map.header.mapped_extents as usize).min(EXTENTS)];
        for extent in found {
            let ends = extent.logical.saturating_add(extent.length).min(end);
            there += ends.saturating_sub(extent.logical.max(at));
            at = at.max(ends);
        }
        if found.len() < EXTENTS || at == before {
            break;
        }
    }
    Some(there)
}

/// The same of a file in memory: its pages, with those that were swapped out. Linux tells since 6.5.
fn in_memory(data: &OwnedFd, start: u64, end: u64) -> Option<u64> {
    // Of other file systems the pages are copies of what they have, and not all of it.
    if start == end || fstatfs(data).ok()?.f_type as u64 != TMPFS_MAGIC {
        return None;
    }
    let range = PageRange { offset: start, length: end - start };
    let mut pages = Pages::default();
    // SAFETY: the descriptor is open; the kernel reads one `struct cachestat_range` and writes one `struct cachestat`.
    let done = unsafe { libc::syscall(SYS_CACHESTAT, data.as_raw_fd(), &raw const range, &raw mut pages, 0) };
    (done == 0).then(|| (pages.cached + pages.evicted) * rustix::param::page_size() as u64)
}

/// The same by where data are: less than the file has, where room of it was never written.
fn in_data(data: &OwnedFd, start: u64, end: u64) -> Result<u64> {
    let (mut at, mut there) = (start, 0);
    while at < end {
        let found = match seek(data, SeekFrom::Data(at)) {
            Ok(found) if found < end => found / BLOCK * BLOCK,
            Ok(_) | Err(Errno::NXIO) => break,
            Err(error) => return Err(error),
        };
        let hole = seek(data, SeekFrom::Hole(found.max(at)))?;
        let ends = hole.div_ceil(BLOCK).saturating_mul(BLOCK).min(end);
        there += ends.saturating_sub(found.max(at));
        at = ends.max(at + BLOCK);
    }
    Ok(there)
}

#[cfg(test)]
mod tests {
    use super::{fitting, in_data, missing, spanned};
    use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, fsync, memfd_create};
    use rustix::io::{Errno, pwrite};
    use std::os::fd::OwnedFd;

    /// An empty file in memory, and one where other tests have theirs: on a disk, if nobody set it otherwise.
    fn files() -> [OwnedFd; 2] {
        [memfd_create("minerva-test-blocks", MemfdFlags::CLOEXEC).unwrap(), tempfile::tempfile().unwrap().into()]
    }

    #[test]
    fn a_range_touches_whole_blocks() {
        for (offset, length, bytes) in
            [(0, 0, 0), (0, 1, 4096), (4095, 1, 4096), (4095, 2, 8192), (4096, 4096, 4096), (1, 8192, 12288)]
        {
            assert_eq!(spanned(offset, length), bytes, "{length} bytes at {offset}");
        }
    }

    #[test]
    fn only_what_is_not_there_needs_room() {
        for file in files() {
            pwrite(&file, &[1; 8192], 8192).unwrap();
            for _ in 0..2 {
                assert_eq!(missing(&file, 0, 0).unwrap(), 0);
                assert_eq!(missing(&file, 0, 4096).unwrap(), 4096);
                assert_eq!(missing(&file, 8192, 8192).unwrap(), 0);
                assert_eq!(missing(&file, 0, 32768).unwrap(), 24576);
                assert_eq!(missing(&file, 10000, 100_000).unwrap(), spanned(16384, 93616));
                for (offset, length) in [(0, 0), (0, 4096), (8192, 8192), (0, 32768), (8192, 102_400), (4096, 1 << 40)]
                {
                    let there = in_data(&file, offset, offset + length).unwrap();
                    assert_eq!(there, length - missing(&file, offset, length).unwrap(), "{length} bytes at {offset}");
                }
                // Once it is on the disk too.
                fsync(&file).unwrap();
            }
        }
    }

    #[test]
    fn room_that_is_reserved_is_there_until_it_is_given_back() {
        for file in files() {
            match fallocate(&file, FallocateFlags::empty(), 8192, 1 << 20) {
                Err(Errno::OPNOTSUPP) => continue,
                done => done.unwrap(),
            }
            assert_eq!(missing(&file, 0, 8192 + (1 << 20)).unwrap(), 8192);
            pwrite(&file, &[1; 4096], 16384).unwrap();
            assert_eq!(missing(&file, 8192, 1 << 20).unwrap(), 0);
            fallocate(&file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 8192, 65536).unwrap();
            assert_eq!(missing(&file, 8192, 1 << 20).unwrap(), 65536);
        }
    }

    #[test]
    fn however_many_pieces_a_file_has_each_counts() {
        for file in files() {
            // A write may be given more than it needs, and what lies between is there then.
            for piece in 0..100 {
                match fallocate(&file, FallocateFlags::empty(), piece * 8192, 4096) {
                    Err(Errno::OPNOTSUPP) => pwrite(&file, &[1; 4096], piece * 8192).map(drop).unwrap(),
                    done => done.unwrap(),
                }
            }
            assert_eq!(missing(&file, 0, 200 * 4096).unwrap(), 100 * 4096);
        }
    }

    #[test]
    fn as_much_fits_as_the_room_left_and_the_blocks_that_are_there_take() {
        for file in files() {
            pwrite(&file, &[1; 8192], 8192).unwrap();
            for (offset, length, left, fits) in [
                (0, 4096, 0, 0),
                (0, 4096, 4095, 0),
                (100, 5000, 4096, 3996),
                (0, 65536, 8192, 16384),
                (8192, 65536, 0, 8192),
                (8193, 65536, 4096, 12287),
                (8192, 8000, 0, 8000),
                (0, 10, 1 << 20, 10),
            ] {
                assert_eq!(
                    fitting(&file, offset, length, left).unwrap(),
                    fits,
                    "{length} bytes at {offset}, {left} left"
                );
            }
        }
    }
}
