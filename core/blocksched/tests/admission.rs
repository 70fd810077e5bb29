//! What the admission test promises: a set that it passes is kept, and one that it refutes can be broken.

mod server;

use minerva_blocksched::{
    Applicant, Capacity, Contract, Cost, Discipline, Feasibility, FlowId, FlowParameters, Htbs, HtbsOptions, PClock,
    Request, Scheduler, ServiceTimes, Tightest, admit,
};
use minerva_model::Nanos;
use proptest::prelude::{ProptestConfig, Strategy, prop_assert, proptest};
use server::{Arrival, Greedy, Served, Server, UNIT_BYTES, Watcher};

const COST: Cost = Cost::PerBytes(UNIT_BYTES);
/// Until then every flow sends a few requests alone, so that HTBS learns how long things take, and gets its burst back at the
/// slowest rate there is.
const LEARNING: Nanos = Nanos::from_secs(8);
const LEARNING_REQUESTS: u64 = 3;

/// A flow that keeps to its contract, and what it draws its requests from: gaps in milliseconds and sizes.
#[derive(Clone, Debug)]
struct Flow {
    contract: Contract,
    units_max: u32,
    draws: Vec<(u64, u32)>,
}

fn flow(rate_max: u32) -> impl Strategy<Value = Flow> {
    let draws = proptest::collection::vec((0u64..400, 1u32..=8), 1..40);
    (1u32..=8, 0u32..20, 1..=rate_max, 20u64..1000, draws).prop_map(|(units_max, burst, rate, delay_ms, draws)| {
        let contract = Contract {
            rate_per_second: f64::from(rate),
            burst: f64::from(units_max + burst),
            delay: Nanos::from_millis(delay_ms),
        };
        let draws = draws.into_iter().map(|(gap, units)| (gap, units.min(units_max))).collect();
        Flow { contract, units_max, draws }
    })
}

/// A unit of at most so many microseconds, a request of half, and a seek of five times as many.
fn times(unit_us_max: u32) -> impl Strategy<Value = ServiceTimes> {
    let unit_ns = unit_us_max * 1000;
    (unit_ns / 50..unit_ns, 0..unit_ns / 2, 0..unit_ns * 5).prop_map(|(unit_ns, request_ns, seek_ns)| ServiceTimes {
        unit_ns: f64::from(unit_ns),
        request: Nanos(u64::from(request_ns)),
        seek: Nanos(u64::from(seek_ns)),
    })
}

/// Flows that do not keep to anything: one with a contract that always asks for more, one without.
#[derive(Clone, Copy, Debug)]
struct Company {
    over: Option<(u32, u32)>,
    background: Option<(u32, u32)>,
}

fn company() -> impl Strategy<Value = Company> {
    let greedy = || proptest::option::of((1u32..=8, 1u32..10));
    (greedy(), greedy()).prop_map(|(over, background)| Company { over, background })
}

/// The contract of the flow that does not keep to it.
fn over_contract(units: u32) -> Contract {
    Contract { rate_per_second: 5.0, burst: f64::from(units), delay: Nanos::from_millis(500) }
}

fn applicant(contract: Contract, units_max: u32, times: ServiceTimes, wait: Nanos) -> Applicant {
    let request_units_max = u64::from(units_max);
    // Requests come one by one: each may need a seek, and each may be of one unit.
    Applicant {
        contract,
        request_units_min: 1,
        request_units_max,
        row_units: 1.0,
        wait,
        unit_least_ns: times.unit_ns + times.request.0 as f64 / f64::from(units_max),
        unit_alone_ns: 0.0,
    }
}

fn capacity(times: ServiceTimes, company: Company) -> Capacity {
    let background_units_max = company.background.map_or(0, |(units, _)| u64::from(units));
    Capacity { greatest: times, mean: times, background_units_max }
}

/// All contracts of a scene.
fn applicants(flows: &[Flow], company: Company, times: ServiceTimes, wait: Nanos) -> Vec<Applicant> {
    let conforming = flows.iter().map(|flow| applicant(flow.contract, flow.units_max, times, wait));
    let over = company.over.map(|(units, _)| applicant(over_contract(units), units, times, wait));
    conforming.chain(over).collect()
}

/// Requests that never exceed the contract, drawn from the flow's gaps and sizes.
fn conforming(index: u32, flow: &Flow) -> impl Iterator<Item = Arrival> {
    let Contract { rate_per_second, burst, .. } = flow.contract;
    let (mut now, mut tokens) = (LEARNING, burst);
    flow.draws.clone().into_iter().map(move |(gap_ms, units)| {
        let short = (f64::from(units) - tokens.min(burst)).max(0.0) / rate_per_second;
        let gap = Nanos::from_millis(gap_ms).max(Nanos((short * 1e9).ceil() as u64));
        now += gap;
        tokens = (tokens + rate_per_second * gap.as_secs_f64()).min(burst) - f64::from(units);
        Arrival { at: now, flow: index, units }
    })
}

/// Every flow alone for a moment, in the second before the flows begin.
fn learning(flows: &[Flow]) -> impl Iterator<Item = Arrival> {
    let step = LEARNING.0 / 2 / (flows.len() as u64 * LEARNING_REQUESTS + 1);
    (0..flows.len() as u64 * LEARNING_REQUESTS).map(move |number| {
        let flow = (number / LEARNING_REQUESTS) as u32;
        Arrival { at: Nanos(step * (number + 1)), flow, units: 1 }
    })
}

/// Requests of conforming flows that were not served in time.
fn late(flows: &[Flow], served: &[Served]) -> Vec<Served> {
    let is_late = |served: &&Served| {
        let contract = flows.get(served.request.flow.index()).map(|flow| flow.contract);
        let took = served.done.since(served.request.arrived);
        served.request.arrived >= LEARNING && contract.is_some_and(|contract| took > contract.delay)
    };
    served.iter().filter(is_late).copied().collect()
}

/// Late by more than it takes itself. HTBS gives time away until a request is nearly due, by what it learnt of the flow's
/// requests: one that is larger than those before may be late by as much as it takes.
fn is_beyond_itself(flows: &[Flow], times: ServiceTimes, served: &Served) -> bool {
    let units = f64::from(served.request.length_bytes / UNIT_BYTES);
    let takes = times.request + times.seek + Nanos((units * times.unit_ns) as u64);
    let delay = flows[served.request.flow.index()].contract.delay;
    served.done.since(served.request.arrived) > delay + takes + ROUNDING
}

/// Runs a scene to its end; the late requests.
fn serve(
    scheduler: &mut dyn Scheduler,
    times: ServiceTimes,
    flows: &[Flow],
    company: Company,
    watcher: &mut dyn Watcher,
) -> Vec<Served> {
    let mut greedy = Vec::new();
    let mut announce = |flow: usize, contract: Option<Contract>| {
        scheduler.set_flow(Nanos::ZERO, FlowId(flow as u32), FlowParameters { contract, ..FlowParameters::default() });
    };
    flows.iter().enumerate().for_each(|(index, flow)| announce(index, Some(flow.contract)));
    for (index, (company, contract)) in
        [(company.over, company.over.map(|(units, _)| over_contract(units))), (company.background, None)]
            .into_iter()
            .enumerate()
    {
        if let Some((units, outstanding)) = company {
            announce(flows.len() + index, contract);
            greedy.push(Greedy { flow: (flows.len() + index) as u32, units, outstanding });
        }
    }
    let mut arrivals: Vec<Arrival> = learning(flows).collect();
    flows.iter().enumerate().for_each(|(index, flow)| arrivals.extend(conforming(index as u32, flow)));
    arrivals.sort_by_key(|arrival| arrival.at);
    let served = Server::new(scheduler, times, &greedy).run(&arrivals, LEARNING, watcher);
    late(flows, &served)
}

/// Lengthens all delays until the test passes; whether it ever does. Rates that are too high never will.
fn stretch(flows: &mut [Flow], company: Company, times: ServiceTimes, discipline: Discipline, wait: Nanos) -> bool {
    for _ in 0..6 {
        let admission = admit(&applicants(flows, company, times, wait), &capacity(times, company), discipline);
        if admission.feasibility == Feasibility::Kept {
            return true;
        }
        flows.iter_mut().for_each(|flow| flow.contract.delay = flow.contract.delay + flow.contract.delay);
    }
    false
}

/// pClock serves conforming flows in the order of arrival plus delay.
struct DeadlineOrder<'a> {
    flows: &'a [Flow],
    queued: Vec<(Request, Nanos)>,
    wrong: Vec<(Request, Request)>,
}

/// Instants are whole nanoseconds and tokens are not.
const ROUNDING: Nanos = Nanos::from_micros(1);

impl Watcher for DeadlineOrder<'_> {
    fn added(&mut self, request: &Request) {
        let delay = self.flows[request.flow.index()].contract.delay;
        self.queued.push((*request, request.arrived + delay));
    }

    fn sent(&mut self, _now: Nanos, request: &Request) {
        let Some(at) = self.queued.iter().position(|(queued, _)| queued.id == request.id) else { return };
        let (sent, due) = self.queued.swap_remove(at);
        let earlier = self.queued.iter().filter(|(_, other_due)| *other_due + ROUNDING < due);
        self.wrong.extend(earlier.map(|(earlier, _)| (sent, *earlier)));
    }
}

proptest! {
    // Each serves thousands of requests.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_admitted_is_kept_by_pclock(
        mut flows in proptest::collection::vec(flow(40), 1..5), company in company(), times in times(2000),
    ) {
        let discipline = Discipline::EarliestDeadline;
        if stretch(&mut flows, company, times, discipline, Nanos::ZERO) {
            let late = serve(&mut PClock::new(COST), times, &flows, company, &mut ());
            prop_assert!(late.is_empty(), "{:?}", late);
        }
    }

    #[test]
    fn what_is_admitted_is_kept_by_htbs(
        mut flows in proptest::collection::vec(flow(10), 1..5), company in company(), times in times(200),
        wait_us in 0u64..2000,
    ) {
        let options = HtbsOptions { wait_max: Nanos::from_micros(wait_us), ..HtbsOptions::default() };
        if stretch(&mut flows, company, times, Discipline::Turns, options.wait_max) {
            let late = serve(&mut Htbs::new(options), times, &flows, company, &mut ());
            let late: Vec<Served> = late.into_iter().filter(|served| is_beyond_itself(&flows, times, served)).collect();
            prop_assert!(late.is_empty(), "{:?}", late);
        }
    }

    #[test]
    fn conforming_flows_are_served_in_the_order_of_their_deadlines(
        flows in proptest::collection::vec(flow(40), 1..6), times in times(2000),
    ) {
        // Also when the disk is too slow for them: the order is all that pClock can do then.
        let company = Company { over: None, background: None };
        let mut order = DeadlineOrder { flows: &flows, queued: Vec::new(), wrong: Vec::new() };
        serve(&mut PClock::new(COST), times, &flows, company, &mut order);
        prop_assert!(order.wrong.is_empty(), "{:?}", order.wrong);
    }

    #[test]
    fn what_is_refuted_is_broken_by_flows_that_all_come_at_once(
        flows in proptest::collection::vec(flow(40), 1..5), times in times(40_000),
    ) {
        let company = Company { over: None, background: None };
        let admission = admit(&applicants(&flows, company, times, Nanos::ZERO), &capacity(times, company), Discipline::EarliestDeadline);
        let refuted = admission.tightest.filter(|_| admission.feasibility == Feasibility::Impossible);
        if let Some(until) = refuted.and_then(|tightest| broken_within(&flows, tightest)) {
            // The adversary: the whole burst at once, and from then on the rate.
            let adversary: Vec<Flow> = flows.iter().map(|flow| greatest_demand(flow, until)).collect();
            for scheduler in [&mut PClock::new(COST) as &mut dyn Scheduler, &mut Htbs::new(HtbsOptions::default())] {
                let late = serve(scheduler, times, &adversary, company, &mut ());
                prop_assert!(!late.is_empty(), "{} kept {:?}", scheduler.name(), admission);
            }
        }
    }
}

/// How long the flows have to come with all that they may until one must be late; none if that is too long to try.
fn broken_within(flows: &[Flow], tightest: Tightest) -> Option<Nanos> {
    if !tightest.long_run {
        return Some(tightest.interval);
    }
    // What is left over of each second piles up until it is more than the longest delay.
    let longest_s = flows.iter().map(|flow| flow.contract.delay.as_secs_f64()).fold(0.0, f64::max);
    let until_s = 2.0 * longest_s / (tightest.work_ns / 1e9 - 1.0);
    (until_s < 30.0).then_some(Nanos((until_s * 1e9) as u64))
}

/// A flow that takes all that its contract gives it within an interval, in its largest requests.
fn greatest_demand(flow: &Flow, interval: Nanos) -> Flow {
    let units = flow.contract.burst + flow.contract.rate_per_second * interval.as_secs_f64();
    let requests = (units / f64::from(flow.units_max)).ceil() as usize + 1;
    Flow { draws: vec![(0, flow.units_max); requests], ..flow.clone() }
}

/// Two flows that fit, and one too many of them.
#[test]
fn the_admission_test_says_by_how_much() {
    let times = ServiceTimes { unit_ns: 1e6, request: Nanos::ZERO, seek: Nanos::from_millis(4) };
    let capacity = Capacity { greatest: times, mean: times, background_units_max: 0 };
    let contract = Contract { rate_per_second: 10.0, burst: 2.0, delay: Nanos::from_millis(40) };
    let one = applicant(contract, 2, times, Nanos::ZERO);
    let say = |count: usize, discipline| {
        let admission = admit(&vec![one; count], &capacity, discipline);
        admission.sentence(|index| format!("flow {index}"))
    };
    assert_eq!(
        say(3, Discipline::EarliestDeadline),
        "kept: within the delay of `flow 0`, 40.0 ms, up to 36.0 ms of work are due, 4.0 ms are left"
    );
    assert_eq!(
        say(4, Discipline::EarliestDeadline),
        "doubtful: within the delay of `flow 0`, 40.0 ms, up to 46.0 ms of work are due, 6.0 ms too much"
    );
    assert_eq!(
        say(21, Discipline::EarliestDeadline),
        "impossible under any scheduler: within the delay of `flow 0`, 40.0 ms, up to 42.0 ms of work are due, 2.0 ms \
         too much"
    );
    assert_eq!(
        say(3, Discipline::Turns),
        "likely, not proven: within the delay of `flow 0`, 40.0 ms, up to 84.0 ms of work are due in the worst case, \
         44.0 ms too much, but it fits on average"
    );
    // A writer that takes ten times as long beside it refutes nothing.
    let writer = Applicant { unit_least_ns: 1e7, contract: Contract { rate_per_second: 1.0, ..contract }, ..one };
    let beside = admit(&[one, writer], &capacity, Discipline::EarliestDeadline);
    assert!(beside.feasibility < Feasibility::Impossible, "{beside:?}");
    // One that has the disk to itself for longer than others would leaves less of it, and refutes nothing either.
    let kept = admit(&[Applicant { unit_alone_ns: 1e7, ..one }; 4], &capacity, Discipline::Turns);
    assert_eq!(kept.feasibility, Feasibility::Doubtful);
    let small = Applicant { contract: Contract { burst: 1.0, ..contract }, ..one };
    assert_eq!(
        admit(&[one, small], &capacity, Discipline::Turns).sentence(|index| format!("flow {index}")),
        "doubtful: the burst of `flow 1` does not hold one of its requests, so none is ever within the contract; raise the \
         burst"
    );
    assert_eq!(admit(&[], &capacity, Discipline::Turns).feasibility, Feasibility::Kept);
}
