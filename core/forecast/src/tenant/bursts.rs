//! Bursts of a tenant that alternates between the disk and other work (Malensek et al. 2016, section 4.2), by what each transfers.
//!
//! When a burst ends depends on who else uses the disk, so that seconds do not repeat where bytes do. What the next one transfers is
//! told as the median of the last ones, and scored; bursts that have nothing in common, as those of noise, earn nothing.

use crate::number::quantity;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Bursts that are remembered, and those before which nothing is told.
const REMEMBERED: usize = 8;
const SEEN_MIN: u32 = 4;
/// A slice with less is one without I/O, in bytes a second.
const BUSY: f64 = super::BUSY_BYTES_PER_SECOND as f64;
/// Weight of the newest error.
const WEIGHT: f64 = 1.0 / 32.0;
/// An error of this part of a burst leaves nothing certain. Of bursts of random length the mean error is about a half.
const ERROR_MAX: f64 = 0.35;
/// A burst that is this many times what was expected is none: the tenant has changed.
const OUTGROWN: f64 = 2.0;

/// See the file's documentation. 0.2 kB.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bursts {
    recent: VecDeque<f64>,
    /// What the one under way has transferred; 0 between two.
    under_way: f64,
    /// Running mean of the errors, as parts of the greater of forecast and burst.
    error: f64,
    scored: u32,
}

impl Bursts {
    /// Takes a slice: what was transferred in it, and how long it was.
    pub fn observe(&mut self, bytes: f64, seconds: f64) {
        if !bytes.is_finite() {
            // A counter that is damaged says nothing of how long the burst was.
            self.under_way = 0.0;
            return;
        }
        let bytes = quantity(bytes);
        if bytes >= BUSY * quantity(seconds) && bytes > 0.0 {
            self.under_way = quantity(self.under_way + bytes);
            return;
        }
        let came = std::mem::take(&mut self.under_way);
        if came == 0.0 {
            return;
        }
        if let Some(expected) = self.expected() {
            let error = (came - expected).abs() / came.max(expected);
            self.scored = self.scored.saturating_add(1);
            self.error += (error - self.error) * WEIGHT.max(1.0 / f64::from(self.scored));
        }
        if self.recent.len() == REMEMBERED {
            self.recent.pop_front();
        }
        self.recent.push_back(came);
    }

    /// What a burst transfers.
    fn expected(&self) -> Option<f64> {
        let count = self.recent.len().min(REMEMBERED);
        // On the stack: this is asked of each tenant in each slice.
        let mut sorted = [0.0; REMEMBERED];
        sorted.iter_mut().zip(&self.recent).for_each(|(slot, bytes)| *slot = *bytes);
        sorted[..count].sort_unstable_by(f64::total_cmp);
        (count > 0).then(|| sorted[count / 2])
    }

    /// What the burst under way, or the next, transfers in all, and how certain that is, 0 to 1.
    pub fn outlook(&self) -> (f64, f64) {
        let Some(expected) = self.expected().filter(|_| self.scored >= SEEN_MIN) else { return (0.0, 0.0) };
        if self.under_way > OUTGROWN * expected {
            return (expected, 0.0);
        }
        (expected, (1.0 - self.error / ERROR_MAX).clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::Bursts;

    const MB: f64 = 1e6;

    /// What is told after slices in which so much was transferred.
    fn after(slices: impl Iterator<Item = f64>) -> (f64, f64) {
        let mut bursts = Bursts::default();
        slices.for_each(|bytes| bursts.observe(bytes, 1.0));
        bursts.outlook()
    }

    fn noise(seed: &mut u64) -> f64 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 33) as f64 / (1_u64 << 31) as f64
    }

    /// Bursts of about 400 MB that differ by up to `jitter`, each served at a rate that others leave it.
    fn bursts(count: u32, jitter: f64, seed: u64) -> Vec<f64> {
        let mut seed = seed;
        let mut slices = Vec::new();
        for _ in 0..count {
            let mut left = 400.0 * MB * (1.0 + jitter * (2.0 * noise(&mut seed) - 1.0));
            let rate = (30.0 + 70.0 * noise(&mut seed)) * MB;
            while left > 0.0 {
                slices.push(left.min(rate));
                left -= rate;
            }
            slices.extend([0.0; 3]);
        }
        slices
    }

    #[test]
    fn bursts_alike_are_certain_whatever_rate_they_get() {
        let (bytes, certainty) = after(bursts(20, 0.1, 1).into_iter());
        assert!((350.0 * MB..450.0 * MB).contains(&bytes) && certainty > 0.8, "{bytes} {certainty}");
        assert_eq!(after(bursts(4, 0.1, 1).into_iter()).1, 0.0, "too few");
    }

    #[test]
    fn noise_and_who_never_pauses_are_not_certain() {
        for first in 0..50_u64 {
            let mut seed = first.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let mut slices = (0..600).map(|_| if noise(&mut seed) < 0.5 { 0.0 } else { 50.0 * MB * noise(&mut seed) });
            let (_, certainty) = after(&mut slices);
            assert!(certainty < 0.1, "{first}: {certainty}");
        }
        assert_eq!(after((0..600).map(|_| 50.0 * MB)).1, 0.0);
    }

    #[test]
    fn one_that_goes_on_and_on_is_certain_no_more() {
        let mut slices = bursts(20, 0.0, 1);
        slices.extend([50.0 * MB; 20]);
        assert_eq!(after(slices.into_iter()).1, 0.0);
        assert_eq!(after([f64::NAN, -1.0, f64::INFINITY, 0.0].into_iter().cycle().take(100)).1, 0.0);
    }
}
