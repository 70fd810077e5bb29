//! When the next slice ends.

use minerva_model::Nanos;
use serde::{Deserialize, Serialize};

/// Instants at multiples of the slice from an anchor. A slice that ends late is followed by the next multiple, so a driver
/// that was held up does not catch up with a burst, and slices do not drift.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Slices {
    slice: Nanos,
    anchor: Nanos,
    next: Nanos,
}

impl Slices {
    /// The first reading is due at once: all later ones need it to compare with.
    pub(crate) fn starting(now: Nanos, slice: Nanos) -> Self {
        Self { slice: slice.max(Nanos(1)), anchor: now, next: now }
    }

    /// The operator may have changed the slice.
    pub(crate) fn reconfigured(self, now: Nanos, slice: Nanos) -> Self {
        match slice.max(Nanos(1)) {
            slice if slice == self.slice => self,
            slice => Self { slice, anchor: now, next: now + slice },
        }
    }

    /// A slice ended now. The next one is at least half a slice long, because a timer may have fired a little early.
    pub(crate) fn sampled(&mut self, now: Nanos) {
        let slice = u128::from(self.slice.0);
        let passed = u128::from(now.since(self.anchor).0) / slice + 1;
        let next = |count: u128| self.anchor + Nanos(u64::try_from(count * slice).unwrap_or(u64::MAX));
        let soonest = next(passed);
        self.next = if soonest.since(now).0 < self.slice.0 / 2 { next(passed + 1) } else { soonest };
    }

    pub(crate) fn next(&self) -> Nanos {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::Slices;
    use minerva_model::Nanos;

    #[test]
    fn slices_keep_their_grid_whenever_they_were_served() {
        let mut slices = Slices::starting(Nanos::from_millis(500), Nanos::SECOND);
        assert_eq!(slices.next(), Nanos::from_millis(500));
        // (served at, next), in milliseconds.
        let cases = [(500, 1_500), (1_502, 2_500), (2_499, 3_500), (7_100, 8_500), (8_400, 9_500)];
        for (served, next) in cases {
            slices.sampled(Nanos::from_millis(served));
            assert_eq!(slices.next(), Nanos::from_millis(next), "served at {served}");
        }
        let same = slices.reconfigured(Nanos::from_secs(9), Nanos::SECOND);
        assert_eq!(same.next(), Nanos::from_millis(9_500));
        let other = slices.reconfigured(Nanos::from_secs(9), Nanos::from_secs(10));
        assert_eq!(other.next(), Nanos::from_secs(19));
    }

    #[test]
    fn the_ends_of_time_are_no_trouble() {
        let mut slices = Slices::starting(Nanos::ZERO, Nanos::ZERO);
        slices.sampled(Nanos(u64::MAX));
        assert_eq!(slices.next(), Nanos(u64::MAX));
    }
}
