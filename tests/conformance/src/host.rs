//! What this host adds to a request of the emulated disk: system calls, the loop device's worker, FUSE, two changes of
//! process and a late timer. Measured by the real arm on two calibration disks, and played by the simulated arm.
//!
//! Each request passes a station that serves one at a time (copying and thinking of the FUSE threads), and besides takes
//! some time during which others may pass: half of it on the way to the disk and half on the way back. Rare long delays are
//! stalls of the host, which hit whatever is on its way at the time.

use crate::stalls::Stalls;
use minerva_model::Nanos;
use minerva_sim_device::{Completion, DeviceModel, Request, Statistics};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Requests that a loop device takes at once (`drivers/block/loop.c`, parameter `hw_queue_depth`).
const LOOP_DEPTH: u32 = 128;

/// The disk on which delays are measured takes this long, one request at a time.
pub(crate) const CONSTANT_US: f64 = 1000.0;
/// A delay of this many times what nine in ten do not exceed is a stall.
const STALL_FACTOR: f64 = 2.0;

/// What was measured of a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Of the station, for each request, in nanoseconds.
    pub station_ns: f64,
    /// Of the station, for each byte, in nanoseconds.
    pub station_ns_per_byte: f64,
    /// Everything else: pairs of a part of all requests, rising to 1, and the nanoseconds that it did not exceed.
    pub delay_ns: Vec<(f64, f64)>,
}

impl Host {
    /// The mean of two measurements, point by point: what it was between them.
    pub fn between(&self, later: &Self) -> Self {
        let mean = |left: f64, right: f64| f64::midpoint(left, right);
        let delays = self.delay_ns.iter().zip(&later.delay_ns);
        Self {
            station_ns: mean(self.station_ns, later.station_ns),
            station_ns_per_byte: mean(self.station_ns_per_byte, later.station_ns_per_byte),
            delay_ns: delays.map(|((part, left), (_, right))| (*part, mean(*left, *right))).collect(),
        }
    }

    /// The time of the station for a request.
    fn station(&self, length_bytes: u32) -> Nanos {
        Nanos((self.station_ns + self.station_ns_per_byte * f64::from(length_bytes)) as u64)
    }

    /// The delay of one request; `part` is uniform over 0 to 1. On straight lines between the measured points.
    fn delay(&self, part: f64) -> Nanos {
        let right = self.delay_ns.partition_point(|(below, _)| *below < part);
        let Some((high_part, high)) = self.delay_ns.get(right).or(self.delay_ns.last()).copied() else {
            return Nanos::ZERO;
        };
        let (low_part, low) = right.checked_sub(1).map_or((0.0, high), |left| self.delay_ns[left]);
        let along = ((part - low_part) / (high_part - low_part).max(f64::EPSILON)).clamp(0.0, 1.0);
        Nanos((low + along * (high - low)).max(0.0) as u64)
    }

    /// How long a process takes to learn of an answer: the last part of the way back, above the block layer, which meanwhile
    /// could serve others. The way has four changes of process of about the same length; this is one of them.
    pub(crate) fn wake(&self) -> Nanos {
        Nanos(self.delay(0.5).0 / 4)
    }

    /// Delays from this part on are stalls.
    fn stalls_from(&self) -> f64 {
        let cut_ns = STALL_FACTOR * self.delay(0.9).0 as f64;
        let Some(right) = self.delay_ns.iter().position(|(_, delay)| *delay > cut_ns) else { return 1.0 };
        let (high_part, high) = self.delay_ns[right];
        let (low_part, low) = right.checked_sub(1).map_or((0.0, 0.0), |left| self.delay_ns[left]);
        low_part + (high_part - low_part) * (cut_ns - low) / (high - low)
    }

    /// The mean time from one stall to the next; none without stalls.
    pub(crate) fn stall_gap_mean_ns(&self) -> Option<f64> {
        let period_ns = CONSTANT_US * 1e3 + self.station_ns + self.delay_mean().0 as f64;
        let rare = 1.0 - self.stalls_from();
        (rare > 0.0).then(|| period_ns / rare)
    }

    /// How long a stall is; `part` is uniform over 0 to 1.
    pub(crate) fn stall(&self, part: f64) -> Nanos {
        let from = self.stalls_from();
        self.delay(from + (1.0 - from) * part).since(self.delay(0.5))
    }

    /// The mean delay, for people.
    pub fn delay_mean(&self) -> Nanos {
        const STEPS: u32 = 1000;
        let sum: u64 = (0..STEPS).map(|step| self.delay((f64::from(step) + 0.5) / f64::from(STEPS)).0).sum();
        Nanos(sum / u64::from(STEPS))
    }
}

/// A disk behind this host's path to it.
pub struct HostedDisk {
    disk: Box<dyn DeviceModel>,
    host: Host,
    random: Pcg64Mcg,
    stalls: Stalls,
    /// Delays up to this part are drawn; the others are stalls.
    ordinary_part: f64,
    station_free_at: Nanos,
    /// Requests on their way to the disk, by the instant at which they are there, with the delay of their way back.
    coming: VecDeque<(Nanos, Request, Nanos)>,
    /// At the disk: tag and delay of the way back.
    at_disk: Vec<(u64, Nanos)>,
    /// On their way back, by the instant at which they are answered.
    leaving: BinaryHeap<Reverse<(Nanos, u64)>>,
}

impl HostedDisk {
    /// Puts `disk` behind `host`; `seed` draws the delays.
    pub fn new(disk: Box<dyn DeviceModel>, host: Host, seed: u64) -> Self {
        Self {
            disk,
            stalls: Stalls::new(host.clone(), seed),
            ordinary_part: host.stalls_from(),
            host,
            random: Pcg64Mcg::seed_from_u64(seed),
            station_free_at: Nanos::ZERO,
            coming: VecDeque::new(),
            at_disk: Vec::new(),
            leaving: BinaryHeap::new(),
        }
    }

    /// Whether the disk has room for the request that is to reach it next, and if so when it does.
    fn next_arrival(&self) -> Option<Nanos> {
        let room = self.at_disk.len() < self.disk.queue_depth() as usize;
        self.coming.front().filter(|_| room).map(|(at, ..)| *at)
    }

    /// Lets happen what happens until `now`, in order.
    fn advance(&mut self, now: Nanos) {
        loop {
            let (arrival, completion) = (self.next_arrival(), self.disk.next_completion());
            let due = [arrival, completion].into_iter().flatten().min();
            let Some(due) = due.filter(|due| *due <= now) else { return };
            while let Some(done) = self.disk.complete(due) {
                let Some(index) = self.at_disk.iter().position(|(tag, _)| *tag == done.tag) else { continue };
                let (tag, back) = self.at_disk.swap_remove(index);
                // One that waited for room enters when its place became free.
                if let Some((at, ..)) = self.coming.front_mut() {
                    *at = (*at).max(due);
                }
                let at = self.stalls.after(due, due + back);
                self.leaving.push(Reverse((at, tag)));
            }
            if let Some(at) = self.next_arrival().filter(|at| *at <= due)
                && let Some((_, request, back)) = self.coming.pop_front()
            {
                self.at_disk.push((request.tag, back));
                self.disk.submit(at.max(due), request);
            }
        }
    }
}

impl DeviceModel for HostedDisk {
    fn capacity_bytes(&self) -> u64 {
        self.disk.capacity_bytes()
    }

    fn queue_depth(&self) -> u32 {
        LOOP_DEPTH
    }

    fn submit(&mut self, now: Nanos, request: Request) {
        self.advance(now);
        let delay = self.host.delay(self.random.random_range(0.0..1.0) * self.ordinary_part);
        let there = Nanos(delay.0 / 2);
        self.station_free_at = self.station_free_at.max(now) + self.host.station(request.length_bytes);
        let last = self.coming.back().map_or(Nanos::ZERO, |(at, ..)| *at);
        // One does not overtake another on the way there: the loop device and FUSE are queues.
        let at = self.stalls.after(now, self.station_free_at + there).max(last);
        // The process takes the rest.
        let back = delay.since(there + self.host.wake());
        self.coming.push_back((at, request, back));
        self.advance(now);
    }

    /// The next instant at which anything happens: a request may complete then, or only reach the disk.
    fn next_completion(&self) -> Option<Nanos> {
        let answer = self.leaving.peek().map(|Reverse((at, _))| *at);
        [self.next_arrival(), self.disk.next_completion(), answer].into_iter().flatten().min()
    }

    fn complete(&mut self, now: Nanos) -> Option<Completion> {
        self.advance(now);
        let Reverse((at, tag)) = self.leaving.peek().copied().filter(|Reverse((at, _))| *at <= now)?;
        self.leaving.pop();
        Some(Completion { tag, at })
    }

    fn statistics(&self) -> Statistics {
        self.disk.statistics()
    }
}

#[cfg(test)]
mod tests {
    use super::{Host, HostedDisk};
    use minerva_model::Nanos;
    use minerva_sim_device::{DeviceModel, Kind, Request, profile};

    fn times(host: Host, count: u64) -> Vec<u64> {
        let mut disk = HostedDisk::new(profile("sata-ssd").unwrap().build(None, 1), host, 1);
        for tag in 0..count {
            let request = Request { tag, kind: Kind::Read, offset_bytes: tag << 20, length_bytes: 4096 };
            disk.submit(Nanos::ZERO, request);
        }
        let mut done = Vec::new();
        while let Some(due) = disk.next_completion() {
            while let Some(completion) = disk.complete(due) {
                assert_eq!(completion.at, due);
                done.push(due.0);
            }
        }
        done
    }

    #[test]
    fn a_delay_is_added_once_and_the_station_serves_one_at_a_time() {
        let bare = times(Host::default(), 1)[0];
        let slow = Host { station_ns: 1e6, delay_ns: vec![(1.0, 300_001.0)], ..Host::default() };
        let wake = slow.wake().0;
        assert_eq!(times(slow.clone(), 1), [bare + 1_300_001 - wake]);
        let many = times(slow, 200);
        assert_eq!(many.len(), 200, "beyond the disk's depth they wait, and none is lost");
        assert_eq!(many[199], 200_000_000 + 300_001 - wake + bare);
    }

    #[test]
    fn delays_lie_on_lines_between_the_measured_points() {
        let host = Host { delay_ns: vec![(0.5, 100.0), (1.0, 200.0)], ..Host::default() };
        assert_eq!([0.1, 0.5, 0.75, 1.0].map(|part| host.delay(part).0), [100, 100, 150, 200]);
        assert_eq!(Host::default().delay(0.3), Nanos::ZERO);
    }
}
