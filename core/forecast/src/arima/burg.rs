//! Autoregression by Burg's method (1975): the candidate that sees cycles of some tens of seconds, which a short ARIMA misses.

use super::model::{AR_MAX, Arima};
use super::{Criterion, Workspace};

/// Fits autoregressions of all orders up to 40 (and a quarter of the length) in one pass; the best by AICc.
///
/// `None` if the series is too short, constant or not finite. Cost: order times length.
pub fn fit(series: &[f64], workspace: &mut Workspace) -> Option<Arima> {
    let n = series.len();
    let order_max = AR_MAX.min(n / 4);
    if order_max == 0 {
        return None;
    }
    let mean = series.iter().sum::<f64>() / n as f64;
    let Workspace { forward, backward, .. } = workspace;
    forward.clear();
    forward.extend(series.iter().map(|value| value - mean));
    backward.clone_from(forward);
    let mut sigma2 = forward.iter().map(|x| x * x).sum::<f64>() / n as f64;
    if !(sigma2 > f64::EPSILON * mean * mean && sigma2.is_finite()) {
        return None;
    }
    let mut ar = [0.0; AR_MAX];
    let mut best = Arima::new(0, 0, 0);
    let keep = |best: &mut Arima, ar: &[f64; AR_MAX], order: usize, sigma2: f64| {
        let aicc = Criterion { values: n, parameters: order + 2 }.aicc(sigma2);
        if aicc < best.aicc {
            (best.p, best.ar, best.sigma2, best.aicc) = (order, *ar, sigma2, aicc);
        }
    };
    keep(&mut best, &ar, 0, sigma2);
    for order in 1..=order_max {
        let Some(k) = reflection(&forward[order..], &backward[order - 1..n - 1]) else { break };
        let before = ar;
        for (index, coefficient) in ar[..order - 1].iter_mut().enumerate() {
            *coefficient -= k * before[order - 2 - index];
        }
        ar[order - 1] = k;
        sigma2 *= 1.0 - k * k;
        for index in (order..n).rev() {
            let (f, b) = (forward[index], backward[index - 1]);
            forward[index] = f - k * b;
            backward[index] = b - k * f;
        }
        if sigma2 <= 0.0 || sigma2.is_nan() {
            break;
        }
        keep(&mut best, &ar, order, sigma2);
    }
    (best.mean, best.constant) = (mean, true);
    best.restart(series);
    best.aicc.is_finite().then_some(best)
}

/// The coefficient of the next order, from the errors of the predictions forward and, one step older, backward. `None` if there are
/// no errors left.
fn reflection(forward: &[f64], backward: &[f64]) -> Option<f64> {
    let (mut cross, mut energy) = (0.0, 0.0);
    for (f, b) in forward.iter().zip(backward) {
        cross += f * b;
        energy += f * f + b * b;
    }
    (energy > 0.0).then_some(2.0 * cross / energy)
}
