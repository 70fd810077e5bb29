//! A forecast of the bins of a day or a week, kept until they are over, beside naive ones; and what came of all of them.

use super::score::{NAIVE, Score};
use crate::number::quantity;
use crate::online::IntervalMeter;
use crate::seasonal::{BINS_PER_DAY, BINS_PER_WEEK};
use crate::state::packed;
use minerva_model::Expectation;
use serde::{Deserialize, Serialize};

/// All intervals hold so much of what comes.
const COVERAGE: f64 = 0.8;

/// See the file's documentation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Track {
    #[serde(with = "packed")]
    planned: Vec<f32>,
    /// The bins before, at most a week.
    #[serde(with = "packed")]
    past: Vec<f32>,
    /// Mean and median of those.
    middle: [f64; 2],
    /// The next bin that is scored.
    at: usize,
    /// Sums of the day's absolute errors, the forecast's first.
    today: (f64, [f64; NAIVE]),
    count: u32,
    pub(super) score: Score,
    interval: IntervalMeter,
}

impl Default for Track {
    fn default() -> Self {
        Self {
            planned: Vec::new(),
            past: Vec::new(),
            middle: [0.0; 2],
            at: 0,
            today: (0.0, [0.0; NAIVE]),
            count: 0,
            score: Score::default(),
            interval: IntervalMeter::new(COVERAGE),
        }
    }
}

impl Track {
    /// Keeps a forecast of the bins that follow `past`.
    pub(super) fn plan(&mut self, planned: &[f64], past: impl ExactSizeIterator<Item = f32>) {
        self.planned = planned.iter().map(|value| *value as f32).collect();
        let skipped = past.len().saturating_sub(BINS_PER_WEEK);
        self.past = past.skip(skipped).collect();
        let mut sorted = self.past.clone();
        sorted.sort_unstable_by(f32::total_cmp);
        let mean = sorted.iter().copied().map(f64::from).sum::<f64>() / sorted.len().max(1) as f64;
        let median = sorted.get(sorted.len() / 2).copied().unwrap_or(0.0);
        (self.middle, self.at) = ([mean, f64::from(median)], 0);
    }

    /// Scores the next bin; NaN if nothing is known of it.
    pub(super) fn observe(&mut self, came: f64) {
        let Some(planned) = self.planned.get(self.at).copied() else { return };
        let planned = quantity(planned.into());
        if came.is_finite() {
            self.interval.observe(planned, came);
            self.today.0 += (planned - came).abs();
            let naive = self.naive(self.at);
            self.today.1.iter_mut().zip(naive).for_each(|(sum, value)| *sum += (value - came).abs());
            self.count += 1;
        }
        self.at += 1;
        if self.at.is_multiple_of(BINS_PER_DAY) {
            let (count, (model, naive)) = (std::mem::take(&mut self.count), std::mem::take(&mut self.today));
            // A day of which less than half was seen says nothing.
            if count as usize * 2 >= BINS_PER_DAY {
                let mean = |sum: f64| sum / f64::from(count);
                self.score.observe(mean(model), &naive.map(mean));
            }
        }
    }

    fn naive(&self, at: usize) -> [f64; NAIVE] {
        let back = |period: usize| {
            let index = self.past.len().checked_sub(period).map(|from| from + at % period);
            index.and_then(|index| self.past.get(index)).copied().map(f64::from)
        };
        let last = self.past.last().copied().map_or(0.0, f64::from);
        let day = back(BINS_PER_DAY).unwrap_or(last);
        [0.0, day, back(BINS_PER_WEEK).unwrap_or(day), last, self.middle[0], self.middle[1]]
    }

    /// The interval around a forecast, if enough was scored.
    pub(super) fn around(&self, value: f64) -> Option<Expectation> {
        let interval = self.interval.interval(value)?;
        let (lower, upper) = (quantity(interval.low).min(value), quantity(interval.high).max(value));
        Some(Expectation { value: value as f32, lower: lower as f32, upper: upper as f32 })
    }
}

/// What is expected `at` so many bins ahead: around it what held for days, and beyond the first what held for weeks.
pub(super) fn expectation(day: &Track, week: &Track, at: usize, value: f64) -> Expectation {
    let by_week = if at < BINS_PER_DAY { None } else { week.around(value) };
    let none = || Expectation { value: value as f32, lower: value as f32, upper: value as f32 };
    by_week.or_else(|| day.around(value)).unwrap_or_else(none)
}
