//! Free space: what is used up and what is freed are forecast as loads are, and the level follows from both.

use super::track::{Track, expectation};
use crate::number::quantity;
use crate::seasonal::{BINS_PER_DAY, BINS_PER_WEEK, Ensemble, Seasonal};
use crate::state::packed;
use minerva_model::Expectation;
use serde::{Deserialize, Serialize};

/// Weight of the newest day in the factors on sums, and their bounds: a factor beyond is a fault of the data.
const FACTOR_WEIGHT: f64 = 0.1;
const FACTOR_RANGE: (f64, f64) = (0.25, 4.0);

/// See the file's documentation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Space {
    /// Bytes a bin that are used up, and that are freed.
    pub(super) flows: [Ensemble; 2],
    /// Forecasts are of medians: so much larger the sum of a day is than theirs. 0 before the first.
    factors: [f64; 2],
    planned_sums: [f64; 2],
    came_sums: [f64; 2],
    /// Free bytes at the end of the last bin of which it is known.
    pub(super) level: Option<f64>,
    /// Of the last week.
    #[serde(with = "packed")]
    levels: Vec<f32>,
    day: Track,
    week: Track,
}

impl Space {
    /// Takes the free bytes at the end of a bin.
    pub(super) fn observe(&mut self, bin: usize, free: Option<f64>) {
        let net = free.zip(self.level).map(|(free, before)| before - free);
        let flows = net.map_or([f64::NAN; 2], |net| [net.max(0.0), (-net).max(0.0)]);
        self.level = free.or(self.level);
        self.day.observe(free.unwrap_or(f64::NAN));
        self.week.observe(free.unwrap_or(f64::NAN));
        if self.levels.len() >= BINS_PER_WEEK {
            self.levels.remove(0);
        }
        self.levels.push(self.level.unwrap_or(0.0) as f32);
        self.take(bin, flows);
        if (bin + 1).is_multiple_of(BINS_PER_DAY) {
            self.plan(bin + 1);
        }
    }

    /// Takes what a bin used up and freed; NaN where nobody knows.
    pub(super) fn take(&mut self, bin: usize, flows: [f64; 2]) {
        for ((ensemble, sum), flow) in self.flows.iter_mut().zip(&mut self.came_sums).zip(flows) {
            ensemble.observe(bin, flow);
            *sum += quantity(flow);
        }
        if (bin + 1).is_multiple_of(BINS_PER_DAY) {
            self.end_day(bin + 1);
        }
    }

    fn end_day(&mut self, next: usize) {
        let came = std::mem::take(&mut self.came_sums);
        for (index, came) in came.into_iter().enumerate() {
            let (planned, factor) = (self.planned_sums[index], &mut self.factors[index]);
            if planned > 0.0 {
                let ratio = (came / planned).clamp(FACTOR_RANGE.0, FACTOR_RANGE.1);
                *factor += if *factor > 0.0 { FACTOR_WEIGHT * (ratio - *factor) } else { ratio };
            }
            let mut ahead = [0.0; BINS_PER_DAY];
            let is_known = self.flows[index].forecast(next, &mut ahead);
            self.planned_sums[index] = if is_known { ahead.iter().sum() } else { 0.0 };
        }
    }

    fn plan(&mut self, next: usize) {
        let levels = self.ahead(next).unwrap_or_default();
        let past = || self.levels.iter().copied();
        self.day.plan(&levels[..levels.len().min(BINS_PER_DAY)], past());
        if next.is_multiple_of(BINS_PER_WEEK) {
            self.week.plan(&levels, past());
        }
    }

    /// Free bytes at the end of each bin of the week from `next` on.
    fn ahead(&self, next: usize) -> Option<Vec<f64>> {
        let mut level = self.level?;
        let mut flows = [[0.0; BINS_PER_WEEK]; 2];
        for (ensemble, ahead) in self.flows.iter().zip(&mut flows) {
            if !ensemble.forecast(next, ahead) {
                return None;
            }
        }
        let factor = self.factors.map(|factor| if factor > 0.0 { factor } else { 1.0 });
        let [used, freed] = flows;
        let following = used.iter().zip(&freed).map(|(used, freed)| {
            level = quantity(level - used * factor[0] + freed * factor[1]);
            level
        });
        Some(following.collect())
    }

    /// What is expected of the free space in the week from bin `next` on.
    pub(super) fn expected(&self, next: usize) -> Option<Vec<Expectation>> {
        let levels = self.ahead(next)?.into_iter().enumerate();
        Some(levels.map(|(at, level)| expectation(&self.day, &self.week, at, level)).collect())
    }
}
