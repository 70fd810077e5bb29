//! A hard disk under way: queue, electronics, buffer and arm.
//!
//! Requests are served one at a time. A read that the buffer holds costs overhead and the cable; any other moves the
//! arm, and afterwards the disk reads on into the segment until the arm is needed elsewhere or the limit is reached. With
//! write-back, a write is complete when its data is in the buffer; the disk brings it to the medium when it has nothing
//! else to do, before a flush completes, and when the buffer is full.
//!
//! The background is computed when somebody looks: what the arm did since is a function of the instants of the
//! requests alone, so it costs nothing while nobody asks.

use crate::cache::Cache;
use crate::device::{Completion, DeviceModel, Kind, Request, SECTOR_BYTES, Statistics, sectors_within};
use crate::mechanism::{Mechanism, Run};
use crate::profile::{CacheProfile, HddProfile, Profile, ReadAhead, WriteBack};
use crate::random::Random;
use crate::timing::Timing;
use minerva_model::Nanos;
use std::collections::VecDeque;

/// A hard disk.
pub(crate) struct Hdd {
    queue_depth: u32,
    mechanism: Mechanism,
    cache: Cache,
    policy: CacheProfile,
    timing: Timing,
    /// The arm is busy, other than with reading ahead, until then.
    arm_free_ns: u64,
    ahead: Option<ReadingAhead>,
    /// Writes that are in the buffer only.
    dirty: Vec<Dirty>,
    dirty_sectors: u64,
    waiting: Vec<Waiting>,
    serving: Option<Completion>,
    done: VecDeque<Completion>,
    last_was_write: usize,
    statistics: Statistics,
}

/// A request that the disk has taken but not begun.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    since_ns: u64,
    tag: u64,
    kind: Kind,
    first: u64,
    count: u64,
}

/// The disk fills a segment.
#[derive(Clone, Copy, Debug)]
struct ReadingAhead {
    run: Run,
    segment: usize,
    limit: u64,
}

/// A run of sectors that must still be written.
#[derive(Clone, Copy, Debug)]
struct Dirty {
    first: u64,
    count: u64,
    /// When the arm may start on it, and when its data is complete in the buffer.
    ready_ns: u64,
    received_ns: u64,
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
    pub(crate) fn new(profile: &Profile, hdd: &HddProfile, sectors: u64, seed: u64) -> Self {
        let first_angle = Random::new(seed).next() as u32;
        Self {
            queue_depth: profile.queue_depth,
            mechanism: Mechanism::new(hdd, sectors, first_angle),
            cache: Cache::new(hdd.cache.segments, hdd.cache.segment_sectors),
            policy: hdd.cache,
            timing: Timing::new(profile, hdd),
            arm_free_ns: 0,
            ahead: None,
            dirty: Vec::with_capacity(DIRTY_RUNS_MAX),
            dirty_sectors: 0,
            waiting: Vec::with_capacity(profile.queue_depth as usize),
            serving: None,
            done: VecDeque::with_capacity(profile.queue_depth as usize + 1),
            last_was_write: 0,
            statistics: Statistics::default(),
        }
    }

    /// Lets the disk run until `now_ns`.
    fn advance(&mut self, now_ns: u64) {
        while let Some(serving) = self.serving.filter(|serving| serving.at.0 <= now_ns) {
            self.done.push_back(serving);
            self.serving = None;
            self.start(serving.at.0);
        }
        if self.serving.is_none() {
            self.work_in_background(now_ns);
        }
    }

    /// Takes the next request, if the disk is free and there is one.
    fn start(&mut self, at_ns: u64) {
        if self.serving.is_some() || self.waiting.is_empty() {
            return;
        }
        let index = self.choose(at_ns);
        let next = self.waiting.remove(index);
        let done_ns = match next.kind {
            Kind::Read => self.read(at_ns, next.first, next.count),
            Kind::Write => self.write(at_ns, next.first, next.count),
            Kind::Flush => self.flush(at_ns),
            Kind::Discard => self.discard(at_ns, next.first, next.count),
        };
        self.statistics.busy_time += Nanos(done_ns - at_ns);
        self.serving = Some(Completion { tag: next.tag, at: Nanos(done_ns) });
    }

    /// The request to serve next: the one the heads reach first, unless the oldest has waited too long. A flush is never
    /// passed over, nor does it pass what came before it.
    fn choose(&self, at_ns: u64) -> usize {
        let oldest = self.waiting[0];
        let aged = at_ns.saturating_sub(oldest.since_ns) >= self.timing.age_max_ns;
        if self.waiting.len() == 1 || aged || oldest.kind == Kind::Flush {
            return 0;
        }
        let mut best = (u64::MAX, 0);
        for (index, waiting) in self.waiting.iter().enumerate() {
            if waiting.kind == Kind::Flush {
                break;
            }
            best = best.min((self.estimate_ns(at_ns, waiting), index));
        }
        best.1
    }

    fn estimate_ns(&self, at_ns: u64, waiting: &Waiting) -> u64 {
        let in_buffer = match waiting.kind {
            Kind::Read => self.cache.find(waiting.first, self.policy.read_hits_on_writes).is_some(),
            Kind::Write => self.policy.write_back != WriteBack::Off && self.dirty.len() < DIRTY_RUNS_MAX,
            Kind::Flush | Kind::Discard => true,
        };
        if in_buffer {
            return 0;
        }
        let write = waiting.kind == Kind::Write;
        let from_ns = (at_ns + self.timing.estimate_ns(write)).max(self.arm_free_ns);
        let to = self.mechanism.geometry.position(waiting.first);
        (from_ns - at_ns) + self.mechanism.reach(from_ns, &to, write).total_ns()
    }

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

    fn read(&mut self, at_ns: u64, first: u64, count: u64) -> u64 {
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
            passing.min(u64::from(position.before_on_track))
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

    fn write(&mut self, at_ns: u64, first: u64, count: u64) -> u64 {
        self.statistics.writes += 1;
        self.statistics.write_bytes += count * SECTOR_BYTES;
        let after = std::mem::replace(&mut self.last_was_write, 1);
        self.follow(at_ns);
        self.cache.forget(first, first + count);
        if let Some(ahead) = &self.ahead
            && first < ahead.limit
            && first + count > self.cache.get(ahead.segment).start
        {
            // What is being read ahead is about to be stale.
            self.ahead = None;
        }
        let cable_ns = self.timing.cable_write_ns(count);
        self.statistics.transfer_time += Nanos(cable_ns);
        if self.policy.write_back == WriteBack::Off {
            let arm_ns = at_ns + self.timing.write_miss_ns[after];
            let received_ns = arm_ns + self.timing.write_prepare_ns + cable_ns;
            let write = Dirty { first, count, ready_ns: arm_ns, received_ns };
            let done_ns = self.write_medium(&write);
            self.keep_written(first, first + count);
            return done_ns.max(received_ns) + self.timing.write_completion_ns;
        }
        let room_ns = self.make_room(at_ns, count);
        let ready_ns = room_ns + self.timing.write_hit_ns[after];
        let received_ns = ready_ns + self.timing.write_prepare_ns + cable_ns;
        match self.dirty.last_mut() {
            Some(last) if last.first + last.count == first => {
                last.count += count;
                last.received_ns = received_ns;
            }
            _ => self.dirty.push(Dirty { first, count, ready_ns, received_ns }),
        }
        self.dirty_sectors += count;
        self.keep_written(first, first + count);
        received_ns + self.timing.write_completion_ns
    }

    fn keep_written(&mut self, first: u64, end: u64) {
        if self.policy.read_hits_on_writes && !self.policy.separate_write_segment {
            if let Some(ahead) = &self.ahead {
                // The segment being filled must not be taken from under the reading.
                self.cache.touch(ahead.segment);
            }
            self.cache.keep_written(first, end);
        }
    }

    /// Writes until the buffer has room for `count` sectors. Answers when it has.
    fn make_room(&mut self, at_ns: u64, count: u64) -> u64 {
        let mut room_ns = at_ns;
        let sectors_max = self.policy.write_sectors_max.max(1);
        let serial = self.policy.write_back == WriteBack::Single && self.arm_free_ns > at_ns;
        while !self.dirty.is_empty()
            && (serial || self.dirty.len() == DIRTY_RUNS_MAX || self.dirty_sectors + count > u64::from(sectors_max))
        {
            room_ns = room_ns.max(self.write_oldest_back(room_ns));
        }
        if serial { room_ns.max(self.arm_free_ns) } else { room_ns }
    }

    fn write_oldest_back(&mut self, at_ns: u64) -> u64 {
        let oldest = self.dirty.remove(0);
        self.dirty_sectors -= oldest.count;
        self.write_medium(&Dirty { ready_ns: oldest.ready_ns.max(at_ns), ..oldest })
    }

    /// Moves the arm and writes. Answers when the last sector is on the medium.
    fn write_medium(&mut self, write: &Dirty) -> u64 {
        let start_ns = self.take_arm(write.ready_ns);
        let (mut run, reach, position) = Run::start(&mut self.mechanism, start_ns, write.first, true);
        self.statistics.seeks += u64::from(reach.moves);
        self.statistics.seek_time += Nanos(reach.seek_ns);
        let on_track = write.count.min(u64::from(position.left_on_track));
        let begin_ns = self.begin_writing_ns(write, on_track, position.sector_angle);
        let least_ns = start_ns + self.timing.write_reach_ns_min;
        let late_ns = run.not_before(&self.mechanism, begin_ns.max(least_ns));
        self.statistics.rotation_time += Nanos(reach.rotation_ns + late_ns);
        let begun_ns = start_ns + reach.total_ns() + late_ns;
        let mut passed_ns = run.passed_ns(&mut self.mechanism, write.first + write.count);
        if self.policy.zero_latency_write && on_track == write.count && late_ns == 0 {
            passed_ns = passed_ns.min(start_ns + reach.seek_ns + self.mechanism.turn_ns()).max(write.received_ns);
        }
        self.statistics.transfer_time += Nanos(passed_ns.saturating_sub(begun_ns));
        self.arm_free_ns = passed_ns;
        passed_ns
    }

    /// When enough of a write is in the buffer for the medium to begin: the first sectors must be there, and each
    /// other one of the first track when its place comes by; a sector that is late costs a turn.
    fn begin_writing_ns(&self, write: &Dirty, on_track: u64, sector_angle: u32) -> u64 {
        let behind_ns =
            |sectors: u64| write.received_ns.saturating_sub(self.timing.cable_write_ns(write.count - sectors));
        let first = u64::from(self.policy.write_begin_sectors).clamp(1, write.count);
        let pass_ns = self.mechanism.sectors_ns(on_track - 1, sector_angle);
        behind_ns(first).max(behind_ns(on_track).saturating_sub(pass_ns))
    }

    fn flush(&mut self, at_ns: u64) -> u64 {
        self.statistics.flushes += 1;
        let mut done_ns = at_ns + self.timing.write_miss_ns[self.last_was_write];
        while !self.dirty.is_empty() {
            done_ns = done_ns.max(self.write_oldest_back(at_ns));
        }
        // A write-back that had begun must be over as well.
        if self.ahead.is_none() { done_ns.max(self.arm_free_ns) } else { done_ns }
    }

    fn discard(&mut self, at_ns: u64, first: u64, count: u64) -> u64 {
        self.statistics.discards += 1;
        self.follow(at_ns);
        if self.ahead.is_none() {
            self.cache.forget(first, first + count);
        }
        at_ns + self.timing.write_miss_ns[self.last_was_write]
    }

    /// Brings the segment being filled up to date.
    fn follow(&mut self, at_ns: u64) {
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
    fn take_arm(&mut self, at_ns: u64) -> u64 {
        self.follow(at_ns);
        self.ahead = None;
        self.arm_free_ns.max(at_ns)
    }

    /// Writes back what fits before `now_ns` while nobody waits. What has begun is not broken off.
    fn work_in_background(&mut self, now_ns: u64) {
        while let Some(oldest) = self.dirty.first().copied() {
            self.follow(now_ns);
            let start_ns = self.arm_free_ns.max(oldest.ready_ns);
            if self.ahead.is_some() || start_ns >= now_ns {
                return;
            }
            self.write_oldest_back(start_ns);
        }
    }
}

/// Runs of dirty sectors the disk keeps track of. Bounds the time of a flush, and of one look through them.
const DIRTY_RUNS_MAX: usize = 64;

impl DeviceModel for Hdd {
    fn capacity_bytes(&self) -> u64 {
        self.mechanism.geometry.sectors * SECTOR_BYTES
    }

    fn queue_depth(&self) -> u32 {
        self.queue_depth
    }

    fn submit(&mut self, now: Nanos, request: Request) {
        self.advance(now.0);
        let (first, count) = sectors_within(&request, self.mechanism.geometry.sectors);
        self.waiting.push(Waiting { since_ns: now.0, tag: request.tag, kind: request.kind, first, count });
        self.start(now.0);
    }

    fn next_completion(&self) -> Option<Nanos> {
        self.done.front().or(self.serving.as_ref()).map(|completion| completion.at)
    }

    fn complete(&mut self, now: Nanos) -> Option<Completion> {
        self.advance(now.0);
        self.done.pop_front()
    }

    fn statistics(&self) -> Statistics {
        self.statistics
    }
}
