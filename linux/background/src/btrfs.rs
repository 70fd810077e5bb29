//! Asking a btrfs about itself: its trees by `BTRFS_IOC_TREE_SEARCH`, and what a subvolume is (linux/btrfs.h, linux/btrfs_tree.h).

use crate::error::WorkError;
use rustix::fs::{Mode, OFlags, fstatfs, open};
use rustix::io::Errno;
use rustix::ioctl::{Getter, Opcode, Updater, ioctl, opcode};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::path::Path;

/// `BTRFS_SUPER_MAGIC` of linux/magic.h.
pub(crate) const BTRFS_MAGIC: u64 = 0x9123_683E;

/// Of the directory of every subvolume (`BTRFS_FIRST_FREE_OBJECTID`).
pub(crate) const SUBVOLUME_INODE: u64 = 256;

/// The tree of trees, and of a key in it that says in which directory and by which name a subvolume lies.
pub(crate) const ROOT_TREE: u64 = 1;
const ROOT_BACK_REFERENCE: u8 = 144;

/// The tree of chunks, and what a chunk is in it.
const CHUNK_TREE: u64 = 3;
const CHUNKS: u64 = 256;
const CHUNK_ITEM: u8 = 228;

/// Where in that (`struct btrfs_chunk`) are what kind of chunk it is, how many parts it has, and those, each beginning with its device's number.
const CHUNK_FLAGS: usize = 24;
const CHUNK_PARTS: usize = 44;
const CHUNK_PART: usize = 48;
const CHUNK_PART_BYTES: usize = 32;

/// Trees with what is used of chunks (`struct btrfs_block_group_item`, which begins with that): newer ones have one of its own for it.
const EXTENT_TREE: u64 = 2;
const BLOCK_GROUP_TREE: u64 = 11;
const BLOCK_GROUP_ITEM: u8 = 192;

/// The tree of devices, what a chunk's part on one is in it, and where in that (`struct btrfs_dev_extent`) its length is.
const DEVICE_TREE: u64 = 4;
const DEVICE_EXTENT: u8 = 204;
const DEVICE_EXTENT_LENGTH: usize = 24;

/// `struct btrfs_ioctl_search_args`: a key of 104 bytes, and room for what is found.
type SearchArgs = [u8; 4096];
const SEARCH_KEY_BYTES: usize = 104;
/// `struct btrfs_ioctl_search_header`: generation, object, offset, type, length.
const SEARCH_HEADER_BYTES: usize = 32;
const SEARCH: Opcode = opcode::read_write::<SearchArgs>(0x94, 17);

/// `struct btrfs_ioctl_get_subvol_info_args`: in words number, name (32), parent, directory, generation, flags, identifier (2), that of
/// the one it is a snapshot of (2), and what is not used here.
type SubvolumeArgs = [u64; 63];
const SUBVOLUME: Opcode = opcode::read::<SubvolumeArgs>(0x94, 60);
const SUBVOLUME_IDENTIFIER: usize = 37;
const SUBVOLUME_SNAPSHOT_OF: usize = 39;

/// `struct btrfs_ioctl_fs_info_args`: in words the greatest device number, the number of devices, its identifier (2), and what is not
/// used here.
pub(crate) type FsInfo = [u64; 128];
const FS_INFO: Opcode = opcode::read::<FsInfo>(0x94, 31);
const FS_IDENTIFIER: usize = 2;

/// `struct btrfs_ioctl_space_args`: in words room for so many, how many there are, and of each what it is, its size and what is used of it.
type SpaceArgs = [u64; 2 + 3 * SPACES_MAX];
/// Kinds times profiles are fewer.
const SPACES_MAX: usize = 64;
const SPACE_INFO: Opcode = opcode::read_write::<[u64; 2]>(0x94, 20);
/// Kept free in a space that is listed beside it.
const SPACE_RESERVE: u64 = 1 << 49;
/// How often each byte is written: with RAID1, DUP and RAID10 twice.
const TWICE: u64 = 1 << 4 | 1 << 5 | 1 << 6;
const THREE_TIMES: u64 = 1 << 9;
const FOUR_TIMES: u64 = 1 << 10;

/// A key of an item of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) object: u64,
    pub(crate) kind: u8,
    pub(crate) offset: u64,
}

/// What a subvolume is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subvolume {
    pub(crate) number: u64,
    /// Unlike a number never used again.
    pub(crate) identifier: (u64, u64),
    pub(crate) is_snapshot: bool,
}

/// The directory at a path, if it is on a btrfs; `nothing_to` says what there is not otherwise.
pub(crate) fn open_btrfs(path: &Path, nothing_to: &str) -> Result<OwnedFd, WorkError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = open(path, flags, Mode::empty()).map_err(WorkError::io("open", path))?;
    let facts = fstatfs(&directory).map_err(WorkError::io("look at", path))?;
    if facts.f_type as u64 == BTRFS_MAGIC {
        return Ok(directory);
    }
    Err(WorkError::Refused(format!("{} is not on a btrfs: there is nothing to {nothing_to}", path.display())))
}

/// What a btrfs says of itself.
pub(crate) fn fs_info(directory: &OwnedFd) -> Result<FsInfo, Errno> {
    // SAFETY: `BTRFS_IOC_FS_INFO` writes one `struct btrfs_ioctl_fs_info_args`, which is 1,024 bytes.
    unsafe { ioctl(directory, Getter::<FS_INFO, FsInfo>::new()) }
}

/// What a btrfs is known by, wherever it is mounted.
pub(crate) fn file_system_identifier(directory: &OwnedFd) -> Result<(u64, u64), Errno> {
    let info = fs_info(directory)?;
    Ok((info[FS_IDENTIFIER], info[FS_IDENTIFIER + 1]))
}

/// Bytes that are used on all disks, each copy by itself; parity is not.
pub(crate) fn used_on_disks(directory: &OwnedFd) -> Result<u64, Errno> {
    let mut args: SpaceArgs = [0; 2 + 3 * SPACES_MAX];
    args[0] = SPACES_MAX as u64;
    // SAFETY: `BTRFS_IOC_SPACE_INFO` reads a `struct btrfs_ioctl_space_args` and writes it with at most as many spaces after it as that says
    // there is room for.
    unsafe { ioctl(directory, Updater::<SPACE_INFO, SpaceArgs>::new(&mut args)) }?;
    let count = usize::try_from(args[1]).unwrap_or(SPACES_MAX).min(SPACES_MAX);
    Ok(args[2..].chunks_exact(3).take(count).map(|space| used_by_copies(space[0], space[2])).sum())
}

/// Of so many bytes that are used in a space of these flags.
const fn used_by_copies(flags: u64, used: u64) -> u64 {
    let copies = match flags {
        flags if flags & SPACE_RESERVE != 0 => 0,
        flags if flags & FOUR_TIMES != 0 => 4,
        flags if flags & THREE_TIMES != 0 => 3,
        flags if flags & TWICE != 0 => 2,
        _ => 1,
    };
    used.saturating_mul(copies)
}

/// As [`used_on_disks`], of some of the devices. Each chunk is looked at: with tens of thousands of them that takes seconds.
pub(crate) fn used_on(directory: &OwnedFd, is_meant: impl Fn(u64) -> bool) -> Result<u64, Errno> {
    let mut all = 0;
    for (key, chunk) in chunk_items(directory)? {
        let devices = devices_of(&chunk);
        let meant = devices.iter().filter(|device| is_meant(**device)).count();
        if meant > 0 {
            let used = used_by_copies(word_at(&chunk, CHUNK_FLAGS), used_of_chunk(directory, key.offset)?);
            all += part(used, meant, devices.len());
        }
    }
    Ok(all)
}

/// The device of each part of a chunk.
fn devices_of(chunk: &[u8]) -> Vec<u64> {
    let count = chunk.get(CHUNK_PARTS..CHUNK_PARTS + 2).and_then(|bytes| bytes.try_into().ok());
    let count = usize::from(count.map_or(0, u16::from_ne_bytes));
    chunk[CHUNK_PART.min(chunk.len())..]
        .chunks_exact(CHUNK_PART_BYTES)
        .take(count)
        .map(|part| word_at(part, 0))
        .collect()
}

/// So many of some equal parts.
const fn part(of: u64, parts: usize, all: usize) -> u64 {
    (of as u128 * parts as u128 / all as u128) as u64
}

/// Bytes that are used of the chunk at an address.
pub(crate) fn used_of_chunk(directory: &OwnedFd, address: u64) -> Result<u64, Errno> {
    let group = |tree| {
        let key = |offset| Key { object: address, kind: BLOCK_GROUP_ITEM, offset };
        items(directory, tree, key(0), key(u64::MAX))
    };
    let groups = match group(BLOCK_GROUP_TREE) {
        Err(Errno::NOENT) => group(EXTENT_TREE),
        found => found,
    }?;
    Ok(groups.first().map_or(0, |(_, data)| word_at(data, 0)))
}

/// The subvolume that a directory lies in.
pub(crate) fn subvolume(directory: &OwnedFd) -> Result<Subvolume, Errno> {
    // SAFETY: `BTRFS_IOC_GET_SUBVOL_INFO` writes one `struct btrfs_ioctl_get_subvol_info_args`, which is 504 bytes.
    let words = unsafe { ioctl(directory, Getter::<SUBVOLUME, SubvolumeArgs>::new()) }?;
    let pair = |at: usize| (words[at], words[at + 1]);
    Ok(Subvolume {
        number: words[0],
        identifier: pair(SUBVOLUME_IDENTIFIER),
        is_snapshot: pair(SUBVOLUME_SNAPSHOT_OF) != (0, 0),
    })
}

/// Whether a btrfs has a subvolume of this number, be it mounted or not. One that was deleted has no name at once; the kernel takes
/// long to remove the rest of it.
pub(crate) fn has_subvolume(directory: &OwnedFd, number: u64) -> Result<bool, Errno> {
    let key = |offset| Key { object: number, kind: ROOT_BACK_REFERENCE, offset };
    items(directory, ROOT_TREE, key(0), key(u64::MAX)).map(|names| !names.is_empty())
}

/// Addresses of chunks, the pieces of the space that a btrfs has divided its disks into, in order. They may be anywhere: what a balance
/// moves gets addresses above all that there were.
pub(crate) fn chunks(directory: &OwnedFd) -> Result<Vec<Range<u64>>, Errno> {
    let chunk = |(key, data): (Key, Vec<u8>)| key.offset..key.offset.saturating_add(word_at(&data, 0));
    Ok(chunk_items(directory)?.into_iter().map(chunk).collect())
}

fn chunk_items(directory: &OwnedFd) -> Result<Vec<(Key, Vec<u8>)>, Errno> {
    let key = |offset| Key { object: CHUNKS, kind: CHUNK_ITEM, offset };
    items(directory, CHUNK_TREE, key(0), key(u64::MAX))
}

/// Where on a device chunks have their parts, in order.
pub(crate) fn device_extents(directory: &OwnedFd, device: u64) -> Result<Vec<Range<u64>>, Errno> {
    let key = |offset| Key { object: device, kind: DEVICE_EXTENT, offset };
    let found = items(directory, DEVICE_TREE, key(0), key(u64::MAX))?;
    let length = |data: &[u8]| word_at(data, DEVICE_EXTENT_LENGTH);
    Ok(found.into_iter().map(|(key, data)| key.offset..key.offset.saturating_add(length(&data))).collect())
}

/// Items of a tree from one key to another, both included, in order.
pub(crate) fn items(directory: &OwnedFd, tree: u64, from: Key, to: Key) -> Result<Vec<(Key, Vec<u8>)>, Errno> {
    let mut found = Vec::new();
    let mut next = Some(from);
    while let Some(start) = next.filter(|start| *start <= to) {
        let batch = search(directory, tree, start, to)?;
        next = batch.last().and_then(|(key, _)| key.next());
        // Kinds between those of both ends are found too.
        found.extend(batch.into_iter().filter(|(key, _)| *key >= from && *key <= to));
    }
    Ok(found)
}

fn search(directory: &OwnedFd, tree: u64, from: Key, to: Key) -> Result<Vec<(Key, Vec<u8>)>, Errno> {
    let mut args: SearchArgs = [0; 4096];
    let words = [tree, from.object, to.object, from.offset, to.offset, 0, u64::MAX];
    for (at, word) in words.into_iter().enumerate() {
        args[8 * at..8 * at + 8].copy_from_slice(&word.to_ne_bytes());
    }
    let halves = [u32::from(from.kind), u32::from(to.kind), u32::MAX];
    for (at, half) in halves.into_iter().enumerate() {
        args[56 + 4 * at..60 + 4 * at].copy_from_slice(&half.to_ne_bytes());
    }
    // SAFETY: `BTRFS_IOC_TREE_SEARCH` reads and writes one `struct btrfs_ioctl_search_args`, which is 4,096 bytes.
    unsafe { ioctl(directory, Updater::<SEARCH, SearchArgs>::new(&mut args)) }?;
    Ok(parsed(&args))
}

fn parsed(args: &SearchArgs) -> Vec<(Key, Vec<u8>)> {
    let count = half_at(args, 64);
    let mut at = SEARCH_KEY_BYTES;
    let mut items = Vec::new();
    for _ in 0..count {
        let Some(header) = args.get(at..at + SEARCH_HEADER_BYTES) else { break };
        let (object, offset) = (word_at(header, 8), word_at(header, 16));
        let (kind, length) = (half_at(header, 24), half_at(header, 28) as usize);
        at += SEARCH_HEADER_BYTES;
        let Some(data) = args.get(at..at + length) else { break };
        at += length;
        let kind = u8::try_from(kind).unwrap_or(u8::MAX);
        items.push((Key { object, kind, offset }, data.to_vec()));
    }
    items
}

/// A number of eight bytes; 0 where there are none.
pub(crate) fn word_at(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
    word.map_or(0, u64::from_ne_bytes)
}

/// A number of four bytes; 0 where there are none.
pub(crate) fn half_at(bytes: &[u8], at: usize) -> u32 {
    let half = bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
    half.map_or(0, u32::from_ne_bytes)
}

impl Key {
    /// The first key after this.
    fn next(self) -> Option<Self> {
        let Self { object, kind, offset } = self;
        match (offset.checked_add(1), kind.checked_add(1)) {
            (Some(offset), _) => Some(Self { object, kind, offset }),
            (None, Some(kind)) => Some(Self { object, kind, offset: 0 }),
            (None, None) => object.checked_add(1).map(|object| Self { object, kind: 0, offset: 0 }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CHUNK_FLAGS, CHUNK_PARTS, Key, TWICE, devices_of, parsed, part, used_by_copies, word_at};

    #[test]
    fn what_a_search_found_is_read_and_a_damaged_answer_ends_it() {
        let mut args = [0; 4096];
        args[64..68].copy_from_slice(&3_u32.to_ne_bytes());
        let item = |args: &mut [u8; 4096], at: usize, offset: u64, length: u32| {
            args[at + 8..at + 16].copy_from_slice(&256_u64.to_ne_bytes());
            args[at + 16..at + 24].copy_from_slice(&offset.to_ne_bytes());
            args[at + 24..at + 28].copy_from_slice(&228_u32.to_ne_bytes());
            args[at + 28..at + 32].copy_from_slice(&length.to_ne_bytes());
        };
        item(&mut args, 104, 7, 4);
        args[136..140].copy_from_slice(b"data");
        item(&mut args, 140, 8, 0);
        // Longer than what was read.
        item(&mut args, 172, 9, 1 << 20);
        let key = |offset| Key { object: 256, kind: 228, offset };
        assert_eq!(parsed(&args), [(key(7), b"data".to_vec()), (key(8), Vec::new())]);
    }

    #[test]
    fn keys_go_on_from_offset_to_kind_to_object() {
        let key = |object, kind, offset| Key { object, kind, offset };
        assert_eq!(key(1, 2, 3).next(), Some(key(1, 2, 4)));
        assert_eq!(key(1, 2, u64::MAX).next(), Some(key(1, 3, 0)));
        assert_eq!(key(1, u8::MAX, u64::MAX).next(), Some(key(2, 0, 0)));
        assert_eq!(key(u64::MAX, u8::MAX, u64::MAX).next(), None);
    }

    #[test]
    fn of_a_chunk_each_device_has_its_parts_and_a_damaged_one_has_none() {
        let mut chunk = vec![0; 48 + 2 * 32];
        chunk[CHUNK_FLAGS..CHUNK_FLAGS + 8].copy_from_slice(&(1 | 1_u64 << 4).to_ne_bytes());
        chunk[CHUNK_PARTS..CHUNK_PARTS + 2].copy_from_slice(&2_u16.to_ne_bytes());
        chunk[48..56].copy_from_slice(&1_u64.to_ne_bytes());
        chunk[80..88].copy_from_slice(&300_u64.to_ne_bytes());
        assert_eq!(devices_of(&chunk), [1, 300]);
        assert_eq!((devices_of(&chunk[..60]), devices_of(&chunk[..20])), (vec![], vec![]));
        let flags = word_at(&chunk, CHUNK_FLAGS);
        assert!(flags & TWICE != 0);
        assert_eq!(part(used_by_copies(flags, 1 << 62), 1, 2), 1 << 62, "of a mirror one copy");
    }
}
