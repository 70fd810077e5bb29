//! An ideal disk: fixed service times, one request at a time, and flows that come by a script or always have requests queued.

use minerva_blocksched::{Dispatch, FlowId, Kind, Request, RequestId, Scheduler, ServiceTimes};
use minerva_model::Nanos;
use std::collections::VecDeque;

/// The bytes of a cost unit.
pub(crate) const UNIT_BYTES: u32 = 4096;

/// A request that comes at an instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// When.
    pub(crate) at: Nanos,
    /// Whose.
    pub(crate) flow: u32,
    /// How much.
    pub(crate) units: u32,
}

/// A flow that always has this many requests of this size queued or under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Greedy {
    pub(crate) flow: u32,
    pub(crate) units: u32,
    pub(crate) outstanding: u32,
}

/// A request that was served.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Served {
    pub(crate) request: Request,
    #[allow(dead_code, reason = "each test is a program of its own, and not all look at this")]
    pub(crate) sent: Nanos,
    pub(crate) done: Nanos,
}

/// What a test looks at while the disk runs.
pub(crate) trait Watcher {
    /// A request is queued.
    fn added(&mut self, _request: &Request) {}
    /// A request leaves.
    fn sent(&mut self, _now: Nanos, _request: &Request) {}
}

impl Watcher for () {}

/// The disk, the script and the scheduler.
pub(crate) struct Server<'a> {
    pub(crate) scheduler: &'a mut dyn Scheduler,
    pub(crate) times: ServiceTimes,
    pub(crate) greedy: &'a [Greedy],
    number: u64,
    /// Where each flow goes on: flows are sequential, each in a region of its own.
    places: Vec<u64>,
}

impl<'a> Server<'a> {
    pub(crate) fn new(scheduler: &'a mut dyn Scheduler, times: ServiceTimes, greedy: &'a [Greedy]) -> Self {
        Self { scheduler, times, greedy, number: 0, places: Vec::new() }
    }

    fn add(&mut self, now: Nanos, flow: u32, units: u32, watcher: &mut dyn Watcher) {
        let index = flow as usize;
        if index >= self.places.len() {
            self.places.resize(index + 1, 0);
        }
        let length_bytes = units * UNIT_BYTES;
        let request = Request {
            id: RequestId(self.number),
            flow: FlowId(flow),
            kind: Kind::Read,
            sync: true,
            tag: None,
            offset_bytes: (u64::from(flow) << 40) + self.places[index],
            length_bytes,
            arrived: now,
        };
        self.number += 1;
        self.places[index] += u64::from(length_bytes);
        self.scheduler.add(now, request);
        watcher.added(&request);
    }

    /// Serves until everything that was scripted is served and `until` is reached; what was served, in order.
    pub(crate) fn run(&mut self, arrivals: &[Arrival], until: Nanos, watcher: &mut dyn Watcher) -> Vec<Served> {
        let mut script: VecDeque<Arrival> = arrivals.iter().copied().collect();
        let mut served = Vec::new();
        let mut scripted_left = arrivals.len();
        let mut now = Nanos::ZERO;
        let mut under_way: Option<Served> = None;
        let mut last_flow = None;
        for greedy in self.greedy {
            (0..greedy.outstanding).for_each(|_| self.add(now, greedy.flow, greedy.units, watcher));
        }
        loop {
            while script.front().is_some_and(|arrival| arrival.at <= now) {
                if let Some(arrival) = script.pop_front() {
                    self.add(now, arrival.flow, arrival.units, watcher);
                }
            }
            let mut wake = script.front().map(|arrival| arrival.at);
            if under_way.is_none() {
                match self.scheduler.next(now) {
                    Dispatch::Send(request) => {
                        watcher.sent(now, &request);
                        let seek = if last_flow == Some(request.flow) { Nanos::ZERO } else { self.times.seek };
                        last_flow = Some(request.flow);
                        let units = f64::from(request.length_bytes / UNIT_BYTES);
                        let took = self.times.request + seek + Nanos((units * self.times.unit_ns) as u64);
                        under_way = Some(Served { request, sent: now, done: now + took });
                    }
                    Dispatch::WaitUntil(until) => wake = Some(wake.map_or(until, |wake| wake.min(until))),
                    Dispatch::Idle => {}
                }
            }
            wake = wake.into_iter().chain(under_way.map(|serving| serving.done)).min();
            let Some(wake) = wake.filter(|_| scripted_left > 0 || now < until) else { return served };
            now = now.max(wake);
            if let Some(done) = under_way.filter(|serving| serving.done <= now) {
                under_way = None;
                self.scheduler.complete(now, &done.request);
                served.push(done);
                let flow = done.request.flow.0;
                match self.greedy.iter().find(|greedy| greedy.flow == flow).copied() {
                    Some(greedy) => self.add(now, flow, greedy.units, watcher),
                    None => scripted_left -= 1,
                }
            }
        }
    }
}
