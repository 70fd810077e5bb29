//! How far a plan looks, and what is expected of a disk meanwhile.
//!
//! A disk is planned as a machine of [`PARTS`] cores, each a thousandth of its time: what the foreground takes of it are busy cores,
//! and work that runs alone for a second pays a thousand core-seconds.

use crate::cost::Mean;
use crate::file_system::{BLOCK_BYTES, End, SPACE_HALF_LIFE_SECONDS, Space, Written};
use crate::ledger::Expected;
use crate::nouns::Machine;
use minerva_model::DiskCalibration;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Parts of a disk's time.
pub(crate) const PARTS: u32 = 1_000;
/// What the foreground does by day and night belongs together.
const FOREGROUND_HALF_LIFE_SECONDS: f64 = 12.0 * 3600.0;
const GAPS_HALF_LIFE_SECONDS: f64 = 3600.0;
/// Of late.
const RECENT_HALF_LIFE_SECONDS: f64 = 600.0;
/// By how much the foreground differs from what was expected of it is expected of later slots too, half as much after this time.
const ERROR_HALF_LIFE_SECONDS: f64 = 3600.0;
/// Before anything was measured, the part of the time that others leave which work gets.
const USABLE_ASSUMED: f64 = 0.8;
/// However little came of the gaps before, some part of them is planned with.
const USABLE_MIN: f64 = 0.05;
/// Of one disk; the one that was not heard of for longest makes room for another.
const FILE_SYSTEMS_MAX: usize = 64;
const SECONDS_PER_HOUR: f64 = 3600.0;
const SECONDS_PER_MINUTE: f64 = 60.0;

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
    /// Lengths of its slots in seconds.
    pub(crate) fn slots(self) -> Vec<f64> {
        match self {
            Self::Hour => vec![SECONDS_PER_MINUTE; 60],
            Self::Day => vec![600.0; 144],
            Self::Week => vec![SECONDS_PER_HOUR; 168],
            Self::Month => vec![SECONDS_PER_HOUR; 720],
        }
    }
}

/// Lengths of the slots of a plan that work goes by. A deadline within an hour is met or missed by minutes.
pub(crate) fn slots_in_force(first_hour_by_minutes: bool) -> Vec<f64> {
    let hours = Span::Month.slots();
    if !first_hour_by_minutes {
        return hours;
    }
    Span::Hour.slots().into_iter().chain(hours.into_iter().skip(1)).collect()
}

/// Bytes a second that are expected of a disk so many seconds from now; `None` where nothing is forecast.
pub type Forecast<'a> = &'a dyn Fn(f64) -> Option<f64>;

/// What is forecast of a disk: all that is transferred, and what is written, where anybody knows how good the forecasts of that are.
pub type Foreseen<'a> = (Forecast<'a>, Option<Written<'a>>);

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
    /// Background work used the disk too, be it let or not: what must not be stopped goes on while it rests.
    pub is_beside_work: bool,
}

/// Whatever is taken from others they keep half of what they do.
const SLOWED_MAX: f64 = 2.0;

impl Foreground {
    /// What it would have been without work that took so much of its time: else what is taken from others would be read as gaps that they leave.
    pub(crate) fn without_work(self, taken: f64) -> Self {
        let busy = (self.busy + taken).min(1.0).max(self.busy);
        // A byte takes them as long as it did.
        let slowed = if self.busy > 0.0 { (busy / self.busy).clamp(1.0, SLOWED_MAX) } else { 1.0 };
        Self { busy, bytes_per_second: self.bytes_per_second * slowed, ..self }
    }
}

/// What is known of a disk's foreground and space.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Disk {
    /// The part of its time that the foreground takes.
    busy: Mean,
    /// The same of late, and what was expected then.
    #[serde(default)]
    recent: [Mean; 2],
    /// Bytes a second of the foreground.
    bytes: Mean,
    /// Requests a second of the foreground in slices in which it was active and no work ran.
    pub(crate) alone: Mean,
    /// The part of the time that the foreground left in which work that may use the gaps did run.
    usable: Mean,
    /// Bytes a second that the foreground writes.
    #[serde(default)]
    written: Mean,
    /// Of a file system without a number: all of the disk's in recordings of earlier versions.
    #[serde(flatten)]
    unnumbered: Space,
    /// What it serves to the foreground, where that was measured without any work.
    #[serde(default)]
    calibration: Option<DiskCalibration>,
    /// File systems by number.
    #[serde(default)]
    numbered: BTreeMap<u64, Space>,
}

/// What a plan is made for.
#[derive(Clone, Copy)]
pub(crate) struct Expecting<'a> {
    /// Lengths of slots in seconds.
    pub(crate) slots: &'a [f64],
    pub(crate) foreseen: Foreseen<'a>,
    /// Of what is written.
    pub(crate) end: End,
    /// Whose space counts.
    pub(crate) file_system: Option<u64>,
    /// What the foreground did lately counts for the next hours.
    pub(crate) is_corrected: bool,
}

impl Disk {
    /// What the foreground did in a slice, and what is forecast.
    pub(crate) fn foreground(&mut self, foreground: &Foreground, seconds: f64, forecast: Forecast<'_>) {
        let busy = foreground.busy.min(1.0);
        let expected = self.busy.get().map_or(busy, |_| self.busy_at(0.0, forecast));
        for (recent, busy) in self.recent.iter_mut().zip([busy, expected]) {
            recent.add(busy, seconds, RECENT_HALF_LIFE_SECONDS);
        }
        self.busy.add(busy, seconds, FOREGROUND_HALF_LIFE_SECONDS);
        self.bytes.add(foreground.bytes_per_second, seconds, FOREGROUND_HALF_LIFE_SECONDS);
        self.written.add(foreground.written_bytes_per_second, seconds, SPACE_HALF_LIFE_SECONDS);
    }

    /// Of a second of which the foreground left a part, work that may run in gaps ran for another.
    pub(crate) fn gaps(&mut self, left: f64, ran: f64, seconds: f64) {
        if left > 0.0 {
            self.usable.add((ran / left).min(1.0), left * seconds, GAPS_HALF_LIFE_SECONDS);
        }
    }

    /// What is known of a file system's space.
    pub(crate) fn space(&self, file_system: Option<u64>) -> Space {
        let numbered = |number| self.numbered.get(&number).copied().unwrap_or_default();
        file_system.map_or(self.unnumbered, numbered)
    }

    pub(crate) fn space_mut(&mut self, file_system: Option<u64>) -> &mut Space {
        let Some(number) = file_system else { return &mut self.unnumbered };
        if self.numbered.len() >= FILE_SYSTEMS_MAX && !self.numbered.contains_key(&number) {
            let oldest = self.numbered.iter().min_by_key(|(_, space)| space.seen_at()).map(|(number, _)| *number);
            oldest.map(|number| self.numbered.remove(&number));
        }
        self.numbered.entry(number).or_default()
    }

    /// The part of what the foreground leaves that work can use.
    pub(crate) fn usable(&self) -> f64 {
        self.usable.get().unwrap_or(USABLE_ASSUMED).clamp(USABLE_MIN, 1.0)
    }

    pub(crate) const fn machine() -> Machine {
        Machine { cores: PARTS, foreground_ops_per_core_second: 1.0 }
    }

    /// Cores that work can use beside a foreground that is so busy.
    pub(crate) fn free_cores(&self, busy: f64) -> f64 {
        f64::from(PARTS) * self.usable() * (1.0 - busy.clamp(0.0, 1.0))
    }

    /// The part of what is written by which what is in use grows; nothing unless writes account for what grows.
    pub(crate) fn kept_of_written(&self, file_system: Option<u64>) -> Option<f64> {
        self.space(file_system).kept_of(self.written.get()?)
    }

    /// Takes what was measured while no work ran.
    pub(crate) fn calibrated(&mut self, calibration: DiskCalibration) {
        let is_rate = |rate: f64| rate.is_finite() && rate > 0.0;
        if is_rate(calibration.bytes_per_busy_second) {
            self.calibration = Some(calibration);
            self.alone = Mean::default();
            self.alone.add(calibration.requests_per_second, calibration.busy_seconds, FOREGROUND_HALF_LIFE_SECONDS);
        }
    }

    /// What it serves to the foreground in a busy second, requests a second in which that is active, and the busy seconds in which that was
    /// measured without any work: 0 where plans go by what was seen beside work too. Nothing before anything was seen.
    pub(crate) fn serves(&self) -> Option<DiskCalibration> {
        let bytes_per_busy_second = match self.calibration {
            Some(calibration) => calibration.bytes_per_busy_second,
            None => self.bytes.get()? / self.busy.get().filter(|busy| *busy > 0.0)?,
        };
        let requests_per_second = self.alone.get().unwrap_or(0.0);
        let busy_seconds = self.calibration.map_or(0.0, |calibration| calibration.busy_seconds);
        Some(DiskCalibration { bytes_per_busy_second, requests_per_second, busy_seconds })
    }

    /// The part of the disk's time that the foreground is expected to take so many seconds from now.
    fn busy_at(&self, seconds: f64, forecast: Forecast<'_>) -> f64 {
        let (busy, bytes) = (self.busy.get().unwrap_or(0.0), self.bytes.get().unwrap_or(0.0));
        if let Some(calibration) = self.calibration {
            return (forecast(seconds).unwrap_or(bytes) / calibration.bytes_per_busy_second).min(1.0);
        }
        // How long the disk takes for a byte is what it took so far.
        let foreseen = forecast(seconds).filter(|_| bytes > 0.0);
        foreseen.map_or(busy, |expected| (busy * expected / bytes).min(1.0))
    }

    /// By how much more of the disk's time the foreground took of late than was expected.
    fn recent_error(&self) -> f64 {
        let [measured, expected] = self.recent.map(|mean| mean.get().unwrap_or(0.0));
        measured - expected
    }

    /// What is expected in each slot; of what is written `end` of the interval.
    pub(crate) fn expected(&self, expecting: Expecting<'_>) -> Vec<Expected> {
        let Expecting { slots, foreseen: (forecast, written), end, file_system, is_corrected } = expecting;
        let space = self.space(file_system);
        let kept = self.kept_of_written(file_system);
        let mut growing = space.growing(written.zip(kept), end);
        let error = if is_corrected { self.recent_error() } else { 0.0 };
        let mut start = 0.0;
        let slot = |seconds: &f64| {
            let middle = start + 0.5 * seconds;
            start += seconds;
            let corrected = self.busy_at(middle, forecast) + error * 0.5_f64.powf(middle / ERROR_HALF_LIFE_SECONDS);
            Expected {
                seconds: *seconds,
                foreground_ops_per_second: f64::from(PARTS) * (1.0 - self.usable() * (1.0 - corrected.clamp(0.0, 1.0))),
                written_blocks_per_second: growing(start, *seconds) / BLOCK_BYTES,
                unique_share: 1.0,
                capacity_blocks: space.capacity_bytes() / BLOCK_BYTES,
            }
        };
        slots.iter().map(slot).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Disk, End, Expected, Expecting, Foreground, Foreseen, PARTS, Span, slots_in_force};
    use minerva_model::{Expectation, Nanos};

    fn expected(disk: &Disk, span: Span, foreseen: Foreseen<'_>, end: End) -> Vec<Expected> {
        let slots = span.slots();
        disk.expected(Expecting { slots: &slots, foreseen, end, file_system: None, is_corrected: true })
    }

    fn free(disk: &Disk, forecast: super::Forecast<'_>) -> Vec<f64> {
        let slots = expected(disk, Span::Hour, (forecast, None), End::Likely);
        slots.iter().map(|slot| (f64::from(PARTS) - slot.foreground_ops_per_second).round()).collect()
    }

    #[test]
    fn what_is_free_follows_the_forecast_where_there_is_one_and_the_mean_where_not() {
        let mut disk = Disk::default();
        assert_eq!(free(&disk, &|_| None), [800.0; 60], "nothing is known: four fifths of the time can be used");
        let foreground = Foreground { busy: 0.5, bytes_per_second: 1e6, ..Foreground::default() };
        disk.foreground(&foreground, 60.0, &|_| None);
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
        disk.space_mut(None).reported(Nanos::from_secs(0), (1 << 30, 4 << 30), 0.0, true);
        let first = |disk: &Disk| expected(disk, Span::Day, (&|_| None, None), End::Likely)[0];
        let written = |disk: &Disk| first(disk).written_blocks_per_second * 4096.0;
        disk.space_mut(None).reported(
            Nanos::from_secs(100),
            ((1 << 30) - (1 << 20), 4 << 30),
            f64::from(2 << 20),
            true,
        );
        assert!((written(&disk) - f64::from(1 << 20) / 21_600.0).abs() < 1.0, "a hundred seconds say nothing of a day");
        disk.space_mut(None).reported(Nanos::from_secs(86_500), (1 << 30, 4 << 30), 0.0, true);
        // Half of the first is forgotten after a day.
        assert!((written(&disk) - 1.5 * f64::from(1 << 20) / 86_450.0).abs() < 0.1, "{}", written(&disk));
        let slot = first(&disk);
        assert_eq!((slot.capacity_blocks, slot.unique_share), (f64::from(1 << 20), 1.0));
    }

    #[test]
    fn what_grows_follows_what_is_foreseen_to_be_written_where_writes_account_for_it() {
        let mut disk = Disk::default();
        disk.space_mut(None).reported(Nanos::from_secs(0), (1 << 30, 4 << 30), 0.0, true);
        disk.space_mut(None).reported(Nanos::from_secs(86_400), ((1 << 30) + 864_000_000, 4 << 30), 0.0, true);
        // 10,000 bytes a second grow of 20,000 that are written. From now on a thousand are written in the first hour of each day.
        let ahead = |seconds: f64| {
            let value = 3.6e6 * (seconds / 86_400.0).ceil() as f32;
            Expectation { value, lower: value * 0.5, upper: value * 3.0 }
        };
        let grown = |disk: &Disk, end| -> Vec<f64> {
            let slots = expected(disk, Span::Week, (&|_| None, Some(&ahead)), end);
            slots.iter().map(|slot| slot.written_blocks_per_second * 4096.0 * slot.seconds).collect()
        };
        let sum = |disk: &Disk, end| grown(disk, end).iter().sum::<f64>();
        assert_eq!(grown(&disk, End::Likely), [36e6; 168], "nobody knows what is written: as before");
        let foreground = |written| Foreground { written_bytes_per_second: written, ..Foreground::default() };
        disk.foreground(&foreground(20_000.0), 86_400.0, &|_| None);
        let each: Vec<usize> = (0..168).filter(|slot| grown(&disk, End::Likely)[*slot] > 0.0).collect();
        assert_eq!(each, [0, 24, 48, 72, 96, 120, 144], "half of what is foreseen, when it is");
        let near = |end, expected: f64| assert!((sum(&disk, end) / expected - 1.0).abs() < 1e-6, "{end:?}");
        near(End::Lower, 0.25 * 7.0 * 3.6e6);
        near(End::Likely, 0.5 * 7.0 * 3.6e6);
        near(End::Upper, 1.5 * 7.0 * 3.6e6);
        // Files that were given space before anything was written to them.
        let mut given = Disk { written: super::Mean::default(), ..disk };
        given.foreground(&foreground(100.0), 86_400.0, &|_| None);
        assert_eq!(grown(&given, End::Upper), [36e6; 168]);
    }

    #[test]
    fn what_the_foreground_did_lately_counts_for_the_next_hours_and_not_for_tomorrow() {
        let mut disk = Disk::default();
        let foreground = |busy| Foreground { busy, bytes_per_second: 1e6, ..Foreground::default() };
        let mut minutes =
            |count: u32, busy| (0..count).for_each(|_| disk.foreground(&foreground(busy), 60.0, &|_| None));
        minutes(1440, 0.1);
        minutes(30, 0.9);
        let busy = |is_corrected| -> Vec<f64> {
            let slots = Span::Week.slots();
            let foreseen: Foreseen<'_> = (&|_| None, None);
            let slots =
                disk.expected(Expecting { slots: &slots, foreseen, end: End::Likely, file_system: None, is_corrected });
            slots.iter().map(|slot| 1.0 - (1.0 - slot.foreground_ops_per_second / 1000.0) / 0.8).collect()
        };
        let (as_before, corrected) = (busy(false), busy(true));
        assert!(as_before[0] < 0.2, "half an hour is little of half a day: {}", as_before[0]);
        assert!(corrected[0] > 0.5 && corrected[1] < corrected[0], "{corrected:?}");
        assert!((corrected[24] - as_before[24]).abs() < 1e-3, "{} {}", corrected[24], as_before[24]);
    }

    #[test]
    fn the_first_hour_of_a_plan_in_force_is_planned_by_minutes() {
        let slots = slots_in_force(true);
        assert_eq!((slots.len(), slots[0], slots[59], slots[60]), (779, 60.0, 60.0, 3600.0));
        assert_eq!(slots.iter().sum::<f64>(), Span::Month.slots().iter().sum::<f64>());
        assert_eq!(slots_in_force(false), Span::Month.slots());
    }
}
