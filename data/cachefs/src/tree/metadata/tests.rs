//! The room of extended attributes, and what lets a program do more than who runs it.

use crate::file_system::{Caller, Changes, FileSystem, WriteOrigin};
use crate::{Account, Descriptors, Tree, TreeOptions};
use rustix::io::Errno;
use rustix::process::{getgid, getuid};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

/// Memory keeps any number of attributes of a directory, which ext4 does not, and says with a directory's blocks nothing of them.
const MEMORY: &str = "/dev/shm";

fn tree(at: &Path) -> Tree {
    let descriptors = Arc::new(Descriptors::new(1000, 1));
    let options = TreeOptions { has_xattrs: true, descriptors, ..TreeOptions::default() };
    Tree::open(at, Arc::new(Account::new(1 << 20, 100)), options, None).unwrap()
}

#[test]
fn attributes_of_a_directory_end_at_a_block_and_can_be_replaced_and_removed() {
    let Ok(folder) = tempfile::tempdir_in(MEMORY) else { return eprintln!("skipped: needs {MEMORY}") };
    if rustix::fs::setxattr(folder.path(), "user.probe", b"x", rustix::fs::XattrFlags::empty()).is_err() {
        return eprintln!("skipped: memory keeps no attributes before Linux 6.6");
    }
    let tree = tree(folder.path());
    let caller = Caller { uid: getuid().as_raw(), gid: getgid().as_raw(), umask: 0 };
    let made = tree.make_directory(caller, 1, OsStr::new("directory"), 0o700).unwrap().node;
    let set = |node, number: usize, bytes: usize| {
        tree.set_xattr(node, OsStr::new(&format!("user.{number}")), &vec![b'x'; bytes], 0)
    };
    // The root is a directory too.
    for node in [1, made] {
        let refused = (0..1000).find_map(|number| set(node, number, 1000).err().map(|error| (number, error)));
        assert_eq!(refused, Some((4, Errno::NOSPC)), "four of a thousand bytes with their names");
        assert_eq!(set(node, 9, 64 << 10), Err(Errno::NOSPC), "one alone");
        assert_eq!(set(node, 0, 500), Ok(()), "a shorter one in place of a longer");
        assert_eq!(set(node, 4, 400), Ok(()));
        tree.remove_xattr(node, OsStr::new("user.1")).unwrap();
        assert_eq!(set(node, 5, 1000), Ok(()));
        assert_eq!(tree.usage().bytes, 0, "a directory has no bytes on the account");
    }
    assert_eq!(tree.counters().refused.load(std::sync::atomic::Ordering::Relaxed), 4);
}

#[test]
fn what_a_file_lets_its_runner_do_ends_at_the_next_write_however_often_it_is_set() {
    let folder = tempfile::tempdir().unwrap();
    let tree = tree(folder.path());
    let caller = Caller { uid: getuid().as_raw(), gid: getgid().as_raw(), umask: 0 };
    let (made, opened) = tree.create(caller, 1, OsStr::new("program"), 0o777, libc::O_RDWR).unwrap();
    let write = || {
        let origin = WriteOrigin { ends_privileges: true, is_mapped: false };
        tree.write(opened.handle, 0, b"text", origin).unwrap();
        (
            tree.attributes(made.node).unwrap().mode & 0o7777,
            tree.xattr(made.node, OsStr::new("security.capability")).is_ok(),
        )
    };
    // `cap_net_raw`, permitted and effective.
    let capability = [1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    for round in 0..3 {
        tree.set_attributes(caller, made.node, &Changes { mode: Some(0o6777), ..Changes::default() }).unwrap();
        assert_eq!(write(), (0o777, false), "{round}");
        if tree.set_xattr(made.node, OsStr::new("security.capability"), &capability, 0).is_ok() {
            assert_eq!(write(), (0o777, false), "{round}");
        }
    }
}
