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

/// A sorted set of requests. Insertion, removal and look-up cost O(log n) on average, whatever the order of offsets: the
/// shape depends on a fixed pseudo-random sequence only, so runs repeat.
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
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
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
        let (left, right) = self.split(at, key);
        let node = &mut self.nodes[index as usize];
        (node.left, node.right) = (left, right);
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
        let below = self.merge(left, right);
        self.set(link, below);
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

    /// Splits into keys below `key` and the rest.
    fn split(&mut self, at: u32, key: (u64, u64)) -> (u32, u32) {
        if at == NONE {
            return (NONE, NONE);
        }
        let node = self.nodes[at as usize];
        if node.key < key {
            let (left, right) = self.split(node.right, key);
            self.nodes[at as usize].right = left;
            (at, right)
        } else {
            let (left, right) = self.split(node.left, key);
            self.nodes[at as usize].left = right;
            (left, at)
        }
    }

    /// Joins two treaps, every key of the first below every key of the second.
    fn merge(&mut self, left: u32, right: u32) -> u32 {
        if left == NONE || right == NONE {
            return if left == NONE { right } else { left };
        }
        if self.nodes[left as usize].priority > self.nodes[right as usize].priority {
            let below = self.nodes[left as usize].right;
            self.nodes[left as usize].right = self.merge(below, right);
            left
        } else {
            let below = self.nodes[right as usize].left;
            self.nodes[right as usize].left = self.merge(left, below);
            right
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Sorted;
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
