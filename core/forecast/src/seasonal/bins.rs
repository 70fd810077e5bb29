//! Slices summed into bins of ten minutes on the wall clock.

use super::{BIN_SECONDS, BINS_PER_DAY, BINS_PER_WEEK};
use serde::{Deserialize, Serialize};

/// Seconds from the epoch (a Thursday) to the first Monday.
const FIRST_MONDAY_SECONDS: u64 = 4 * 86_400;

/// What happened in a time, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// Read.
    pub read_bytes: f64,
    /// Written.
    pub write_bytes: f64,
    /// Discarded.
    pub discard_bytes: f64,
}

impl Totals {
    /// The part of reads in what was transferred, 0 to 1; a half where nothing was.
    pub fn read_share(&self) -> f64 {
        let both = self.read_bytes + self.write_bytes;
        if both > 0.0 { self.read_bytes / both } else { 0.5 }
    }
}

/// A finished bin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bin {
    /// Its number in its week, Monday midnight (UTC shifted by what the caller adds) being 0.
    pub number: usize,
    /// Bytes a second over the seconds that were seen; `None` if fewer than half of them were.
    pub rates: Option<Totals>,
}

/// Sums of the bin under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bins {
    /// Bins since the first Monday of 1970.
    current: Option<u64>,
    sum: Totals,
    seconds: f64,
}

impl Bins {
    /// Adds what happened in the `seconds` before `wall_seconds` (since 1970, in the operator's time zone). `each` is called with
    /// every bin that is over, in order: bins without a slice have no rates. Of a gap whole weeks are passed over, so that bins stay in
    /// their place of the week.
    ///
    /// A clock that went backward adds to the bin under way; by more than a day, it was wrong before, and the bins go on from where it
    /// is now. Values that are negative or not finite count as nothing.
    pub fn add(&mut self, wall_seconds: u64, seconds: f64, totals: Totals, mut each: impl FnMut(Bin)) {
        let number = number(wall_seconds);
        let current = *self.current.get_or_insert(number);
        if number > current || number + (BINS_PER_DAY as u64) < current {
            let complete = self.seconds * 2.0 >= BIN_SECONDS as f64;
            let rate = |sum: f64| sum / self.seconds;
            let rates = complete.then(|| Totals {
                read_bytes: rate(self.sum.read_bytes),
                write_bytes: rate(self.sum.write_bytes),
                discard_bytes: rate(self.sum.discard_bytes),
            });
            each(Bin { number: in_week(current), rates });
            let empty = in_week(number + BINS_PER_WEEK as u64 - 1 - current % BINS_PER_WEEK as u64);
            (1..=empty as u64).for_each(|after| each(Bin { number: in_week(current + after), rates: None }));
            *self = Self { current: Some(number), ..Self::default() };
        }
        let sane = |value: f64| if value.is_finite() && value > 0.0 { value } else { 0.0 };
        self.sum.read_bytes += sane(totals.read_bytes);
        self.sum.write_bytes += sane(totals.write_bytes);
        self.sum.discard_bytes += sane(totals.discard_bytes);
        self.seconds += sane(seconds);
    }

    /// Of what happened in the `seconds` before `wall_seconds` the part that lies in the bin which ends with or after them, as if it had
    /// come evenly: a slice that was held up for hours is no slice of a single bin.
    pub fn within(wall_seconds: u64, seconds: f64, totals: Totals) -> (f64, Totals) {
        let passed = wall_seconds.saturating_sub(FIRST_MONDAY_SECONDS + number(wall_seconds) * BIN_SECONDS) as f64;
        if !seconds.is_finite() || seconds <= passed {
            return (seconds, totals);
        }
        let part = |bytes: f64| bytes * passed / seconds;
        let totals = Totals {
            read_bytes: part(totals.read_bytes),
            write_bytes: part(totals.write_bytes),
            discard_bytes: part(totals.discard_bytes),
        };
        (passed, totals)
    }

    /// Bins that go on after those that were counted elsewhere, of which `next` is the one after the last: bins are counted from the
    /// first Monday of 1970.
    pub(crate) fn after(next: u64) -> Self {
        // Nothing is known of the bin before, so it ends without a value being made of it.
        Self { current: Some(next), ..Self::default() }
    }

    /// The number of the bin that ends with or after an instant, counted from the first Monday of 1970.
    pub(crate) fn number(wall_seconds: u64) -> u64 {
        number(wall_seconds)
    }

    /// The number of the bin under way, counted from the first Monday of 1970.
    pub(crate) fn current(&self) -> Option<u64> {
        self.current
    }

    /// Seconds until the bin under way ends.
    pub(crate) fn seconds_left(&self, wall_seconds: u64) -> u64 {
        let ends =
            self.current.map(|current| FIRST_MONDAY_SECONDS.saturating_add((current + 1).saturating_mul(BIN_SECONDS)));
        ends.unwrap_or(wall_seconds).saturating_sub(wall_seconds).min(BIN_SECONDS)
    }
}

/// The bin that ends with or after an instant.
fn number(wall_seconds: u64) -> u64 {
    // The instant itself is the last of its bin.
    wall_seconds.saturating_sub(FIRST_MONDAY_SECONDS + 1) / BIN_SECONDS
}

fn in_week(bin: u64) -> usize {
    (bin % BINS_PER_WEEK as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_slice_that_was_held_up_for_hours_a_bin_has_what_lies_in_it() {
        let monday = FIRST_MONDAY_SECONDS;
        let mut rates = Vec::new();
        let mut bins = Bins::default();
        let mut add = |wall, seconds, rate: f64| {
            let totals = Totals { read_bytes: rate * seconds, ..Totals::default() };
            let (seconds, totals) = Bins::within(wall, seconds, totals);
            bins.add(wall, seconds, totals, |bin| rates.push((bin.number, bin.rates.map(|rates| rates.read_bytes))));
        };
        // Eight hours of nothing end with the first second of a bin; the host then reads for five minutes.
        add(monday + 28_801, 28_800.0, 0.0);
        add(monday + 29_101, 300.0, 1e7);
        // Of another eight hours at that rate the last minute lies in its bin, and nobody saw the rest of it.
        add(monday + 57_660, 28_560.0, 1e7);
        add(monday + 58_201, 1.0, 1e7);
        let seen: Vec<(usize, f64)> = rates.iter().filter_map(|(bin, rate)| Some((*bin, (*rate)?))).collect();
        let [(48, rate)] = seen[..] else { panic!("{rates:?}") };
        assert!((0.99e7..=1e7).contains(&rate), "{rate}");
        assert_eq!(
            Bins::within(monday + 57_660, 120.0, Totals { read_bytes: 1e3, ..Totals::default() }).1.read_bytes,
            5e2
        );
        assert_eq!(Bins::within(7, 600.0, Totals::default()).0, 0.0, "before there were bins");
    }

    #[test]
    fn slices_become_rates_and_gaps_become_bins_without() {
        let mut bins = Bins::default();
        let mut done = Vec::new();
        let monday = FIRST_MONDAY_SECONDS;
        let slice = Totals { read_bytes: 300.0, write_bytes: 100.0, discard_bytes: f64::NAN };
        for second in 1..=600 {
            bins.add(monday + second, 1.0, slice, |bin| done.push(bin));
        }
        assert!(done.is_empty(), "the bin ends with its last second");
        bins.add(monday + 1801, 1.0, slice, |bin| done.push(bin));
        let rates = done[0].rates.expect("a full bin");
        assert_eq!(
            (rates.read_bytes, rates.write_bytes, rates.discard_bytes, rates.read_share()),
            (300.0, 100.0, 0.0, 0.75)
        );
        assert_eq!(
            done.iter().map(|bin| (bin.number, bin.rates.is_some())).collect::<Vec<_>>(),
            [(0, true), (1, false), (2, false)]
        );
        done.clear();
        bins.add(monday, 1.0, slice, |bin| done.push(bin));
        assert!(done.is_empty(), "backward");
        // From the fourth bin of a week to the seventh of another, and back by years.
        for wall in [monday + 40 * 7 * 86_400 + 6 * 600 + 1, monday + 9 * 600 + 1] {
            done.clear();
            bins.add(wall, 1.0, slice, |bin| done.push(bin));
            assert_eq!(done.len(), 3, "whole weeks are passed over: {done:?}");
        }
    }
}
