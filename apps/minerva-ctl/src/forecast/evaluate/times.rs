//! What stands in a column of times: dates, or numbers in some unit.

use crate::arguments::TimeUnit;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// Seconds since 1970 are less than this for three thousand years; what is more is a finer unit.
const SECONDS_MAX: f64 = 1e11;

/// Seconds since 1970 of a date with its zone, or of one of this machine's.
pub(super) fn date(text: &str) -> Option<f64> {
    let instant = text.parse::<Timestamp>().ok().or_else(|| {
        let local: DateTime = text.replace(' ', "T").parse().ok()?;
        local.to_zoned(TimeZone::system()).ok().map(|zoned| zoned.timestamp())
    })?;
    Some(instant.as_nanosecond() as f64 / 1e9)
}

/// The unit of all numbers of a column, by the median of their sizes: guessed for each alone it would change where they grow beyond a bound,
/// and the largest may be one that is no time.
pub(super) fn unit(numbers: impl Iterator<Item = f64>) -> TimeUnit {
    let mut sizes: Vec<f64> = numbers.map(f64::abs).filter(|size| size.is_finite()).collect();
    sizes.sort_unstable_by(f64::total_cmp);
    let usual = sizes.get(sizes.len() / 2).copied().unwrap_or(0.0);
    let is_fine_enough = |unit: &TimeUnit| usual / per_second(*unit) < SECONDS_MAX;
    [TimeUnit::S, TimeUnit::Ms, TimeUnit::Us].into_iter().find(is_fine_enough).unwrap_or(TimeUnit::Ns)
}

/// How many of a unit a second has.
pub(super) fn per_second(unit: TimeUnit) -> f64 {
    match unit {
        TimeUnit::S => 1.0,
        TimeUnit::Ms => 1e3,
        TimeUnit::Us => 1e6,
        TimeUnit::Ns => 1e9,
    }
}

/// A unit's name.
pub(super) fn name(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::S => "seconds",
        TimeUnit::Ms => "milliseconds",
        TimeUnit::Us => "microseconds",
        TimeUnit::Ns => "nanoseconds",
    }
}
