//! What a move leaves that ends early, and what goes along.

use super::{Job, Obstacle, link_text, switch};
use crate::deferred::site::Site;
use minerva_cachefs::{Account, Caller, DEFERRED, Descriptors, Tree, TreeOptions};
use minerva_store::{Deferral, DeferralStep};
use rustix::fs::{XattrFlags, getxattr, setxattr};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn row(directory: &Path) -> Deferral {
    let shown = fs::metadata(directory).unwrap();
    Deferral {
        id: 1,
        tenant: "web".to_owned(),
        pool: "stable".to_owned(),
        source: "source".into(),
        directory: directory.to_owned(),
        directory_identity: (shown.dev(), shown.ino()),
        name: "file".into(),
        link_inode: fs::symlink_metadata(directory.join("file")).unwrap().ino(),
        copy_inode: fs::metadata(directory.join("copy")).map_or(0, |shown| shown.ino()),
        copy_name: "copy".into(),
        user: (0, 0, Vec::new()),
        added_unix_ms: 0,
        is_asked_for: false,
        step: DeferralStep::Switching,
        cgroup: String::new(),
        counted_bytes: 0,
    }
}

#[test]
fn nothing_but_the_copy_comes_to_the_place_of_the_link() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let link = Path::new("/nowhere/source");
    symlink(link, at("file")).unwrap();
    fs::write(at("copy"), "whole").unwrap();
    let row = row(folder.path());
    let site = Site::open(&row.directory, row.directory_identity).unwrap();
    // Another's copy, which is not whole, under the same name.
    fs::rename(at("copy"), at("kept")).unwrap();
    fs::write(at("copy"), "ha").unwrap();
    let refused = switch(&site, &row, link).unwrap_err();
    assert!(matches!(refused, Obstacle::Destination(_)), "{refused}");
    assert_eq!(fs::read_link(at("file")).unwrap(), link);
    fs::rename(at("kept"), at("copy")).unwrap();
    switch(&site, &row, link).unwrap();
    assert_eq!(fs::read(at("file")).unwrap(), b"whole");
    assert_eq!(fs::read_link(at("copy")).unwrap(), link);
}

/// A file that waits in a pool, and the link to it.
struct Waiting {
    folder: tempfile::TempDir,
    tree: Arc<Tree>,
}

impl Waiting {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pool = folder.path().join("pool");
        fs::create_dir(&pool).unwrap();
        let descriptors = Arc::new(Descriptors::new(1000, 1));
        let options = TreeOptions { has_xattrs: true, descriptors, ..TreeOptions::default() };
        let tree = Arc::new(Tree::open(&pool, Arc::new(Account::new(1 << 30, 100)), options, None).unwrap());
        let owner = fs::metadata(&pool).unwrap();
        let caller = Caller { uid: owner.uid(), gid: owner.gid(), umask: 0 };
        tree.create_deferred(caller, OsStr::new("source"), 0o600).unwrap();
        let waiting = Self { folder, tree };
        fs::create_dir(waiting.target()).unwrap();
        fs::write(waiting.source(), "text").unwrap();
        waiting
    }

    fn pool(&self) -> PathBuf {
        self.folder.path().join("pool")
    }

    fn source(&self) -> PathBuf {
        self.pool().join(DEFERRED).join("source")
    }

    fn target(&self) -> PathBuf {
        self.folder.path().join("target")
    }

    fn begin(&self) -> Result<Job, Obstacle> {
        symlink(link_text(&self.pool(), OsStr::new("source")), self.target().join("file")).unwrap();
        Job::begin(row(&self.target()), &self.tree, &self.pool(), &|_| Ok(()))
    }

    fn names(&self) -> Vec<OsString> {
        let entries = fs::read_dir(self.target()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }
}

#[test]
fn a_move_that_ends_before_the_exchange_leaves_no_copy() {
    let waiting = Waiting::new();
    let mut job = waiting.begin().unwrap();
    while job.piece().unwrap() {}
    assert_eq!(waiting.names(), ["copy", "file"]);
    let refused = job.finish(&|_| Err(Obstacle::Log("the log is full".to_owned()))).unwrap_err();
    assert!(matches!(refused, Obstacle::Log(_)), "{refused}");
    assert_eq!(waiting.names(), ["file"]);
    assert!(waiting.target().join("file").is_symlink());
}

#[test]
fn a_place_that_refuses_an_attribute_is_met_before_any_data_are_copied() {
    let waiting = Waiting::new();
    // Attributes of users have room for as many inodes there as are free, of 1 KiB each; before Linux 6.6 none.
    if let Err(error) =
        mount("minerva-test", waiting.target(), "tmpfs", MountFlags::empty(), Some(c"size=4m,nr_inodes=4"))
    {
        println!("skipped: cannot mount a tmpfs: {error}");
        return;
    }
    setxattr(waiting.source(), "user.large", &[0; 3000], XattrFlags::empty()).unwrap();
    let begun = waiting.begin();
    let names = waiting.names();
    let why = begun.map(drop).map_err(|obstacle| obstacle.to_string());
    unmount(waiting.target(), UnmountFlags::DETACH).unwrap();
    assert!(why.unwrap_err().contains("its attribute user.large cannot be kept there"));
    assert_eq!(names, ["file"]);
}

#[test]
fn capabilities_go_along_though_data_are_written_after_them_and_nobody_else_opens_what_is_not_whole() {
    let waiting = Waiting::new();
    // `cap_net_raw`, permitted and effective; and user 1 may read and write.
    let capability = [1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let entries = [(1_u16, 6_u16, u32::MAX), (2, 6, 1), (4, 0, u32::MAX), (0x10, 6, u32::MAX), (0x20, 0, u32::MAX)];
    let mut acl = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        acl.extend([tag.to_le_bytes(), permissions.to_le_bytes()].concat());
        acl.extend(id.to_le_bytes());
    }
    let attributes = [("security.capability", &capability[..]), ("system.posix_acl_access", &acl)];
    for (name, value) in attributes {
        if let Err(error) = setxattr(waiting.source(), name, value, XattrFlags::empty()) {
            println!("skipped: {name} cannot be set here: {error}");
            return;
        }
    }
    let mut job = waiting.begin().unwrap();
    let copy = fs::metadata(waiting.target().join("copy")).unwrap();
    assert_eq!(copy.mode() & 0o7777, 0o600, "the group's bits, which limit user 1 as well");
    while job.piece().unwrap() {}
    job.finish(&|_| Ok(())).unwrap();
    let file = waiting.target().join("file");
    assert_eq!((waiting.names(), fs::read(&file).unwrap()), (vec![OsString::from("file")], b"text".to_vec()));
    for (name, value) in attributes {
        let mut found = [0; 100];
        let length = getxattr(&file, name, &mut found[..]).unwrap();
        assert_eq!(found[..length], *value, "{name}");
    }
}
