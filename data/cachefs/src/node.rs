//! What is known of one file while the kernel knows it.

use crate::descriptors::Held;
use crate::failures::Failures;
use crate::file_system::{Attributes, Moment, Result};
use crate::reopen::{for_both_or_to_read, only_reads, reopen};
use rustix::fs::{FileType, OFlags, Stat, fstat};
use rustix::io::Errno;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Instant;

/// The number of the root, as the kernel has it.
pub(crate) const ROOT: u64 = 1;
/// Bytes of the unit in which `stat` counts.
const BLOCK: u64 = 512;
/// Less than this beyond a file's size is no room that was given in advance.
const ADVANCE_MIN: u64 = 12 << 10;

/// One file.
#[derive(Debug)]
pub(crate) struct Node {
    /// Its number in the file system below.
    pub(crate) number: u64,
    pub(crate) kind: FileType,
    /// Open for its name only: neither reads nor writes, and keeps the number from being given to another file.
    pub(crate) path: OwnedFd,
    state: Mutex<NodeState>,
    /// Through what data goes while it is open.
    data: RwLock<Option<Arc<OwnedFd>>>,
    /// Whose sync is under way.
    syncing: Mutex<()>,
    /// Who waits for the state while a spill holds it.
    waiting: AtomicU32,
    /// By which name the kernel asked for it last, and in which directory.
    name: Mutex<Option<(u64, OsString)>>,
}

/// What changes.
#[derive(Debug, Default)]
pub(crate) struct NodeState {
    /// Open handles.
    pub(crate) opens: u64,
    /// Handles that may write.
    pub(crate) writers: u64,
    /// The kernel reads the file below by itself as long as anybody has it open, so that no other can take its place.
    pub(crate) is_with_kernel: bool,
    /// It was open in a way in which programs map the file below by the kernel, and it was not seen since that nobody has it.
    pub(crate) may_be_mapped: bool,
    /// And one of them may have stored to it.
    pub(crate) may_be_stored_to: bool,
    /// Bytes that are on the account for it.
    pub(crate) charged: u64,
    /// It has no name any more.
    pub(crate) is_gone: bool,
    /// Its data lie there and no longer in the file itself.
    pub(crate) spilled: Option<Arc<OwnedFd>>,
    /// The directory whose entry for it is not known to be on the disk.
    pub(crate) unsynced_parent: Option<Arc<Node>>,
    /// Something was written since the last sync.
    pub(crate) is_dirty: bool,
    /// Bytes that were written and not yet sent on to the pool's disk by us.
    pub(crate) unwritten: u64,
    /// What the disk failed.
    pub(crate) failures: Failures,
    /// It occupies clearly more than is in it: as XFS does, the file system below gave room in advance, and takes it back by itself.
    pub(crate) has_advance: bool,
    /// Until then it is looked whether that was taken back.
    pub(crate) shrinks_until: Option<Instant>,
    /// Nothing of it lets its runner do what others may not, by its mode or a capability, unless that is set again.
    pub(crate) has_no_privileges: bool,
    /// Counts what changed, data or attributes, so that who copied it knows whether the copy still is one.
    pub(crate) changes: u64,
    /// What it has of the process's descriptors while the kernel knows it.
    pub(crate) held_known: Option<Held>,
    /// What its data in the spill area have of them meanwhile; none where they went there while it was open, until it is closed.
    pub(crate) held_spilled: Option<Held>,
    /// What its data have of them while it is open.
    pub(crate) held: Option<Held>,
    /// It is at its own place now, and this is no longer the file.
    pub(crate) has_moved: bool,
}

impl NodeState {
    /// Something is about to change; not in a file that has moved, which the kernel is to look up anew.
    pub(crate) fn change(&mut self) -> Result<()> {
        if self.has_moved {
            return Err(Errno::STALE);
        }
        self.is_dirty = true;
        self.changes += 1;
        Ok(())
    }

    /// Whether its data in the spill area have none of the process's descriptors.
    pub(crate) fn holds_no_copy(&self) -> bool {
        self.spilled.is_some() && self.held_spilled.is_none() && self.held.is_none()
    }
}

impl Node {
    pub(crate) fn new(path: OwnedFd, stat: &Stat, held: Option<Held>) -> Self {
        let kind = FileType::from_raw_mode(stat.st_mode);
        let state = NodeState { charged: charge(stat), held_known: held, ..NodeState::default() };
        Self {
            number: stat.st_ino,
            kind,
            path,
            state: Mutex::new(state),
            data: RwLock::new(None),
            syncing: Mutex::default(),
            waiting: AtomicU32::new(0),
            name: Mutex::default(),
        }
    }

    /// Waits for whoever else has the state; a spill under way gives way.
    pub(crate) fn lock(&self) -> MutexGuard<'_, NodeState> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        state
    }

    /// Waits for the sync that is under way; none begins before this is dropped.
    pub(crate) fn sync_turn(&self) -> MutexGuard<'_, ()> {
        self.syncing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The kernel knows it by this name from now on.
    pub(crate) fn set_name(&self, parent: u64, name: &OsStr) {
        *self.name.lock().unwrap_or_else(PoisonError::into_inner) = Some((parent, name.to_owned()));
    }

    fn name(&self) -> Option<(u64, OsString)> {
        self.name.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The state, unless somebody has it.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, NodeState>> {
        self.state.try_lock().ok()
    }

    /// Whether somebody waits for the state.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Through what data goes now; none while it is not open.
    pub(crate) fn data(&self) -> Option<Arc<OwnedFd>> {
        self.data.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on through this.
    pub(crate) fn set_data(&self, data: Option<Arc<OwnedFd>>) {
        *self.data.write().unwrap_or_else(PoisonError::into_inner) = data;
    }

    /// The file that has the data, opened for both ways, or where that cannot be to read, unless it is open.
    pub(crate) fn open_data(&self, state: &NodeState) -> Result<Arc<OwnedFd>> {
        match self.data().or_else(|| state.spilled.clone()) {
            Some(data) => Ok(data),
            None => Ok(Arc::new(for_both_or_to_read(|flags| reopen(&self.path, flags))?)),
        }
    }

    /// The same for who changes it.
    pub(crate) fn open_to_write(&self, state: &NodeState) -> Result<Arc<OwnedFd>> {
        let data = self.open_data(state)?;
        if only_reads(&*data) { Ok(Arc::new(reopen(&*data, OFlags::RDWR)?)) } else { Ok(data) }
    }

    /// What `stat` shows: the names are the file's own, the data where they lie.
    pub(crate) fn attributes(&self, state: &NodeState) -> Result<Attributes> {
        let mut shown = shown(&fstat(&self.path)?);
        if let Some(spilled) = &state.spilled {
            shown.take_data_of(&fstat(&**spilled)?);
        }
        Ok(shown)
    }
}

/// Bytes that a file occupies, as accounts count.
pub(crate) fn charge(stat: &Stat) -> u64 {
    if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile { stat.st_blocks as u64 * BLOCK } else { 0 }
}

/// Whether a file occupies clearly more than is in it. A little is what the file system below needs to find it.
pub(crate) fn has_advance(stat: &Stat) -> bool {
    charge(stat) > stat.st_size as u64 + ADVANCE_MIN
}

impl Attributes {
    /// The names are the file's own, the data those of another.
    pub(crate) fn take_data_of(&mut self, stat: &Stat) {
        let data = shown(stat);
        self.size = data.size;
        self.blocks = data.blocks;
        self.accessed = data.accessed;
        self.modified = data.modified;
        self.changed = self.changed.max(data.changed);
    }
}

/// A `stat` of the file system below, as it is shown; the root's number is the caller's matter.
pub(crate) fn shown(stat: &Stat) -> Attributes {
    Attributes {
        node: stat.st_ino,
        size: stat.st_size as u64,
        blocks: stat.st_blocks as u64,
        accessed: Moment { seconds: stat.st_atime, nanoseconds: stat.st_atime_nsec as u32 },
        modified: Moment { seconds: stat.st_mtime, nanoseconds: stat.st_mtime_nsec as u32 },
        changed: Moment { seconds: stat.st_ctime, nanoseconds: stat.st_ctime_nsec as u32 },
        mode: stat.st_mode,
        links: stat.st_nlink as u32,
        uid: stat.st_uid,
        gid: stat.st_gid,
        device: stat.st_rdev as u32,
        block_size: stat.st_blksize as u32,
    }
}

/// The nodes that the kernel knows, each with how often it was told of it.
#[derive(Debug, Default)]
pub(crate) struct NodeTable {
    nodes: Mutex<HashMap<u64, (Arc<Node>, u64)>>,
}

impl NodeTable {
    /// A node that is known.
    pub(crate) fn get(&self, number: u64) -> Option<Arc<Node>> {
        self.lock().get(&number).map(|(node, _)| Arc::clone(node))
    }

    /// The node of this number, counted once more; what `make` gives where there is none yet.
    pub(crate) fn count(&self, number: u64, make: impl FnOnce() -> Node) -> Arc<Node> {
        let mut nodes = self.lock();
        let (node, count) = nodes.entry(number).or_insert_with(|| (Arc::new(make()), 0));
        *count += 1;
        Arc::clone(node)
    }

    /// Counts a node once more, also where the kernel has just forgotten it; not where its number is another's by now.
    pub(crate) fn count_again(&self, node: &Arc<Node>) -> bool {
        let mut nodes = self.lock();
        let (known, count) = nodes.entry(node.number).or_insert_with(|| (Arc::clone(node), 0));
        let is_same = Arc::ptr_eq(known, node);
        *count += u64::from(is_same);
        is_same
    }

    /// By which names the kernel knows files that nobody has open, up to so many.
    pub(crate) fn idle_names(&self, most: usize) -> Vec<(u64, OsString)> {
        let nodes = self.lock();
        let idle = nodes.values().filter(|(node, _)| {
            node.kind != FileType::Directory && node.try_lock().is_some_and(|state| state.opens == 0 && !state.is_gone)
        });
        idle.filter_map(|(node, _)| node.name()).take(most).collect()
    }

    /// Takes counts back.
    pub(crate) fn forget(&self, number: u64, counts: u64) {
        let mut nodes = self.lock();
        if let Some((_, count)) = nodes.get_mut(&number) {
            *count = count.saturating_sub(counts);
            if *count == 0 {
                nodes.remove(&number);
            }
        }
    }

    /// None is known any more; those that were.
    pub(crate) fn take_all(&self) -> Vec<Arc<Node>> {
        self.lock().drain().map(|(_, (node, _))| node).collect()
    }

    /// Bytes and number of those without a name that somebody still has open: here, and in the spill area.
    pub(crate) fn gone(&self) -> [(u64, u64); 2] {
        let mut found = [(0, 0); 2];
        for (node, _) in self.lock().values() {
            // One that is busy is in use; the next look finds it.
            let Some(state) = node.try_lock().filter(|state| state.is_gone) else { continue };
            let sums = &mut found[usize::from(state.spilled.is_some())];
            *sums = (sums.0 + state.charged, sums.1 + 1);
        }
        found
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, (Arc<Node>, u64)>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
