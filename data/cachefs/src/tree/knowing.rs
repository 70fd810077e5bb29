//! Which files the kernel knows, and what that costs in descriptors: each has one for as long as the kernel may name it.

use super::Tree;
use crate::descriptors::Held;
use crate::file_system::Result;
use crate::node::{Node, NodeState};
use rustix::io::Errno;
use std::ffi::OsString;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

/// How often and how long a request waits for descriptors that the kernel is asked to let go.
const WAITS_MAX: u32 = 20;
const WAIT: Duration = Duration::from_millis(5);
/// And how long each waits of who has more than its part, while descriptors are few: the kernel forgets no name of a
/// directory while it waits for an answer about another, so that who used up the rest at once could not be helped.
const PACE: Duration = Duration::from_millis(1);

impl Tree {
    /// Takes so many descriptors; waits a while for files that the kernel is asked to forget.
    pub(crate) fn hold(&self, count: u64) -> Result<Held> {
        if self.holding.is_short() {
            thread::sleep(PACE);
        }
        for _ in 0..WAITS_MAX {
            if let Some(held) = self.holding.take(count) {
                return Ok(held);
            }
            thread::sleep(WAIT);
        }
        self.counters.refused_descriptors.fetch_add(1, Ordering::Relaxed);
        Err(Errno::NFILE)
    }

    /// Takes what a node has that the kernel is about to know: it may have been known to a pass of the spiller alone, which takes none for
    /// the moment that it is at a file, and its data may lie in the spill area, which takes one more.
    pub(super) fn hold_known(&self, node: &Node) -> Result<()> {
        loop {
            let state = node.lock();
            let wanted = u64::from(state.held_known.is_none()) + u64::from(state.holds_no_copy());
            drop(state);
            if wanted == 0 {
                return Ok(());
            }
            // Others may have the file meanwhile.
            let held = self.hold(1)?;
            let mut state = node.lock();
            if state.held_known.is_none() {
                state.held_known = Some(held);
            } else if state.holds_no_copy() {
                state.held_spilled = Some(held);
            }
        }
    }

    /// Takes what the copy of a file that goes to the spill area has, where the kernel knows the file. Whether there was one: else the file
    /// has to stay, or a tenant whose files all go there would have twice the descriptors that it may. Of an open file the copy takes the
    /// place of the data, and has what those had.
    pub(super) fn hold_copy(&self, state: &mut NodeState) -> bool {
        if state.held_known.is_some() && state.held_spilled.is_none() && state.held.is_none() {
            state.held_spilled = self.holding.take(1);
            return state.held_spilled.is_some();
        }
        true
    }

    /// Descriptors that files of this tree have.
    pub fn descriptors(&self) -> u64 {
        self.holding.held()
    }

    /// How many of them are beyond the part that every tree has.
    pub fn descriptors_beyond(&self) -> u64 {
        self.holding.held().saturating_sub(self.options.descriptors.part())
    }

    /// Names of files that nobody has open, with the numbers of their directories, up to so many: what the kernel may be asked to forget.
    pub fn idle_names(&self, most: usize) -> Vec<(u64, OsString)> {
        self.nodes.idle_names(most)
    }
}
