//! What a file system is to us: the operations that the kernel asks for, without the words of any FUSE library.

use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// An answer, or the error number that the program gets.
pub type Result<T> = std::result::Result<T, Errno>;

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// User, as permissions are judged.
    pub uid: u32,
    /// Group, likewise.
    pub gid: u32,
    /// What is taken from the mode of what is made.
    pub umask: u32,
}

/// An instant since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// Seconds; negative before 1970.
    pub seconds: i64,
    /// And nanoseconds after them.
    pub nanoseconds: u32,
}

/// A time to set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewTime {
    /// Now.
    Now,
    /// This one.
    At(Moment),
}

/// What `stat` shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Number of the node; the root has 1.
    pub node: u64,
    /// Length in bytes.
    pub size: u64,
    /// Units of 512 bytes that it occupies.
    pub blocks: u64,
    /// Last read.
    pub accessed: Moment,
    /// Last written.
    pub modified: Moment,
    /// Last changed.
    pub changed: Moment,
    /// Kind and permissions.
    pub mode: u32,
    /// Names.
    pub links: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Which device, of device nodes.
    pub device: u32,
    /// Best size of a transfer.
    pub block_size: u32,
}

/// What is to be changed; what is `None` stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Permissions.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Length in bytes.
    pub size: Option<u64>,
    /// Last read.
    pub accessed: Option<NewTime>,
    /// Last written.
    pub modified: Option<NewTime>,
}

/// An open file.
#[derive(Debug)]
pub struct Opened {
    /// Its number.
    pub handle: u64,
    /// The file below, which the kernel may read and map by itself; none where it has to ask.
    pub backing: Option<Arc<OwnedFd>>,
    /// Whether it may be written through this handle.
    pub is_writable: bool,
    /// The kernel may write it by itself too.
    pub kernel_writes: bool,
}

/// Where a write comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOrigin {
    /// The writer may not keep the bits that let a program run as its owner.
    pub ends_privileges: bool,
    /// A program stored it through a mapping, some time ago: nobody is there who could be refused, or be told that only a part was written.
    pub is_mapped: bool,
}

/// Whether a write with these flags of `open` is to be on the disk when it returns; if so, whether its data only.
pub(crate) fn syncs(flags: i32) -> Option<bool> {
    (flags & libc::O_DSYNC != 0).then_some(flags & libc::O_SYNC != libc::O_SYNC)
}

/// One name in a directory.
#[derive(Clone, Copy, Debug)]
pub struct DirectoryEntry<'a> {
    /// Number of the node.
    pub node: u64,
    /// Where to go on after it.
    pub next: u64,
    /// Kind, as in a mode.
    pub kind: u32,
    /// The name.
    pub name: &'a OsStr,
}

/// What `statfs` shows: the tenant's quota, as far as the disk has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// Bytes in all.
    pub bytes: u64,
    /// Bytes left.
    pub bytes_left: u64,
    /// Files in all.
    pub files: u64,
    /// Files left.
    pub files_left: u64,
}

/// A file system. Nodes are named by numbers that stay as long as the kernel knows them: each answer of `lookup` and of what makes a
/// node counts once, and `forget` takes that back.
///
/// Permissions are judged by the kernel before it asks, from the attributes.
pub trait FileSystem: Send + Sync + 'static {
    /// Whether there are extended attributes and access control lists.
    fn has_xattrs(&self) -> bool;
    /// The kernel reads no files by itself: from now on none is offered.
    fn passthrough_refused(&self);
    /// The node of a name.
    fn lookup(&self, parent: u64, name: &OsStr) -> Result<Attributes>;
    /// The kernel forgets a node that it was told so many times.
    fn forget(&self, node: u64, lookups: u64);
    /// What `stat` shows.
    fn attributes(&self, node: u64) -> Result<Attributes>;
    /// Changes some of it.
    fn set_attributes(&self, caller: Caller, node: u64, changes: &Changes) -> Result<Attributes>;
    /// Where a symbolic link leads.
    fn read_link(&self, node: u64) -> Result<Vec<u8>>;
    /// Makes a file, pipe, socket or device node.
    fn make_node(&self, caller: Caller, parent: u64, name: &OsStr, mode: u32, device: u32) -> Result<Attributes>;
    /// Makes a directory.
    fn make_directory(&self, caller: Caller, parent: u64, name: &OsStr, mode: u32) -> Result<Attributes>;
    /// Makes a symbolic link.
    fn make_symlink(&self, caller: Caller, parent: u64, name: &OsStr, target: &OsStr) -> Result<Attributes>;
    /// Gives a node one more name.
    fn link(&self, node: u64, parent: u64, name: &OsStr) -> Result<Attributes>;
    /// Takes a name away; `is_directory` for that of an empty directory.
    fn remove(&self, parent: u64, name: &OsStr, is_directory: bool) -> Result<()>;
    /// Renames; `flags` are those of `renameat2`.
    fn rename(&self, from: (u64, &OsStr), to: (u64, &OsStr), flags: u32) -> Result<()>;
    /// Opens a file; `flags` are those of `open`.
    fn open(&self, node: u64, flags: i32) -> Result<Opened>;
    /// Makes and opens a file.
    fn create(&self, caller: Caller, parent: u64, name: &OsStr, mode: u32, flags: i32) -> Result<(Attributes, Opened)>;
    /// Reads; as many bytes as there are and fit.
    fn read(&self, handle: u64, offset: u64, into: &mut [u8]) -> Result<usize>;
    /// Writes; fewer than all bytes where the quota ends in between, but of what was stored through a mapping all or an error.
    fn write(&self, handle: u64, offset: u64, data: &[u8], origin: WriteOrigin) -> Result<usize>;
    /// A descriptor of it was closed; there may be more of the same handle.
    fn flush(&self, handle: u64) -> Result<()>;
    /// Nobody has it any more.
    fn release(&self, handle: u64) -> Result<()>;
    /// Makes it durable; `data_only` without what only `stat` shows.
    fn sync(&self, handle: u64, data_only: bool) -> Result<()>;
    /// Makes the names of a directory durable.
    fn sync_directory(&self, node: u64) -> Result<()>;
    /// Room for a range, or holes in it; `mode` is that of `fallocate`.
    fn allocate(&self, caller: Caller, handle: u64, offset: u64, length: u64, mode: i32) -> Result<()>;
    /// The next data or hole; `whence` is `SEEK_DATA` or `SEEK_HOLE`.
    fn seek(&self, handle: u64, offset: u64, whence: i32) -> Result<u64>;
    /// Copies within the file system.
    fn copy(&self, from: (u64, u64), to: (u64, u64), length: u64) -> Result<usize>;
    /// Opens a directory.
    fn open_directory(&self, node: u64) -> Result<u64>;
    /// Tells names from `offset` on, until `add` answers that no more fit.
    fn read_directory(&self, handle: u64, offset: u64, add: &mut dyn FnMut(DirectoryEntry<'_>) -> bool) -> Result<()>;
    /// Nobody has the directory any more.
    fn release_directory(&self, handle: u64);
    /// What `statfs` shows.
    fn space(&self) -> Result<Space>;
    /// An extended attribute.
    fn xattr(&self, node: u64, name: &OsStr) -> Result<Vec<u8>>;
    /// The names of all, each with a zero at its end.
    fn xattrs(&self, node: u64) -> Result<Vec<u8>>;
    /// Sets one; `flags` are those of `setxattr`.
    fn set_xattr(&self, node: u64, name: &OsStr, value: &[u8], flags: i32) -> Result<()>;
    /// Removes one.
    fn remove_xattr(&self, node: u64, name: &OsStr) -> Result<()>;
}
