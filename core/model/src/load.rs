//! The day and the week ahead of a disk, or of an operator's group, as a whole: in bins of ten minutes (Kachmar and Kaeli 2020,
//! section V.A). For work that can wait, which has to know when the disk will be quiet and how much space there will be.

mod ahead;

pub use ahead::LoadPart;

use crate::{DeviceId, Nanos};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::sync::Arc;

/// How long a bin is.
pub const LOAD_BIN: Nanos = Nanos(600_000_000_000);
/// Bins of a day.
pub const LOAD_BINS_PER_DAY: usize = 144;
/// Bins that are forecast: those of a week.
pub const LOAD_BINS: usize = 7 * LOAD_BINS_PER_DAY;

/// Whose load is forecast.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadOf {
    /// Everything that a disk does, whoever asked for it.
    Device(DeviceId),
    /// All tenants of an operator's group, on all disks together.
    Group(String),
}

impl fmt::Display for LoadOf {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(device) => device.fmt(formatter),
            Self::Group(group) => write!(formatter, "group {group}"),
        }
    }
}

/// An expected value; of what comes, 80 of 100 are to be from `lower` to `upper`. Both are the value itself until enough came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "[f32; 3]", into = "[f32; 3]")]
pub struct Expectation {
    /// What is expected.
    pub value: f32,
    /// The lower end.
    pub lower: f32,
    /// The upper end.
    pub upper: f32,
}

impl From<[f32; 3]> for Expectation {
    fn from([value, lower, upper]: [f32; 3]) -> Self {
        Self { value, lower, upper }
    }
}

impl From<Expectation> for [f32; 3] {
    fn from(Expectation { value, lower, upper }: Expectation) -> Self {
        [value, lower, upper]
    }
}

/// What is expected of one bin: means over its ten minutes, in bytes a second, and the free space at its end, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadBin {
    /// Bytes read, a second.
    pub read: Expectation,
    /// Bytes written, a second. How many of them are unique (not yet stored elsewhere, not overwritten soon) nobody tells a host.
    pub written: Expectation,
    /// Bytes discarded, a second; 0 for a group, which is not known.
    pub discarded: Expectation,
    /// Free bytes at the end of the bin on the file systems of the disk; absent where nobody knows.
    pub free: Option<Expectation>,
}

impl LoadBin {
    /// Bytes a second both ways.
    pub fn bytes_per_second(&self) -> f64 {
        f64::from(self.read.value) + f64::from(self.written.value)
    }

    /// The part of reads in what is transferred, 0 to 1; nothing where nothing is expected.
    pub fn read_share(&self) -> Option<f64> {
        let both = self.bytes_per_second();
        (both > 0.0).then(|| f64::from(self.read.value) / both)
    }
}

/// What is expected of the bytes of a whole day or week, from the beginning of the bin that is under way. Both ends are the value itself until
/// enough days or weeks came: errors of bins partly cancel out, so that the intervals of bins say nothing of their sum. The value is not their
/// sum either, since bins are told by medians.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadSum {
    /// Bytes read.
    pub read: Expectation,
    /// Bytes written.
    pub written: Expectation,
    /// Bytes discarded; 0 for a group, which is not known.
    pub discarded: Expectation,
}

/// The week ahead.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadForecast {
    /// Whose.
    pub of: LoadOf,
    /// When it was made. A new one is made with each bin.
    pub made_at: Nanos,
    /// When the first bin ends, on the clock of the engine: later than `made_at` by at most a bin. Each bin after it is [`LOAD_BIN`] long.
    pub first_ends: Nanos,
    /// [`LOAD_BINS`] of them, the one that is under way first.
    pub bins: Vec<LoadBin>,
    /// Of the first day. Earlier versions knew no sums.
    #[serde(default)]
    pub day: LoadSum,
    /// Of the whole week.
    #[serde(default)]
    pub week: LoadSum,
    /// Skill of the bytes of a day, measured on what came of earlier forecasts of a whole day: 1 less the error over that of the
    /// better of two naive ones (as a day ago, as a week ago). 0 until a day was scored; at most 0 means: no better than those.
    pub skill_day: f64,
    /// The same of forecasts of a whole week.
    pub skill_week: f64,
    /// The same of the bytes written alone, of a day and of a week. Earlier versions had none.
    #[serde(default)]
    pub skill_written: Option<[f64; 2]>,
    /// Days that were scored.
    pub days_scored: u32,
}

impl LoadForecast {
    /// The bin in which an instant lies; nothing beyond the week, and the first bin for the past.
    pub fn at(&self, instant: Nanos) -> Option<&LoadBin> {
        let index = instant.since(self.first_ends).0.div_ceil(LOAD_BIN.0);
        self.bins.get(usize::try_from(index).ok()?)
    }

    /// The bins with their begin and end, as far as they lie after `now`.
    pub fn spans(&self, now: Nanos) -> impl Iterator<Item = (Nanos, Nanos, &LoadBin)> {
        let end = |index: usize| self.first_ends + Nanos(LOAD_BIN.0.saturating_mul(index as u64));
        self.bins.iter().enumerate().filter(move |(index, _)| end(*index) > now).map(move |(index, bin)| {
            let begin = Nanos(end(index).0.saturating_sub(LOAD_BIN.0));
            (begin.max(now), end(index), bin)
        })
    }
}

/// A forecast that many hold: a week of bins is long, and the same for ten minutes. It serialises as what it holds.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedLoad(Arc<LoadForecast>);

impl From<LoadForecast> for SharedLoad {
    fn from(forecast: LoadForecast) -> Self {
        Self(Arc::new(forecast))
    }
}

impl std::ops::Deref for SharedLoad {
    type Target = LoadForecast;

    fn deref(&self) -> &LoadForecast {
        &self.0
    }
}

impl Serialize for SharedLoad {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SharedLoad {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        LoadForecast::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::{Expectation, LOAD_BIN, LoadBin, LoadForecast, LoadOf, LoadSum};
    use crate::{DeviceId, Nanos};

    #[test]
    fn bins_are_found_by_the_engines_clock() {
        let bin =
            |value: f32| LoadBin { read: Expectation { value, lower: value, upper: value }, ..LoadBin::default() };
        let forecast = LoadForecast {
            of: LoadOf::Device(DeviceId { major: 8, minor: 0 }),
            made_at: Nanos::from_secs(100),
            first_ends: Nanos::from_secs(400),
            bins: vec![bin(1.0), bin(2.0), bin(3.0)],
            day: LoadSum::default(),
            week: LoadSum::default(),
            skill_day: 0.0,
            skill_week: 0.0,
            skill_written: None,
            days_scored: 0,
        };
        let at = |seconds| forecast.at(Nanos::from_secs(seconds)).map(|bin| bin.read.value);
        assert_eq!(
            [at(0), at(400), at(401), at(1_000), at(1_600), at(1_601)],
            [Some(1.0), Some(1.0), Some(2.0), Some(2.0), Some(3.0), None]
        );
        let spans: Vec<_> = forecast
            .spans(Nanos::from_secs(500))
            .map(|(from, to, bin)| (from.0 / 1_000_000_000, to.0 / 1_000_000_000, bin.read.value))
            .collect();
        assert_eq!(spans, [(500, 1_000, 2.0), (1_000, 1_600, 3.0)]);
        assert_eq!(LOAD_BIN, Nanos::from_secs(600));
        assert_eq!(LoadBin::default().read_share(), None);
    }
}
