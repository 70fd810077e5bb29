//! Writes that are to be on the disk when they return. That they are is read off the syncs that the service counts.

use crate::metrics::{place, scrape, value};
use rustix::fs::{FallocateFlags, copy_file_range, fallocate, fsync, syncfs};
use rustix::io::{ReadWriteFlags, pwritev2};
use std::fs::{self, File};
use std::io::IoSlice;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A new file that is opened with further flags.
fn open(path: &Path, flags: i32) -> File {
    File::options().read(true).write(true).create_new(true).custom_flags(flags).open(path).unwrap()
}

/// Syncs of a pool so far.
fn syncs(socket: &PathBuf, pool: &str) -> u64 {
    let labels = format!("{{tenant=\"web\",pool=\"{pool}\",operation=\"sync\"}}");
    value(&scrape(socket), &format!("minerva_cache_request_seconds_count{labels}")) as u64
}

#[test]
fn a_write_that_is_to_be_on_the_disk_is_there_when_it_returns() {
    let (place, socket) = place("");
    let _service = place.serve();
    for (tree, pool, is_durable) in [(place.stable(), "stable", true), (place.temporary(), "temporary", false)] {
        let added = |what: &str, expected: u64, work: &dyn Fn()| {
            let before = syncs(&socket, pool);
            work();
            let expected = if is_durable { expected } else { 0 };
            assert_eq!(syncs(&socket, pool) - before, expected, "{pool}: {what}");
        };
        let plain = open(&tree.join("plain"), 0);
        let block = [7; 4096];
        let write = |file: &File, offset: u64| file.write_all_at(&block, offset).unwrap();
        added("plain writes", 0, &|| (0..3).for_each(|number| write(&plain, number * 4096)));
        let with = |flags| pwritev2(&plain, &[IoSlice::new(&block)], 0, flags).unwrap();
        added("RWF_DSYNC", 1, &|| assert_eq!(with(ReadWriteFlags::DSYNC), 4096));
        added("RWF_SYNC", 1, &|| assert_eq!(with(ReadWriteFlags::SYNC), 4096));
        added("fsync", 1, &|| fsync(&plain).unwrap());
        for (name, flags) in [("O_DSYNC", libc::O_DSYNC), ("O_SYNC", libc::O_SYNC)] {
            let file = open(&tree.join(name), flags);
            added(name, 3, &|| (0..3).for_each(|number| write(&file, number * 4096)));
            added("fallocate", 1, &|| fallocate(&file, FallocateFlags::empty(), 0, 1 << 16).unwrap());
            let copy = || copy_file_range(&plain, Some(&mut 0), &file, Some(&mut 0), 4096).unwrap();
            added("copy_file_range", 1, &|| assert_eq!(copy(), 4096));
            added("a close after it", 0, &|| drop(file.try_clone().unwrap()));
        }
        // The kernel asks no service of FUSE but virtiofs for it.
        added("syncfs", 0, &|| syncfs(&plain).unwrap());
        assert_eq!(fs::read(tree.join("O_DSYNC")).unwrap()[..4096], block);
    }
}
