//! The day and the week that follow each midnight, in bins of ten minutes.

use super::score::{Account, Board};
use super::series::Series;
use crate::progress::Progress;
use minerva_forecast::seasonal::{
    ArrivalStates, BIN_SECONDS, BINS_PER_DAY, BINS_PER_WEEK, DayClusters, Ensemble, HoltWinters, LongArma, Seasonal,
    SeasonalNaive,
};
use std::time::Instant;

/// Days before the first forecast, so that a week ago is known.
const FIRST_DAYS: usize = 8;
/// Days from fit to fit, and bins that are fitted on.
const REFIT_DAYS: usize = 7;
const HISTORY_BINS: usize = 6 * BINS_PER_WEEK;
/// Seconds from the epoch (a Thursday) to the first Monday.
const FIRST_MONDAY_SECONDS: f64 = 4.0 * 86_400.0;

const NAMES: [&str; 7] = [
    "a day ago",
    "a week ago",
    "day clusters",
    "Holt-Winters, damped",
    "ARIMA(144, 0, 2)",
    "arrival states",
    "ensemble by skill",
];

/// Bins from the first midnight of the series on, and the number of the first in its week.
pub(super) struct Binned {
    pub(super) values: Vec<f64>,
    first: usize,
}

/// Sums a series up; why not, if it cannot be.
pub(super) fn binned(series: &Series) -> Result<Binned, String> {
    let bin_seconds = BIN_SECONDS as f64;
    if series.step_seconds > bin_seconds {
        return Err(format!(
            "none: steps of {:.0} s are longer than the bins of {bin_seconds:.0} s",
            series.step_seconds
        ));
    }
    // Without a time the series begins on a Monday at midnight.
    let start = series.local_start().unwrap_or(FIRST_MONDAY_SECONDS);
    let monday = (start - FIRST_MONDAY_SECONDS).rem_euclid(7.0 * 86_400.0);
    let day_bins = BINS_PER_DAY as f64;
    let offset_bins = (monday / bin_seconds) % day_bins;
    let skipped_bins = (day_bins - offset_bins) % day_bins;
    let mut bins: Vec<(f64, f64, f64)> = Vec::new();
    for (step, value) in series.values.iter().enumerate() {
        let at = step as f64 * series.step_seconds / bin_seconds - skipped_bins;
        if at < -1e-9 {
            continue;
        }
        let bin = (at + 1e-9) as usize;
        bins.resize(bins.len().max(bin + 1), (0.0, 0.0, 0.0));
        let (sum, count, steps) = &mut bins[bin];
        *steps += 1.0;
        if value.is_finite() {
            (*sum, *count) = (*sum + value, *count + 1.0);
        }
    }
    let days = bins.len() / BINS_PER_DAY;
    if days <= FIRST_DAYS {
        return Err(format!("none: {days} whole days, and more than {FIRST_DAYS} are needed"));
    }
    // A bin of which less than half was seen has no value.
    let value = |(sum, count, steps): &(f64, f64, f64)| {
        if *count * 2.0 >= *steps && *count > 0.0 { sum / count } else { f64::NAN }
    };
    let first = ((monday / bin_seconds + skipped_bins).round() as usize) % BINS_PER_WEEK;
    Ok(Binned { values: bins[..days * BINS_PER_DAY].iter().map(value).collect(), first })
}

/// One model, and how it is kept up to date.
enum Model {
    Follows(Box<dyn Seasonal>),
    /// Fitted anew on the history once a week.
    Fitted(Option<Box<dyn Seasonal>>, fn(&[f64]) -> Option<Box<dyn Seasonal>>),
    Ensemble(Box<Ensemble>),
}

impl Model {
    fn all() -> [Self; NAMES.len()] {
        [
            Self::Follows(Box::new(SeasonalNaive::day())),
            Self::Follows(Box::new(SeasonalNaive::week())),
            Self::Follows(Box::new(DayClusters::new(2, 0.3, 0.15))),
            Self::Fitted(None, |series| Some(Box::new(HoltWinters::fit(series)))),
            Self::Fitted(None, |series| LongArma::fit(series).map(|model| Box::new(model) as _)),
            Self::Fitted(None, |series| {
                let week = &series[series.len().saturating_sub(BINS_PER_WEEK)..];
                ArrivalStates::fit(week).map(|model| Box::new(model) as _)
            }),
            Self::Ensemble(Box::default()),
        ]
    }

    fn fit(&mut self, history: &[f64]) {
        match self {
            Self::Follows(_) => {}
            Self::Fitted(model, fit) => *model = fit(history),
            Self::Ensemble(ensemble) => while ensemble.refit() {},
        }
    }

    fn observe(&mut self, bin: usize, value: f64) {
        match self {
            Self::Follows(model) => model.observe(bin, value),
            Self::Fitted(model, _) => model.iter_mut().for_each(|model| model.observe(bin, value)),
            Self::Ensemble(ensemble) => ensemble.observe(bin, value),
        }
    }

    fn forecast(&self, bin: usize, ahead: &mut [f64]) -> bool {
        match self {
            Self::Follows(model) => model.forecast(bin, ahead),
            Self::Fitted(model, _) => model.as_ref().is_some_and(|model| model.forecast(bin, ahead)),
            Self::Ensemble(ensemble) => ensemble.forecast(bin, ahead),
        }
    }
}

/// Backtests all models: boards of the day and of the week ahead.
pub(super) fn backtest(Binned { values, first }: &Binned, progress: &mut Progress) -> [Board; 2] {
    let mut both = [NAMES.map(Account::new).to_vec(), NAMES.map(Account::new).to_vec()];
    let mut models = Model::all();
    let mut history: Vec<f64> = Vec::new();
    let mut ahead = [0.0; BINS_PER_WEEK];
    for (bin, value) in values.iter().enumerate() {
        let (day, number) = (bin / BINS_PER_DAY, (first + bin) % BINS_PER_WEEK);
        if bin.is_multiple_of(BINS_PER_DAY) && day >= FIRST_DAYS {
            for (index, model) in models.iter_mut().enumerate() {
                progress.part("days and weeks", bin, values.len());
                let began = Instant::now();
                if (day - FIRST_DAYS).is_multiple_of(REFIT_DAYS) {
                    model.fit(&history[history.len().saturating_sub(HISTORY_BINS)..]);
                }
                let is_known = model.forecast(number, &mut ahead);
                let took = began.elapsed();
                for (accounts, bins) in both.iter_mut().zip([BINS_PER_DAY, BINS_PER_WEEK]) {
                    let came = values.get(bin..bin + bins).filter(|_| is_known);
                    for (step, (forecast, came)) in ahead.iter().zip(came.unwrap_or_default()).enumerate() {
                        accounts[index].take(bin + step, *forecast, *came);
                    }
                    // A forecast is of a whole day, and a score of its bins.
                    accounts[index].time += took * came.map_or(0, |came| came.len() as u32);
                }
            }
        }
        models.iter_mut().for_each(|model| model.observe(number, *value));
        let a_day_ago = bin.checked_sub(BINS_PER_DAY).map_or(0.0, |before| history[before]);
        history.push(if value.is_finite() { *value } else { a_day_ago });
    }
    let board = |horizon, accounts, simplest| Board { horizon, accounts, simplest, none_because: None };
    let [day, week] = both;
    let week = match week.iter().all(|account| account.accuracy.count() == 0.0) {
        true => Board::none(
            "week",
            format!("none: {} whole days, and more than {} are needed", values.len() / BINS_PER_DAY, FIRST_DAYS + 6),
        ),
        false => board("week", week, 1),
    };
    [board("day", day, 0), week]
}
