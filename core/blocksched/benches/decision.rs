//! What a decision costs, and how it grows with the number of flows.
//!
//! One decision is: a request is added, the scheduler says which one goes, it completes. Every flow has one request queued
//! all the time. With `MINERVA_FIGURE` set, JSON lines of the figure `decision-cost` go to standard output.

#![expect(clippy::disallowed_methods, clippy::disallowed_macros, reason = "a measurement reads the clock and prints")]

use criterion::{BenchmarkId, Criterion};
use minerva_blocksched::{
    BuildOptions, Contract, Dispatch, FlowId, FlowParameters, GroupId, Kind, Request, RequestId, Scheduler,
    SchedulerName,
};
use minerva_model::Nanos;
use std::hint::black_box;
use std::time::Instant;

/// It has one request at once.
const DISK: BuildOptions = BuildOptions::for_disk(true, 1);

/// A scheduler with every flow backlogged, and the world around it.
struct World {
    scheduler: Box<dyn Scheduler>,
    now: Nanos,
    requests: u64,
}

impl World {
    fn new(name: SchedulerName, flows: u32) -> Self {
        let mut world = Self { scheduler: name.build(DISK), now: Nanos::ZERO, requests: 0 };
        for flow in 0..flows {
            let contract =
                Contract { rate_per_second: f64::from(10 + flow % 90), burst: 5.0, delay: Nanos::from_millis(100) };
            let parameters = FlowParameters {
                weight: 1 + flow % 1000,
                group: GroupId(flow % 16),
                contract: Some(contract),
                reservation_per_second: f64::from(flow % 10),
                tag_default: 1 + (flow % 254) as u8,
                ..FlowParameters::default()
            };
            world.scheduler.set_flow(world.now, FlowId(flow), parameters);
            world.add(flow);
        }
        world
    }

    fn add(&mut self, flow: u32) {
        self.requests += 1;
        let request = Request {
            id: RequestId(self.requests),
            flow: FlowId(flow),
            kind: Kind::Read,
            sync: true,
            tag: None,
            // Scattered, but the same in every run.
            offset_bytes: self.requests.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 24 << 12,
            length_bytes: 4096,
            arrived: self.now,
        };
        self.scheduler.add(self.now, request);
    }

    fn decide(&mut self) {
        loop {
            self.now += Nanos(100_000);
            match self.scheduler.next(self.now) {
                Dispatch::Send(request) => {
                    self.now += Nanos(100_000);
                    self.scheduler.complete(self.now, &request);
                    self.add(request.flow.0);
                    black_box(&request);
                    return;
                }
                Dispatch::WaitUntil(until) => self.now = self.now.max(until),
                Dispatch::Idle => return,
            }
        }
    }
}

/// Nanoseconds a decision, the best of several rounds: what disturbs a round only ever makes it longer.
fn nanos_a_decision(name: SchedulerName, flows: u32) -> f64 {
    let mut world = World::new(name, flows);
    let rounds = 5;
    let decisions = 100_000u32.max(2 * flows);
    (0..rounds)
        .map(|_| {
            let began = Instant::now();
            for _ in 0..decisions {
                world.decide();
            }
            began.elapsed().as_nanos() as f64 / f64::from(decisions)
        })
        .fold(f64::INFINITY, f64::min)
}

fn print_figure() {
    for name in SchedulerName::ALL {
        let costs = [10, 1_000, 100_000].map(|flows| nanos_a_decision(*name, flows));
        let value = (costs[1] / 10.0).round() / 100.0;
        println!(
            "{{\"id\":\"decision-cost\",\"value\":{value},\"unit\":\"us\",\"goal\":1.0,\"met\":{},\"detail\":\"{name} at 1,000 flows; {:.0} ns at 10, {:.0} ns at 100,000\"}}",
            value <= 1.0,
            costs[0],
            costs[2]
        );
    }
}

fn main() {
    if std::env::var_os("MINERVA_FIGURE").is_some() {
        print_figure();
        return;
    }
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("decision");
    for name in SchedulerName::ALL {
        for flows in [10, 1_000, 100_000] {
            let mut world = World::new(*name, flows);
            group.bench_function(BenchmarkId::new(name.as_str(), flows), |bencher| bencher.iter(|| world.decide()));
        }
    }
    group.finish();
}
