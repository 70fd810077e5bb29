//! Deletion of a btrfs snapshot. The kernel's own (`BTRFS_IOC_SNAP_DESTROY`) takes the name away at once and leaves the rest to its
//! cleaner, a thread in no group that nothing stops. So the snapshot is made writable, emptied entry by entry, and its directory removed
//! last (docs/adr/0044).
//!
//! What it ties is what neither the live copy nor another snapshot has too: its extents say so.

use crate::btrfs::{Key, items, open_btrfs, subvolume, word_at};
use crate::delete_all;
use crate::error::WorkError;
use crate::extents::allocated;
use crate::files::Files;
use crate::spec::{FileIdentity, refused};
use crate::worker::Worker;
use rustix::fs::fstat;
use rustix::io::Errno;
use rustix::ioctl::{Getter, Opcode, Setter, ioctl, opcode};
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Of the directory of every subvolume (`BTRFS_FIRST_FREE_OBJECTID`).
const ROOT_INODE: u64 = 256;
/// The tree of trees, and in it the directory that names the subvolume that is mounted by default; keys in both.
const ROOT_TREE: u64 = 1;
const ROOT_TREE_DIRECTORY: u64 = 6;
const DIRECTORY_ITEM: u8 = 84;
const ROOT_REFERENCE: u8 = 156;

const GET_FLAGS: Opcode = opcode::read::<u64>(0x94, 25);
const SET_FLAGS: Opcode = opcode::write::<u64>(0x94, 26);
const READ_ONLY: u64 = 1 << 1;

/// Which snapshot is at a path: by its identifier, as numbers of file systems change and the inode is that of every subvolume.
pub(crate) fn identity(path: &Path) -> Result<FileIdentity, WorkError> {
    let directory = open_btrfs(path, "delete a snapshot of")?;
    let inode = fstat(&directory).map_err(WorkError::io("look at", path))?.st_ino;
    let found = subvolume(&directory).map_err(WorkError::io("ask about the subvolume at", path))?;
    if inode != ROOT_INODE || !found.is_snapshot {
        let why = format!("{} is no snapshot: the kind delete deletes directories", path.display());
        return Err(WorkError::Refused(why));
    }
    Ok(FileIdentity { device: found.identifier.0, inode: found.identifier.1 })
}

/// Whether the snapshot at a path can be deleted: nobody reaches it by another way, and nothing lies in it that would go with it.
pub(crate) fn check(path: &Path) -> Result<(), WorkError> {
    identity(path)?;
    let directory = open_btrfs(path, "delete a snapshot of")?;
    let asked = |errno: Errno| WorkError::io("ask about the subvolumes of", path)(errno);
    let number = subvolume(&directory).map_err(asked)?.number;
    let is_default = |(_, data): &(Key, Vec<u8>)| word_at(data, 0) == number;
    let of = |object, kind| (Key { object, kind, offset: 0 }, Key { object, kind, offset: u64::MAX });
    let (from, to) = of(ROOT_TREE_DIRECTORY, DIRECTORY_ITEM);
    if items(&directory, ROOT_TREE, from, to).map_err(asked)?.iter().any(is_default) {
        return refused(format!("{} is what is mounted by default: nothing was deleted", path.display()));
    }
    let (from, to) = of(number, ROOT_REFERENCE);
    if !items(&directory, ROOT_TREE, from, to).map_err(asked)?.is_empty() {
        return refused(format!("{} holds subvolumes: delete or move those first", path.display()));
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").map_err(WorkError::io("read", Path::new("mountinfo")))?;
    match mounted_at(&mounts, path, number) {
        Some(place) => {
            refused(format!("{} is mounted at {place}: unmount it first, nothing was deleted", path.display()))
        }
        None => crate::Deletion::begin(path, true).map(drop).map_err(|error| WorkError::Refused(error.to_string())),
    }
}

/// Where a subvolume is mounted, of the file system that a path is on.
fn mounted_at(mounts: &str, path: &Path, number: u64) -> Option<String> {
    // Number of the file system, where it is mounted, its options.
    let fields = |line: &str| -> Option<(String, String, String)> {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ').skip(2);
        let (device, place) = (left.next()?.to_owned(), left.nth(1)?.to_owned());
        Some((device, place, right.rsplit(' ').next()?.to_owned()))
    };
    let all: Vec<_> = mounts.lines().filter_map(fields).collect();
    let below = all.iter().filter(|(_, place, _)| path.starts_with(place)).max_by_key(|(_, place, _)| place.len())?;
    let option = format!("subvolid={number}");
    let is_it = |options: &str| options.split(',').any(|word| word == option);
    all.iter().find(|(device, _, options)| *device == below.0 && is_it(options)).map(|(_, place, _)| place.clone())
}

/// Empties the snapshot and removes it, if it is still that.
pub(crate) fn run(worker: &mut Worker) -> Result<(), WorkError> {
    let path = worker.spec().path.clone();
    if fs::symlink_metadata(&path).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
        worker.say("it was gone already");
        return Ok(());
    }
    worker.spec().is_same()?;
    check(&path)?;
    let directory = open_btrfs(&path, "delete a snapshot of")?;
    let entries = delete_all::entries(worker, &path);
    let own = own_bytes(worker, &directory, &path)?;
    worker.ties(own as f64);
    make_writable(&directory, &path)?;
    drop(directory);
    let deleted = delete_all::remove(worker, &path, entries, own as f64 / entries.max(1) as f64)?;
    worker.say(&format!("{deleted} entries deleted, which alone had {own} bytes"));
    Ok(())
}

/// Bytes of files that are nowhere else.
fn own_bytes(worker: &Worker, directory: &OwnedFd, path: &Path) -> Result<u64, WorkError> {
    let mut own = 0;
    for (file, size) in Files::below(directory, path)? {
        own += allocated(&file, 0, size).map_err(WorkError::io("ask where files lie below", path))?.own;
        // Nothing is deleted yet, and the daemon sees that it lives.
        worker.ties(own as f64);
        worker.progress(worker.spec().position as f64, None, worker.spec().position);
    }
    Ok(own)
}

fn make_writable(directory: &OwnedFd, path: &Path) -> Result<(), WorkError> {
    // SAFETY: `BTRFS_IOC_SUBVOL_GETFLAGS` writes one number of eight bytes.
    let flags = unsafe { ioctl(directory, Getter::<GET_FLAGS, u64>::new()) };
    let flags = flags.map_err(WorkError::io("ask about the subvolume at", path))?;
    if flags & READ_ONLY == 0 {
        return Ok(());
    }
    // SAFETY: `BTRFS_IOC_SUBVOL_SETFLAGS` reads one number of eight bytes.
    match unsafe { ioctl(directory, Setter::<SET_FLAGS, u64>::new(flags & !READ_ONLY)) } {
        Ok(()) => Ok(()),
        Err(Errno::PERM) => refused(format!("{} is being sent to somewhere: resume when that is over", path.display())),
        Err(errno) => Err(WorkError::io("make writable the snapshot at", path)(errno)),
    }
}

#[cfg(test)]
mod tests {
    use super::mounted_at;
    use std::path::Path;

    #[test]
    fn a_snapshot_that_is_mounted_elsewhere_is_found_and_one_of_another_file_system_is_not() {
        let mounts = "22 1 0:20 / / rw - ext4 /dev/sda1 rw\n\
             30 22 0:40 / /pool rw,relatime - btrfs /dev/sdb rw,space_cache=v2,subvolid=5,subvol=/\n\
             31 22 0:40 /old /data rw,relatime shared:1 - btrfs /dev/sdb rw,subvolid=260,subvol=/old\n\
             32 22 0:41 /old /other rw,relatime - btrfs /dev/sdc rw,subvolid=261,subvol=/old\n";
        let at = |number| mounted_at(mounts, Path::new("/pool/old"), number);
        assert_eq!(at(260).as_deref(), Some("/data"));
        assert_eq!(at(261), None, "it is on another disk");
        assert_eq!(at(26), None);
    }
}
