//! Deletion of a btrfs snapshot. The kernel's own (`BTRFS_IOC_SNAP_DESTROY`) takes the name away at once and leaves the rest to its
//! cleaner, a thread in no group that nothing stops. So the snapshot is made writable, emptied entry by entry, and its directory removed
//! last (docs/adr/0044).
//!
//! What it ties is what neither the live copy nor another snapshot has too: its extents say so.

use crate::btrfs::{Key, ROOT_TREE, SUBVOLUME_INODE, Subvolume, items, open_btrfs, subvolume, word_at};
use crate::delete::Removed;
use crate::delete_all;
use crate::error::WorkError;
use crate::extents::allocated;
use crate::facts::Facts;
use crate::files::Files;
use crate::identity::FileIdentity;
use crate::spec::refused;
use crate::target::Target;
use crate::worker::Worker;
use rustix::io::Errno;
use rustix::ioctl::{Getter, Opcode, Setter, ioctl, opcode};
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

/// In the tree of trees the directory that names the subvolume that is mounted by default; keys in both.
const ROOT_TREE_DIRECTORY: u64 = 6;
const DIRECTORY_ITEM: u8 = 84;
const ROOT_REFERENCE: u8 = 156;

const GET_FLAGS: Opcode = opcode::read::<u64>(0x94, 25);
const SET_FLAGS: Opcode = opcode::write::<u64>(0x94, 26);
const READ_ONLY: u64 = 1 << 1;

/// Which snapshot is at a path: by its identifier, as numbers of file systems change and the inode is that of every subvolume.
pub(crate) fn identity(path: &Path) -> Result<FileIdentity, WorkError> {
    identity_of_opened(&open_btrfs(path, "delete a snapshot of")?, path)
}

/// The same of what is held.
pub(crate) fn identity_of(target: &Target) -> Result<FileIdentity, WorkError> {
    identity_of_opened(opened(target)?, &target.path)
}

fn identity_of_opened(directory: &OwnedFd, path: &Path) -> Result<FileIdentity, WorkError> {
    let is_snapshot = |found: &Subvolume| found.is_snapshot;
    let facts = Facts::of(directory).map_err(WorkError::io("look at", path))?;
    let found = match subvolume(directory) {
        // Of no btrfs.
        Err(Errno::NOTTY) => None,
        found => Some(found.map_err(WorkError::io("ask about the subvolume at", path))?),
    };
    match found.filter(is_snapshot).filter(|_| facts.inode == SUBVOLUME_INODE) {
        Some(found) => {
            let (device, inode) = found.identifier;
            Ok(FileIdentity { device, inode, ..FileIdentity::of(&facts, directory, path)? })
        }
        None => Err(no_snapshot(path)),
    }
}

fn no_snapshot(path: &Path) -> WorkError {
    WorkError::Refused(format!("{} is no snapshot: the kind delete deletes directories", path.display()))
}

fn opened(target: &Target) -> Result<&OwnedFd, WorkError> {
    target.directory.as_ref().ok_or_else(|| no_snapshot(&target.path))
}

/// Whether the snapshot at a path can be deleted.
pub(crate) fn check(path: &Path) -> Result<(), WorkError> {
    identity(path)?;
    check_target(&Target::open(path).map_err(|error| WorkError::Refused(error.to_string()))?)
}

/// Nobody reaches the snapshot by another way, and nothing lies in it that would go with it.
fn check_target(target: &Target) -> Result<(), WorkError> {
    identity_of(target)?;
    let (directory, path) = (opened(target)?, &target.path);
    let asked = |errno: Errno| WorkError::io("ask about the subvolumes of", path)(errno);
    let number = subvolume(directory).map_err(asked)?.number;
    let is_default = |(_, data): &(Key, Vec<u8>)| word_at(data, 0) == number;
    let of = |object, kind| (Key { object, kind, offset: 0 }, Key { object, kind, offset: u64::MAX });
    let (from, to) = of(ROOT_TREE_DIRECTORY, DIRECTORY_ITEM);
    if items(directory, ROOT_TREE, from, to).map_err(asked)?.iter().any(is_default) {
        return refused(format!("{} is what is mounted by default: nothing was deleted", path.display()));
    }
    let (from, to) = of(number, ROOT_REFERENCE);
    if !items(directory, ROOT_TREE, from, to).map_err(asked)?.is_empty() {
        return refused(format!("{} holds subvolumes: delete or move those first", path.display()));
    }
    let read = |path: &str| fs::read_to_string(path).map_err(WorkError::io("read", Path::new(path)));
    let mounts = read("/proc/self/mountinfo")?;
    // By the mount that it was opened in: its path may lead to another by now.
    let opened_in = read(&format!("/proc/self/fdinfo/{}", directory.as_raw_fd()))?;
    let opened_in = opened_in.lines().find_map(|line| line.strip_prefix("mnt_id:")).unwrap_or_default().trim();
    match mounted_at(&mounts, opened_in, number) {
        Some(place) => {
            refused(format!("{} is mounted at {place}: unmount it first, nothing was deleted", path.display()))
        }
        None => Ok(()),
    }
}

/// Where a subvolume is mounted, of the file system that the mount of a number is of.
fn mounted_at(mounts: &str, opened_in: &str, number: u64) -> Option<String> {
    // Number of the mount, number of the file system, where it is mounted, its options.
    let fields = |line: &str| -> Option<(String, String, String, String)> {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ');
        let (mount, device) = (left.next()?.to_owned(), left.nth(1)?.to_owned());
        Some((mount, device, left.nth(1)?.to_owned(), right.rsplit(' ').next()?.to_owned()))
    };
    let all: Vec<_> = mounts.lines().filter_map(fields).collect();
    let (_, of, ..) = all.iter().find(|(mount, ..)| mount == opened_in)?;
    let option = format!("subvolid={number}");
    let is_it = |options: &str| options.split(',').any(|word| word == option);
    all.iter().find(|(_, device, _, options)| device == of && is_it(options)).map(|(_, _, place, _)| place.clone())
}

/// Empties the snapshot and removes it, if it is still that.
pub(crate) fn run(worker: &mut Worker) -> Result<(), WorkError> {
    match count(worker)? {
        Some(counted) => delete(worker, counted),
        None => {
            worker.say("it was gone already");
            Ok(())
        }
    }
}

/// A snapshot that can be deleted, with how many entries it has and how many bytes are nowhere else.
struct Counted {
    target: Target,
    entries: u64,
    own: u64,
}

/// Nothing if it is gone.
fn count(worker: &Worker) -> Result<Option<Counted>, WorkError> {
    let Some(target) = worker.spec().open_target()? else { return Ok(None) };
    check_target(&target)?;
    let entries = delete_all::entries(worker, &target);
    let own = own_bytes(worker, opened(&target)?, &target.path)?;
    worker.ties(own as f64);
    Ok(Some(Counted { target, entries, own }))
}

fn delete(worker: &mut Worker, Counted { target, entries, own }: Counted) -> Result<(), WorkError> {
    if !target.is_in_place() {
        return Err(worker.spec().is_another());
    }
    // To count may take hours, in which anybody may have begun to use it.
    check_target(&target)?;
    make_writable(opened(&target)?, &target.path)?;
    let per_entry = own as f64 / entries.max(1) as f64;
    let tied = |Removed { files, directories, .. }| per_entry * entries.saturating_sub(files + directories) as f64;
    let deleted = delete_all::remove(worker, target, entries, tied)?;
    worker.say(&format!("{deleted} entries deleted, which alone had {own} bytes"));
    Ok(())
}

/// Bytes of files that are nowhere else.
fn own_bytes(worker: &Worker, directory: &OwnedFd, path: &Path) -> Result<u64, WorkError> {
    let mut own = 0;
    for (file, size) in Files::below(directory, path)? {
        own += allocated(&file, 0, size).map_err(WorkError::io("ask where files lie below", path))?.own;
        worker.ties(own as f64);
        worker.looked(None);
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
    use super::{count, delete, mounted_at};
    use crate::error::WorkError;
    use crate::loop_disk::{LoopDisk, run};
    use crate::spec::Kind;
    use crate::worker::Worker;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    /// Two snapshots of a subvolume, `asked/old` that is to be deleted, and `spared/old`.
    fn snapshots() -> Option<(LoopDisk, Worker)> {
        let disk = LoopDisk::new(&["mkfs.btrfs", "-q", "-f"])?;
        let live = disk.mounted.join("live");
        run("btrfs", &["subvolume", "create"], &live);
        fs::write(live.join("file"), vec![1; 1 << 20]).unwrap();
        run("sync", &["-f"], &live);
        for name in ["asked", "spared"] {
            let of = live.to_str().unwrap();
            fs::create_dir(disk.mounted.join(name)).unwrap();
            run("btrfs", &["subvolume", "snapshot", "-r", of], &disk.mounted.join(name).join("old"));
        }
        let worker = Worker::of(disk.root(), Kind::BtrfsSnapshotDelete, &disk.mounted.join("asked/old"));
        Some((disk, worker))
    }

    fn is_whole(snapshot: &Path) -> bool {
        let is_read_only = run("btrfs", &["property", "get", "-t", "subvol"], snapshot).contains("ro=true");
        is_read_only && snapshot.join("file").exists()
    }

    #[test]
    fn a_snapshot_that_is_replaced_while_its_extents_are_looked_up_is_left_alone_as_is_the_other() {
        let Some((disk, mut worker)) = snapshots() else { return };
        let [asked, away, spared] = ["asked", "away", "spared"].map(|name| disk.mounted.join(name));
        // A directory above it.
        let counted = count(&worker).unwrap().unwrap();
        fs::rename(&asked, &away).unwrap();
        symlink("spared", &asked).unwrap();
        delete(&mut worker, counted).unwrap();
        assert!(is_whole(&spared.join("old")) && !away.join("old").exists(), "what was asked for is gone");
        // Itself.
        let mut worker = Worker::of(disk.root(), Kind::BtrfsSnapshotDelete, &spared.join("old"));
        let live = disk.mounted.join("live");
        run("btrfs", &["subvolume", "snapshot", "-r", live.to_str().unwrap()], &spared.join("new"));
        let counted = count(&worker).unwrap().unwrap();
        fs::rename(spared.join("old"), spared.join("away")).unwrap();
        fs::rename(spared.join("new"), spared.join("old")).unwrap();
        let deleted = delete(&mut worker, counted);
        assert!(matches!(deleted, Err(WorkError::Absent(_))), "{deleted:?}");
        assert!(is_whole(&spared.join("old")) && is_whole(&spared.join("away")));
    }

    #[test]
    fn a_snapshot_that_comes_into_use_while_its_extents_are_looked_up_is_left_as_it_is() {
        let Some((disk, mut worker)) = snapshots() else { return };
        let (old, elsewhere) = (disk.mounted.join("asked/old"), disk.root().join("elsewhere"));
        fs::create_dir(&elsewhere).unwrap();
        let source = run("findmnt", &["-n", "-o", "SOURCE", "-M"], &disk.mounted);
        let counted = count(&worker).unwrap().unwrap();
        run("mount", &["-o", "subvol=asked/old", source.trim()], &elsewhere);
        let deleted = delete(&mut worker, counted);
        run("umount", &[], &elsewhere);
        assert!(matches!(deleted, Err(WorkError::Refused(ref why)) if why.contains("mounted at")), "{deleted:?}");
        assert!(is_whole(&old));
        let counted = count(&worker).unwrap().unwrap();
        run("btrfs", &["subvolume", "set-default"], &old);
        let deleted = delete(&mut worker, counted);
        assert!(matches!(deleted, Err(WorkError::Refused(ref why)) if why.contains("by default")), "{deleted:?}");
        assert!(is_whole(&old));
    }

    #[test]
    fn a_snapshot_that_is_mounted_elsewhere_is_found_and_one_of_another_file_system_is_not() {
        let mounts = "22 1 0:20 / / rw - ext4 /dev/sda1 rw\n\
             30 22 0:40 / /pool rw,relatime - btrfs /dev/sdb rw,space_cache=v2,subvolid=5,subvol=/\n\
             31 22 0:40 /old /data rw,relatime shared:1 - btrfs /dev/sdb rw,subvolid=260,subvol=/old\n\
             32 22 0:41 /old /other rw,relatime - btrfs /dev/sdc rw,subvolid=261,subvol=/old\n";
        let at = |number| mounted_at(mounts, "30", number);
        assert_eq!(at(260).as_deref(), Some("/data"));
        assert_eq!(at(261), None, "it is on another disk");
        assert_eq!(at(26), None);
        assert_eq!(mounted_at(mounts, "32", 261).as_deref(), Some("/other"));
    }
}
