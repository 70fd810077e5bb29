//! How many descriptors each tree may hold. A file that the kernel knows is a descriptor here, and the process may have only so many: a
//! part is set aside for each tree, and what is left goes to whoever comes first, so that a tree which takes all that is left keeps no
//! other from its own part. Pure.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What all trees share.
#[derive(Debug)]
pub struct Descriptors {
    /// Set aside for each tree.
    part: u64,
    /// What all trees may take beyond their parts, and what they have.
    common_max: u64,
    common: AtomicU64,
}

impl Default for Descriptors {
    /// As many as anybody wants.
    fn default() -> Self {
        Self { part: u64::MAX, common_max: 0, common: AtomicU64::new(0) }
    }
}

impl Descriptors {
    /// So many in all for so many trees: half of them in equal parts, the other half for whoever needs more.
    pub fn new(all: u64, trees: u64) -> Self {
        let part = all / 2 / trees.max(1);
        Self { part, common_max: all - part * trees.max(1), common: AtomicU64::new(0) }
    }

    /// Whether more than half is taken of what no tree has in any case.
    pub fn is_short(&self) -> bool {
        self.common.load(Ordering::Relaxed) > self.common_max / 2
    }

    /// What each tree has in any case.
    pub fn part(&self) -> u64 {
        self.part
    }
}

/// What one tree holds.
#[derive(Debug)]
pub(crate) struct Holding {
    shared: Arc<Descriptors>,
    held: Mutex<u64>,
}

/// Some that are held until this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    of: Arc<Holding>,
    count: u64,
}

impl Holding {
    pub(crate) fn new(shared: Arc<Descriptors>) -> Self {
        Self { shared, held: Mutex::new(0) }
    }

    /// Takes so many, if there are as many.
    pub(crate) fn take(self: &Arc<Self>, count: u64) -> Option<Held> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let more = self.beyond(*held + count) - self.beyond(*held);
        let fits = |common: u64| common.checked_add(more).filter(|sum| *sum <= self.shared.common_max);
        if more > 0 {
            self.shared.common.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()?;
        }
        *held += count;
        drop(held);
        Some(Held { of: Arc::clone(self), count })
    }

    /// Whether it has more than its part while there are few.
    pub(crate) fn is_short(&self) -> bool {
        self.shared.is_short() && self.held() >= self.shared.part
    }

    /// How many are held.
    pub(crate) fn held(&self) -> u64 {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn beyond(&self, held: u64) -> u64 {
        held.saturating_sub(self.shared.part)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut held = self.of.held.lock().unwrap_or_else(PoisonError::into_inner);
        let less = self.of.beyond(*held) - self.of.beyond(*held - self.count);
        *held -= self.count;
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
        std::array::from_fn(|_| Arc::new(Holding::new(Arc::clone(&shared))))
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
        let tree = Arc::new(Holding::new(Arc::default()));
        assert!(tree.take(1 << 40).is_some() && tree.held() == 0);
    }
}
