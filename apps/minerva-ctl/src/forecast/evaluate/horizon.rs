//! Which steps the backtests of steps forecast, and what came then.

/// Steps ahead.
pub(super) const AHEAD: usize = 15;
/// Values before the first forecast, of which a fit is made, and from fit to fit.
pub(super) const FIRST: usize = 60;

/// The sum of the next so many from a step on; no number if one of them is none.
pub(super) fn sum_from(values: &[f64], step: usize, ahead: usize) -> f64 {
    values.get(step..step + ahead).map_or(f64::NAN, |ahead| ahead.iter().sum())
}
