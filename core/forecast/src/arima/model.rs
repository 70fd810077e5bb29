//! A fitted ARIMA model that follows its series value by value and forecasts without allocating.

use serde::{Deserialize, Serialize};

/// Longest autoregression: Burg's candidate.
pub const AR_MAX: usize = 40;
/// Longest moving average.
pub const MA_MAX: usize = 5;
/// Longest forecast, in steps.
pub const HORIZON_MAX: usize = 64;
/// Highest order of differencing.
const D_MAX: usize = 2;

/// Differences of order `d` follow an ARMA process around `mean`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Arima {
    /// Order of differencing, 0 to 2.
    pub d: usize,
    /// Length of the autoregression.
    pub p: usize,
    /// Length of the moving average.
    pub q: usize,
    /// Whether the mean was estimated: a level for `d = 0`, a drift for `d = 1`.
    pub constant: bool,
    /// Mean of the differenced series, in its units.
    pub mean: f64,
    /// Autoregressive coefficients, the first `p` count.
    #[serde(with = "crate::state::array")]
    pub ar: [f64; AR_MAX],
    /// Moving-average coefficients, the first `q` count.
    pub ma: [f64; MA_MAX],
    /// Variance of the innovations.
    pub sigma2: f64,
    /// Corrected information criterion (Hurvich and Tsai 1989), up to a constant, of the fit.
    pub aicc: f64,
    state: State,
}

/// What the next forecast starts from: most recent first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct State {
    /// Differenced values less the mean.
    #[serde(with = "crate::state::array")]
    recent: [f64; AR_MAX],
    innovations: [f64; MA_MAX],
    /// Last value of the series and of its first difference.
    last: [f64; D_MAX],
    seen: usize,
}

/// A forecast of some steps: means and standard errors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// Steps that count.
    pub len: usize,
    /// Mean of each step, in the units of the series.
    pub mean: [f64; HORIZON_MAX],
    /// Standard error of each step, parameters taken as known.
    pub deviation: [f64; HORIZON_MAX],
}

impl Arima {
    /// A model of which nothing but the orders is known yet: a constant series at `mean`.
    pub fn new(d: usize, p: usize, q: usize) -> Self {
        let (p, q, d) = (p.min(AR_MAX), q.min(MA_MAX), d.min(D_MAX));
        let state = State { recent: [0.0; AR_MAX], innovations: [0.0; MA_MAX], last: [0.0; D_MAX], seen: 0 };
        let (ar, ma) = ([0.0; AR_MAX], [0.0; MA_MAX]);
        Self { d, p, q, constant: false, mean: 0.0, ar, ma, sigma2: 0.0, aicc: f64::INFINITY, state }
    }

    /// Forgets what was followed and follows `series` from its start.
    pub fn restart(&mut self, series: &[f64]) {
        self.state = State { recent: [0.0; AR_MAX], innovations: [0.0; MA_MAX], last: [0.0; D_MAX], seen: 0 };
        for value in series {
            self.update(*value);
        }
    }

    /// Takes the next value of the series; one that is not finite is taken as the forecast.
    pub fn update(&mut self, value: f64) {
        let value = if value.is_finite() { value } else { self.next() };
        let state = &mut self.state;
        let (level, slope) = (state.last[0], state.last[1]);
        let difference = value - level;
        let stationary = match self.d {
            0 => value,
            1 => difference,
            _ => difference - slope,
        };
        state.last = [value, if state.seen == 0 { 0.0 } else { difference }];
        state.seen += 1;
        if state.seen <= self.d {
            return;
        }
        let deviation = stationary - self.mean;
        // The first values have nothing before them to be told from (conditional sum of squares).
        let innovation = if state.seen - self.d <= self.p { 0.0 } else { deviation - self.expected() };
        let state = &mut self.state;
        state.recent.copy_within(..AR_MAX - 1, 1);
        state.recent[0] = deviation;
        state.innovations.copy_within(..MA_MAX - 1, 1);
        state.innovations[0] = innovation;
    }

    /// The next value's deviation from the mean of the differenced series.
    fn expected(&self) -> f64 {
        let ar: f64 = self.ar[..self.p].iter().zip(&self.state.recent).map(|(phi, y)| phi * y).sum();
        let ma: f64 = self.ma[..self.q].iter().zip(&self.state.innovations).map(|(theta, e)| theta * e).sum();
        ar + ma
    }

    /// The forecast of the next value.
    pub fn next(&self) -> f64 {
        let stationary = self.mean + self.expected();
        match self.d {
            0 => stationary,
            1 => self.state.last[0] + stationary,
            _ => self.state.last[0] + self.state.last[1] + stationary,
        }
    }

    /// Forecasts `steps` values, at most [`HORIZON_MAX`], with standard errors from the weights of past innovations.
    pub fn forecast(&self, steps: usize) -> Path {
        let len = steps.min(HORIZON_MAX);
        let (mut mean, mut deviation) = ([0.0; HORIZON_MAX], [0.0; HORIZON_MAX]);
        let mut expected = [0.0; HORIZON_MAX];
        let mut psi = [0.0; HORIZON_MAX];
        let ([mut level, mut slope], mut variance) = (self.state.last, 0.0);
        // Weights of the integrated process: sums of the stationary ones.
        let (mut psi_sum, mut psi_sum_of_sums) = (0.0, 0.0);
        for step in 0..len {
            let mut deviation_of_step = 0.0;
            for (lag, phi) in self.ar[..self.p].iter().enumerate() {
                let before = if lag < step { expected[step - 1 - lag] } else { self.state.recent[lag - step] };
                deviation_of_step += phi * before;
            }
            for (lag, theta) in self.ma[..self.q].iter().enumerate().skip(step) {
                deviation_of_step += theta * self.state.innovations[lag - step];
            }
            expected[step] = deviation_of_step;
            psi[step] = if step == 0 { 1.0 } else { self.ma[..self.q].get(step - 1).copied().unwrap_or(0.0) };
            for (lag, phi) in self.ar[..self.p].iter().enumerate().take(step) {
                psi[step] += phi * psi[step - 1 - lag];
            }
            psi_sum += psi[step];
            psi_sum_of_sums += psi_sum;
            let stationary = self.mean + deviation_of_step;
            let weight;
            (level, slope, weight) = match self.d {
                0 => (stationary, 0.0, psi[step]),
                1 => (level + stationary, 0.0, psi_sum),
                _ => (level + slope + stationary, slope + stationary, psi_sum_of_sums),
            };
            variance += weight * weight * self.sigma2;
            mean[step] = level;
            deviation[step] = variance.max(0.0).sqrt();
        }
        Path { len, mean, deviation }
    }
}

/// Whether all roots of `1 - sum c_i z^i` lie outside the unit circle, with a margin: the step-down recursion's reflection
/// coefficients stay below 0.995 (the mirror image of Levinson and Durbin's).
pub(crate) fn is_stable(coefficients: &[f64]) -> bool {
    const MARGIN: f64 = 0.995;
    let mut a = [0.0; AR_MAX];
    let n = coefficients.len();
    a[..n].copy_from_slice(coefficients);
    for order in (1..=n).rev() {
        let k = a[order - 1];
        if k.abs() >= MARGIN || k.is_nan() {
            return false;
        }
        let scale = 1.0 - k * k;
        for index in 0..(order - 1).div_ceil(2) {
            let mirror = order - 2 - index;
            let (low, high) = (a[index], a[mirror]);
            a[index] = (low + k * high) / scale;
            a[mirror] = (high + k * low) / scale;
        }
    }
    true
}
