//! A contract that is granted or changed while requests are queued holds from then on.

use minerva_blocksched::{
    BuildOptions, Contract, Dispatch, FlowId, FlowParameters, Kind, Request, RequestId, Scheduler, SchedulerName,
};
use minerva_model::Nanos;

/// Of a request, and what the disk takes for one: 1,000 requests a second.
const UNITS: u32 = 16;
const REQUEST: Nanos = Nanos::from_millis(1);
/// Requests that each flow always has queued.
const QUEUED: u64 = 32;
/// A fifth of the disk each.
const RATE: f64 = 200.0 * UNITS as f64;

/// Three flows that always have requests queued.
struct Backlogged {
    scheduler: Box<dyn Scheduler>,
    now: Nanos,
    number: u64,
}

impl Backlogged {
    /// The first two have contracts; the third as is said.
    fn new(name: SchedulerName, third: Option<f64>) -> Self {
        let mut world = Self { scheduler: name.build(BuildOptions::for_disk(true, 1)), now: Nanos::ZERO, number: 0 };
        for (flow, rate) in (0..).zip([Some(RATE), Some(RATE), third]) {
            rate.into_iter().for_each(|rate| world.grant(flow, rate));
        }
        (0..3).for_each(|flow| (0..QUEUED).for_each(|_| world.add(flow)));
        world
    }

    fn grant(&mut self, flow: u32, rate_per_second: f64) {
        let contract = Contract { rate_per_second, burst: f64::from(UNITS), delay: Nanos::from_millis(200) };
        let parameters = FlowParameters { contract: Some(contract), ..FlowParameters::default() };
        self.scheduler.set_flow(self.now, FlowId(flow), parameters);
    }

    fn add(&mut self, flow: u32) {
        self.number += 1;
        let request = Request {
            id: RequestId(self.number),
            flow: FlowId(flow),
            kind: Kind::Read,
            sync: true,
            tag: None,
            offset_bytes: self.number << 24,
            length_bytes: UNITS * 4096,
            arrived: self.now,
        };
        self.scheduler.add(self.now, request);
    }

    /// Units of each flow in a second.
    fn second(&mut self) -> [u32; 3] {
        let mut served = [0; 3];
        let until = self.now + Nanos::SECOND;
        while self.now < until {
            match self.scheduler.next(self.now) {
                Dispatch::Send(request) => {
                    self.now += REQUEST;
                    self.add(request.flow.0);
                    self.scheduler.complete(self.now, &request);
                    served[request.flow.index()] += UNITS;
                }
                Dispatch::WaitUntil(at) => self.now = at,
                Dispatch::Idle => panic!("idle with {} queued", self.scheduler.queued()),
            }
        }
        served
    }
}

const NAMES: [SchedulerName; 3] = [SchedulerName::Htbs, SchedulerName::HtbsOriginal, SchedulerName::Pclock];

/// What the contract of `Backlogged::grant` gives in every second: rate * (1 s - delay), less a request that straddles its end.
fn promised(name: SchedulerName, rate: f64) -> f64 {
    // The published one counts requests, and with the rates of here gives far more than it is asked for.
    let units = if name == SchedulerName::HtbsOriginal { rate / f64::from(UNITS) } else { rate };
    0.8 * units - f64::from(UNITS)
}

#[test]
fn a_contract_that_is_granted_to_a_flow_with_a_queue_holds_from_the_next_second_on() {
    for name in NAMES {
        let mut world = Backlogged::new(name, None);
        (0..5).for_each(|_| _ = world.second());
        world.grant(2, RATE);
        world.second();
        for second in 6..20 {
            let served = world.second();
            let least = promised(name, RATE);
            assert!(served.iter().all(|units| f64::from(*units) >= least), "{name}, second {second}: {served:?}");
        }
    }
}

#[test]
fn a_contract_that_is_raised_from_next_to_nothing_holds_from_the_next_second_on() {
    for name in [SchedulerName::Htbs, SchedulerName::Pclock] {
        let mut world = Backlogged::new(name, None);
        world.grant(2, 0.01);
        (0..5).for_each(|_| _ = world.second());
        world.grant(2, 2.0 * RATE);
        world.second();
        for second in 6..20 {
            let served = world.second();
            let least = promised(name, 2.0 * RATE);
            assert!(f64::from(served[2]) >= least, "{name}, second {second}: {served:?}");
        }
    }
}

/// Whoever takes a contract back takes it of what is queued too, here for seconds: others with one come first.
#[test]
fn a_contract_that_is_taken_back_binds_nobody_any_more() {
    for name in [SchedulerName::Htbs, SchedulerName::Pclock] {
        // With it the disk has no time to spare, so that what is queued is due as its contract says.
        let mut world = Backlogged::new(name, Some(3.0 * RATE));
        (0..3_000).for_each(|_| world.add(2));
        (0..5).for_each(|_| _ = world.second());
        world.scheduler.set_flow(world.now, FlowId(2), FlowParameters::default());
        (0..2).for_each(|flow| world.grant(flow, 2.0 * RATE));
        world.second();
        let served = world.second();
        // More than a third of the disk, which equal parts would give them.
        let least = 0.95 * 2.0 * RATE;
        assert!(served[..2].iter().all(|units| f64::from(*units) >= least), "{name}: {served:?}");
    }
}
