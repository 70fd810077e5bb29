//! Holt and Winters' exponential smoothing with a damped trend and additive days (Gardner and McKenzie 1985).

use super::{BINS_PER_DAY, Seasonal};
use serde::{Deserialize, Serialize};

/// Rounds in which each parameter is tried one step up and one down.
const ROUNDS: usize = 8;
/// The first step, as a factor on the odds of a parameter.
const STEP: f64 = 2.5;

/// How fast each part follows, each between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Smoothing {
    /// Of the level.
    pub alpha: f64,
    /// Of the trend.
    pub beta: f64,
    /// Of the daily profile.
    pub gamma: f64,
    /// What is left of the trend after a step.
    pub phi: f64,
}

impl Default for Smoothing {
    /// What did best within a cluster of days when held fixed.
    fn default() -> Self {
        Self { alpha: 0.1, beta: 0.01, gamma: 0.2, phi: 0.95 }
    }
}

/// The forecaster: a level, a trend and a value for each bin of the day.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HoltWinters {
    smoothing: Smoothing,
    level: f64,
    trend: f64,
    #[serde(with = "crate::state::array")]
    season: [f64; BINS_PER_DAY],
    /// Values of the first day, until it is complete.
    filled: usize,
    squared_errors: f64,
}

impl HoltWinters {
    /// A forecaster that has seen nothing. It starts from the mean of its first day and from how each bin differs from it.
    pub fn new(smoothing: Smoothing) -> Self {
        Self { smoothing, level: 0.0, trend: 0.0, season: [0.0; BINS_PER_DAY], filled: 0, squared_errors: 0.0 }
    }

    /// One that starts from a given level and the profile of a day, with no trend.
    pub fn from_start(smoothing: Smoothing, level: f64, season: [f64; BINS_PER_DAY]) -> Self {
        Self { level, season, filled: BINS_PER_DAY, ..Self::new(smoothing) }
    }

    /// Finds parameters with a small sum of squared errors on `series`, whose first value is in bin 0 of a day, and follows it to
    /// its end. Cost: at most 64 passes over the series.
    pub fn fit(series: &[f64]) -> Self {
        let followed = |smoothing| {
            let mut model = Self::new(smoothing);
            for (bin, value) in series.iter().enumerate() {
                model.observe(bin, *value);
            }
            model
        };
        let mut best = followed(Smoothing::default());
        let mut step = STEP;
        for _ in 0..ROUNDS {
            let before = best.squared_errors;
            for parameter in 0..4 {
                for factor in [step, 1.0 / step] {
                    let mut smoothing = best.smoothing;
                    let value = match parameter {
                        0 => &mut smoothing.alpha,
                        1 => &mut smoothing.beta,
                        2 => &mut smoothing.gamma,
                        _ => &mut smoothing.phi,
                    };
                    let odds = *value / (1.0 - *value) * factor;
                    *value = (odds / (1.0 + odds)).clamp(1e-4, 0.995);
                    let tried = followed(smoothing);
                    if tried.squared_errors < best.squared_errors {
                        best = tried;
                    }
                }
            }
            if best.squared_errors >= before {
                step = 1.0 + (step - 1.0) / 2.0;
            }
        }
        best
    }

    /// Sum of the squared errors of all forecasts one bin ahead.
    pub fn squared_errors(&self) -> f64 {
        self.squared_errors
    }

    /// The parameters.
    pub fn smoothing(&self) -> Smoothing {
        self.smoothing
    }

    fn ahead(&self, bin: usize, steps: usize) -> f64 {
        let phi = self.smoothing.phi;
        let damped = if phi < 1.0 { phi * (1.0 - libm::pow(phi, steps as f64)) / (1.0 - phi) } else { steps as f64 };
        self.level + damped * self.trend + self.season[bin % BINS_PER_DAY]
    }

    /// As [`Seasonal::forecast`], but as the formula has it: below 0 too.
    pub fn forecast_unbounded(&self, bin: usize, ahead: &mut [f64]) -> bool {
        for (step, value) in ahead.iter_mut().enumerate() {
            *value = self.ahead(bin + step, step + 1);
        }
        self.filled >= BINS_PER_DAY
    }
}

impl Seasonal for HoltWinters {
    fn observe(&mut self, bin: usize, value: f64) {
        let slot = bin % BINS_PER_DAY;
        if self.filled < BINS_PER_DAY {
            // The first day: values are kept in the profile until their mean is known.
            let before = self.level / self.filled.max(1) as f64;
            let value = if value.is_finite() { value } else { before };
            self.season[slot] = value;
            self.level += value;
            self.filled += 1;
            if self.filled == BINS_PER_DAY {
                self.level /= BINS_PER_DAY as f64;
                let level = self.level;
                self.season.iter_mut().for_each(|value| *value -= level);
            }
            return;
        }
        let value = if value.is_finite() { value } else { self.ahead(bin, 1) };
        let Smoothing { alpha, beta, gamma, phi } = self.smoothing;
        let (expected, season) = (self.level + phi * self.trend, self.season[slot]);
        let error = value - expected - season;
        self.squared_errors += error * error;
        let level = alpha * (value - season) + (1.0 - alpha) * expected;
        self.trend = beta * (level - self.level) + (1.0 - beta) * phi * self.trend;
        self.season[slot] = gamma * (value - expected) + (1.0 - gamma) * season;
        self.level = level;
    }

    fn forecast(&self, bin: usize, ahead: &mut [f64]) -> bool {
        let known = self.forecast_unbounded(bin, ahead);
        ahead.iter_mut().for_each(|value| *value = value.max(0.0));
        known
    }
}
