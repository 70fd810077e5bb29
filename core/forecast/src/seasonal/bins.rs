//! Slices summed into bins of ten minutes on the wall clock.

use super::{BIN_SECONDS, BINS_PER_WEEK};

/// Seconds from the epoch (a Thursday) to the first Monday.
const FIRST_MONDAY_SECONDS: u64 = 4 * 86_400;
/// A gap of more bins than this is not filled: after a week the models start from what they know.
const GAP_MAX: u64 = BINS_PER_WEEK as u64;

/// What happened in a time, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bins {
    /// Bins since the first Monday of 1970.
    current: Option<u64>,
    sum: Totals,
    seconds: f64,
}

impl Bins {
    /// Adds what happened in the `seconds` before `wall_seconds` (since 1970, in the operator's time zone). `each` is called with
    /// every bin that is over, in order: bins without a slice have no rates; a gap of more than a week is passed over.
    ///
    /// A clock that went backward adds to the bin under way. Values that are negative or not finite count as nothing.
    pub fn add(&mut self, wall_seconds: u64, seconds: f64, totals: Totals, mut each: impl FnMut(Bin)) {
        // The instant itself belongs to the next bin.
        let number = wall_seconds.saturating_sub(FIRST_MONDAY_SECONDS + 1) / BIN_SECONDS;
        let current = *self.current.get_or_insert(number);
        if number > current {
            let complete = self.seconds * 2.0 >= BIN_SECONDS as f64;
            let rate = |sum: f64| sum / self.seconds;
            let rates = complete.then(|| Totals {
                read_bytes: rate(self.sum.read_bytes),
                write_bytes: rate(self.sum.write_bytes),
                discard_bytes: rate(self.sum.discard_bytes),
            });
            each(Bin { number: in_week(current), rates });
            if number - current <= GAP_MAX {
                (current + 1..number).for_each(|empty| each(Bin { number: in_week(empty), rates: None }));
            }
            *self = Self { current: Some(number), ..Self::default() };
        }
        let sane = |value: f64| if value.is_finite() && value > 0.0 { value } else { 0.0 };
        self.sum.read_bytes += sane(totals.read_bytes);
        self.sum.write_bytes += sane(totals.write_bytes);
        self.sum.discard_bytes += sane(totals.discard_bytes);
        self.seconds += sane(seconds);
    }
}

fn in_week(bin: u64) -> usize {
    (bin % BINS_PER_WEEK as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

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
        bins.add(monday + 40 * 7 * 86_400, 1.0, slice, |bin| done.push(bin));
        assert_eq!(done.len(), 1, "backward and a jump of weeks");
    }
}
