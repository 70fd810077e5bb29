//! Whether a series wanders: the level-stationarity test of Kwiatkowski, Phillips, Schmidt and Shin (1992).

/// Critical value at 5 % (table 1 of the paper).
const CRITICAL_5_PERCENT: f64 = 0.463;
/// More differences than this only add noise (Hyndman and Khandakar 2008, section 3).
const DIFFERENCES_MAX: usize = 2;

/// Lags of the long-run variance for `n` values, as R's `tseries` and `forecast` take them.
pub fn lags(n: usize) -> usize {
    // At most a quarter of 2^53 values exist, so the conversion is exact enough; the truncation is the rule.
    (3.0 * (n as f64).sqrt() / 13.0) as usize
}

/// The test's statistic for stationarity around a level: above 0.463 the series has a unit root at 5 %.
///
/// `lags` is the truncation of the Bartlett window. A constant or empty series is stationary: 0.
pub fn level_statistic(series: &[f64], lags: usize) -> f64 {
    let n = series.len();
    if n == 0 {
        return 0.0;
    }
    let mean = series.iter().sum::<f64>() / n as f64;
    let (mut partial, mut sum_of_squares) = (0.0, 0.0);
    for value in series {
        partial += value - mean;
        sum_of_squares += partial * partial;
    }
    let covariance =
        |lag: usize| series[lag..].iter().zip(series).map(|(x, y)| (x - mean) * (y - mean)).sum::<f64>() / n as f64;
    let mut long_run = covariance(0);
    for lag in 1..=lags.min(n - 1) {
        long_run += 2.0 * (1.0 - lag as f64 / (lags as f64 + 1.0)) * covariance(lag);
    }
    let statistic = sum_of_squares / (n as f64 * n as f64 * long_run);
    if statistic.is_finite() { statistic } else { 0.0 }
}

/// How many times to difference `series` until it is stationary, at most twice; `series` is left differenced, its answer's
/// length is the count of values left.
pub(crate) fn difference_until_stationary(series: &mut [f64]) -> (usize, usize) {
    let mut n = series.len();
    for d in 0..DIFFERENCES_MAX {
        if n < 3 || level_statistic(&series[..n], lags(n)) <= CRITICAL_5_PERCENT {
            return (d, n);
        }
        difference(&mut series[..n]);
        n -= 1;
    }
    (DIFFERENCES_MAX, n)
}

/// Each value becomes its successor less itself; the last one is left over.
fn difference(series: &mut [f64]) {
    for index in 1..series.len() {
        series[index - 1] = series[index] - series[index - 1];
    }
}
