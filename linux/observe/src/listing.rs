//! What directories of the hierarchy list: groups by name and inode.

use crate::read::open_below;
use crate::skips::Skips;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FileType, OFlags, RawDir};
use std::collections::BTreeMap;
use std::mem::MaybeUninit;

/// Room for one `getdents` call.
const LISTING_BYTES: usize = 32 << 10;

/// The directories in a directory.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    /// Their names and inodes.
    pub(crate) groups: Vec<(String, u64)>,
    /// There are more, whose names are no text.
    pub(crate) has_nameless: bool,
}

/// The directories in a directory. Links are not followed and not listed.
pub(crate) fn directories_in(root: &OwnedFd, path: &str, skips: &mut Skips) -> Listed {
    let mut found = Listed::default();
    let directory = match open_below(root.as_fd(), path, OFlags::RDONLY | OFlags::DIRECTORY) {
        Ok(directory) => directory,
        Err(error) => {
            skips.unreadable("cgroup directories", path, error);
            return found;
        }
    };
    let mut room = [MaybeUninit::uninit(); LISTING_BYTES];
    let mut entries = RawDir::new(directory, &mut room);
    while let Some(entry) = entries.next() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                skips.unreadable("cgroup directories", path, error);
                break;
            }
        };
        // A file system that does not tell the type is asked by the `stat` that follows.
        if !matches!(entry.file_type(), FileType::Directory | FileType::Unknown) {
            continue;
        }
        match entry.file_name().to_str() {
            Ok("." | "..") => {}
            Ok(name) => found.groups.push((name.to_owned(), entry.ino())),
            Err(_) => {
                found.has_nameless = true;
                skips.note("cgroup directories", 1, || format!("name in {path:?} is not UTF-8"));
            }
        }
    }
    found
}

/// What some directories list, to tell groups in them from others of the same name.
pub(crate) struct Crowds {
    /// Names and inodes, sorted, by the directory's path.
    by_path: BTreeMap<String, Vec<(String, u64)>>,
}

impl Crowds {
    /// Lists these directories.
    pub(crate) fn list<'a>(root: &OwnedFd, paths: impl Iterator<Item = &'a str>, skips: &mut Skips) -> Self {
        let listed = paths.map(|path| {
            let mut listed = directories_in(root, path, skips).groups;
            listed.sort_unstable();
            (path.to_owned(), listed)
        });
        Self { by_path: listed.collect() }
    }

    /// Whether the directory above was listed and has this group, and not another of its name. Where a file system lists other
    /// inodes than `stat` shows, this is always false.
    pub(crate) fn has(&self, path: &str, inode: u64) -> bool {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        let Some(listed) = self.by_path.get(parent) else { return false };
        let found = listed.binary_search_by(|(listed, _)| listed.as_str().cmp(name));
        found.is_ok_and(|index| listed[index].1 == inode)
    }
}
