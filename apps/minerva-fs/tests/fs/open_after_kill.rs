//! `kill -9`: what programs can still do with what they have open is what docs/cache-semantics.md says.

use crate::pool_folder::PoolFolder;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

fn refusal<T>(answer: io::Result<T>) -> Option<i32> {
    answer.err().and_then(|error| error.raw_os_error())
}

/// Closes a file; what that was refused with.
fn close(file: File) -> Option<i32> {
    refusal(nix::unistd::close(file).map_err(io::Error::from))
}

/// Whatever else than reading and writing is asked of a file that was open when the service was killed.
fn assert_not_connected(file: &File) {
    let again = format!("/proc/self/fd/{}", file.as_raw_fd());
    for (call, refusal) in [
        ("fsync", refusal(file.sync_all())),
        ("fstat", refusal(file.metadata())),
        ("open", refusal(File::open(again))),
        // The kernel asks the service at the close of each descriptor.
        ("close", close(file.try_clone().unwrap())),
    ] {
        assert_eq!(refusal, Some(libc::ENOTCONN), "{call}");
    }
}

#[test]
fn what_an_open_file_can_do_after_a_kill() {
    let place = PoolFolder::new("");
    let mut service = place.serve();
    if !place.status().stable.has_passthrough {
        println!("skipped: this kernel has no FUSE passthrough");
        return;
    }
    let files = [place.temporary(), place.stable()].map(|tree| {
        let path = tree.join("file");
        fs::write(&path, "before").unwrap();
        let writer = OpenOptions::new().write(true).open(&path).unwrap();
        (File::open(&path).unwrap(), writer, path)
    });
    let check = || {
        for (reader, writer, _) in &files {
            let mut data = [0; 6];
            reader.read_exact_at(&mut data, 0).unwrap();
            assert_eq!(&data, b"before", "the kernel goes on reading");
            assert_eq!(refusal(writer.write_at(b"after", 0)), Some(libc::ENOTCONN));
            assert_eq!(refusal(writer.set_len(1)), Some(libc::ENOTCONN));
            [reader, writer].into_iter().for_each(assert_not_connected);
        }
    };
    service.kill();
    check();
    assert!(files.iter().all(|(.., path)| refusal(File::open(path)) == Some(libc::ENOTCONN)));
    let _service = place.serve();
    // What was open before stays as it is: it belongs to the mount that is gone.
    check();
    for (reader, writer, path) in files {
        assert_eq!([reader, writer].map(close), [Some(libc::ENOTCONN); 2]);
        assert_eq!(fs::read(path).unwrap(), b"before");
    }
}

#[test]
fn where_the_kernel_writes_what_is_open_is_written_after_a_kill_until_it_is_closed() {
    let settings = "temporary = \"8MiB\"\nwrites = \"kernel\"";
    let place = PoolFolder::with(settings, "[pools.temporary]\nwatermark = 50\nspill_to = 0");
    let mut service = place.serve();
    if !place.status().temporary.has_passthrough {
        println!("skipped: this kernel has no FUSE passthrough");
        return;
    }
    let path = place.temporary().join("file");
    fs::write(&path, vec![b'x'; 1 << 20]).unwrap();
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    service.kill();
    file.write_all_at(b"killed", 0).unwrap();
    assert_not_connected(&file);
    let _service = place.serve();
    assert_eq!(fs::read(&path).unwrap()[..7], *b"killedx");
    file.write_all_at(b"served", 6).unwrap();
    // The other file goes to the disk; this one, which was used longer ago, stays where its writer has it.
    fs::write(place.temporary().join("other"), vec![1; 6 << 20]).unwrap();
    place.until("the other file spills", |status| status.temporary.spilled_files > 0);
    file.write_all_at(b"end", 1 << 20).unwrap();
    let data = fs::read(&path).unwrap();
    assert_eq!((&data[..13], &data[1 << 20..]), (&b"killedservedx"[..], &b"end"[..]));
    assert_eq!(close(file), Some(libc::ENOTCONN));
    assert_eq!(fs::read(&path).unwrap(), data);
}
