//! Files that go from memory to the disk, oldest first. A file that somebody has open stays, but for one that its writer fills beyond
//! what memory has, where the tenant chose that.

use super::Tree;
use crate::census::walk;
use crate::file_system::Result;
use crate::lease::is_alone;
use crate::node::{Node, NodeState, charge};
use crate::spill::{SpillArea, SpillPass, empty};
use rustix::fs::{FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use std::collections::BinaryHeap;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard, TryLockError};

/// Files of which a pass keeps a descriptor at once.
const BATCH: usize = 128;
/// Bytes after which a pass ends, so that other tenants have their turn.
const BATCH_BYTES: u64 = 256 << 20;
/// Batches of which a pass finds that none can be moved; the next pass goes on after them.
const WALKS_MAX: u32 = 8;

/// When a file was used last, and its number.
type Age = ((i64, i64), u64);

/// The passes over a tree. Two trees must never spill to one area: neither would know which files the other has emptied.
#[derive(Debug, Default)]
pub(super) struct Passes {
    /// Each pass shares it; who has it alone knows that none is under way.
    under_way: RwLock<()>,
    /// None is begun any more, and those under way end soon.
    are_over: AtomicBool,
    /// Files up to this age could not be moved.
    stuck_up_to: Mutex<Option<Age>>,
}

impl Passes {
    /// Ends them, and keeps others from being begun for as long as what is returned.
    pub(super) fn end(&self) -> RwLockWriteGuard<'_, ()> {
        self.are_over.store(true, Ordering::Relaxed);
        self.under_way.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on there may be some again.
    pub(super) fn allow(&self) {
        self.are_over.store(false, Ordering::Relaxed);
    }

    fn are_over(&self) -> bool {
        self.are_over.load(Ordering::Relaxed)
    }

    fn stuck_up_to(&self) -> MutexGuard<'_, Option<Age>> {
        self.stuck_up_to.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A closed file, by its last use. The file that was used last is the greatest.
struct Candidate {
    used: (i64, i64),
    number: u64,
    path: OwnedFd,
}

impl Candidate {
    fn key(&self) -> Age {
        (self.used, self.number)
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Candidate {}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl Tree {
    /// Moves closed files to the disk, the one used longest ago first, until at most `bytes` are used in memory, `stop` says so or enough
    /// was moved for one pass. Where nothing was moved though more is used, what is left is open or cannot be moved.
    pub fn spill_some(&self, bytes: u64, stop: &dyn Fn() -> bool) -> SpillPass {
        let mut pass = SpillPass::default();
        let _under_way = self.passes.under_way.read().unwrap_or_else(PoisonError::into_inner);
        let is_reached = || self.usage().bytes <= bytes;
        if self.spill.is_none() || self.passes.are_over() || is_reached() {
            return pass;
        }
        let stop: &dyn Fn() -> bool = &|| self.passes.are_over() || stop();
        let begun_after = *self.passes.stuck_up_to();
        let (mut after, mut has_wrapped) = (begun_after, begun_after.is_none());
        let mut is_room_short = false;
        while pass.walks < WALKS_MAX {
            pass.walks += 1;
            let (candidates, are_some_too_large) = self.oldest(after);
            is_room_short |= are_some_too_large;
            // Where there are fewer than a batch, the last is the youngest of all.
            let last = candidates.last().map(Candidate::key).filter(|_| candidates.len() == BATCH);
            for candidate in candidates {
                if is_reached() {
                    *self.passes.stuck_up_to() = None;
                    return pass;
                }
                if pass.bytes >= BATCH_BYTES || stop() {
                    return pass;
                }
                self.spill_candidate(candidate, &mut pass, stop);
            }
            if pass.files > 0 || pass.error.is_some() {
                break;
            }
            // They may stay for long, as those that are mapped do, and must not keep younger ones from going. After the youngest all are
            // looked at again.
            *self.passes.stuck_up_to() = last;
            after = last;
            // It has looked at each once: it is at the youngest again, or where it began.
            if has_wrapped && last.is_none_or(|last| begun_after.is_some_and(|begun_after| last >= begun_after)) {
                break;
            }
            has_wrapped |= last.is_none();
        }
        if is_room_short && pass.files == 0 {
            pass.error = pass.error.or(Some(Errno::NOSPC));
        }
        pass
    }

    /// It is unmounted, and nothing of it is to spill until it is served again ([`Tree::forget_all`]): before another tree is opened on the
    /// same directories. Whether nothing does; a pass under way ends soon, and who asks again then is told so.
    pub fn retire(&self) -> bool {
        self.passes.are_over.store(true, Ordering::Relaxed);
        !matches!(self.passes.under_way.try_write(), Err(TryLockError::WouldBlock))
    }

    /// As [`Tree::spill_some`], until no more can be moved, or need be.
    fn spill_down_to(&self, bytes: u64) -> SpillPass {
        let mut all = SpillPass::default();
        loop {
            let pass = self.spill_some(bytes, &|| false);
            all.files += pass.files;
            all.bytes += pass.bytes;
            all.walks += pass.walks;
            all.error = all.error.or(pass.error);
            if pass.files == 0 {
                return all;
            }
        }
    }

    fn spill_candidate(&self, candidate: Candidate, pass: &mut SpillPass, stop: &dyn Fn() -> bool) {
        let Ok(stat) = fstat(&candidate.path) else { return };
        let node = self.count_node(candidate.path, &stat, None);
        if let Some(mut state) = node.try_lock()
            && state.opens == 0
        {
            match self.spill_node(&node, &mut state, &|| node.is_waited_for() || stop()) {
                Ok(bytes) => {
                    pass.files += u64::from(bytes.is_some());
                    pass.bytes += bytes.unwrap_or(0);
                }
                Err(error) => pass.error = pass.error.or(Some(error)),
            }
        }
        self.nodes.forget(candidate.number, 1);
    }

    /// The files that were used longest ago, of those younger than `after`, are not known to be open, and find room on the disk; and whether
    /// there are some that find none. Those must not keep younger, shorter ones from going, however many they are.
    fn oldest(&self, after: Option<Age>) -> (Vec<Candidate>, bool) {
        let mut heap: BinaryHeap<Candidate> = BinaryHeap::new();
        let room = self.spill.as_ref().map_or(0, SpillArea::room);
        let mut are_some_too_large = false;
        // What it could not read it does not move.
        let _ = walk(&self.root.path, &mut |file| {
            let stat = file.stat;
            let used = (stat.st_atime, stat.st_atime_nsec as i64).max((stat.st_mtime, stat.st_mtime_nsec as i64));
            let is_later = heap.peek().is_some_and(|latest| (used, stat.st_ino) >= latest.key());
            let is_open = || self.nodes.get(stat.st_ino).is_some_and(|node| node.data().is_some());
            let is_stuck = after.is_some_and(|after| (used, stat.st_ino) <= after);
            if stat.st_blocks == 0 || is_stuck || (heap.len() == BATCH && is_later) || is_open() {
                return;
            }
            if charge(stat) > room {
                are_some_too_large = true;
                return;
            }
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let Ok(path) = openat(file.directory, file.name, flags, Mode::empty()) else { return };
            // The name may be another file's by now.
            if fstat(&path).is_ok_and(|now| now.st_ino == stat.st_ino) {
                heap.push(Candidate { used, number: stat.st_ino, path });
            }
            if heap.len() > BATCH {
                heap.pop();
            }
        });
        (heap.into_sorted_vec(), are_some_too_large)
    }

    /// Makes room for a write of a tenant that goes over to the disk when memory is full: closed files first, then the file itself, if
    /// the kernel does not read it on its own. Whether anything was gained.
    pub(super) fn make_room(&self, node: &Node, state: &mut NodeState, bytes: u64) -> bool {
        let usage = self.account.usage();
        let wanted = usage.bytes_max.saturating_sub(bytes.max(usage.bytes_max / 8));
        if self.spill_down_to(wanted).files > 0 {
            return true;
        }
        !state.is_with_kernel && matches!(self.spill_node(node, state, &|| false), Ok(Some(_)))
    }

    /// Moves one file's data; how many bytes, or `None` where it has to stay.
    fn spill_node(&self, node: &Node, state: &mut NodeState, stop: &dyn Fn() -> bool) -> Result<Option<u64>> {
        let Some(spill) = &self.spill else { return Ok(None) };
        // Another thread may have spilled it, or a program removed it, since somebody chose it: then what is here is empty, and the only
        // copy is the one that would be replaced.
        self.find_spilled(node, state)?;
        if fstat(&node.path)?.st_nlink == 0 {
            return Ok(None);
        }
        if node.kind != FileType::RegularFile || state.spilled.is_some() || state.is_gone {
            return Ok(None);
        }
        let data = node.open_to_write(state)?;
        if !is_alone(&data) || !self.hold_copy(state) {
            return Ok(None);
        }
        let received = fstat(&*data)
            .and_then(|stat| spill.receive(&data, &stat, &|to, bytes| self.send_behind(to, bytes), stop))
            .inspect_err(|_| state.held_spilled = None)?;
        let Some(copy) = received else {
            state.held_spilled = None;
            return Ok(None);
        };
        let copy = Arc::new(copy);
        let freed = state.charged;
        self.account.correct(freed, 0);
        state.charged = fstat(&*copy).map_or(0, |stat| charge(&stat));
        if state.opens > 0 {
            node.set_data(Some(Arc::clone(&copy)));
        }
        state.spilled = Some(copy);
        // Where this fails the memory is free no sooner than at the next start; the copy is the file from now on.
        let _ = empty(&data);
        self.counters.spilled_files.fetch_add(1, Ordering::Relaxed);
        self.counters.spilled_bytes.fetch_add(freed, Ordering::Relaxed);
        Ok(Some(freed))
    }
}

#[cfg(test)]
mod tests;
