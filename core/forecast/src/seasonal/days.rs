//! Kachmar and Kaeli 2020, section V.A: level and daily profile as moving averages, one of each for every cluster of weekdays.
//!
//! Clustering only the level, one way to read the paper, does not tell a weekend's shape; so the profile is per cluster too. Kept in
//! log1p, which forecasts the median: [`DayClusters::bias`] is the factor for sums.

use super::{BINS_PER_DAY, Seasonal};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

const DAYS: usize = 7;
/// Most clusters; the paper's bound sqrt(7 / 2) rounds to 2.
const CLUSTERS_MAX: usize = 3;
const ROUNDS: usize = 20;
/// Days that are kept: with fewer a change of clusters would forget, with more the state grows by 0.6 kB each.
const DAYS_KEPT: usize = 28;
/// Weight of the newest day in the bias.
const BIAS_WEIGHT: f64 = 0.1;
/// As a logarithm of a bin's value, which is never below 0: nobody saw it.
const UNSEEN: f32 = -1.0;
/// Factors on sums outside these bounds are a fault of the data.
const BIAS_RANGE: (f64, f64) = (0.5, 4.0);

/// A value for each bin of a day.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Day(#[serde(with = "crate::state::array")] [f32; BINS_PER_DAY]);

impl Default for Day {
    fn default() -> Self {
        Self([0.0; BINS_PER_DAY])
    }
}

/// The forecaster. 23 kB.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DayClusters {
    clusters: usize,
    level_weight: f32,
    profile_weight: f32,
    /// The day under way, in log1p; what was not seen is [`UNSEEN`], or as forecast where `counts_unseen`.
    today: Day,
    /// Bins of it that were seen.
    filled: usize,
    /// What nobody saw counts as seen, as in recordings of earlier versions; their snapshots do not say.
    #[serde(default = "yes")]
    counts_unseen: bool,
    /// The last days and which weekday each was, oldest first.
    days: VecDeque<(u8, Day)>,
    /// Means of the kept days of each weekday; `None` if none was seen.
    weekdays: [Option<Box<Day>>; DAYS],
    cluster_of: [u8; DAYS],
    level: [f32; CLUSTERS_MAX],
    profile: [Day; CLUSTERS_MAX],
    bias: f64,
    /// Sums of today's values and of the forecasts of them.
    sums: (f64, f64),
}

const fn yes() -> bool {
    true
}

impl DayClusters {
    /// `clusters` from 1 to 3; the weight of the newest day in level and profile, above 0 and at most 1.
    pub fn new(clusters: usize, level_weight: f32, profile_weight: f32) -> Self {
        Self {
            clusters: clusters.clamp(1, CLUSTERS_MAX),
            level_weight,
            profile_weight,
            today: Day([UNSEEN; BINS_PER_DAY]),
            filled: 0,
            counts_unseen: false,
            days: VecDeque::new(),
            weekdays: [const { None }; DAYS],
            cluster_of: [0; DAYS],
            level: [0.0; CLUSTERS_MAX],
            profile: [Day::default(); CLUSTERS_MAX],
            bias: 1.0,
            sums: (0.0, 0.0),
        }
    }

    /// From now on, before it has seen anything, what nobody saw counts as seen: as in earlier versions.
    pub(super) fn count_unseen(&mut self) {
        (self.counts_unseen, self.today) = (true, Day::default());
    }

    /// What was not seen of the day that ends is as forecast, or as the nearest bin that was seen.
    fn fill(&mut self, weekday: usize) {
        let seen: Vec<usize> = (0..BINS_PER_DAY).filter(|slot| self.today.0[*slot] != UNSEEN).collect();
        let before = self.today;
        for slot in (0..BINS_PER_DAY).filter(|slot| before.0[*slot] == UNSEEN) {
            let nearest = || seen.iter().min_by_key(|seen| seen.abs_diff(slot)).map(|nearest| before.0[*nearest]);
            let filled = self.forecast_log(weekday * BINS_PER_DAY + slot).or_else(nearest);
            self.today.0[slot] = filled.unwrap_or(0.0).max(0.0);
        }
    }

    /// By what the sum over a day is larger than the sum of forecasts, as a moving average of days.
    pub fn bias(&self) -> f64 {
        self.bias
    }

    fn forecast_log(&self, bin: usize) -> Option<f32> {
        let (day, slot) = (bin / BINS_PER_DAY % DAYS, bin % BINS_PER_DAY);
        let cluster = usize::from(self.cluster_of[day]);
        (!self.days.is_empty()).then(|| self.level[cluster] + self.profile[cluster].0[slot])
    }

    fn end_day(&mut self, weekday: usize) {
        if self.sums.1 > 0.0 {
            let ratio = (self.sums.0 / self.sums.1).clamp(BIAS_RANGE.0, BIAS_RANGE.1);
            self.bias += BIAS_WEIGHT * (ratio - self.bias);
        }
        if self.days.len() == DAYS_KEPT {
            self.days.pop_front();
        }
        self.days.push_back((weekday as u8, self.today));
        for weekday in 0..DAYS {
            self.weekdays[weekday] =
                centre(self.days.iter().filter(|day| usize::from(day.0) == weekday).map(|day| &day.1));
        }
        self.assign();
        self.average();
    }

    /// The moving averages of each cluster over the kept days, from the oldest on.
    fn average(&mut self) {
        let mut seen = [false; CLUSTERS_MAX];
        for (weekday, day) in &self.days {
            let cluster = usize::from(self.cluster_of[usize::from(*weekday)]);
            let is_first = !std::mem::replace(&mut seen[cluster], true);
            let weight = |weight: f32| if is_first { 1.0 } else { weight };
            let mean = day.0.iter().sum::<f32>() / BINS_PER_DAY as f32;
            self.level[cluster] += weight(self.level_weight) * (mean - self.level[cluster]);
            for (kept, new) in self.profile[cluster].0.iter_mut().zip(&day.0) {
                *kept += weight(self.profile_weight) * (new - mean - *kept);
            }
        }
    }

    /// k-means (Lloyd 1982) on the weekdays seen so far, from starts far from each other (Gonzalez 1985); an unseen weekday goes with
    /// the one before it.
    fn assign(&mut self) {
        let known: Vec<(usize, &Day)> =
            self.weekdays.iter().enumerate().filter_map(|(at, day)| Some((at, day.as_deref()?))).collect();
        let Some((_, first)) = known.first() else { return };
        let mut centres: Vec<Day> = vec![**first];
        let nearest = |centres: &[Day], day: &Day| {
            let all = centres.iter().map(|centre| distance(centre, day)).enumerate();
            all.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0))
        };
        while centres.len() < self.clusters {
            let distances = known.iter().map(|(_, day)| (nearest(&centres, day).1, *day));
            match distances.max_by(|a, b| a.0.total_cmp(&b.0)) {
                Some((distance, far)) if distance > 0.0 => centres.push(*far),
                _ => break,
            }
        }
        let mut cluster_of = [0; DAYS];
        for _ in 0..ROUNDS {
            let before = cluster_of;
            for (at, day) in &known {
                cluster_of[*at] = nearest(&centres, day).0 as u8;
            }
            for (cluster, kept) in centres.iter_mut().enumerate() {
                let members = known.iter().filter(|(at, _)| usize::from(cluster_of[*at]) == cluster);
                if let Some(mean) = centre(members.map(|(_, day)| *day)) {
                    *kept = *mean;
                }
            }
            if before == cluster_of {
                break;
            }
        }
        for weekday in 0..DAYS {
            let before = (0..DAYS).map(|back| (weekday + DAYS - back) % DAYS).find(|day| self.weekdays[*day].is_some());
            self.cluster_of[weekday] = cluster_of[before.unwrap_or(weekday)];
        }
    }
}

impl Seasonal for DayClusters {
    fn observe(&mut self, bin: usize, value: f64) {
        let forecast = self.forecast_log(bin);
        let log = libm::log1p(value.max(0.0)) as f32;
        let unseen = if self.counts_unseen { forecast.unwrap_or(0.0) } else { UNSEEN };
        let log = if value.is_finite() { log } else { unseen };
        if value.is_finite() {
            self.sums.0 += value.max(0.0);
            self.sums.1 += forecast.map_or(0.0, |log| libm::expm1(f64::from(log)));
        }
        let slot = bin % BINS_PER_DAY;
        self.today.0[slot] = log;
        self.filled += usize::from(value.is_finite() || self.counts_unseen);
        if slot + 1 == BINS_PER_DAY {
            // A day of which less than half was seen is no day to learn from.
            if 2 * self.filled >= BINS_PER_DAY {
                let weekday = bin / BINS_PER_DAY % DAYS;
                self.fill(weekday);
                self.end_day(weekday);
            }
            (self.filled, self.sums) = (0, (0.0, 0.0));
            if !self.counts_unseen {
                self.today = Day([UNSEEN; BINS_PER_DAY]);
            }
        }
    }

    fn forecast(&self, bin: usize, ahead: &mut [f64]) -> bool {
        for (step, value) in ahead.iter_mut().enumerate() {
            let Some(log) = self.forecast_log(bin + step) else { return false };
            *value = libm::expm1(f64::from(log)).max(0.0);
        }
        true
    }
}

/// The mean of some days; `None` of none.
fn centre<'a>(days: impl Iterator<Item = &'a Day>) -> Option<Box<Day>> {
    let (mut sum, mut count) = (Box::new(Day::default()), 0.0);
    for day in days {
        sum.0.iter_mut().zip(&day.0).for_each(|(sum, value)| *sum += value);
        count += 1.0;
    }
    sum.0.iter_mut().for_each(|value| *value /= count);
    (count > 0.0).then_some(sum)
}

fn distance(a: &Day, b: &Day) -> f32 {
    a.0.iter().zip(&b.0).map(|(a, b)| (a - b) * (a - b)).sum()
}

#[cfg(test)]
mod tests {
    use super::{BINS_PER_DAY, DayClusters, Seasonal};

    /// Busy by day on weekdays, quiet at the weekend.
    fn value(day: usize, slot: usize) -> f64 {
        if day % 7 < 5 && (48..108).contains(&slot) { 1_000.0 } else { 10.0 }
    }

    /// Feeds days from Monday on; of the first the bins from `first` on, with `before` in place of what came before.
    fn fed(model: &mut DayClusters, days: usize, first: usize, before: Option<f64>) {
        for bin in 0..days * BINS_PER_DAY {
            let (day, slot) = (bin / BINS_PER_DAY, bin % BINS_PER_DAY);
            let is_seen = bin >= first;
            if let Some(value) = is_seen.then(|| value(day, slot)).or(before) {
                model.observe(bin % (7 * BINS_PER_DAY), value);
            }
        }
    }

    #[test]
    fn what_nobody_saw_of_a_day_is_not_learnt_as_nothing() {
        // By bins without a value, and by none at all, as on the day on which it is first seen.
        for before in [Some(f64::NAN), None] {
            let mut model = DayClusters::new(2, 0.3, 0.15);
            fed(&mut model, 1, 73, before);
            assert!(!model.forecast(BINS_PER_DAY, &mut [0.0; 10]), "less than half of the day was seen");
            let mut model = DayClusters::new(2, 0.3, 0.15);
            fed(&mut model, 1, 48, before);
            let mut ahead = [0.0; BINS_PER_DAY];
            assert!(model.forecast(BINS_PER_DAY, &mut ahead), "two thirds were");
            assert!((ahead[10] - 1_000.0).abs() < 1.0, "as the nearest that was seen: {}", ahead[10]);
            let mut model = DayClusters::new(2, 0.3, 0.15);
            fed(&mut model, 14, 48, before);
            let [_, tuesday, .., saturday, sunday] = model.cluster_of;
            assert!(saturday != tuesday && saturday == sunday, "{:?}", model.cluster_of);
        }
    }

    #[test]
    fn a_day_of_gaps_leaves_what_was_known() {
        let mut model = DayClusters::new(2, 0.3, 0.15);
        fed(&mut model, 28, 0, None);
        let before = model.clone();
        (0..BINS_PER_DAY).for_each(|slot| model.observe(slot, f64::NAN));
        assert_eq!(model, before);
        // As by earlier versions it was learnt.
        let mut model = DayClusters::new(2, 0.3, 0.15);
        model.count_unseen();
        (0..BINS_PER_DAY).for_each(|slot| model.observe(slot, f64::NAN));
        assert!(model.forecast(BINS_PER_DAY, &mut [0.0; 10]));
    }
}
