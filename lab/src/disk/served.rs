//! The FUSE side: one directory with one file, `disk`, whose reads and writes go to the device thread.

use super::service::{Answer, Message};
use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, KernelConfig,
    LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, WriteFlags,
};
use minerva_sim_device::Kind;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::Sender;
use std::time::{Duration, UNIX_EPOCH};

/// Name of the one file.
pub(super) const FILE_NAME: &str = "disk";
const FILE_INODE: INodeNo = INodeNo(2);
/// Nothing ever changes.
const TIME_TO_LIVE: Duration = Duration::from_secs(3600);
/// Far more requests than an elevator dispatches at once, so that FUSE never is the bottleneck that reorders.
const REQUESTS_IN_FLIGHT: u16 = 1024;
/// One request of the block layer should stay one request of the disk.
const WRITE_BYTES_MAX: u32 = 1 << 20;

/// The file system.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) device: Sender<Message>,
    pub(super) size_bytes: u64,
    /// Where the contents live; without it writes are forgotten and reads are zeros.
    pub(super) backing: Option<File>,
}

impl Served {
    fn attributes(&self, inode: INodeNo) -> FileAttr {
        let is_file = inode == FILE_INODE;
        FileAttr {
            ino: inode,
            size: if is_file { self.size_bytes } else { 0 },
            blocks: if is_file { self.size_bytes / 512 } else { 0 },
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if is_file { FileType::RegularFile } else { FileType::Directory },
            perm: if is_file { 0o600 } else { 0o700 },
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }

    /// A device thread that has ended drops the message and with it the reply, which fuser answers with an error.
    fn send(&self, kind: Kind, offset_bytes: u64, length_bytes: u32, answer: Answer) {
        let _ = self.device.send(Message::Serve { kind, offset_bytes, length_bytes, answer });
    }
}

impl Filesystem for Served {
    fn init(&mut self, _: &fuser::Request, config: &mut KernelConfig) -> io::Result<()> {
        // Each is a wish: an older kernel without one of them still serves, with fewer requests at once.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        let _ = config.set_max_write(WRITE_BYTES_MAX);
        let _ = config.set_max_background(REQUESTS_IN_FLIGHT);
        let _ = config.set_congestion_threshold(REQUESTS_IN_FLIGHT);
        Ok(())
    }

    fn lookup(&self, _: &fuser::Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if parent == INodeNo::ROOT && name == FILE_NAME {
            reply.entry(&TIME_TO_LIVE, &self.attributes(FILE_INODE), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &fuser::Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&TIME_TO_LIVE, &self.attributes(inode));
    }

    fn open(&self, _: &fuser::Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES | FopenFlags::FOPEN_NOFLUSH;
        reply.opened(FileHandle(0), flags);
    }

    fn read(
        &self,
        _: &fuser::Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let answer = match &self.backing {
            None => Answer::Zeros(reply, size as usize),
            Some(file) => {
                let mut bytes = vec![0; size as usize];
                match file.read_exact_at(&mut bytes, offset) {
                    Ok(()) => Answer::Data(reply, bytes),
                    Err(error) => return reply.error(Errno::from(error)),
                }
            }
        };
        self.send(Kind::Read, offset, size, answer);
    }

    fn write(
        &self,
        _: &fuser::Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        if let Some(Err(error)) = self.backing.as_ref().map(|file| file.write_all_at(data, offset)) {
            return reply.error(Errno::from(error));
        }
        // FUSE's own limit keeps a write far below 4 GiB.
        let length = data.len() as u32;
        self.send(Kind::Write, offset, length, Answer::Written(reply, length));
    }

    fn fsync(&self, _: &fuser::Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        if let Some(Err(error)) = self.backing.as_ref().map(File::sync_data) {
            return reply.error(Errno::from(error));
        }
        self.send(Kind::Flush, 0, 0, Answer::Flushed(reply));
    }
}
