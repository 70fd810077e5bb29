//! Ridge first, then boosted trees that are refitted part by part.
//!
//! All answers are differences from a base, which for a rate is the last one: trees say steps, and most of the time nothing changes.
//! There are two sets of trees: the median is what errs least in absolute terms (0 where most slices are idle), the mean what errs
//! least in squares of the logarithm, a magnitude.

use super::{Reservoir, Ridge};
use crate::boosting::{Boosted, Loss, Training};
use crate::codec::{Damaged, Reader, Writer};
use crate::tenant::{FEATURES, Row};
use serde::{Deserialize, Serialize};

/// Rows between ridge solutions, and before the trees.
const RIDGE_EVERY: u64 = 64;
const TREES_FROM: usize = 400;
/// As a file: since the second with rows, since the third also before there are trees.
const VERSION: u16 = 3;
const VERSION_WITH_TREES: u16 = 2;
const VERSION_WITHOUT_ROWS: u16 = 1;
/// Rows that outlive a restart, 120 bytes each.
const ROWS_KEPT: usize = 2_000;

/// How large a learner is and how often it is refitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LearnerSettings {
    /// Rows of the reservoir.
    pub rows: usize,
    /// Trees.
    pub trees: usize,
    /// For the reservoir.
    pub seed: u64,
    /// Rows before the first ridge solution; from there on there is one whenever they are twice as many, and every 64.
    #[serde(default = "ridge_every")]
    pub ridge_from: u64,
}

/// Recordings that do not say were made with it.
const fn ridge_every() -> u64 {
    RIDGE_EVERY
}

impl Default for LearnerSettings {
    fn default() -> Self {
        Self { rows: 50_000, trees: 100, seed: 1, ridge_from: RIDGE_EVERY }
    }
}

/// What a learner says of a row, as log1p of bytes a second or of bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// As likely too high as too low.
    pub median: f32,
    /// Mean of the logarithm.
    pub mean: f32,
}

/// The model of the host. Targets are log1p of bytes a second, or of bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Learner {
    settings: LearnerSettings,
    reservoir: Reservoir,
    ridge: Ridge,
    training: Option<Training>,
    /// The median's trees, while those of the mean are grown.
    half_done: Option<Boosted>,
    trees: Option<[Boosted; 2]>,
}

impl Learner {
    /// One that has seen nothing.
    pub fn new(settings: LearnerSettings) -> Self {
        let reservoir = Reservoir::new(settings.rows, settings.seed);
        Self { settings, reservoir, ridge: Ridge::default(), training: None, half_done: None, trees: None }
    }

    /// Takes what a row turned out to be: the target, and the base that [`Self::predict`] was given.
    pub fn observe(&mut self, row: &Row, base: f32, target: f32) {
        self.reservoir.offer(row, target - base);
        // With trees there is nothing for ridge to say.
        if self.trees.is_none() {
            self.ridge.observe(row, target - base);
            let rows = self.ridge.rows();
            let is_early = rows >= self.settings.ridge_from && rows.is_power_of_two();
            if is_early || rows.is_multiple_of(RIDGE_EVERY) {
                self.ridge.solve();
            }
        }
    }

    /// Whether a refit is under way.
    pub fn is_training(&self) -> bool {
        self.training.is_some()
    }

    /// Begins a refit on the reservoir as it is; whether there is enough in it.
    pub fn begin_refit(&mut self) -> bool {
        self.half_done = None;
        self.reservoir.len() >= TREES_FROM && self.begin(Loss::Absolute)
    }

    fn begin(&mut self, loss: Loss) -> bool {
        let (rows, targets) = self.reservoir.content();
        self.training = Training::new(rows.to_vec(), FEATURES, targets, self.settings.trees, loss);
        self.training.is_some()
    }

    /// Does the next part of the refit, a feature or a tree; whether more is to come.
    pub fn advance(&mut self) -> bool {
        let Some(mut training) = self.training.take() else { return false };
        if training.advance() {
            self.training = Some(training);
            return true;
        }
        let trees = training.finish();
        match self.half_done.take() {
            None => {
                self.half_done = Some(trees);
                self.begin(Loss::Squared)
            }
            Some(median) => {
                self.trees = Some([median, trees]);
                false
            }
        }
    }

    /// What follows a row; `None` before anything was learnt. Allocates nothing.
    pub fn predict(&self, row: &Row, base: f32) -> Option<Answer> {
        let (median, mean) = match &self.trees {
            Some([median, mean]) => (median.predict(row), mean.predict(row)),
            None => self.ridge.predict(row).map(|difference| (difference, difference))?,
        };
        Some(Answer { median: (base + median).max(0.0), mean: (base + mean).max(0.0) })
    }

    /// The median of [`Self::predict`] alone, at half the cost.
    pub fn median(&self, row: &Row, base: f32) -> Option<f32> {
        let difference = match &self.trees {
            Some([median, _]) => median.predict(row),
            None => self.ridge.predict(row)?,
        };
        Some((base + difference).max(0.0))
    }

    /// Whether the trees speak, not ridge.
    pub fn has_trees(&self) -> bool {
        self.trees.is_some()
    }

    /// The model as bytes, versioned and checksummed, with the mark `kind` of what it is of; `None` before it can answer. A sample of the
    /// rows is part of it, from which the next start goes on.
    pub fn encode(&self, kind: u16) -> Option<Vec<u8>> {
        let mut writer = Writer::default();
        self.write(&mut writer)?;
        Some(writer.seal(kind, VERSION))
    }

    /// The same as a part of other bytes.
    pub(crate) fn write(&self, writer: &mut Writer) -> Option<()> {
        if self.trees.is_none() && !self.ridge.is_solved() {
            return None;
        }
        writer.u8(self.trees.is_some().into());
        self.trees.iter().flatten().for_each(|trees| trees.encode(writer));
        self.reservoir.encode(ROWS_KEPT, writer);
        Some(())
    }

    /// Takes over a model that was encoded.
    ///
    /// # Errors
    /// Bytes that are damaged, of another kind or version, or of a model with other features; the learner is then as before.
    pub fn decode(&mut self, bytes: &[u8], kind: u16) -> Result<(), Damaged> {
        if let Ok(mut reader) = Reader::open(bytes, kind, VERSION) {
            let kept = self.read(&mut reader)?;
            reader.end()?;
            self.adopt(kept);
            return Ok(());
        }
        let opened = Reader::open(bytes, kind, VERSION_WITH_TREES);
        let has_rows = opened.is_ok();
        let mut reader = opened.or_else(|_| Reader::open(bytes, kind, VERSION_WITHOUT_ROWS))?;
        let kept = self.read_parts(&mut reader, true, has_rows)?;
        reader.end()?;
        self.adopt(kept);
        Ok(())
    }

    /// What [`Self::write`] wrote; nothing changes before [`Self::adopt`].
    pub(crate) fn read(&self, reader: &mut Reader<'_>) -> Result<Kept, Damaged> {
        let has_trees = match reader.u8()? {
            0 => false,
            1 => true,
            _ => return Err(Damaged::Value),
        };
        self.read_parts(reader, has_trees, true)
    }

    fn read_parts(&self, reader: &mut Reader<'_>, has_trees: bool, has_rows: bool) -> Result<Kept, Damaged> {
        let mut tree = || Boosted::decode(reader);
        let trees = if has_trees { Some([tree()?, tree()?]) } else { None };
        let mut reservoir = Reservoir::new(self.settings.rows, self.settings.seed);
        if has_rows {
            reservoir.decode(ROWS_KEPT, reader)?;
        }
        if trees.iter().flatten().any(|trees| trees.features() != FEATURES) {
            return Err(Damaged::Value);
        }
        Ok(Kept { trees, reservoir })
    }

    /// Goes on from what was kept.
    pub(crate) fn adopt(&mut self, kept: Kept) {
        let Kept { trees, reservoir } = kept;
        if trees.is_none() {
            self.ridge = Ridge::default();
            let (rows, targets) = reservoir.content();
            for (row, target) in rows.as_chunks().0.iter().zip(targets) {
                self.ridge.observe(row, *target);
            }
            self.ridge.solve();
        }
        self.trees = trees;
        if !reservoir.is_empty() {
            self.reservoir = reservoir;
        }
    }
}

/// What outlived a restart.
pub(crate) struct Kept {
    trees: Option<[Boosted; 2]>,
    reservoir: Reservoir,
}
