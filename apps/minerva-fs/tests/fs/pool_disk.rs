//! The pool's disk, when it is absent and when it fails.

use crate::pool_folder::{PoolFolder, is_mounted};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const MIB: usize = 1 << 20;

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// A directory that is mounted as the pool's disk; unmounted when dropped.
struct Disk(PathBuf);

impl Disk {
    fn mount(arguments: &[&str], at: &Path) -> Self {
        fs::create_dir_all(at).unwrap();
        assert!(succeeds("mount", &[arguments, &[at.to_str().unwrap()]].concat()));
        Self(at.to_owned())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::DETACH);
    }
}

/// An image of a file system of its own.
fn image(place: &PoolFolder, make: &[&str], bytes: u64) -> PathBuf {
    let image = place.folder.path().join("image");
    File::create(&image).unwrap().set_len(bytes).unwrap();
    assert!(succeeds(make[0], &[&make[1..], &[image.to_str().unwrap()]].concat()));
    image
}

/// The pool's disk says that it is larger than it is, as a bad stick does, and what it cannot take fails after the write. Unmounted from the
/// first to the last.
fn lying_disk(place: &PoolFolder) -> [Disk; 2] {
    let small = place.folder.path().join("small");
    let below = Disk::mount(&["-t", "tmpfs", "-o", "size=6M", "minerva-test"], &small);
    let image = small.join("image");
    File::create(&image).unwrap().set_len(256 << 20).unwrap();
    let image = image.to_str().unwrap();
    let options = ["-q", "-F", "-N", "512", "-O", "^has_journal", "-E", "lazy_itable_init=0,nodiscard", image];
    assert!(succeeds("mkfs.ext4", &options));
    [Disk::mount(&["-o", "loop", image], &place.pool()), below]
}

#[test]
fn a_pool_whose_disk_is_absent_is_not_served_from_the_directory_below() {
    let place = PoolFolder::new("");
    let below = place.folder.path().join("disk");
    fs::create_dir(&below).unwrap();
    let bind = ["--bind", below.to_str().unwrap()];
    let disk = Disk::mount(&bind, &place.pool());
    let service = place.serve();
    fs::write(place.stable().join("file"), "kept").unwrap();
    assert!(service.terminate());
    drop(disk);
    for arguments in [&[][..], &["--check"], &["doctor"]] {
        let output = place.run(arguments);
        let said = said(&output);
        assert!(!output.status.success());
        let pool = place.pool();
        let told = format!("{} is not the pool that was served here before", pool.display());
        assert!(said.contains(&told) && said.contains("is its disk mounted? Mount it (`findmnt --target"), "{said}");
        assert_eq!(fs::read_dir(&pool).unwrap().count(), 0, "nothing was made there");
        assert!(!is_mounted(&place.stable()) && !is_mounted(&place.temporary()));
    }
    let _disk = Disk::mount(&bind, &place.pool());
    let _service = place.serve();
    assert_eq!(fs::read(place.stable().join("file")).unwrap(), b"kept");
}

#[test]
fn a_new_disk_is_taken_for_the_pool_once_the_operator_has_removed_the_record_of_the_old() {
    let place = PoolFolder::new("");
    assert!(place.serve().terminate());
    fs::rename(place.pool(), place.folder.path().join("old")).unwrap();
    let output = place.run(&[]);
    let record = place.folder.path().join("mount/.pool");
    let told = format!("remove {}", record.display());
    assert!(!output.status.success() && said(&output).contains(&told), "{}", said(&output));
    assert!(!place.pool().exists(), "it is not made either");
    fs::remove_file(record).unwrap();
    assert!(place.serve().terminate());
    assert!(place.serve().terminate(), "and is known from then on");
}

#[test]
fn what_the_pools_disk_fails_to_take_stays_in_memory() {
    let place = PoolFolder::with("temporary = \"16MiB\"", "[pools.temporary]\nwatermark = 10\nspill_to = 5");
    let _disk = lying_disk(&place);
    let log = place.folder.path().join("log");
    let _service = place.wait_with_log(place.command(), &log);
    let data: Vec<u8> = (0..12 * MIB).map(|at| (at % 251) as u8).collect();
    fs::write(place.temporary().join("file"), &data).unwrap();
    let told =
        || fs::read_to_string(&log).unwrap().contains("while moving files from memory to disk; they stay in memory");
    place.until("it fails", |_| told());
    assert_eq!(place.status().temporary.spilled_files, 0);
    assert!(fs::read(place.temporary().join("file")).unwrap() == data);
}

#[test]
fn what_the_pools_disk_failed_is_told_to_each_who_has_the_file_open() {
    let place = PoolFolder::new("");
    let _disk = lying_disk(&place);
    let _service = place.serve();
    let path = place.stable().join("file");
    let mut writers = [(); 3].map(|()| File::options().create(true).truncate(false).write(true).open(&path).unwrap());
    writers[0].write_all(&vec![1; 12 * MIB]).unwrap();
    let synced = (0..10).map(|_| writers[1].sync_all()).collect::<Vec<_>>();
    assert!(
        synced[0].is_err() && synced[9].is_ok(),
        "the kernel tells it once, and drops what it could not write: {synced:?}"
    );
    let [writer, syncer, other] = writers;
    assert!(other.sync_all().is_err() && other.sync_all().is_ok(), "it too is told once");
    assert!(nix::unistd::close(writer).is_err(), "whose data they were");
    assert!(nix::unistd::close(syncer).is_ok(), "it was told before");
}

#[test]
fn a_write_that_is_to_be_on_the_disk_fails_where_the_disk_does() {
    let place = PoolFolder::new("");
    let _disk = lying_disk(&place);
    let _service = place.serve();
    let file =
        File::options().create_new(true).write(true).custom_flags(libc::O_DSYNC).open(place.stable().join("file"));
    let file = file.unwrap();
    let data = vec![1; MIB];
    let written: Vec<_> = (0..12).map(|piece| file.write_at(&data, piece * MIB as u64)).collect();
    assert!(written[0].is_ok() && written.iter().any(Result::is_err), "{written:?}");
}

#[test]
fn files_that_nobody_has_open_are_read_from_a_disk_that_takes_no_writes_any_more() {
    const BYTES: usize = 4 * MIB;
    let place = PoolFolder::with("temporary = \"8MiB\"", "[pools.temporary]\nwatermark = 10\nspill_to = 5");
    // Of the pool only the files lie there, so that nothing of the service's own is open for writing.
    let at = place.folder.path().join("disk");
    let image = image(&place, &["mkfs.ext4", "-q", "-F"], 256 << 20);
    let disk = Disk::mount(&["-o", "loop", image.to_str().unwrap()], &at);
    let _binds = ["tenants", "spilled"].map(|kind| {
        let from = at.join(kind);
        fs::create_dir(&from).unwrap();
        Disk::mount(&["--bind", from.to_str().unwrap()], &place.pool().join(kind).join("web"))
    });
    let service = place.serve();
    fs::write(place.stable().join("file"), vec![1; BYTES]).unwrap();
    fs::write(place.temporary().join("spilled"), vec![2; BYTES]).unwrap();
    place.until("it went to the disk", |status| status.temporary.spilled_files == 1);
    assert!(service.terminate());
    // Nobody has asked the next one for any of them.
    let service = place.serve();
    let again = |how: &str| succeeds("mount", &["-o", how, disk.0.to_str().unwrap()]);
    assert!(again("remount,ro"), "something is open for writing");
    let mut readers = Vec::new();
    for (path, byte) in [(place.stable().join("file"), 1), (place.temporary().join("spilled"), 2)] {
        let mut back = Vec::new();
        let mut reader = File::open(&path).unwrap();
        reader.read_to_end(&mut back).unwrap();
        assert!(back == vec![byte; BYTES], "{}", path.display());
        for options in [File::options().write(true), File::options().read(true).append(true)] {
            assert_eq!(options.open(&path).unwrap_err().raw_os_error(), Some(libc::EROFS));
        }
        readers.push((path, reader));
    }
    assert!(again("remount,rw"));
    for (path, reader) in readers {
        File::options().write(true).open(&path).unwrap().write_all_at(b"new", 0).unwrap();
        let mut byte = [0; 3];
        reader.read_exact_at(&mut byte, 0).unwrap();
        assert_eq!(&byte, b"new", "{}", path.display());
    }
    assert!(service.terminate());
}

#[test]
fn room_that_xfs_gives_in_advance_is_off_the_account_once_xfs_has_it_back() {
    let kinds = fs::read_to_string("/proc/filesystems").unwrap();
    if !kinds.lines().any(|kind| kind.trim() == "xfs") {
        println!("skipped: needs XFS in the kernel");
        return;
    }
    let place = PoolFolder::new("");
    let image = image(&place, &["mkfs.xfs", "-q", "-f"], 512 << 20);
    let _disk = Disk::mount(&["-o", "loop", image.to_str().unwrap()], &place.pool());
    let _service = place.serve();
    let mut bytes = 0;
    let mut write = || {
        let path = place.stable().join("file");
        let mut file = File::options().create(true).append(true).open(path).unwrap();
        (0..20).for_each(|_| file.write_all(&vec![1; MIB]).unwrap());
        bytes += 20 * MIB as u64;
        assert!(place.status().stable.bytes > bytes, "while it is open it has more than is in it");
        bytes
    };
    let bytes = write();
    place.until("it has what is in it", |status| status.stable.bytes == bytes);
    let bytes = write();
    // What was written before keeps it for some minutes, or until somebody asks for it.
    std::thread::sleep(std::time::Duration::from_millis(2500));
    assert!(place.status().stable.bytes > bytes);
    let take_back = || assert!(succeeds("xfs_spaceman", &["-c", "prealloc -s", place.pool().to_str().unwrap()]));
    take_back();
    place.until("it has what is in it again", |status| status.stable.bytes == bytes);
    // Nor does somebody who reads all the while keep it on the account.
    let _reader = File::open(place.stable().join("file")).unwrap();
    let bytes = write();
    take_back();
    place.until("it has what is in it while it is read", |status| status.stable.bytes == bytes);
}

#[test]
fn a_pools_disk_that_turns_read_only_refuses_writes_and_loses_nothing_that_was_synced() {
    let place = PoolFolder::with("temporary = \"10MiB\"", "[pools.temporary]\nwatermark = 75\nspill_to = 10");
    let image = image(&place, &["mkfs.ext4", "-q", "-F"], 256 << 20);
    let image = image.to_str().unwrap();
    let options = ["-o", "loop,errors=remount-ro", image];
    let disk = Disk::mount(&options, &place.pool());
    let service = place.serve();
    fs::write(place.stable().join("synced"), vec![1; MIB]).unwrap();
    let open = File::options().read(true).write(true).open(place.stable().join("synced")).unwrap();
    let source = Command::new("findmnt").args(["-n", "-o", "SOURCE"]).arg(place.pool()).output().unwrap();
    let device = PathBuf::from(String::from_utf8(source.stdout).unwrap().trim());
    let trigger = Path::new("/sys/fs/ext4").join(device.file_name().unwrap()).join("trigger_fs_error");
    // The file system meets an error, and goes on by its option.
    fs::write(&trigger, "a test").unwrap();
    let refused = fs::write(place.stable().join("new"), "text").unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EROFS), "{refused}");
    assert!(open.write_all_at(b"text", 0).is_err());
    assert!(fs::remove_file(place.stable().join("synced")).is_err());
    let mut back = Vec::new();
    File::open(place.stable().join("synced")).unwrap().read_to_end(&mut back).unwrap();
    assert!(back == vec![1; MIB], "it can still be read");
    // Memory is served as before, and nothing leaves it.
    for number in 0..9 {
        fs::write(place.temporary().join(number.to_string()), vec![number; MIB]).unwrap();
    }
    std::thread::sleep(std::time::Duration::from_millis(2500));
    assert_eq!(place.status().temporary.spilled_files, 0);
    for number in 0..9 {
        assert!(fs::read(place.temporary().join(number.to_string())).unwrap() == vec![number; MIB], "{number}");
    }
    drop(open);
    assert!(service.terminate(), "it ends in an orderly way");
    // A start on it says what is the matter.
    let output = place.run(&[]);
    let told = said(&output);
    assert!(!output.status.success() && told.contains("Read-only file system"), "{told}");
    drop(disk);
    // Repaired, it is as it was: 1 and 2 mean that errors were corrected.
    let repaired = Command::new("e2fsck").args(["-fy", image]).output().unwrap();
    assert!(repaired.status.code().is_some_and(|code| code < 4), "{}", said(&repaired));
    let _disk = Disk::mount(&options, &place.pool());
    let _service = place.serve();
    assert!(fs::read(place.stable().join("synced")).unwrap() == vec![1; MIB]);
    for number in 0..9 {
        assert!(fs::read(place.temporary().join(number.to_string())).unwrap() == vec![number; MIB], "{number}");
    }
    File::create(place.stable().join("new")).unwrap().write_all(b"text").unwrap();
}
