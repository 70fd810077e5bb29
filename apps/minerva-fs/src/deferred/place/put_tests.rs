//! What is met at the place of a file when it is put there.

use super::{Placing, put};
use crate::deferred::link_attributes::link_attributes;
use crate::deferred::site::{Site, trial_name};
use crate::deferred::under_way::UnderWay;
use crate::user::User;
use fuser::{
    Config, Errno, Filesystem, Generation, INodeNo, RenameFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, Request,
    Session,
};
use minerva_cachefs::{Account, DEFERRED, Descriptors, Tree, TreeOptions};
use minerva_store::{Deferral, DeferralStep};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const ROOT: User = User::root();

/// A pool, and a directory to which files are to go.
struct Fixture {
    folder: tempfile::TempDir,
    tree: Arc<Tree>,
    under_way: UnderWay,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("minerva-test-").tempdir().unwrap();
        let [pool, data] = ["pool", "data"].map(|name| folder.path().join(name));
        [&pool, &data].into_iter().for_each(|directory| fs::create_dir(directory).unwrap());
        let descriptors = Arc::new(Descriptors::new(1000, 1));
        let options = TreeOptions { descriptors, ..TreeOptions::default() };
        let tree = Tree::open(&pool, Arc::new(Account::new(1 << 30, 100)), options, None).unwrap();
        Self { folder, tree: Arc::new(tree), under_way: UnderWay::default() }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Puts a file there; what it is as it lies in the pool, or why not, and its row.
    fn put(&self) -> (anyhow::Result<fs::Metadata>, Deferral) {
        let data = self.data();
        let shown = fs::metadata(&data).unwrap();
        let identity = (shown.dev(), shown.ino());
        let site = Site::open(&data, identity).unwrap();
        let row = Deferral {
            id: 1,
            tenant: "web".to_owned(),
            pool: "stable".to_owned(),
            source: "source".into(),
            directory: data,
            directory_identity: identity,
            name: "file".into(),
            link_inode: 0,
            copy_inode: 0,
            copy_name: ".minerva-source.part".into(),
            user: (0, 0, Vec::new()),
            added_unix_ms: 0,
            is_asked_for: false,
            step: DeferralStep::Placing,
            cgroup: String::new(),
            counted_bytes: 0,
        };
        let mut placing = Placing {
            row,
            tree: Arc::clone(&self.tree),
            link: "/nowhere/source".into(),
            replaced: None,
            under_way: self.under_way.enter("web"),
        };
        let done = put(&site, &mut placing, &ROOT, 0o640);
        let shown = || Ok(fs::metadata(self.folder.path().join("pool").join(DEFERRED).join("source"))?);
        (done.and_then(|()| shown()), placing.row)
    }
}

/// A directory of links, in which no two names can be exchanged.
#[derive(Clone, Default)]
struct Plain(Arc<Mutex<BTreeMap<OsString, (u64, PathBuf)>>>);

impl Plain {
    fn names(&self) -> Vec<OsString> {
        self.0.lock().unwrap().keys().cloned().collect()
    }
}

impl Filesystem for Plain {
    fn lookup(&self, _request: &Request, _parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.0.lock().unwrap().get(name) {
            Some((node, _)) => reply.entry(&Duration::ZERO, &link_attributes(*node), Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _request: &Request, node: INodeNo, _handle: Option<fuser::FileHandle>, reply: ReplyAttr) {
        reply.attr(&Duration::ZERO, &link_attributes(node.0));
    }

    fn symlink(&self, _request: &Request, _parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let mut names = self.0.lock().unwrap();
        let node = 2 + names.len() as u64;
        names.insert(name.to_owned(), (node, target.to_owned()));
        reply.entry(&Duration::ZERO, &link_attributes(node), Generation(0));
    }

    fn readlink(&self, _request: &Request, node: INodeNo, reply: ReplyData) {
        let names = self.0.lock().unwrap();
        match names.values().find(|(number, _)| *number == node.0) {
            Some((_, target)) => reply.data(target.as_os_str().as_bytes()),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn rename(
        &self,
        _request: &Request,
        _parent: INodeNo,
        name: &OsStr,
        _new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        if !flags.is_empty() {
            return reply.error(Errno::EINVAL);
        }
        let mut names = self.0.lock().unwrap();
        match names.remove(name) {
            Some(link) => {
                names.insert(new_name.to_owned(), link);
                reply.ok();
            }
            None => reply.error(Errno::ENOENT),
        }
    }

    fn unlink(&self, _request: &Request, _parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        match self.0.lock().unwrap().remove(name) {
            Some(_) => reply.ok(),
            None => reply.error(Errno::ENOENT),
        }
    }
}

#[test]
fn a_file_system_that_cannot_exchange_names_is_found_out_when_a_file_is_put() {
    if !rustix::process::geteuid().is_root() || !Path::new("/dev/fuse").exists() {
        println!("skipped: needs root and /dev/fuse for a file system that cannot exchange names");
        return;
    }
    let (fixture, plain) = (Fixture::new(), Plain::default());
    plain.0.lock().unwrap().insert("file".into(), (99, "/of/before".into()));
    let session = Session::new(plain.clone(), fixture.data(), &Config::default()).unwrap().spawn().unwrap();
    let (refused, row) = fixture.put();
    let why = refused.unwrap_err().to_string();
    assert!(why.contains("no file can take the place of a link") && why.contains("write to the destination"), "{why}");
    assert_eq!(fs::read_link(fixture.data().join("file")).unwrap(), Path::new("/of/before"), "nothing was replaced");
    assert!(!plain.names().contains(&trial_name(&row)), "{:?}", plain.names());
    drop(session);
}

#[test]
fn where_names_can_be_exchanged_the_link_is_all_that_is_there() {
    let fixture = Fixture::new();
    let (put, row) = fixture.put();
    put.unwrap();
    let names: Vec<_> = fs::read_dir(fixture.data()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["file"]);
    let link = fixture.data().join("file");
    assert_eq!(
        (fs::read_link(&link).unwrap(), link.symlink_metadata().unwrap().ino()),
        (PathBuf::from("/nowhere/source"), row.link_inode)
    );
}

#[test]
fn a_directory_that_gives_its_group_gives_it_to_what_is_deferred_to_it() {
    let fixture = Fixture::new();
    if chown(fixture.data(), None, Some(777)).is_err() {
        return println!("skipped: only root gives a directory another group");
    }
    for (mode, group) in [(0o755, 0), (0o2755, 777)] {
        fs::set_permissions(fixture.data(), Permissions::from_mode(mode)).unwrap();
        let (put, row) = fixture.put();
        let shown = put.unwrap();
        assert_eq!((shown.gid(), shown.mode() & 0o7777), (group, 0o640), "{mode:o}");
        fixture.tree.remove_deferred(&row.source).unwrap();
    }
}
