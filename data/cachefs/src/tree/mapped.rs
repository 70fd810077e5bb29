//! Files that occupy more or less while nobody tells us, so that it is looked again and again.
//!
//! Where the kernel reads by itself it maps the file below, and of what is stored there nothing is told, while the file is open or after: it
//! tells of a closed file while its mapping lives, and what a file without a name occupies is not free before that ends. The kernel says by a
//! lease who else has the file, but not when that ends.
//!
//! And XFS gives a file that is written room in advance, up to as much as it has, which counts as its own until XFS takes it back: when its
//! last writer closes it, after we are told, or, of one that was written again, some minutes later.

use super::Tree;
use crate::lease::is_shared;
use crate::node::{Node, NodeState};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Files that one look looks at; a later one goes on with the others.
const LOOKED_AT: usize = 1000;
/// So long room given in advance may take to be taken back: XFS looks every five minutes, and passes over what was just written.
const SHRINKS_FOR: Duration = Duration::from_secs(660);

/// The files that are looked at, each counted once more in the table of nodes: the kernel may forget it before its last store was seen.
#[derive(Debug, Default)]
pub(super) struct Mapped(Mutex<Files>);

#[derive(Debug, Default)]
struct Files {
    nodes: BTreeMap<u64, Arc<Node>>,
    /// Those of which room given in advance is about to be taken back.
    shrinking: BTreeSet<u64>,
    looked_up_to: u64,
}

impl Mapped {
    /// The kernel knows none of them any more.
    pub(super) fn clear(&self) {
        *self.files() = Files::default();
    }

    /// Whether one look reaches all that are shrinking, this one too. Others are open, or mapped, and have to be looked at anyway.
    fn has_room_for(&self, number: u64) -> bool {
        let files = self.files();
        files.shrinking.len() < LOOKED_AT || files.shrinking.contains(&number)
    }

    /// Whether it was there already.
    fn insert(&self, node: &Arc<Node>, is_shrinking: bool) -> bool {
        let mut files = self.files();
        if is_shrinking {
            files.shrinking.insert(node.number);
        }
        files.nodes.insert(node.number, Arc::clone(node)).is_some()
    }

    /// Whether it was there.
    fn remove(&self, number: u64) -> bool {
        let mut files = self.files();
        files.shrinking.remove(&number);
        files.nodes.remove(&number).is_some()
    }

    /// Those whose turn it is.
    fn in_turn(&self) -> Vec<Arc<Node>> {
        let mut files = self.files();
        let later = files.nodes.range((Bound::Excluded(files.looked_up_to), Bound::Unbounded)).take(LOOKED_AT);
        let found: Vec<_> = later.map(|(_, node)| Arc::clone(node)).collect();
        files.looked_up_to = if found.len() < LOOKED_AT { 0 } else { found.last().map_or(0, |last| last.number) };
        found
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tree {
    /// Counts what was stored to files that are or were mapped, and looks which of those that are closed still are.
    pub fn look_at_mapped(&self) {
        for node in self.mapped.in_turn() {
            // One that is busy is in use; the next look finds it.
            let Some(mut state) = node.try_lock() else { continue };
            if !self.look_at(&node, &mut state) {
                self.let_go(&node);
            } else if !is_shrinking(&state) {
                self.mapped.files().shrinking.remove(&node.number);
            }
        }
    }

    /// Whether it is to be looked at again.
    fn look_at(&self, node: &Node, state: &mut NodeState) -> bool {
        if state.opens > 0 {
            if state.may_be_stored_to || is_shrinking(state) {
                self.settle(node, state, 0);
            }
            return state.may_be_stored_to || is_shrinking(state);
        }
        if !self.is_over(node, state) {
            return true;
        }
        if is_shrinking(state) {
            self.settle(node, state, 0);
        }
        is_shrinking(state)
    }

    /// Nobody has the file open any more.
    pub(super) fn close(&self, node: &Arc<Node>, state: &mut NodeState) {
        if state.may_be_stored_to {
            state.shrinks_until = Some(Instant::now() + SHRINKS_FOR);
        } else if state.has_advance {
            // It may have been taken back while it was open and nobody looked.
            self.settle(node, state, 0);
        }
        if !self.is_over(node, state) || self.is_to_shrink(node, state) {
            self.watch(node, state);
        } else {
            // Also where it was to be looked at: what it occupied is free only once we let go of it.
            self.let_go(node);
        }
    }

    /// Nobody has it open any more to write, but somebody still has to read, perhaps for ever.
    pub(super) fn last_writer_gone(&self, node: &Arc<Node>, state: &mut NodeState) {
        state.shrinks_until = Some(Instant::now() + SHRINKS_FOR);
        if self.is_to_shrink(node, state) {
            self.watch(node, state);
        }
    }

    /// Whether it is looked at for what it will be without its advance.
    fn is_to_shrink(&self, node: &Node, state: &NodeState) -> bool {
        is_shrinking(state) && self.mapped.has_room_for(node.number)
    }

    /// From now on it is looked at.
    pub(super) fn watch(&self, node: &Arc<Node>, state: &NodeState) {
        if !self.nodes.count_again(node) {
            return;
        }
        if self.mapped.insert(node, is_shrinking(state)) {
            self.nodes.forget(node.number, 1);
        }
    }

    /// Whether nobody can change it any more but by opening it; then it is counted as it is, or, without a name, no longer.
    fn is_over(&self, node: &Node, state: &mut NodeState) -> bool {
        if state.may_be_mapped {
            // Where it cannot be opened that is found out later.
            state.may_be_mapped = node.open_data(state).map_or(true, |data| is_shared(&data));
        }
        if state.may_be_mapped && (state.is_gone || state.may_be_stored_to) {
            self.settle(node, state, 0);
            return false;
        }
        if state.is_gone {
            self.refund(node, state);
            state.shrinks_until = None;
        } else if state.may_be_stored_to {
            self.settle(node, state, 0);
        }
        state.may_be_stored_to = false;
        true
    }

    fn let_go(&self, node: &Node) {
        if self.mapped.remove(node.number) {
            self.nodes.forget(node.number, 1);
        }
    }
}

fn is_shrinking(state: &NodeState) -> bool {
    state.has_advance && state.shrinks_until.is_some_and(|until| Instant::now() < until)
}

#[cfg(test)]
mod tests;
