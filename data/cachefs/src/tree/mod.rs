//! A directory served as a file system: every name, attribute and byte is that of the file below, and each is accounted.

mod data;
mod deferred;
mod directories;
mod elsewhere;
mod knowing;
mod limits;
mod looks;
mod mapped;
mod metadata;
mod moving;
mod names;
mod operations;
mod pacing;
mod reading;
mod spilling;
mod syncing;

pub use deferred::{DEFERRED, UNITS};
pub use moving::{MoveRefusal, Moving};

use crate::account::Account;
use crate::census::Census;
use crate::descriptors::{Descriptors, Held, Holding};
use crate::disk_queue::DiskFlow;
use crate::failures::Told;
use crate::file_system::{Attributes, Result};
use crate::node::{Node, NodeState, NodeTable, ROOT, charge};
use crate::requests::RequestCounters;
use crate::spill::SpillArea;
use looks::{take_stock, used_below};
use mapped::Mapped;
use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, fstat, openat};
use rustix::io::Errno;
use spilling::Passes;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// What a tree promises and how it is served.
#[derive(Clone, Debug, Default)]
pub struct TreeOptions {
    /// Extended attributes and access control lists. Without them the kernel need not ask for `security.capability` before each write.
    pub has_xattrs: bool,
    /// What `fsync` and `close` acknowledged is on the disk.
    pub is_durable: bool,
    /// The kernel may read files below by itself.
    pub has_passthrough: bool,
    /// The kernel may write files by itself: the file system below is as large as the quota, and keeps it.
    pub kernel_writes: bool,
    /// At the limit closed files go to the spill area, and with them the file that is being written.
    pub spills_when_full: bool,
    /// Where files go there, the kernel reads none by itself that is not there yet.
    pub service_reads: bool,
    /// Bytes that stay free on the pool's disk.
    pub reserve_bytes: u64,
    /// Its tenant before the disk of the pool, for what lies there; without one it asks nobody.
    pub disk: Option<Arc<DiskFlow>>,
    /// Another service serves it, a guest's host: here only files are made and moved that are to go elsewhere, and nothing is counted.
    pub is_served_elsewhere: bool,
    /// It is a machine's, whose root, this user and group of ours, makes and moves such files itself.
    pub deferring_root: Option<(u32, u32)>,
    /// Of which a tree takes one for each file that the kernel knows, and one more for its data once it is open.
    pub descriptors: Arc<Descriptors>,
}

/// Why a tree cannot be served.
#[derive(Debug, thiserror::Error)]
#[error("{what} {}", path.display())]
pub struct TreeError {
    what: &'static str,
    path: PathBuf,
    source: std::io::Error,
}

/// How often what was done.
#[derive(Debug, Default)]
pub struct TreeCounters {
    /// Bytes read through this process.
    pub bytes_read: AtomicU64,
    /// Bytes written through this process.
    pub bytes_written: AtomicU64,
    /// Writes, files and directories refused by the quota.
    pub refused: AtomicU64,
    /// Files that the kernel was not told of, and directories not opened, for want of descriptors.
    pub refused_descriptors: AtomicU64,
    /// Requests that passed the service.
    pub requests: RequestCounters,
    /// Files that went to the spill area.
    pub spilled_files: AtomicU64,
    /// Their bytes.
    pub spilled_bytes: AtomicU64,
}

/// A directory served as a file system.
#[derive(Debug)]
pub struct Tree {
    pub(crate) root: Arc<Node>,
    pub(crate) nodes: NodeTable,
    handles: RwLock<HashMap<u64, Arc<Handle>>>,
    next_handle: AtomicU64,
    pub(crate) account: Arc<Account>,
    pub(crate) options: TreeOptions,
    pub(crate) spill: Option<SpillArea>,
    passes: Passes,
    mapped: Mapped,
    holding: Arc<Holding>,
    passes_through: AtomicBool,
    /// Bytes of the file system below that something other than the tree's files has.
    besides_bytes: u64,
    /// As the options say, until they are set otherwise.
    spills_when_full: AtomicBool,
    service_reads: AtomicBool,
    reserve_bytes: AtomicU64,
    pub(crate) counters: TreeCounters,
    found: Census,
    gone: elsewhere::Gone,
}

/// Where a file lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whereabouts {
    /// On the disk, though its name is in memory.
    pub is_spilled: bool,
    /// Bytes that it occupies.
    pub bytes: u64,
    /// How often it is open.
    pub opens: u64,
}

/// An open file or directory.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) node: Arc<Node>,
    pub(crate) is_writable: bool,
    /// As [`crate::file_system::syncs`] says of the flags that it was opened with.
    pub(crate) syncs: Option<bool>,
    /// Of what the disk failed.
    pub(crate) told: Told,
    /// Of a directory: where names are read.
    pub(crate) directory: Option<OwnedFd>,
    /// What that has of the process's descriptors.
    pub(crate) _held: Option<Held>,
}

impl Handle {
    /// What the disk failed since it was told.
    pub(crate) fn tell(&self) -> Result<()> {
        self.told.next(&self.node.lock().failures)
    }
}

impl Tree {
    /// Serves the directory at `path`, and takes a census of it for `account`. What was spilled before is found in `spill`.
    pub fn open(
        path: &Path,
        account: Arc<Account>,
        options: TreeOptions,
        mut spill: Option<SpillArea>,
    ) -> std::result::Result<Self, TreeError> {
        let failed = |what| move |error: Errno| TreeError { what, path: path.to_owned(), source: error.into() };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let root = openat(CWD, path, flags, Mode::empty()).map_err(failed("failed to open"))?;
        let stat = fstat(&root).map_err(failed("failed to look at"))?;
        let found = if options.is_served_elsewhere {
            Census::default()
        } else {
            take_stock(&root, &account, spill.as_mut()).map_err(|(what, error)| failed(what)(error))?
        };
        let besides_bytes = used_below(&root).saturating_sub(found.bytes);
        if let Some(spill) = &spill {
            spill.set_reserve(options.reserve_bytes);
        }
        let tree = Self {
            root: Arc::new(Node::new(root, &stat, None)),
            nodes: NodeTable::default(),
            handles: RwLock::new(HashMap::new()),
            next_handle: AtomicU64::new(1),
            account,
            passes_through: AtomicBool::new(options.has_passthrough),
            holding: Holding::new(Arc::clone(&options.descriptors)),
            besides_bytes,
            spills_when_full: AtomicBool::new(options.spills_when_full),
            service_reads: AtomicBool::new(options.service_reads),
            reserve_bytes: AtomicU64::new(options.reserve_bytes),
            options,
            spill,
            passes: Passes::default(),
            mapped: Mapped::default(),
            counters: TreeCounters::default(),
            found,
            gone: elsewhere::Gone::default(),
        };
        match tree.make_deferring() {
            Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::NOTDIR | Errno::LOOP)) => eprintln!(
                "minerva-fs: {} has no {DEFERRED}, so its machine defers nothing until a restart ({error}); all else is served",
                path.display()
            ),
            made => made.map_err(failed("failed to make the directory of deferred files in"))?,
        }
        Ok(tree)
    }

    /// Whether the kernel reads files by itself.
    pub fn passes_through(&self) -> bool {
        self.passes_through.load(Ordering::Relaxed)
    }

    /// The kernel will not after all.
    pub(crate) fn stop_passthrough(&self) {
        self.passes_through.store(false, Ordering::Relaxed);
    }

    /// A node that the kernel names.
    pub(crate) fn node(&self, number: u64) -> Result<Arc<Node>> {
        if number == ROOT {
            return Ok(Arc::clone(&self.root));
        }
        self.nodes.get(number).ok_or(Errno::STALE)
    }

    /// The node of a name, counted once more.
    pub(crate) fn look_up(&self, parent: &Node, name: &OsStr) -> Result<Arc<Node>> {
        let path = openat(&parent.path, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
        let stat = fstat(&path)?;
        if stat.st_ino == ROOT || stat.st_ino == self.root.number {
            // The first would be taken for the root; the second is the root met below itself.
            return Err(Errno::IO);
        }
        let is_known = self.nodes.get(stat.st_ino).is_some();
        let held = if is_known { None } else { Some(self.hold(1)?) };
        let node = self.count_node(path, &stat, held);
        // Only now: it may have been spilled since the name was opened.
        let found = self.find_spilled(&node, &mut node.lock());
        if let Err(error) = found.and_then(|()| self.hold_known(&node)) {
            self.nodes.forget(node.number, 1);
            return Err(error);
        }
        node.set_name(if parent.number == self.root.number { ROOT } else { parent.number }, name);
        Ok(node)
    }

    /// The node of an open name, counted once more. What a new one has on the account is read while nobody else can make one, and so
    /// while nobody can change the file.
    pub(crate) fn count_node(&self, path: OwnedFd, stat: &Stat, held: Option<Held>) -> Arc<Node> {
        self.nodes.count(stat.st_ino, || {
            let now = fstat(&path).unwrap_or(*stat);
            Node::new(path, &now, held)
        })
    }

    /// Where the data lie in the spill area, and the node does not know it yet, it does from now on. Whoever first has the state of a node
    /// that may be new has to ask: a file is spilled only under that lock, so that the answer holds for as long as it is kept.
    pub(crate) fn find_spilled(&self, node: &Node, state: &mut NodeState) -> Result<()> {
        let Some(spill) = self.spill.as_ref().filter(|_| node.kind == FileType::RegularFile) else { return Ok(()) };
        if state.spilled.is_some() || !spill.has(node.number) {
            return Ok(());
        }
        let file = spill.open_data(node.number)?;
        state.charged = charge(&fstat(&file)?);
        state.spilled = Some(Arc::new(file));
        Ok(())
    }

    /// What the kernel is told of a node.
    pub(crate) fn show(&self, node: &Node) -> Result<Attributes> {
        let mut shown = node.attributes(&node.lock())?;
        if node.number == self.root.number {
            shown.node = ROOT;
        }
        Ok(shown)
    }

    pub(crate) fn handle(&self, number: u64) -> Result<Arc<Handle>> {
        let handles = self.handles.read().unwrap_or_else(PoisonError::into_inner);
        handles.get(&number).cloned().ok_or(Errno::BADF)
    }

    pub(crate) fn add_handle(&self, handle: Handle) -> u64 {
        let number = self.next_handle.fetch_add(1, Ordering::Relaxed);
        self.handles.write().unwrap_or_else(PoisonError::into_inner).insert(number, Arc::new(handle));
        number
    }

    pub(crate) fn take_handle(&self, number: u64) -> Result<Arc<Handle>> {
        self.handles.write().unwrap_or_else(PoisonError::into_inner).remove(&number).ok_or(Errno::BADF)
    }
}
