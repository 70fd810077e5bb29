//! How much more than expected the next second may bring: a quantile that is followed, not assumed (Robbins and Monro 1951).

use serde::{Deserialize, Serialize};

/// Of the newest second in the running mean.
const MEAN_WEIGHT: f64 = 0.3;
/// By which the margin grows when it was too small.
const STEP: f64 = 0.15;
const MARGIN_RANGE: (f64, f64) = (1.02, 8.0);
const MARGIN_START: f64 = 1.5;

/// The expected arrivals of a second and the factor that they are exceeded by in one of so many seconds only.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Margin {
    mean_per_second: Option<f64>,
    last_per_second: f64,
    factor: f64,
    miss_share: f64,
}

impl Margin {
    /// `miss_share` of the seconds may exceed what is said, such as 0.002.
    pub fn new(miss_share: f64) -> Self {
        let miss_share = if miss_share.is_nan() { 0.01 } else { miss_share.clamp(1e-6, 0.5) };
        Self { mean_per_second: None, last_per_second: 0.0, factor: MARGIN_START, miss_share }
    }

    /// Takes the arrivals of a second.
    pub fn observe(&mut self, arrivals_per_second: f64) {
        let arrivals = crate::quantity(arrivals_per_second);
        if let Some(bound) = self.bound() {
            // At the right factor both steps cancel in the long run.
            let step = if arrivals > bound { STEP } else { -STEP * self.miss_share / (1.0 - self.miss_share) };
            self.factor = (self.factor * (1.0 + step)).clamp(MARGIN_RANGE.0, MARGIN_RANGE.1);
        }
        let mean = self.mean_per_second.unwrap_or(arrivals);
        self.mean_per_second = Some(mean + MEAN_WEIGHT * (arrivals - mean));
        self.last_per_second = arrivals;
    }

    /// What the next second hardly exceeds; `None` before the first.
    pub fn bound(&self) -> Option<f64> {
        self.mean_per_second.map(|mean| mean.max(self.last_per_second) * self.factor)
    }
}

#[cfg(test)]
mod tests {
    use super::Margin;

    /// Multiplicative noise around a slow wave, from a linear congruential generator.
    fn arrivals(second: u32, state: &mut u64) -> f64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let uniform = (*state >> 11) as f64 / 2.0_f64.powi(53);
        (1000.0 + 500.0 * (f64::from(second) / 5000.0).sin()) * (0.7 + 0.6 * uniform)
    }

    #[test]
    fn it_is_exceeded_as_often_as_was_asked_for() {
        for miss_share in [0.05, 0.01, 0.002] {
            let (mut margin, mut state, mut missed) = (Margin::new(miss_share), 1, 0);
            const SECONDS: u32 = 100_000;
            for second in 0..SECONDS {
                let came = arrivals(second, &mut state);
                missed += u32::from(margin.bound().is_some_and(|bound| came > bound));
                margin.observe(came);
            }
            let share = f64::from(missed) / f64::from(SECONDS);
            assert!(share <= 1.3 * miss_share && share >= 0.5 * miss_share, "{miss_share}: {share}");
        }
    }

    #[test]
    fn no_reading_makes_it_a_bound_that_is_no_number() {
        let mut margin = Margin::new(f64::NAN);
        for reading in [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e300] {
            margin.observe(reading);
            assert!(margin.bound().is_some_and(|bound| bound.is_finite() && bound >= 0.0), "{reading}");
        }
    }
}
