//! What the next slice is told from (Malensek et al. 2016, section 4.1): processor, memory, network, open files and their sizes,
//! connections, and the tenant's past slices.

use super::day_ago::DayAgo;
pub use super::usage::Usage;
use crate::number::quantity;
use crate::online::Account;
use crate::seasonal::{BIN_SECONDS, BINS_PER_DAY};
use serde::{Deserialize, Serialize};

/// What a slice says of a tenant. Values that are not finite or below 0 count as 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// How long the slice was.
    pub elapsed_seconds: f64,
    /// Bytes read in it.
    pub read_bytes: f64,
    /// Bytes written in it.
    pub write_bytes: f64,
    /// When it ended, in seconds since 1970 in the host's time zone, where known: work is often started by the clock.
    pub wall_seconds: Option<f64>,
    /// What its processes use besides the disk; `None` if they were not looked at in this slice.
    pub usage: Option<Usage>,
    /// What the tenant itself says that the session will transfer, in bytes; believed only as far as it was right before.
    pub declared_bytes: Option<f64>,
    /// Whose account it is on, by which it is told what sessions are worth; 0 where nobody says.
    #[serde(default)]
    pub account: Account,
}

/// Features of a row.
pub const FEATURES: usize = 32;
/// The first of them, which are all that models of earlier versions know.
pub const FEATURES_WITHOUT_DAY_AGO: usize = 30;

/// What a model is asked about. The first entry is log1p of the last slice's bytes a second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<f32>", into = "Vec<f32>")]
pub struct Row([f32; FEATURES]);

impl std::ops::Deref for Row {
    type Target = [f32; FEATURES];

    fn deref(&self) -> &[f32; FEATURES] {
        &self.0
    }
}

/// Rows of earlier versions are shorter: what they did not know is 0.
impl From<Vec<f32>> for Row {
    fn from(values: Vec<f32>) -> Self {
        let mut row = [0.0; FEATURES];
        row.iter_mut().zip(values).for_each(|(to, value)| *to = value);
        Self(row)
    }
}

impl From<Row> for Vec<f32> {
    fn from(row: Row) -> Self {
        row.0.to_vec()
    }
}

/// Slices over which the moving averages of the rate reach.
const HORIZONS: [f64; 3] = [4.0, 16.0, 64.0];
/// Slices whose rates are kept.
const RECENT: usize = 16;
/// Weight of a new slice in the long mean, and how far the running median of the logarithm moves.
const LONG_WEIGHT: f32 = 1.0 / 600.0;
const MEDIAN_STEP: f32 = 0.05;
/// Slices after which the largest rate is known, and how fast it is forgotten: over a day of seconds.
const REACH_FROM: u32 = 64;
const LARGEST_WEIGHT: f32 = 1e-5;
/// Weight of the newest day in the daily profile.
const USUAL_WEIGHT: f32 = 0.4;

/// The running values behind a tenant's features. 2.1 kB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FeatureState {
    /// log1p of bytes a second, newest at `slices % RECENT`.
    recent: [f32; RECENT],
    /// The same as moving averages.
    averages: [f32; HORIZONS.len()],
    long: f32,
    median: f32,
    slices: u32,
    busy_slices: u32,
    idle_slices: u32,
    read_share: f32,
    usage: Usage,
    before: Usage,
    declared_log: f32,
    /// Seconds of the day and of the hour.
    clock: [f32; 2],
    /// log1p of what is usual at this time of the day; the bin under way with its sum and count.
    usual: Usual,
    #[serde(default)]
    day_ago: DayAgo,
    /// The largest of late; where there is none, as in recordings of earlier versions, no forecast is bounded by it.
    #[serde(default)]
    largest: Option<f32>,
}

/// A running daily profile in bins of ten minutes. 0.6 kB.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Usual {
    #[serde(with = "crate::state::array")]
    profile: [f32; BINS_PER_DAY],
    bin: usize,
    sum: f32,
    count: f32,
    /// Bins that were complete, ever.
    seen: usize,
}

impl Default for Usual {
    fn default() -> Self {
        Self { profile: [0.0; BINS_PER_DAY], bin: 0, sum: 0.0, count: 0.0, seen: 0 }
    }
}

impl Usual {
    /// Takes a rate at a time of the day, in seconds.
    fn observe(&mut self, seconds: f64, rate: f32) {
        let bin = (seconds / BIN_SECONDS as f64) as usize % BINS_PER_DAY;
        if bin != self.bin && self.count > 0.0 {
            let weight = if self.seen < BINS_PER_DAY { 1.0 } else { USUAL_WEIGHT };
            self.profile[self.bin] += weight * (self.sum / self.count - self.profile[self.bin]);
            (self.seen, self.sum, self.count) = (self.seen.saturating_add(1), 0.0, 0.0);
        }
        self.bin = bin;
        self.sum += rate;
        self.count += 1.0;
    }

    /// What is usual at a time; `otherwise` on the first day.
    fn at(&self, seconds: f64, otherwise: f32) -> f32 {
        let bin = (seconds / BIN_SECONDS as f64) as usize % BINS_PER_DAY;
        if self.seen < BINS_PER_DAY { otherwise } else { self.profile[bin] }
    }
}

/// What the time at which the next slice ends says of it, as log1p of bytes a second; the last rate where nothing is known.
struct ByTime {
    usual: f32,
    day_ago: f32,
    /// From the bin of now to that of the end of the next slice, a day ago.
    step_a_day_ago: f32,
}

impl FeatureState {
    /// One that bounds what is forecast by what was seen.
    pub fn bounded() -> Self {
        Self { largest: Some(0.0), ..Self::default() }
    }

    /// What a model says of the next slice, log1p of bytes a second, but no more than [`Self::reach`].
    pub fn within_reach(&self, rate_log: f32) -> f32 {
        Self::within(self.reach(), rate_log)
    }

    /// Twice the largest rate of late, as a logarithm, once that is known: a step that trees add to a rate that was large already may lead
    /// to any number.
    pub fn reach(&self) -> Option<f32> {
        self.largest.filter(|_| self.slices >= REACH_FROM).map(|largest| largest + std::f32::consts::LN_2)
    }

    /// No more than the reach, where there is one.
    pub fn within(reach: Option<f32>, rate_log: f32) -> f32 {
        reach.map_or(rate_log, |reach| rate_log.min(reach))
    }

    /// Takes a slice in and says what the next is told from. `session` is what its session has transferred and how many seconds it
    /// lasts; `family_log` what sessions of its like transferred, as log1p of bytes.
    pub fn observe(&mut self, reading: &Reading, session: (f64, f64), family_log: f32) -> Row {
        let seconds = if reading.elapsed_seconds > 0.0 { reading.elapsed_seconds } else { 1.0 };
        let (read, write) = (quantity(reading.read_bytes) / seconds, quantity(reading.write_bytes) / seconds);
        let rate = log(read + write);
        self.slices = self.slices.wrapping_add(1);
        self.recent[self.slices as usize % RECENT] = rate;
        for (average, horizon) in self.averages.iter_mut().zip(HORIZONS) {
            *average += (rate - *average) * (1.0 - libm::exp(-1.0 / horizon)) as f32;
        }
        self.long += (rate - self.long) * LONG_WEIGHT.max(1.0 / self.slices.max(1) as f32);
        self.median += (rate - self.median).clamp(-MEDIAN_STEP, MEDIAN_STEP);
        self.largest = self.largest.map(|largest| rate.max(largest + (rate - largest) * LARGEST_WEIGHT));
        if rate > 0.0 {
            self.busy_slices = self.busy_slices.saturating_add(1);
            self.idle_slices = 0;
            self.read_share += 0.2 * ((read / (read + write)) as f32 - self.read_share);
        } else {
            self.idle_slices = self.idle_slices.saturating_add(1);
            self.busy_slices = 0;
        }
        if let Some(usage) = reading.usage {
            (self.before, self.usage) = (self.usage, usage.sane());
        } else {
            self.before = self.usage;
        }
        if let Some(wall) = reading.wall_seconds.map(quantity) {
            self.clock = [86_400.0, 3600.0].map(|period| (wall % period) as f32);
            self.usual.observe(wall % 86_400.0, rate);
            self.day_ago.observe(wall % 86_400.0, rate);
        }
        self.declared_log = reading.declared_bytes.map_or(0.0, log);
        let Some(now) = reading.wall_seconds.map(|wall| quantity(wall) % 86_400.0) else {
            return self.row(session, family_log, ByTime { usual: rate, day_ago: rate, step_a_day_ago: 0.0 });
        };
        // The next slice is told from what is usual when it ends.
        let next = now + seconds;
        let day_ago = self.day_ago.at(next);
        let step_a_day_ago = day_ago.zip(self.day_ago.at(now)).map_or(0.0, |(next, now)| next - now);
        let by_time = ByTime { usual: self.usual.at(next, rate), day_ago: day_ago.unwrap_or(rate), step_a_day_ago };
        self.row(session, family_log, by_time)
    }

    /// The part of reads in what the tenant transfers, 0 to 1, over its last busy slices.
    pub fn read_share(&self) -> f64 {
        f64::from(self.read_share).clamp(0.0, 1.0)
    }

    fn row(&self, (attained, age): (f64, f64), family_log: f32, by_time: ByTime) -> Row {
        let (usage, before) = (&self.usage, &self.before);
        let lag = |back: u32| self.recent[self.slices.wrapping_sub(back) as usize % RECENT];
        let last = lag(0);
        let grown = |now: f64, before: f64| log(now) - log(before);
        let open = usage.open_file_bytes;
        Row([
            // The model says by how much the next rate differs from the last: so most features are differences from it.
            last,
            lag(1) - last,
            lag(2) - last,
            lag(3) - last,
            self.averages[0] - last,
            self.averages[1] - last,
            self.averages[2] - last,
            self.recent.iter().copied().fold(0.0, f32::max) - last,
            self.recent.iter().copied().fold(f32::INFINITY, f32::min) - last,
            self.long - last,
            self.median - last,
            log(f64::from(self.busy_slices)),
            log(f64::from(self.idle_slices)),
            self.read_share,
            usage.cpus as f32,
            log(usage.memory_bytes),
            grown(usage.memory_bytes, before.memory_bytes),
            log(usage.network_bytes_per_second),
            log(usage.open_files),
            (usage.open_files - before.open_files) as f32,
            log(usage.open_sockets),
            (usage.open_sockets - before.open_sockets) as f32,
            log(open),
            log((open - attained).max(0.0)),
            log(attained),
            log(age),
            if self.declared_log > 0.0 { self.declared_log } else { family_log },
            self.clock[0],
            self.clock[1],
            by_time.usual - last,
            by_time.day_ago - last,
            by_time.step_a_day_ago,
        ])
    }
}

fn log(value: f64) -> f32 {
    libm::log1p(quantity(value)) as f32
}
