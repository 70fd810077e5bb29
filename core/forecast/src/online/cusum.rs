//! Sudden shifts: Page's cumulative sum (1954), two-sided, in units of the series' own noise.

use crate::number::bounded;
use serde::{Deserialize, Serialize};

/// Shifts of less than this many deviations are drift.
const SLACK: f64 = 0.5;
/// The sum, in deviations, at which a shift is told.
const ALARM: f64 = 12.0;
/// Weight of a new value in mean and deviation.
const WEIGHT: f64 = 0.01;
/// Values before the first alarm.
const SEEN_MIN: u32 = 10;
/// One value adds at most so many deviations: a single burst is no regime.
const STEP_MAX: f64 = 6.0;

/// Tells when the level of a series has shifted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cusum {
    mean: f64,
    deviation: f64,
    up: f64,
    down: f64,
    seen: u32,
}

impl Cusum {
    /// Takes a value; whether the level has shifted. It then starts anew from this value.
    pub fn observe(&mut self, value: f64) -> bool {
        let Some(value) = bounded(value) else { return false };
        self.seen = self.seen.saturating_add(1);
        let error = value - self.mean;
        if self.seen > SEEN_MIN && self.deviation > 0.0 {
            // A mean absolute deviation is 0.8 of a normal standard deviation.
            let scaled = (error / (1.25 * self.deviation)).clamp(-STEP_MAX, STEP_MAX);
            self.up = (self.up + scaled - SLACK).max(0.0);
            self.down = (self.down - scaled - SLACK).max(0.0);
            if self.up > ALARM || self.down > ALARM {
                *self = Self { mean: value, deviation: self.deviation, seen: 1, ..Self::default() };
                return true;
            }
        }
        let weight = WEIGHT.max(1.0 / f64::from(self.seen));
        self.mean += weight * error;
        self.deviation += weight * (error.abs() - self.deviation);
        false
    }
}
