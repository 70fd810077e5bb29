//! How far the end of a queue moves away from plan to plan, while nothing is added and nothing taken away.
//!
//! A plan says when a queue will be done. If the next one says the same, all came as it was planned. If it says an hour later an hour
//! after, the queue got nowhere, whatever the reason: others that leave less, work that is slower or larger than it seemed. What slips on
//! and on is planned as if it were due sooner, by as much as it will have slipped by then (docs/adr/0074).

use crate::cost::Mean;
use serde::{Deserialize, Serialize};

const HALF_LIFE_SECONDS: f64 = 24.0 * 3600.0;
/// What slipped in less time than this is all that slips in it: one wrong estimate is none that goes on.
const SECONDS_MIN: f64 = 6.0 * 3600.0;
/// However far it slips, a quarter of the time that it has is planned with.
const RATE_MAX: f64 = 0.75;
/// In one step no end moves away faster: a queue that got nowhere is later by as long as that took, and what is more is an estimate.
pub(crate) const STEP_RATE_MAX: f64 = 1.0;
/// The same in recordings of earlier versions.
pub(crate) const STEP_RATE_MAX_BEFORE: f64 = 8.0;

/// How far the end of a queue moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Slip {
    /// In all; below 0 where it came nearer.
    pub(crate) seconds: f64,
    /// Seconds a second, later and sooner.
    later: Mean,
    sooner: Mean,
}

impl Slip {
    /// Its end moved by so much in so long, of which so much a second counts.
    pub(crate) fn moved(&mut self, seconds: f64, within_seconds: f64, step_rate_max: f64) {
        self.seconds += seconds;
        let rate = seconds / within_seconds;
        self.later.add(rate.clamp(0.0, step_rate_max), within_seconds, HALF_LIFE_SECONDS);
        self.sooner.add((-rate).clamp(0.0, step_rate_max), within_seconds, HALF_LIFE_SECONDS);
    }

    /// The part of its time by which a queue will be later than is planned.
    pub(crate) fn rate(&self) -> f64 {
        (self.later.over(SECONDS_MIN) - self.sooner.over(SECONDS_MIN)).clamp(0.0, RATE_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::{STEP_RATE_MAX, Slip};

    #[test]
    fn one_wrong_estimate_is_no_slip_that_goes_on_and_what_comes_nearer_makes_up_for_it() {
        let mut slip = Slip::default();
        let moved = |slip: &mut Slip, seconds, within| slip.moved(seconds, within, STEP_RATE_MAX);
        moved(&mut slip, 3600.0, 3600.0);
        assert!((slip.rate() - 1.0 / 6.0).abs() < 1e-9, "{}", slip.rate());
        (0..24).for_each(|_| moved(&mut slip, 1800.0, 3600.0));
        assert!((0.45..0.6).contains(&slip.rate()), "{}", slip.rate());
        (0..24).for_each(|_| moved(&mut slip, -1800.0, 3600.0));
        assert!(slip.rate() < 0.1 && (slip.seconds - 3600.0).abs() < 1e-6, "{} {}", slip.rate(), slip.seconds);
        (0..100).for_each(|_| moved(&mut slip, f64::NAN, 3600.0));
        assert!((0.0..=0.75).contains(&slip.rate()));
        moved(&mut slip, 1e18, 1.0);
        assert!(slip.rate() <= 0.75);
        // Found to be a hundred times as large ten minutes on.
        let mut slip = Slip::default();
        moved(&mut slip, 360_000.0, 600.0);
        assert!(slip.rate() < 0.03, "{}", slip.rate());
    }
}
