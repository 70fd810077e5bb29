//! Seasonal naive: as a day ago, as a week ago. What every other model has to beat.

use super::{BINS_PER_DAY, BINS_PER_WEEK, Seasonal};
use serde::{Deserialize, Serialize};

/// The last week, bin by bin. 4 kB.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeasonalNaive {
    period: usize,
    #[serde(with = "crate::state::array")]
    week: [f32; BINS_PER_WEEK],
    seen: usize,
}

impl SeasonalNaive {
    /// As a day ago.
    pub fn day() -> Self {
        Self { period: BINS_PER_DAY, week: [0.0; BINS_PER_WEEK], seen: 0 }
    }

    /// As a week ago.
    pub fn week() -> Self {
        Self { period: BINS_PER_WEEK, ..Self::day() }
    }
}

impl Seasonal for SeasonalNaive {
    fn observe(&mut self, bin: usize, value: f64) {
        if value.is_finite() {
            self.week[bin % self.period] = value as f32;
        }
        self.seen = (self.seen + 1).min(self.period);
    }

    fn forecast(&self, bin: usize, ahead: &mut [f64]) -> bool {
        for (step, value) in ahead.iter_mut().enumerate() {
            *value = f64::from(self.week[(bin + step) % self.period]).max(0.0);
        }
        self.seen == self.period
    }
}
