//! Groups that users make below what was delegated to them, where not all of them can be looked at one by one.
//!
//! Whoever may make groups must not be able to exhaust Minerva, and must not get out of its sight by making one group too many, or one whose
//! name is no text. So then all that lies below the delegated group counts with it, as one tenant, until there are far fewer.

use crate::classify::{Part, classify};
use crate::listing::directories_in;
use crate::skips::Skips;
use crate::tree::{Tree, delegated_from};
use std::collections::BTreeSet;

/// Groups beyond this many are not looked at.
const NODES_MAX: usize = 50_000;
/// The same below one group in which somebody besides root may make groups, so that no user can keep the others' from being seen.
const DELEGATED_NODES_MAX: usize = 2_000;

impl Tree {
    /// Whether `child` may be added; if not, that is noted.
    pub(crate) fn has_room(&mut self, child: &str, delegated_from: Option<&str>, skips: &mut Skips) -> bool {
        if self.nodes.len() >= NODES_MAX {
            skips.note("cgroup directories", 1, || format!("more than {NODES_MAX} groups, first left out: {child}"));
            return false;
        }
        let Some(delegated) = delegated_from.filter(|delegated| !self.has_room_below(delegated)) else { return true };
        skips.note("cgroup directories", 1, || {
            format!("more than {DELEGATED_NODES_MAX} groups below {delegated}, so that all of them count as one tenant")
        });
        self.delegated.to_join.insert(delegated.to_owned());
        false
    }

    /// Counts one more group below a delegated one, unless there are too many.
    fn has_room_below(&mut self, delegated: &str) -> bool {
        if !self.delegated.counts.contains_key(delegated) {
            let count = self.below(delegated).len();
            self.delegated.counts.insert(delegated.to_owned(), count);
        }
        let Some(count) = self.delegated.counts.get_mut(delegated) else { return true };
        *count += 1;
        *count <= DELEGATED_NODES_MAX
    }

    /// Makes one tenant of each delegated group of which not all could be looked at; what was below goes into `gone`.
    pub(crate) fn join(&mut self, gone: &mut BTreeSet<String>) {
        for path in std::mem::take(&mut self.delegated.to_join) {
            let Some(node) = self.nodes.get_mut(&path) else { continue };
            node.class.part = Part::Unit;
            node.children = 0;
            self.remove_below(&path, gone);
            self.delegated.joined.insert(path);
        }
    }

    /// Those below which there are far fewer groups again, or that are nobody's but root's, are looked at again.
    pub(crate) fn part(&mut self, skips: &mut Skips) {
        for path in self.delegated.joined.clone() {
            let is_there = self.nodes.contains_key(&path);
            let is_delegated = delegated_from(&self.nodes, &path).is_some_and(|from| from.path == path);
            if is_there && is_delegated && !self.are_few_below(&path, skips) {
                continue;
            }
            self.delegated.joined.remove(&path);
            if let Some(node) = self.nodes.get_mut(&path) {
                node.class = classify(&path, &self.named_parents);
            }
        }
    }

    /// At most half of what may be looked at, all of them with names.
    fn are_few_below(&self, path: &str, skips: &mut Skips) -> bool {
        let (mut to_list, mut count) = (vec![path.to_owned()], 0);
        while let Some(path) = to_list.pop() {
            let listed = directories_in(&self.root, &path, skips);
            count += listed.groups.len();
            if listed.has_nameless || count > DELEGATED_NODES_MAX / 2 {
                return false;
            }
            to_list.extend(listed.groups.into_iter().map(|(name, _)| format!("{path}/{name}")));
        }
        true
    }
}
