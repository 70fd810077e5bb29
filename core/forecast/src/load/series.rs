//! One disk or group.

use super::space::Space;
use super::sums::Sums;
use super::track::{Track, expectation};
use super::{LoadMember, LoadReading, LoadTime};
use crate::online::{of_both, of_both_that_earned};
use crate::seasonal::{BIN_SECONDS, BINS_PER_DAY, BINS_PER_WEEK, Bin, Bins, Ensemble, Member, Seasonal};
use minerva_model::{Expectation, LoadBin, LoadForecast, LoadOf, LoadSum, Nanos, SharedLoad};
use serde::{Deserialize, Serialize};

/// A series without a transfer for so many bins is dropped: six weeks.
pub(super) const FORGET_BINS: u32 = 6 * BINS_PER_WEEK as u32;
/// One without a transfer for so many makes room where there is none: a day.
const MAKES_ROOM_BINS: u32 = BINS_PER_DAY as u32;

/// Sums of a day are kept every six hours, to be set against what comes.
const BINS_BETWEEN_SUMS: usize = BINS_PER_DAY / 4;

/// What is read, written or discarded, in bytes a second.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) ensemble: Ensemble,
    day: Track,
    week: Track,
    #[serde(default)]
    day_sums: Sums,
    #[serde(default)]
    week_sums: Sums,
}

impl Part {
    pub(super) fn observe(&mut self, bin: usize, value: f64) {
        self.day.observe(value);
        self.week.observe(value);
        self.day_sums.observe(value);
        self.week_sums.observe(value);
        self.ensemble.observe(bin, value);
        let next = (bin + 1) % BINS_PER_WEEK;
        if next.is_multiple_of(BINS_BETWEEN_SUMS) {
            self.plan(next);
        }
    }

    /// Keeps what is foreseen from bin `next` on. Of a day no week is worked out: after a sleep many days end in one slice.
    fn plan(&mut self, next: usize) {
        let begins_day = next.is_multiple_of(BINS_PER_DAY);
        let mut ahead = [0.0; BINS_PER_WEEK];
        let ahead = &mut ahead[..if begins_day { BINS_PER_WEEK } else { BINS_PER_DAY }];
        if !self.ensemble.forecast(next, ahead) {
            return;
        }
        self.day_sums.plan(&ahead[..BINS_PER_DAY]);
        if begins_day {
            self.week_sums.plan(ahead);
            self.day.plan(&ahead[..BINS_PER_DAY], self.ensemble.history());
        }
        // The first bin of a week.
        if next == 0 {
            self.week.plan(ahead, self.ensemble.history());
        }
    }

    /// What is expected of the bytes of the day and of the week, given the rates of its bins.
    fn sums(&self, ahead: &[f64]) -> [Expectation; 2] {
        let of = |sums: &Sums, bins: usize| sums.expected(ahead.iter().take(bins).copied(), BIN_SECONDS as f64);
        [of(&self.day_sums, BINS_PER_DAY), of(&self.week_sums, BINS_PER_WEEK)]
    }
}

/// See the file's documentation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Series {
    pub(super) bins: Bins,
    /// Reads, writes, discards.
    pub(super) parts: [Part; 3],
    pub(super) space: Option<Box<Space>>,
    /// Free bytes when somebody last looked, in the bin under way.
    free_bytes: Option<f64>,
    /// The bin under way when the forecast was made.
    made_in: Option<u64>,
    forecast: Option<SharedLoad>,
    /// Bins without a transfer up to now, also those in which it was not there.
    pub(super) silent_bins: u32,
    /// See [`super::Loads::set_only_its_own`].
    #[serde(default)]
    only_its_own: bool,
}

impl Series {
    /// One of which nothing is known.
    pub(super) fn new(only_its_own: bool) -> Self {
        let mut series = Self { only_its_own, ..Self::default() };
        if !only_its_own {
            series.parts.iter_mut().for_each(|part| part.ensemble = Ensemble::counting_unseen());
        }
        series
    }

    /// One that goes on with these bins.
    pub(super) fn after(bins: Bins, silent_bins: u32, only_its_own: bool) -> Self {
        Self { bins, silent_bins, ..Self::new(only_its_own) }
    }

    pub(super) fn observe(&mut self, wall_seconds: u64, reading: &LoadReading) {
        let (parts, space, free, silent) =
            (&mut self.parts, &mut self.space, &mut self.free_bytes, &mut self.silent_bins);
        let only_its_own = self.only_its_own;
        let (seconds, totals) = match only_its_own {
            true => Bins::within(wall_seconds, reading.seconds, reading.totals),
            false => (reading.seconds, reading.totals),
        };
        self.bins.add(wall_seconds, seconds, totals, |Bin { number, rates }| {
            let values =
                rates.map_or([f64::NAN; 3], |rates| [rates.read_bytes, rates.write_bytes, rates.discard_bytes]);
            parts.iter_mut().zip(values).for_each(|(part, value)| part.observe(number, value));
            let free = free.take();
            if free.is_some() || space.is_some() {
                space.get_or_insert_with(|| Box::new(Space::new(only_its_own))).observe(number, free);
            }
            let is_silent = values.iter().all(|value| value.is_nan() || *value == 0.0);
            // Those in which it was not there were counted as they passed.
            let counts = !only_its_own || rates.is_some();
            *silent = if is_silent { silent.saturating_add(u32::from(counts)) } else { 0 };
        });
        self.free_bytes = reading.free_bytes.filter(|free| free.is_finite() && *free >= 0.0).or(self.free_bytes);
    }

    /// Nothing was transferred for weeks.
    pub(super) fn is_forgotten(&self) -> bool {
        self.silent_bins >= FORGET_BINS
    }

    /// A bin passed in which it was not there.
    pub(super) fn rest(&mut self) {
        self.silent_bins = self.silent_bins.saturating_add(u32::from(self.only_its_own));
    }

    /// For how many bins it has been silent, if that is so long that another may have its place.
    pub(super) fn makes_room(&self) -> Option<u32> {
        Some(self.silent_bins).filter(|silent| self.only_its_own && *silent >= MAKES_ROOM_BINS)
    }

    pub(super) fn gone(&mut self) {
        (self.forecast, self.made_in) = (None, None);
        if self.only_its_own {
            self.free_bytes = None;
            self.space.iter_mut().for_each(|space| space.gone());
        }
    }

    pub(super) fn forecast(&self) -> Option<&SharedLoad> {
        self.forecast.as_ref()
    }

    pub(super) fn past(&self) -> Vec<f64> {
        let [reads, writes, _] = self.parts.each_ref().map(|part| part.ensemble.history());
        let skipped = reads.len().saturating_sub(BINS_PER_WEEK);
        reads.zip(writes).skip(skipped).map(|(read, written)| f64::from(read) + f64::from(written)).collect()
    }

    /// The members of the ensembles of reads and of writes.
    pub(super) fn members(&self) -> [Vec<LoadMember>; 2] {
        let [reads, writes, _] = &self.parts;
        [reads, writes].map(|part| {
            let member = |member: &Member| LoadMember {
                name: member.as_str(),
                weight: part.ensemble.weight(*member),
                error_percent: part.ensemble.error_percent(*member),
            };
            Member::ALL.iter().map(member).collect()
        })
    }

    /// Makes the forecast if it is of an earlier bin; whether it did.
    pub(super) fn forecast_anew(&mut self, of: &LoadOf, time: LoadTime, skill_by_bytes: bool) -> bool {
        let Some(current) = self.bins.current().filter(|current| self.made_in != Some(*current)) else { return false };
        self.made_in = Some(current);
        let next = (current % BINS_PER_WEEK as u64) as usize;
        self.forecast = self.made(of, time, next, skill_by_bytes).map(SharedLoad::from);
        true
    }

    fn made(&self, of: &LoadOf, time: LoadTime, next: usize, skill_by_bytes: bool) -> Option<LoadForecast> {
        let mut bins = vec![LoadBin::default(); BINS_PER_WEEK];
        let mut ahead = [0.0; BINS_PER_WEEK];
        let [mut day, mut week] = [LoadSum::default(); 2];
        for (index, part) in self.parts.iter().enumerate() {
            if !part.ensemble.forecast(next, &mut ahead) {
                return None;
            }
            for (at, (bin, value)) in bins.iter_mut().zip(&ahead).enumerate() {
                let of = [&mut bin.read, &mut bin.written, &mut bin.discarded];
                *of[index] = expectation(&part.day, &part.week, at, *value);
            }
            for (sum, of) in [&mut day, &mut week].into_iter().zip(part.sums(&ahead)) {
                *[&mut sum.read, &mut sum.written, &mut sum.discarded][index] = of;
            }
        }
        let free = self.space.as_ref().and_then(|space| space.expected(next)).into_iter().flatten();
        bins.iter_mut().zip(free).for_each(|(bin, free)| bin.free = Some(free));
        let [reads, writes, _] = &self.parts;
        let skill = |sum: LoadSum, of: fn(&Part) -> &Track| {
            let skills = [reads, writes].map(|part| of(part).score.told());
            let may_come = [sum.read, sum.written].map(|of| f64::from(of.upper));
            if skill_by_bytes { of_both(may_come, skills) } else { of_both_that_earned(skills) }
        };
        Some(LoadForecast {
            of: of.clone(),
            made_at: time.now,
            first_ends: time.now + Nanos::from_secs(self.bins.seconds_left(time.wall_seconds)),
            bins,
            day,
            week,
            skill_day: skill(day, |part| &part.day),
            skill_week: skill(week, |part| &part.week),
            skill_written: skill_by_bytes.then(|| [&writes.day, &writes.week].map(|track| track.score.told())),
            days_scored: reads.day.score.days(),
        })
    }

    /// Fits a model that is due; whether there was one.
    pub(super) fn refit(&mut self, _: &LoadOf, _: LoadTime, _: bool) -> bool {
        let flows = self.space.iter_mut().flat_map(|space| &mut space.flows);
        self.parts.iter_mut().map(|part| &mut part.ensemble).chain(flows).any(Ensemble::refit)
    }
}
