//! Room for connections, or for calls: so many at one time, and fewer of one user, so that nobody takes all of what others may have too.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Counts them by the number of the user.
#[derive(Debug)]
pub(crate) struct Room {
    most: usize,
    most_of_one: usize,
    taken: Mutex<BTreeMap<u32, usize>>,
}

/// One that is counted while this is there.
#[derive(Debug)]
pub(crate) struct Taken {
    room: Arc<Room>,
    uid: u32,
}

impl Room {
    pub(crate) fn new(most: usize, most_of_one: usize) -> Arc<Self> {
        Arc::new(Self { most, most_of_one, taken: Mutex::default() })
    }

    /// One more of a user, if there is room.
    pub(crate) fn take(self: &Arc<Self>, uid: u32) -> Option<Taken> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let own = taken.get(&uid).copied().unwrap_or_default();
        if own >= self.most_of_one || taken.values().sum::<usize>() >= self.most {
            return None;
        }
        taken.insert(uid, own + 1);
        Some(Taken { room: Arc::clone(self), uid })
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut taken = self.room.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let left = taken.get(&self.uid).map_or(0, |own| own.saturating_sub(1));
        match left {
            0 => drop(taken.remove(&self.uid)),
            _ => drop(taken.insert(self.uid, left)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Room;

    #[test]
    fn one_user_takes_no_more_than_its_part_and_all_no_more_than_there_is() {
        let room = Room::new(3, 2);
        let mut first = vec![room.take(7), room.take(7)];
        assert!(first.iter().all(Option::is_some) && room.take(7).is_none());
        let second = room.take(8);
        assert!(second.is_some() && room.take(9).is_none());
        first.pop();
        assert!(room.take(9).is_some(), "what is given back is there again");
        drop((first, second));
        assert!(room.taken.lock().expect("nobody panics").is_empty());
    }
}
