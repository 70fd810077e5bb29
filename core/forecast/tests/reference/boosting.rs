//! Boosted trees against LightGBM on numbers that both draw alike.

use crate::reference::data::{Measure, golden};
use minerva_forecast::boosting::{Boosted, Loss, Training};

pub(crate) const TRAIN: usize = 10_000;
const TEST: usize = 2_000;
pub(crate) const FEATURES: usize = 10;
const NOISE: f64 = 4.0;
pub(crate) const TREES: usize = 200;
/// As the mean's trees of the next slice.
const LEAVES: usize = 31;

/// SplitMix64 (Steele, Lea and Flood 2014).
struct Draws(u64);

impl Draws {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / 2.0_f64.powi(53)
    }
}

/// Rows and targets: Friedman's first function, stretched, with noise (`tests/golden-generate/boosting.py` draws the same).
pub(crate) fn drawn() -> (Vec<f32>, Vec<f32>) {
    let mut draws = Draws(1);
    let (mut rows, mut targets) = (Vec::new(), Vec::new());
    for _ in 0..TRAIN + TEST {
        let x: Vec<f32> = (0..FEATURES).map(|_| draws.uniform() as f32).collect();
        let noise = (0..12).map(|_| draws.uniform()).sum::<f64>() - 6.0;
        let at = |index: usize| f64::from(x[index]);
        let signal = 10.0 * (std::f64::consts::PI * at(0) * at(1)).sin()
            + 20.0 * (at(2) - 0.5).powi(2)
            + 10.0 * at(3)
            + 5.0 * at(4);
        rows.extend(x);
        targets.push((4.75 * signal + NOISE * noise) as f32);
    }
    (rows, targets)
}

pub(crate) fn fit(rows: &[f32], targets: &[f32]) -> (Boosted, u64) {
    finished(training(rows, targets))
}

/// The same by leaves.
pub(crate) fn fit_by_leaves(rows: &[f32], targets: &[f32]) -> (Boosted, u64) {
    finished(training(rows, targets).by_leaves(LEAVES))
}

fn training(rows: &[f32], targets: &[f32]) -> Training {
    Training::new(rows[..TRAIN * FEATURES].to_vec(), FEATURES, &targets[..TRAIN], TREES, Loss::Squared).expect("rows")
}

fn finished(mut training: Training) -> (Boosted, u64) {
    while training.advance() {}
    let additions = training.additions();
    (training.finish(), additions)
}

/// The model's error on the rows that it was not fitted on.
pub(crate) fn root_mean_square(model: &Boosted, rows: &[f32], targets: &[f32]) -> f64 {
    let held_out = rows.chunks_exact(FEATURES).zip(targets).skip(TRAIN);
    let sum: f64 = held_out.map(|(row, target)| f64::from(model.predict(row) - target).powi(2)).sum();
    (sum / TEST as f64).sqrt()
}

pub(crate) fn measured() -> Vec<Measure> {
    let reference: serde_json::Value = serde_json::from_str(&golden("boosting.json")).unwrap();
    let (rows, targets) = drawn();
    let first = reference["first_target"].as_f64().unwrap();
    let ratio = |model: &Boosted| root_mean_square(model, &rows, &targets) / reference["rmse"].as_f64().unwrap();
    let ((model, additions), (by_leaves, additions_by_leaves)) = (fit(&rows, &targets), fit_by_leaves(&rows, &targets));
    let all = (TREES * TRAIN * FEATURES) as f64;
    vec![
        Measure::at_most(
            "the first target, drawn as the reference drew it",
            (f64::from(targets[0]) - first).abs(),
            "",
            1e-4,
            "the same",
        ),
        Measure::at_most("boosted trees, RMSE to LightGBM's", ratio(&model), "", 1.03, "at most 1.03"),
        Measure::at_most("boosted trees by leaves, RMSE to LightGBM's", ratio(&by_leaves), "", 1.03, "at most 1.03"),
        Measure::at_most(
            "additions to histograms, to the most that siblings leave",
            additions as f64 / (2.5 * all),
            "",
            1.0,
            "at most 1",
        ),
        Measure::at_most(
            "additions to histograms of trees by leaves, to the most that six levels leave",
            additions_by_leaves as f64 / (4.0 * all),
            "",
            1.0,
            "at most 1",
        ),
    ]
}
