//! Ratios of pairs with intervals, and drawn numbers.

use std::fmt;

/// A ratio with the interval in which it lies with 95 %.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interval {
    pub(crate) low: f64,
    pub(crate) middle: f64,
    pub(crate) high: f64,
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} to {:.2}", self.low, self.high)
    }
}

/// A number that `seed` and `count` give (Steele and others, SplitMix64, 2014).
pub(crate) fn drawn(seed: u64, count: u64) -> u64 {
    let mut z = seed.wrapping_add((count + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The geometric mean of the pairs' ratios, with the interval that the bootstrap gives (Efron 1979).
pub(crate) fn pooled_ratio<T>(ones: &[T], others: &[T], value: impl Fn(&T) -> f64, seed: u64) -> Interval {
    const RESAMPLES: u64 = 2000;
    let ratios: Vec<f64> = ones.iter().zip(others).map(|(one, other)| (value(one) / value(other)).ln()).collect();
    let count = ratios.len() as u64;
    let mean = |ratios: &mut dyn Iterator<Item = f64>| ratios.sum::<f64>() / count as f64;
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|sample| mean(&mut (0..count).map(|at| ratios[(drawn(seed, sample * count + at) % count) as usize])))
        .collect();
    means.sort_by(f64::total_cmp);
    let at = |part: f64| means[((RESAMPLES - 1) as f64 * part) as usize].exp();
    Interval { low: at(0.025), middle: mean(&mut ratios.iter().copied()).exp(), high: at(0.975) }
}
