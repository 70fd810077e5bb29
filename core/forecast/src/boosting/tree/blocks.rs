//! Trees by leaves laid out for many rows at once (as Lucchese et al. 2015 do for one): a decision that a row is above rules out the
//! leaves on its other side, whichever other decisions lead there. The first leaf that is left is the row's.
//!
//! So there is no way down to follow and nothing to wait for: each decision is one comparison with many rows. All that trees say is
//! added up in the order in which [`super::leaves::sum`] does, so that both give the same bits.

use super::super::bins::FEATURES_MAX;
use super::leaves::{LEAVES_MAX, LeafTree, TOGETHER};
use serde::{Deserialize, Serialize};

/// Rows that are answered together.
pub const BLOCK: usize = 16;

/// Some rows, at most [`BLOCK`], feature by feature.
#[derive(Clone, Debug)]
pub struct Block {
    columns: [[f32; BLOCK]; FEATURES_MAX],
    rows: usize,
}

impl Default for Block {
    fn default() -> Self {
        Self { columns: [[0.0; BLOCK]; FEATURES_MAX], rows: 0 }
    }
}

impl Block {
    /// Takes a row of at most [`FEATURES_MAX`] features; what it lacks is 0. Whether there was room.
    pub fn push(&mut self, row: &[f32]) -> bool {
        if self.rows == BLOCK {
            return false;
        }
        for (at, column) in self.columns.iter_mut().enumerate() {
            column[self.rows] = row.get(at).copied().unwrap_or(0.0);
        }
        self.rows += 1;
        true
    }

    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.rows = 0;
    }

    /// Rows taken.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The first feature of each row.
    pub fn bases(&self) -> [f32; BLOCK] {
        self.columns[0]
    }

    /// One of the rows again.
    pub(in crate::boosting) fn row(&self, at: usize) -> [f32; FEATURES_MAX] {
        self.columns.each_ref().map(|column| column[at % BLOCK])
    }
}

/// A row is above `cut` of `feature`: then leaves in `ruled_out` are not its.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Decision {
    cut: f32,
    ruled_out: u32,
    feature: u32,
}

/// The trees of a model, as they grew and laid out. Serialises as the former.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<LeafTree>", into = "Vec<LeafTree>")]
pub(in crate::boosting) struct LeafTrees {
    grown: Vec<LeafTree>,
    layout: Layout,
}

impl LeafTrees {
    pub(in crate::boosting) fn push(&mut self, tree: LeafTree) {
        self.layout.push(&tree);
        self.grown.push(tree);
    }

    pub(in crate::boosting) fn grown(&self) -> &[LeafTree] {
        &self.grown
    }

    /// The answers of all trees for each row, added up.
    pub(in crate::boosting) fn sums(&self, block: &Block) -> [f32; BLOCK] {
        self.layout.sums(block)
    }
}

impl From<Vec<LeafTree>> for LeafTrees {
    fn from(trees: Vec<LeafTree>) -> Self {
        let mut all = Self::default();
        trees.into_iter().for_each(|tree| all.push(tree));
        all
    }
}

impl From<LeafTrees> for Vec<LeafTree> {
    fn from(trees: LeafTrees) -> Self {
        trees.grown
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Layout {
    /// Tree by tree.
    decisions: Vec<Decision>,
    trees: Vec<OneTree>,
}

/// Where a tree's decisions end, and what its leaves say, from left to right.
#[derive(Clone, Copy, Debug, PartialEq)]
struct OneTree {
    decisions_end: usize,
    leaves: [f32; LEAVES_MAX],
}

impl Layout {
    fn push(&mut self, tree: &LeafTree) {
        let mut leaves = [0.0; LEAVES_MAX];
        let decisions = &mut self.decisions;
        tree.walk(
            |feature, cut, [from, middle]| {
                // Leaves are at most 32, so that all shifts are below that.
                let ruled_out = ((1_u64 << middle) - (1_u64 << from)) as u32;
                decisions.push(Decision { cut, ruled_out, feature: u32::from(feature) });
            },
            |at, value| leaves[at % LEAVES_MAX] = value,
        );
        self.trees.push(OneTree { decisions_end: self.decisions.len(), leaves });
    }

    fn sums(&self, block: &Block) -> [f32; BLOCK] {
        let (mut sums, mut group) = ([0.0; BLOCK], [0.0; BLOCK]);
        let mut from = 0;
        let whole_groups = self.trees.len() / TOGETHER * TOGETHER;
        for (number, tree) in self.trees.iter().enumerate() {
            let left = leaves_left(&self.decisions[from..tree.decisions_end], block);
            from = tree.decisions_end;
            let to = if number < whole_groups { &mut group } else { &mut sums };
            for (to, left) in to.iter_mut().zip(&left) {
                *to += tree.leaves[left.trailing_zeros() as usize % LEAVES_MAX];
            }
            if number < whole_groups && number % TOGETHER == TOGETHER - 1 {
                sums.iter_mut().zip(&mut group).for_each(|(sum, group)| *sum += std::mem::take(group));
            }
        }
        sums
    }
}

/// Of each row the leaves that a tree's decisions leave, as bits.
fn leaves_left(decisions: &[Decision], block: &Block) -> [u32; BLOCK] {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has these instructions.
        return unsafe { leaves_left_avx2(decisions, block) };
    }
    leaves_left_portable(decisions, block)
}

fn leaves_left_portable(decisions: &[Decision], block: &Block) -> [u32; BLOCK] {
    let mut left = [u32::MAX; BLOCK];
    for decision in decisions {
        let column = &block.columns[decision.feature as usize % FEATURES_MAX];
        for (left, value) in left.iter_mut().zip(column) {
            // Arithmetic, as a choice becomes a branch that nobody can guess: one comparison then takes fifty times as long.
            *left &= !decision.ruled_out | u32::from(*value > decision.cut).wrapping_sub(1);
        }
    }
    left
}

/// Eight rows an instruction. Written out, as the compiler would else take eight decisions of one row at once, which have to be gathered.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn leaves_left_avx2(decisions: &[Decision], block: &Block) -> [u32; BLOCK] {
    use std::arch::x86_64::{
        _CMP_GT_OQ, _mm256_and_si256, _mm256_andnot_si256, _mm256_castps_si256, _mm256_cmp_ps, _mm256_loadu_ps,
        _mm256_set1_epi32, _mm256_set1_ps, _mm256_storeu_si256,
    };
    const ROWS: usize = 8;
    let mut left = [_mm256_set1_epi32(-1); BLOCK / ROWS];
    for decision in decisions {
        let (column, _) = block.columns[decision.feature as usize % FEATURES_MAX].as_chunks::<ROWS>();
        let (cut, ruled_out) = (_mm256_set1_ps(decision.cut), _mm256_set1_epi32(decision.ruled_out.cast_signed()));
        for (left, values) in left.iter_mut().zip(column) {
            // SAFETY: eight values are read, and they need not be aligned.
            let values = unsafe { _mm256_loadu_ps(values.as_ptr()) };
            let is_above = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_GT_OQ>(values, cut));
            *left = _mm256_andnot_si256(_mm256_and_si256(is_above, ruled_out), *left);
        }
    }
    let mut rows = [0; BLOCK];
    for (rows, left) in rows.as_chunks_mut::<ROWS>().0.iter_mut().zip(left) {
        // SAFETY: eight numbers of 32 bits are written, and they need not be aligned.
        unsafe { _mm256_storeu_si256(rows.as_mut_ptr().cast(), left) };
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::super::super::{BLOCK, Block, Boosted, Loss, Training};
    use super::{Decision, leaves_left, leaves_left_portable};

    /// Rows of five features that mean something and one that is no number now and then.
    fn rows(count: usize) -> Vec<f32> {
        let mut seed = 3_u64;
        let mut draw = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 40) as f32 / 16_777_216.0
        };
        (0..count * 6).map(|at| if at % 6 == 5 && draw() < 0.1 { f32::NAN } else { draw() }).collect()
    }

    fn fitted(leaves: Option<usize>, trees: usize) -> Boosted {
        let rows = rows(3_000);
        let target = |row: &[f32]| row[0] * row[1] + (8.0 * row[2]).sin() + if row[5] > 0.5 { row[3] } else { row[4] };
        let targets: Vec<f32> = rows.chunks_exact(6).map(target).collect();
        let training = Training::new(rows, 6, &targets, trees, Loss::Squared).expect("rows");
        match leaves {
            Some(leaves) => training.by_leaves(leaves).finish(),
            None => training.finish(),
        }
    }

    #[test]
    fn rows_in_a_block_are_answered_as_each_alone_to_the_bit() {
        let asked = rows(75);
        for (leaves, trees) in [(Some(2), 1), (Some(16), 10), (Some(31), 103), (Some(32), 7), (None, 9)] {
            let model = fitted(leaves, trees);
            let mut block = Block::default();
            for rows in asked.chunks(6 * BLOCK) {
                block.clear();
                rows.chunks_exact(6).for_each(|row| assert!(block.push(row), "there is room"));
                let answers = model.predict_block(&block);
                for (row, answer) in rows.chunks_exact(6).zip(answers) {
                    assert_eq!(
                        answer.to_bits(),
                        model.predict(row).to_bits(),
                        "{leaves:?} leaves, {trees} trees, {row:?}"
                    );
                }
            }
            let text = serde_json::to_string(&model).expect("a model");
            assert_eq!(serde_json::from_str::<Boosted>(&text).expect("the same"), model);
        }
    }

    #[test]
    fn wide_instructions_leave_the_same_leaves_also_of_what_is_no_number() {
        let mut block = Block::default();
        let values = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 0.0, f32::MIN_POSITIVE, 1.5, -2.5];
        for row in 0..BLOCK {
            block.push(&std::array::from_fn::<f32, 8, _>(|feature| values[(row + 3 * feature) % values.len()]));
        }
        let decision = |at: usize| {
            let left = (at as u32).wrapping_mul(0x9E37_79B9) | 1 << (at % 32);
            Decision { cut: values[(5 * at + at / 8) % values.len()], ruled_out: !left, feature: (at % 8) as u32 }
        };
        for count in 0..32 {
            let decisions: Vec<Decision> = (0..count).map(decision).collect();
            assert_eq!(leaves_left(&decisions, &block), leaves_left_portable(&decisions, &block), "{count} decisions");
        }
    }

    #[test]
    fn a_block_takes_so_many_rows_and_no_more() {
        let mut block = Block::default();
        assert!((0..BLOCK).all(|_| block.push(&[1.0])) && !block.push(&[2.0]));
        assert_eq!((block.len(), block.bases()), (BLOCK, [1.0; BLOCK]));
    }
}
