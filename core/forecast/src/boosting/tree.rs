//! Regression trees grown on histograms (Ke et al. 2017, without its sampling): of four levels here, of any shape in `leaves`, and those laid
//! out for many rows at once in `blocks`.

pub(super) mod blocks;
mod counts;
pub(super) mod leaves;

use super::bins::{CUTS_MAX, Cuts};
use counts::{Bin, Counted};
use serde::{Deserialize, Serialize};

/// Levels of decisions.
pub(super) const DEPTH: usize = 4;
pub(super) const DECISIONS: usize = (1 << DEPTH) - 1;
pub(super) const LEAVES: usize = 1 << DEPTH;
pub(super) const BINS: usize = CUTS_MAX + 1;
/// Rows that a leaf has at least.
const LEAF_ROWS_MIN: f64 = 20.0;
/// Penalty on the square of a leaf's value.
const LAMBDA: f64 = 1.0;
/// The part of a tree's answer that counts.
const RATE: f64 = 0.1;

/// Far more than a few operations on numbers of 53 bits are off, as a part.
const ROUNDING: f64 = 1e-12;

/// What the trees bring down, which decides what they say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Loss {
    /// Squared error: the answer is a mean.
    Squared,
    /// Absolute error: the answer is a median (Friedman 2001, section 4.3).
    Absolute,
}

/// A row goes left at decision `i`, to `2 i + 1`, if its feature's bin is at most the threshold; else to `2 i + 2`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Tree {
    pub(super) feature: [u8; DECISIONS],
    pub(super) threshold: [u8; DECISIONS],
    /// The threshold as a value of the feature: so a row need not be binned to be judged.
    pub(super) cut: [f32; DECISIONS],
    pub(super) leaf: [f32; LEAVES],
}

impl Tree {
    /// Turns the thresholds into values.
    pub(super) fn set_cuts(&mut self, cuts: &Cuts) {
        for ((cut, feature), threshold) in self.cut.iter_mut().zip(&self.feature).zip(&self.threshold) {
            *cut = cuts.value(*feature, *threshold);
        }
    }

    /// The answer for a row. A NaN goes left, as the lowest bin does.
    pub(super) fn predict(&self, row: &[f32]) -> f32 {
        let mut node = 0;
        for _ in 0..DEPTH {
            let right = row[usize::from(self.feature[node])] > self.cut[node];
            node = 2 * node + 1 + usize::from(right);
        }
        self.leaf[node - DECISIONS]
    }
}

/// Rows of bins, row by row, and what grows trees on them; kept from tree to tree.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "Kept")]
pub(super) struct Grower {
    features: usize,
    #[serde(with = "crate::state::packed")]
    bins: Vec<u8>,
    /// Sums of floats depend on it, so that it is part of the state.
    #[serde(with = "crate::state::packed")]
    order: Vec<u32>,
    /// What is derived from the bins once all are set.
    #[serde(skip)]
    counted: Counted,
    #[serde(skip)]
    moved: Vec<u32>,
    /// What the histograms sum: residuals, or their signs.
    #[serde(skip)]
    gradients: Vec<f32>,
    /// One histogram for each node of a level, and of the level below; or for each leaf.
    #[serde(skip)]
    histograms: Vec<Bin>,
    #[serde(skip)]
    next: Vec<Bin>,
    /// Bins added to histograms so far: what growing costs, as a count.
    pub(super) additions: u64,
}

/// What of a grower is not memory for the next tree.
#[derive(Deserialize)]
struct Kept {
    features: usize,
    #[serde(with = "crate::state::packed")]
    bins: Vec<u8>,
    #[serde(with = "crate::state::packed")]
    order: Vec<u32>,
    additions: u64,
}

impl From<Kept> for Grower {
    fn from(Kept { features, bins, order, additions }: Kept) -> Self {
        Self { order, additions, ..Self::new(bins, features.max(1)) }
    }
}

struct Split {
    feature: usize,
    threshold: u8,
    gain: f64,
    rows_left: usize,
}

impl Grower {
    pub(super) fn new(bins: Vec<u8>, features: usize) -> Self {
        let rows = bins.len() / features;
        let (histograms, next) = (Vec::new(), Vec::new());
        // Rows are bounded by the reservoir, far below 2^32.
        let order = (0..rows as u32).collect();
        let gradients = vec![0.0; rows];
        let (counted, moved) = (Counted::default(), vec![0; rows]);
        Self { features, bins, order, counted, moved, gradients, histograms, next, additions: 0 }
    }

    pub(super) fn set_bin(&mut self, row: usize, feature: usize, bin: u8) {
        self.bins[row * self.features + feature] = bin;
    }

    /// Grows a tree on the residuals and takes its answers from them. Each level adds at most half of the rows to histograms,
    /// because that of a sibling is what is left of the parent's.
    pub(super) fn grow(&mut self, residuals: &mut [f32], loss: Loss) -> Tree {
        self.prepare(residuals, loss);
        let mut tree = Tree {
            feature: [0; DECISIONS],
            threshold: [u8::MAX; DECISIONS],
            cut: [f32::INFINITY; DECISIONS],
            leaf: [0.0; LEAVES],
        };
        let width = self.counted.width();
        self.histograms.resize(LEAVES * width, Bin::default());
        self.next.resize(LEAVES * width, Bin::default());
        let mut borders = [0; LEAVES + 1];
        borders[1] = self.order.len();
        self.additions += self.counted.count(&mut self.histograms[..width], &self.order, &self.gradients);
        for level in 0..DEPTH {
            let nodes = 1 << level;
            let mut split_borders = [0; LEAVES + 1];
            for node in 0..nodes {
                let (from, to) = (borders[node], borders[node + 1]);
                let histogram = &self.histograms[node * width..(node + 1) * width];
                let mut middle = to;
                if let Some(split) = self.best_split(histogram, to - from) {
                    let place = nodes - 1 + node;
                    // Both are below 65.
                    (tree.feature[place], tree.threshold[place]) = (split.feature as u8, split.threshold);
                    middle = from + split.rows_left;
                    self.partition(from, to, &split);
                }
                split_borders[2 * node + 1] = middle;
                split_borders[2 * node + 2] = to;
                if level + 1 < DEPTH {
                    self.histograms_of_children(node, from, middle, to);
                }
            }
            borders = split_borders;
            std::mem::swap(&mut self.histograms, &mut self.next);
        }
        self.set_leaves(&mut tree, &borders, residuals, loss);
        tree
    }

    /// Makes ready for a tree: what histograms count, and what they sum.
    fn prepare(&mut self, residuals: &[f32], loss: Loss) {
        if self.counted.features.is_empty() {
            self.counted = Counted::of(&self.bins, self.features);
        }
        for (gradient, residual) in self.gradients.iter_mut().zip(residuals.iter()) {
            *gradient = match loss {
                Loss::Squared => *residual,
                Loss::Absolute if *residual == 0.0 => 0.0,
                Loss::Absolute => residual.signum(),
            };
        }
    }

    /// Each leaf's answer, which the residuals of its rows lose.
    fn set_leaves(&mut self, tree: &mut Tree, borders: &[usize; LEAVES + 1], residuals: &mut [f32], loss: Loss) {
        for leaf in 0..LEAVES {
            tree.leaf[leaf] = self.settle(borders[leaf], borders[leaf + 1], residuals, loss);
        }
    }

    /// The answer of the leaf that has these rows of the order, and takes it from their residuals.
    fn settle(&mut self, from: usize, to: usize, residuals: &mut [f32], loss: Loss) -> f32 {
        let rows = &self.order[from..to];
        if rows.is_empty() {
            return 0.0;
        }
        let answer = match loss {
            Loss::Squared => {
                let sum: f64 = rows.iter().map(|row| f64::from(residuals[*row as usize])).sum();
                sum / (rows.len() as f64 + LAMBDA)
            }
            Loss::Absolute => {
                // The gradients have done their work; their place serves to find the median.
                let scratch = &mut self.gradients[..rows.len()];
                scratch.iter_mut().zip(rows).for_each(|(to, row)| *to = residuals[*row as usize]);
                let (_, median, _) = scratch.select_nth_unstable_by(rows.len() / 2, f32::total_cmp);
                f64::from(*median)
            }
        };
        let answer = (RATE * answer) as f32;
        rows.iter().for_each(|row| residuals[*row as usize] -= answer);
        answer
    }

    /// The smaller child is counted, the larger is the difference.
    fn histograms_of_children(&mut self, node: usize, from: usize, middle: usize, to: usize) {
        let width = self.counted.width();
        let (left, right) = self.next[2 * node * width..(2 * node + 2) * width].split_at_mut(width);
        let parent = &self.histograms[node * width..(node + 1) * width];
        let (small, large, rows) = if middle - from <= to - middle {
            (left, right, &self.order[from..middle])
        } else {
            (right, left, &self.order[middle..to])
        };
        self.additions += self.counted.count(small, rows, &self.gradients);
        for ((large, small), parent) in large.iter_mut().zip(small).zip(parent) {
            large.sum = parent.sum - small.sum;
            large.rows = parent.rows - small.rows;
        }
    }

    fn best_split(&self, histogram: &[Bin], rows: usize) -> Option<Split> {
        // Far below 2^53.
        let rows = rows as f64;
        if rows < 2.0 * LEAF_ROWS_MIN {
            return None;
        }
        let score = |sum: f64, rows: f64| sum * sum / (rows + LAMBDA);
        let total: f64 = histogram[..BINS].iter().map(|bin| bin.sum).sum();
        let whole = score(total, rows);
        let mut best: Option<Split> = None;
        for (feature, bins) in self.counted.features.iter().zip(histogram.as_chunks::<BINS>().0) {
            let (mut sum, mut rows_left) = (0.0, 0.0);
            for (threshold, bin) in bins[..BINS - 1].iter().enumerate() {
                sum += bin.sum;
                rows_left += bin.rows;
                if rows_left < LEAF_ROWS_MIN || bin.rows == 0.0 {
                    continue;
                }
                if rows - rows_left < LEAF_ROWS_MIN {
                    break;
                }
                let least = best.as_ref().map_or(1e-9, |best| best.gain);
                // Two divisions are most of the work: first without them whether it can be the best at all, give or take rounding.
                let (left, right) = (rows_left + LAMBDA, rows - rows_left + LAMBDA);
                let on_the_right = total - sum;
                let scaled = sum * sum * right + on_the_right * on_the_right * left;
                if scaled < (whole + least) * (left * right) * (1.0 - ROUNDING) {
                    continue;
                }
                let gain = score(sum, rows_left) + score(total - sum, rows - rows_left) - whole;
                if gain > least {
                    let (threshold, rows_left) = (threshold as u8, rows_left as usize);
                    best = Some(Split { feature: *feature, threshold, gain, rows_left });
                }
            }
        }
        best
    }

    /// Rows that go left first, each side in its order.
    fn partition(&mut self, from: usize, to: usize, split: &Split) {
        let (mut left, mut right) = (from, 0);
        for index in from..to {
            let row = self.order[index];
            let goes_right = self.bins[row as usize * self.features + split.feature] > split.threshold;
            // Both, and one of them is overwritten: a branch would be guessed wrongly for every other row.
            (self.order[left], self.moved[right]) = (row, row);
            left += usize::from(!goes_right);
            right += usize::from(goes_right);
        }
        self.order[left..to].copy_from_slice(&self.moved[..right]);
    }
}
