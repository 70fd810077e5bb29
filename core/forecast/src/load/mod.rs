//! The day and the week ahead of disks and of operators' groups: slices summed to bins of ten minutes, an ensemble for each of what
//! is read, written, discarded, used up and freed, and what came of their forecasts.
//!
//! | file | what |
//! |---|---|
//! | `series` | one disk or group |
//! | `space` | its free space |
//! | `sums` | the bytes of a day and of a week, with intervals of their own |
//! | `track` | forecasts of a day and of a week, kept beside what comes |
//! | `score` | how much better they were than naive ones |
//! | `file` | what outlives a restart |
//!
//! Work is bounded by a count: in each slice one week ahead is made anew, or one model is fitted.

mod file;
mod score;
mod series;
mod space;
mod sums;
mod track;

use crate::codec::Damaged;
use crate::seasonal::{Bins, Totals};
use minerva_model::{DeviceId, LoadOf, Nanos, SharedLoad};
use serde::{Deserialize, Serialize};
use series::Series;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// Disks and groups that are forecast, of about 0.4 MB each; of more there is no forecast.
pub const LOADS_MAX: usize = 48;

/// The end of a slice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadTime {
    /// On the engine's clock.
    pub now: Nanos,
    /// In seconds since 1970 in the host's time zone.
    pub wall_seconds: u64,
}

/// What happened to a disk or a group in a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LoadReading {
    /// How long the slice was.
    pub seconds: f64,
    /// What was transferred and discarded in it.
    pub totals: Totals,
    /// Free bytes now, where somebody has looked.
    pub free_bytes: Option<f64>,
}

/// A model that takes part in forecasts of days.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadMember {
    /// In words.
    pub name: &'static str,
    /// Its part in the forecast, 0 to 1; 0 while it does worse than the better of what was a day and a week ago, and before the first
    /// day was scored.
    pub weight: f64,
    /// Its mean symmetric error of whole days ahead, in percent; nothing before its first scored day.
    pub error_percent: Option<f64>,
}

/// The forecasts of a host's days and weeks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Loads {
    series: BTreeMap<LoadOf, Series>,
    /// Whose turn it was last.
    turn: Option<LoadOf>,
    refused: u64,
    /// Of those in the last slice.
    #[serde(default)]
    refused_in_slice: u64,
    /// See [`Self::set_skill_by_bytes`].
    #[serde(default)]
    skill_by_bytes: bool,
    /// See [`Self::set_only_its_own`].
    #[serde(default)]
    only_its_own: bool,
    /// The number of the bin under way, as the wall clock has it.
    #[serde(default)]
    bin: Option<u64>,
}

impl Default for Loads {
    fn default() -> Self {
        Self {
            series: BTreeMap::new(),
            turn: None,
            refused: 0,
            refused_in_slice: 0,
            skill_by_bytes: true,
            only_its_own: true,
            bin: None,
        }
    }
}

/// A part of a slice's work on one series; whether there was anything to do.
type Task = fn(&mut Series, &LoadOf, LoadTime, bool) -> bool;

impl Loads {
    /// The skill of reads and writes together is weighted by bytes. Otherwise, as by earlier versions, it is the smaller one, and a skill of
    /// exactly 0 is passed over.
    pub fn set_skill_by_bytes(&mut self, skill_by_bytes: bool) {
        self.skill_by_bytes = skill_by_bytes;
    }

    /// What nobody saw, what was before a slice's bin and what another disk under the same number had count for nothing, and a disk that is
    /// gone for long makes room. In earlier versions it was not so. It holds for disks and groups that come from now on.
    pub fn set_only_its_own(&mut self, only_its_own: bool) {
        self.only_its_own = only_its_own;
    }

    /// Takes a slice: each disk and group once. One of which nothing is known begins with its first transfer. Then does the slice's
    /// part of the work.
    pub fn observe(&mut self, time: LoadTime, slice: &[(LoadOf, LoadReading)]) {
        self.age(time, slice);
        let refused_before = self.refused;
        for (of, reading) in slice {
            if let Some(series) = self.series.get_mut(of) {
                series.observe(time.wall_seconds, reading);
            } else if reading.totals.read_bytes + reading.totals.write_bytes > 0.0 {
                if self.has_room() {
                    let series = self.series.entry(of.clone()).or_insert_with(|| Series::new(self.only_its_own));
                    series.observe(time.wall_seconds, reading);
                } else {
                    self.refused += 1;
                }
            }
        }
        self.refused_in_slice = self.refused - refused_before;
        self.series.retain(|_, series| !series.is_forgotten());
        self.work(time);
    }

    /// Where a bin has passed, those that are not there have rested in it. Only bins that this host saw count, so a clock that jumps makes
    /// nobody old.
    fn age(&mut self, time: LoadTime, slice: &[(LoadOf, LoadReading)]) {
        let bin = Bins::number(time.wall_seconds);
        if self.bin.replace(bin).is_none_or(|before| before == bin) {
            return;
        }
        let named: BTreeSet<&LoadOf> = slice.iter().map(|(of, _)| of).collect();
        self.series.iter_mut().filter(|(of, _)| !named.contains(of)).for_each(|(_, series)| series.rest());
    }

    /// Whether there is room for another, for which the one that has been silent for longest goes.
    fn has_room(&mut self) -> bool {
        if self.series.len() >= LOADS_MAX {
            let silent = self.series.iter().filter_map(|(of, series)| Some((series.makes_room()?, of)));
            if let Some((_, of)) = silent.max().map(|(bins, of)| (bins, of.clone())) {
                self.series.remove(&of);
            }
        }
        self.series.len() < LOADS_MAX
    }

    /// From whose turn it was on: the first whose forecast is of an earlier bin gets a new one; if there is none, the first that has a
    /// model to fit.
    fn work(&mut self, time: LoadTime) {
        let after = self.turn.take();
        let bounds = match &after {
            Some(after) => [(Bound::Excluded(after), Bound::Unbounded), (Bound::Unbounded, Bound::Included(after))],
            None => [(Bound::Unbounded, Bound::Unbounded), (Bound::Unbounded, Bound::Unbounded)],
        };
        let skill_by_bytes = self.skill_by_bytes;
        for does in [Series::forecast_anew as Task, Series::refit] {
            for range in bounds {
                if let Some(of) = self
                    .series
                    .range_mut::<LoadOf, _>(range)
                    .find_map(|(of, series)| does(series, of, time, skill_by_bytes).then_some(of))
                {
                    self.turn = Some(of.clone());
                    return;
                }
            }
        }
        self.turn = after;
    }

    /// The week ahead of everyone of whom one is foreseen.
    pub fn forecasts(&self) -> Vec<SharedLoad> {
        self.series.values().filter_map(|series| series.forecast().cloned()).collect()
    }

    /// Bins that were measured, oldest first, in bytes a second both ways, at most a week of them; the last ended when the forecast's
    /// first bin began.
    pub fn past(&self, of: &LoadOf) -> Vec<f64> {
        self.series.get(of).map(Series::past).unwrap_or_default()
    }

    /// Which models speak of the reads and of the writes of a disk or a group; none of one of which nothing is known.
    pub fn members(&self, of: &LoadOf) -> [Vec<LoadMember>; 2] {
        self.series.get(of).map(Series::members).unwrap_or_default()
    }

    /// Groups of which something is known.
    pub fn groups(&self) -> impl Iterator<Item = &str> {
        self.series.keys().filter_map(|of| if let LoadOf::Group(group) = of { Some(group.as_str()) } else { None })
    }

    /// Nothing is told of a disk that is gone. What it did is kept, as it may come back, but for its free space, as another may.
    pub fn device_gone(&mut self, id: DeviceId) {
        if let Some(series) = self.series.get_mut(&LoadOf::Device(id)) {
            series.gone();
        }
    }

    /// Readings that found no place, ever.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Disks and groups that did I/O in the last slice and found no place.
    pub fn refused_in_slice(&self) -> u64 {
        self.refused_in_slice
    }

    /// What outlives a restart, as bytes; nothing before the first bin.
    pub fn encode(&self) -> Option<Vec<u8>> {
        file::encode(&self.series, self.only_its_own)
    }

    /// Takes over what an earlier run kept.
    ///
    /// # Errors
    /// Damaged bytes, which change nothing.
    pub fn recall(&mut self, bytes: &[u8]) -> Result<(), Damaged> {
        self.series = file::decode(bytes, self.only_its_own)?;
        Ok(())
    }
}
