//! From memory to the disk: who goes first, who stays, and that nobody notices.

use crate::pool_folder::PoolFolder;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::{Duration, SystemTime};

const MIB: usize = 1 << 20;

fn data(seed: u8, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at % 239) as u8 ^ seed).collect()
}

/// Files of one MiB, each used an hour after the one before.
fn fill(place: &PoolFolder, files: u8) {
    for number in 0..files {
        let path = place.temporary().join(number.to_string());
        fs::write(&path, data(number, MIB)).unwrap();
        let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000 + 3600 * u64::from(number));
        let times = fs::FileTimes::new().set_accessed(then).set_modified(then);
        File::options().write(true).open(&path).unwrap().set_times(times).unwrap();
    }
}

/// What lies on the disk for the tenant.
fn on_disk(place: &PoolFolder) -> usize {
    let count = |folder: fs::DirEntry| fs::read_dir(folder.path()).unwrap().count();
    fs::read_dir(place.pool().join("spilled/web")).unwrap().map(|folder| count(folder.unwrap())).sum()
}

#[test]
fn above_the_watermark_the_oldest_closed_go_and_an_open_one_stays() {
    let place = PoolFolder::with("temporary = \"10MiB\"", "[pools.temporary]\nwatermark = 100\nspill_to = 99");
    let _service = place.serve();
    // Held open since before, and the oldest of all.
    let held = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(place.temporary().join("0"))
        .unwrap();
    fill(&place, 9);
    // Only now, so that no look falls between two of the files.
    place.write("temporary = \"10MiB\"", "[pools.temporary]\nwatermark = 75\nspill_to = 50");
    assert!(place.run(&["reload"]).status.success());
    place.until("it spills", |status| status.temporary.bytes <= 5 << 20);
    let status = place.status();
    assert_eq!((status.temporary.spilled_files, status.temporary.bytes), (4, 5 << 20));
    assert_eq!((status.temporary.files, status.stable.bytes), (9, 4 << 20), "what spilled counts on the disk");
    for number in 0..9 {
        let path = place.temporary().join(number.to_string());
        let shown = fs::metadata(&path).unwrap();
        assert_eq!(shown.mtime(), 1_000_000_000 + 3600 * i64::from(number), "{number} keeps its times");
        assert_eq!((shown.len(), shown.blocks() * 512), (MIB as u64, MIB as u64));
        assert!(fs::read(&path).unwrap() == data(number, MIB), "{number}");
    }
    held.write_all_at(b"still", 0).unwrap();
    assert_eq!(on_disk(&place), 4);
    // What spilled is a file like any other.
    let path = place.temporary().join("1");
    OpenOptions::new().append(true).open(&path).unwrap().write_all_at(b"x", 0).unwrap();
    fs::hard_link(&path, place.temporary().join("link")).unwrap();
    fs::rename(&path, place.temporary().join("renamed")).unwrap();
    fs::remove_file(place.temporary().join("link")).unwrap();
    assert_eq!(fs::metadata(place.temporary().join("renamed")).unwrap().len(), MIB as u64 + 1);
    File::options().write(true).open(place.temporary().join("2")).unwrap().set_len(10).unwrap();
    assert_eq!(fs::read(place.temporary().join("2")).unwrap(), data(2, 10));
    for name in ["renamed", "2", "3", "4"] {
        fs::remove_file(place.temporary().join(name)).unwrap();
    }
    place.until("the disk is free", |status| status.stable.bytes == 0);
    assert_eq!(on_disk(&place), 0);
}

#[test]
fn what_spilled_is_there_after_a_kill_and_after_a_stop() {
    let place = PoolFolder::with("temporary = \"10MiB\"", "[pools.temporary]\nwatermark = 75\nspill_to = 30");
    let mut service = place.serve();
    fill(&place, 9);
    place.until("it spills", |status| status.temporary.bytes <= 3 << 20);
    let before = place.status();
    service.kill();
    let service = place.serve();
    let after = place.status();
    assert_eq!((before.temporary.bytes, before.stable.bytes), (after.temporary.bytes, after.stable.bytes));
    let check = || {
        for number in 0..9 {
            assert!(fs::read(place.temporary().join(number.to_string())).unwrap() == data(number, MIB), "{number}");
        }
    };
    check();
    assert!(service.terminate());
    let _service = place.serve();
    check();
}

#[test]
fn a_tenant_that_chose_so_goes_over_to_the_disk_when_memory_is_full() {
    let place = PoolFolder::with(
        "temporary = \"4MiB\"\nwhen_full = \"spill\"",
        "[pools.temporary]\nwatermark = 100\nspill_to = 90",
    );
    let _service = place.serve();
    // One file larger than all memory, while it is written.
    let file =
        OpenOptions::new().read(true).write(true).create_new(true).open(place.temporary().join("large")).unwrap();
    let whole = data(3, 10 * MIB);
    for (number, piece) in whole.chunks(300_000).enumerate() {
        file.write_all_at(piece, number as u64 * 300_000).unwrap();
    }
    let mut back = vec![0; whole.len()];
    file.read_exact_at(&mut back, 0).unwrap();
    assert!(back == whole);
    drop(file);
    assert!(fs::read(place.temporary().join("large")).unwrap() == whole);
    fs::write(place.temporary().join("small"), "small").unwrap();
    let status = place.status();
    assert_eq!(status.temporary.spilled_files, 1);
    // A file in many pieces has blocks that name them, which the file system counts too.
    assert!((10 << 20..(10 << 20) + 64 * 1024).contains(&status.stable.bytes), "{status:?}");
}

#[test]
fn with_no_room_on_the_disk_files_stay_in_memory() {
    let place = PoolFolder::with(
        "temporary = \"10MiB\"\nstable = \"2MiB\"",
        "[pools.temporary]\nwatermark = 75\nspill_to = 10",
    );
    let _service = place.serve();
    fill(&place, 9);
    place.until("it spills what fits", |status| status.temporary.spilled_files == 2);
    place.let_it_look();
    let status = place.status();
    assert_eq!((status.temporary.spilled_files, status.stable.bytes), (2, 2 << 20));
    for number in 0..9 {
        assert!(fs::read(place.temporary().join(number.to_string())).unwrap() == data(number, MIB), "{number}");
    }
}

#[test]
fn a_file_that_a_reader_opened_first_grows_beyond_memory_only_once_the_reader_has_closed_it() {
    let place = PoolFolder::new("temporary = \"4MiB\"\nwhen_full = \"spill\"");
    let service = place.serve();
    if !place.status().temporary.has_passthrough {
        println!("skipped: this kernel has no FUSE passthrough");
        return;
    }
    let path = place.temporary().join("file");
    // Made without opening it: the kernel tells of the close of who made it after the program has gone on, and until then the
    // reader would not be the first.
    mknodat(CWD, &path, FileType::RegularFile, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let reader = File::open(&path).unwrap();
    let writer = OpenOptions::new().write(true).open(&path).unwrap();
    // The kernel reads the file in memory by itself, and wants no other for as long as it is open: so the write is short.
    let short = writer.write_at(&vec![2; 6 << 20], 0).unwrap();
    assert!((3 << 20..=4 << 20).contains(&short), "{short} bytes");
    assert_eq!(fs::read(&path).unwrap(), vec![2; short], "what was said to be written is");
    drop((reader, writer));
    // The service is told of the closes later too.
    place.until("the reader's close has reached the service", |_| {
        let writer = OpenOptions::new().write(true).open(&path).unwrap();
        writer.write_all_at(&vec![3; 6 << 20], 0).is_ok()
    });
    assert_eq!(fs::read(&path).unwrap(), vec![3; 6 << 20]);
    assert!(service.terminate());
}

#[test]
fn where_the_service_reads_a_file_grows_beyond_memory_though_a_reader_opened_it_first() {
    let place = PoolFolder::new("temporary = \"4MiB\"\nwhen_full = \"spill\"\nreads = \"service\"");
    let service = place.serve();
    let path = place.temporary().join("file");
    fs::write(&path, vec![1; 1 << 20]).unwrap();
    let reader = File::open(&path).unwrap();
    let mut before = vec![0; 1 << 20];
    reader.read_exact_at(&mut before, 0).unwrap();
    assert_eq!(before, vec![1; 1 << 20]);
    let writer = OpenOptions::new().write(true).open(&path).unwrap();
    for (number, piece) in vec![2; 6 << 20].chunks(1 << 20).enumerate() {
        writer.write_all_at(piece, (number as u64) << 20).unwrap();
    }
    // The reader sees what was written, wherever it lies by now.
    let mut after = vec![0; 6 << 20];
    reader.read_exact_at(&mut after, 0).unwrap();
    assert_eq!(after, vec![2; 6 << 20]);
    assert_eq!(place.status().temporary.spilled_files, 1);
    drop((reader, writer));
    assert_eq!(fs::read(&path).unwrap(), vec![2; 6 << 20]);
    assert!(service.terminate());
}

#[test]
fn a_file_that_was_only_read_stays_longer_than_one_that_was_not() {
    let place = PoolFolder::with("temporary = \"10MiB\"", "[pools.temporary]\nwatermark = 75\nspill_to = 60");
    let _service = place.serve();
    let path = |name: &str| place.temporary().join(name);
    for name in ["read", "other"] {
        fs::write(path(name), data(1, 3 * MIB)).unwrap();
    }
    // The kernel would note the first read after a write in any case. Its clock for files takes a step every few milliseconds.
    for name in ["read", "other", "read"] {
        std::thread::sleep(Duration::from_millis(50));
        fs::read(path(name)).unwrap();
    }
    // Nor is the last one written in the same step.
    std::thread::sleep(Duration::from_millis(50));
    fs::write(path("last"), data(2, 2 * MIB)).unwrap();
    place.until("one goes", |status| status.temporary.spilled_files > 0);
    let in_memory =
        |name: &str| fs::metadata(place.folder.path().join("run/temporary/web/tree").join(name)).unwrap().blocks();
    assert_eq!(in_memory("other"), 0, "it is on the disk");
    assert_eq!(in_memory("read"), 3 * MIB as u64 / 512, "it is in memory");
}

#[test]
fn a_tenant_may_have_watermarks_of_its_own_also_after_a_reload() {
    let place = PoolFolder::new("temporary = \"10MiB\"\nwatermark = 100\nspill_to = 99");
    let _service = place.serve();
    fill(&place, 9);
    place.let_it_look();
    assert_eq!(place.status().temporary.spilled_files, 0, "beyond what holds of all");
    place.write("temporary = \"10MiB\"\nwatermark = 50\nspill_to = 20", "");
    assert!(place.run(&["reload"]).status.success());
    place.until("it spills", |status| status.temporary.bytes <= 2 << 20);
    assert_eq!(place.status().temporary.spilled_files, 7);
}
