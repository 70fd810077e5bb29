//! The next step and the next fifteen, as `core/forecast` does it slice by slice: each value is forecast from those before it.

use super::horizon::{AHEAD, FIRST, sum_from};
use super::learned;
use super::score::{Account, Board};
use super::series::Series;
use crate::progress::Progress;
use minerva_forecast::arima::{self, Arima, Budget, Workspace};
use minerva_forecast::evaluate::Brier;
use minerva_forecast::online::{NAIVE, Naive};
use std::time::Instant;

const HISTORY: usize = 300;
const REFIT: usize = 60;
/// What is above this part of the history is cut off before a fit, as in the daemon.
const WINSOR: f64 = 0.99;
/// A step with less than this part of the mean is idle.
const BUSY_PART: f64 = 0.01;

const NAIVE_NAMES: [&str; NAIVE] = ["zero", "last value", "mean of 16", "long mean", "median"];
/// The last value.
const SIMPLEST: usize = 1;

type Fit = fn(&[f64], &mut Workspace) -> Option<Arima>;

/// How each autoregression is fitted.
const FITS: [(&str, Fit); 3] = [
    ("ARIMA, Hyndman-Khandakar", |series, workspace| arima::fit_stepwise(series, workspace, &mut Budget::default())),
    ("autoregression, Burg", arima::fit_burg),
    ("the better by AICc", |series, workspace| arima::fit(series, workspace, &mut Budget::default())),
];

/// Backtests all models: boards of the next step and of the next fifteen.
pub(super) fn backtest(series: &Series, progress: &mut Progress) -> [Board; 2] {
    let values = &series.values;
    let finite = values.iter().filter(|value| value.is_finite()).count();
    let least = FIRST + AHEAD + 1;
    if finite < least {
        let why = format!("none: {finite} values, and at least {least} are needed");
        return [Board::none("next step", why.clone()), Board::none("next 15 steps", why)];
    }
    let mut both = naive(values);
    let mut workspace = Workspace::default();
    for (name, fit) in FITS {
        let accounts = autoregression(name, fit, values, &mut workspace, progress);
        both.iter_mut().zip(accounts).for_each(|(board, account)| board.push(account));
    }
    both.iter_mut().zip(learned::backtest(series, progress)).for_each(|(board, accounts)| board.extend(accounts));
    busy(values, &mut both[1], &mut workspace);
    let [next, ahead] = both;
    let board = |horizon, accounts| Board { horizon, accounts, simplest: SIMPLEST, none_because: None };
    [board("next step", next), board("next 15 steps", ahead)]
}

fn naive(values: &[f64]) -> [Vec<Account>; 2] {
    let mut both = [NAIVE_NAMES.map(Account::new).to_vec(), NAIVE_NAMES.map(Account::new).to_vec()];
    let mut naive = Naive::default();
    let began = Instant::now();
    for (step, value) in values.iter().enumerate() {
        if step >= FIRST {
            for (index, forecast) in naive.forecasts().into_iter().enumerate() {
                both[0][index].take(step, forecast, *value);
                if step.is_multiple_of(AHEAD) {
                    both[1][index].take(step, forecast * AHEAD as f64, sum_from(values, step, AHEAD));
                }
            }
        }
        naive.observe(*value);
    }
    // All are made together.
    let each = began.elapsed() / (2 * NAIVE) as u32;
    both.iter_mut().flatten().for_each(|account| account.time = each);
    both
}

/// Those `HISTORY` before a step: gaps as the value before them, bursts cut off.
fn history(values: &[f64], step: usize) -> (Vec<f64>, f64) {
    let mut last = 0.0;
    let fill = |value: &f64| {
        last = if value.is_finite() { *value } else { last };
        last
    };
    let mut series: Vec<f64> = values[step.saturating_sub(HISTORY)..step].iter().map(fill).collect();
    let mut sorted = series.clone();
    sorted.sort_unstable_by(f64::total_cmp);
    let mut ceiling = sorted[((sorted.len() - 1) as f64 * WINSOR) as usize];
    if ceiling <= 0.0 {
        ceiling = sorted[sorted.len() - 1];
    }
    series.iter_mut().for_each(|value| *value = value.min(ceiling));
    (series, ceiling)
}

fn autoregression(
    name: &'static str,
    fit: Fit,
    values: &[f64],
    workspace: &mut Workspace,
    progress: &mut Progress,
) -> [Account; 2] {
    let mut both = [Account::new(name), Account::new(name)];
    let (mut model, mut ceiling) = (None, f64::INFINITY);
    for (step, value) in values.iter().enumerate().skip(FIRST) {
        progress.part(name, step, values.len());
        let began = Instant::now();
        if (step - FIRST).is_multiple_of(REFIT) {
            let (series, cut) = history(values, step);
            (model, ceiling) = (fit(&series, workspace), cut);
        }
        let path = model.as_ref().map(|model| model.forecast(AHEAD).mean);
        both[0].time += began.elapsed();
        if let Some(mean) = path {
            both[0].take(step, mean[0].max(0.0), *value);
            if step.is_multiple_of(AHEAD) {
                let sum = mean[..AHEAD].iter().map(|mean| mean.max(0.0)).sum();
                both[1].take(step, sum, sum_from(values, step, AHEAD));
            }
        }
        if let Some(model) = &mut model {
            // `min` of no number and the ceiling is the ceiling.
            model.update(if value.is_finite() { value.min(ceiling) } else { *value });
        }
    }
    // A path tells both.
    both[1].time = both[0].time.mul_f64(both[1].accuracy.count() / both[0].accuracy.count().max(1.0));
    both
}

/// Whether each of the next fifteen steps is busy: an autoregression of the indicator, and what is usual.
fn busy(values: &[f64], accounts: &mut [Account], workspace: &mut Workspace) {
    let finite = || values.iter().copied().filter(|value| value.is_finite());
    let mean = finite().sum::<f64>() / finite().count().max(1) as f64;
    let is_busy = |value: f64| value > BUSY_PART * mean;
    let indicator: Vec<f64> = values
        .iter()
        .map(|value| if value.is_finite() { f64::from(u8::from(is_busy(*value))) } else { f64::NAN })
        .collect();
    let (mut ours, mut usual) = (Brier::default(), Brier::default());
    let (mut model, mut seen, mut happened) = (None, 0.0, 0.0);
    for (step, value) in indicator.iter().enumerate() {
        if step >= FIRST && (step - FIRST).is_multiple_of(REFIT) {
            let series: Vec<f64> = indicator[step.saturating_sub(HISTORY)..step]
                .iter()
                .map(|value| if value.is_finite() { *value } else { 0.0 })
                .collect();
            model = arima::fit_burg(&series, workspace);
        }
        if step >= FIRST && step.is_multiple_of(AHEAD) {
            let path = model.as_ref().map(|model: &Arima| model.forecast(AHEAD).mean);
            for ahead in 0..AHEAD {
                let came = indicator.get(step + ahead).copied().filter(|came| came.is_finite());
                let (Some(came), Some(path)) = (came, path) else { continue };
                ours.add(path[ahead].clamp(0.0, 1.0), came > 0.5);
                usual.add(happened / f64::max(seen, 1.0), came > 0.5);
            }
        }
        if value.is_finite() {
            (seen, happened) = (seen + 1.0, happened + value);
        }
        if let Some(model) = &mut model {
            model.update(*value);
        }
    }
    for account in accounts {
        match account.model {
            "autoregression, Burg" => account.busy = Some(ours),
            "long mean" => account.busy = Some(usual),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FITS, autoregression};
    use crate::progress::Progress;
    use minerva_forecast::arima::Workspace;

    #[test]
    fn a_gap_is_taken_for_what_is_expected_and_not_for_the_most_that_came() {
        // A constant and noise, and bursts of ten times as much that last: the ceiling is one of those.
        let (mut random, mut is_burst) = (fastrand::Rng::with_seed(7), false);
        let mut value = || {
            is_burst = if is_burst { random.u8(..8) > 0 } else { random.u8(..60) == 0 };
            if is_burst { 1_000.0 } else { 100.0 + 10.0 * random.f64() }
        };
        let mut values: Vec<f64> = (0..451).map(|_| value()).collect();
        // Between two fits, and after what is usual.
        values[410..430].fill(100.0);
        values[430..450].fill(f64::NAN);
        for (name, fit) in FITS {
            let [next, _] = autoregression(name, fit, &values, &mut Workspace::default(), &mut Progress::new());
            let after = next.points.back().map(|point| point.forecast).expect("a forecast");
            assert!((50.0..400.0).contains(&after), "{name}: {after} after the gap");
        }
    }
}
