//! Requests in order of offset: a balanced tree in an arena, so that nothing is allocated once the greatest size was seen.

use crate::Request;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Node {
    /// Offset, then order of arrival: no two nodes are equal.
    key: (u64, u64),
    request: Request,
    /// Of what is at and below it, in nodes.
    height: u8,
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

/// A sorted set of requests. Insertion, removal and look-up cost O(log n), whatever a guest chooses as offsets: of each node what is below it
/// to the left is as high as what is to the right, or one higher or lower (Adelson-Velsky and Landis 1962). Nothing recurses.
#[derive(Clone, Debug)]
pub(crate) struct Sorted {
    nodes: Vec<Node>,
    free: Vec<u32>,
    root: u32,
    length: usize,
    /// The links from the root downwards to a place that changes. Kept for the next change.
    path: Vec<Link>,
}

impl Default for Sorted {
    fn default() -> Self {
        // As long as a way can be: 1.44 times 32.
        Self { nodes: Vec::new(), free: Vec::new(), root: NONE, length: 0, path: Vec::with_capacity(48) }
    }
}

impl Sorted {
    /// How many requests are in it.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Puts a request in; `sequence` tells it from others at the same offset.
    pub(crate) fn insert(&mut self, request: Request, sequence: u64) {
        let key = (request.offset_bytes, sequence);
        let node = Node { key, request, height: 1, left: NONE, right: NONE };
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
        self.path.clear();
        let (mut link, mut at) = (Link::Root, self.root);
        while at != NONE {
            self.path.push(link);
            link = self.towards(at, key);
            at = self.follow(link);
        }
        self.set(link, index);
        self.balance();
        self.length += 1;
    }

    /// Takes out the request with this offset and sequence.
    pub(crate) fn remove(&mut self, offset_bytes: u64, sequence: u64) -> Option<Request> {
        let key = (offset_bytes, sequence);
        self.path.clear();
        let (mut link, mut found) = (Link::Root, self.root);
        while found != NONE && self.nodes[found as usize].key != key {
            self.path.push(link);
            link = self.towards(found, key);
            found = self.follow(link);
        }
        if found == NONE {
            return None;
        }
        let Node { request, left, right, .. } = self.nodes[found as usize];
        let mut empty = found;
        if left != NONE && right != NONE {
            // The first one behind it moves to its node, and leaves one with nothing to the left.
            (link, empty) = self.first_behind(link, found);
            let Node { key, request, .. } = self.nodes[empty as usize];
            let place = &mut self.nodes[found as usize];
            (place.key, place.request) = (key, request);
        }
        let Node { left, right, .. } = self.nodes[empty as usize];
        self.set(link, if left == NONE { right } else { left });
        self.balance();
        self.free.push(empty);
        self.length -= 1;
        Some(request)
    }

    /// The first node behind one that has others below it to the right, and what leads to it. `link`, which leads to that one, and the links
    /// onwards are added to the path.
    fn first_behind(&mut self, link: Link, node: u32) -> (Link, u32) {
        self.path.push(link);
        let mut link = Link::Right(node);
        let mut first = self.follow(link);
        while self.nodes[first as usize].left != NONE {
            self.path.push(link);
            link = Link::Left(first);
            first = self.follow(link);
        }
        (link, first)
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

    fn height(&self, at: u32) -> u8 {
        if at == NONE { 0 } else { self.nodes[at as usize].height }
    }

    /// Notes how high a node stands by what is below it.
    fn measure(&mut self, at: u32) {
        let Node { left, right, .. } = self.nodes[at as usize];
        self.nodes[at as usize].height = 1 + self.height(left).max(self.height(right));
    }

    /// Balances the nodes along the path from below, up to the first that is as high as before.
    fn balance(&mut self) {
        while let Some(link) = self.path.pop() {
            let at = self.follow(link);
            let before = self.height(at);
            let top = self.balanced(at);
            self.set(link, top);
            if self.height(top) == before {
                return;
            }
        }
    }

    /// Balances what is at and below a node, of which one side is at most two higher than the other; the node on top then.
    fn balanced(&mut self, at: u32) -> u32 {
        let Node { left, right, .. } = self.nodes[at as usize];
        let (left_height, right_height) = (self.height(left), self.height(right));
        if left_height > right_height + 1 {
            let Node { left: outer, right: inner, .. } = self.nodes[left as usize];
            if self.height(inner) > self.height(outer) {
                self.nodes[at as usize].left = self.raise_right(left);
            }
            return self.raise_left(at);
        }
        if right_height > left_height + 1 {
            let Node { left: inner, right: outer, .. } = self.nodes[right as usize];
            if self.height(inner) > self.height(outer) {
                self.nodes[at as usize].right = self.raise_left(right);
            }
            return self.raise_right(at);
        }
        self.measure(at);
        at
    }

    /// Puts what is to the left of a node above it; that one.
    fn raise_left(&mut self, at: u32) -> u32 {
        let top = self.nodes[at as usize].left;
        self.nodes[at as usize].left = std::mem::replace(&mut self.nodes[top as usize].right, at);
        self.measure(at);
        self.measure(top);
        top
    }

    /// The same to the right.
    fn raise_right(&mut self, at: u32) -> u32 {
        let top = self.nodes[at as usize].right;
        self.nodes[at as usize].right = std::mem::replace(&mut self.nodes[top as usize].left, at);
        self.measure(at);
        self.measure(top);
        top
    }
}

#[cfg(test)]
mod tests {
    use super::{Link, NONE, Sorted};
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

    /// How many nodes the longest way from the root has. Each node is balanced and knows its height.
    fn longest(sorted: &Sorted) -> usize {
        fn height(sorted: &Sorted, at: u32) -> usize {
            if at == NONE {
                return 0;
            }
            let [left, right] = [Link::Left(at), Link::Right(at)].map(|link| height(sorted, sorted.follow(link)));
            assert!(left.abs_diff(right) <= 1, "{left} to the left, {right} to the right");
            let own = 1 + left.max(right);
            assert_eq!(own, usize::from(sorted.height(at)));
            own
        }
        height(sorted, sorted.root)
    }

    /// Offsets that made one path of the treap that this was: its priorities, 32 bits of a fixed sequence, fall along that from both ends inwards.
    fn from_both_ends_by_priority(count: usize) -> Vec<u64> {
        let mut random = 0x9E37_79B9_u32;
        let mut next = || {
            random ^= random << 13;
            random ^= random >> 17;
            random ^= random << 5;
            random
        };
        let priorities: Vec<u32> = (0..count).map(|_| next()).collect();
        let mut falling: Vec<usize> = (0..count).collect();
        falling.sort_by_key(|index| std::cmp::Reverse(priorities[*index]));
        let mut offsets = vec![0; count];
        for (rank, index) in falling.into_iter().enumerate() {
            offsets[index] = if rank % 2 == 0 { rank } else { 2 * count - rank } as u64;
        }
        offsets
    }

    #[test]
    fn no_offsets_make_a_long_way_of_what_is_queued() {
        const COUNT: usize = 20_000;
        let inwards = |index: usize| (if index.is_multiple_of(2) { index } else { 2 * COUNT - index }) as u64;
        for (name, offsets) in [
            ("rising", (0..COUNT as u64).collect::<Vec<_>>()),
            ("falling", (0..COUNT as u64).rev().collect()),
            ("all the same", vec![4096; COUNT]),
            ("from both ends inwards", (0..COUNT).map(inwards).collect()),
            ("by priorities", from_both_ends_by_priority(COUNT)),
        ] {
            let mut sorted = Sorted::default();
            for (sequence, offset) in (0..).zip(&offsets) {
                sorted.insert(request(*offset, sequence), sequence);
            }
            // 1.44 times the binary logarithm, which is 14.3.
            assert!(longest(&sorted) <= 20, "{name}: {}", longest(&sorted));
            for (sequence, offset) in (0..).zip(&offsets).skip(COUNT / 64) {
                assert!(sorted.remove(*offset, sequence).is_some());
            }
            // Of those that are left it is 8.3.
            assert_eq!(sorted.len(), COUNT / 64);
            assert!(longest(&sorted) <= 11, "{name}, most removed: {}", longest(&sorted));
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
                    prop_assert_eq!(sorted.get(key.0, key.1).map(|r| r.id.0), Some(id));
                    prop_assert_eq!(sorted.remove(key.0, key.1).map(|r| r.id.0), Some(id));
                    prop_assert_eq!(sorted.get(key.0, key.1), None);
                    model.remove(&key);
                } else {
                    prop_assert_eq!(sorted.at_or_after(offset).map(|(_, s)| s), None);
                    prop_assert_eq!(sorted.remove(offset, sequence), None);
                }
                prop_assert_eq!(sorted.len(), model.len());
                longest(&sorted);
            }
        }
    }
}
