//! Autocorrelation, partial autocorrelation and additive decomposition.

/// Correlation of a series with itself `lag` values earlier, for lags 0 to `lags_max`; 0 beyond the series and for a constant.
pub fn autocorrelation(series: &[f64], lags_max: usize) -> Vec<f64> {
    let n = series.len();
    let mean = series.iter().sum::<f64>() / n.max(1) as f64;
    let product = |lag: usize| -> f64 {
        series.get(lag..).into_iter().flatten().zip(series).map(|(x, y)| (x - mean) * (y - mean)).sum()
    };
    let variance = product(0);
    (0..=lags_max).map(|lag| if variance > 0.0 { product(lag) / variance } else { 0.0 }).collect()
}

/// What is left of the correlation at each lag once those of smaller lags are accounted for (Durbin 1960); entry 0 is 1.
pub fn partial_autocorrelation(series: &[f64], lags_max: usize) -> Vec<f64> {
    let rho = autocorrelation(series, lags_max);
    let mut partial = vec![1.0];
    let mut phi: Vec<f64> = Vec::new();
    let mut variance = 1.0;
    for lag in 1..=lags_max {
        let explained: f64 = phi.iter().zip(rho[1..lag].iter().rev()).map(|(phi, rho)| phi * rho).sum();
        let k = if variance > 0.0 { (rho[lag] - explained) / variance } else { 0.0 };
        let before = phi.clone();
        phi.iter_mut().zip(before.iter().rev()).for_each(|(phi, mirror)| *phi -= k * mirror);
        phi.push(k);
        variance *= 1.0 - k * k;
        partial.push(k);
    }
    partial
}

/// A series as the sum of three.
#[derive(Clone, Debug, PartialEq)]
pub struct Decomposition {
    /// Moving average over a period, centred; the half periods at the ends repeat their neighbour.
    pub trend: Vec<f64>,
    /// Mean deviation from the trend at each place of the period; sums to 0.
    pub season: Vec<f64>,
    /// What is left.
    pub residual: Vec<f64>,
}

/// Classical additive decomposition with a period of `period` values; `None` for less than two periods.
pub fn decompose(series: &[f64], period: usize) -> Option<Decomposition> {
    let n = series.len();
    if period < 2 || n < 2 * period {
        return None;
    }
    let half = period / 2;
    let mut trend: Vec<f64> = (half..n - half)
        .map(|middle| {
            let window = &series[middle - half..=middle + half];
            let sum: f64 = window.iter().sum();
            // Of an even period the two ends are the same place and count half each.
            let ends = if period.is_multiple_of(2) { (window[0] + window[2 * half]) / 2.0 } else { 0.0 };
            (sum - ends) / period as f64
        })
        .collect();
    let (first, last) = (trend[0], trend[trend.len() - 1]);
    trend.splice(0..0, std::iter::repeat_n(first, half));
    trend.resize(n, last);
    let mut sums = vec![(0.0, 0.0); period];
    for at in half..n - half {
        let (sum, count) = &mut sums[at % period];
        *sum += series[at] - trend[at];
        *count += 1.0;
    }
    let mut season: Vec<f64> = sums.iter().map(|(sum, count)| sum / f64::max(*count, 1.0)).collect();
    let mean = season.iter().sum::<f64>() / period as f64;
    season.iter_mut().for_each(|value| *value -= mean);
    let residual = (0..n).map(|at| series[at] - trend[at] - season[at % period]).collect();
    Some(Decomposition { trend, season, residual })
}
