//! Gradient-boosted trees for squared or absolute loss (Friedman 2001; histograms as Ke et al. 2017): what the next slice brings.
//!
//! One model for the whole host, refitted on a bounded reservoir. [`Training::advance`] does a part at a time, so a slice does as much
//! as it can afford; [`Boosted::predict`] allocates nothing.

mod bins;
mod tree;

pub use bins::{CUTS_MAX, Cuts, FEATURES_MAX};
pub use tree::Loss;
use tree::blocks::LeafTrees;
pub use tree::blocks::{BLOCK, Block};
use tree::leaves::{self, LEAVES_MAX, LeafTree};
use tree::{Grower, Tree};

use crate::codec::{Damaged, Reader, Writer};
use serde::{Deserialize, Serialize};

/// Most trees of a model that is read back.
const TREES_MAX: usize = 4096;

/// A fitted model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Boosted {
    cuts: Cuts,
    base: f32,
    /// Those that grew by levels; a model has one kind.
    trees: Vec<Tree>,
    #[serde(default)]
    by_leaves: LeafTrees,
    /// Of the deepest of those.
    #[serde(default)]
    levels: u8,
}

/// A fit under way: it owns its rows until each feature is one byte, and those then.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Training {
    model: Boosted,
    /// Row by row; emptied once binned.
    #[serde(with = "crate::state::packed")]
    rows: Vec<f32>,
    features: usize,
    grower: Grower,
    #[serde(with = "crate::state::packed")]
    residuals: Vec<f32>,
    trees_wanted: usize,
    loss: Loss,
    /// Of each tree; by levels where there is none.
    #[serde(default)]
    leaves: Option<usize>,
}

impl Training {
    /// Starts a fit of `trees` trees on `rows` (row by row, `features` values a row, at most [`FEATURES_MAX`]) and as many
    /// targets.
    ///
    /// `None` if there are no rows, the counts do not fit together or a target is not finite.
    pub fn new(rows: Vec<f32>, features: usize, targets: &[f32], trees: usize, loss: Loss) -> Option<Self> {
        let shapes_fit = (1..=FEATURES_MAX).contains(&features) && rows.len() == features * targets.len();
        if !shapes_fit || targets.is_empty() || targets.iter().any(|target| !target.is_finite()) {
            return None;
        }
        let base = match loss {
            Loss::Squared => (targets.iter().copied().map(f64::from).sum::<f64>() / targets.len() as f64) as f32,
            Loss::Absolute => *targets.to_vec().select_nth_unstable_by(targets.len() / 2, f32::total_cmp).1,
        };
        let residuals = targets.iter().map(|target| target - base).collect();
        let trees_wanted = trees.min(TREES_MAX);
        let model = Boosted { base, ..Boosted::default() };
        let grower = Grower::new(vec![0; rows.len()], features);
        Some(Self { model, rows, features, grower, residuals, trees_wanted, loss, leaves: None })
    }

    /// Trees grow leaf by leaf, to at most so many of them (32), and not by levels.
    #[must_use]
    pub fn by_leaves(self, leaves: usize) -> Self {
        Self { leaves: Some(leaves.min(LEAVES_MAX)), ..self }
    }

    /// Does the next part of the work: cuts and bins one feature, or grows one tree. Whether more is to come.
    ///
    /// Cost of a feature: sorting at most 10,000 values and six comparisons a row; of a tree by levels: at most 2.5 times rows times
    /// features additions; of one by leaves at most four times.
    pub fn advance(&mut self) -> bool {
        let feature = self.model.cuts.features();
        if feature < self.features {
            self.model.cuts.add(&self.rows, self.features);
            for (row, values) in self.rows.chunks_exact(self.features).enumerate() {
                self.grower.set_bin(row, feature, self.model.cuts.bin(feature, values[feature]));
            }
            if feature + 1 == self.features {
                self.rows = Vec::new();
            }
            return true;
        }
        if self.model.trees() < self.trees_wanted {
            if let Some(leaves) = self.leaves {
                let tree = self.grower.grow_by_leaves(&mut self.residuals, self.loss, &self.model.cuts, leaves);
                self.model.push(tree);
            } else {
                let mut tree = self.grower.grow(&mut self.residuals, self.loss);
                tree.set_cuts(&self.model.cuts);
                self.model.trees.push(tree);
            }
        }
        self.model.trees() < self.trees_wanted
    }

    /// Does all that is left.
    pub fn finish(mut self) -> Boosted {
        while self.advance() {}
        self.model
    }

    /// Values added to histograms so far.
    pub fn additions(&self) -> u64 {
        self.grower.additions
    }
}

impl Boosted {
    /// The answer for a row of which the first features are those that the model was fitted on; the mean or median target if there are
    /// fewer.
    pub fn predict(&self, row: &[f32]) -> f32 {
        let Some(row) = row.get(..self.cuts.features()) else { return self.base };
        let by_levels = self.trees.iter().map(|tree| tree.predict(row)).sum::<f32>();
        if self.by_leaves.grown().is_empty() {
            return self.base + by_levels;
        }
        let mut features = [0.0; FEATURES_MAX];
        features.iter_mut().zip(row).for_each(|(to, value)| *to = *value);
        self.base + by_levels + leaves::sum(self.by_leaves.grown(), self.levels, &features)
    }

    /// As [`Self::predict`] answers each row of a block, to the bit, in a fraction of the time if trees grew by leaves. Places without a row
    /// have answers of no meaning; what a row lacks of the model's features is 0.
    pub fn predict_block(&self, block: &Block) -> [f32; BLOCK] {
        if !self.trees.is_empty() {
            return std::array::from_fn(|at| if at < block.len() { self.predict(&block.row(at)) } else { self.base });
        }
        self.by_leaves.sums(block).map(|sum| self.base + sum)
    }

    fn push(&mut self, tree: LeafTree) {
        self.levels = self.levels.max(tree.levels());
        self.by_leaves.push(tree);
    }

    /// Trees grown.
    pub fn trees(&self) -> usize {
        self.trees.len() + self.by_leaves.grown().len()
    }

    /// Features of a row.
    pub fn features(&self) -> usize {
        self.cuts.features()
    }

    pub(crate) fn encode(&self, writer: &mut Writer) {
        writer.count(self.cuts.of_feature.len());
        for cuts in &self.cuts.of_feature {
            writer.f32s(cuts);
        }
        writer.f32(self.base);
        writer.count(self.trees.len());
        for tree in &self.trees {
            tree.feature.iter().chain(&tree.threshold).for_each(|byte| writer.u8(*byte));
            tree.leaf.iter().for_each(|value| writer.f32(*value));
        }
    }

    /// The trees that grew by leaves, which files of earlier versions do not have.
    pub(crate) fn encode_leaves(&self, writer: &mut Writer) {
        writer.count(self.by_leaves.grown().len());
        self.by_leaves.grown().iter().for_each(|tree| tree.encode(writer));
    }

    pub(crate) fn decode_leaves(&mut self, reader: &mut Reader<'_>) -> Result<(), Damaged> {
        for _ in 0..reader.count(TREES_MAX)? {
            self.push(LeafTree::decode(self.features(), reader)?);
        }
        Ok(())
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, Damaged> {
        let features = reader.count(FEATURES_MAX)?;
        let mut of_feature = Vec::new();
        for _ in 0..features {
            let cuts = reader.f32s(CUTS_MAX)?;
            if cuts.windows(2).any(|pair| pair[0] >= pair[1]) {
                return Err(Damaged::Value);
            }
            of_feature.push(cuts);
        }
        let cuts = Cuts { of_feature };
        let base = reader.finite_f32()?;
        let mut trees = Vec::new();
        for _ in 0..reader.count(TREES_MAX)? {
            let mut tree = Tree {
                feature: [0; tree::DECISIONS],
                threshold: [0; tree::DECISIONS],
                cut: [f32::INFINITY; tree::DECISIONS],
                leaf: [0.0; tree::LEAVES],
            };
            for byte in tree.feature.iter_mut().chain(&mut tree.threshold) {
                *byte = reader.u8()?;
            }
            for value in &mut tree.leaf {
                *value = reader.finite_f32()?;
            }
            if tree.feature.iter().any(|feature| usize::from(*feature) >= features) {
                return Err(Damaged::Value);
            }
            tree.set_cuts(&cuts);
            trees.push(tree);
        }
        Ok(Self { cuts, base, trees, ..Self::default() })
    }
}
