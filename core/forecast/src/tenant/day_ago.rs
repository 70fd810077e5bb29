//! What a tenant transferred a day ago, in bins of five minutes.

use serde::{Deserialize, Serialize};

const DAY_SECONDS: f64 = 86_400.0;
const BIN_SECONDS: f64 = 300.0;
const BINS: usize = (DAY_SECONDS / BIN_SECONDS) as usize;

/// Means of the logarithm of the rate over the bins of the last day. 1.2 kB.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct DayAgo {
    #[serde(with = "crate::state::array")]
    means: [f32; BINS],
    /// The bin under way, with its sum and count.
    bin: usize,
    sum: f32,
    count: f32,
    /// Bins that were complete, ever.
    seen: usize,
}

impl Default for DayAgo {
    fn default() -> Self {
        Self { means: [0.0; BINS], bin: 0, sum: 0.0, count: 0.0, seen: 0 }
    }
}

impl DayAgo {
    /// Takes a rate's logarithm at a time of the day, in seconds.
    pub(super) fn observe(&mut self, seconds: f64, rate_log: f32) {
        let bin = bin_of(seconds);
        if bin != self.bin && self.count > 0.0 {
            self.means[self.bin] = self.sum / self.count;
            (self.seen, self.sum, self.count) = (self.seen.saturating_add(1), 0.0, 0.0);
        }
        self.bin = bin;
        self.sum += rate_log;
        self.count += 1.0;
    }

    /// What it was at this time of the day before; `None` on the first day.
    pub(super) fn at(&self, seconds: f64) -> Option<f32> {
        (self.seen >= BINS).then(|| self.means[bin_of(seconds)])
    }
}

/// Any number of seconds is in some bin.
fn bin_of(seconds: f64) -> usize {
    (seconds / BIN_SECONDS) as usize % BINS
}

#[cfg(test)]
mod tests {
    use super::{BINS, DayAgo};

    #[test]
    fn a_day_ago_is_told_once_a_day_was_seen() {
        let mut day = DayAgo::default();
        for slice in 0..2 * BINS {
            let seconds = 300.0 * (slice % BINS) as f64;
            let expected = (slice > BINS).then(|| (slice - BINS) as f32);
            assert_eq!(day.at(seconds), expected, "slice {slice}");
            day.observe(seconds, slice as f32);
        }
    }
}
