//! A disk behind the path that [`Host`] describes, for the simulated arm.

use crate::host::Host;
use crate::stalls::Stalls;
use minerva_model::Nanos;
use minerva_sim_device::{Completion, DeviceModel, Request, Statistics};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Requests that a loop device takes at once (`drivers/block/loop.c`, parameter `hw_queue_depth`).
const LOOP_DEPTH: u32 = 128;

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
