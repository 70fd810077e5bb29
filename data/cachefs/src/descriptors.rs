//! How many descriptors each tree may hold. A file that the kernel knows is a descriptor here, and the process may have only so many: a
//! part is set aside for each tree, and what is left goes to whoever comes first, so that a tree which takes all that is left keeps no
//! other from its own part. Pure.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// What all trees share.
#[derive(Debug)]
pub struct Descriptors {
    /// Set aside for each tree.
    part: AtomicU64,
    /// What all trees may take beyond their parts, and what they have.
    common_max: AtomicU64,
    common: AtomicU64,
    /// Every tree that takes of them.
    trees: Mutex<Vec<Weak<Holding>>>,
}

impl Default for Descriptors {
    /// As many as anybody wants.
    fn default() -> Self {
        Self {
            part: AtomicU64::new(u64::MAX),
            common_max: AtomicU64::new(0),
            common: AtomicU64::new(0),
            trees: Mutex::default(),
        }
    }
}

impl Descriptors {
    /// So many in all for so many trees: half of them in equal parts, the other half for whoever needs more.
    pub fn new(all: u64, trees: u64) -> Self {
        let descriptors = Self::default();
        descriptors.share(all, trees);
        descriptors
    }

    /// Shares them out anew. A tree that has more than its part then keeps what it has, on what all share; where that comes to
    /// more than there is, nobody has more than its part until enough was given back.
    pub fn share(&self, all: u64, trees: u64) {
        let mut holdings = self.trees.lock().unwrap_or_else(PoisonError::into_inner);
        let part = all / 2 / trees.max(1);
        self.part.store(part, Ordering::Relaxed);
        self.common_max.store(all - part * trees.max(1), Ordering::Relaxed);
        holdings.retain(|holding| holding.upgrade().map(|holding| holding.set_part(part)).is_some());
    }

    /// Whether more than half is taken of what no tree has in any case.
    pub fn is_short(&self) -> bool {
        self.common.load(Ordering::Relaxed) > self.common_max.load(Ordering::Relaxed) / 2
    }

    /// What each tree has in any case.
    pub fn part(&self) -> u64 {
        self.part.load(Ordering::Relaxed)
    }
}

/// What one tree holds.
#[derive(Debug)]
pub(crate) struct Holding {
    shared: Arc<Descriptors>,
    state: Mutex<HoldingState>,
}

#[derive(Debug)]
struct HoldingState {
    held: u64,
    part: u64,
}

impl HoldingState {
    /// How many of so many are beyond the tree's part.
    fn beyond(&self, held: u64) -> u64 {
        held.saturating_sub(self.part)
    }
}

/// Some that are held until this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    of: Arc<Holding>,
    count: u64,
}

impl Holding {
    pub(crate) fn new(shared: Arc<Descriptors>) -> Arc<Self> {
        // Locked until it is entered, so that no part that is set meanwhile passes it by.
        let mut trees = shared.trees.lock().unwrap_or_else(PoisonError::into_inner);
        let state = Mutex::new(HoldingState { held: 0, part: shared.part() });
        let holding = Arc::new(Self { shared: Arc::clone(&shared), state });
        trees.push(Arc::downgrade(&holding));
        drop(trees);
        holding
    }

    /// Takes so many, if there are as many.
    pub(crate) fn take(self: &Arc<Self>, count: u64) -> Option<Held> {
        let mut state = self.state();
        let more = state.beyond(state.held + count) - state.beyond(state.held);
        let most = self.shared.common_max.load(Ordering::Relaxed);
        let fits = |common: u64| common.checked_add(more).filter(|sum| *sum <= most);
        if more > 0 {
            self.shared.common.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()?;
        }
        state.held += count;
        drop(state);
        Some(Held { of: Arc::clone(self), count })
    }

    /// Whether it has more than its part while there are few.
    pub(crate) fn is_short(&self) -> bool {
        let state = self.state();
        self.shared.is_short() && state.held >= state.part
    }

    /// How many are held.
    pub(crate) fn held(&self) -> u64 {
        self.state().held
    }

    fn set_part(&self, part: u64) {
        let mut state = self.state();
        let before = state.beyond(state.held);
        state.part = part;
        let after = state.beyond(state.held);
        self.shared.common.fetch_add(after, Ordering::Relaxed);
        self.shared.common.fetch_sub(before, Ordering::Relaxed);
    }

    fn state(&self) -> MutexGuard<'_, HoldingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut state = self.of.state();
        let less = state.beyond(state.held) - state.beyond(state.held - self.count);
        state.held -= self.count;
        self.of.shared.common.fetch_sub(less, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{Descriptors, Holding};
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    fn trees<const N: usize>(all: u64) -> [Arc<Holding>; N] {
        let shared = Arc::new(Descriptors::new(all, N as u64));
        std::array::from_fn(|_| Holding::new(Arc::clone(&shared)))
    }

    #[test]
    fn who_takes_all_that_is_left_keeps_no_other_from_its_part() {
        let [greedy, other] = trees(40);
        let taken: Vec<_> = std::iter::from_fn(|| greedy.take(2)).collect();
        assert_eq!((taken.len(), greedy.held()), (15, 30), "its part of ten, and the common twenty");
        let part: Vec<_> = std::iter::from_fn(|| other.take(2)).collect();
        assert_eq!(part.len(), 5);
        drop(taken);
        assert_eq!(std::iter::from_fn(|| other.take(2)).map(std::mem::forget).count(), 10, "it is free again");
    }

    #[test]
    fn what_is_taken_and_given_back_at_once_by_many_leaves_nothing() {
        let [one, two] = trees(1000);
        std::thread::scope(|scope| {
            for seed in 0..4 {
                let tree = if seed % 2 == 0 { &one } else { &two };
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(seed);
                    for _ in 0..200 {
                        let held: Vec<_> = (0..random.usize(..400)).map(|_| tree.take(random.u64(1..3))).collect();
                        drop(held);
                    }
                });
            }
        });
        assert_eq!((one.held(), two.held(), one.shared.common.load(Ordering::Relaxed)), (0, 0, 0));
    }

    #[test]
    fn without_a_limit_there_is_none() {
        let tree = Holding::new(Arc::default());
        assert!(tree.take(1 << 40).is_some() && tree.held() == 0);
    }

    #[test]
    fn parts_are_shared_out_anew_while_they_are_used_and_none_is_lost() {
        let [greedy, other] = trees(40);
        let shared = Arc::clone(&greedy.shared);
        let held: Vec<_> = std::iter::from_fn(|| greedy.take(1)).collect();
        assert_eq!(held.len(), 30);
        shared.share(40, 4);
        let new = [Holding::new(Arc::clone(&shared)), Holding::new(Arc::clone(&shared))];
        assert!(greedy.take(1).is_none(), "it has more than its new part and the common half");
        for tree in [&other, &new[0], &new[1]] {
            assert_eq!(std::iter::from_fn(|| tree.take(1)).map(std::mem::forget).count(), 5, "the new part");
        }
        drop(held);
        assert_eq!(shared.common.load(Ordering::Relaxed), 0);
        shared.share(40, 2);
        assert_eq!(std::iter::from_fn(|| greedy.take(1)).map(std::mem::forget).count(), 30);
    }
}
