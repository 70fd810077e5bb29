//! A binary min-heap of small integers with keys that can change in place.

/// A min-heap of slots `0..n`, each at most once, with a key each. Changing or removing any slot costs O(log n); nothing is
/// allocated once the greatest slot and the greatest size have been seen. Equal keys leave in order of slot, so that runs
/// repeat.
#[derive(Clone, Debug)]
pub struct IndexedHeap<K> {
    /// Slots in heap order, with their keys beside them.
    entries: Vec<(K, u32)>,
    /// Where each slot stands in `entries`; `ABSENT` when it does not.
    positions: Vec<u32>,
}

const ABSENT: u32 = u32::MAX;

/// A heap of so many entries lies in the first cache, whatever else does.
const SMALL_MAX: usize = 128;

impl<K> Default for IndexedHeap<K> {
    fn default() -> Self {
        Self { entries: Vec::new(), positions: Vec::new() }
    }
}

impl<K: PartialOrd + Copy> IndexedHeap<K> {
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
        self.position(slot).map(|position| self.entries[position].0)
    }

    /// Puts `slot` in, or changes its key.
    pub fn set(&mut self, slot: usize, key: K) {
        let entry = (key, slot as u32);
        if let Some(position) = self.position(slot) {
            let before = self.entries[position].0;
            // Most often nothing changes but the queue behind.
            match (key < before, key == before) {
                (true, _) => self.move_up(position, entry),
                (_, true) => {}
                _ => self.move_down(position, entry),
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
            match is_before(&last, removed) {
                true => self.move_up(position, last),
                false => self.move_down(position, last),
            }
        }
        true
    }

    /// The least key and its slot.
    pub fn peek(&self) -> Option<(K, usize)> {
        self.entries.first().map(|(key, slot)| (*key, *slot as usize))
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
            _ => 1 + usize::from(is_before(&self.entries[2], &self.entries[1])),
        };
        let (key, slot) = self.entries[least];
        Some((key, slot as usize))
    }

    /// Takes the least key out.
    pub fn pop(&mut self) -> Option<(K, usize)> {
        let (key, slot) = self.peek()?;
        self.remove(slot);
        Some((key, slot))
    }

    /// Every slot and key, in no useful order; for rare sweeps.
    pub fn iter(&self) -> impl Iterator<Item = (K, usize)> + '_ {
        self.entries.iter().map(|(key, slot)| (*key, *slot as usize))
    }

    fn position(&self, slot: usize) -> Option<usize> {
        self.positions.get(slot).filter(|position| **position != ABSENT).map(|position| *position as usize)
    }

    fn put(&mut self, position: usize, entry: (K, u32)) {
        self.entries[position] = entry;
        self.positions[entry.1 as usize] = position as u32;
    }

    /// Finds the place of `entry` from `position`, where there is a gap, towards the root.
    fn move_up(&mut self, mut position: usize, entry: (K, u32)) {
        while position > 0 {
            let parent = self.entries[(position - 1) / 2];
            if !is_before(&entry, &parent) {
                break;
            }
            self.put(position, parent);
            position = (position - 1) / 2;
        }
        self.put(position, entry);
    }

    /// The same away from the root.
    fn move_down(&mut self, mut position: usize, entry: (K, u32)) {
        loop {
            let left = 2 * position + 1;
            if left + 1 >= self.entries.len() || self.entries.len() > SMALL_MAX {
                return self.move_down_by_guess(position, entry);
            }
            let least = left + usize::from(is_before_without_jump(&self.entries[left + 1], &self.entries[left]));
            let child = self.entries[least];
            if !is_before(&child, &entry) {
                break;
            }
            self.put(position, child);
            position = least;
        }
        self.put(position, entry);
    }

    /// The same where entries come from afar: the processor guesses which child is less, and fetches that one's children meanwhile.
    #[inline(never)]
    fn move_down_by_guess(&mut self, mut position: usize, entry: (K, u32)) {
        loop {
            let mut least = entry;
            let mut next = position;
            for child in [2 * position + 1, 2 * position + 2] {
                if let Some(other) = self.entries.get(child)
                    && is_before(other, &least)
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

fn is_before<K: PartialOrd>(left: &(K, u32), right: &(K, u32)) -> bool {
    left.0 < right.0 || left.0 == right.0 && left.1 < right.1
}

/// The same without a jump: which of two children is less nobody can foresee.
fn is_before_without_jump<K: PartialOrd>(left: &(K, u32), right: &(K, u32)) -> bool {
    (left.0 < right.0) | ((left.0 == right.0) & (left.1 < right.1))
}

#[cfg(test)]
mod tests {
    use super::IndexedHeap;
    use proptest::prelude::{any, prop_assert_eq, proptest};
    use std::collections::BTreeMap;

    proptest! {
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
