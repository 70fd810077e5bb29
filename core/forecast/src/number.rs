//! Numbers as they may come from anywhere.

/// Nothing that a disk does is larger, and sums of squares of it are still finite.
const LARGEST: f64 = 1e18;

/// A value for running means: `None` if it is no number, and cut off where squares would overflow.
pub(crate) fn bounded(value: f64) -> Option<f64> {
    (!value.is_nan()).then(|| value.clamp(-LARGEST, LARGEST))
}

/// A quantity: what is below 0 or no number is 0.
pub(crate) fn quantity(value: f64) -> f64 {
    bounded(value).map_or(0.0, |value| value.max(0.0))
}
