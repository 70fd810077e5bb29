//! Requests in order of offset: a treap in an arena, so that nothing is allocated once the greatest size was seen.

use crate::Request;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Node {
    /// Offset, then order of arrival: no two nodes are equal.
    key: (u64, u64),
    request: Request,
    priority: u32,
    left: u32,
    right: u32,
}

/// What leads to a node.
#[derive(Clone, Copy, Debug)]
enum Link {
    Root,
    Left(u32),
    Right(u32),
}

/// The priority of the next node, from that of the one before it.
fn next_priority(before: u32) -> u32 {
    let mut random = before;
    random ^= random << 13;
    random ^= random >> 17;
    random ^= random << 5;
    random
}

/// A sorted set of requests. Insertion, removal and look-up cost O(log n) on average, for offsets that were not chosen by the
/// priorities: those are a fixed pseudo-random sequence, so that runs repeat. A guest that knows it can make one long path of all that it
/// has queued, so nothing here recurses.
#[derive(Clone, Debug)]
pub(crate) struct Sorted {
    nodes: Vec<Node>,
    free: Vec<u32>,
    root: u32,
    random: u32,
    length: usize,
}

impl Default for Sorted {
    fn default() -> Self {
        Self { nodes: Vec::new(), free: Vec::new(), root: NONE, random: 0x9E37_79B9, length: 0 }
    }
}

impl Sorted {
    /// How many requests are in it.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Puts a request in; `sequence` tells it from others at the same offset.
    pub(crate) fn insert(&mut self, request: Request, sequence: u64) {
        self.random = next_priority(self.random);
        let key = (request.offset_bytes, sequence);
        let node = Node { key, request, priority: self.random, left: NONE, right: NONE };
        let index = match self.free.pop() {
            Some(index) => {
                self.nodes[index as usize] = node;
                index
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as u32
            }
        };
        // It stands where the first node of a lesser priority stood, and parts what was below that one.
        let (mut link, mut at) = (Link::Root, self.root);
        while at != NONE && self.nodes[at as usize].priority >= node.priority {
            link = self.towards(at, key);
            at = self.follow(link);
        }
        self.split(at, index);
        self.set(link, index);
        self.length += 1;
    }

    /// Takes out the request with this offset and sequence.
    pub(crate) fn remove(&mut self, offset_bytes: u64, sequence: u64) -> Option<Request> {
        let key = (offset_bytes, sequence);
        let (mut link, mut found) = (Link::Root, self.root);
        while found != NONE && self.nodes[found as usize].key != key {
            link = self.towards(found, key);
            found = self.follow(link);
        }
        if found == NONE {
            return None;
        }
        let Node { left, right, .. } = self.nodes[found as usize];
        self.merge(link, left, right);
        self.free.push(found);
        self.length -= 1;
        Some(self.nodes[found as usize].request)
    }

    /// The request with this offset and sequence.
    pub(crate) fn get(&self, offset_bytes: u64, sequence: u64) -> Option<Request> {
        let key = (offset_bytes, sequence);
        let mut at = self.root;
        while at != NONE && self.nodes[at as usize].key != key {
            at = self.follow(self.towards(at, key));
        }
        (at != NONE).then(|| self.nodes[at as usize].request)
    }

    /// The first request at or after an offset, and its sequence.
    pub(crate) fn at_or_after(&self, offset_bytes: u64) -> Option<(Request, u64)> {
        let mut best = None;
        let mut at = self.root;
        while at != NONE {
            let node = &self.nodes[at as usize];
            if node.key.0 >= offset_bytes {
                best = Some((node.request, node.key.1));
                at = node.left;
            } else {
                at = node.right;
            }
        }
        best
    }

    /// The way from a node to where `key` is or would be.
    fn towards(&self, at: u32, key: (u64, u64)) -> Link {
        if self.nodes[at as usize].key < key { Link::Right(at) } else { Link::Left(at) }
    }

    fn follow(&self, link: Link) -> u32 {
        match link {
            Link::Root => self.root,
            Link::Left(at) => self.nodes[at as usize].left,
            Link::Right(at) => self.nodes[at as usize].right,
        }
    }

    fn set(&mut self, link: Link, to: u32) {
        match link {
            Link::Root => self.root = to,
            Link::Left(at) => self.nodes[at as usize].left = to,
            Link::Right(at) => self.nodes[at as usize].right = to,
        }
    }

    /// Parts what is at and below `at`: what comes before the node `index` goes below it to the left, the rest to the right.
    fn split(&mut self, mut at: u32, index: u32) {
        let key = self.nodes[index as usize].key;
        let (mut before, mut after) = (Link::Left(index), Link::Right(index));
        while at != NONE {
            let onwards = self.towards(at, key);
            let end = if matches!(onwards, Link::Right(_)) { &mut before } else { &mut after };
            let filled = std::mem::replace(end, onwards);
            self.set(filled, at);
            at = self.follow(onwards);
        }
        self.set(before, NONE);
        self.set(after, NONE);
    }

    /// Joins two treaps at `link`, every key of the first below every key of the second.
    fn merge(&mut self, mut link: Link, mut left: u32, mut right: u32) {
        while left != NONE && right != NONE {
            if self.nodes[left as usize].priority > self.nodes[right as usize].priority {
                self.set(link, left);
                link = Link::Right(left);
                left = self.follow(link);
            } else {
                self.set(link, right);
                link = Link::Left(right);
                right = self.follow(link);
            }
        }
        self.set(link, if left == NONE { right } else { left });
    }
}

#[cfg(test)]
mod tests {
    use super::{Sorted, next_priority};
    use crate::{FlowId, Kind, Request, RequestId};
    use minerva_model::Nanos;
    use proptest::prelude::{prop_assert_eq, proptest};
    use std::collections::BTreeMap;

    fn request(offset_bytes: u64, id: u64) -> Request {
        Request {
            id: RequestId(id),
            flow: FlowId(0),
            kind: Kind::Read,
            sync: true,
            tag: None,
            offset_bytes,
            length_bytes: 1,
            arrived: Nanos::ZERO,
        }
    }

    /// Of a thread whose stack is a small part of a worker's.
    #[test]
    fn offsets_chosen_by_the_priorities_take_no_stack() {
        let chain = || {
            let mut random = Sorted::default().random;
            let mut priorities: Vec<u32> = (0..20_000)
                .map(|_| {
                    random = next_priority(random);
                    random
                })
                .collect();
            // The last one in is above all others, and takes the place between them.
            let greatest = (0..priorities.len()).max_by_key(|index| priorities[*index]).unwrap();
            priorities.truncate(greatest);
            assert!(greatest > 5_000, "{greatest}");
            let mut falling: Vec<usize> = (0..greatest).collect();
            falling.sort_by_key(|index| std::cmp::Reverse(priorities[*index]));
            // Each is below the one before it, and from the two ends inwards.
            let mut offsets = vec![0; greatest];
            for (rank, index) in falling.iter().enumerate() {
                offsets[*index] = if rank % 2 == 0 { rank } else { 2 * greatest - rank } as u64;
            }
            let mut sorted = Sorted::default();
            for (sequence, offset) in (0..).zip(offsets.iter().copied().chain([greatest as u64])) {
                sorted.insert(request(offset, sequence), sequence);
            }
            assert!(sorted.remove(greatest as u64, greatest as u64).is_some());
            offsets.sort_unstable();
            for offset in offsets {
                let (first, sequence) = sorted.at_or_after(0).unwrap();
                assert_eq!(first.offset_bytes, offset);
                sorted.remove(offset, sequence);
            }
            sorted.len()
        };
        let small = std::thread::Builder::new().stack_size(128 << 10);
        assert_eq!(small.spawn(chain).unwrap().join().unwrap(), 0);
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_sorted_map(steps in proptest::collection::vec((0u64..50, 0u8..3), 0..300)) {
            let mut sorted = Sorted::default();
            let mut model = BTreeMap::new();
            for (sequence, (offset, action)) in steps.into_iter().enumerate() {
                let sequence = sequence as u64;
                if action < 2 {
                    sorted.insert(request(offset, sequence), sequence);
                    model.insert((offset, sequence), sequence);
                } else if let Some((key, id)) = model.range((offset, 0)..).next().map(|(key, id)| (*key, *id)) {
                    prop_assert_eq!(sorted.at_or_after(offset).map(|(r, s)| (r.id.0, s)), Some((id, key.1)));
                    prop_assert_eq!(sorted.remove(key.0, key.1).map(|r| r.id.0), Some(id));
                    model.remove(&key);
                } else {
                    prop_assert_eq!(sorted.at_or_after(offset).map(|(_, s)| s), None);
                    prop_assert_eq!(sorted.remove(offset, sequence), None);
                }
                prop_assert_eq!(sorted.len(), model.len());
            }
        }
    }
}
