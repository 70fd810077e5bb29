//! Operation by operation, as docs/cache-semantics.md promises them, on both trees.

use crate::pool_folder::{PoolFolder, TENANT};
use rustix::fs::{
    AtFlags, CWD, FallocateFlags, FlockOperation, Mode, OFlags, RenameFlags, SeekFrom, Timespec, Timestamps,
    XattrFlags, fallocate, flock, fsync, ftruncate, getxattr, linkat, listxattr, mknodat, open, openat, removexattr,
    renameat_with, seek, setxattr, statvfs, symlinkat, utimensat,
};
use rustix::io::{Errno, pread, pwrite};
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The service with both trees mounted, and what is promised of each, also of memory that the kernel writes by itself.
pub(crate) fn on_both(work: impl Fn(&Path)) {
    let place = PoolFolder::new("");
    let service = place.serve();
    for tree in [place.temporary(), place.stable()] {
        work(&tree);
    }
    assert!(service.terminate());
    let by_kernel = PoolFolder::new("writes = \"kernel\"");
    let service = by_kernel.serve();
    work(&by_kernel.temporary());
    assert!(service.terminate());
}

#[test]
fn data_come_back_through_the_kernel_and_through_the_service() {
    on_both(|tree| {
        let path = tree.join("file");
        let data: Vec<u8> = (0..3_000_000_u32).map(|number| (number % 251) as u8).collect();
        fs::write(&path, &data).unwrap();
        assert_eq!(fs::read(&path).unwrap(), data);
        let mut both = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        both.write_all_at(b"middle", 1_000_000).unwrap();
        let mut part = [0; 6];
        both.read_exact_at(&mut part, 1_000_000).unwrap();
        assert_eq!(&part, b"middle");
        assert_eq!(fs::read(&path).unwrap()[1_000_000..1_000_006], *b"middle", "who reads meanwhile sees it");
        both.rewind().unwrap();
        both.set_len(3).unwrap();
        let mut rest = Vec::new();
        both.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, data[..3]);
    });
}

#[test]
fn files_that_nobody_writes_are_read_by_the_kernel() {
    let place = PoolFolder::new("");
    let _service = place.serve();
    let status = place.status();
    if !status.temporary.has_passthrough {
        println!("skipped: this kernel has no FUSE passthrough");
        return;
    }
    for tree in [place.temporary(), place.stable()] {
        fs::write(tree.join("file"), vec![7; 1 << 20]).unwrap();
        assert_eq!(fs::read(tree.join("file")).unwrap(), vec![7; 1 << 20]);
    }
    let status = place.status();
    assert_eq!((status.temporary.bytes_read, status.stable.bytes_read), (0, 0), "nothing came through the service");
    assert_eq!(status.temporary.bytes_written, 1 << 20);
}

#[test]
fn a_rename_replaces_refuses_or_exchanges() {
    on_both(|tree| {
        let (old, new) = (tree.join("old"), tree.join("new"));
        let rename = |flags| renameat_with(CWD, &old, CWD, &new, flags);
        fs::write(&old, "old").unwrap();
        fs::write(&new, "new").unwrap();
        let before = File::open(&new).unwrap();
        assert_eq!(rename(RenameFlags::NOREPLACE), Err(Errno::EXIST));
        rename(RenameFlags::EXCHANGE).unwrap();
        assert_eq!((fs::read(&old).unwrap(), fs::read(&new).unwrap()), (b"new".to_vec(), b"old".to_vec()));
        rename(RenameFlags::EXCHANGE).unwrap();
        fs::rename(&old, &new).unwrap();
        assert_eq!(fs::read(&new).unwrap(), b"old");
        assert!(!old.exists());
        let mut text = String::new();
        (&before).read_to_string(&mut text).unwrap();
        assert_eq!(text, "new", "who had the replaced file open keeps it");
        fs::create_dir_all(tree.join("full/below")).unwrap();
        fs::create_dir(tree.join("empty")).unwrap();
        fs::rename(tree.join("empty"), tree.join("full")).unwrap_err();
        fs::rename(tree.join("full"), tree.join("empty")).unwrap();
        assert!(tree.join("empty/below").is_dir());
    });
}

#[test]
fn a_file_that_is_open_outlives_its_last_name() {
    on_both(|tree| {
        let path = tree.join("gone");
        let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        file.write_all(&[5; 100_000]).unwrap();
        file.rewind().unwrap();
        let mut data = Vec::new();
        file.read_to_end(&mut data).unwrap();
        assert_eq!(data, [5; 100_000]);
        assert_eq!(file.metadata().unwrap().nlink(), 0);
        assert!(!path.exists());
    });
}

#[test]
fn hard_links_are_one_file_and_symbolic_links_say_where_they_lead() {
    on_both(|tree| {
        fs::write(tree.join("first"), "1").unwrap();
        fs::create_dir(tree.join("folder")).unwrap();
        fs::hard_link(tree.join("first"), tree.join("folder/second")).unwrap();
        fs::write(tree.join("folder/second"), "both").unwrap();
        assert_eq!(fs::read(tree.join("first")).unwrap(), b"both");
        let (first, second) =
            (fs::metadata(tree.join("first")).unwrap(), fs::metadata(tree.join("folder/second")).unwrap());
        assert_eq!((first.ino(), first.nlink()), (second.ino(), 2));
        fs::remove_file(tree.join("first")).unwrap();
        assert_eq!(fs::metadata(tree.join("folder/second")).unwrap().nlink(), 1);
        symlinkat("folder/second", CWD, tree.join("link")).unwrap();
        assert_eq!(fs::read_link(tree.join("link")).unwrap(), PathBuf::from("folder/second"));
        assert_eq!(fs::read(tree.join("link")).unwrap(), b"both");
        let outside = tree.parent().unwrap().join("outside");
        assert_eq!(fs::hard_link(tree.join("folder/second"), outside).unwrap_err().raw_os_error(), Some(libc::EXDEV));
    });
}

#[test]
fn appends_of_several_go_to_the_end() {
    on_both(|tree| {
        let path = tree.join("log");
        std::thread::scope(|scope| {
            for writer in 0..4_u8 {
                let path = &path;
                scope.spawn(move || {
                    let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
                    for _ in 0..200 {
                        file.write_all(&[b'a' + writer; 100]).unwrap();
                    }
                });
            }
        });
        let data = fs::read(&path).unwrap();
        assert_eq!(data.len(), 4 * 200 * 100);
        assert!(data.chunks(100).all(|record| record.iter().all(|byte| *byte == record[0])), "a record was torn");
    });
}

#[test]
fn locks_keep_others_out() {
    on_both(|tree| {
        let path = tree.join("locked");
        let first = File::create(&path).unwrap();
        let second = File::open(&path).unwrap();
        flock(&first, FlockOperation::LockExclusive).unwrap();
        assert_eq!(flock(&second, FlockOperation::NonBlockingLockShared), Err(Errno::AGAIN));
        flock(&first, FlockOperation::Unlock).unwrap();
        flock(&second, FlockOperation::NonBlockingLockShared).unwrap();
        assert!(sqlite_like_lock(&first), "ranges too");
    });
}

/// A lock of a range, as databases take it, of an open file.
fn sqlite_like_lock(file: &File) -> bool {
    rustix::fs::fcntl_lock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

#[test]
fn holes_stay_holes_and_can_be_made() {
    on_both(|tree| {
        let file =
            File::options().read(true).write(true).create(true).truncate(false).open(tree.join("sparse")).unwrap();
        ftruncate(&file, 4 << 20).unwrap();
        pwrite(&file, &[1; 4096], 1 << 20).unwrap();
        assert_eq!(seek(&file, SeekFrom::Data(0)).unwrap(), 1 << 20);
        assert_eq!(seek(&file, SeekFrom::Hole(1 << 20)).unwrap(), (1 << 20) + 4096);
        assert!(file.metadata().unwrap().blocks() * 512 < 1 << 20);
        fallocate(&file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 1 << 20, 4096).unwrap();
        assert_eq!(seek(&file, SeekFrom::Data(0)), Err(Errno::NXIO));
        fallocate(&file, FallocateFlags::empty(), 0, 8 << 20).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 8 << 20);
        assert!(file.metadata().unwrap().blocks() * 512 >= 8 << 20);
        let mut byte = [1];
        pread(&file, &mut byte, 5 << 20).unwrap();
        assert_eq!(byte, [0]);
    });
}

#[test]
fn times_are_set_to_the_nanosecond() {
    on_both(|tree| {
        let path = tree.join("times");
        fs::write(&path, "").unwrap();
        let times = Timestamps {
            last_access: Timespec { tv_sec: 1_000_000_000, tv_nsec: 123_456_789 },
            last_modification: Timespec { tv_sec: 1, tv_nsec: 999_999_999 },
        };
        utimensat(CWD, &path, &times, AtFlags::empty()).unwrap();
        let shown = fs::metadata(&path).unwrap();
        assert_eq!((shown.atime(), shown.atime_nsec()), (1_000_000_000, 123_456_789));
        assert_eq!((shown.mtime(), shown.mtime_nsec()), (1, 999_999_999));
        fs::write(&path, "later").unwrap();
        assert!(fs::metadata(&path).unwrap().mtime() > 1_000_000_000, "a write sets the time");
    });
}

#[test]
fn names_of_255_bytes_that_are_not_utf_8_are_names() {
    on_both(|tree| {
        let bytes: Vec<u8> = (0..255).map(|number| 128 + (number % 100) as u8).collect();
        let name = OsStr::from_bytes(&bytes);
        fs::write(tree.join(name), "long").unwrap();
        assert_eq!(fs::read(tree.join(name)).unwrap(), b"long");
        let listed: Vec<_> = fs::read_dir(tree).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(listed.iter().any(|listed| listed == name));
        let longer = OsStr::from_bytes(&[b'n'; 256]);
        assert_eq!(fs::write(tree.join(longer), "").unwrap_err().raw_os_error(), Some(libc::ENAMETOOLONG));
    });
}

#[test]
fn a_directory_of_thousands_is_listed_whole_and_emptied_while_it_is_read() {
    on_both(|tree| {
        let folder = tree.join("many");
        fs::create_dir(&folder).unwrap();
        for number in 0..3000 {
            fs::write(folder.join(format!("file-{number}")), "").unwrap();
        }
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 3000);
        fs::remove_dir_all(&folder).unwrap();
        assert!(!folder.exists());
    });
}

#[test]
fn pipes_and_sockets_are_made() {
    on_both(|tree| {
        mknodat(CWD, tree.join("pipe"), rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert!(fs::metadata(tree.join("pipe")).unwrap().file_type().is_fifo());
        let socket = std::os::unix::net::UnixListener::bind(tree.join("socket")).unwrap();
        std::os::unix::net::UnixStream::connect(tree.join("socket")).unwrap();
        drop(socket);
    });
}

#[test]
fn a_file_without_a_name_is_refused_so_that_programs_do_without() {
    on_both(|tree| {
        let made = open(tree, OFlags::TMPFILE | OFlags::RDWR, Mode::RUSR);
        assert_eq!(made.map(drop), Err(Errno::OPNOTSUPP));
    });
}

#[test]
fn extended_attributes_are_kept_in_stable_and_given_up_in_temporary() {
    let place = PoolFolder::new("");
    let _service = place.serve();
    let (kept, given_up) = (place.stable().join("file"), place.temporary().join("file"));
    fs::write(&kept, "").unwrap();
    fs::write(&given_up, "").unwrap();
    setxattr(&kept, "user.color", b"blue", XattrFlags::CREATE).unwrap();
    assert_eq!(setxattr(&kept, "user.color", b"red", XattrFlags::CREATE), Err(Errno::EXIST));
    let mut value = [0; 16];
    let length = getxattr(&kept, "user.color", &mut value[..]).unwrap();
    assert_eq!(&value[..length], b"blue");
    let length = listxattr(&kept, &mut value[..]).unwrap();
    assert_eq!(&value[..length], b"user.color\0");
    assert_eq!(getxattr(&kept, "user.color", &mut value[..2]), Err(Errno::RANGE));
    removexattr(&kept, "user.color").unwrap();
    assert_eq!(getxattr(&kept, "user.color", &mut value[..]), Err(Errno::NODATA));
    assert_eq!(setxattr(&given_up, "user.color", b"blue", XattrFlags::empty()), Err(Errno::OPNOTSUPP));
}

#[test]
fn sync_reaches_the_file_below_and_its_directory() {
    on_both(|tree| {
        let file = File::create(tree.join("synced")).unwrap();
        (&file).write_all(b"synced").unwrap();
        file.sync_all().unwrap();
        file.sync_data().unwrap();
        fsync(openat(CWD, tree, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap()).unwrap();
    });
}

#[test]
fn copies_within_the_tree_are_whole() {
    on_both(|tree| {
        let data: Vec<u8> = (0..5_000_000_u32).map(|number| (number % 241) as u8).collect();
        fs::write(tree.join("from"), &data).unwrap();
        fs::copy(tree.join("from"), tree.join("to")).unwrap();
        assert!(fs::read(tree.join("to")).unwrap() == data);
        linkat(CWD, tree.join("to"), CWD, tree.join("link"), AtFlags::empty()).unwrap();
        assert!(fs::read(tree.join("link")).unwrap() == data);
    });
}

#[test]
fn the_room_that_is_shown_is_the_quota() {
    let place = PoolFolder::new("temporary = \"64MiB\"\ntemporary_files = 50\nstable = \"32MiB\"\nstable_files = 40");
    let _service = place.serve();
    for (tree, bytes, files) in [(place.temporary(), 64 << 20, 50), (place.stable(), 32 << 20, 40)] {
        let shown = statvfs(&tree).unwrap();
        assert_eq!((shown.f_blocks * shown.f_frsize, shown.f_files), (bytes, files));
        assert_eq!(shown.f_namemax, 255);
        fs::write(tree.join("file"), vec![0; 4 << 20]).unwrap();
        place.until("the room shrinks", |_| {
            let now = statvfs(&tree).unwrap();
            now.f_bavail * now.f_frsize == bytes - (4 << 20) && now.f_ffree == files - 1
        });
    }
    assert_eq!(TENANT, place.status().name);
}

#[test]
fn programs_of_every_day_work() {
    on_both(|tree| {
        let run = |line: &str| {
            let output = std::process::Command::new("sh").args(["-ec", line]).current_dir(tree).output().unwrap();
            assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        };
        run(
            "cp /bin/ls program && chmod 755 program && ./program >/dev/null && mv program other && ./other >/dev/null",
        );
        run(
            "seq 1 10000 > numbers && sort -rn -T . numbers | head -1 | grep -qx 10000 && tar cf a.tar numbers && tar tf a.tar",
        );
        for (program, line) in [
            (
                "git",
                "git init -q g && cd g && git config user.email a@b && git config user.name c && echo 1 > f && git add f && \
                     git commit -qm one && git clone -q . ../clone && git fsck --strict",
            ),
            (
                "sqlite3",
                "sqlite3 d.db 'pragma journal_mode=wal; create table t(a); insert into t values(1); select * from t' && \
                         sqlite3 d.db 'pragma integrity_check' | grep -qx ok",
            ),
            (
                "python3",
                "python3 -c \"import mmap,os;f=open('m','w+b');f.truncate(8192);m=mmap.mmap(f.fileno(),8192);m[4096]=7;m.flush()\"",
            ),
            (
                "cc",
                "printf 'int two(void);\\nint main(void) { return two() - 2; }\\n' > m.c && printf 'int two(void) { return 2; }\\n' > t.c && \
                     cc -g -c m.c t.c && ar rcs l.a t.o && cc -o c m.o l.a && ./c && cc -g -o c m.c t.c && ./c",
            ),
            (
                "rustc",
                "echo 'fn main() { print!(\"built\") }' > m.rs && rustc -C incremental=kept -o r m.rs && ./r | grep -qx built",
            ),
        ] {
            if std::process::Command::new(program).arg("--version").output().is_ok() {
                run(line);
            } else {
                println!("skipped: {program} is not installed");
            }
        }
        assert!(fs::metadata(tree.join("other")).unwrap().permissions().mode() & 0o777 == 0o755);
    });
}
