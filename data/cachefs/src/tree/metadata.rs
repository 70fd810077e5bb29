//! What `stat` shows, extended attributes, and the room that is shown.

use super::Tree;
use super::data::end_privileges;
use crate::file_system::{Attributes, Caller, Changes, Moment, NewTime, Result, Space};
use crate::node::{Node, NodeState};
use crate::reopen::path_of;
use rustix::fs::CWD;
use rustix::fs::{
    AtFlags, Gid, Mode, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid, XattrFlags, chmod, chownat, fstatvfs,
    ftruncate, futimens, getxattr, listxattr, removexattr, setxattr, utimensat,
};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::sync::atomic::Ordering;

/// The longest value and the longest list of names that Linux has.
const XATTR_BYTES_MAX: usize = 64 << 10;

impl Tree {
    pub(super) fn do_set_attributes(&self, caller: Caller, number: u64, changes: &Changes) -> Result<Attributes> {
        let node = self.node(number)?;
        let mut state = node.lock();
        state.change()?;
        if let Some(mode) = changes.mode {
            chmod(path_of(&node.path), Mode::from_raw_mode(mode & 0o7777))?;
        }
        if changes.uid.is_some() || changes.gid.is_some() {
            let (uid, gid) = (changes.uid.map(Uid::from_raw), changes.gid.map(Gid::from_raw));
            chownat(&node.path, "", uid, gid, AtFlags::EMPTY_PATH)?;
        }
        if let Some(size) = changes.size {
            if caller.uid != 0 {
                end_privileges(&node, &state);
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
        let data = node.open_data(state)?;
        let done = ftruncate(&*data, size);
        self.settle(node, state, 0);
        done
    }

    pub(super) fn do_space(&self) -> Result<Space> {
        let usage = self.usage();
        let below = fstatvfs(&self.root.path)?;
        let on_disk = (below.f_bavail * below.f_frsize).saturating_sub(self.reserve_bytes());
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
        node.lock().change()?;
        setxattr(path_of(&node.path), name, value, flags)
    }

    pub(super) fn do_remove_xattr(&self, number: u64, name: &OsStr) -> Result<()> {
        let node = self.node(number)?;
        node.lock().change()?;
        removexattr(path_of(&node.path), name)
    }

    /// Counts what the quota refused.
    pub(super) fn is_disk_full(&self) -> bool {
        let is_full = self.reserve_bytes() > 0
            && fstatvfs(&self.root.path).is_ok_and(|below| below.f_bavail * below.f_frsize <= self.reserve_bytes());
        if is_full {
            self.counters.refused.fetch_add(1, Ordering::Relaxed);
        }
        is_full
    }
}

fn set_times(node: &Node, state: &NodeState, changes: &Changes) -> Result<()> {
    let times = Timestamps { last_access: timespec(changes.accessed), last_modification: timespec(changes.modified) };
    match &state.spilled {
        Some(spilled) => futimens(&**spilled, &times),
        None if node.kind == rustix::fs::FileType::Symlink => utimensat(&node.path, "", &times, AtFlags::EMPTY_PATH),
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
