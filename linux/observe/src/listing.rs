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
    let mut groups = Vec::new();
    let has_nameless = for_each_directory(root, path, skips, |name, inode| groups.push((name.to_owned(), inode)));
    Listed { groups, has_nameless }
}

/// Calls `with` for each directory in a directory, with its name and inode. The answer is whether there are more, whose names are no
/// text.
fn for_each_directory(root: &OwnedFd, path: &str, skips: &mut Skips, mut with: impl FnMut(&str, u64)) -> bool {
    let mut has_nameless = false;
    let directory = match open_below(root.as_fd(), path, OFlags::RDONLY | OFlags::DIRECTORY) {
        Ok(directory) => directory,
        Err(error) => {
            skips.unreadable("cgroup directories", path, error);
            return has_nameless;
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
            Ok(name) => with(name, entry.ino()),
            Err(_) => {
                has_nameless = true;
                skips.note("cgroup directories", 1, || format!("name in {path:?} is not UTF-8"));
            }
        }
    }
    has_nameless
}

/// What some directories list, to tell groups in them from others of the same name.
#[derive(Debug, Default)]
pub(crate) struct Crowds {
    by_path: BTreeMap<String, Crowd>,
    /// What is listed now, before it is compared.
    fresh: Vec<u8>,
}

#[derive(Debug, Default)]
struct Crowd {
    /// Inodes and names as they were listed.
    entries: Vec<u8>,
    /// The same, sorted by name.
    groups: Vec<(String, u64)>,
    /// Every group that was asked about since it was listed is in it.
    has_all: bool,
    /// It lists what it listed when it was last looked at.
    is_same: bool,
}

impl Crowds {
    /// Lists these directories, and forgets all others.
    pub(crate) fn list(&mut self, root: &OwnedFd, paths: &[String], skips: &mut Skips) {
        self.by_path.retain(|path, _| paths.contains(path));
        for path in paths {
            self.fresh.clear();
            for_each_directory(root, path, skips, |name, inode| {
                self.fresh.extend_from_slice(&inode.to_ne_bytes());
                self.fresh.extend_from_slice(name.as_bytes());
                self.fresh.push(0);
            });
            let crowd = self.by_path.entry(path.clone()).or_default();
            crowd.is_same = crowd.entries == self.fresh;
            if !crowd.is_same {
                crowd.entries.clone_from(&self.fresh);
                crowd.groups = groups_in(&self.fresh);
                crowd.has_all = true;
            }
        }
    }

    /// Answers for one look. `asked_before` says that all groups that are asked about were asked about when the directories were
    /// listed before, so that a list that is the same needs no search.
    pub(crate) fn answers(&mut self, asked_before: bool) -> Answers<'_> {
        Answers { by_path: &mut self.by_path, asked_before, same: None }
    }
}

/// See [`Crowds::answers`].
pub(crate) struct Answers<'a> {
    by_path: &'a mut BTreeMap<String, Crowd>,
    asked_before: bool,
    /// The directory that was last asked about, if it has all that it had: groups are asked about by name, so that most of the time
    /// the next one is in the same.
    same: Option<String>,
}

impl Answers<'_> {
    /// Whether the directory above was listed and has this group, and not another of its name. Where a file system lists other
    /// inodes than `stat` shows, this is always false.
    pub(crate) fn has(&mut self, path: &str, inode: u64) -> bool {
        let is_in_same = |same: &String| {
            path.strip_prefix(same.as_str())
                .and_then(|rest| rest.strip_prefix('/'))
                .is_some_and(|name| !name.contains('/'))
        };
        if self.same.as_ref().is_some_and(is_in_same) {
            return true;
        }
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        let Some(crowd) = self.by_path.get_mut(parent) else { return false };
        if crowd.is_same && crowd.has_all && self.asked_before {
            self.same = Some(parent.to_owned());
            return true;
        }
        let found = crowd.groups.binary_search_by(|(listed, _)| listed.as_str().cmp(name));
        let has = found.is_ok_and(|index| crowd.groups[index].1 == inode);
        crowd.has_all &= has;
        has
    }
}

/// The groups of a listing, sorted by name.
fn groups_in(mut entries: &[u8]) -> Vec<(String, u64)> {
    let mut groups = Vec::new();
    while let Some((inode, rest)) = entries.split_first_chunk() {
        let length = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
        groups.push((String::from_utf8_lossy(&rest[..length]).into_owned(), u64::from_ne_bytes(*inode)));
        entries = rest.get(length + 1..).unwrap_or_default();
    }
    groups.sort_unstable();
    groups
}
