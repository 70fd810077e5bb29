//! Opening, writing and room for it. Room is reserved before a write and corrected after it by what the file below then occupies.

use super::{Handle, Tree};
use crate::account::Account;
use crate::blocks::{fitting, missing, spanned};
use crate::failures::Told;
use crate::file_system::{Caller, Opened, Result, WriteOrigin, syncs};
use crate::node::{Node, NodeState, charge, has_advance};
use rustix::fs::{FallocateFlags, FileType, Mode, OFlags, fallocate, fchmod, fstat, openat};
use rustix::io::{Errno, pwrite};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often and how long a write at the limit waits for room that is about to be free.
const WAITS_MAX: u32 = 3;
const WAIT: Duration = Duration::from_millis(5);
const SET_USER: u32 = 0o4000;
const SET_GROUP: u32 = 0o2000;
const GROUP_EXECUTES: u32 = 0o010;
/// Who runs a file with it has rights of its own.
const CAPABILITY: &str = "security.capability";

impl Tree {
    /// The account that a file's bytes are on.
    pub(crate) fn account_of(&self, state: &NodeState) -> &Account {
        match (&state.spilled, &self.spill) {
            (Some(_), Some(spill)) => spill.account(),
            _ => &self.account,
        }
    }

    /// What the file occupies now is what is on the account for it, and `reserved` no longer is.
    pub(crate) fn settle(&self, node: &Node, state: &mut NodeState, reserved: u64) {
        let occupied = match (node.data(), &state.spilled) {
            (Some(data), _) => fstat(&*data),
            (None, Some(spilled)) => fstat(&**spilled),
            (None, None) => fstat(&node.path),
        };
        let after = occupied.as_ref().map_or(state.charged, charge);
        state.has_advance = occupied.as_ref().is_ok_and(has_advance);
        self.account_of(state).correct(state.charged + reserved, after);
        state.charged = after;
    }

    /// Nobody can reach the file any more: its bytes are off the account, and out of the spill area.
    pub(super) fn refund(&self, node: &Node, state: &mut NodeState) {
        self.account_of(state).correct(state.charged, 0);
        state.charged = 0;
        if let (Some(_), Some(spill)) = (&state.spilled, &self.spill) {
            spill.remove(node.number);
        }
    }

    pub(super) fn do_open(&self, number: u64, flags: i32) -> Result<Opened> {
        let node = self.node(number)?;
        if node.kind != FileType::RegularFile {
            return Err(Errno::INVAL);
        }
        self.open_node(node, flags)
    }

    /// Opens a node. Who opens it first decides whether the kernel reads it by itself, for as long as anybody has it open: it wants the
    /// same file below for all of them.
    fn open_node(&self, node: Arc<Node>, flags: i32) -> Result<Opened> {
        let held = self.hold(1)?;
        let access = flags & libc::O_ACCMODE;
        let is_writable = access != libc::O_RDONLY;
        let mut state = node.lock();
        if state.has_moved {
            // The kernel goes through the names again, and finds it at its place.
            return Err(Errno::STALE);
        }
        let data = if is_writable { node.open_to_write(&state)? } else { node.open_data(&state)? };
        if state.opens == 0 {
            // A file that may grow beyond memory has to be able to move while it is written.
            let may_grow = is_writable || self.service_reads.load(Ordering::Relaxed);
            let may_move = may_grow && self.spills_when_full() && state.spilled.is_none();
            state.is_with_kernel = self.passes_through() && !may_move;
            state.held = Some(held);
            if state.is_gone {
                self.settle(&node, &mut state, 0);
            }
        }
        // Another than before where that was opened while the disk took no writes.
        node.set_data(Some(Arc::clone(&data)));
        state.opens += 1;
        state.writers += u64::from(is_writable);
        state.may_be_mapped |= state.is_with_kernel;
        state.may_be_stored_to |= is_writable;
        // What is stored through a mapping is not seen.
        state.changes += u64::from(is_writable);
        let is_with_kernel = state.is_with_kernel;
        // What lies on the disk is on another account, which nothing but the service keeps.
        let kernel_writes = self.options.kernel_writes && state.spilled.is_none();
        // Who opens it for both may map it and store to it, of which nothing is told.
        if is_with_kernel && !kernel_writes && access == libc::O_RDWR {
            self.watch(&node, &state);
        }
        let told = Told::all(&state.failures);
        drop(state);
        let handle =
            self.add_handle(Handle { node, is_writable, syncs: syncs(flags), told, directory: None, _held: None });
        Ok(Opened { handle, backing: is_with_kernel.then_some(data), is_writable, kernel_writes })
    }

    pub(super) fn do_create(
        &self,
        caller: Caller,
        parent: u64,
        name: &OsStr,
        mode: u32,
        flags: i32,
    ) -> Result<(crate::Attributes, Opened)> {
        let parent = self.node(parent)?;
        self.refuse_own(&parent, name)?;
        self.reserve_file()?;
        let create = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = crate::caller::ActingAs::new(caller)
            .and_then(|_acting| openat(&parent.path, name, create, Mode::from_raw_mode(mode & 0o7777)));
        let shown = match made {
            Ok(_made) => self.name_new(&parent, name)?,
            Err(error) => {
                self.account.release_file();
                if error != Errno::EXIST || flags & libc::O_EXCL != 0 {
                    return Err(error);
                }
                let node = self.look_up(&parent, name)?;
                self.show(&node)?
            }
        };
        let opened = self.do_open(shown.node, flags);
        if opened.is_err() {
            self.nodes.forget(shown.node, 1);
        }
        Ok((shown, opened?))
    }

    pub(super) fn do_release(&self, handle: u64) -> Result<()> {
        let handle = self.take_handle(handle)?;
        let node = &handle.node;
        let mut state = node.lock();
        state.opens = state.opens.saturating_sub(1);
        state.writers -= u64::from(handle.is_writable && state.writers > 0);
        if handle.is_writable && state.opens > 0 {
            self.settle(node, &mut state, 0);
            if state.writers == 0 {
                self.last_writer_gone(node, &mut state);
            }
        }
        if state.opens == 0 {
            self.close(node, &mut state);
            node.set_data(None);
            let held = state.held.take();
            // Data that went to the spill area meanwhile stay open there.
            if state.spilled.is_some() && state.held_spilled.is_none() {
                state.held_spilled = held;
            }
            state.is_with_kernel = false;
        }
        Ok(())
    }

    pub(super) fn do_write(&self, handle: u64, offset: u64, bytes: &[u8], origin: WriteOrigin) -> Result<usize> {
        let handle = self.handle(handle)?;
        let (node, mut state) = (&handle.node, handle.node.lock());
        // Before room is reserved, which would be lost where this refuses.
        state.change()?;
        let length = bytes.len() as u64;
        let (fitting, reserved) = if origin.is_mapped {
            // As where the kernel maps the file below: never refused, and counted beyond the quota.
            (length, self.room_for_all(node, &mut state, offset, length)?.unwrap_or(0))
        } else {
            self.room(node, &mut state, offset, length)?
        };
        let data = node.data().ok_or(Errno::BADF)?;
        if origin.ends_privileges {
            end_privileges(node, &mut state);
        }
        let result = write_all(&data, &bytes[..fitting as usize], offset, origin.is_mapped);
        self.settle(node, &mut state, reserved);
        let written = result? as u64;
        let behind = self.note_written(&mut state, written);
        drop(state);
        self.write_behind(node, &data, behind);
        self.counters.bytes_written.fetch_add(written, Ordering::Relaxed);
        Ok(written as usize)
    }

    /// Reserves room for a write: how many bytes of it fit, and how many are reserved for them.
    fn room(&self, node: &Node, state: &mut NodeState, offset: u64, length: u64) -> Result<(u64, u64)> {
        if let Some(reserved) = self.room_for_all(node, state, offset, length)? {
            return Ok((length, reserved));
        }
        let data = node.data().ok_or(Errno::BADF)?;
        let account = self.account_of(state);
        let left = account.bytes_left().min(self.left_below(state, &data));
        let fitting = fitting(&data, offset, length, left)?;
        let needed = missing(&data, offset, fitting)?;
        if fitting > 0 && account.reserve_bytes(needed) { Ok((fitting, needed)) } else { Err(self.refuse()) }
    }

    /// Reserves room for all of a range, if there is as much: how many bytes. Where memory is full and the tenant chose so, files make room,
    /// at last the one that is written.
    fn room_for_all(&self, node: &Node, state: &mut NodeState, offset: u64, length: u64) -> Result<Option<u64>> {
        let mut waits = 0;
        loop {
            let data = node.data().ok_or(Errno::BADF)?;
            let below = self.left_below(state, &data);
            let most = spanned(offset, length);
            if most <= below && self.account_of(state).reserve_bytes(most) {
                return Ok(Some(most));
            }
            // Close to the limit it is worth looking at which blocks are there already.
            let missing = missing(&data, offset, length)?;
            if missing <= below && self.account_of(state).reserve_bytes(missing) {
                return Ok(Some(missing));
            }
            if self.spills_when_full() && state.spilled.is_none() && self.make_room(node, state, missing) {
                continue;
            }
            if waits == WAITS_MAX {
                return Ok(None);
            }
            // The kernel tells of a closed file a moment after the program has closed it, and of an ended mapping not at all.
            waits += 1;
            std::thread::sleep(WAIT);
            self.look_at_mapped();
        }
    }

    /// Counts that the quota, or the disk, has no room.
    fn refuse(&self) -> Errno {
        self.counters.refused.fetch_add(1, Ordering::Relaxed);
        Errno::NOSPC
    }

    pub(super) fn do_allocate(&self, caller: Caller, handle: u64, offset: u64, length: u64, mode: i32) -> Result<()> {
        let mode = FallocateFlags::from_bits(mode as u32).ok_or(Errno::OPNOTSUPP)?;
        let handle = self.handle(handle)?;
        let node = &handle.node;
        let mut state = node.lock();
        state.change()?;
        let takes_room = !mode.intersects(FallocateFlags::PUNCH_HOLE | FallocateFlags::COLLAPSE_RANGE);
        let reserved = if takes_room {
            self.room_for_all(node, &mut state, offset, length)?.ok_or_else(|| self.refuse())?
        } else {
            0
        };
        let data = node.data().ok_or(Errno::BADF)?;
        if caller.uid != 0 {
            end_privileges(node, &mut state);
        }
        let done = fallocate(&*data, mode, offset, length);
        self.settle(node, &mut state, reserved);
        done
    }

    pub(super) fn do_copy(&self, from: (u64, u64), to: (u64, u64), length: u64) -> Result<usize> {
        const PIECE: u64 = 1 << 20;
        let mut buffer = vec![0; length.min(PIECE) as usize];
        let read = self.do_read(from.0, from.1, &mut buffer)?;
        if read == 0 {
            return Ok(0);
        }
        self.do_write(to.0, to.1, &buffer[..read], WriteOrigin { ends_privileges: true, is_mapped: false })
    }
}

/// How many bytes were written; an error where those are not all and `or_fails`.
fn write_all(data: &OwnedFd, bytes: &[u8], offset: u64, or_fails: bool) -> Result<usize> {
    let mut written = 0;
    while written < bytes.len() {
        match pwrite(data, &bytes[written..], offset + written as u64) {
            Ok(0) if or_fails => return Err(Errno::IO),
            Ok(0) => break,
            Ok(more) => written += more,
            Err(Errno::INTR) => (),
            // What is written is written.
            Err(_) if written > 0 && !or_fails => break,
            Err(error) => return Err(error),
        }
    }
    Ok(written)
}

/// What a file let its runner do ends when somebody else changes it.
pub(super) fn end_privileges(node: &Node, state: &mut NodeState) {
    if state.has_no_privileges {
        return;
    }
    let Ok(stat) = fstat(&node.path) else { return };
    let mut mode = stat.st_mode & !SET_USER;
    if mode & GROUP_EXECUTES != 0 {
        mode &= !SET_GROUP;
    }
    let have_bits_ended = mode == stat.st_mode
        || crate::reopen::reopen(&node.path, OFlags::RDONLY)
            .and_then(|file| fchmod(&file, Mode::from_raw_mode(mode & 0o7777)))
            .is_ok();
    // What lies on the disk for want of memory has no attributes.
    let has_capability_ended = state.spilled.is_some()
        || match rustix::fs::removexattr(crate::reopen::path_of(&node.path), CAPABILITY) {
            Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP) => true,
            Err(_) => false,
        };
    // The file system below takes a transaction for this, so that it is not asked before each write.
    state.has_no_privileges = have_bits_ended && has_capability_ended;
}
