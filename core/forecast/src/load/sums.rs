//! The bytes of a whole day or week, with an interval of their own: errors of bins partly cancel out and partly go together, so that the
//! intervals of bins say nothing of their sum. And bins are told by medians, which sum to less than the bytes that come.
//!
//! Several times a day the sum of what is foreseen is kept until its time is over. What then came scales later sums, as a running median
//! of the ratio, and its spread around those is their interval.

use crate::number::quantity;
use crate::online::IntervalMeter;
use minerva_model::Expectation;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// All intervals hold so much of what comes.
const COVERAGE: f64 = 0.8;
/// Of the logarithm of the ratio: how far it moves with each sum, and the bound beyond which a sum is a fault of the data.
const RATIO_STEP: f64 = 0.05;
const RATIO_LOG_MAX: f64 = 3.0;
/// Degrees of freedom below which the approximation of Student's quantile does not hold.
const FREEDOM_MIN: f64 = 2.0;

/// Sums over some bins.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Sums {
    pending: VecDeque<Pending>,
    /// Logarithm of what came to what was foreseen.
    ratio: f64,
    seen: u32,
    interval: IntervalMeter,
}

/// A sum whose time is not over.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Pending {
    foreseen: f64,
    came: f64,
    bins_seen: u32,
    bins_left: u32,
    bins: u32,
}

impl Default for Sums {
    fn default() -> Self {
        Self { pending: VecDeque::new(), ratio: 0.0, seen: 0, interval: IntervalMeter::new(COVERAGE) }
    }
}

impl Sums {
    /// Keeps what is foreseen of the bins that follow.
    pub(super) fn plan(&mut self, ahead: &[f64]) {
        let (foreseen, bins) = (ahead.iter().copied().map(quantity).sum(), ahead.len() as u32);
        self.pending.push_back(Pending { foreseen, came: 0.0, bins_seen: 0, bins_left: bins, bins });
    }

    /// Takes the next bin; NaN if nothing is known of it.
    pub(super) fn observe(&mut self, value: f64) {
        for pending in &mut self.pending {
            pending.bins_left -= 1;
            if value.is_finite() {
                pending.came += quantity(value);
                pending.bins_seen += 1;
            }
        }
        while let Some(over) = self.pending.front().copied().filter(|pending| pending.bins_left == 0) {
            self.pending.pop_front();
            // A time of which a tenth was not seen says nothing of its sum.
            if over.bins_seen * 10 >= over.bins * 9 {
                self.take(over.foreseen, over.came * f64::from(over.bins) / f64::from(over.bins_seen));
            }
        }
    }

    fn take(&mut self, foreseen: f64, came: f64) {
        self.interval.observe(self.scaled(foreseen), came);
        let log = (libm::log1p(came) - libm::log1p(foreseen)).clamp(-RATIO_LOG_MAX, RATIO_LOG_MAX);
        self.seen = self.seen.saturating_add(1);
        // The first are taken as they are; from then on a running median.
        let early = 1.0 / f64::from(self.seen);
        let off = log - self.ratio;
        self.ratio += if early > RATIO_STEP { early * off } else { off.clamp(-RATIO_STEP, RATIO_STEP) };
    }

    /// How much wider an interval has to be that was learnt from few sums: as Student's ninth decile lies farther out than the normal one
    /// (Cornish and Fisher 1937), around a middle that is estimated too. Those that overlap count once, and two that follow each other
    /// hardly more, since levels that lie off lie off for longer (an autoregression of 1/3).
    fn few(&self) -> f64 {
        let sums = 0.5 * f64::from(self.seen) / (self.pending.len() as f64).max(1.0);
        let freedom = (sums - 1.0).max(FREEDOM_MIN);
        (1.0 + 0.661 / freedom + 0.445 / (freedom * freedom)) * (1.0 + 1.0 / (1.0 + freedom)).sqrt()
    }

    fn scaled(&self, foreseen: f64) -> f64 {
        libm::expm1(libm::log1p(foreseen) + self.ratio).max(0.0)
    }

    /// What is expected of the sum of bins that are foreseen so, each of `seconds`. Both ends are the value until enough came.
    pub(super) fn expected(&self, ahead: impl Iterator<Item = f64>, seconds: f64) -> Expectation {
        let value = self.scaled(ahead.map(quantity).sum());
        let (lower, upper) = match self.interval.interval(value) {
            Some(interval) => {
                let farther =
                    |end: f64| libm::expm1(libm::log1p(value) + self.few() * (libm::log1p(end) - libm::log1p(value)));
                (quantity(farther(interval.low)).min(value), quantity(farther(interval.high)).max(value))
            }
            None => (value, value),
        };
        let [value, lower, upper] = [value, lower, upper].map(|sum| (sum * seconds) as f32);
        Expectation { value, lower, upper }
    }
}

#[cfg(test)]
mod tests {
    use super::Sums;

    /// Numbers from 0 to 1 that have nothing to do with each other.
    fn noise(seed: &mut u64) -> f64 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 33) as f64 / (1_u64 << 31) as f64
    }

    /// Days of ten bins that are foreseen as 1 each and bring so much; how many of the sums after the first hundred were within.
    fn covered(mut day: impl FnMut(&mut u64) -> [f64; 10]) -> f64 {
        let (mut sums, mut seed, mut within) = (Sums::default(), 7, 0);
        for number in 0..1_100 {
            sums.plan(&[1.0; 10]);
            let expected = sums.expected([1.0; 10].into_iter(), 1.0);
            let came = day(&mut seed);
            came.iter().for_each(|value| sums.observe(*value));
            let sum = came.iter().sum::<f64>() as f32;
            within += u32::from(number >= 100 && (expected.lower..=expected.upper).contains(&sum));
        }
        f64::from(within) / 1_000.0
    }

    #[test]
    fn sums_hold_what_they_promise_whether_errors_cancel_out_or_go_together() {
        let apart = covered(|seed| std::array::from_fn(|_| 2.0 * noise(seed)));
        let together = covered(|seed| [2.0 * noise(seed); 10]);
        // What comes is four times what is foreseen, since bins are told by medians.
        let above = covered(|seed| [8.0 * noise(seed); 10]);
        for covered in [apart, together, above] {
            assert!((0.75..=0.85).contains(&covered), "{apart} {together} {above}");
        }
    }

    #[test]
    fn what_was_learnt_from_few_sums_or_from_many_that_overlap_is_told_with_ends_farther_out() {
        let width = |sums: usize, overlap: usize| {
            let (mut sums_of, mut seed) = (Sums::default(), 7);
            for _ in 0..sums {
                sums_of.plan(&vec![1.0; overlap]);
                sums_of.observe(2.0 * noise(&mut seed));
            }
            sums_of.few()
        };
        assert!((1.0..1.15).contains(&width(25, 1)), "{}", width(25, 1));
        assert!((1.5..1.8).contains(&width(25, 7)), "some three of a week each: {}", width(25, 7));
        assert!(width(700, 7) < 1.03);
    }

    #[test]
    fn what_was_not_seen_teaches_nothing_and_numbers_that_are_none_do_no_harm() {
        let mut sums = Sums::default();
        for _ in 0..100 {
            sums.plan(&[f64::NAN, 5.0, f64::INFINITY]);
            [f64::NAN, 4.0, f64::NAN].iter().for_each(|value| sums.observe(*value));
        }
        let expected = sums.expected([1.0, 2.0, 3.0].into_iter(), 10.0);
        assert_eq!((expected.value, expected.lower, expected.upper), (60.0, 60.0, 60.0));
    }
}
