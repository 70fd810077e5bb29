//! Trims of made-up file systems, and of real ones on a loop device.

use super::{RANGE_BYTES, Space, check, chunks, run, takes_discards, uuid};
use crate::error::WorkError;
use crate::loop_disk::{self, LoopDisk};
use crate::spec::Kind;
use crate::worker::Worker;
use rustix::io::Errno;
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::{FileExt, symlink};
use std::path::Path;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// One that is counted from 0.
fn space(size: u64, least: u64, group: Option<u64>) -> Space {
    Space { stretches: std::iter::once(0..size).collect(), least, group }
}

/// The ranges in which a space is trimmed from a position on, and what was last said.
fn trimmed(
    space: &Space,
    from: u64,
    trim: impl Fn(&Range<u64>) -> Result<u64, Errno>,
) -> (Vec<Range<u64>>, (u64, u64, u64)) {
    let (mut ranges, mut said) = (Vec::new(), (0, 0, 0));
    let trim = |range: Range<u64>| {
        let answer = trim(&range);
        ranges.push(range);
        answer
    };
    space.trim(from, trim, |done, total, at| said = (done, total, at)).unwrap();
    (ranges, said)
}

#[test]
fn what_lies_beyond_the_size_that_is_told_is_trimmed_to_the_end_of_the_disk_or_of_the_file_system() {
    // The end of the file system, from where to go on, and what is said at the end.
    let cases = [
        (GIB, 0, (GIB, GIB, GIB), 4),
        (GIB, 3 * RANGE_BYTES, (GIB, GIB, GIB), 1),
        // It ends before its disk does, which the kernel says at the first range that begins beyond.
        (GIB - RANGE_BYTES, 0, (GIB - RANGE_BYTES, GIB - RANGE_BYTES, GIB - RANGE_BYTES), 4),
    ];
    for (end, from, last, calls) in cases {
        let space = space(GIB, 600 * MIB, None);
        let trim = |range: &Range<u64>| if range.start >= end { Err(Errno::INVAL) } else { Ok(0) };
        let (ranges, said) = trimmed(&space, from, trim);
        assert_eq!((said, ranges.len()), (last, calls), "{end} {from}");
        assert_eq!(ranges[0].start, from);
        assert!(ranges.iter().all(|range| range.end - range.start == RANGE_BYTES), "{ranges:?}");
    }
    // One that does not begin at 0 refuses the first range, and is trimmed all the same.
    let space = space(GIB, GIB, None);
    let (ranges, _) = trimmed(&space, 0, |range| if range.start == 0 { Err(Errno::INVAL) } else { Ok(0) });
    assert_eq!(ranges.len(), 4);
}

#[test]
fn an_extent_that_the_kernel_trims_whole_is_not_trimmed_with_every_range() {
    // Of 64 GiB in groups of 16, each is free in one piece; before Linux 6.11, and since.
    let space = space(64 * GIB, 63 * GIB, Some(16 * GIB));
    for (is_whole, calls) in [(true, 1 + 4), (false, 256)] {
        let trim = |range: &Range<u64>| Ok(if is_whole { 16 * GIB } else { range.end - range.start });
        let (ranges, said) = trimmed(&space, 0, trim);
        assert_eq!(ranges.len(), calls);
        assert_eq!(said, (64 * GIB, 64 * GIB, 64 * GIB));
        assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start), "{ranges:?}");
    }
}

#[test]
fn a_btrfs_is_trimmed_where_its_chunks_are() {
    let far = 1 << 50;
    let space = Space { stretches: vec![22 * MIB..30 * MIB, far..far + GIB], least: 512 * MIB, group: None };
    let (ranges, said) = trimmed(&space, 0, |_| Ok(0));
    assert_eq!((ranges.len(), &ranges[0]), (1 + 4, &(22 * MIB..30 * MIB)));
    assert_eq!(said, (GIB + 8 * MIB, GIB + 8 * MIB, far + GIB));
    let (ranges, said) = trimmed(&space, far + 3 * RANGE_BYTES, |_| Ok(0));
    assert_eq!((ranges.len(), &ranges[0]), (1, &(far + 3 * RANGE_BYTES..far + GIB)));
    assert_eq!(said.0, GIB + 8 * MIB, "what the worker before did counts");
}

#[test]
fn a_btrfs_can_be_trimmed_where_any_of_its_disks_takes_discards() {
    let root = tempfile::tempdir().unwrap();
    let (btrfs, disk) = (root.path().join("btrfs"), root.path().join("disk"));
    assert!(takes_discards(&btrfs), "nobody knows");
    fs::create_dir_all(btrfs.join("devices")).unwrap();
    for path in [disk.join("part"), disk.join("queue"), root.path().join("other/queue")] {
        fs::create_dir_all(path).unwrap();
    }
    symlink(disk.join("part"), btrfs.join("devices/part")).unwrap();
    symlink(root.path().join("other"), btrfs.join("devices/other")).unwrap();
    for (of_part, of_other) in [(0, 0), (0, 4096), (4096, 0)] {
        fs::write(disk.join("queue/discard_max_bytes"), format!("{of_part}\n")).unwrap();
        fs::write(root.path().join("other/queue/discard_max_bytes"), format!("{of_other}\n")).unwrap();
        assert_eq!(takes_discards(&btrfs), of_part + of_other > 0, "{of_part} {of_other}");
    }
    let halves = [0x01, 0x09].map(|first| u64::from_ne_bytes(std::array::from_fn(|at| first + at as u8)));
    assert_eq!(uuid((halves[0], halves[1])), "01020304-0506-0708-090a-0b0c0d0e0f10");
}

/// Something in a block of a disk that its file system does not use.
fn put(disk: &LoopDisk, at: u64) {
    let image = File::options().write(true).open(disk.image()).unwrap();
    image.write_all_at(&[0xAB; 4096], at).unwrap();
}

/// It is there still.
fn is_there(disk: &LoopDisk, at: u64) -> bool {
    let mut block = [0; 4096];
    File::open(disk.image()).unwrap().read_exact_at(&mut block, at).unwrap();
    block == [0xAB; 4096]
}

#[test]
fn the_last_blocks_of_a_disk_are_trimmed_and_asking_whether_they_can_be_trims_nothing() {
    let makers: [&[&str]; 3] = [&["mkfs.ext4", "-q", "-F"], &["mkfs.xfs", "-q", "-f"], &["mkfs.btrfs", "-q", "-f"]];
    for make in makers {
        let Some(disk) = LoopDisk::new(make) else { return };
        // What statvfs(3) says is less than this of all but the last, and this is in no chunk of that.
        let at = fs::metadata(disk.image()).unwrap().len() - 2 * MIB;
        put(&disk, at);
        let mut worker = Worker::of(disk.root(), Kind::Fstrim, &disk.mounted);
        check(&disk.mounted, Path::new("/sys")).unwrap();
        assert!(is_there(&disk, at), "{make:?}");
        run(&mut worker, Path::new("/sys")).unwrap();
        // XFS waits for its discards then.
        disk.unmount();
        assert!(!is_there(&disk, at), "{make:?}");
        let progress = worker.assignment().place.progress().unwrap();
        assert_eq!(progress.total, Some(progress.done), "{make:?}");
    }
}

#[test]
fn a_btrfs_is_trimmed_also_after_a_balance_moved_all_of_it_to_higher_addresses() {
    let Some(disk) = LoopDisk::new(&["mkfs.btrfs", "-q", "-f"]) else { return };
    let size = fs::metadata(disk.image()).unwrap().len();
    let directory = File::open(&disk.mounted).unwrap().into();
    while chunks(&directory).unwrap()[0].start <= size {
        loop_disk::run("btrfs", &["balance", "start", "--full-balance"], &disk.mounted);
    }
    let freed = || {
        let mut worker = Worker::of(disk.root(), Kind::Fstrim, &disk.mounted);
        run(&mut worker, Path::new("/sys")).unwrap();
        worker.freed_bytes()
    };
    // What belongs to no chunk is trimmed once.
    freed();
    assert!(freed() > MIB);
}

#[test]
fn a_trim_tells_of_what_the_worker_before_it_trimmed_too() {
    let Some(disk) = LoopDisk::new(&["mkfs.ext4", "-q", "-F"]) else { return };
    let mut worker = Worker::of(disk.root(), Kind::Fstrim, &disk.mounted);
    worker.spec_mut().found.bytes = 1 << 40;
    worker.spec_mut().position = RANGE_BYTES;
    run(&mut worker, Path::new("/sys")).unwrap();
    let freed = worker.freed_bytes();
    assert!(freed > 0);
    assert_eq!(worker.message(), format!("{} bytes were told to be unused", (1 << 40) + freed));
    assert_eq!(worker.assignment().place.progress().unwrap().found.bytes, (1 << 40) + freed);
}

#[test]
fn a_btrfs_on_a_disk_without_discards_is_refused() {
    let Some(disk) = LoopDisk::new(&["mkfs.btrfs", "-q", "-f"]) else { return };
    let directory = File::open(&disk.mounted).unwrap().into();
    let name = uuid(super::file_system_identifier(&directory).unwrap());
    assert!(Path::new("/sys/fs/btrfs").join(&name).is_dir(), "{name}");
    let sys = disk.root().join("sys");
    let queue = sys.join("fs/btrfs").join(name).join("devices/disk/queue");
    fs::create_dir_all(&queue).unwrap();
    for (most, is_refused) in [("0\n", true), ("4096\n", false)] {
        fs::write(queue.join("discard_max_bytes"), most).unwrap();
        let answer = check(&disk.mounted, &sys);
        assert_eq!(matches!(answer, Err(WorkError::Refused(_))), is_refused, "{answer:?}");
    }
}
