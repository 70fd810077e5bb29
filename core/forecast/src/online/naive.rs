//! Forecasts that need no model. A model is worth what it is better than the best of them.

use crate::number::bounded;
use serde::{Deserialize, Serialize};

/// Values of the short mean.
const SHORT: usize = 16;
/// Weight of a new value in the long mean once it has seen more than a few hundred.
const LONG_WEIGHT: f64 = 1.0 / 600.0;
/// How far the running median moves at a value, as a part of the mean absolute value.
const MEDIAN_STEP: f64 = 0.05;

/// How many naive forecasts there are.
pub const NAIVE: usize = 5;

/// Zero, the last value, the mean of the last 16, the long mean and the median.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Naive {
    recent: [f32; SHORT],
    seen: u32,
    long: f64,
    median: f64,
}

impl Naive {
    /// Takes the next value; one that is no number is passed over.
    pub fn observe(&mut self, value: f64) {
        let Some(value) = bounded(value) else { return };
        self.recent[self.seen as usize % SHORT] = value as f32;
        // The count only matters until the short mean is full and the long one has settled; keep its place in the ring.
        self.seen = if self.seen == u32::MAX { self.seen - SHORT as u32 + 1 } else { self.seen + 1 };
        self.long += (value - self.long) * LONG_WEIGHT.max(1.0 / f64::from(self.seen));
        let step = MEDIAN_STEP * self.long.abs();
        self.median += (value - self.median).clamp(-step, step);
    }

    /// Values taken.
    pub fn seen(&self) -> u32 {
        self.seen
    }

    /// The forecasts of the next value: zero, last, mean of 16, long mean, running median. All zero before the first value.
    pub fn forecasts(&self) -> [f64; NAIVE] {
        let filled = (self.seen as usize).min(SHORT);
        if filled == 0 {
            return [0.0; NAIVE];
        }
        let last = f64::from(self.recent[(self.seen as usize - 1) % SHORT]);
        let mean = self.recent[..filled].iter().copied().map(f64::from).sum::<f64>() / filled as f64;
        [0.0, last, mean, self.long, self.median]
    }
}
