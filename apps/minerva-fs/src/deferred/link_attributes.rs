//! File systems of tests of a directory with nothing but links in it.

use fuser::{FileAttr, FileType, INodeNo};
use std::time::UNIX_EPOCH;

/// What the kernel is told of a node: the directory is the first.
pub(super) fn link_attributes(node: u64) -> FileAttr {
    FileAttr {
        ino: INodeNo(node),
        size: 0,
        blocks: 0,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind: if node == 1 { FileType::Directory } else { FileType::Symlink },
        perm: 0o700,
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}
