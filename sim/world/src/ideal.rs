//! Servers of queueing theory, against which the simulator itself is tested.

use minerva_model::Nanos;
use minerva_sim_device::{Completion, DeviceModel, Kind, Request, Statistics};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How service times are distributed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Service {
    /// All the same (D).
    Constant(Nanos),
    /// Exponential with this mean (M).
    Exponential(Nanos),
    /// One of two times, the first with this probability (a G whose moments are plain).
    Either {
        /// The first time.
        first: Nanos,
        /// The other.
        second: Nanos,
        /// Probability of the first.
        probability: f64,
    },
    /// So long for each byte: a disk of constant rate.
    PerByte(f64),
}

/// Servers that take requests as they come, without limit, first come, first served.
pub struct Ideal {
    service: Service,
    free_at: BinaryHeap<Reverse<Nanos>>,
    under_way: BinaryHeap<Reverse<(Nanos, u64)>>,
    random: u64,
    statistics: Statistics,
}

impl Ideal {
    /// `servers` of them, at least one; the seed sets the service times.
    pub fn new(service: Service, servers: u32, seed: u64) -> Self {
        Self {
            service,
            free_at: (0..servers.max(1)).map(|_| Reverse(Nanos::ZERO)).collect(),
            under_way: BinaryHeap::new(),
            random: seed,
            statistics: Statistics::default(),
        }
    }

    /// SplitMix64, as a number in (0, 1].
    fn unit(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.random ^ self.random >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (((mixed ^ mixed >> 31) >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    fn draw(&mut self, request: &Request) -> Nanos {
        match self.service {
            Service::Constant(time) => time,
            Service::Exponential(mean) => Nanos((-libm::log(self.unit()) * mean.0 as f64) as u64),
            Service::Either { first, second, probability } => {
                if self.unit() <= probability {
                    first
                } else {
                    second
                }
            }
            Service::PerByte(ns) => Nanos((ns * f64::from(request.length_bytes)) as u64),
        }
    }
}

impl DeviceModel for Ideal {
    fn capacity_bytes(&self) -> u64 {
        1 << 60
    }

    fn queue_depth(&self) -> u32 {
        u32::MAX
    }

    fn submit(&mut self, now: Nanos, request: Request) {
        let time = self.draw(&request);
        let Reverse(free) = self.free_at.pop().unwrap_or(Reverse(now));
        let done = free.max(now) + time;
        self.free_at.push(Reverse(done));
        self.under_way.push(Reverse((done, request.tag)));
        self.statistics.busy_time += time;
        match request.kind {
            Kind::Read => {
                self.statistics.reads += 1;
                self.statistics.read_bytes += u64::from(request.length_bytes);
            }
            Kind::Write => {
                self.statistics.writes += 1;
                self.statistics.write_bytes += u64::from(request.length_bytes);
            }
            Kind::Flush => self.statistics.flushes += 1,
            Kind::Discard => self.statistics.discards += 1,
        }
    }

    fn next_completion(&self) -> Option<Nanos> {
        self.under_way.peek().map(|Reverse((at, _))| *at)
    }

    fn complete(&mut self, now: Nanos) -> Option<Completion> {
        let Reverse((at, tag)) = self.under_way.peek().copied().filter(|Reverse((at, _))| *at <= now)?;
        self.under_way.pop();
        Some(Completion { tag, at })
    }

    fn statistics(&self) -> Statistics {
        self.statistics
    }
}
