//! What ordering by a forecast is worth: how much of the order of what came it had right, measured on what came.
//!
//! Each value is compared with those before it. A pair counts as much as its two values differ, for the forecast if it put the greater
//! one first and against it if it did not (a concordance weighted by size, as in Gini 1912 and Schechtman and Yitzhaki 1987). All right
//! is 1, all wrong -1. A forecast that says the same of everyone, because it knows nothing of them, orders nothing and gets 0; so does
//! noise in the mean. How far off sizes are does not matter, as long as their order is right.

use crate::codec::{Damaged, Reader, Writer};
use crate::number::bounded;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Values that each is compared with.
pub(super) const COMPARED: usize = 16;
/// Weight of the newest value: the last two hundred count.
const WEIGHT: f64 = 1.0 / 100.0;
/// Values before which nothing is earned.
pub(super) const SEEN_MIN: u32 = 30;
/// More than so many are not more sure.
pub(super) const SEEN_MAX: f64 = 2.0 / WEIGHT;
/// What is earned is this many standard errors less than what was measured, so that luck earns nothing.
pub(super) const STANDARD_ERRORS: f64 = 2.0;
/// As in [`super::SkillMeter`].
const CORRELATION_MAX: f64 = 0.95;

/// Running means. 400 bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OrderMeter {
    /// Forecasts and what came, the oldest first.
    recent: VecDeque<(f64, f64)>,
    seen: u32,
    mean: f64,
    square: f64,
    product: f64,
    before: f64,
}

impl OrderMeter {
    /// Takes a forecast and what came. What is no number is passed over.
    pub fn observe(&mut self, forecast: f64, actual: f64) {
        let (Some(forecast), Some(actual)) = (bounded(forecast), bounded(actual)) else { return };
        let (right, all) = self.against(forecast, actual, COMPARED);
        self.keep(forecast, actual);
        // Where all are alike there is nothing to order.
        if all > 1e-9 {
            self.take(right / all);
        }
    }

    /// How much of the order among a value and the last so many that were kept a forecast has right, and how much there is.
    pub(super) fn against(&self, forecast: f64, actual: f64, count: usize) -> (f64, f64) {
        let (mut right, mut all) = (0.0, 0.0);
        for (other_forecast, other_actual) in self.recent.iter().skip(self.recent.len().saturating_sub(count)) {
            let apart = actual - other_actual;
            all += apart.abs();
            right += match forecast.total_cmp(other_forecast) {
                _ if (forecast - other_forecast).abs() < 1e-9 => 0.0,
                std::cmp::Ordering::Less => -apart,
                std::cmp::Ordering::Equal => 0.0,
                std::cmp::Ordering::Greater => apart,
            };
        }
        (right, all)
    }

    /// Those that come are compared with it too.
    pub(super) fn keep(&mut self, forecast: f64, actual: f64) {
        if self.recent.len() == COMPARED {
            self.recent.pop_front();
        }
        self.recent.push_back((forecast, actual));
    }

    /// Values that are kept.
    pub(super) fn kept(&self) -> usize {
        self.recent.len()
    }

    /// Values that were compared.
    pub(super) fn seen(&self) -> u32 {
        self.seen
    }

    pub(super) fn take(&mut self, right: f64) {
        self.seen = self.seen.saturating_add(1);
        let weight = WEIGHT.max(1.0 / f64::from(self.seen));
        self.mean += weight * (right - self.mean);
        self.square += weight * (right * right - self.square);
        self.product += weight * (right * self.before - self.product);
        self.before = right;
    }

    /// As bytes within a model.
    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.u32(self.seen);
        [self.mean, self.square, self.product, self.before].iter().for_each(|value| writer.f32(*value as f32));
        writer.count(self.recent.len());
        for (forecast, actual) in &self.recent {
            writer.f32(*forecast as f32);
            writer.f32(*actual as f32);
        }
    }

    /// What [`Self::write`] wrote. No mean of what lies between -1 and 1 lies elsewhere.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Damaged> {
        let seen = reader.u32()?;
        let mut mean = || match f64::from(reader.finite_f32()?) {
            mean if (-1.0..=1.0).contains(&mean) => Ok(mean),
            _ => Err(Damaged::Value),
        };
        let (mean, square, product, before) = (mean()?, mean()?, mean()?, mean()?);
        let mut recent = VecDeque::new();
        for _ in 0..reader.count(COMPARED)? {
            recent.push_back((f64::from(reader.finite_f32()?), f64::from(reader.finite_f32()?)));
        }
        Ok(Self { recent, seen, mean, square, product, before })
    }

    /// What is sure of it, 0 to 1: what was measured less two standard errors; 0 until enough was seen.
    pub fn earned(&self) -> f64 {
        if self.seen < SEEN_MIN {
            0.0
        } else {
            (self.mean - STANDARD_ERRORS * self.error_squared().sqrt()).clamp(0.0, 1.0)
        }
    }

    /// What was measured.
    pub(super) fn mean(&self) -> f64 {
        self.mean
    }

    /// The square of its standard error.
    pub(super) fn error_squared(&self) -> f64 {
        let variance = (self.square - self.mean * self.mean).max(0.0);
        let covariance = self.product - self.mean * self.mean;
        let correlation = if variance > 0.0 { (covariance / variance).clamp(0.0, CORRELATION_MAX) } else { 0.0 };
        let window = f64::from(self.seen).min(SEEN_MAX) * (1.0 - correlation) / (1.0 + correlation);
        variance / window
    }
}

#[cfg(test)]
mod tests {
    use super::OrderMeter;

    /// Numbers from 0 to 1 that have nothing to do with each other.
    fn noise(seed: &mut u64) -> f64 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 33) as f64 / (1_u64 << 31) as f64
    }

    #[test]
    fn the_right_order_earns_whatever_the_scale_and_one_forecast_for_all_earns_nothing() {
        let (mut scaled, mut same, mut reversed) =
            (OrderMeter::default(), OrderMeter::default(), OrderMeter::default());
        let mut seed = 5;
        for number in 0..60 {
            let actual = noise(&mut seed);
            scaled.observe(actual / 10.0 + 3.0, actual);
            same.observe(0.5, actual);
            reversed.observe(-actual, actual);
            assert!(number > 29 || scaled.earned() == 0.0, "nothing is earned by {number} values");
        }
        assert_eq!((scaled.earned(), same.earned(), reversed.earned()), (1.0, 0.0, 0.0));
        scaled.observe(f64::NAN, 1.0);
        scaled.observe(1.0, f64::INFINITY);
        assert!((0.0..=1.0).contains(&scaled.earned()));
    }

    #[test]
    fn noise_earns_next_to_nothing() {
        let mut earning = 0;
        for first in 0..200_u64 {
            let (mut meter, mut seed) = (OrderMeter::default(), first.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            for _ in 0..150 {
                let forecast = noise(&mut seed);
                meter.observe(forecast, noise(&mut seed));
            }
            // Below a tenth nothing moves.
            earning += u32::from(meter.earned() >= 0.1);
        }
        assert!(earning <= 4, "{earning} of 200");
    }

    #[test]
    fn values_that_are_all_alike_have_no_order() {
        let mut meter = OrderMeter::default();
        (0..100).for_each(|number| meter.observe(f64::from(number), 7.0));
        assert_eq!(meter.earned(), 0.0);
    }
}
