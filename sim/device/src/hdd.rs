//! A hard disk under way: the queue, the arm, the buffer.

use crate::device::{Completion, DeviceModel, Kind, Request, SECTOR_BYTES, Statistics, sectors_within};
use crate::mechanism::Mechanism;
use crate::profile::{HddProfile, Profile};
use crate::random::Random;
use minerva_model::Nanos;
use std::collections::VecDeque;

/// A hard disk.
pub(crate) struct Hdd {
    queue_depth: u32,
    mechanism: Mechanism,
    overhead_ns: u64,
    age_max_ns: u64,
    waiting: Vec<Waiting>,
    serving: Option<Completion>,
    done: VecDeque<Completion>,
    statistics: Statistics,
}

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
            overhead_ns: (hdd.overhead.read_miss_ms[0] * 1e6) as u64,
            age_max_ns: (hdd.age_ms_max * 1e6) as u64,
            waiting: Vec::with_capacity(profile.queue_depth as usize),
            serving: None,
            done: VecDeque::with_capacity(profile.queue_depth as usize + 1),
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
    }

    /// Takes the next request, if the disk is free and there is one.
    fn start(&mut self, at_ns: u64) {
        if self.serving.is_some() || self.waiting.is_empty() {
            return;
        }
        let index = self.choose(at_ns);
        let next = self.waiting.remove(index);
        let done_ns = self.serve(at_ns, &next);
        self.statistics.busy_time += Nanos(done_ns - at_ns);
        self.serving = Some(Completion { tag: next.tag, at: Nanos(done_ns) });
    }

    /// The request to serve next: the one the heads reach first, unless the oldest has waited too long.
    fn choose(&self, at_ns: u64) -> usize {
        if self.waiting.len() == 1 || at_ns.saturating_sub(self.waiting[0].since_ns) >= self.age_max_ns {
            return 0;
        }
        (0..self.waiting.len())
            .min_by_key(|index| {
                let waiting = &self.waiting[*index];
                let to = self.mechanism.geometry.position(waiting.first);
                let reach = self.mechanism.reach(at_ns, &to, waiting.kind == Kind::Write);
                reach.seek_ns + reach.rotation_ns
            })
            .unwrap_or(0)
    }

    fn serve(&mut self, at_ns: u64, request: &Waiting) -> u64 {
        let mut clock_ns = at_ns + self.overhead_ns;
        let bytes = request.count * SECTOR_BYTES;
        match request.kind {
            Kind::Read => {
                self.statistics.reads += 1;
                self.statistics.read_bytes += bytes;
            }
            Kind::Write => {
                self.statistics.writes += 1;
                self.statistics.write_bytes += bytes;
            }
            Kind::Flush => self.statistics.flushes += 1,
            Kind::Discard => self.statistics.discards += 1,
        }
        if matches!(request.kind, Kind::Flush | Kind::Discard) {
            return clock_ns;
        }
        let (mut first, end) = (request.first, request.first + request.count);
        while first < end {
            let to = self.mechanism.geometry.position(first);
            let reach = self.mechanism.reach(clock_ns, &to, request.kind == Kind::Write);
            let run = u64::from(to.left_on_track).min(end - first);
            let transfer_ns = self.mechanism.angle_ns(to.sector_angle.saturating_mul(run as u32));
            self.mechanism.arrive(&to);
            self.statistics.seeks += u64::from(reach.moves);
            self.statistics.seek_time += Nanos(reach.seek_ns);
            self.statistics.rotation_time += Nanos(reach.rotation_ns);
            self.statistics.transfer_time += Nanos(transfer_ns);
            clock_ns += reach.seek_ns + reach.rotation_ns + transfer_ns;
            first += run;
        }
        clock_ns
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
