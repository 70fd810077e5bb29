//! What `stat` shows, extended attributes, and the room that is shown.

use super::Tree;
use super::data::end_privileges;
use crate::blocks::BLOCK;
use crate::disk_room::{left_on_disk, room_on_disk};
use crate::file_system::{Attributes, Caller, Changes, Moment, NewTime, Result, Space};
use crate::node::{Node, NodeState};
use crate::reopen::path_of;
use rustix::fs::CWD;
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid, XattrFlags, chmod, chownat,
    fstatfs, ftruncate, futimens, getxattr, listxattr, removexattr, setxattr, utimensat,
};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::Ordering;

/// The longest value and the longest list of names that Linux has.
const XATTR_BYTES_MAX: usize = 64 << 10;
/// `f_type` of btrfs, in `statfs`: it counts no attribute among a file's blocks.
const BTRFS_MAGIC: u64 = 0x9123_683e;

impl Tree {
    pub(super) fn do_set_attributes(&self, caller: Caller, number: u64, changes: &Changes) -> Result<Attributes> {
        let node = self.node(number)?;
        let mut state = node.lock();
        state.change()?;
        if let Some(mode) = changes.mode {
            state.has_no_privileges = false;
            chmod(path_of(&node.path), Mode::from_raw_mode(mode & 0o7777))?;
        }
        if changes.uid.is_some() || changes.gid.is_some() {
            let (uid, gid) = (changes.uid.map(Uid::from_raw), changes.gid.map(Gid::from_raw));
            chownat(&node.path, "", uid, gid, AtFlags::EMPTY_PATH)?;
        }
        if let Some(size) = changes.size {
            if caller.uid != 0 {
                end_privileges(&node, &mut state);
            }
            self.set_size(&node, &mut state, size)?;
        }
        if changes.accessed.is_some() || changes.modified.is_some() {
            set_times(&node, &state, changes)?;
        }
        let mut shown = node.attributes(&state)?;
        shown.node = number;
        Ok(shown)
    }

    fn set_size(&self, node: &Node, state: &mut NodeState, size: u64) -> Result<()> {
        let data = node.open_to_write(state)?;
        let done = ftruncate(&*data, size);
        self.settle(node, state, 0);
        done
    }

    pub(super) fn do_space(&self) -> Result<Space> {
        let usage = self.usage();
        let on_disk = left_on_disk(&self.root.path, self.reserve_here())?;
        Ok(Space {
            bytes: usage.bytes_max,
            bytes_left: usage.bytes_max.saturating_sub(usage.bytes).min(on_disk),
            files: usage.files_max,
            files_left: usage.files_max.saturating_sub(usage.files),
        })
    }

    pub(super) fn do_xattr(&self, number: u64, name: &OsStr) -> Result<Vec<u8>> {
        let node = self.node(number)?;
        let mut value = vec![0; XATTR_BYTES_MAX];
        let length = getxattr(path_of(&node.path), name, &mut value[..])?;
        value.truncate(length);
        Ok(value)
    }

    pub(super) fn do_xattrs(&self, number: u64) -> Result<Vec<u8>> {
        let node = self.node(number)?;
        let mut names = vec![0; XATTR_BYTES_MAX];
        let length = listxattr(path_of(&node.path), &mut names[..])?;
        names.truncate(length);
        Ok(names)
    }

    pub(super) fn do_set_xattr(&self, number: u64, name: &OsStr, value: &[u8], flags: i32) -> Result<()> {
        let node = self.node(number)?;
        let flags = XattrFlags::from_bits(flags as u32).ok_or(Errno::INVAL)?;
        let mut state = node.lock();
        state.change()?;
        if !is_charged(&node)? && outgrows_a_block(&node, name, value)? {
            self.counters.refused.fetch_add(1, Ordering::Relaxed);
            return Err(Errno::NOSPC);
        }
        // It may take a block of its own, which a later look finds with the file.
        let room = (value.len() as u64).div_ceil(BLOCK) * BLOCK;
        if self.is_disk_full() {
            return Err(Errno::NOSPC);
        }
        if !self.account_of(&state).reserve_bytes(room) {
            self.counters.refused.fetch_add(1, Ordering::Relaxed);
            return Err(Errno::NOSPC);
        }
        state.has_no_privileges = false;
        let done = setxattr(path_of(&node.path), name, value, flags);
        self.settle(&node, &mut state, room);
        done
    }

    pub(super) fn do_remove_xattr(&self, number: u64, name: &OsStr) -> Result<()> {
        let node = self.node(number)?;
        let mut state = node.lock();
        state.change()?;
        let done = removexattr(path_of(&node.path), name);
        self.settle(&node, &mut state, 0);
        done
    }

    /// What of the pool's disk stays free of this tree's own names and files: nothing where they are in memory.
    fn reserve_here(&self) -> u64 {
        if self.options.is_durable { self.reserve_bytes() } else { 0 }
    }

    /// Bytes that a file may still take of the pool's disk; any number where it lies in memory.
    pub(super) fn left_below(&self, state: &NodeState, data: &OwnedFd) -> u64 {
        let lies_there = self.options.is_durable || state.spilled.is_some();
        if lies_there { room_on_disk(data, self.reserve_bytes()) } else { u64::MAX }
    }

    /// Whether the pool's disk has nothing left but what is to stay free. Counts what that refused.
    pub(super) fn is_disk_full(&self) -> bool {
        let is_full = room_on_disk(&self.root.path, self.reserve_here()) < BLOCK;
        if is_full {
            self.counters.refused.fetch_add(1, Ordering::Relaxed);
        }
        is_full
    }
}

/// Whether what its attributes take is seen on the account: of a regular file, whose blocks are, where the file system below counts them
/// among those.
fn is_charged(node: &Node) -> Result<bool> {
    Ok(node.kind == FileType::RegularFile && fstatfs(&node.path)?.f_type as u64 != BTRFS_MAGIC)
}

/// Whether all attributes of a node would have more bytes than a block, which is as much as its place among the files pays for, and more
/// than they have now.
fn outgrows_a_block(node: &Node, name: &OsStr, value: &[u8]) -> Result<bool> {
    let path = path_of(&node.path);
    let mut names = vec![0; XATTR_BYTES_MAX];
    let length = match listxattr(&path, &mut names[..]) {
        // More names than anybody can list.
        Err(Errno::TOOBIG) => return Ok(true),
        length => length?,
    };
    let mut found = vec![0; XATTR_BYTES_MAX];
    let (mut before, mut replaced) = (0, 0);
    for other in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let bytes = other.len() + getxattr(&path, other, &mut found[..]).unwrap_or(0);
        before += bytes;
        if other == name.as_bytes() {
            replaced = bytes;
        }
    }
    let after = before - replaced + name.len() + value.len();
    Ok(after as u64 > BLOCK && after > before)
}

fn set_times(node: &Node, state: &NodeState, changes: &Changes) -> Result<()> {
    let times = Timestamps { last_access: timespec(changes.accessed), last_modification: timespec(changes.modified) };
    match &state.spilled {
        Some(spilled) => futimens(&**spilled, &times),
        None if node.kind == FileType::Symlink => utimensat(&node.path, "", &times, AtFlags::EMPTY_PATH),
        None => utimensat(CWD, path_of(&node.path), &times, AtFlags::empty()),
    }
}

fn timespec(time: Option<NewTime>) -> Timespec {
    match time {
        None => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        Some(NewTime::Now) => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        Some(NewTime::At(Moment { seconds, nanoseconds })) => Timespec { tv_sec: seconds, tv_nsec: nanoseconds.into() },
    }
}

#[cfg(test)]
mod tests;
