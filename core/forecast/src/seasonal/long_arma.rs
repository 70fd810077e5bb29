//! ARIMA(144, 0, 2) (Kachmar and Kaeli 2020): a day's worth of autoregression and two terms of moving average.
//!
//! Fitted by the method of Hannan and Rissanen (1982) on covariances: a long autoregression gives innovations, and the values are
//! then regressed on a day of values and two innovations. Cost: 146 covariances over the series and one system of 146 equations.

use super::{BINS_PER_DAY, Seasonal};
use crate::linear::solve_in_place;
use serde::{Deserialize, Serialize};

const P: usize = BINS_PER_DAY;
const Q: usize = 2;
const N: usize = P + Q;
/// The ridge on the diagonal, as a part of the variance: days repeat so well that the system is nearly singular.
const RIDGE: f64 = 1e-4;

/// The forecaster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LongArma {
    mean: f64,
    #[serde(with = "crate::state::array")]
    coefficients: [f64; N],
    /// Deviations from the mean, newest first.
    #[serde(with = "crate::state::array")]
    recent: [f64; P],
    innovations: [f64; Q],
}

impl LongArma {
    /// Fits to a series of bins without gaps; `None` if it is shorter than three days or constant.
    pub fn fit(series: &[f64]) -> Option<Self> {
        let n = series.len();
        if n < 3 * P || series.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let mean = series.iter().sum::<f64>() / n as f64;
        let y: Vec<f64> = series.iter().map(|value| value - mean).collect();
        let own: Vec<f64> = (0..=P).map(|lag| covariance(&y, &y, lag)).collect();
        let mut matrix = vec![0.0; N * N];
        // First the autoregression alone.
        let mut ar: Vec<f64> = own[1..].to_vec();
        for row in 0..P {
            for column in 0..=row {
                matrix[row * P + column] = own[row - column] + if row == column { RIDGE * own[0] } else { 0.0 };
            }
        }
        if !solve_in_place(&mut matrix[..P * P], &mut ar, P) {
            return None;
        }
        let mut e = vec![0.0; n];
        for t in P..n {
            e[t] = y[t] - ar.iter().enumerate().map(|(lag, phi)| phi * y[t - 1 - lag]).sum::<f64>();
        }
        let noise = covariance(&e, &e, 0);
        // Then with the innovations: an innovation goes with values of its time and later, not with earlier ones.
        let with: Vec<f64> = (0..=Q).map(|lag| covariance(&y, &e, lag)).collect();
        let mut b = [0.0; N];
        b[..P].copy_from_slice(&own[1..]);
        b[P..].copy_from_slice(&with[1..]);
        fill(&mut matrix, &own, &with, noise);
        if !solve_in_place(&mut matrix, &mut b, N) {
            return None;
        }
        let mut model = Self { mean, coefficients: b, recent: [0.0; P], innovations: [0.0; Q] };
        series.iter().enumerate().for_each(|(bin, value)| model.observe(bin, *value));
        Some(model)
    }

    fn expected(&self) -> f64 {
        let past = self.recent.iter().chain(&self.innovations);
        self.coefficients.iter().zip(past).map(|(coefficient, value)| coefficient * value).sum()
    }
}

impl Seasonal for LongArma {
    fn observe(&mut self, _: usize, value: f64) {
        let expected = self.expected();
        let deviation = if value.is_finite() { value - self.mean } else { expected };
        self.recent.copy_within(..P - 1, 1);
        self.innovations.copy_within(..Q - 1, 1);
        (self.recent[0], self.innovations[0]) = (deviation, deviation - expected);
    }

    fn forecast(&self, _: usize, ahead: &mut [f64]) -> bool {
        let (mut recent, mut innovations) = (self.recent, self.innovations);
        for value in ahead {
            let past = recent.iter().chain(&innovations);
            let next: f64 = self.coefficients.iter().zip(past).map(|(coefficient, value)| coefficient * value).sum();
            recent.copy_within(..P - 1, 1);
            innovations.copy_within(..Q - 1, 1);
            (recent[0], innovations[0]) = (next, 0.0);
            // An unstable fit must not run away.
            *value = if next.is_finite() { (self.mean + next).max(0.0) } else { self.mean };
        }
        true
    }
}

/// Mean product of `x` and of `y` so many bins earlier.
fn covariance(x: &[f64], y: &[f64], lag: usize) -> f64 {
    x[lag..].iter().zip(y).map(|(x, y)| x * y).sum::<f64>() / x.len() as f64
}

/// Covariances of the regressors with each other: a day of values, then two innovations.
fn fill(matrix: &mut [f64], own: &[f64], with: &[f64], noise: f64) {
    for row in 0..N {
        for column in 0..=row {
            let (late, early) = (row.max(column), row.min(column));
            let value = match (early < P, late < P) {
                (_, true) => own[late - early],
                (false, _) => {
                    if late == early {
                        noise
                    } else {
                        0.0
                    }
                }
                // The innovation of lag `late - P + 1` and the value of lag `early + 1`.
                _ => (late - P).checked_sub(early).map_or(0.0, |lag| with[lag]),
            };
            let ridge = if row == column { RIDGE * if late < P { own[0] } else { noise } } else { 0.0 };
            matrix[row * N + column] = value + ridge;
        }
    }
}
