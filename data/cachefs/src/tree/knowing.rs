//! Which files the kernel knows, and what that costs in descriptors: each has one for as long as the kernel may name it.

use super::Tree;
use crate::descriptors::Held;
use crate::file_system::Result;
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
