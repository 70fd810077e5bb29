//! What the host's models make of a series: ridge regression, and the boosted trees that follow it in the daemon. Here each learns from one
//! series alone; what processes show and the time of day are among the features where the data have them.

use super::horizon::{AHEAD, FIRST, sum_from};
use super::score::Account;
use super::series::Series;
use crate::progress::Progress;
use minerva_forecast::host::{Learner, LearnerSettings};
use minerva_forecast::online::{NAIVE, Naive, SkillMeter};
use minerva_forecast::tenant::{Cutter, FeatureState, Row};
use std::collections::VecDeque;
use std::time::Instant;

/// Rows from refit to refit of the trees.
const REFIT_ROWS: usize = 600;

/// Who answers.
#[derive(Clone, Copy, PartialEq)]
enum Model {
    /// Ridge regression alone.
    Ridge,
    /// Ridge regression until there are enough rows for trees.
    Trees,
}

/// A row whose steps are not over.
struct Pending {
    row: Row,
    /// What the answer is a difference from: log1p of the last rate over all steps.
    base: f32,
    /// What the model said of the steps' sum, and naive forecasts, where it was asked.
    told: Option<(f64, [f64; NAIVE])>,
    came: f64,
    left: usize,
}

/// Backtests both models: accounts of the next step, and of the sum of the next fifteen.
pub(super) fn backtest(series: &Series, progress: &mut Progress) -> [Vec<Account>; 2] {
    [1, AHEAD].map(|ahead| {
        let mut of = |name, model| account(name, model, ahead, series, progress);
        vec![of("ridge", Model::Ridge), of("boosted trees", Model::Trees)]
    })
}

/// A naive forecast speaks while the model loses, as in the daemon.
fn account(name: &'static str, model: Model, ahead: usize, series: &Series, progress: &mut Progress) -> Account {
    let mut account = Account::new(name);
    let mut learner = Learner::new(LearnerSettings::default());
    let (mut features, mut cutter) = (FeatureState::bounded(), Cutter::default());
    let (mut naive, mut skill) = (Naive::default(), SkillMeter::default());
    let (mut row, mut rows): (Option<Row>, usize) = (None, 0);
    let mut pending: VecDeque<Pending> = VecDeque::new();
    for (step, value) in series.values.iter().enumerate() {
        progress.part(name, step, series.values.len());
        let began = Instant::now();
        if let Some(row) = row {
            let base = sum_log(row[0], ahead);
            let told = step.is_multiple_of(ahead).then(|| {
                let said = learner.predict(&row, base).map_or(base, |answer| answer.told(learner.mean_percent()));
                let within = features.within_reach(mean_log(said, ahead));
                (f64::from(within).exp_m1() * ahead as f64, naive.forecasts().map(|value| value * ahead as f64))
            });
            if let Some((own, by_naive)) = &told
                && step >= FIRST
            {
                let forecast = if skill.is_switched_off() { by_naive[skill.best_naive()] } else { *own };
                account.take(step, forecast, sum_from(&series.values, step, ahead));
            }
            pending.push_back(Pending { row, base, told, came: 0.0, left: ahead });
        }
        for waits in &mut pending {
            (waits.came, waits.left) = (waits.came + value, waits.left - 1);
        }
        if pending.front().is_some_and(|waits| waits.left == 0)
            && let Some(over) = pending.pop_front()
            && over.came.is_finite()
        {
            if let Some((own, by_naive)) = over.told {
                skill.observe(own, &by_naive, over.came);
            }
            learner.observe(&over.row, over.base, over.came.ln_1p() as f32);
            rows += 1;
            if model == Model::Trees && rows.is_multiple_of(REFIT_ROWS) && learner.begin_refit() {
                while learner.advance() {}
            }
        }
        naive.observe(*value);
        if let Some(reading) = series.reading(step) {
            cutter.observe(&reading);
            row = Some(features.observe(&reading, cutter.progress(), 0.0));
        }
        account.time += began.elapsed();
    }
    account
}

/// log1p of so many times what a log1p stands for.
fn sum_log(log: f32, times: usize) -> f32 {
    (f64::from(log).exp_m1() * times as f64).ln_1p() as f32
}

/// log1p of a step's part of what a log1p stands for.
fn mean_log(log: f32, steps: usize) -> f32 {
    (f64::from(log).exp_m1() / steps as f64).ln_1p() as f32
}
