//! A scrub beside others: limited by the kernel, and not stopped.
//!
//! A scrub that was cancelled begins its chunk again, which is usually of 1 GiB. In stretches of a share it would never get on beside others
//! who never pause for as long as a chunk takes.

#[cfg(test)]
mod tests;

use super::Run;
use crate::directories::{read, replace};
use crate::duty::Chance;
use crate::error::WorkError;
use crate::scrub_speed::{self, Limits};
use crate::spec::Kind;
use minerva_model::{BackgroundHold, BackgroundPace, Nanos};
use std::path::{Path, PathBuf};

/// Bytes a second that a scrub reads in gaps, before that was seen.
const RATE_ASSUMED: f64 = (64 << 20) as f64;
/// It is seen over so much time, and each time counts for so much.
const RATE_TIME: Nanos = Nanos::from_secs(1);
const RATE_WEIGHT: f64 = 0.125;
/// Bytes a second that it may read at least, unless that is more than half of what it reads in gaps.
const LIMIT_MIN: f64 = (1 << 20) as f64;
/// And however slow the disk is or was: at nothing it would never come out of its chunk.
const LIMIT_LEAST: f64 = (256 << 10) as f64;

/// How it is limited, and what by.
#[derive(Debug, Default)]
pub(super) struct Limiting {
    limit: Option<Limit>,
    rate: Rate,
    /// It could not be limited: until the next gap it rests.
    has_failed: bool,
    /// Its share when it was limited last, and where it was once it was to have gaps alone again.
    begun: Option<(u16, Option<u64>)>,
    /// It ran at a limit since the last report.
    was_limited: bool,
}

/// What a scrub has of a disk that others use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limit {
    /// Bytes a second.
    bytes: u64,
    /// Thousandths of the time that that takes.
    share: u16,
}

impl Limiting {
    /// The one in force.
    pub(super) const fn limit(&self) -> Option<Limit> {
        self.limit
    }

    /// Whether it ran at a limit, beside others, since the last call, or does now.
    pub(super) fn was_beside_others(&mut self, is_running: bool) -> bool {
        std::mem::take(&mut self.was_limited) || (is_running && self.limit.is_some())
    }
}

impl Limit {
    /// Its share of what it reads in gaps. Of a slow disk what it may read at least is more, and counts for more.
    fn of(share: u16, rate: &Rate) -> Self {
        let rate = rate.bytes_a_second;
        let (bytes, least) = (rate * f64::from(share) / 1000.0, LIMIT_MIN.min(rate / 2.0).max(LIMIT_LEAST));
        if bytes >= least {
            return Self { bytes: bytes as u64, share };
        }
        Self { bytes: least as u64, share: (least / rate * 1000.0).min(1000.0).round() as u16 }
    }

    /// It differs by no more than a tenth.
    fn is_near(self, other: Self) -> bool {
        self.bytes.abs_diff(other.bytes) <= self.bytes / 10 && self.share.abs_diff(other.share) <= self.share / 10
    }

    /// The part of some time in which it has the disk.
    fn part_of(self, time: Nanos) -> Nanos {
        Nanos(time.0 / 1000 * u64::from(self.share))
    }
}

/// How fast it reads in gaps.
#[derive(Debug)]
struct Rate {
    bytes_a_second: f64,
    /// For how long it has run without our limit since it was last looked.
    unlooked: Nanos,
    /// The same since more bytes were done than before, and how many those were; nothing where that is too long ago.
    time: Nanos,
    done: Option<f64>,
}

impl Default for Rate {
    fn default() -> Self {
        Self { bytes_a_second: RATE_ASSUMED, unlooked: Nanos::ZERO, time: Nanos::ZERO, done: None }
    }
}

impl Rate {
    /// So much time passed, in which it ran without our limit or not. `done` looks how many bytes are done, which is not for every look.
    fn passed(&mut self, passed: Nanos, is_free: bool, done: impl FnOnce() -> f64) {
        if !is_free {
            (self.unlooked, self.time, self.done) = (Nanos::ZERO, Nanos::ZERO, None);
            return;
        }
        self.unlooked += passed;
        self.time += passed;
        if self.unlooked < RATE_TIME {
            return;
        }
        self.unlooked = Nanos::ZERO;
        // Not in the first of it, as long as which the kernel may still sleep by the limit before.
        let now = done();
        match self.done {
            // It waits for something, or what it read is told later. A rate is known only once more is done, in all of that time.
            Some(before) if now == before => return,
            Some(before) if now > before => {
                let seen = (now - before) / self.time.as_secs_f64();
                self.bytes_a_second += RATE_WEIGHT * (seen - self.bytes_a_second);
            }
            // It was begun again.
            _ => {}
        }
        (self.time, self.done) = (Nanos::ZERO, Some(now));
    }
}

impl Run {
    /// Counts what passed since the last look.
    pub(super) fn count(&mut self, passed: Nanos, is_gap: bool) {
        let limit = self.limiting.limit;
        if self.is_running && (self.spec.hold() == BackgroundHold::Stop || is_gap) {
            // What runs all the time at a limit has the disk for a part of it.
            let ran = limit.map_or(passed, |limit| limit.part_of(passed));
            self.limiting.was_limited |= limit.is_some() && passed > Nanos::ZERO;
            self.ran += ran;
            self.ran_beside += if is_gap { Nanos::ZERO } else { ran };
            self.ran_in_all += ran;
        }
        if self.spec.kind == Kind::BtrfsScrub {
            let (place, before) = (&self.place, self.before.done_items);
            let done = || place.progress().map_or(before, |progress| progress.done);
            self.limiting.rate.passed(passed, self.is_running && limit.is_none(), done);
        }
    }

    /// The limit at which it has its share beside others without being stopped; nothing in a gap, while others have the turn, or where it cannot
    /// be limited.
    pub(super) fn limit_beside(&mut self, chance: Chance, sys: &Path) -> Option<Limit> {
        let is_gap = chance.is_gap();
        // After the next gap it is tried again.
        self.limiting.has_failed &= !is_gap;
        let is_to_be = self.spec.kind == Kind::BtrfsScrub && self.wants() && chance != Chance::Wait;
        if !is_to_be || self.limiting.has_failed {
            return None;
        }
        let share = self.share_of_chunk(is_gap);
        let limit = Limit::of(share.filter(|_| !is_gap)?, &self.limiting.rate);
        match self.limiting.limit {
            Some(in_force) if in_force.is_near(limit) => Some(in_force),
            Some(_) => Some(limit),
            None => self.knobs(sys).map(|_| limit),
        }
    }

    /// The part of the time that it has beside others: until the end of its chunk also when it is to have gaps alone again. A gap puts it ahead
    /// of the plan, and the chunk would be lost by what was gained.
    fn share_of_chunk(&mut self, is_gap: bool) -> Option<u16> {
        self.limiting.begun = match (self.duty.pace, self.limiting.begun) {
            (BackgroundPace::Share(share), _) if !is_gap => Some((share, None)),
            (BackgroundPace::Share(_), begun) => begun,
            // From now on it has gaps alone: this is the chunk.
            (BackgroundPace::Gaps, Some((share, None))) if self.is_running => Some((share, Some(self.position().0))),
            (BackgroundPace::Gaps, Some((share, Some(position)))) if self.is_running => {
                // In a gap it makes no difference yet, and looking costs.
                Some((share, Some(position))).filter(|_| is_gap || position == self.position().0)
            }
            _ => None,
        };
        self.limiting.begun.map(|(share, _)| share)
    }

    /// It can be limited where it has to run beside others, as far as that is known.
    pub(super) fn can_be_limited(&self, sys: &Path) -> bool {
        self.spec.kind == Kind::BtrfsScrub && !self.limiting.has_failed && self.knobs(sys).is_some()
    }

    /// The knobs of its file system, by what is written on that: opening its path here might take long.
    fn knobs(&self, sys: &Path) -> Option<Vec<PathBuf>> {
        scrub_speed::knobs(self.spec.identity.lasting?.file_system, sys)
    }

    /// Limits it, or lets it run as its file system's knobs did before.
    pub(super) fn set_limit(&mut self, limit: Option<Limit>, sys: &Path) -> Result<(), WorkError> {
        let Some(limit) = limit else { return self.lift_limit() };
        let outcome = self.write_limit(limit, sys);
        if outcome.is_err() {
            self.limiting.has_failed = true;
            // It is tried again when it is stopped, at the next look.
            let _ = self.lift_limit();
        } else {
            self.limiting.limit = Some(limit);
        }
        outcome
    }

    fn write_limit(&self, limit: Limit, sys: &Path) -> Result<(), WorkError> {
        let kept = scrub_speed::kept(&self.place.runtime);
        let gone = || WorkError::Absent(format!("nothing limits scrubs of {} any more", self.spec.path.display()));
        let knobs = self.knobs(sys).ok_or_else(gone)?;
        let limits = Limits::of(knobs, limit.bytes, read(&kept).as_ref())?;
        replace(&kept, &limits, true)?;
        limits.set()
    }

    /// Puts back what its file system's knobs held. What could not be put back stays written down, and it is tried again at the next look.
    pub(super) fn lift_limit(&mut self) -> Result<(), WorkError> {
        self.limiting.limit = None;
        if self.spec.kind == Kind::BtrfsScrub { scrub_speed::put_back(&self.place.runtime) } else { Ok(()) }
    }

    /// It is limited, or not, as it was told last.
    pub(super) fn is_limited_as_told(&self) -> bool {
        if self.spec.kind != Kind::BtrfsScrub {
            return true;
        }
        let limits = read::<Limits>(&scrub_speed::kept(&self.place.runtime));
        match self.limiting.limit {
            Some(_) => limits.is_some_and(|limits| limits.are_set()),
            None => limits.is_none(),
        }
    }
}
