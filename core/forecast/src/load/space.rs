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
    /// Bins of the day under way of which it is known what came.
    #[serde(default)]
    came_bins: usize,
    /// Nobody looked in the last bin: what changed since the level was taken did so at any time.
    #[serde(default)]
    was_unseen: bool,
    /// What changed while nobody looked belongs to no bin, and days are scored by what was seen. In earlier versions not.
    #[serde(default)]
    only_its_own: bool,
    /// Free bytes at the end of the last bin of which it is known.
    pub(super) level: Option<f64>,
    /// Of the last week.
    #[serde(with = "packed")]
    levels: Vec<f32>,
    day: Track,
    week: Track,
}

impl Space {
    /// One of which nothing is known.
    pub(super) fn new(only_its_own: bool) -> Self {
        let ensemble = if only_its_own { Ensemble::default } else { Ensemble::counting_unseen };
        Self { flows: [ensemble(), ensemble()], only_its_own, ..Self::default() }
    }

    /// The disk is gone: another may come under its number.
    pub(super) fn gone(&mut self) {
        self.level = None;
    }

    /// Takes the free bytes at the end of a bin.
    pub(super) fn observe(&mut self, bin: usize, free: Option<f64>) {
        let is_of_this_bin = !(self.only_its_own && self.was_unseen);
        let net = free.zip(self.level).map(|(free, before)| before - free).filter(|_| is_of_this_bin);
        self.was_unseen = free.is_none();
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
        self.came_bins += usize::from(flows.iter().all(|flow| flow.is_finite()));
        if (bin + 1).is_multiple_of(BINS_PER_DAY) {
            self.end_day(bin + 1);
        }
    }

    fn end_day(&mut self, next: usize) {
        let (came, bins) = (std::mem::take(&mut self.came_sums), std::mem::take(&mut self.came_bins));
        // A day of which less than half was seen says nothing of its sum.
        let is_seen = !self.only_its_own || bins * 2 >= BINS_PER_DAY;
        let whole = if self.only_its_own { BINS_PER_DAY as f64 / bins.max(1) as f64 } else { 1.0 };
        for (index, came) in came.into_iter().enumerate() {
            let (planned, factor) = (self.planned_sums[index], &mut self.factors[index]);
            if planned > 0.0 && is_seen {
                let ratio = (came * whole / planned).clamp(FACTOR_RANGE.0, FACTOR_RANGE.1);
                *factor += if *factor > 0.0 { FACTOR_WEIGHT * (ratio - *factor) } else { ratio };
            }
            let mut ahead = [0.0; BINS_PER_DAY];
            let is_known = self.flows[index].forecast(next, &mut ahead);
            self.planned_sums[index] = if is_known { ahead.iter().sum() } else { 0.0 };
        }
    }

    fn plan(&mut self, next: usize) {
        let begins_week = next.is_multiple_of(BINS_PER_WEEK);
        let levels = self.ahead(next, if begins_week { BINS_PER_WEEK } else { BINS_PER_DAY }).unwrap_or_default();
        let past = || self.levels.iter().copied();
        self.day.plan(&levels[..levels.len().min(BINS_PER_DAY)], past());
        if begins_week {
            self.week.plan(&levels, past());
        }
    }

    /// Free bytes at the end of each of so many bins from `next` on.
    fn ahead(&self, next: usize, bins: usize) -> Option<Vec<f64>> {
        let mut level = self.level?;
        let mut flows = [vec![0.0; bins], vec![0.0; bins]];
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
        let levels = self.ahead(next, BINS_PER_WEEK)?.into_iter().enumerate();
        Some(levels.map(|(at, level)| expectation(&self.day, &self.week, at, level)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::{BINS_PER_DAY, Space};

    const TERABYTE: f64 = 1e12;

    #[test]
    fn what_changed_while_nobody_looked_is_charged_to_no_bin() {
        for only_its_own in [true, false] {
            let mut space = Space::new(only_its_own);
            // A gigabyte a bin for four days, so that sums of days have factors; then 100 bins over a midnight that nobody saw.
            let level = |bin: usize| 1.4 * TERABYTE - bin as f64 * 1e9;
            let known = 4 * BINS_PER_DAY + 100;
            (0..known).for_each(|bin| space.observe(bin, Some(level(bin))));
            let factors = space.factors;
            (known..known + 100).for_each(|bin| space.observe(bin, None));
            space.observe(known + 100, Some(0.4 * TERABYTE));
            assert_eq!(space.level, Some(0.4 * TERABYTE));
            let last = space.flows[0].history().last().expect("a bin");
            let is_as_it_was = (space.factors[0] - factors[0]).abs() < 1e-3;
            assert_eq!((is_as_it_was, last < 1e11), (only_its_own, only_its_own), "{factors:?} {last}");
            space.observe(known + 101, Some(0.399 * TERABYTE));
            let last = space.flows[0].history().last().expect("a bin");
            assert!((last - 1e9).abs() < 1e5, "the next bin is told again: {last}");
        }
    }

    #[test]
    fn a_disk_that_comes_back_under_the_number_of_another_did_not_use_up_the_difference() {
        let mut space = Space::new(true);
        (0..BINS_PER_DAY).for_each(|bin| space.observe(bin, Some(TERABYTE)));
        space.gone();
        space.observe(0, Some(0.1 * TERABYTE));
        assert_eq!((space.flows[0].history().last(), space.level), (Some(0.0), Some(0.1 * TERABYTE)));
    }
}
