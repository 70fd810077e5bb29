//! Reads: from the buffer, from the medium, and ahead.

use super::Hdd;
use crate::device::SECTOR_BYTES;
use crate::mechanism::Run;
use crate::profile::ReadAhead;
use minerva_model::Nanos;

/// The disk fills a segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadingAhead {
    run: Run,
    pub(super) segment: usize,
    /// One past the last sector it is to read.
    pub(super) limit: u64,
}

/// How much of a read the buffer answers.
enum Found {
    /// Everything is there, or will be when the reading ahead under way has passed it.
    All(usize),
    /// The first part is there; the rest must be read.
    Part(usize),
    Nothing,
}

impl Hdd {
    /// What the buffer has for a read at `at_ns`.
    fn look_up(&mut self, at_ns: u64, first: u64, count: u64) -> Found {
        self.follow(at_ns);
        let end = first + count;
        if let Some(ahead) = &self.ahead {
            let segment = self.cache.get(ahead.segment);
            let within = segment.start <= first && first < segment.end;
            // What is about to pass under the head is nearer than anything a new seek could reach.
            let about_to_pass = self.policy.read_hits_ahead && segment.end <= first && first < ahead.limit;
            if within || about_to_pass {
                return Found::All(ahead.segment);
            }
        }
        match self.cache.find(first, self.policy.read_hits_on_writes) {
            Some(index) if self.cache.get(index).end >= end => Found::All(index),
            Some(index) => Found::Part(index),
            None => Found::Nothing,
        }
    }

    pub(super) fn read(&mut self, at_ns: u64, first: u64, count: u64) -> u64 {
        self.statistics.reads += 1;
        self.statistics.read_bytes += count * SECTOR_BYTES;
        let after = std::mem::take(&mut self.last_was_write);
        let cable_ns = self.timing.cable_read_ns(count);
        self.statistics.transfer_time += Nanos(cable_ns);
        let done_ns = match self.look_up(at_ns, first, count) {
            Found::All(index) => {
                self.statistics.cache_hits += 1;
                self.cache.touch(index);
                let from_ns = at_ns + self.timing.read_hit_ns[after];
                self.read_buffered(at_ns + self.timing.read_miss_ns[after], from_ns, index, first, count)
            }
            Found::Part(index) => {
                self.statistics.cache_hits += 1;
                self.cache.touch(index);
                let rest = self.cache.get(index).end;
                let arm_ns = at_ns + self.timing.read_miss_ns[after];
                let passed_ns = self.read_medium(arm_ns, rest, first + count, Some(index)).1;
                let from_ns = at_ns + self.timing.read_hit_ns[after];
                (from_ns + cable_ns).max(passed_ns + self.timing.cable_read_ns(1))
            }
            Found::Nothing => {
                let arm_ns = at_ns + self.timing.read_miss_ns[after];
                let (ready_ns, passed_ns) = self.read_medium(arm_ns, first, first + count, None);
                let from_ns = (ready_ns + self.timing.reconnect_ns).max(arm_ns);
                (from_ns + cable_ns).max(passed_ns + self.timing.cable_read_ns(1))
            }
        };
        done_ns + self.timing.read_completion_ns
    }

    /// A read whose data is in the buffer or on its way there. Answers when the cable has carried it.
    fn read_buffered(&mut self, arm_ns: u64, from_ns: u64, index: usize, first: u64, count: u64) -> u64 {
        let end = first + count;
        let limit = self.ahead_limit(index, first, count);
        let mut passed_ns = 0;
        match &mut self.ahead {
            Some(ahead) if ahead.segment == index => {
                ahead.limit = ahead.limit.max(limit).max(end);
                if end > self.cache.get(index).end {
                    passed_ns = ahead.run.passed_ns(&mut self.mechanism, end);
                    self.cache.extend(index, end);
                }
            }
            _ if self.policy.read_ahead_after_hit && limit > self.cache.get(index).end => {
                let start = self.cache.get(index).end;
                self.begin_reading_ahead(arm_ns, start, index, limit);
            }
            _ => {}
        }
        (from_ns + self.timing.cable_read_ns(count)).max(passed_ns + self.timing.cable_read_ns(1))
    }

    fn begin_reading_ahead(&mut self, arm_ns: u64, start: u64, segment: usize, limit: u64) {
        let start_ns = self.take_arm(arm_ns);
        let (run, reach, _) = Run::start(&mut self.mechanism, start_ns, start, false);
        self.statistics.seeks += u64::from(reach.moves);
        self.ahead = Some(ReadingAhead { run, segment, limit });
        self.arm_free_ns = start_ns;
    }

    /// Moves the arm and reads `first..end`, then goes on reading ahead. Answers when the cable may start and when the
    /// last sector has passed. `into` continues a segment; otherwise the oldest is replaced.
    fn read_medium(&mut self, arm_ns: u64, first: u64, end: u64, into: Option<usize>) -> (u64, u64) {
        let start_ns = self.take_arm(arm_ns);
        let (mut run, reach, position) = Run::start(&mut self.mechanism, start_ns, first, false);
        self.statistics.seeks += u64::from(reach.moves);
        self.statistics.seek_time += Nanos(reach.seek_ns);
        self.statistics.rotation_time += Nanos(reach.rotation_ns);
        let begun_ns = start_ns + reach.total_ns();
        let watermark = ((end - first) as f64 * self.policy.read_watermark) as u64;
        let ready_ns = run.passed_ns(&mut self.mechanism, first + watermark.clamp(1, end - first));
        let mut passed_ns = run.passed_ns(&mut self.mechanism, end);
        if self.policy.zero_latency_read && end - first <= u64::from(position.left_on_track) {
            // The head falls into the run: a turn later everything has passed, in two parts.
            passed_ns = passed_ns.min(start_ns + reach.seek_ns + self.mechanism.turn_ns()).max(ready_ns);
        }
        self.statistics.transfer_time += Nanos(passed_ns - begun_ns);
        self.arm_free_ns = passed_ns;
        let before = if self.policy.keeps_passing_sectors && into.is_none() {
            let passing = self.mechanism.sectors_in(reach.rotation_ns, position.sector_angle);
            // Spares and what is unused at the front of a zone have no address.
            passing.min(u64::from(position.before_on_track)).min(first)
        } else {
            0
        };
        let Some(segment) = into.or_else(|| self.cache.replace(first - before, false)) else {
            return (ready_ns, passed_ns);
        };
        self.cache.extend(segment, end);
        let limit = self.ahead_limit(segment, first, end - first);
        if limit > end {
            self.ahead = Some(ReadingAhead { run, segment, limit });
        }
        (ready_ns, passed_ns)
    }

    /// One past the last sector that a read of `first..first + count` makes the disk read ahead.
    fn ahead_limit(&self, segment: usize, first: u64, count: u64) -> u64 {
        let end = first + count;
        let sectors_max = u64::from(self.policy.read_ahead_sectors_max);
        let all = self.mechanism.geometry.sectors;
        let limit = match self.policy.read_ahead {
            ReadAhead::Off => end,
            ReadAhead::Sectors => end + sectors_max,
            ReadAhead::Track | ReadAhead::Cylinder => {
                let position = self.mechanism.geometry.position(end.min(all - 1));
                let tracks_left = match self.policy.read_ahead {
                    ReadAhead::Cylinder => u64::from(self.mechanism.geometry.heads - 1 - position.head),
                    _ => 0,
                };
                let track_end = end + u64::from(position.left_on_track);
                let there = track_end + tracks_left * u64::from(position.left_on_track + position.before_on_track);
                if sectors_max == 0 { there } else { there.min(end + sectors_max) }
            }
            ReadAhead::TrackThenNext => {
                let position = self.mechanism.geometry.position(end.min(all - 1));
                let track_end = end + u64::from(position.left_on_track);
                let track_start = end - u64::from(position.before_on_track).min(end);
                let spans = self.cache.get(segment).start < track_start;
                track_end + if spans { u64::from(position.left_on_track + position.before_on_track) } else { 0 }
            }
        };
        limit.min(all)
    }

    /// Brings the segment being filled up to date.
    pub(super) fn follow(&mut self, at_ns: u64) {
        if let Some(ahead) = &mut self.ahead {
            let reached = ahead.run.reached(&mut self.mechanism, at_ns, ahead.limit);
            self.cache.extend(ahead.segment, reached);
            if reached >= ahead.limit {
                self.arm_free_ns = self.arm_free_ns.max(ahead.run.passed_ns(&mut self.mechanism, ahead.limit));
                self.ahead = None;
            }
        }
    }

    /// Ends the reading ahead; answers when the arm can move, at `at_ns` or later.
    pub(super) fn take_arm(&mut self, at_ns: u64) -> u64 {
        self.follow(at_ns);
        self.ahead = None;
        self.arm_free_ns.max(at_ns)
    }
}
