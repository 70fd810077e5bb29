//! How one model did on one series and horizon.

use minerva_forecast::evaluate::{Accuracy, Brier, Edges};
use minerva_forecast::online::IntervalMeter;
use serde::Serialize;
use std::time::Duration;

/// Of each model the last so many forecasts are kept, for plots.
const KEPT: usize = 300;
/// Intervals are to hold this part of what comes.
const COVERAGE: f64 = 0.8;

/// A forecast beside what came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    /// Which step of the series.
    pub(super) step: usize,
    pub(super) forecast: f64,
    pub(super) interval: Option<(f64, f64)>,
    pub(super) actual: f64,
}

/// One model's account.
#[derive(Clone, Debug)]
pub(super) struct Account {
    pub(super) model: &'static str,
    pub(super) accuracy: Accuracy,
    meter: IntervalMeter,
    edges: Edges,
    pub(super) busy: Option<Brier>,
    /// All that forecasting took, fits included.
    pub(super) time: Duration,
    pub(super) points: std::collections::VecDeque<Point>,
}

/// What is told of it. Absent is what cannot be said, such as a percentage of nothing.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Score {
    pub(super) series: String,
    pub(super) horizon: &'static str,
    pub(super) model: &'static str,
    pub(super) forecasts: u64,
    pub(super) mae: Option<f64>,
    pub(super) rmse: Option<f64>,
    pub(super) smape_percent: Option<f64>,
    /// What all forecasts lack, in percent of what came.
    pub(super) mpe_percent: Option<f64>,
    /// MAE in units of that of the simplest forecast: the last value, a day ago, a week ago.
    pub(super) mase: Option<f64>,
    /// Of intervals that are to hold 80 % of what comes; what lies exactly on an edge, as what repeats does, counts in part.
    pub(super) interval_coverage_percent: Option<f64>,
    pub(super) busy_hit_rate_percent: Option<f64>,
    pub(super) brier_score: Option<f64>,
    pub(super) brier_skill: Option<f64>,
    pub(super) microseconds_per_forecast: Option<f64>,
}

impl Account {
    pub(super) fn new(model: &'static str) -> Self {
        Self {
            model,
            accuracy: Accuracy::default(),
            meter: IntervalMeter::new(COVERAGE),
            edges: Edges::default(),
            busy: None,
            time: Duration::ZERO,
            points: std::collections::VecDeque::new(),
        }
    }

    /// A forecast and what came; what is no number is passed over.
    pub(super) fn take(&mut self, step: usize, forecast: f64, actual: f64) {
        if !actual.is_finite() {
            return;
        }
        let interval = self.meter.interval(forecast);
        self.accuracy.add(forecast, actual);
        if let Some(interval) = interval {
            self.accuracy.add_covered(self.edges.observe(COVERAGE, interval, actual).1);
        }
        let interval = interval.map(|interval| (interval.low, interval.high));
        self.meter.observe(forecast, actual);
        if self.points.len() == KEPT {
            self.points.pop_front();
        }
        self.points.push_back(Point { step, forecast, interval, actual });
    }

    pub(super) fn score(&self, series: &str, horizon: &'static str, simplest: &Accuracy) -> Score {
        let said = |value: f64| value.is_finite().then_some(value);
        let brier = self.busy.as_ref();
        let count = self.accuracy.count();
        Score {
            series: series.to_owned(),
            horizon,
            model: self.model,
            forecasts: count as u64,
            mae: said(self.accuracy.mae()),
            rmse: said(self.accuracy.rmse()),
            smape_percent: said(self.accuracy.smape_percent()),
            mpe_percent: said(self.accuracy.mpe_percent()),
            mase: said(self.accuracy.mase(simplest)),
            interval_coverage_percent: said(self.accuracy.coverage_percent()),
            busy_hit_rate_percent: brier.and_then(|brier| said(brier.hit_rate_percent())),
            brier_score: brier.and_then(|brier| said(brier.score())),
            brier_skill: brier.and_then(|brier| said(brier.skill())),
            microseconds_per_forecast: said(self.time.as_secs_f64() * 1e6 / count),
        }
    }
}

/// All accounts of a series on a horizon, or why there are none.
#[derive(Clone, Debug)]
pub(super) struct Board {
    pub(super) horizon: &'static str,
    pub(super) accounts: Vec<Account>,
    /// Whose error is the unit of MASE.
    pub(super) simplest: usize,
    pub(super) none_because: Option<String>,
}

impl Board {
    pub(super) fn none(horizon: &'static str, why: String) -> Self {
        Self { horizon, accounts: Vec::new(), simplest: 0, none_because: Some(why) }
    }

    /// Scores, the least error first.
    pub(super) fn scores(&self, series: &str) -> Vec<Score> {
        let Some(simplest) = self.accounts.get(self.simplest) else { return Vec::new() };
        let mut scores: Vec<Score> = self
            .accounts
            .iter()
            .filter(|account| account.accuracy.count() > 0.0)
            .map(|account| account.score(series, self.horizon, &simplest.accuracy))
            .collect();
        scores.sort_by(|a, b| a.mae.unwrap_or(f64::INFINITY).total_cmp(&b.mae.unwrap_or(f64::INFINITY)));
        scores
    }

    /// The account with the least error.
    pub(super) fn best(&self) -> Option<&Account> {
        let scored = self.accounts.iter().filter(|account| account.accuracy.count() > 0.0);
        scored.min_by(|a, b| a.accuracy.mae().total_cmp(&b.accuracy.mae()))
    }
}
