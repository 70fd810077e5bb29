//! The groups of the hierarchy as they were last seen, and what changed since.
//!
//! A change is told by one `stat` a group, or, where many groups lie right below one, by listing that one, which gives their inodes.
//! The link count of a kernfs directory is two and one for each child, so that a child made or removed changes it; a child that
//! was replaced by another of its name has another inode. If one child is removed and another made between two looks, the count
//! stays, but the one that is gone is missed by name and its parent is listed again. The modification time would not do: on Linux
//! 6.18 it does not change with the children. Nor would inotify: it sees only what is made through the same superblock, and a
//! container's cgroup namespace is another one. A listing has no link counts: of groups told by a listing, those get a `stat` whose
//! counters moved. Counters include the groups below, so that a group made there is seen one look after its first transfer. All
//! directories whose link counts do not say that all of their children are known are listed again once in [`LIST_ALL_SLICES`]: some
//! were left out, or the file system is not kernfs and counts otherwise.

use crate::classify::{Class, NAMED_PARENTS_DEFAULT, Part, classify};
use crate::delegated::Delegated;
use crate::listing::{Crowds, directories_in};
use crate::read::{DirectoryFacts, Reader, directory_facts};
use crate::skips::Skips;
use minerva_model::{CgroupRef, CgroupVersion, TenantKind};
use rustix::fd::{AsFd, OwnedFd};
use std::collections::{BTreeMap, BTreeSet};

/// Every so many looks directories are listed though their link counts did not change.
const LIST_ALL_SLICES: u32 = 60;
/// Groups right below one that has this many are told by listing it, which then costs less than a `stat` for each.
const CROWD: usize = 32;
/// A `stat` shows too who may make groups in them, and groups below that transfer nothing: it is made for each of them once in this
/// many looks.
const CROWD_LOOKS: usize = 16;
/// Groups deeper than this belong to the one at this depth.
const DEPTH_MAX: usize = 24;

/// One group.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) facts: DirectoryFacts,
    pub(crate) class: Class,
    /// Groups right below that are nodes themselves.
    pub(crate) children: usize,
    /// Of a slice: groups right below that the controller does not reach, and that would be tenants otherwise.
    pub(crate) hidden: usize,
    /// Its counters moved since the last look.
    moved: bool,
    /// The controller reaches the groups below; always on v1.
    reaches_below: bool,
}

/// The groups, by path; the root has the empty path.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) root: OwnedFd,
    version: CgroupVersion,
    pub(crate) nodes: BTreeMap<String, Node>,
    looks: u32,
    /// The groups right below which named groups are.
    pub(crate) named_parents: Vec<String>,
    /// Somebody got the right to make groups in a group that is known, or lost it, since this was last taken.
    pub(crate) access_changed: bool,
    pub(crate) delegated: Delegated,
    crowds: Crowds,
    /// Groups came or went since the last look compared them.
    has_changed: bool,
}

impl Tree {
    pub(crate) fn new(root: OwnedFd, version: CgroupVersion) -> Self {
        Self {
            root,
            version,
            nodes: BTreeMap::new(),
            looks: 0,
            named_parents: NAMED_PARENTS_DEFAULT.map(str::to_owned).to_vec(),
            access_changed: false,
            delegated: Delegated::default(),
            crowds: Crowds::default(),
            has_changed: true,
        }
    }

    /// Looks once. The answer is the paths of groups that are gone, or that another one of the same name replaced.
    pub(crate) fn look(&mut self, reader: &mut Reader, skips: &mut Skips) -> BTreeSet<String> {
        let mut gone = BTreeSet::new();
        self.delegated.begin_look();
        let mut to_list = self.compare(reader, skips, &mut gone);
        for path in gone.clone() {
            self.remove(&path, &mut gone);
        }
        if self.looks.is_multiple_of(LIST_ALL_SLICES) {
            self.add_root();
            self.part(skips);
            let may_have_more = |node: &Node| node.holds() && node.facts.links != node.children as u64 + 2;
            to_list = self.nodes.iter().filter(|(_, node)| may_have_more(node)).map(|(path, _)| path.clone()).collect();
        }
        self.looks = self.looks.wrapping_add(1);
        while let Some(path) = to_list.pop() {
            self.list(&path, reader, skips, &mut gone, &mut to_list);
        }
        self.join(&mut gone);
        gone
    }

    /// Compares every known group with what stands there now; the answer is the directories to list again.
    fn compare(&mut self, reader: &mut Reader, skips: &mut Skips, gone: &mut BTreeSet<String>) -> Vec<String> {
        let crowds = self.crowded();
        self.crowds.list(&self.root, &crowds, skips);
        let mut listed = self.crowds.answers(!std::mem::take(&mut self.has_changed));
        let mut to_list = Vec::new();
        for (number, (path, node)) in self.nodes.iter_mut().enumerate() {
            let is_due = number % CROWD_LOOKS == self.looks as usize % CROWD_LOOKS;
            let moved = std::mem::take(&mut node.moved);
            let may_rest = !node.holds() || node.children == 0 && !moved;
            // Asked about all of them, so that the next look need not search.
            if listed.has(path, node.facts.inode) && !is_due && may_rest {
                continue;
            }
            let now = directory_facts(&self.root, path);
            let same = now.filter(|now| now.inode == node.facts.inode);
            let Some(now) = same else {
                gone.insert(path.clone());
                if let Some((parent, _)) = path.rsplit_once('/').or(Some(("", ""))).filter(|_| !path.is_empty()) {
                    to_list.push(parent.to_owned());
                }
                continue;
            };
            let mut changed = now.links != node.facts.links;
            self.access_changed |= now.access != node.facts.access;
            node.facts = now;
            if self.version == CgroupVersion::V2 && node.holds() && now.links > 2 {
                let reaches = reaches_below(&self.root, path, reader);
                changed |= reaches != node.reaches_below;
                node.reaches_below = reaches;
            }
            if changed && node.holds() {
                to_list.push(path.clone());
            }
        }
        to_list
    }

    /// Groups with many right below them. One that has far more than are known, which may be the doing of a user, is not listed again
    /// and again.
    fn crowded(&self) -> Vec<String> {
        let is_crowded =
            |node: &Node| node.holds() && node.children >= CROWD && node.facts.links <= 2 * node.children as u64;
        self.nodes.iter().filter(|(_, node)| is_crowded(node)).map(|(path, _)| path.clone()).collect()
    }

    /// A group's counters moved: the next look is to show whether there are groups below.
    pub(crate) fn moved(&mut self, path: &str) {
        if let Some(node) = self.nodes.get_mut(path) {
            node.moved = true;
        }
    }

    fn add_root(&mut self) {
        if let (false, Some(facts)) = (self.nodes.contains_key(""), directory_facts(&self.root, "")) {
            self.has_changed = true;
            let class = Class { kind: TenantKind::Cgroup, name: String::new(), part: Part::Holder };
            self.nodes.insert(
                String::new(),
                Node { facts, class, children: 0, hidden: 0, moved: false, reaches_below: true },
            );
        }
    }

    /// Removes a group and everything below it; what was below goes into `gone`.
    fn remove(&mut self, path: &str, gone: &mut BTreeSet<String>) {
        if self.nodes.remove(path).is_none() {
            return;
        }
        self.has_changed = true;
        if let Some(parent) = self.nodes.get_mut(parent_of(path)) {
            parent.children = parent.children.saturating_sub(1);
        }
        self.remove_below(path, gone);
    }

    pub(crate) fn remove_below(&mut self, path: &str, gone: &mut BTreeSet<String>) {
        for path in self.below(path) {
            self.has_changed = true;
            self.nodes.remove(&path);
            gone.insert(path);
        }
    }

    pub(crate) fn below(&self, path: &str) -> Vec<String> {
        let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
        let from = self.nodes.range(prefix.clone()..);
        from.map(|(path, _)| path)
            .take_while(|path| path.starts_with(&prefix))
            .filter(|path| !path.is_empty())
            .cloned()
            .collect()
    }

    /// Lists one directory and adds what is new in it; nothing below one at [`DEPTH_MAX`].
    fn list(
        &mut self,
        path: &str,
        reader: &mut Reader,
        skips: &mut Skips,
        gone: &mut BTreeSet<String>,
        to_list: &mut Vec<String>,
    ) {
        // Here and not where it is queued: changes and the looks that list all queue it too.
        let may_list = path.split('/').count() < DEPTH_MAX;
        let Some(node) = self.nodes.get_mut(path).filter(|_| may_list) else { return };
        if self.version == CgroupVersion::V2 {
            node.reaches_below = reaches_below(&self.root, path, reader);
        }
        node.hidden = 0;
        if !node.reaches_below {
            node.children = 0;
            self.remove_below(path, gone);
            self.count_hidden(path, skips);
            return;
        }
        let delegated_from = delegated_from(&self.nodes, path).map(|cgroup| cgroup.path);
        let listed = directories_in(&self.root, path, skips);
        if let Some(delegated) = delegated_from.as_deref().filter(|_| listed.has_nameless) {
            self.delegated.has_nameless(delegated);
        }
        for (name, _) in listed.groups {
            let child = if path.is_empty() { name } else { format!("{path}/{name}") };
            if self.nodes.contains_key(&child) || !self.has_room(&child, delegated_from.as_deref(), skips) {
                continue;
            }
            let Some(facts) = directory_facts(&self.root, &child) else { continue };
            let node = Node {
                facts,
                class: classify(&child, &self.named_parents),
                children: 0,
                hidden: 0,
                moved: false,
                reaches_below: true,
            };
            if node.holds() {
                to_list.push(child.clone());
            }
            if let Some(parent) = self.nodes.get_mut(path) {
                parent.children += 1;
            }
            self.has_changed = true;
            self.nodes.insert(child, node);
        }
    }

    /// Counts what a slice hides. Other holders are left out: where `io` ends at a pod or at a user's manager, that is whom its
    /// makers mean to be one.
    fn count_hidden(&mut self, path: &str, skips: &mut Skips) {
        if !path.ends_with(".slice") || self.nodes.get(path).is_none_or(|node| node.class.kind != TenantKind::Service) {
            return;
        }
        let would_be =
            |(name, _): &(String, u64)| classify(&format!("{path}/{name}"), &self.named_parents).part != Part::Nobody;
        let hidden = directories_in(&self.root, path, skips).groups.iter().filter(|name| would_be(name)).count();
        if let Some(node) = self.nodes.get_mut(path) {
            node.hidden = hidden;
        }
    }
}

impl Node {
    /// Whether the groups below are looked at on their own.
    fn holds(&self) -> bool {
        self.class.part == Part::Holder
    }
}

/// The topmost group at or above `path` in which somebody besides root may make groups: what lies below it is of that user's
/// making.
pub(crate) fn delegated_from(nodes: &BTreeMap<String, Node>, path: &str) -> Option<CgroupRef> {
    let root = nodes.get("")?.facts.access;
    let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]).filter(|end| *end > 0);
    ends.map(|end| &path[..end]).find_map(|path| {
        let facts = nodes.get(path).map(|node| node.facts).filter(|facts| facts.access.is_delegated(root))?;
        Some(CgroupRef { path: path.to_owned(), inode: facts.inode })
    })
}

pub(crate) fn parent_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// On v2 a group has I/O counters only if its parent's `cgroup.subtree_control` lists `io`.
fn reaches_below(root: &OwnedFd, path: &str, reader: &mut Reader) -> bool {
    let file =
        if path.is_empty() { "cgroup.subtree_control".to_owned() } else { format!("{path}/cgroup.subtree_control") };
    let text = reader.below(root.as_fd(), &file).unwrap_or_default();
    text.split(|byte| byte.is_ascii_whitespace()).any(|word| word == b"io")
}
