//! What was at a path, so that another in its place is not taken for it, also after a reboot.
//!
//! Numbers of file systems change: those of disks follow the order in which they were found, that of a btrfs the order in which it was
//! mounted. So a file system is known by what is written on it. Of a btrfs each subvolume counts its inodes by itself.

use crate::btrfs::{BTRFS_MAGIC, file_system_identifier, half_at, subvolume, word_at};
use crate::error::WorkError;
use crate::facts::{Facts, Seen};
use rustix::fs::{fstatfs, fstatvfs};
use rustix::io::Errno;
use rustix::ioctl::{Getter, Opcode, ioctl, opcode};
use serde::{Deserialize, Serialize};
use std::os::fd::OwnedFd;
use std::path::Path;

/// `XFS_SUPER_MAGIC` of linux/magic.h. What it tells as its identifier is the number of its disk.
const XFS_MAGIC: u64 = 0x5846_5342;
/// `struct xfs_fsop_geom_v1` of xfs_fs.h, and the file system's identifier in it.
type XfsGeometry = [u8; 112];
const XFS_GEOMETRY: Opcode = opcode::read::<XfsGeometry>(b'X', 100);
const XFS_IDENTIFIER: usize = 64;
/// Bytes of a block, blocks of an allocation group, blocks of all groups, and of the realtime part.
const XFS_BLOCK: usize = 0;
const XFS_GROUP: usize = 8;
const XFS_BLOCKS: [usize; 2] = [32, 40];

/// A file, a directory, a snapshot or an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileIdentity {
    /// Of the file system; of a snapshot the first half of its identifier, of an array its number.
    pub device: u64,
    /// In it; of a snapshot the second half.
    pub inode: u64,
    /// What a reboot leaves as it is. Earlier versions did not record it.
    #[serde(default)]
    pub lasting: Option<LastingIdentity>,
    /// Of what is to be deleted: the inode of the directory that it lay in. Earlier versions did not record it.
    #[serde(default)]
    pub parent_inode: Option<u64>,
}

/// By what a reboot leaves as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastingIdentity {
    /// What is written on the file system, or of an array on its disks.
    pub file_system: (u64, u64),
    /// Of a btrfs.
    pub subvolume: u64,
    /// When it was made, where the file system keeps that: inodes are used again.
    pub born_ns: u64,
}

impl FileIdentity {
    /// Of what was opened, or of a file that lies in the directory that was.
    pub(crate) fn of(facts: &Facts, directory: &OwnedFd, path: &Path) -> Result<Self, WorkError> {
        let lasting =
            LastingIdentity::of(facts, directory).map_err(WorkError::io("look at the file system of", path))?;
        Ok(Self { device: facts.device, inode: facts.inode, lasting: Some(lasting), parent_inode: None })
    }

    /// The same for whoever asks from a program of his own.
    pub fn seen(&self) -> Seen {
        Seen { device: self.device, inode: self.inode, born_ns: self.lasting.map_or(0, |lasting| lasting.born_ns) }
    }

    /// A number of the file system that it is on, which is that of all that is on it.
    pub(crate) fn file_system_number(&self) -> u64 {
        self.lasting.map_or(self.device, |lasting| lasting.file_system.0 ^ lasting.file_system.1)
    }

    /// Whether it is on the file system that is known by this. Of what an earlier version recorded nobody knows.
    pub(crate) fn is_on(&self, file_system: (u64, u64)) -> bool {
        self.lasting.is_some_and(|lasting| lasting.file_system == file_system)
    }

    /// Whether what was found is what was recorded, in whichever directory that is by now.
    pub(crate) fn is(&self, found: &Self) -> bool {
        match (self.lasting, found.lasting) {
            (Some(recorded), Some(lasting)) => recorded == lasting && self.inode == found.inode,
            (None, _) | (_, None) => (self.device, self.inode) == (found.device, found.inode),
        }
    }
}

impl LastingIdentity {
    fn of(facts: &Facts, directory: &OwnedFd) -> Result<Self, Errno> {
        let (file_system, subvolume) = file_system(directory)?;
        Ok(Self { file_system, subvolume, born_ns: facts.born_ns })
    }
}

/// What a directory's file system, and of a btrfs its subvolume, is known by.
pub(crate) fn file_system(directory: &OwnedFd) -> Result<((u64, u64), u64), Errno> {
    match fstatfs(directory)?.f_type as u64 {
        BTRFS_MAGIC => Ok((file_system_identifier(directory)?, subvolume(directory)?.number)),
        XFS_MAGIC => {
            let geometry = xfs_geometry(directory)?;
            Ok(((word_at(&geometry, XFS_IDENTIFIER), word_at(&geometry, XFS_IDENTIFIER + 8)), 0))
        }
        // Made from what is written on it, of ext4 and most others.
        _ => match fstatvfs(directory)?.f_fsid {
            0 => Ok(((0, Facts::of(directory)?.device), 0)),
            identifier => Ok(((identifier, 0), 0)),
        },
    }
}

/// Of an XFS: how large it is, and each of its allocation groups.
pub(crate) fn xfs_sizes(directory: &OwnedFd) -> Result<Option<(u64, u64)>, Errno> {
    if fstatfs(directory)?.f_type as u64 != XFS_MAGIC {
        return Ok(None);
    }
    let geometry = xfs_geometry(directory)?;
    let bytes = |blocks: u64| blocks.saturating_mul(half_at(&geometry, XFS_BLOCK).into());
    let blocks = XFS_BLOCKS.map(|at| word_at(&geometry, at));
    Ok(Some((bytes(blocks[0].saturating_add(blocks[1])), bytes(half_at(&geometry, XFS_GROUP).into()))))
}

fn xfs_geometry(directory: &OwnedFd) -> Result<XfsGeometry, Errno> {
    // SAFETY: `XFS_IOC_FSGEOMETRY_V1` writes one `struct xfs_fsop_geom_v1`, which is 112 bytes.
    unsafe { ioctl(directory, Getter::<XFS_GEOMETRY, XfsGeometry>::new()) }
}

#[cfg(test)]
mod tests {
    use super::FileIdentity;
    use crate::loop_disk::LoopDisk;
    use crate::spec::Kind;
    use std::fs;
    use std::path::Path;

    fn of(path: &Path) -> FileIdentity {
        Kind::Delete.identity(path, Path::new("/sys")).unwrap()
    }

    /// Numbers of disks and of file systems are given again in the order of mounts, as after a boot.
    #[test]
    fn a_directory_is_known_again_where_its_file_system_has_another_number() {
        for make in [&["mkfs.ext4", "-q", "-F"] as &[&str], &["mkfs.btrfs", "-q", "-f"], &["mkfs.xfs", "-q", "-f"]] {
            let (Some(disk), Some(other)) = (LoopDisk::new(make), LoopDisk::new(make)) else { return };
            other.unmount();
            let tree = disk.mounted.join("tree");
            fs::create_dir(&tree).unwrap();
            let before = of(&tree);
            disk.unmount();
            other.mount();
            disk.mount();
            let after = of(&tree);
            assert_ne!(after.device, before.device, "{make:?}: it is where the other was");
            assert!(before.is(&after), "{make:?}: {before:?} {after:?}");
            // Of the same number, on the other one.
            let elsewhere = other.mounted.join("tree");
            fs::create_dir(&elsewhere).unwrap();
            assert!(!before.is(&of(&elsewhere)), "{make:?}: {before:?}");
        }
    }

    #[test]
    fn what_an_earlier_version_recorded_is_read_and_compared_by_its_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let found = of(folder.path());
        let recorded = |inode: u64| -> FileIdentity {
            serde_json::from_str(&format!(r#"{{"device":{},"inode":{inode}}}"#, found.device)).unwrap()
        };
        assert!(recorded(found.inode).is(&found) && !recorded(found.inode + 1).is(&found));
    }
}
