//! The pool's disk, when it is absent and when it fails.

use crate::pool_folder::{PoolFolder, is_mounted};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
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
    // It says that it is larger than it is, as a bad stick does, and what it cannot take fails after the write.
    let small = place.folder.path().join("small");
    let _small = Disk::mount(&["-t", "tmpfs", "-o", "size=6M", "minerva-test"], &small);
    let image = small.join("image");
    File::create(&image).unwrap().set_len(256 << 20).unwrap();
    let image = image.to_str().unwrap();
    let options = ["-q", "-F", "-N", "512", "-O", "^has_journal", "-E", "lazy_itable_init=0,nodiscard", image];
    assert!(succeeds("mkfs.ext4", &options));
    let _disk = Disk::mount(&["-o", "loop", image], &place.pool());
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
fn a_pools_disk_that_turns_read_only_refuses_writes_and_loses_nothing_that_was_synced() {
    let place = PoolFolder::with("temporary = \"10MiB\"", "[pools.temporary]\nwatermark = 75\nspill_to = 10");
    let image = place.folder.path().join("image");
    File::create(&image).unwrap().set_len(256 << 20).unwrap();
    let image = image.to_str().unwrap();
    assert!(succeeds("mkfs.ext4", &["-q", "-F", image]));
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
