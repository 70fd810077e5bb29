//! Ridge first, then boosted trees that are refitted part by part.
//!
//! All answers are differences from a base, which for a rate is the last one: trees say steps, and most of the time nothing changes.
//! There are two sets of trees: the median is what errs least in absolute terms (0 where most slices are idle), the mean what errs
//! least in squares of the logarithm, a magnitude.

use super::growth::Growth;
use super::reservoir::Reservoir;
use super::ridge::Ridge;
use crate::boosting::{BLOCK, Block, Boosted, Loss, Training};
use crate::online::Account;
use crate::tenant::Row;
use serde::{Deserialize, Serialize};

/// Rows between ridge solutions, and before the trees.
const RIDGE_EVERY: u64 = 64;
const TREES_FROM: usize = 400;
/// [`Learner::median`] is no larger, as log1p of bytes: some 10^19.
const LOG_MAX: f32 = 44.0;

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
    /// How trees grow.
    #[serde(default)]
    pub growth: Growth,
    /// How far from the median to the mean, in percent, is what is told ([`Answer::told`]); as by earlier versions the median alone.
    #[serde(default)]
    pub mean_percent: u8,
    /// Ridge keeps to the range of its targets, and no account has more than its part of the sample. As by earlier versions neither.
    #[serde(default)]
    pub within_bounds: bool,
    /// Before there are trees nothing is told that is more than twice the greatest target or the base. As by earlier versions no such bound.
    #[serde(default)]
    pub within_seen: bool,
}

impl LearnerSettings {
    /// What was chosen on a part of the data that no figure is measured on (docs/adr/0050).
    pub const MEAN_PERCENT: u8 = 75;
}

/// Recordings that do not say were made with it.
const fn ridge_every() -> u64 {
    RIDGE_EVERY
}

impl Default for LearnerSettings {
    fn default() -> Self {
        Self {
            rows: 50_000,
            trees: 100,
            seed: 1,
            ridge_from: RIDGE_EVERY,
            growth: Growth::CHOSEN,
            mean_percent: Self::MEAN_PERCENT,
            within_bounds: true,
            within_seen: true,
        }
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

impl Answer {
    /// One answer of both, so many percent of the way from the median to the mean.
    pub fn told(&self, mean_percent: u8) -> f32 {
        self.median + f32::from(mean_percent) / 100.0 * (self.mean - self.median)
    }
}

/// The model of the host. Targets are log1p of bytes a second, or of bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Learner {
    pub(super) settings: LearnerSettings,
    pub(super) reservoir: Reservoir,
    pub(super) ridge: Ridge,
    training: Option<Training>,
    /// The median's trees, while those of the mean are grown.
    half_done: Option<Boosted>,
    pub(super) trees: Option<[Boosted; 2]>,
    /// The greatest target before there were trees; earlier versions kept none.
    #[serde(default)]
    pub(super) greatest: Option<f32>,
}

impl Learner {
    /// One that has seen nothing.
    pub fn new(settings: LearnerSettings) -> Self {
        let features = settings.growth.features();
        let reservoir = Reservoir::new(settings.rows, features, settings.seed);
        let ridge = Ridge::new(features);
        Self { settings, reservoir, ridge, training: None, half_done: None, trees: None, greatest: None }
    }

    /// From now on trees grow so. Where that is another way than before, all begins anew.
    pub fn set_growth(&mut self, growth: Growth) {
        if self.settings.growth != growth {
            *self = Self::new(LearnerSettings { growth, ..self.settings });
        }
    }

    /// See [`LearnerSettings::within_bounds`].
    pub fn set_within_bounds(&mut self, within_bounds: bool) {
        self.settings.within_bounds = within_bounds;
    }

    /// See [`LearnerSettings::within_seen`].
    pub fn set_within_seen(&mut self, within_seen: bool) {
        self.settings.within_seen = within_seen;
    }

    /// Takes what a row turned out to be: the target, and the base that [`Self::predict`] was given. Of nobody's account.
    pub fn observe(&mut self, row: &Row, base: f32, target: f32) {
        self.observe_of(0, row, base, target);
    }

    /// The same of an account, which has no more than its part of the sample; 0 where nobody says.
    pub fn observe_of(&mut self, account: Account, row: &Row, base: f32, target: f32) {
        let account = if self.settings.within_bounds { account } else { 0 };
        self.reservoir.offer(row, target - base, account);
        // With trees there is nothing for ridge to say.
        if self.trees.is_none() {
            self.note_target(target);
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
        let trees = match self.settings.growth {
            Growth::ByLeaves { mean_trees, .. } if loss == Loss::Squared => mean_trees,
            _ => self.settings.trees,
        };
        let training = Training::new(rows.to_vec(), self.reservoir.width(), targets, trees, loss);
        self.training = match self.settings.growth.leaves(loss) {
            Some(leaves) => training.map(|training| training.by_leaves(leaves)),
            None => training,
        };
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
            Some([median, _]) if self.settings.mean_percent == 0 => {
                let median = median.predict(&row[..]);
                (median, median)
            }
            Some([median, mean]) => (median.predict(&row[..]), mean.predict(&row[..])),
            None => self.by_ridge(row).map(|difference| (difference, difference))?,
        };
        let most = self.most(base);
        Some(Answer { median: (base + median).max(0.0).min(most), mean: (base + mean).max(0.0).min(most) })
    }

    pub(super) fn note_target(&mut self, target: f32) {
        if target.is_finite() {
            self.greatest = Some(self.greatest.map_or(target, |greatest| greatest.max(target)));
        }
    }

    /// No more is told from a base: of ridge neither the base nor the difference is beyond what was seen, and their sum may be.
    fn most(&self, base: f32) -> f32 {
        let greatest = self.greatest.filter(|_| self.settings.within_seen && self.trees.is_none());
        greatest.map_or(f32::INFINITY, |greatest| greatest.max(base) + std::f32::consts::LN_2)
    }

    /// The median of [`Self::predict`] alone, at half the cost.
    pub fn median(&self, row: &Row, base: f32) -> Option<f32> {
        let difference = match &self.trees {
            Some([median, _]) => median.predict(&row[..]),
            None => self.by_ridge(row)?,
        };
        let most = if self.settings.within_bounds { LOG_MAX } else { f32::INFINITY };
        Some((base + difference).max(0.0).min(most).min(self.most(base)))
    }

    fn by_ridge(&self, row: &Row) -> Option<f32> {
        if self.settings.within_bounds { self.ridge.predict_within_range(row) } else { self.ridge.predict(row) }
    }

    /// [`Self::predict`] for a block of rows, each from its own base; `None` before there are trees.
    pub fn predict_block(&self, block: &Block, bases: &[f32; BLOCK]) -> Option<[Answer; BLOCK]> {
        let [median, mean] = self.trees.as_ref()?;
        let medians = median.predict_block(block);
        let means = if self.settings.mean_percent == 0 { medians } else { mean.predict_block(block) };
        let from = |at: usize, differences: &[f32; BLOCK]| (bases[at] + differences[at]).max(0.0);
        Some(std::array::from_fn(|at| Answer { median: from(at, &medians), mean: from(at, &means) }))
    }

    /// See [`LearnerSettings::mean_percent`].
    pub fn mean_percent(&self) -> u8 {
        self.settings.mean_percent
    }

    /// From now on so much of the mean is told.
    pub fn set_mean_percent(&mut self, mean_percent: u8) {
        self.settings.mean_percent = mean_percent;
    }

    /// Whether the trees speak, not ridge.
    pub fn has_trees(&self) -> bool {
        self.trees.is_some()
    }
}
