//! Intervals that cover what they promise: offsets around the forecast that move with every miss (adaptive conformal inference,
//! Gibbs and Candès 2021, on the scale of log1p).

use crate::number::bounded;
use serde::{Deserialize, Serialize};

/// How far an offset moves at a miss, as a part of the mean size of errors.
const STEP: f64 = 0.1;
/// Weight of the newest error in their mean size.
const WEIGHT: f64 = 0.02;
/// Weight of the newest error in how many are above and below.
const SIDE_WEIGHT: f64 = 0.005;
/// Misses before the interval is trusted.
const SEEN_MIN: u32 = 20;

/// From, to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// What comes is below this in half of the misses.
    pub low: f64,
    /// What comes is above this in the other half.
    pub high: f64,
}

/// Learns the interval around a forecast that holds a given part of what comes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IntervalMeter {
    coverage: f64,
    below: f64,
    above: f64,
    size: f64,
    seen: u32,
    covered: f64,
    /// See [`Self::around_any`].
    #[serde(default)]
    shares_tails: bool,
    /// The parts of what came that were above the forecast, and below.
    #[serde(default)]
    sides: [f64; 2],
}

impl IntervalMeter {
    /// `coverage` from 0 to 1, such as 0.8.
    pub fn new(coverage: f64) -> Self {
        Self {
            coverage: coverage.clamp(0.01, 0.99),
            below: 0.0,
            above: 0.0,
            size: 0.0,
            seen: 0,
            covered: 0.0,
            shares_tails: false,
            sides: [0.0; 2],
        }
    }

    /// One around forecasts that need not lie in the middle. Where less than half of the misses can lie beyond one end, because the interval holds
    /// the forecast and less than that comes beyond it, the other end has the rest; it would hold too much otherwise.
    pub fn around_any(coverage: f64) -> Self {
        Self { shares_tails: true, ..Self::new(coverage) }
    }

    /// Takes a forecast and what came, both at least 0.
    pub fn observe(&mut self, forecast: f64, actual: f64) {
        let (Some(forecast), Some(actual)) = (bounded(forecast), bounded(actual)) else { return };
        let error = libm::log1p(actual.max(0.0)) - libm::log1p(forecast.max(0.0));
        self.seen = self.seen.saturating_add(1);
        let held = self.interval(forecast).is_some_and(|interval| (interval.low..=interval.high).contains(&actual));
        self.covered += (f64::from(u8::from(held)) - self.covered) * WEIGHT.max(1.0 / f64::from(self.seen));
        self.size += (error.abs() - self.size) * WEIGHT.max(1.0 / f64::from(self.seen));
        // Each offset is a running quantile: it moves more, the rarer the side. Steps shrink as it settles.
        // Where nothing can come below the interval, because it begins at 0, all misses are above it.
        let begins_at_zero = libm::log1p(forecast.max(0.0)) <= self.below;
        let missed = 1.0 - self.coverage;
        let spare = self.spare([error > 0.0, error < 0.0]);
        let (tail_below, tail_above) = match begins_at_zero {
            true => (missed / 2.0, missed),
            false => (missed / 2.0 + spare[0], missed / 2.0 + spare[1]),
        };
        let step = self.size * STEP.max(1.0 / f64::from(self.seen).sqrt());
        let quantile = |offset: f64, error: f64, tail: f64| {
            let moved = offset + step * if error > offset { 1.0 - tail } else { -tail };
            moved.max(0.0)
        };
        self.above = quantile(self.above, error, tail_above);
        self.below = quantile(self.below, -error, tail_below);
    }

    /// What of half of the misses cannot lie above, and cannot lie below; takes on which side what came is.
    fn spare(&mut self, is_beyond: [bool; 2]) -> [f64; 2] {
        let (weight, half) = (SIDE_WEIGHT.max(1.0 / f64::from(self.seen)), (1.0 - self.coverage) / 2.0);
        for (side, is_beyond) in self.sides.iter_mut().zip(is_beyond) {
            *side += (f64::from(u8::from(is_beyond)) - *side) * weight;
        }
        self.sides.map(|side| if self.shares_tails { (half - side).max(0.0) } else { 0.0 })
    }

    /// The interval around a forecast; `None` until enough was seen.
    pub fn interval(&self, forecast: f64) -> Option<Interval> {
        let log = libm::log1p(forecast.max(0.0));
        // Offsets of nothing are rounding's to miss: what repeats exactly is held exactly.
        let low = if self.below > 0.0 { libm::expm1(log - self.below).max(0.0) } else { forecast };
        let high = if self.above > 0.0 { libm::expm1(log + self.above) } else { forecast };
        (self.seen >= SEEN_MIN && forecast.is_finite()).then_some(Interval { low, high })
    }

    /// The part of recent intervals that held, 0 to 1.
    pub fn covered(&self) -> f64 {
        self.covered
    }
}
