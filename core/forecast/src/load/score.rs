//! How much better forecasts of whole days were than naive ones.

use serde::{Deserialize, Serialize};

/// Naive forecasts of a bin: nothing, as a day ago, as a week ago, as the last bin, as the mean of the last week, as its median.
pub(super) const NAIVE: usize = 6;
/// Weight of the newest day.
const WEIGHT: f64 = 0.15;
/// Days before which nothing is earned.
const DAYS_MIN: u32 = 5;
/// What is earned is this many standard errors less than what was measured, so that luck earns nothing.
const STANDARD_ERRORS: f64 = 2.0;

/// Moving means of the absolute errors of days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Score {
    days: u32,
    model: f64,
    naive: [f64; NAIVE],
    /// For each naive forecast: mean square of how much larger its error was.
    squares: [f64; NAIVE],
}

impl Score {
    /// Takes the mean absolute errors of a day, of the forecast and of the naive ones.
    pub(super) fn observe(&mut self, model: f64, naive: &[f64; NAIVE]) {
        self.days = self.days.saturating_add(1);
        let weight = WEIGHT.max(1.0 / f64::from(self.days));
        self.model += weight * (model - self.model);
        for (index, error) in naive.iter().enumerate() {
            let gain = error - model;
            self.naive[index] += weight * (error - self.naive[index]);
            self.squares[index] += weight * (gain * gain - self.squares[index]);
        }
    }

    pub(super) fn days(&self) -> u32 {
        self.days
    }

    /// 1 less the error over that of the best naive forecast, as far as it is sure, and 0 until some days were scored; below 0 how much
    /// worse it is.
    pub(super) fn told(&self) -> f64 {
        if self.days < DAYS_MIN {
            return 0.0;
        }
        let window = f64::from(self.days).min(2.0 / WEIGHT);
        let sure = |index: usize| {
            let gain = self.naive[index] - self.model;
            let variance = (self.squares[index] - gain * gain).max(0.0);
            let least = gain - STANDARD_ERRORS * (variance / window).sqrt();
            if self.naive[index] > 0.0 { least / self.naive[index] } else { 0.0 }
        };
        let earned = (0..NAIVE).map(sure).fold(f64::INFINITY, f64::min).clamp(0.0, 1.0);
        let best = self.naive.iter().copied().fold(f64::INFINITY, f64::min);
        let measured = if best > 0.0 { 1.0 - self.model / best } else { 0.0 };
        earned + measured.min(0.0)
    }
}
