//! The stepwise search for the order of an ARIMA model (Hyndman and Khandakar 2008, section 3.2).

use super::css::{self, P_MAX};
use super::model::{Arima, MA_MAX};
use super::{Budget, Workspace, burg, kpss};

/// The stepwise search tries no more models than R's.
pub const MODELS_MAX: u32 = 94;
/// Burg's long autoregression must be this much better, by AICc, than the short model.
const BURG_MARGIN: f64 = 4.0;
/// Fewer values tell nothing of an order.
const VALUES_MIN: usize = 10;
/// A `(p, q, constant)` as a place in a table of those tried.
const PLACES: usize = (P_MAX + 1) * (MA_MAX + 1) * 2;

/// The best of the stepwise search and of Burg's autoregression, following `series` to its end.
///
/// `None` if the series is shorter than ten values, constant, or holds a value that is not finite. Deterministic; the cost is
/// bounded by the budget, of which a constant series takes nothing.
pub fn fit(series: &[f64], workspace: &mut Workspace, budget: &mut Budget) -> Option<Arima> {
    let short = fit_stepwise(series, workspace, budget);
    let long = burg::fit(series, workspace);
    let n = series.len() as f64;
    // Differencing costs a value, and the criterion is a sum over values: compare per value.
    let per_value = |model: &Arima| model.aicc * n / (n - model.d as f64);
    match (short, long) {
        (Some(short), Some(long)) if per_value(&long) < per_value(&short) - BURG_MARGIN => Some(long),
        (Some(short), _) => Some(short),
        (None, long) => long,
    }
}

/// The stepwise search alone. See [`fit`].
pub fn fit_stepwise(series: &[f64], workspace: &mut Workspace, budget: &mut Budget) -> Option<Arima> {
    if series.len() < VALUES_MIN || series.iter().any(|value| !value.is_finite()) {
        return None;
    }
    if series.iter().all(|value| *value == series[0]) {
        return None;
    }
    let mut stationary = std::mem::take(&mut workspace.stationary);
    stationary.clear();
    stationary.extend_from_slice(series);
    let (d, n) = kpss::difference_until_stationary(&mut stationary);
    let mut search = Search { series: &stationary[..n], tried: [false; PLACES], best: None };
    search.run(d <= 1, workspace, budget);
    let best = search.best.map(|found| {
        let mut model = found.model;
        model.d = d;
        model.restart(series);
        model
    });
    workspace.stationary = stationary;
    best
}

struct Search<'a> {
    series: &'a [f64],
    tried: [bool; PLACES],
    best: Option<Found>,
}

struct Found {
    p: usize,
    q: usize,
    model: Arima,
}

impl Search<'_> {
    fn run(&mut self, constant: bool, workspace: &mut Workspace, budget: &mut Budget) {
        for (p, q) in [(2, 2), (0, 0), (1, 0), (0, 1)] {
            self.attempt(p, q, constant, workspace, budget);
        }
        self.attempt(0, 0, false, workspace, budget);
        while self.improve(constant, workspace, budget) {}
    }

    /// Tries the neighbours of the best model until one is better; whether one was.
    fn improve(&mut self, constant_allowed: bool, workspace: &mut Workspace, budget: &mut Budget) -> bool {
        const MOVES: [(isize, isize); 8] = [(-1, 0), (1, 0), (0, -1), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)];
        let Some(best) = &self.best else { return false };
        let (p, q, constant) = (best.p, best.q, best.model.constant);
        for (dp, dq) in MOVES {
            let (Some(p), Some(q)) = (p.checked_add_signed(dp), q.checked_add_signed(dq)) else { continue };
            if self.attempt(p, q, constant, workspace, budget) {
                return true;
            }
        }
        (constant || constant_allowed) && self.attempt(p, q, !constant, workspace, budget)
    }

    /// Fits one order unless it was; whether it is the best now.
    fn attempt(&mut self, p: usize, q: usize, constant: bool, workspace: &mut Workspace, budget: &mut Budget) -> bool {
        if p > P_MAX || q > MA_MAX {
            return false;
        }
        let place = (p * (MA_MAX + 1) + q) * 2 + usize::from(constant);
        if std::mem::replace(&mut self.tried[place], true) {
            return false;
        }
        let Some(model) = css::fit(self.series, (p, q, constant), workspace, budget) else { return false };
        let better = self.best.as_ref().is_none_or(|best| model.aicc < best.model.aicc);
        if better {
            self.best = Some(Found { p, q, model });
        }
        better
    }
}
