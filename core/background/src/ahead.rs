//! How far a plan looks, and what is expected of a disk meanwhile.
//!
//! A disk is planned as a machine of [`PARTS`] cores, each a thousandth of its time: what the foreground takes of it are busy cores,
//! and work that runs alone for a second pays a thousand core-seconds.

use crate::cost::Mean;
use crate::ledger::Expected;
use crate::nouns::Machine;
use minerva_model::{Expectation, Nanos};
use serde::{Deserialize, Serialize};

/// Parts of a disk's time.
pub(crate) const PARTS: u32 = 1_000;
/// Blocks are this large.
pub(crate) const BLOCK_BYTES: f64 = 4096.0;
/// What the foreground does by day and night belongs together.
const FOREGROUND_HALF_LIFE_SECONDS: f64 = 12.0 * 3600.0;
const GAPS_HALF_LIFE_SECONDS: f64 = 3600.0;
const SPACE_HALF_LIFE_SECONDS: f64 = 24.0 * 3600.0;
/// What grew in less time than this is all that grows in it: minutes say nothing of days.
const GROWTH_SECONDS_MIN: f64 = 6.0 * 3600.0;
/// What grows by more than so many times what is written does not follow what is written.
const KEPT_MAX: f64 = 2.0;
/// Before anything was measured, the part of the time that others leave which work gets.
const USABLE_ASSUMED: f64 = 0.8;
/// However little came of the gaps before, some part of them is planned with.
const USABLE_MIN: f64 = 0.05;
/// Where nobody knows how large a file system is, it is not short of space.
const CAPACITY_UNKNOWN: f64 = 1e15;

/// How far a plan looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// An hour, by minutes.
    Hour,
    /// A day, in bins of ten minutes.
    Day,
    /// A week, by hours.
    Week,
    /// 30 days, by hours.
    Month,
}

impl Span {
    /// Number of slots and their length in seconds.
    pub const fn slots(self) -> (u16, f64) {
        match self {
            Self::Hour => (60, 60.0),
            Self::Day => (144, 600.0),
            Self::Week => (168, 3600.0),
            Self::Month => (720, 3600.0),
        }
    }
}

/// Bytes a second that are expected of a disk so many seconds from now; `None` where nothing is forecast.
pub type Forecast<'a> = &'a dyn Fn(f64) -> Option<f64>;

/// Bytes that are expected to be written to a disk within so many seconds from now, with an interval.
pub type Written<'a> = &'a dyn Fn(f64) -> Expectation;

/// What is forecast of a disk: all that is transferred, and what is written, where anybody knows how good the forecasts of that are.
pub type Foreseen<'a> = (Forecast<'a>, Option<Written<'a>>);

/// What is taken of an expectation's interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Lower,
    Likely,
    Upper,
}

impl End {
    /// What is expected lies in the interval, whatever the forecast says; and what is no number is as if there were no interval.
    fn of(self, expected: Expectation) -> f64 {
        f64::from(match self {
            Self::Lower => expected.value.min(expected.lower),
            Self::Likely => expected.value,
            Self::Upper => expected.value.max(expected.upper),
        })
    }
}

/// What a disk's foreground did in a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Foreground {
    /// The part of the disk's time that it took.
    pub busy: f64,
    /// Bytes a second.
    pub bytes_per_second: f64,
    /// Those of them that are written.
    pub written_bytes_per_second: f64,
    /// Requests a second.
    pub requests_per_second: f64,
}

/// What is known of a disk's foreground and space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Disk {
    /// The part of its time that the foreground takes.
    busy: Mean,
    /// Bytes a second of the foreground.
    bytes: Mean,
    /// Requests a second of the foreground in slices in which it was active and no work ran.
    pub(crate) alone: Mean,
    /// The part of the time that the foreground left in which work that may use the gaps did run.
    usable: Mean,
    /// Bytes in use and in all; nothing in all: unknown.
    space: (f64, f64),
    /// Bytes a second by which what is in use grows.
    growth: Mean,
    /// Bytes a second that the foreground writes.
    #[serde(default)]
    written: Mean,
    space_at: Option<Nanos>,
}

impl Disk {
    pub(crate) fn foreground(&mut self, foreground: &Foreground, seconds: f64) {
        self.busy.add(foreground.busy.min(1.0), seconds, FOREGROUND_HALF_LIFE_SECONDS);
        self.bytes.add(foreground.bytes_per_second, seconds, FOREGROUND_HALF_LIFE_SECONDS);
        self.written.add(foreground.written_bytes_per_second, seconds, SPACE_HALF_LIFE_SECONDS);
    }

    /// Of a second of which the foreground left a part, work that may run in gaps ran for another.
    pub(crate) fn gaps(&mut self, left: f64, ran: f64, seconds: f64) {
        if left > 0.0 {
            self.usable.add((ran / left).min(1.0), left * seconds, GAPS_HALF_LIFE_SECONDS);
        }
    }

    /// Bytes in use, and bytes in all.
    pub(crate) fn space(&mut self, now: Nanos, used_bytes: u64, size_bytes: u64, freed_bytes: f64) {
        if size_bytes == 0 {
            return;
        }
        let seconds = self.space_at.map_or(0.0, |at| now.since(at).as_secs_f64());
        if seconds > 0.0 && self.space.1 > 0.0 {
            let grown = (used_bytes as f64 + freed_bytes - self.space.0).max(0.0);
            self.growth.add(grown / seconds, seconds, SPACE_HALF_LIFE_SECONDS);
        }
        self.space_at = Some(now);
        self.space = (used_bytes as f64, size_bytes as f64);
    }

    /// The part of what the foreground leaves that work can use.
    pub(crate) fn usable(&self) -> f64 {
        self.usable.get().unwrap_or(USABLE_ASSUMED).clamp(USABLE_MIN, 1.0)
    }

    pub(crate) const fn machine() -> Machine {
        Machine { cores: PARTS, foreground_ops_per_core_second: 1.0 }
    }

    /// Blocks in use beside those that debt ties.
    pub(crate) fn used_blocks(&self, tied_blocks: f64) -> f64 {
        (self.space.0 / BLOCK_BYTES - tied_blocks).max(0.0)
    }

    /// The part of what is written by which what is in use grows; nothing unless writes account for what grows.
    pub(crate) fn kept_of_written(&self) -> Option<f64> {
        let written = self.written.get().filter(|written| *written > 0.0)?;
        Some(self.growth.over(GROWTH_SECONDS_MIN) / written).filter(|kept| *kept <= KEPT_MAX)
    }

    /// Bytes a second by which what is in use grows in a slot, from the first on: as what is foreseen to be written, else as it did.
    fn growing<'a>(&self, seconds: f64, written: Option<Written<'a>>, end: End) -> impl FnMut(u16) -> f64 + use<'a> {
        let foreseen = written.zip(self.kept_of_written());
        let (as_before, mut until_now) = (self.growth.over(GROWTH_SECONDS_MIN), 0.0);
        move |slot| {
            let Some((written, kept)) = foreseen else { return as_before };
            let until_then = end.of(written((f64::from(slot) + 1.0) * seconds));
            // The lower end of sums whose interval widens may fall; what was written stays written.
            let until_then = if until_then.is_finite() { until_then.max(until_now) } else { until_now };
            kept * (until_then - std::mem::replace(&mut until_now, until_then)) / seconds
        }
    }

    /// What is expected in each slot; of what is written `end` of the interval.
    pub(crate) fn expected(&self, span: Span, (forecast, written): Foreseen<'_>, end: End) -> Vec<Expected> {
        let (count, seconds) = span.slots();
        let mut growing = self.growing(seconds, written, end);
        let (busy, bytes) = (self.busy.get().unwrap_or(0.0), self.bytes.get().unwrap_or(0.0));
        let capacity = if self.space.1 > 0.0 { self.space.1 } else { CAPACITY_UNKNOWN };
        let slot = |number: u16| {
            // How long the disk takes for a byte is what it took so far.
            let foreseen = forecast((f64::from(number) + 0.5) * seconds).filter(|_| bytes > 0.0);
            let busy = foreseen.map_or(busy, |expected| (busy * expected / bytes).min(1.0));
            Expected {
                seconds,
                foreground_ops_per_second: f64::from(PARTS) * (1.0 - self.usable() * (1.0 - busy)),
                written_blocks_per_second: growing(number) / BLOCK_BYTES,
                unique_share: 1.0,
                capacity_blocks: capacity / BLOCK_BYTES,
            }
        };
        (0..count).map(slot).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Disk, End, Foreground, PARTS, Span};
    use minerva_model::{Expectation, Nanos};

    fn free(disk: &Disk, forecast: super::Forecast<'_>) -> Vec<f64> {
        let slots = disk.expected(Span::Hour, (forecast, None), End::Likely);
        slots.iter().map(|slot| (f64::from(PARTS) - slot.foreground_ops_per_second).round()).collect()
    }

    #[test]
    fn what_is_free_follows_the_forecast_where_there_is_one_and_the_mean_where_not() {
        let mut disk = Disk::default();
        assert_eq!(free(&disk, &|_| None), [800.0; 60], "nothing is known: four fifths of the time can be used");
        let foreground = Foreground { busy: 0.5, bytes_per_second: 1e6, ..Foreground::default() };
        disk.foreground(&foreground, 60.0);
        assert_eq!(free(&disk, &|_| None), [400.0; 60]);
        let forecast = |seconds: f64| Some(if seconds < 1800.0 { 2e6 } else { 0.0 });
        let slots = free(&disk, &forecast);
        assert_eq!((slots[0], slots[29], slots[30], slots[59]), (0.0, 0.0, 800.0, 800.0));
        (0..40_000).for_each(|_| disk.gaps(0.5, 0.1, 1.0));
        assert_eq!(free(&disk, &|_| None), [100.0; 60], "little came of the gaps");
    }

    #[test]
    fn growth_is_what_is_added_and_not_what_is_freed() {
        let mut disk = Disk::default();
        disk.space(Nanos::from_secs(0), 1 << 30, 4 << 30, 0.0);
        let first = |disk: &Disk| disk.expected(Span::Day, (&|_| None, None), End::Likely)[0];
        let written = |disk: &Disk| first(disk).written_blocks_per_second * 4096.0;
        disk.space(Nanos::from_secs(100), (1 << 30) - (1 << 20), 4 << 30, f64::from(2 << 20));
        assert!((written(&disk) - f64::from(1 << 20) / 21_600.0).abs() < 1.0, "a hundred seconds say nothing of a day");
        disk.space(Nanos::from_secs(86_500), 1 << 30, 4 << 30, 0.0);
        // Half of the first is forgotten after a day.
        assert!((written(&disk) - 1.5 * f64::from(1 << 20) / 86_450.0).abs() < 0.1, "{}", written(&disk));
        let slot = first(&disk);
        assert_eq!((slot.capacity_blocks, slot.unique_share), (f64::from(1 << 20), 1.0));
    }

    #[test]
    fn what_grows_follows_what_is_foreseen_to_be_written_where_writes_account_for_it() {
        let mut disk = Disk::default();
        disk.space(Nanos::from_secs(0), 1 << 30, 4 << 30, 0.0);
        disk.space(Nanos::from_secs(86_400), (1 << 30) + 864_000_000, 4 << 30, 0.0);
        // 10,000 bytes a second grow of 20,000 that are written. From now on a thousand are written in the first hour of each day.
        let ahead = |seconds: f64| {
            let value = 3.6e6 * (seconds / 86_400.0).ceil() as f32;
            Expectation { value, lower: value * 0.5, upper: value * 3.0 }
        };
        let grown = |disk: &Disk, end| -> Vec<f64> {
            let slots = disk.expected(Span::Week, (&|_| None, Some(&ahead)), end);
            slots.iter().map(|slot| slot.written_blocks_per_second * 4096.0 * slot.seconds).collect()
        };
        let sum = |disk: &Disk, end| grown(disk, end).iter().sum::<f64>();
        assert_eq!(grown(&disk, End::Likely), [36e6; 168], "nobody knows what is written: as before");
        let foreground = |written| Foreground { written_bytes_per_second: written, ..Foreground::default() };
        disk.foreground(&foreground(20_000.0), 86_400.0);
        let each: Vec<usize> = (0..168).filter(|slot| grown(&disk, End::Likely)[*slot] > 0.0).collect();
        assert_eq!(each, [0, 24, 48, 72, 96, 120, 144], "half of what is foreseen, when it is");
        let near = |end, expected: f64| assert!((sum(&disk, end) / expected - 1.0).abs() < 1e-6, "{end:?}");
        near(End::Lower, 0.25 * 7.0 * 3.6e6);
        near(End::Likely, 0.5 * 7.0 * 3.6e6);
        near(End::Upper, 1.5 * 7.0 * 3.6e6);
        // Files that were given space before anything was written to them.
        let mut given = Disk { written: super::Mean::default(), ..disk };
        given.foreground(&foreground(100.0), 86_400.0);
        assert_eq!(grown(&given, End::Upper), [36e6; 168]);
    }

    #[test]
    fn an_interval_holds_what_is_expected_and_what_is_no_number_is_none() {
        let odd = Expectation { value: 2.0, lower: 3.0, upper: f32::NAN };
        assert_eq!([End::Lower, End::Likely, End::Upper].map(|end| end.of(odd)), [2.0; 3]);
    }
}
