//! What there is little of, and how much of it each user of the machine has: connections, and streams to the server. No user can take
//! it from all others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Slots of one kind.
#[derive(Clone, Debug)]
pub(crate) struct Slots(Arc<Mutex<Counts>>);

#[derive(Debug)]
struct Counts {
    slots_max: usize,
    taken: usize,
    taken_by: BTreeMap<u32, usize>,
}

/// A slot that is taken, given back by being dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    slots: Slots,
    user: u32,
}

impl Slots {
    /// At least four, of which a user may have three quarters.
    pub(crate) fn new(slots_max: usize) -> Self {
        Self(Arc::new(Mutex::new(Counts { slots_max: slots_max.max(4), taken: 0, taken_by: BTreeMap::new() })))
    }

    /// One for the user; none if there is none, or the user has as many as it may.
    pub(crate) fn take(&self, user: u32) -> Option<Slot> {
        let mut counts = self.lock();
        let taken_by_user = counts.taken_by.get(&user).copied().unwrap_or(0);
        if counts.taken >= counts.slots_max || taken_by_user >= counts.slots_max / 4 * 3 {
            return None;
        }
        counts.taken += 1;
        counts.taken_by.insert(user, taken_by_user + 1);
        Some(Slot { slots: self.clone(), user })
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut counts = self.slots.lock();
        counts.taken -= 1;
        if let Some(count) = counts.taken_by.get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                counts.taken_by.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Slots;

    #[test]
    fn no_user_takes_all_slots_from_the_others() {
        let slots = Slots::new(8);
        let mut crowd: Vec<_> = (0..6).map(|_| slots.take(1000).expect("three quarters")).collect();
        assert!(slots.take(1000).is_none());
        let others = [slots.take(1001), slots.take(1002)].map(|slot| slot.expect("a quarter is for others"));
        assert!(slots.take(1003).is_none(), "there are no more");
        crowd.pop();
        assert!(slots.take(1003).is_some());
        drop((crowd, others));
        assert_eq!(slots.lock().taken, 0);
        assert!(slots.lock().taken_by.is_empty());
    }
}
