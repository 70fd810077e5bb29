//! Requests of the kernel, translated.

use super::backing::{Backings, Refusal, Registered};
use crate::file_system::{
    Attributes, Caller, Changes, FileSystem, Moment, NewTime, Opened, Result, WriteOrigin, syncs,
};
use fuser::{
    BackingId, BsdFileFlags, CopyFileRangeFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, InitFlags, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request,
    TimeOrNow, WriteFlags,
};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long the kernel may take names and attributes for granted: all changes come through it.
const VALID_FOR: Duration = Duration::from_secs(1);
const GENERATION: Generation = Generation(0);
/// The unit in which room is shown.
const BLOCK: u64 = 4096;
const NAME_BYTES_MAX: u32 = 255;
/// File systems below that may themselves lie on another.
const STACK_DEPTH: u32 = 1;
/// In the number of a handle, whether the kernel reads the file by itself.
const WITH_KERNEL: u64 = 1 << 63;
/// And whether it is among the backings, also where the kernel did not take the file.
const REGISTERED: u64 = 1 << 62;

pub(super) struct Adapter<F> {
    inner: Arc<F>,
    has_passthrough: Arc<AtomicBool>,
    backings: Backings<BackingId>,
    has_told: AtomicBool,
}

impl<F: FileSystem> Adapter<F> {
    pub(super) fn new(inner: Arc<F>, has_passthrough: Arc<AtomicBool>) -> Self {
        Self { inner, has_passthrough, backings: Backings::default(), has_told: AtomicBool::new(false) }
    }

    /// Registers the file below with the kernel, or counts it once more; the bits that go into the number of the handle, and what the
    /// kernel calls the file where it took it.
    fn register(
        &self,
        node: u64,
        opened: &Opened,
        register: impl FnOnce(BorrowedFd<'_>) -> io::Result<BackingId>,
    ) -> (u64, Option<Arc<BackingId>>) {
        let Some(file) = &opened.backing else { return (0, None) };
        let (registered, refusal) = self.backings.register(node, || register(file.as_fd()));
        match refusal {
            None => (),
            Some(Refusal::Never(error)) => {
                self.has_passthrough.store(false, Ordering::Relaxed);
                self.inner.passthrough_refused();
                eprintln!("minerva-fs: the kernel reads no file of this tree by itself ({error}); reads are slower");
            }
            // Once: whatever is short now may be for long.
            Some(Refusal::ThisOne(error)) if !self.has_told.swap(true, Ordering::Relaxed) => {
                eprintln!(
                    "minerva-fs: the kernel did not take a file to read by itself ({error}); others are still offered"
                );
            }
            Some(Refusal::ThisOne(_)) => (),
        }
        match registered {
            Registered::WithKernel(id) => (WITH_KERNEL | REGISTERED, Some(id)),
            Registered::Here => (REGISTERED, None),
        }
    }
}

/// Writes come to us also where the kernel reads by itself, so that each is counted, unless something else keeps the quota.
fn open_flags(opened: &Opened) -> FopenFlags {
    if opened.is_writable && !opened.kernel_writes { FopenFlags::FOPEN_DIRECT_IO } else { FopenFlags::empty() }
}

fn caller(request: &Request, umask: u32) -> Caller {
    Caller { uid: request.uid(), gid: request.gid(), umask }
}

fn errno(error: rustix::io::Errno) -> Errno {
    Errno::from_i32(error.raw_os_error())
}

fn time(moment: Moment) -> SystemTime {
    let nanoseconds = Duration::from_nanos(moment.nanoseconds.into());
    let seconds = Duration::from_secs(moment.seconds.unsigned_abs());
    let whole = if moment.seconds < 0 { UNIX_EPOCH.checked_sub(seconds) } else { UNIX_EPOCH.checked_add(seconds) };
    whole.and_then(|whole| whole.checked_add(nanoseconds)).unwrap_or(UNIX_EPOCH)
}

fn new_time(time: TimeOrNow) -> NewTime {
    match time {
        TimeOrNow::Now => NewTime::Now,
        TimeOrNow::SpecificTime(time) => NewTime::At(match time.duration_since(UNIX_EPOCH) {
            Ok(since) => Moment { seconds: since.as_secs() as i64, nanoseconds: since.subsec_nanos() },
            // The library takes nanoseconds of a time before 1970 off it in place of adding them.
            Err(before) => {
                let before = before.duration();
                Moment { seconds: -(before.as_secs() as i64), nanoseconds: before.subsec_nanos() }
            }
        }),
    }
}

fn kind(mode: u32) -> FileType {
    match mode & libc::S_IFMT {
        libc::S_IFDIR => FileType::Directory,
        libc::S_IFLNK => FileType::Symlink,
        libc::S_IFIFO => FileType::NamedPipe,
        libc::S_IFSOCK => FileType::Socket,
        libc::S_IFCHR => FileType::CharDevice,
        libc::S_IFBLK => FileType::BlockDevice,
        _ => FileType::RegularFile,
    }
}

fn attr(shown: &Attributes) -> FileAttr {
    FileAttr {
        ino: INodeNo(shown.node),
        size: shown.size,
        blocks: shown.blocks,
        atime: time(shown.accessed),
        mtime: time(shown.modified),
        ctime: time(shown.changed),
        crtime: UNIX_EPOCH,
        kind: kind(shown.mode),
        perm: (shown.mode & 0o7777) as u16,
        nlink: shown.links,
        uid: shown.uid,
        gid: shown.gid,
        rdev: shown.device,
        blksize: shown.block_size,
        flags: 0,
    }
}

fn entry(shown: Result<Attributes>, reply: ReplyEntry) {
    match shown {
        Ok(shown) => reply.entry(&VALID_FOR, &attr(&shown), GENERATION),
        Err(error) => reply.error(errno(error)),
    }
}

fn empty(done: Result<()>, reply: ReplyEmpty) {
    match done {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(errno(error)),
    }
}

fn xattr(value: Result<Vec<u8>>, size: u32, reply: ReplyXattr) {
    match value {
        Ok(value) if size == 0 => reply.size(value.len() as u32),
        Ok(value) if value.len() > size as usize => reply.error(Errno::ERANGE),
        Ok(value) => reply.data(&value),
        Err(error) => reply.error(errno(error)),
    }
}

fn number(handle: FileHandle) -> u64 {
    handle.0 & !(WITH_KERNEL | REGISTERED)
}

impl<F: FileSystem> Filesystem for Adapter<F> {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let offered = config.capabilities();
        let mut wanted = InitFlags::FUSE_PARALLEL_DIROPS | InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP;
        if self.inner.has_xattrs() {
            // With the second the kernel need not ask for `security.capability` before each write.
            wanted |= InitFlags::FUSE_POSIX_ACL | InitFlags::FUSE_HANDLE_KILLPRIV_V2;
        }
        wanted |= InitFlags::FUSE_DONT_MASK;
        // What this kernel does not offer is done without.
        let _ = config.add_capabilities(wanted & offered);
        let passes = self.has_passthrough.load(Ordering::Relaxed)
            && offered.contains(InitFlags::FUSE_PASSTHROUGH)
            && config.add_capabilities(InitFlags::FUSE_PASSTHROUGH).is_ok()
            && config.set_max_stack_depth(STACK_DEPTH).is_ok();
        self.has_passthrough.store(passes, Ordering::Relaxed);
        if !passes {
            self.inner.passthrough_refused();
        }
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        entry(self.inner.lookup(parent.0, name), reply);
    }

    fn forget(&self, _request: &Request, node: INodeNo, lookups: u64) {
        self.inner.forget(node.0, lookups);
    }

    fn getattr(&self, _request: &Request, node: INodeNo, _handle: Option<FileHandle>, reply: ReplyAttr) {
        match self.inner.attributes(node.0) {
            Ok(shown) => reply.attr(&VALID_FOR, &attr(&shown)),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn setattr(
        &self,
        request: &Request,
        node: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _handle: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let (accessed, modified) = (atime.map(new_time), mtime.map(new_time));
        let changes = Changes { mode, uid, gid, size, accessed, modified };
        match self.inner.set_attributes(caller(request, 0), node.0, &changes) {
            Ok(shown) => reply.attr(&VALID_FOR, &attr(&shown)),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn readlink(&self, _request: &Request, node: INodeNo, reply: ReplyData) {
        match self.inner.read_link(node.0) {
            Ok(target) => reply.data(&target),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        entry(self.inner.make_node(caller(request, umask), parent.0, name, mode, device), reply);
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        entry(self.inner.make_directory(caller(request, umask), parent.0, name, mode), reply);
    }

    fn unlink(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(self.inner.remove(parent.0, name, false), reply);
    }

    fn rmdir(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(self.inner.remove(parent.0, name, true), reply);
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        entry(self.inner.make_symlink(caller(request, 0), parent.0, name, target.as_os_str()), reply);
    }

    fn rename(
        &self,
        _request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        empty(self.inner.rename((parent.0, name), (new_parent.0, new_name), flags.bits()), reply);
    }

    fn link(&self, _request: &Request, node: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        entry(self.inner.link(node.0, parent.0, name), reply);
    }

    fn open(&self, _request: &Request, node: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        match self.inner.open(node.0, flags.0) {
            Ok(opened) => match self.register(node.0, &opened, |file| reply.open_backing(file)) {
                (bits, Some(id)) => {
                    reply.opened_passthrough(FileHandle(opened.handle | bits), open_flags(&opened), &id);
                }
                (bits, None) => reply.opened(FileHandle(opened.handle | bits), FopenFlags::empty()),
            },
            Err(error) => reply.error(errno(error)),
        }
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        match self.inner.create(caller(request, umask), parent.0, name, mode, flags) {
            Ok((shown, opened)) => match self.register(shown.node, &opened, |file| reply.open_backing(file)) {
                (bits, Some(id)) => {
                    let handle = FileHandle(opened.handle | bits);
                    reply.created_passthrough(&VALID_FOR, &attr(&shown), GENERATION, handle, open_flags(&opened), &id);
                }
                (bits, None) => {
                    let handle = FileHandle(opened.handle | bits);
                    reply.created(&VALID_FOR, &attr(&shown), GENERATION, handle, FopenFlags::empty());
                }
            },
            Err(error) => reply.error(errno(error)),
        }
    }

    fn read(
        &self,
        _request: &Request,
        _node: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        // Read(2) names the owner of locks; what fills the page cache of FUSE, for sendfile(2) and splice(2), does not. Mappings are of the
        // file below, so that what is written through them would never reach that cache: callers are sent to read(2).
        if handle.0 & WITH_KERNEL != 0 && owner.is_none() {
            return reply.error(Errno::EINVAL);
        }
        let mut buffer = vec![0; size as usize];
        match self.inner.read(number(handle), offset, &mut buffer) {
            Ok(read) => reply.data(&buffer[..read]),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn write(
        &self,
        _request: &Request,
        _node: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        write_flags: WriteFlags,
        flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let origin = WriteOrigin {
            ends_privileges: write_flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID),
            is_mapped: write_flags.contains(WriteFlags::FUSE_WRITE_CACHE),
        };
        let written = self.inner.write(number(handle), offset, data, origin);
        // Past its page cache the kernel leaves the sync to us, and says in the flags whether this write, of `O_DSYNC` or `RWF_DSYNC`, wants
        // one. With the page cache it asks for the sync itself.
        let syncs = if handle.0 & WITH_KERNEL != 0 { syncs(flags.0) } else { None };
        let sync = |data_only| self.inner.sync(number(handle), data_only);
        match written.and_then(|written| syncs.map_or(Ok(()), sync).map(|()| written)) {
            Ok(written) => reply.written(written as u32),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn flush(&self, _request: &Request, _node: INodeNo, handle: FileHandle, _owner: LockOwner, reply: ReplyEmpty) {
        empty(self.inner.flush(number(handle)), reply);
    }

    fn release(
        &self,
        _request: &Request,
        node: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        let close = || self.inner.release(number(handle));
        let is_registered = handle.0 & REGISTERED != 0;
        empty(if is_registered { self.backings.release(node.0, close) } else { close() }, reply);
    }

    fn fsync(&self, _request: &Request, _node: INodeNo, handle: FileHandle, data_only: bool, reply: ReplyEmpty) {
        empty(self.inner.sync(number(handle), data_only), reply);
    }

    fn opendir(&self, _request: &Request, node: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        match self.inner.open_directory(node.0) {
            Ok(handle) => reply.opened(FileHandle(handle), FopenFlags::empty()),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn readdir(&self, _request: &Request, _node: INodeNo, handle: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let mut add = |entry: crate::file_system::DirectoryEntry<'_>| {
            !reply.add(INodeNo(entry.node), entry.next, kind(entry.kind), entry.name)
        };
        match self.inner.read_directory(number(handle), offset, &mut add) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn releasedir(&self, _request: &Request, _node: INodeNo, handle: FileHandle, _flags: OpenFlags, reply: ReplyEmpty) {
        self.inner.release_directory(number(handle));
        reply.ok();
    }

    fn fsyncdir(&self, _request: &Request, node: INodeNo, _handle: FileHandle, _data: bool, reply: ReplyEmpty) {
        empty(self.inner.sync_directory(node.0), reply);
    }

    fn statfs(&self, _request: &Request, _node: INodeNo, reply: ReplyStatfs) {
        match self.inner.space() {
            Ok(space) => {
                let (blocks, left) = (space.bytes / BLOCK, space.bytes_left / BLOCK);
                reply.statfs(
                    blocks,
                    left,
                    left,
                    space.files,
                    space.files_left,
                    BLOCK as u32,
                    NAME_BYTES_MAX,
                    BLOCK as u32,
                );
            }
            Err(error) => reply.error(errno(error)),
        }
    }

    fn setxattr(
        &self,
        _request: &Request,
        node: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        if !self.inner.has_xattrs() {
            // The kernel asks once, and then never again on this mount.
            return reply.error(Errno::ENOSYS);
        }
        empty(self.inner.set_xattr(node.0, name, value, flags), reply);
    }

    fn getxattr(&self, _request: &Request, node: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        if !self.inner.has_xattrs() {
            return reply.error(Errno::ENOSYS);
        }
        xattr(self.inner.xattr(node.0, name), size, reply);
    }

    fn listxattr(&self, _request: &Request, node: INodeNo, size: u32, reply: ReplyXattr) {
        if !self.inner.has_xattrs() {
            return reply.error(Errno::ENOSYS);
        }
        xattr(self.inner.xattrs(node.0), size, reply);
    }

    fn removexattr(&self, _request: &Request, node: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        if !self.inner.has_xattrs() {
            return reply.error(Errno::ENOSYS);
        }
        empty(self.inner.remove_xattr(node.0, name), reply);
    }

    fn fallocate(
        &self,
        request: &Request,
        _node: INodeNo,
        handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        empty(self.inner.allocate(caller(request, 0), number(handle), offset, length, mode), reply);
    }

    fn lseek(
        &self,
        _request: &Request,
        _node: INodeNo,
        handle: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        match u64::try_from(offset)
            .map_err(|_| rustix::io::Errno::INVAL)
            .and_then(|offset| self.inner.seek(number(handle), offset, whence))
        {
            Ok(at) => reply.offset(at as i64),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn copy_file_range(
        &self,
        _request: &Request,
        _from: INodeNo,
        from: FileHandle,
        from_offset: u64,
        _to: INodeNo,
        to: FileHandle,
        to_offset: u64,
        length: u64,
        _flags: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        match self.inner.copy((number(from), from_offset), (number(to), to_offset), length) {
            Ok(copied) => reply.written(copied as u32),
            Err(error) => reply.error(errno(error)),
        }
    }
}
