//! What there is little of, and how much of it each user of the machine has: connections, and streams to the server. No user can take
//! it from all others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Places of one kind.
#[derive(Clone, Debug)]
pub(crate) struct Places(Arc<Mutex<Counts>>);

#[derive(Debug)]
struct Counts {
    places_max: usize,
    taken: usize,
    taken_by: BTreeMap<u32, usize>,
}

/// A place that is taken, given back by being dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Places,
    user: u32,
}

impl Places {
    /// At least four, of which a user may have three quarters.
    pub(crate) fn new(places_max: usize) -> Self {
        Self(Arc::new(Mutex::new(Counts { places_max: places_max.max(4), taken: 0, taken_by: BTreeMap::new() })))
    }

    /// One for the user; none if there is none, or the user has as many as it may.
    pub(crate) fn take(&self, user: u32) -> Option<Place> {
        let mut counts = self.lock();
        let taken_by_user = counts.taken_by.get(&user).copied().unwrap_or(0);
        if counts.taken >= counts.places_max || taken_by_user >= counts.places_max / 4 * 3 {
            return None;
        }
        counts.taken += 1;
        counts.taken_by.insert(user, taken_by_user + 1);
        Some(Place { places: self.clone(), user })
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.places.lock();
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
    use super::Places;

    #[test]
    fn no_user_takes_all_places_from_the_others() {
        let places = Places::new(8);
        let mut crowd: Vec<_> = (0..6).map(|_| places.take(1000).expect("three quarters")).collect();
        assert!(places.take(1000).is_none());
        let others = [places.take(1001), places.take(1002)].map(|place| place.expect("a quarter is for others"));
        assert!(places.take(1003).is_none(), "there are no more");
        crowd.pop();
        assert!(places.take(1003).is_some());
        drop((crowd, others));
        assert_eq!(places.lock().taken, 0);
        assert!(places.lock().taken_by.is_empty());
    }
}
