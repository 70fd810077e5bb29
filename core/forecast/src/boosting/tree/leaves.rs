//! Trees that grow leaf by leaf, each time at the one that gains most (Shi 2007; Ke et al. 2017): of as many leaves they say more than
//! those that grow by levels.

use super::super::bins::{Cuts, FEATURES_MAX};
use super::counts::Bin;
use super::{Grower, Loss, Split};
use crate::codec::{Damaged, Reader, Writer};
use serde::{Deserialize, Serialize};

/// Most leaves of a tree.
pub(in crate::boosting) const LEAVES_MAX: usize = 32;
/// With a power of two no index has to be checked.
const NODES: usize = 2 * LEAVES_MAX;
/// Most decisions from the root to a leaf: what an answer costs.
const LEVELS_MAX: u8 = 6;
/// Trees whose answers are added up before the sum of all is.
pub(super) const TOGETHER: usize = 4;

/// A decision: to the second child if the feature is above the value. Or a leaf: its value is the answer, and its children are itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Node {
    value: f32,
    feature: u8,
    children: [u8; 2],
}

/// A tree of any shape. From the root every row is at a leaf after `levels` steps, whichever way it goes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Kept", into = "Kept")]
pub(in crate::boosting) struct LeafTree {
    nodes: [Node; NODES],
    used: u8,
    levels: u8,
}

/// What of a tree is not empty.
#[derive(Serialize, Deserialize)]
struct Kept {
    nodes: Vec<Node>,
    levels: u8,
}

impl From<Kept> for LeafTree {
    fn from(kept: Kept) -> Self {
        let mut nodes = [Node::default(); NODES];
        nodes.iter_mut().zip(&kept.nodes).for_each(|(to, node)| *to = *node);
        Self { nodes, used: kept.nodes.len().min(NODES) as u8, levels: kept.levels }
    }
}

impl From<LeafTree> for Kept {
    fn from(tree: LeafTree) -> Self {
        Self { nodes: tree.nodes[..usize::from(tree.used)].to_vec(), levels: tree.levels }
    }
}

impl LeafTree {
    /// One leaf.
    fn new() -> Self {
        Self { nodes: [Node::default(); NODES], used: 1, levels: 0 }
    }

    /// Most decisions of a row.
    pub(in crate::boosting) fn levels(&self) -> u8 {
        self.levels
    }

    /// From a node on, the next; from a leaf on, itself. A NaN goes to the first child, as the lowest bin does.
    fn next(&self, at: usize, row: &[f32; FEATURES_MAX]) -> usize {
        let node = &self.nodes[at % NODES];
        let is_above = row[usize::from(node.feature) % FEATURES_MAX] > node.value;
        usize::from(node.children[usize::from(is_above)])
    }

    /// Makes a leaf a decision; its two leaves.
    fn split(&mut self, at: usize, level: u8, split: &Split, cuts: &Cuts) -> [usize; 2] {
        let children = [self.used, self.used + 1];
        // Features and bins are below 65.
        let feature = split.feature as u8;
        self.nodes[at] = Node { value: cuts.value(feature, split.threshold), feature, children };
        for child in children {
            self.nodes[usize::from(child)] = Node { value: 0.0, feature: 0, children: [child; 2] };
        }
        self.used += 2;
        self.levels = self.levels.max(level + 1);
        children.map(usize::from)
    }

    /// Tells each decision with the leaves on its first side, from the one to before the other, and each leaf with its place, both from left to
    /// right.
    pub(super) fn walk(&self, mut decision: impl FnMut(u8, f32, [u32; 2]), mut leaf: impl FnMut(usize, f32)) {
        // What is still to do, the last first: nodes, and decisions whose first side began at a leaf and has been told.
        let (mut open, mut leaves) = (vec![(0, None)], 0);
        // A tree of so many nodes is told in fewer steps; what was damaged and is none comes to an end too.
        for _ in 0..2 * NODES {
            let Some((at, begun)) = open.pop().filter(|_| (leaves as usize) < LEAVES_MAX) else { break };
            let node = &self.nodes[at % NODES];
            let [first, second] = node.children.map(usize::from);
            match begun {
                Some(from) => decision(node.feature, node.value, [from, leaves]),
                None if first != at => open.extend([(second, None), (at, Some(leaves)), (first, None)]),
                None => {
                    leaf(leaves as usize, node.value);
                    leaves += 1;
                }
            }
        }
    }

    pub(in crate::boosting) fn encode(&self, writer: &mut Writer) {
        writer.u8(self.levels);
        writer.u8(self.used);
        for node in &self.nodes[..usize::from(self.used)] {
            writer.f32(node.value);
            [node.feature, node.children[0], node.children[1]].iter().for_each(|byte| writer.u8(*byte));
        }
    }

    /// A tree over so many features.
    pub(in crate::boosting) fn decode(features: usize, reader: &mut Reader<'_>) -> Result<Self, Damaged> {
        let (levels, used) = (reader.u8()?, reader.u8()?);
        if levels > LEVELS_MAX || used == 0 || usize::from(used) > NODES {
            return Err(Damaged::Value);
        }
        let mut tree = Self { nodes: [Node::default(); NODES], used, levels };
        let mut has_parent = 1_u64;
        for (at, node) in tree.nodes[..usize::from(used)].iter_mut().enumerate() {
            // A cut above all values is infinite; no leaf is.
            let value = reader.f32()?;
            let (feature, children) = (reader.u8()?, [reader.u8()?, reader.u8()?]);
            let is_leaf = children.iter().all(|child| usize::from(*child) == at);
            let is_whole = if is_leaf { value.is_finite() } else { !value.is_nan() };
            let mut goes_on = children.iter().all(|child| *child < used && usize::from(*child) > at);
            if goes_on {
                let [first, second] = children.map(|child| 1_u64 << child);
                goes_on = first != second && has_parent & (first | second) == 0;
                has_parent |= first | second;
            }
            if !is_whole || usize::from(feature) >= features || !(is_leaf || goes_on) {
                return Err(Damaged::Value);
            }
            *node = Node { value, feature, children };
        }
        Ok(tree)
    }
}

/// The answers of all trees for a row, added up. Several go down together, and each as many levels as the deepest of all has: so the
/// processor need not wait for one before it begins the next, and has no branch to guess.
pub(in crate::boosting) fn sum(trees: &[LeafTree], levels: u8, row: &[f32; FEATURES_MAX]) -> f32 {
    let (groups, rest) = trees.as_chunks::<TOGETHER>();
    let mut sum = 0.0;
    for group in groups {
        let mut at = [0; TOGETHER];
        for _ in 0..levels {
            for (at, tree) in at.iter_mut().zip(group) {
                *at = tree.next(*at, row);
            }
        }
        sum += at.iter().zip(group).map(|(at, tree)| tree.nodes[at % NODES].value).sum::<f32>();
    }
    for tree in rest {
        let at = (0..levels).fold(0, |at, _| tree.next(at, row));
        sum += tree.nodes[at % NODES].value;
    }
    sum
}

/// A leaf while the tree grows: its rows are these of the order, and its histogram has its number.
struct Open {
    from: usize,
    to: usize,
    node: usize,
    level: u8,
    split: Option<Split>,
}

impl Grower {
    /// Grows a tree of at most so many leaves on the residuals and takes its answers from them. Each split adds at most half of the
    /// leaf's rows to histograms.
    pub(in crate::boosting) fn grow_by_leaves(
        &mut self,
        residuals: &mut [f32],
        loss: Loss,
        cuts: &Cuts,
        leaves: usize,
    ) -> LeafTree {
        self.prepare(residuals, loss);
        let (leaves, width, rows) = (leaves.clamp(2, LEAVES_MAX), self.counted.width(), self.order.len());
        self.histograms.resize(leaves * width, Bin::default());
        self.additions += self.counted.count(&mut self.histograms[..width], &self.order, &self.gradients);
        let mut tree = LeafTree::new();
        let split = self.best_split(&self.histograms[..width], rows);
        let mut open = vec![Open { from: 0, to: rows, node: 0, level: 0, split }];
        while open.len() < leaves {
            let Some((at, split)) = take_best(&mut open) else { break };
            let Open { from, to, node, level, .. } = open[at];
            let middle = from + split.rows_left;
            self.partition(from, to, &split);
            let [left, right] = tree.split(node, level, &split, cuts);
            let of = |from, to, node| Open { from, to, node, level: level + 1, split: None };
            let (left, right) = (of(from, middle, left), of(middle, to, right));
            // The new histogram is counted, of the smaller one; the larger one is what is left of that of both.
            let (small, large) = if middle - from <= to - middle { (left, right) } else { (right, left) };
            // What the last leaves have in which bin nobody asks.
            let may_split = level + 1 < LEVELS_MAX && open.len() + 1 < leaves;
            if may_split {
                self.halve(at, open.len(), (small.from, small.to));
            }
            open[at] = large;
            open.push(small);
            if may_split {
                for leaf in [at, open.len() - 1] {
                    let histogram = &self.histograms[leaf * width..(leaf + 1) * width];
                    open[leaf].split = self.best_split(histogram, open[leaf].to - open[leaf].from);
                }
            }
        }
        for Open { from, to, node, .. } in open {
            tree.nodes[node].value = self.settle(from, to, residuals, loss);
        }
        tree
    }

    /// Counts the histogram `new` of these rows of the order and takes it from the histogram `of`.
    fn halve(&mut self, of: usize, new: usize, (from, to): (usize, usize)) {
        let width = self.counted.width();
        let (before, after) = self.histograms.split_at_mut(new * width);
        let (of, new) = (&mut before[of * width..(of + 1) * width], &mut after[..width]);
        self.additions += self.counted.count(new, &self.order[from..to], &self.gradients);
        for (of, new) in of.iter_mut().zip(new) {
            of.sum -= new.sum;
            of.rows -= new.rows;
        }
    }
}

/// Which of the leaves gains most by its split, the first of those that gain alike.
fn take_best(open: &mut [Open]) -> Option<(usize, Split)> {
    let mut best: Option<(usize, f64)> = None;
    for (at, leaf) in open.iter().enumerate() {
        let gain = leaf.split.as_ref().map(|split| split.gain);
        if let Some(gain) = gain.filter(|gain| best.is_none_or(|(_, most)| *gain > most)) {
            best = Some((at, gain));
        }
    }
    let (at, _) = best?;
    Some((at, open[at].split.take()?))
}
