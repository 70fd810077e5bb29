//! How much better a forecast is than the best naive one, measured on what came ("prequential", Dawid 1984).

use super::naive::NAIVE;
use crate::number::bounded;
use serde::{Deserialize, Serialize};

/// Weight of the newest error: the last few hundred count.
const WEIGHT: f64 = 1.0 / 200.0;
/// Values before which nothing is earned.
const SEEN_MIN: u32 = 30;
/// What is earned is this many standard errors less than what was measured, so that luck earns nothing.
const STANDARD_ERRORS: f64 = 2.0;
/// Correlation of neighbouring differences above this is taken as this: beyond, a window holds hardly one independent value.
const CORRELATION_MAX: f64 = 0.95;

/// A series counts for the skill of two together if at least this part of the bytes that may come is its.
const PART_MIN: f64 = 0.01;

/// Which of two series count in what is told of both: those that more than hardly add to the bytes that may come, both where none does.
pub(crate) fn counted(bytes: [f64; 2]) -> [bool; 2] {
    let all: f64 = bytes.iter().sum();
    if all > 0.0 { bytes.map(|own| own >= PART_MIN * all) } else { [true; 2] }
}

/// The skill of two series together: their mean, weighted by the bytes that may come of each. Of none, the smaller one.
pub(crate) fn of_both(bytes: [f64; 2], skills: [f64; 2]) -> f64 {
    let all: f64 = bytes.iter().sum();
    if all > 0.0 {
        bytes.into_iter().zip(skills).map(|(own, skill)| own / all * skill).sum()
    } else {
        skills[0].min(skills[1])
    }
}

/// The same as by earlier versions: of a series whose skill is exactly 0 it was held that there is nothing to foresee.
pub(crate) fn of_both_that_earned(skills: [f64; 2]) -> f64 {
    let [reads, writes] = skills;
    if reads * writes == 0.0 { reads + writes } else { reads.min(writes) }
}

/// Moving means of absolute errors. 150 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SkillMeter {
    seen: u32,
    model: f64,
    naive: [f64; NAIVE],
    /// For each naive forecast: mean square of how much larger its error was, and mean product with the difference before.
    squares: [f64; NAIVE],
    products: [f64; NAIVE],
    before: [f64; NAIVE],
}

impl SkillMeter {
    /// Scores a forecast and the naive ones that were made at the same time. What is no number is passed over.
    pub fn observe(&mut self, forecast: f64, naive: &[f64; NAIVE], actual: f64) {
        let (Some(forecast), Some(actual)) = (bounded(forecast), bounded(actual)) else { return };
        self.seen = self.seen.saturating_add(1);
        let weight = WEIGHT.max(1.0 / f64::from(self.seen));
        let error = (actual - forecast).abs();
        self.model += weight * (error - self.model);
        for (index, naive) in naive.iter().enumerate() {
            let naive_error = (actual - bounded(*naive).unwrap_or(0.0)).abs();
            let gain = naive_error - error;
            self.naive[index] += weight * (naive_error - self.naive[index]);
            self.squares[index] += weight * (gain * gain - self.squares[index]);
            self.products[index] += weight * (gain * self.before[index] - self.products[index]);
            self.before[index] = gain;
        }
    }

    /// Forecasts scored.
    pub fn seen(&self) -> u32 {
        self.seen
    }

    /// 1 less the model's mean absolute error in units of the best naive one's: 0 is no better, below 0 is worse, 1 is perfect. 0 if
    /// the best naive forecast makes no error.
    pub fn skill(&self) -> f64 {
        let best = self.naive.iter().copied().fold(f64::INFINITY, f64::min);
        if self.seen > 0 && best > 0.0 { 1.0 - self.model / best } else { 0.0 }
    }

    /// The skill that is sure, 0 to 1: what is left of [`Self::skill`] two standard errors down, against every naive forecast.
    pub fn earned(&self) -> f64 {
        if self.seen < SEEN_MIN {
            return 0.0;
        }
        let window = f64::from(self.seen).min(2.0 / WEIGHT);
        let mut least = f64::INFINITY;
        for index in 0..NAIVE {
            let gain = self.naive[index] - self.model;
            let variance = (self.squares[index] - gain * gain).max(0.0);
            let covariance = self.products[index] - gain * gain;
            let correlation = if variance > 0.0 { (covariance / variance).clamp(0.0, CORRELATION_MAX) } else { 0.0 };
            // Of a first-order autoregression so many values are worth one.
            let worth = (1.0 + correlation) / (1.0 - correlation);
            let sure = gain - STANDARD_ERRORS * (variance * worth / window).sqrt();
            let part = if self.naive[index] > 0.0 { sure / self.naive[index] } else { 0.0 };
            least = least.min(part);
        }
        least.clamp(0.0, 1.0)
    }

    /// What is told of the forecast: the skill that is sure, or how much worse than the best naive one it is.
    pub fn told(&self) -> f64 {
        if self.seen < SEEN_MIN { 0.0 } else { self.skill().min(0.0) + self.earned() }
    }

    /// The model does worse than the best naive forecast: use that instead.
    pub fn is_switched_off(&self) -> bool {
        self.seen >= SEEN_MIN && self.skill() < 0.0
    }

    /// Which of the naive forecasts had the least error.
    pub fn best_naive(&self) -> usize {
        (0..NAIVE).min_by(|a, b| self.naive[*a].total_cmp(&self.naive[*b])).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::online::Naive;

    #[test]
    fn each_series_counts_by_the_bytes_that_may_come_of_it() {
        let reads_at_random = [900e6, 100e6];
        let of = |bytes, skills| (of_both(bytes, skills) * 1e3).round() / 1e3;
        // Reads that have proved nothing are not passed over for regular writes that are few.
        assert_eq!(of(reads_at_random, [0.0, 0.9]), 0.09);
        assert_eq!(of_both_that_earned([0.0, 0.9]), 0.9, "as recordings of earlier versions have it");
        assert_eq!([of(reads_at_random, [0.5, 0.9]), of(reads_at_random, [0.5, -0.2])], [0.54, 0.43]);
        // Who writes next to nothing is judged by what it reads, and the other way round.
        assert_eq!([of([750e6, 4096.0], [0.5, 0.0]), of([0.0, 9e6], [0.0, 0.9])], [0.5, 0.9]);
        assert_eq!(of([0.0, 0.0], [0.3, 0.4]), 0.3);
    }

    #[test]
    fn a_forecast_that_knows_earns_and_one_that_guesses_earns_nothing() {
        let (mut knows, mut guesses, mut naive) = (SkillMeter::default(), SkillMeter::default(), Naive::default());
        let mut seed = 3_u64;
        for _ in 0..1000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let actual = (seed >> 40) as f64;
            let guess = ((seed >> 13) & 0xFF_FFFF) as f64;
            knows.observe(actual * 0.9, &naive.forecasts(), actual);
            guesses.observe(guess, &naive.forecasts(), actual);
            naive.observe(actual);
        }
        assert!(knows.earned() > 0.5 && !knows.is_switched_off(), "{}", knows.earned());
        assert!(guesses.earned() == 0.0 && guesses.is_switched_off(), "{}", guesses.skill());
    }
}
