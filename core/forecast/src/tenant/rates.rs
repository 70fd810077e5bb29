//! A tenant's rate over the last minutes, one series for reads and one for writes, and its next 15 s.

use crate::arima::{self, AR_MAX, Arima, Budget, Workspace};
use crate::number::quantity;
use crate::online::{Interval, IntervalMeter, NAIVE, Naive, SkillMeter};
use serde::{Deserialize, Serialize};

/// Seconds ahead (Malensek et al. 2016, section 4.2).
pub const AHEAD: usize = 15;
/// Seconds of history.
const HISTORY: usize = 300;
/// Values before a model is fitted.
const HISTORY_MIN: usize = 60;
/// A slice with less than this is idle, in bytes a second.
pub const BUSY_BYTES_PER_SECOND: f32 = 4096.0;
/// Values that a shift takes to be told, at most; and of those before, one in so many that are like what comes after is no chance.
const SHIFT_MAX: usize = 16;
const PART_BEFORE: usize = 20;
/// Rates are alike up to this factor, or if both are idle.
const LIKE: f32 = 2.0;
/// What is above this part of the history is cut off before a fit: a single burst would be all that the model sees.
const WINSOR: f64 = 0.99;

/// The next slices of one series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateForecast {
    /// Bytes a second, for each slice ahead.
    pub mean: [f32; AHEAD],
    /// 80 % of what comes is between these.
    pub low: [f32; AHEAD],
    /// See `low`.
    pub high: [f32; AHEAD],
    /// Probability that the slice has I/O.
    pub busy: [f32; AHEAD],
    /// Of the sum over the slices that are scored, as [`SkillMeter::told`].
    pub skill: f64,
    /// The model lost against the best naive forecast, which stands in its place.
    pub is_naive: bool,
}

/// Busy or idle, as a linear probability model: an autoregression of the indicator by Burg's method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BusyModel {
    mean: f32,
    ar: Box<[f32]>,
}

/// One series with its models.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Rates {
    #[serde(with = "crate::state::boxed_array")]
    history: Box<[f32; HISTORY]>,
    seen: usize,
    /// Values before the rate last shifted: they tell nothing of what comes.
    #[serde(default)]
    over: usize,
    model: Option<Box<Arima>>,
    busy: Option<BusyModel>,
    naive: Naive,
    /// Which of the naive forecasts was best lately; the last value at first.
    best_naive: usize,
    skill: SkillMeter,
    interval: IntervalMeter,
    /// A forecast of the sum over the next seconds that waits to be scored: model's, naive ones', what came so far, seconds left.
    pending: Option<(f64, [f64; NAIVE], f64, u32)>,
    since_fit: u32,
    /// The rate above which values are cut off before they are followed.
    ceiling: f64,
}

impl Default for Rates {
    fn default() -> Self {
        Self {
            history: Box::new([0.0; HISTORY]),
            seen: 0,
            over: 0,
            model: None,
            busy: None,
            naive: Naive::default(),
            best_naive: 1,
            skill: SkillMeter::default(),
            interval: IntervalMeter::new(0.8),
            pending: None,
            since_fit: u32::MAX,
            ceiling: f64::INFINITY,
        }
    }
}

impl Rates {
    /// Takes the rate of the next slice, in bytes a second; one that is not finite or below 0 counts as 0. Forecasts are scored on
    /// the sum of the next `ahead` slices, at most [`AHEAD`].
    pub fn observe(&mut self, bytes_per_second: f64, ahead: usize) {
        let value = quantity(bytes_per_second);
        if let Some((forecast, naive, came, left)) = &mut self.pending {
            *came += value;
            *left -= 1;
            if *left == 0 {
                self.skill.observe(*forecast, naive, *came);
                self.best_naive = self.skill.best_naive();
                self.interval.observe(*forecast, *came);
                self.pending = None;
            }
        }
        self.history[self.seen % HISTORY] = value as f32;
        self.seen += 1;
        self.since_fit = self.since_fit.saturating_add(1);
        self.naive.observe(value);
        if let Some(model) = &mut self.model {
            model.update(value.min(self.ceiling));
        }
        if self.pending.is_none() {
            let ahead = ahead.clamp(1, AHEAD);
            let naive = self.naive.forecasts().map(|value| value * ahead as f64);
            let sum = match &self.model {
                Some(model) => model.forecast(ahead).mean[..ahead].iter().map(|mean| mean.max(0.0)).sum(),
                None => naive[self.best_naive],
            };
            self.pending = Some((sum, naive, 0.0, ahead as u32));
        }
    }

    /// The rate of the next slice as the series' own model has it; `None` before the first fit. Where there never was I/O, 0.
    pub fn next(&self) -> Option<f64> {
        match &self.model {
            Some(model) => Some(model.next().clamp(0.0, self.ceiling)),
            None => (self.naive.forecasts() == [0.0; NAIVE]).then_some(0.0),
        }
    }

    /// Whether a fit would have anything to tell: there was I/O in the history.
    pub fn wants_fit(&self) -> bool {
        let known = self.known();
        known.len() >= HISTORY_MIN && known.into_iter().any(|at| self.history[at % HISTORY] > 0.0)
    }

    /// The values that are there and are of the rate as it is now.
    fn known(&self) -> std::ops::Range<usize> {
        self.seen.saturating_sub(HISTORY).max(self.over)..self.seen
    }

    /// Values since the last fit.
    pub fn since_fit(&self) -> u32 {
        self.since_fit
    }

    /// Fits both models to the history within the budget.
    pub fn fit(&mut self, buffers: &mut (Vec<f64>, Workspace), budget: &mut Budget) {
        let (series, workspace) = buffers;
        self.since_fit = 0;
        self.series(series);
        let mut sorted = series.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        self.ceiling = sorted[((sorted.len() - 1) as f64 * WINSOR) as usize];
        if self.ceiling <= 0.0 {
            self.ceiling = sorted[sorted.len() - 1];
        }
        series.iter_mut().for_each(|value| *value = value.min(self.ceiling));
        if self.model.is_none() {
            // What was scored so far is a naive forecast's.
            (self.skill, self.interval, self.pending) = (SkillMeter::default(), IntervalMeter::new(0.8), None);
        }
        self.model = arima::fit(series, workspace, budget).map(Box::new);
        series.iter_mut().for_each(|value| *value = f64::from(u8::from(*value >= f64::from(BUSY_BYTES_PER_SECOND))));
        self.busy = arima::fit_burg(series, workspace).map(|model| BusyModel {
            mean: model.mean as f32,
            ar: model.ar[..model.p].iter().map(|phi| *phi as f32).collect(),
        });
    }

    /// The rate has shifted with the last value: what was learnt is stale, and only the history from it on stays; all of it, where the rate
    /// was there before, as that of who works and rests in turns.
    pub fn reset(&mut self) {
        self.reset_models();
        if !self.was_there_before() {
            self.over = self.seen.saturating_sub(1);
        }
    }

    /// Whether a part of the history before the shift is like the last value.
    fn was_there_before(&self) -> bool {
        let Some(last) = self.seen.checked_sub(1) else { return false };
        let value = |at: usize| self.history[at % HISTORY];
        let is_like = |at: &usize| {
            let (less, more) = (value(*at).min(value(last)), value(*at).max(value(last)));
            more < BUSY_BYTES_PER_SECOND || more <= LIKE * less
        };
        let before = self.seen.saturating_sub(HISTORY)..last.saturating_sub(SHIFT_MAX);
        let count = before.len();
        before.filter(is_like).count() * PART_BEFORE >= count.max(1)
    }

    /// The same with all of the history, as by earlier versions.
    pub fn reset_models(&mut self) {
        (self.model, self.busy, self.pending) = (None, None, None);
        self.since_fit = u32::MAX;
    }

    /// The history, oldest first.
    fn series(&self, into: &mut Vec<f64>) {
        into.clear();
        into.extend(self.known().map(|at| f64::from(self.history[at % HISTORY])));
    }

    /// The next seconds; `None` before the first value.
    pub fn forecast(&self) -> Option<RateForecast> {
        if self.seen == 0 {
            return None;
        }
        let is_naive = self.model.is_none() || self.skill.is_switched_off();
        let level = self.naive.forecasts()[self.best_naive];
        let mut mean = [level as f32; AHEAD];
        let mut low = [0.0; AHEAD];
        let mut high = [0.0; AHEAD];
        // A second's spread where no model tells it: as far as the values themselves are spread.
        let spread = self.spread();
        match &self.model {
            Some(model) if !is_naive => {
                const EIGHTY_PERCENT: f64 = 1.281_55;
                let path = model.forecast(AHEAD);
                for step in 0..AHEAD {
                    let reach = EIGHTY_PERCENT * path.deviation[step];
                    mean[step] = path.mean[step].max(0.0) as f32;
                    low[step] = (path.mean[step] - reach).max(0.0) as f32;
                    high[step] = (path.mean[step] + reach).max(0.0) as f32;
                }
            }
            // The level need not be among them, as the last value that is the largest.
            _ => (low, high) = ([spread.0.min(mean[0]); AHEAD], [spread.1.max(mean[0]); AHEAD]),
        }
        let skill = if self.model.is_none() { 0.0 } else { self.skill.told() };
        Some(RateForecast { mean, low, high, busy: self.busy_ahead(), skill, is_naive })
    }

    /// The rates of the first `ahead` slices of a forecast together, with its interval.
    pub fn sum(&self, forecast: &RateForecast, ahead: usize) -> (f64, Interval) {
        let sum = forecast.mean.iter().take(ahead).copied().map(f64::from).sum();
        (sum, self.interval.interval(sum).unwrap_or(Interval { low: sum, high: sum }))
    }

    /// Skill as measured, and the part of intervals of the sum that held.
    pub fn measured(&self) -> (&SkillMeter, f64) {
        (&self.skill, self.interval.covered())
    }

    /// The tenth and the ninetieth percentile of the last 32 values, by partial sorting on the stack.
    fn spread(&self) -> (f32, f32) {
        const LAST: usize = 32;
        let count = self.seen.min(LAST);
        let mut last = [0.0; LAST];
        for (back, value) in last.iter_mut().enumerate().take(count) {
            *value = self.history[(self.seen - 1 - back) % HISTORY];
        }
        last[..count].sort_unstable_by(f32::total_cmp);
        (last[count / 10], last[count - 1 - count / 10])
    }

    /// Whether there is a model of when it is busy.
    pub fn foresees_phases(&self) -> bool {
        self.busy.is_some()
    }

    /// Probability that each of the next slices has I/O; how often they had where there is no model.
    pub fn busy_ahead(&self) -> [f32; AHEAD] {
        let is_busy = |at: usize| f32::from(u8::from(self.history[at % HISTORY] >= BUSY_BYTES_PER_SECOND));
        let known = self.known();
        let Some(model) = &self.busy else {
            let count = known.len().max(1) as f32;
            return [known.map(is_busy).sum::<f32>() / count; AHEAD];
        };
        let mut past = [0.0; AR_MAX];
        for (back, value) in past.iter_mut().enumerate().take(known.len()) {
            *value = is_busy(self.seen - 1 - back) - model.mean;
        }
        std::array::from_fn(|_| {
            let next: f32 = model.ar.iter().zip(&past).map(|(phi, value)| phi * value).sum();
            past.copy_within(..AR_MAX - 1, 1);
            past[0] = next;
            (model.mean + next).clamp(0.0, 1.0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Rates;
    use crate::arima::{Budget, Workspace};

    #[test]
    fn after_a_shift_nothing_is_fitted_to_what_was_before() {
        let (mut rates, mut buffers) = (Rates::default(), (Vec::new(), Workspace::default()));
        let feed = |rates: &mut Rates, count: u32, value: f64| {
            (0..count).for_each(|at| rates.observe(value * (0.97 + 0.01 * f64::from(at * 5 % 7)), 15));
        };
        feed(&mut rates, 300, 3e3);
        rates.fit(&mut buffers, &mut Budget::default());
        feed(&mut rates, 4, 1e8);
        let mut earlier = rates.clone();
        for rates in [&mut rates, &mut earlier] {
            rates.observe(1e8, 15);
        }
        rates.reset();
        earlier.reset_models();
        assert!(earlier.wants_fit() && !rates.wants_fit(), "there is too little of the new rate");
        assert_eq!((rates.busy_ahead()[0], earlier.busy_ahead()[0] < 0.02), (1.0, true));
        feed(&mut rates, 58, 1e8);
        assert!(!rates.wants_fit() && rates.forecast().is_some_and(|forecast| forecast.is_naive));
        feed(&mut rates, 1, 1e8);
        assert!(rates.wants_fit() && rates.since_fit() > 60);
        rates.fit(&mut buffers, &mut Budget::default());
        assert_eq!(buffers.0.len(), 60, "a minute of the new rate");
        assert!(rates.next().is_some_and(|next| (next / 1e8 - 1.0).abs() < 0.1), "{:?}", rates.next());
    }

    #[test]
    fn a_naive_level_lies_within_its_interval() {
        for last in [5e8, 0.0] {
            let mut rates = Rates::default();
            (0..40).for_each(|at| rates.observe(1e6 + f64::from(at), 15));
            rates.observe(last, 15);
            let forecast = rates.forecast().expect("values");
            assert!(forecast.is_naive && forecast.mean[0] == last as f32, "{forecast:?}");
            assert!(forecast.low[0] <= forecast.mean[0] && forecast.mean[0] <= forecast.high[0], "{forecast:?}");
        }
    }

    #[test]
    fn who_works_and_rests_in_turns_keeps_its_history_at_each_turn() {
        let mut rates = Rates::default();
        let turn = |rates: &mut Rates, value: f64| {
            (0..30).for_each(|_| rates.observe(value, 15));
            rates.reset();
        };
        (0..10).for_each(|at| turn(&mut rates, if at % 2 == 0 { 1e8 } else { 0.0 }));
        assert!(rates.wants_fit() && rates.known().len() > 200, "{:?}", rates.known());
    }
}
