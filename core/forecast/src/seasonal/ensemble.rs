//! All forecasters of bins together, each weighing as it has proved itself.
//!
//! At the start of each day every member says what the day will bring, and is scored as it comes. A member that does worse than the
//! better of the two seasonal naive ones is switched off until it does better.

use super::{ArrivalStates, BINS_PER_DAY, BINS_PER_WEEK, DayClusters, HoltWinters, LongArma, Seasonal, SeasonalNaive};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Weeks that the members which need a history are fitted on.
const HISTORY_WEEKS: usize = 6;
/// Days between two fits of a member.
const REFIT_DAYS: u32 = 7;
/// Weight of the newest day in a member's error.
const ERROR_WEIGHT: f64 = 0.15;
/// The weight of a member is its error to this power.
const SHARPNESS: i32 = -4;

/// Who takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Member {
    /// As a day ago.
    NaiveDay,
    /// As a week ago.
    NaiveWeek,
    /// Level and profile by cluster of weekdays.
    DayClusters,
    /// Damped Holt-Winters.
    HoltWinters,
    /// ARIMA(144, 0, 2).
    LongArma,
    /// Markov-modulated Poisson states.
    ArrivalStates,
}

impl Member {
    /// Every member; the naive ones first.
    pub const ALL: [Self; 6] =
        [Self::NaiveDay, Self::NaiveWeek, Self::DayClusters, Self::HoltWinters, Self::LongArma, Self::ArrivalStates];

    /// The words people see.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NaiveDay => "as a day ago",
            Self::NaiveWeek => "as a week ago",
            Self::DayClusters => "profiles of weekdays",
            Self::HoltWinters => "Holt-Winters",
            Self::LongArma => "ARMA of a day",
            Self::ArrivalStates => "states of arrival",
        }
    }

    /// Whether it tells the days of a week apart. Of those who do not, one day is worked out for all.
    const fn knows_weekdays(self) -> bool {
        matches!(self, Self::NaiveWeek | Self::DayClusters)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry {
    model: Option<Model>,
    /// What it said of the day under way.
    #[serde(with = "crate::state::array")]
    planned: [f32; BINS_PER_DAY],
    has_planned: bool,
    /// Sum and count of the day's symmetric errors.
    today: (f64, u32),
    /// Mean symmetric error of past days, 0 to 2.
    error: Option<f64>,
}

/// A member's model.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Model {
    Naive(Box<SeasonalNaive>),
    DayClusters(Box<DayClusters>),
    HoltWinters(Box<HoltWinters>),
    LongArma(Box<LongArma>),
    ArrivalStates(Box<ArrivalStates>),
}

impl Seasonal for Model {
    fn observe(&mut self, bin: usize, value: f64) {
        match self {
            Self::Naive(model) => model.observe(bin, value),
            Self::DayClusters(model) => model.observe(bin, value),
            Self::HoltWinters(model) => model.observe(bin, value),
            Self::LongArma(model) => model.observe(bin, value),
            Self::ArrivalStates(model) => model.observe(bin, value),
        }
    }

    fn forecast(&self, bin: usize, ahead: &mut [f64]) -> bool {
        match self {
            Self::Naive(model) => model.forecast(bin, ahead),
            Self::DayClusters(model) => model.forecast(bin, ahead),
            Self::HoltWinters(model) => model.forecast(bin, ahead),
            Self::LongArma(model) => model.forecast(bin, ahead),
            Self::ArrivalStates(model) => model.forecast(bin, ahead),
        }
    }
}

/// The ensemble, for a device or a group: 24 kB of history and about 25 kB of models.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ensemble {
    entries: [Entry; Member::ALL.len()],
    history: VecDeque<f32>,
    /// Days since each of the members was fitted that has to be.
    days_since_fit: [u32; Member::ALL.len()],
}

impl Default for Ensemble {
    fn default() -> Self {
        let entry = |member: &Member| Entry {
            model: match member {
                Member::NaiveDay => Some(Model::Naive(Box::new(SeasonalNaive::day()))),
                Member::NaiveWeek => Some(Model::Naive(Box::new(SeasonalNaive::week()))),
                Member::DayClusters => Some(Model::DayClusters(Box::new(DayClusters::new(2, 0.3, 0.15)))),
                Member::HoltWinters | Member::LongArma | Member::ArrivalStates => None,
            },
            planned: [0.0; BINS_PER_DAY],
            has_planned: false,
            today: (0.0, 0),
            error: None,
        };
        let entries = Member::ALL.each_ref().map(entry);
        Self { entries, history: VecDeque::new(), days_since_fit: [REFIT_DAYS; Member::ALL.len()] }
    }
}

impl Ensemble {
    /// One of which a member takes what nobody saw for nothing, as in earlier versions.
    pub(crate) fn counting_unseen() -> Self {
        let mut ensemble = Self::default();
        if let Some(Model::DayClusters(model)) = &mut ensemble.entries[Member::DayClusters as usize].model {
            model.count_unseen();
        }
        ensemble
    }

    /// A member's mean symmetric error of whole days ahead, in percent; `None` before its first scored day.
    pub fn error_percent(&self, member: Member) -> Option<f64> {
        self.entries[member as usize].error.map(|error| 100.0 * error)
    }

    /// The part a member has in the forecast, 0 to 1. 0: it is switched off.
    pub fn weight(&self, member: Member) -> f64 {
        let weights = self.weights();
        let sum: f64 = weights.iter().sum();
        if sum > 0.0 { weights[member as usize] / sum } else { 0.0 }
    }

    /// 1 less the error in units of the better naive one's; 0 before the first scored day, below 0 for a useless ensemble.
    pub fn skill(&self) -> f64 {
        let Some(naive) = self.naive_error() else { return 0.0 };
        let weights = self.weights();
        let sum: f64 = weights.iter().sum();
        let error: f64 =
            self.entries.iter().zip(weights).filter_map(|(entry, weight)| Some(entry.error? * weight)).sum();
        if sum > 0.0 && naive > 0.0 { 1.0 - error / sum / naive } else { 0.0 }
    }

    /// Fits one member that is due on the history; whether one was. The dearest takes some ten milliseconds.
    pub fn refit(&mut self) -> bool {
        let due = [Member::HoltWinters, Member::LongArma, Member::ArrivalStates]
            .into_iter()
            .find(|member| self.days_since_fit[*member as usize] >= REFIT_DAYS);
        let (Some(member), true) = (due, self.history.len() >= BINS_PER_WEEK) else { return false };
        self.days_since_fit[member as usize] = 0;
        let series: Vec<f64> = self.history.iter().copied().map(f64::from).collect();
        let last_week = &series[series.len() - BINS_PER_WEEK..];
        let model = match member {
            Member::HoltWinters => Some(Model::HoltWinters(Box::new(HoltWinters::fit(&series)))),
            Member::LongArma => LongArma::fit(&series).map(|model| Model::LongArma(Box::new(model))),
            _ => ArrivalStates::fit(last_week).map(|model| Model::ArrivalStates(Box::new(model))),
        };
        self.entries[member as usize].model = model;
        true
    }

    /// The values that were taken, oldest first, at most six weeks and a day of them. The first is a day's first bin.
    pub fn history(&self) -> impl ExactSizeIterator<Item = f32> + '_ {
        self.history.iter().copied()
    }

    fn naive_error(&self) -> Option<f64> {
        let day = self.entries[Member::NaiveDay as usize].error;
        let week = self.entries[Member::NaiveWeek as usize].error;
        [day, week].into_iter().flatten().min_by(f64::total_cmp)
    }

    fn weights(&self) -> [f64; Member::ALL.len()] {
        let naive = self.naive_error().unwrap_or(f64::INFINITY);
        self.entries.each_ref().map(|entry| match entry.error {
            Some(error) if error <= naive => libm::pow(error.max(1e-3), f64::from(SHARPNESS)),
            _ => 0.0,
        })
    }

    fn end_day(&mut self, next_bin: usize) {
        for (entry, days) in self.entries.iter_mut().zip(&mut self.days_since_fit) {
            *days = days.saturating_add(1);
            let (sum, count) = std::mem::take(&mut entry.today);
            if count > 0 {
                let error = sum / f64::from(count);
                entry.error = Some(entry.error.map_or(error, |mean| mean + ERROR_WEIGHT * (error - mean)));
            }
            let mut ahead = [0.0; BINS_PER_DAY];
            entry.has_planned = entry.model.as_ref().is_some_and(|model| model.forecast(next_bin, &mut ahead));
            entry.planned = ahead.map(|value| value as f32);
        }
    }
}

impl Seasonal for Ensemble {
    fn observe(&mut self, bin: usize, value: f64) {
        let slot = bin % BINS_PER_DAY;
        for entry in &mut self.entries {
            let planned = f64::from(entry.planned[slot]);
            if value.is_finite() && entry.has_planned {
                let size = planned.abs() + value.abs();
                entry.today.0 += if size > 0.0 { 2.0 * (planned - value).abs() / size } else { 0.0 };
                entry.today.1 += 1;
            }
            if let Some(model) = &mut entry.model {
                model.observe(bin, value);
            }
        }
        // A history has no gaps: a bin without a value is as a day ago.
        let a_day_ago = self.history.len().checked_sub(BINS_PER_DAY).and_then(|at| self.history.get(at)).copied();
        let kept = if value.is_finite() { value.max(0.0) as f32 } else { a_day_ago.unwrap_or(0.0) };
        // Profiles start with a day's first bin.
        if !self.history.is_empty() || slot == 0 {
            self.history.push_back(kept);
        }
        if slot + 1 == BINS_PER_DAY {
            if self.history.len() > HISTORY_WEEKS * BINS_PER_WEEK {
                self.history.drain(..BINS_PER_DAY);
            }
            self.end_day(bin + 1);
        }
    }

    fn forecast(&self, bin: usize, ahead: &mut [f64]) -> bool {
        let mut weights = self.weights();
        if weights.iter().all(|weight| *weight == 0.0) {
            // Nobody has proved anything yet: the first that has a forecast speaks.
            weights = [1e-9, 1e-6, 1.0, 0.0, 0.0, 0.0];
        }
        ahead.fill(0.0);
        let (mut sum, mut know_weekdays, mut logs) = (0.0, false, [0.0; BINS_PER_DAY]);
        let speaking = Member::ALL.into_iter().zip(&self.entries).zip(weights).filter(|(_, weight)| *weight > 0.0);
        for ((member, entry), weight) in speaking {
            let Some(model) = &entry.model else { continue };
            let mut is_known = false;
            for (day, part) in ahead.chunks_mut(BINS_PER_DAY).enumerate() {
                // Each day is as if it were the next: members that go on in steps settle to a level or a day within one.
                if day == 0 || member.knows_weekdays() {
                    let logs = &mut logs[..part.len()];
                    is_known = model.forecast(bin + day * BINS_PER_DAY, logs);
                    logs.iter_mut().for_each(|value| *value = weight * libm::log1p(*value));
                }
                if !is_known {
                    break;
                }
                part.iter_mut().zip(&logs).for_each(|(to, log)| *to += log);
            }
            if is_known {
                sum += weight;
                know_weekdays |= member.knows_weekdays();
            }
        }
        if sum > 0.0 {
            let differing = if know_weekdays { ahead.len() } else { BINS_PER_DAY.min(ahead.len()) };
            ahead[..differing].iter_mut().for_each(|value| *value = libm::expm1(*value / sum));
            for at in differing..ahead.len() {
                ahead[at] = ahead[at - BINS_PER_DAY];
            }
        }
        sum > 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A weekday's and a weekend's shape, with a little that differs from day to day.
    fn value(bin: usize) -> f64 {
        let (day, slot) = (bin / BINS_PER_DAY, (bin % BINS_PER_DAY) as f64);
        let level = if day % 7 < 5 { 1000.0 } else { 100.0 };
        level * (2.0 + libm::sin(slot / 23.0)) * (1.0 + 0.02 * (day * 7 % 5) as f64)
    }

    /// A number from 0.5 to 1.5 that has nothing to do with the one before (SplitMix of Steele, Lea and Flood 2014).
    fn noise(bin: usize) -> f64 {
        let mixed = (bin as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        0.5 + ((mixed ^ (mixed >> 27)) >> 40) as f64 / 2.0_f64.powi(24)
    }

    /// One that has taken so many bins, with its members fitted.
    fn after(bins: usize, value: impl Fn(usize) -> f64) -> Ensemble {
        let mut ensemble = Ensemble::default();
        for bin in 0..bins {
            ensemble.observe(bin % BINS_PER_WEEK, value(bin));
            ensemble.refit();
        }
        ensemble
    }

    #[test]
    fn a_week_is_its_days_to_the_bit() {
        let (weekly, daily) = (|bin| value(bin) * noise(bin), |bin| value(bin % BINS_PER_DAY) * noise(bin));
        let mut spoke = [false; Member::ALL.len()];
        let bins = 5 * BINS_PER_WEEK + 200;
        for ensemble in [after(bins, weekly), after(bins, daily), after(300, daily)] {
            for member in Member::ALL {
                spoke[member as usize] |= ensemble.weight(member) > 0.0;
            }
            let (mut week, next) = ([0.0; BINS_PER_WEEK - 50], 200);
            assert!(ensemble.forecast(next, &mut week));
            for (number, part) in week.chunks(BINS_PER_DAY).enumerate() {
                let mut day = [0.0; BINS_PER_DAY];
                assert!(ensemble.forecast(next + number * BINS_PER_DAY, &mut day));
                assert_eq!(part, &day[..part.len()], "{number}");
            }
        }
        assert!(spoke.iter().filter(|spoke| **spoke).count() > 3, "{spoke:?}");
    }

    #[test]
    fn a_week_is_forecast() {
        let bins = 5 * BINS_PER_WEEK + 200;
        let ensemble = after(bins, value);
        assert!(
            ensemble.skill() >= 0.0 && ensemble.error_percent(Member::DayClusters).is_some(),
            "{}",
            ensemble.skill()
        );
        let parts: f64 = Member::ALL.iter().map(|member| ensemble.weight(*member)).sum();
        assert!((parts - 1.0).abs() < 1e-9);
        let next = bins % BINS_PER_WEEK;
        let mut ahead = [0.0; BINS_PER_WEEK];
        assert!(ensemble.forecast(next, &mut ahead));
        for (step, expected) in ahead.iter().enumerate() {
            let came = value(bins + step);
            assert!((expected - came).abs() < 0.25 * came, "{step}: {expected} {came}");
        }
    }
}
