//! A hard disk under way: queue, electronics, buffer and arm.
//!
//! Requests are served one at a time. A read that the buffer holds costs overhead and the cable; any other moves the
//! arm, and afterwards the disk reads on into the segment until the arm is needed elsewhere or the limit is reached. With
//! write-back, a write is complete when its data is in the buffer; the disk brings it to the medium when it has nothing
//! else to do, before a flush completes, and when the buffer is full.
//!
//! The background is computed when somebody looks: what the arm did since is a function of the instants of the
//! requests alone, so it costs nothing while nobody asks.

mod reading;
mod writing;

use crate::cache::Cache;
use crate::device::{Completion, DeviceModel, Kind, Request, SECTOR_BYTES, Statistics, sectors_within};
use crate::mechanism::Mechanism;
use crate::profile::{CacheProfile, HddProfile, Profile, WriteBack};
use crate::random::Random;
use crate::timing::Timing;
use minerva_model::Nanos;
use reading::ReadingAhead;
use std::collections::VecDeque;
use writing::{DIRTY_RUNS_MAX, Dirty};

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

    fn discard(&mut self, at_ns: u64, first: u64, count: u64) -> u64 {
        self.statistics.discards += 1;
        self.follow(at_ns);
        if self.ahead.is_none() {
            self.cache.forget(first, first + count);
        }
        at_ns + self.timing.write_miss_ns[self.last_was_write]
    }
}

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
