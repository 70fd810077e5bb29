//! Quotas: bytes and files, to the block, and what a walk finds is what was counted.

use crate::pool_folder::PoolFolder;
use minerva_api::cache::{Answer, Request, ask};
use rustix::fs::{FallocateFlags, XattrFlags, fallocate, removexattr, setxattr};
use rustix::io::{Errno, pwrite};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::Command;

const MIB: usize = 1 << 20;

fn place() -> PoolFolder {
    PoolFolder::new("temporary = \"8MiB\"\ntemporary_files = 20\nstable = \"8MiB\"\nstable_files = 20")
}

fn errno(error: &std::io::Error) -> Option<i32> {
    error.raw_os_error()
}

/// Bytes that all files below occupy.
fn occupied(tree: &Path) -> u64 {
    let blocks = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().metadata().unwrap().blocks();
    fs::read_dir(tree).unwrap().map(blocks).sum::<u64>() * 512
}

#[test]
fn bytes_end_at_the_quota_and_begin_again_when_something_goes() {
    let place = place();
    let _service = place.serve();
    for tree in [place.temporary(), place.stable()] {
        fs::write(tree.join("first"), vec![1; 6 * MIB]).unwrap();
        let second = File::create(tree.join("second")).unwrap();
        let mut written = 0;
        let error = loop {
            match second.write_at(&vec![2; MIB], written) {
                Ok(more) => written += more as u64,
                Err(error) => break error,
            }
        };
        assert_eq!((errno(&error), written), (Some(libc::ENOSPC), 2 * MIB as u64));
        assert_eq!(occupied(&tree), 8 * MIB as u64);
        second.write_all_at(b"over what is there", 0).unwrap();
        assert_eq!(fallocate(&second, FallocateFlags::empty(), 3 * MIB as u64, 1), Err(Errno::NOSPC));
        assert_eq!(pwrite(&second, b"x", 100 * MIB as u64), Err(Errno::NOSPC));
        fs::remove_file(tree.join("first")).unwrap();
        second.write_all_at(&vec![3; 4 * MIB], 2 * MIB as u64).unwrap();
        second.set_len(0).unwrap();
        second.write_all_at(&vec![4; 8 * MIB], 0).unwrap();
        drop(second);
        fs::remove_file(tree.join("second")).unwrap();
        fs::write(tree.join("third"), vec![1; 8 * MIB]).unwrap();
    }
}

#[test]
fn writes_at_the_quota_have_the_room_that_was_reserved_for_them() {
    let place = place();
    let _service = place.serve();
    for tree in [place.temporary(), place.stable()] {
        let file = File::options().read(true).write(true).create_new(true).open(tree.join("reserved")).unwrap();
        fallocate(&file, FallocateFlags::KEEP_SIZE, 0, 4 * MIB as u64).unwrap();
        fs::write(tree.join("rest"), vec![1; 4 * MIB]).unwrap();
        assert_eq!(pwrite(File::create(tree.join("none")).unwrap(), b"x", 0), Err(Errno::NOSPC));
        file.write_all_at(b"first", MIB as u64).unwrap();
        // Also after it was closed and opened again.
        drop(file);
        let file = File::options().write(true).open(tree.join("reserved")).unwrap();
        fallocate(&file, FallocateFlags::empty(), 0, 4 * MIB as u64).unwrap();
        // One that goes beyond ends where the room does.
        let end = 4 * MIB as u64;
        assert_eq!(pwrite(&file, &[2; 8192], end - 4096), Ok(4096));
        assert_eq!(pwrite(&file, &[2; 8192], end), Err(Errno::NOSPC));
        file.write_all_at(&vec![3; 4 * MIB], 0).unwrap();
        // A block beyond it is for a disk to find what was written in pieces.
        let occupied = occupied(&tree);
        assert!((8 * MIB as u64..=8 * MIB as u64 + 4096).contains(&occupied), "{occupied}");
        // A hole is no longer reserved.
        fallocate(&file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 0, MIB as u64).unwrap();
        assert!(fs::write(tree.join("none"), vec![1; 2 * MIB]).is_err());
        assert_eq!(pwrite(&file, b"x", 0), Err(Errno::NOSPC));
    }
}

#[test]
fn writers_at_the_limit_do_not_pass_it_together() {
    let place = place();
    let _service = place.serve();
    for tree in [place.temporary(), place.stable()] {
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let tree = &tree;
                scope.spawn(move || {
                    let file = File::create(tree.join(writer.to_string())).unwrap();
                    let mut at = 0;
                    while let Ok(more) = file.write_at(&[7; 50_000], at) {
                        at += more as u64;
                    }
                });
            }
        });
        let occupied = occupied(&tree);
        assert!(occupied <= 8 * MIB as u64 && occupied > 7 * MIB as u64, "{occupied}");
    }
}

#[test]
fn files_end_at_the_quota_too_and_a_link_is_no_file() {
    let place = place();
    let _service = place.serve();
    for tree in [place.temporary(), place.stable()] {
        for number in 0..18 {
            File::create(tree.join(number.to_string())).unwrap();
        }
        fs::create_dir(tree.join("folder")).unwrap();
        fs::hard_link(tree.join("0"), tree.join("folder/link")).unwrap();
        std::os::unix::fs::symlink("0", tree.join("symbolic")).unwrap();
        assert_eq!(errno(&File::create(tree.join("more")).unwrap_err()), Some(libc::ENOSPC));
        assert_eq!(errno(&fs::create_dir(tree.join("more")).unwrap_err()), Some(libc::ENOSPC));
        assert!(!tree.join("more").exists());
        fs::remove_file(tree.join("0")).unwrap();
        File::create(tree.join("more")).unwrap_err();
        fs::remove_file(tree.join("folder/link")).unwrap();
        File::create(tree.join("more")).unwrap();
        fs::remove_dir(tree.join("folder")).unwrap();
        fs::create_dir(tree.join("again")).unwrap();
        fs::rename(tree.join("1"), tree.join("2")).unwrap();
        File::create(tree.join("in the place of 1")).unwrap();
    }
}

#[test]
fn a_removed_file_is_counted_until_its_last_user_closes_it() {
    let place = place();
    let _service = place.serve();
    for tree in [place.temporary(), place.stable()] {
        let file = File::create(tree.join("file")).unwrap();
        file.write_all_at(&vec![1; 8 * MIB], 0).unwrap();
        fs::remove_file(tree.join("file")).unwrap();
        assert_eq!(errno(&fs::write(tree.join("other"), [1]).unwrap_err()), Some(libc::ENOSPC));
        drop(file);
        place.until("the room is free", |_| fs::write(tree.join("other"), vec![1; 8 * MIB]).is_ok());
    }
}

#[test]
fn what_was_counted_is_what_a_walk_finds() {
    let place = PoolFolder::new("");
    let service = place.serve();
    let random = &mut fastrand::Rng::with_seed(7);
    for tree in [place.temporary(), place.stable()] {
        for number in 0..60 {
            let path = tree.join(random.u8(..20).to_string());
            match random.u8(..6) {
                0 => drop(fs::remove_file(&path)),
                1 => drop(fs::rename(&path, tree.join(random.u8(..20).to_string()))),
                2 => drop(fs::hard_link(&path, tree.join(format!("link{number}")))),
                3 => drop(File::create(&path).and_then(|file| file.set_len(random.u64(..1 << 20)))),
                _ => fs::write(&path, vec![1; random.usize(..300_000)]).unwrap(),
            }
        }
    }
    let before = place.status();
    assert!(service.terminate());
    let _service = place.serve();
    let after = place.status();
    for (before, after) in [(before.temporary, after.temporary), (before.stable, after.stable)] {
        assert_eq!((before.bytes, before.files), (after.bytes, after.files));
        assert!(after.bytes > 0);
    }
}

#[test]
fn a_quota_below_what_is_used_refuses_more_and_loses_nothing() {
    let place = PoolFolder::new("");
    let service = place.serve();
    for tree in [place.temporary(), place.stable()] {
        fs::write(tree.join("file"), vec![1; 4 * MIB]).unwrap();
    }
    assert!(service.terminate());
    place.write("temporary = \"1MiB\"\nstable = \"1MiB\"", "");
    let _service = place.serve();
    for tree in [place.temporary(), place.stable()] {
        assert_eq!(fs::read(tree.join("file")).unwrap().len(), 4 * MIB);
        assert_eq!(errno(&fs::write(tree.join("more"), [1]).unwrap_err()), Some(libc::ENOSPC));
        fs::remove_file(tree.join("file")).unwrap();
        fs::write(tree.join("more"), [1]).unwrap();
    }
}

#[test]
fn where_the_kernel_writes_by_itself_the_memorys_own_size_is_the_quota() {
    let settings = "temporary = \"8MiB\"\ntemporary_files = 20\nwrites = \"kernel\"";
    let nothing_spills = "[pools.temporary]\nwatermark = 100\nspill_to = 90";
    let place = PoolFolder::with(settings, nothing_spills);
    let service = place.serve();
    if !place.status().temporary.has_passthrough {
        println!("skipped: this kernel has no FUSE passthrough");
        return;
    }
    let tree = place.temporary();
    fs::write(tree.join("first"), vec![1; 6 * MIB]).unwrap();
    let second = File::create(tree.join("second")).unwrap();
    second.write_all_at(&vec![2; MIB], 0).unwrap();
    let while_open = place.status().temporary;
    assert_eq!(
        (while_open.bytes, while_open.bytes_written),
        (7 * MIB as u64, 0),
        "nothing passed the service, and all counts"
    );
    let mut written = MIB as u64;
    let error = loop {
        match second.write_at(&vec![2; MIB / 2], written) {
            Ok(more) => written += more as u64,
            Err(error) => break error,
        }
    };
    assert_eq!((errno(&error), written), (Some(libc::ENOSPC), 2 * MIB as u64));
    assert_eq!(occupied(&tree), 8 * MIB as u64);
    second.write_all_at(b"over what is there", 0).unwrap();
    assert_eq!(pwrite(&second, b"x", 100 * MIB as u64), Err(Errno::NOSPC));
    drop(second);
    place.until("it is counted when it is closed", |status| status.temporary.bytes == 8 * MIB as u64);
    fs::remove_file(tree.join("first")).unwrap();
    place.until("what is removed is free", |status| status.temporary.bytes == 2 * MIB as u64);
    fs::write(tree.join("third"), vec![3; 6 * MIB]).unwrap();
    assert!(service.terminate());
    let _service = place.serve();
    assert_eq!(place.status().temporary.bytes, 8 * MIB as u64, "a walk finds the same");
    assert_eq!(fs::read(tree.join("third")).unwrap(), vec![3; 6 * MIB]);
    place.write("temporary = \"16MiB\"\nwrites = \"service\"", nothing_spills);
    let Answer::Reloaded { changes } = ask(&place.socket(), &Request::Reload).unwrap() else { panic!("refused") };
    assert!(changes.iter().any(|change| change.starts_with("`tenants.web.writes` takes a restart")), "{changes:?}");
    fs::write(tree.join("fourth"), vec![4; 8 * MIB]).unwrap();
    let error = fs::write(tree.join("fifth"), "x").unwrap_err();
    assert_eq!(errno(&error), Some(libc::ENOSPC), "the new quota holds as the old one did");
}

#[test]
fn the_room_of_extended_attributes_is_counted_and_ends_at_the_quota() {
    let place = PoolFolder::new("stable = \"1MiB\"");
    let service = place.serve();
    let tree = place.stable();
    let mut error = None;
    let mut made = 0_u64;
    while error.is_none() && made < 1000 {
        let path = tree.join(made.to_string());
        File::create(&path).unwrap();
        error = setxattr(&path, "user.note", &[b'x'; 3000], XattrFlags::empty()).err();
        made += u64::from(error.is_none());
    }
    // The kernel remembers for a second what it was told of files.
    std::thread::sleep(std::time::Duration::from_millis(1200));
    if occupied(&tree) == 0 {
        println!("skipped: the file system below takes no block for an extended attribute");
        return;
    }
    assert_eq!((error, made), (Some(Errno::NOSPC), 256));
    let before = place.status().stable;
    assert_eq!(before.bytes, MIB as u64);
    removexattr(tree.join("0"), "user.note").unwrap();
    fs::write(tree.join("more"), vec![1; 4096]).unwrap();
    assert!(service.terminate());
    let _service = place.serve();
    assert_eq!(place.status().stable.bytes, before.bytes, "a walk finds the same");
    fs::remove_file(tree.join("1")).unwrap();
    assert_eq!(place.status().stable.bytes, before.bytes - 4096);
}

/// A disk of a pool's own, small; unmounted when dropped.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    fn mount(at: &Path, bytes: usize) -> Option<Self> {
        fs::create_dir_all(at).unwrap();
        let size = format!("size={bytes}");
        let done = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "minerva-test"]).arg(at).status();
        done.is_ok_and(|status| status.success()).then(|| Self(at.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::DETACH);
    }
}

/// Writes to a file until it is refused; bytes that were written.
fn fill(path: &Path) -> u64 {
    let file = File::create(path).unwrap();
    let mut at = 0;
    loop {
        match file.write_at(&vec![5; MIB], at) {
            Ok(more) => at += more as u64,
            Err(error) => {
                assert_eq!(errno(&error), Some(libc::ENOSPC));
                return at;
            }
        }
    }
}

#[test]
fn what_is_to_stay_free_of_the_pools_disk_does_whatever_tenants_write_or_name_there() {
    let reserve = 32 * MIB as u64;
    let settings = "temporary = \"8MiB\"\nwhen_full = \"spill\"\nstable = \"1GiB\"";
    let place = PoolFolder::new(settings);
    let folder = place.folder.path().join("fs.toml.d");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("reserve.toml"), "[pools.stable]\nreserve = \"32MiB\"\n").unwrap();
    let Some(_disk) = SmallDisk::mount(&place.pool(), 96 * MIB) else {
        println!("skipped: cannot mount a tmpfs");
        return;
    };
    let free = || {
        let below = rustix::fs::statvfs(place.pool()).unwrap();
        below.f_bavail * below.f_frsize
    };
    let _service = place.serve();
    for tree in [place.temporary(), place.stable()] {
        fs::create_dir(tree.join("folder")).unwrap();
        fs::write(tree.join("named"), "x").unwrap();
        let written = fill(&tree.join("large"));
        assert!(written > 40 * MIB as u64, "{written} bytes of {}", tree.display());
        assert!(free() + 64 * 1024 > reserve, "{} bytes are free", free());
        if tree == place.stable() {
            let full = Some(libc::ENOSPC);
            assert_eq!(errno(&fs::create_dir(tree.join("more")).unwrap_err()), full);
            assert_eq!(errno(&fs::hard_link(tree.join("named"), tree.join("link")).unwrap_err()), full);
            assert_eq!(errno(&std::os::unix::fs::symlink("named", tree.join("link")).unwrap_err()), full);
            assert_eq!(errno(&fs::rename(tree.join("named"), tree.join("folder/named")).unwrap_err()), full);
            fs::rename(tree.join("named"), tree.join("renamed")).unwrap();
            let file = fs::OpenOptions::new().write(true).open(tree.join("large")).unwrap();
            file.write_all_at(b"over what is there", 0).unwrap();
        }
        fs::remove_file(tree.join("large")).unwrap();
        place.until("what is removed is free", |_| free() > 60 * MIB as u64);
    }
    fs::write(place.stable().join("again"), vec![1; 8 * MIB]).unwrap();
}
