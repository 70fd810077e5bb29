//! Defragmentation of btrfs (`BTRFS_IOC_DEFRAG_RANGE` of linux/btrfs.h), range by range, so that it can be stopped between two. The kernel
//! itself also ends a range early when its caller is to stop.
//!
//! What a snapshot or another file has too is left as it is: written anew it would be there twice.

use crate::btrfs::open_btrfs;
use crate::error::WorkError;
use crate::extents::allocated;
use crate::files::Files;
use crate::worker::Worker;
use rustix::fs::fdatasync;
use rustix::io::Errno;
use rustix::ioctl::{Opcode, Setter, ioctl, opcode};
use std::os::fd::OwnedFd;
use std::path::Path;

/// A range at a time.
const RANGE_BYTES: u64 = 16 << 20;

/// `struct btrfs_ioctl_defrag_range_args`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Range {
    start: u64,
    length: u64,
    flags: u64,
    extent_threshold: u32,
    compress_type: u32,
    unused: [u32; 4],
}

const DEFRAG_RANGE: Opcode = opcode::write::<Range>(0x94, 16);

/// What came of a range.
enum Outcome {
    Done,
    Shared,
    /// A swap file, or one that a device is made of.
    InUse,
}

/// Whether there is a btrfs at a path.
pub(crate) fn check(path: &Path) -> Result<(), WorkError> {
    open_btrfs(path, "defragment").map(drop)
}

/// Defragments every file of the subvolume below the path. The position is bytes gone through: of a worker that was lost the next one
/// passes over as many.
pub(crate) fn run(worker: &mut Worker) -> Result<(), WorkError> {
    let path = worker.spec().path.clone();
    let root = worker.spec().open()?;
    let total = total_size(worker, &root, &path)?;
    let (mut done, skipped) = (0, worker.spec().position);
    let (mut files, mut in_use, mut shared) = (0_u64, 0_u64, 0_u64);
    for (file, size) in Files::below(&root, &path)? {
        let mut start = skipped.saturating_sub(done).min(size);
        if start == size {
            worker.looked(Some(total.max(skipped) as f64));
        }
        while start < size {
            let length = RANGE_BYTES.min(size - start);
            match defragment(&file, start, length).map_err(WorkError::io("defragment below", &path))? {
                Outcome::Done => {}
                Outcome::Shared => shared += length,
                Outcome::InUse => in_use += 1,
            }
            start += length;
            let position = done + start;
            worker.progress(position as f64, Some(total.max(position) as f64), position);
        }
        done += size;
        files += 1;
    }
    worker.progress(done as f64, Some(done as f64), done);
    let left = match (shared, in_use) {
        (0, 0) => String::new(),
        _ => format!("; {shared} bytes that snapshots or other files have too and {in_use} ranges in use were left"),
    };
    worker.say(&format!("{files} files gone through{left}"));
    Ok(())
}

/// Bytes of all files.
fn total_size(worker: &Worker, root: &OwnedFd, path: &Path) -> Result<u64, WorkError> {
    let size = |(_, size): (OwnedFd, u64)| {
        worker.looked(None);
        size
    };
    Ok(Files::below(root, path)?.map(size).sum())
}

fn defragment(file: &OwnedFd, start: u64, length: u64) -> Result<Outcome, Errno> {
    if allocated(file, start, length)?.shared > 0 {
        return Ok(Outcome::Shared);
    }
    let range = Range { start, length, flags: 0, extent_threshold: 0, compress_type: 0, unused: [0; 4] };
    loop {
        // SAFETY: `BTRFS_IOC_DEFRAG_RANGE` reads one `struct btrfs_ioctl_defrag_range_args`, which `Range` is, and keeps no pointer.
        match unsafe { ioctl(file, Setter::<DEFRAG_RANGE, Range>::new(range)) } {
            Ok(()) => break,
            // It was stopped in the middle, and goes on now.
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(Errno::TXTBSY | Errno::PERM | Errno::INVAL) => return Ok(Outcome::InUse),
            Err(errno) => return Err(errno),
        }
    }
    // What was marked is written here, while this may run, and not by the kernel's threads later.
    fdatasync(file)?;
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use super::total_size;
    use crate::spec::Kind;
    use crate::worker::Worker;
    use std::fs::{self, File};

    #[test]
    fn who_adds_up_sizes_is_seen_to_look_at_more_and_more() {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().join("tree");
        fs::create_dir(&tree).unwrap();
        (0..200).for_each(|file| fs::write(tree.join(file.to_string()), "text").unwrap());
        let mut worker = Worker::of(folder.path(), Kind::Command, &tree);
        worker.spec_mut().position = 70;
        assert_eq!(total_size(&worker, &File::open(&tree).unwrap().into(), &tree).unwrap(), 800);
        let progress = worker.assignment().place.progress().unwrap();
        assert_eq!((progress.done, progress.total, progress.position, progress.looked), (70.0, None, 70, 192));
    }
}
