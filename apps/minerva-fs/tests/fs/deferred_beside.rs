//! A file that moves while its disk is quiet, and somebody who comes to that disk meanwhile.

use crate::deferred::{PATIENCE, assert_tidy, files, is_link, write};
use crate::pool_folder::PoolFolder;
use minerva_lab::disk::{Disk, DiskSpec, FileSystem};
use minerva_lab::sweep::sweep;
use rustix::fs::{SeekFrom, seek};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Many pieces of a disk with seek times, far more than are moved before a reader has begun.
const BYTES: usize = 32 << 20;
const READ_BYTES: usize = 64 << 10;
/// Where the reader reads, and begins anew.
const READ_UP_TO: u64 = 32 << 20;
/// Reads between the two looks: far more than would fit between two pieces.
const READS: u64 = 500;

#[repr(align(4096))]
struct Block([u8; READ_BYTES]);

/// Reads from a disk, past memory and without a pause, until it is dropped.
struct Reader {
    reads: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Reader {
    fn start(device: &Path) -> Self {
        let (reads, is_over) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let file = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(device).unwrap();
        let (count, stop) = (Arc::clone(&reads), Arc::clone(&is_over));
        let read = move || {
            let mut block = Box::new(Block([0; READ_BYTES]));
            while !stop.load(Ordering::Relaxed) {
                let at = count.fetch_add(1, Ordering::Relaxed) * READ_BYTES as u64 % READ_UP_TO;
                file.read_exact_at(&mut block.0, at).unwrap();
            }
        };
        Self { reads, is_over, thread: Some(thread::spawn(read)) }
    }

    fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// How far the copy is written that is under way in a directory. Its room is taken at once, and reads as a hole until then.
fn copied_bytes(directory: &Path) -> u64 {
    let mut names = fs::read_dir(directory).unwrap().map(Result::unwrap);
    let copy = names.find(|entry| entry.file_name().to_string_lossy().starts_with(".minerva-"));
    // It may have taken its place since.
    let copy = copy.and_then(|copy| File::open(copy.path()).ok());
    copy.map_or(0, |copy| seek(copy, SeekFrom::Hole(0)).unwrap_or(0))
}

/// Waits until something is so, and does not ask that anything be moved.
fn until(place: &PoolFolder, what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}: {:?}", files(place));
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_copy_that_is_under_way_goes_no_further_while_another_reads_and_is_completed_after() {
    let place = PoolFolder::new("");
    sweep("minerva-test-beside-").unwrap();
    // Without an elevator, which would hold back the move by itself.
    let spec = DiskSpec {
        elevator: "none".to_owned(),
        backing: Some(place.folder.path().join("contents")),
        ..DiskSpec::new(format!("minerva-test-beside-{}", std::process::id()), "sata7200-80g")
    };
    let Ok(disk) = Disk::create(&spec).map_err(|error| println!("skipped: {error}")) else { return };
    let there = FileSystem::create(&disk).unwrap();
    let service = place.serve();
    let path = there.path().join("file");
    let data: Vec<u8> = (0..BYTES).map(|at| (at / 4099) as u8).collect();
    write(&place, &path, &data);
    until(&place, "a part of it is copied", || copied_bytes(there.path()) > 0);
    let reader = Reader::start(disk.device());
    let waits = || files(&place).iter().any(|file| file.why.contains("waits: others use the disk"));
    until(&place, "the reader is seen", || waits() || !is_link(&path));
    let copied = copied_bytes(there.path());
    assert!(is_link(&path) && 0 < copied && copied < BYTES as u64, "{copied} bytes");
    let reads = reader.reads();
    until(&place, "others read on", || reader.reads() > reads + READS);
    assert_eq!((copied_bytes(there.path()), is_link(&path)), (copied, true));
    drop(reader);
    until(&place, "it is moved once they are gone", || files(&place).is_empty());
    assert!(!is_link(&path) && fs::read(&path).unwrap() == data);
    assert_tidy(&place, there.path());
    assert!(service.terminate());
}
