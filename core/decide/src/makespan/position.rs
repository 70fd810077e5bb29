//! A job on one disk, and what stands decided for it there.

use crate::presence::{PAUSE, TURN_NS};
use crate::shortest_first::{self, FLOOR, Remaining};
use minerva_model::{IoSignals, Nanos};
use serde::{Deserialize, Serialize};

/// A job on one disk.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Running {
    pub(super) attained_bytes: u64,
    pub(super) bytes_per_second_max: f64,
    pub(super) since: Nanos,
    pub(super) last_used: Nanos,
    /// It went first, and nobody with it, while it used the disk: so its greatest rate is one at which nobody held it back.
    #[serde(default)]
    pub(super) has_led: bool,
    /// In so many slices in a row up to now.
    #[serde(default)]
    pub(super) led_slices: u32,
    /// How long it was held back, less how long it went first or was alone since. A rest neither adds to it nor takes from it.
    #[serde(default)]
    pub(super) waited: Nanos,
}

/// In this time, in seconds, all but a third of what a job's greatest rate was above what it has is forgotten.
const FORGETS_S: f64 = 60.0;

impl Running {
    /// A slice of the job. `forgets`: it had all that the disk gives, so that what was more before is not to be had any more.
    pub(super) fn note_rate(&mut self, row: &IoSignals, forgets: bool) {
        let (known, rate) = (self.bytes_per_second_max, row.bytes_per_second());
        let part = if forgets { (row.elapsed.as_secs_f64() / FORGETS_S).min(1.0) } else { 0.0 };
        self.bytes_per_second_max = rate.max(known - (known - rate) * part);
    }
}

/// What stands decided for a job.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct QueuePosition {
    pub(super) place: usize,
    pub(super) jobs: usize,
    pub(super) remaining: Remaining,
    /// No tenant but jobs used the disk.
    pub(super) alone: bool,
    /// How many go before the others: the first, and who comes next where those before leave of the slice.
    #[serde(default = "one")]
    pub(super) ahead: usize,
    #[serde(default)]
    pub(super) rests: bool,
    /// Of the disk, in units of an equal part; by place alone where there is none, as in recordings of earlier versions.
    #[serde(default)]
    pub(super) part: Option<f64>,
    /// The first is slower where those who wait have no caps, as far as is known.
    #[serde(default = "yes")]
    pub(super) tells_caps: bool,
    /// Counts, up to [`TOLD_MAX`] and round, how often what is told of it changed.
    #[serde(default)]
    pub(super) told: u8,
}

/// Twice as much, for operations that were granted or not, is still a mark.
const TOLD_MAX: u8 = 126;

const fn yes() -> bool {
    true
}

const fn one() -> usize {
    1
}

impl QueuePosition {
    pub(super) const fn is_ahead(&self) -> bool {
        self.place < self.ahead
    }

    /// It has all that the others leave.
    pub(super) const fn leads(&self) -> bool {
        self.place == 0 && self.ahead == 1
    }

    /// The part of the disk's time that it keeps while it waits for others, where only jobs use the disk and that is to be a cap.
    pub(super) fn waits_with(&self) -> Option<f64> {
        (self.alone && self.tells_caps && !self.is_ahead()).then(|| self.part() / self.jobs.max(1) as f64)
    }

    /// In place of the one before, if there was any.
    pub(super) fn after(self, before: Option<&Self>) -> Self {
        let is_news = |before: &Self| {
            let told = |one: &Self| (one.place, one.alone, one.is_ahead(), one.turn_is_known(), one.waits_with());
            told(before) != told(&self)
        };
        let told = before.map_or(0, |before| match is_news(before) {
            true if before.told >= TOLD_MAX => 0,
            true => before.told + 1,
            false => before.told,
        });
        Self { told, ..self }
    }

    /// It is known by bytes when its turn comes: that is why it keeps so little.
    pub(super) fn turn_is_known(&self) -> bool {
        self.part.is_some_and(|part| part < FLOOR)
    }

    /// How long its part may make it wait for its next turn.
    pub(super) fn turn_comes_within(&self) -> Nanos {
        let turns = self.jobs as f64 / self.part().max(f64::MIN_POSITIVE);
        Nanos((TURN_NS as f64 * turns) as u64).min(PAUSE)
    }

    pub(super) fn part(&self) -> f64 {
        self.part.unwrap_or_else(|| shortest_first::part(self.place, self.jobs, self.ahead))
    }
}
