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
        if let Some(position) = self.position(slot) {
            self.entries[position].0 = key;
            let position = self.sift_up(position);
            self.sift_down(position);
            return;
        }
        if self.positions.len() <= slot {
            self.positions.resize(slot + 1, ABSENT);
        }
        self.entries.push((key, slot as u32));
        self.positions[slot] = (self.entries.len() - 1) as u32;
        self.sift_up(self.entries.len() - 1);
    }

    /// Takes `slot` out; whether it was in.
    pub fn remove(&mut self, slot: usize) -> bool {
        let Some(position) = self.position(slot) else { return false };
        self.entries.swap_remove(position);
        self.positions[slot] = ABSENT;
        if position < self.entries.len() {
            self.positions[self.entries[position].1 as usize] = position as u32;
            let position = self.sift_up(position);
            self.sift_down(position);
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
            _ => 1 + usize::from(self.is_before(2, 1)),
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

    fn is_before(&self, left: usize, right: usize) -> bool {
        let (left, right) = (&self.entries[left], &self.entries[right]);
        left.0 < right.0 || (left.0 == right.0 && left.1 < right.1)
    }

    fn swap(&mut self, left: usize, right: usize) {
        self.entries.swap(left, right);
        self.positions[self.entries[left].1 as usize] = left as u32;
        self.positions[self.entries[right].1 as usize] = right as u32;
    }

    fn sift_up(&mut self, mut position: usize) -> usize {
        while position > 0 && self.is_before(position, (position - 1) / 2) {
            self.swap(position, (position - 1) / 2);
            position = (position - 1) / 2;
        }
        position
    }

    fn sift_down(&mut self, mut position: usize) {
        loop {
            let mut least = position;
            for child in [2 * position + 1, 2 * position + 2] {
                if child < self.entries.len() && self.is_before(child, least) {
                    least = child;
                }
            }
            if least == position {
                return;
            }
            self.swap(position, least);
            position = least;
        }
    }
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
