//! A binary min-heap of small integers with keys that can change in place.

use minerva_model::Nanos;
use std::cmp::Reverse;
use std::fmt;

/// A min-heap of slots `0..n`, each at most once, with a key each. Changing or removing any slot costs O(log n); nothing is
/// allocated once the greatest slot and the greatest size have been seen. Equal keys leave in order of slot, so that runs
/// repeat.
#[derive(Clone, Debug)]
pub struct IndexedHeap<K: HeapKey> {
    /// Slots in heap order, with their keys beside them.
    entries: Vec<K::Entry>,
    /// Where each slot stands in `entries`; `ABSENT` when it does not.
    positions: Vec<u32>,
}

const ABSENT: u32 = u32::MAX;

/// A heap of so many entries lies in the first cache, whatever else does.
const SMALL_MAX: usize = 128;

/// A key, and how a heap keeps it with its slot.
pub trait HeapKey: Copy + PartialOrd {
    /// Both.
    type Entry: Copy + fmt::Debug;

    /// A key with a slot.
    fn with(self, slot: u32) -> Self::Entry;

    /// The key and the slot of an entry.
    fn of(entry: Self::Entry) -> (Self, u32);

    /// Whether one entry leaves before another: the lesser key, of equal ones the lesser slot.
    fn is_before(left: &Self::Entry, right: &Self::Entry) -> bool;

    /// The same without a jump: which of two children is less nobody can foresee.
    fn is_before_without_jump(left: &Self::Entry, right: &Self::Entry) -> bool;
}

/// A key that is kept beside its slot as it is.
pub trait PlainKey: Copy + PartialOrd + fmt::Debug {}

impl<T: PlainKey> HeapKey for T {
    type Entry = (T, u32);

    fn with(self, slot: u32) -> Self::Entry {
        (self, slot)
    }

    fn of(entry: Self::Entry) -> (Self, u32) {
        entry
    }

    fn is_before(left: &Self::Entry, right: &Self::Entry) -> bool {
        left.0 < right.0 || left.0 == right.0 && left.1 < right.1
    }

    fn is_before_without_jump(left: &Self::Entry, right: &Self::Entry) -> bool {
        (left.0 < right.0) | ((left.0 == right.0) & (left.1 < right.1))
    }
}

impl PlainKey for u16 {}
impl PlainKey for u64 {}
impl PlainKey for i64 {}
impl PlainKey for i128 {}
impl PlainKey for u128 {}
impl PlainKey for Nanos {}
impl PlainKey for Reverse<u64> {}

/// A number of 96 bits, kept with its slot in 16 bytes, where an `i128` and a slot take 32. One that does not fit is the greatest or the
/// least that does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Narrow(pub i128);

impl HeapKey for Narrow {
    type Entry = i128;

    fn with(self, slot: u32) -> i128 {
        const LIMIT: i128 = 1 << 95;
        self.0.clamp(-LIMIT, LIMIT - 1) << 32 | i128::from(slot)
    }

    fn of(entry: i128) -> (Self, u32) {
        (Self(entry >> 32), entry as u32)
    }

    fn is_before(left: &i128, right: &i128) -> bool {
        left < right
    }

    fn is_before_without_jump(left: &i128, right: &i128) -> bool {
        left < right
    }
}

impl<K: HeapKey> Default for IndexedHeap<K> {
    fn default() -> Self {
        Self { entries: Vec::new(), positions: Vec::new() }
    }
}

impl<K: HeapKey> IndexedHeap<K> {
    /// An empty heap.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many slots are in it.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no slot is in it.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The key of `slot`, if it is in the heap.
    pub fn key(&self, slot: usize) -> Option<K> {
        self.position(slot).map(|position| K::of(self.entries[position]).0)
    }

    /// Puts `slot` in, or changes its key.
    pub fn set(&mut self, slot: usize, key: K) {
        let entry = key.with(slot as u32);
        if let Some(position) = self.position(slot) {
            let before = self.entries[position];
            // Most often nothing changes but the queue behind.
            if K::is_before(&entry, &before) {
                self.move_up(position, entry);
            } else if K::is_before(&before, &entry) {
                self.move_down(position, entry);
            }
            return;
        }
        if self.positions.len() <= slot {
            self.positions.resize(slot + 1, ABSENT);
        }
        self.entries.push(entry);
        self.move_up(self.entries.len() - 1, entry);
    }

    /// Takes `slot` out; whether it was in.
    pub fn remove(&mut self, slot: usize) -> bool {
        let Some(position) = self.position(slot) else { return false };
        let Some(last) = self.entries.pop() else { return false };
        self.positions[slot] = ABSENT;
        // The last one goes where the gap is.
        if let Some(removed) = self.entries.get(position) {
            match K::is_before(&last, removed) {
                true => self.move_up(position, last),
                false => self.move_down(position, last),
            }
        }
        true
    }

    /// The least key and its slot.
    pub fn peek(&self) -> Option<(K, usize)> {
        self.entries.first().map(|entry| Self::shown(*entry))
    }

    /// The least key and its slot, `slot` left aside.
    pub fn peek_except(&self, slot: usize) -> Option<(K, usize)> {
        let first = self.peek()?;
        if first.1 != slot {
            return Some(first);
        }
        // The next least is one of the root's children.
        let least = match self.entries.len() {
            0 | 1 => return None,
            2 => 1,
            _ => 1 + usize::from(K::is_before(&self.entries[2], &self.entries[1])),
        };
        Some(Self::shown(self.entries[least]))
    }

    /// Takes the least key out.
    pub fn pop(&mut self) -> Option<(K, usize)> {
        let (key, slot) = self.peek()?;
        self.remove(slot);
        Some((key, slot))
    }

    /// Every slot and key, in no useful order; for rare sweeps.
    pub fn iter(&self) -> impl Iterator<Item = (K, usize)> + '_ {
        self.entries.iter().map(|entry| Self::shown(*entry))
    }

    fn shown(entry: K::Entry) -> (K, usize) {
        let (key, slot) = K::of(entry);
        (key, slot as usize)
    }

    fn position(&self, slot: usize) -> Option<usize> {
        self.positions.get(slot).filter(|position| **position != ABSENT).map(|position| *position as usize)
    }

    fn put(&mut self, position: usize, entry: K::Entry) {
        self.entries[position] = entry;
        self.positions[K::of(entry).1 as usize] = position as u32;
    }

    /// Finds the place of `entry` from `position`, where there is a gap, towards the root.
    fn move_up(&mut self, mut position: usize, entry: K::Entry) {
        while position > 0 {
            let parent = self.entries[(position - 1) / 2];
            if !K::is_before(&entry, &parent) {
                break;
            }
            self.put(position, parent);
            position = (position - 1) / 2;
        }
        self.put(position, entry);
    }

    /// The same away from the root.
    fn move_down(&mut self, mut position: usize, entry: K::Entry) {
        loop {
            let left = 2 * position + 1;
            if left + 1 >= self.entries.len() || self.entries.len() > SMALL_MAX {
                return self.move_down_by_guess(position, entry);
            }
            let least = left + usize::from(K::is_before_without_jump(&self.entries[left + 1], &self.entries[left]));
            let child = self.entries[least];
            if !K::is_before(&child, &entry) {
                break;
            }
            self.put(position, child);
            position = least;
        }
        self.put(position, entry);
    }

    /// The same where entries come from afar: the processor guesses which child is less, and fetches that one's children meanwhile.
    #[inline(never)]
    fn move_down_by_guess(&mut self, mut position: usize, entry: K::Entry) {
        loop {
            let mut least = entry;
            let mut next = position;
            for child in [2 * position + 1, 2 * position + 2] {
                if let Some(other) = self.entries.get(child)
                    && K::is_before(other, &least)
                {
                    (least, next) = (*other, child);
                }
            }
            self.put(position, least);
            if next == position {
                return;
            }
            position = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{HeapKey, IndexedHeap, Narrow};
    use proptest::prelude::{any, prop_assert_eq, proptest};
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn narrow_keys_are_in_the_order_of_their_numbers_and_slots(left in any::<(i64, u32)>(), right in any::<(i64, u32)>()) {
            let [left, right] = [left, right].map(|(key, slot)| (i128::from(key) << 20, slot));
            let [one, other] = [left, right].map(|(key, slot)| Narrow(key).with(slot));
            prop_assert_eq!(Narrow::of(one), (Narrow(left.0), left.1));
            prop_assert_eq!(Narrow::is_before(&one, &other), left < right);
            prop_assert_eq!(Narrow::of(Narrow(i128::MAX).with(7)), (Narrow((1 << 95) - 1), 7));
            prop_assert_eq!(Narrow::of(Narrow(i128::MIN).with(u32::MAX)), (Narrow(-(1 << 95)), u32::MAX));
        }

        #[test]
        fn it_agrees_with_a_sorted_map(steps in proptest::collection::vec((0usize..40, any::<Option<u16>>()), 0..400)) {
            let mut heap = IndexedHeap::new();
            let mut model: BTreeMap<usize, u16> = BTreeMap::new();
            for (slot, key) in steps {
                match key {
                    Some(key) => {
                        heap.set(slot, key);
                        model.insert(slot, key);
                    }
                    None => prop_assert_eq!(heap.remove(slot), model.remove(&slot).is_some()),
                }
                let least = model.iter().map(|(slot, key)| (*key, *slot)).min();
                prop_assert_eq!(heap.peek(), least);
                let except = least.map_or(0, |(_, slot)| slot);
                let next = model.iter().filter(|(slot, _)| **slot != except).map(|(slot, key)| (*key, *slot)).min();
                prop_assert_eq!(heap.peek_except(except), next);
                prop_assert_eq!(heap.len(), model.len());
            }
            let mut left = Vec::new();
            while let Some(entry) = heap.pop() {
                left.push(entry);
            }
            let mut sorted: Vec<_> = model.into_iter().map(|(slot, key)| (key, slot)).collect();
            sorted.sort_unstable();
            prop_assert_eq!(left, sorted);
        }
    }
}
