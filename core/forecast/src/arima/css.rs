//! ARMA coefficients by least conditional sum of squares, found by Levenberg and Marquardt's method (Marquardt 1963).

use super::model::{Arima, MA_MAX, is_stable};
use super::{Budget, Criterion, Workspace};
use crate::linear::solve_in_place;

/// Longest autoregression of a model fitted this way (Hyndman and Khandakar 2008).
pub(crate) const P_MAX: usize = 5;
/// Coefficients, and the mean.
const PARAMETERS_MAX: usize = P_MAX + MA_MAX + 1;
/// Steps of the search for one model.
pub const STEPS_MAX: u32 = 40;
/// An improvement of the sum of squares by less than this part ends the search.
const TOLERANCE: f64 = 1e-7;
/// The damping at the start, by which it changes, and beyond which no step is worth trying.
const DAMPING_START: f64 = 1e-3;
const DAMPING_FACTOR: f64 = 8.0;
const DAMPING_MAX: f64 = 1e9;

/// What is searched: autoregressive coefficients, then moving-average ones, then the mean.
#[derive(Clone, Copy)]
struct Point {
    p: usize,
    q: usize,
    constant: bool,
    x: [f64; PARAMETERS_MAX],
}

impl Point {
    fn len(&self) -> usize {
        self.p + self.q + usize::from(self.constant)
    }

    fn ar(&self) -> &[f64] {
        &self.x[..self.p]
    }

    fn ma(&self) -> &[f64] {
        &self.x[self.p..self.p + self.q]
    }

    fn mean(&self) -> f64 {
        if self.constant { self.x[self.p + self.q] } else { 0.0 }
    }

    fn is_stable(&self) -> bool {
        let mut negated = [0.0; MA_MAX];
        for (to, from) in negated.iter_mut().zip(self.ma()) {
            *to = -from;
        }
        is_stable(self.ar()) && is_stable(&negated[..self.q])
    }

    /// Residuals of the series, zero for the first `p`; their sum of squares.
    fn residuals(&self, series: &[f64], residuals: &mut Vec<f64>) -> f64 {
        let mean = self.mean();
        residuals.clear();
        residuals.resize(self.p, 0.0);
        let mut sum = 0.0;
        for t in self.p..series.len() {
            let mut e = series[t] - mean;
            for (lag, phi) in self.ar().iter().enumerate() {
                e -= phi * (series[t - 1 - lag] - mean);
            }
            for (lag, theta) in self.ma().iter().enumerate().take(t) {
                e -= theta * residuals[t - 1 - lag];
            }
            residuals.push(e);
            sum += e * e;
        }
        sum
    }
}

/// Fits ARMA(p, q) to a stationary series; `None` if no stable one is found. Spends one model of the budget and at most
/// [`STEPS_MAX`] steps. Cost of a step: length times the square of the count of parameters.
pub(crate) fn fit(
    series: &[f64],
    (p, q, constant): (usize, usize, bool),
    workspace: &mut Workspace,
    budget: &mut Budget,
) -> Option<Arima> {
    let n = series.len();
    let (p, q) = (p.min(P_MAX), q.min(MA_MAX));
    if n < 2 * (p + q + 2) || !budget.take_model() {
        return None;
    }
    let (at, sum) = descend(start(series, p, q, constant), series, workspace, budget);
    let sigma2 = sum / (n - p) as f64;
    if !(sigma2 > 0.0 && sigma2.is_finite()) {
        return None;
    }
    let mut model = Arima::new(0, p, q);
    model.ar[..p].copy_from_slice(at.ar());
    model.ma[..q].copy_from_slice(at.ma());
    (model.mean, model.constant, model.sigma2) = (at.mean(), constant, sigma2);
    model.aicc = Criterion { values: n, parameters: at.len() + 1 }.aicc(sigma2);
    Some(model)
}

/// Levenberg and Marquardt's search from a point; where it ended, and the sum of squares there.
fn descend(mut at: Point, series: &[f64], workspace: &mut Workspace, budget: &mut Budget) -> (Point, f64) {
    let mut sum = at.residuals(series, &mut workspace.residuals);
    let mut damping = DAMPING_START;
    let mut gram = [0.0; PARAMETERS_MAX * PARAMETERS_MAX];
    let mut gradient = [0.0; PARAMETERS_MAX];
    let mut fresh = false;
    for _ in 0..STEPS_MAX {
        if at.len() == 0 || damping > DAMPING_MAX || !budget.take_step() {
            break;
        }
        if !fresh {
            normal_equations(&at, series, workspace, &mut gram, &mut gradient);
            fresh = true;
        }
        let k = at.len();
        let (mut matrix, mut step) = (gram, gradient);
        for index in 0..k {
            matrix[index * k + index] *= 1.0 + damping;
        }
        let mut next = at;
        let solved = solve_in_place(&mut matrix, &mut step, k);
        for (x, by) in next.x.iter_mut().zip(step) {
            *x += by;
        }
        let next_sum =
            if solved && next.is_stable() { next.residuals(series, &mut workspace.trial) } else { f64::INFINITY };
        if next_sum < sum {
            let gained = sum - next_sum;
            std::mem::swap(&mut workspace.residuals, &mut workspace.trial);
            (at, sum, fresh) = (next, next_sum, false);
            damping /= DAMPING_FACTOR;
            if gained < TOLERANCE * sum {
                break;
            }
        } else {
            damping *= DAMPING_FACTOR;
        }
    }
    (at, sum)
}

/// Yule and Walker's equations give the autoregression; the moving average starts at nothing.
fn start(series: &[f64], p: usize, q: usize, constant: bool) -> Point {
    let n = series.len() as f64;
    let mean = if constant { series.iter().sum::<f64>() / n } else { 0.0 };
    let mut point = Point { p, q, constant, x: [0.0; PARAMETERS_MAX] };
    let mut covariance = [0.0; P_MAX + 1];
    for (lag, c) in covariance.iter_mut().enumerate().take(p + 1) {
        *c = series[lag..].iter().zip(series).map(|(x, y)| (x - mean) * (y - mean)).sum::<f64>() / n;
    }
    let mut matrix = [0.0; P_MAX * P_MAX];
    for row in 0..p {
        for column in 0..p {
            matrix[row * p + column] = covariance[row.abs_diff(column)];
        }
    }
    point.x[..p].copy_from_slice(&covariance[1..=p]);
    if !solve_in_place(&mut matrix, &mut point.x, p) || !point.is_stable() {
        point.x = [0.0; PARAMETERS_MAX];
    }
    if constant {
        point.x[p + q] = mean;
    }
    point
}

/// Gram matrix of the residuals' derivatives, and the direction of descent. The derivative by a coefficient is a filtered series
/// shifted by the coefficient's lag, so one filtering serves all lags (Box and Jenkins 1976, section 7.2).
fn normal_equations(
    at: &Point,
    series: &[f64],
    workspace: &mut Workspace,
    gram: &mut [f64; PARAMETERS_MAX * PARAMETERS_MAX],
    gradient: &mut [f64; PARAMETERS_MAX],
) {
    let (n, k, mean) = (series.len(), at.len(), at.mean());
    let Workspace { residuals, by_ar, by_ma, by_mean, .. } = workspace;
    let filtered = |to: &mut Vec<f64>, from: &dyn Fn(usize) -> f64, first: usize| {
        to.clear();
        for t in 0..n {
            let mut value = if t < first { 0.0 } else { from(t) };
            for (lag, theta) in at.ma().iter().enumerate().take(t) {
                value -= theta * to[t - 1 - lag];
            }
            to.push(value);
        }
    };
    filtered(by_ar, &|t| series[t] - mean, 0);
    filtered(by_ma, &|t| residuals[t], 0);
    let level = 1.0 - at.ar().iter().sum::<f64>();
    filtered(by_mean, &|_| level, at.p);
    gram[..k * k].fill(0.0);
    gradient[..k].fill(0.0);
    let mut row = [0.0; PARAMETERS_MAX];
    for t in at.p.max(at.q)..n {
        for lag in 0..at.p {
            row[lag] = by_ar[t - 1 - lag];
        }
        for lag in 0..at.q {
            row[at.p + lag] = by_ma[t - 1 - lag];
        }
        if at.constant {
            row[at.p + at.q] = by_mean[t];
        }
        for i in 0..k {
            gradient[i] += row[i] * residuals[t];
            for j in 0..=i {
                gram[i * k + j] += row[i] * row[j];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arma_process_is_recovered() {
        // ARMA(1, 1) around 5 with coefficients 0.7 and 0.4, driven by a fixed sequence that looks like noise.
        let (mut seed, mut y, mut e_before) = (1_u64, 0.0, 0.0);
        let series: Vec<f64> = (0..3000)
            .map(|_| {
                let mut noise = -6.0;
                for _ in 0..12 {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    noise += (seed >> 11) as f64 / (1_u64 << 53) as f64;
                }
                y = 0.7 * y + noise + 0.4 * e_before;
                e_before = noise;
                y + 5.0
            })
            .collect();
        let model = fit(&series, (1, 1, true), &mut Workspace::default(), &mut Budget::default()).expect("a model");
        assert!((model.ar[0] - 0.7).abs() < 0.04 && (model.ma[0] - 0.4).abs() < 0.05, "{model:?}");
        assert!((model.mean - 5.0).abs() < 0.3 && (model.sigma2 - 1.0).abs() < 0.08, "{model:?}");
    }
}
