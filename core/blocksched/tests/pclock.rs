//! What pClock does with what contracts leave, where somebody has none.

mod server;

use minerva_blocksched::{Contract, Cost, FlowId, FlowParameters, PClock, Scheduler, ServiceTimes};
use minerva_model::Nanos;
use server::{Arrival, Greedy, Served, Server, UNIT_BYTES};

/// 60 MB/s.
const TIMES: ServiceTimes = ServiceTimes { unit_ns: 68_000.0, request: Nanos::ZERO, seek: Nanos::ZERO };

fn pclock(contracts: &[(u32, Contract)]) -> PClock {
    let mut pclock = PClock::new(Cost::PerBytes(UNIT_BYTES));
    for (flow, contract) in contracts {
        let parameters = FlowParameters { contract: Some(*contract), ..FlowParameters::default() };
        pclock.set_flow(Nanos::ZERO, FlowId(*flow), parameters);
    }
    pclock
}

/// 1 MB/s.
const SMALL: Contract = Contract { rate_per_second: 244.0, burst: 64.0, delay: Nanos::from_millis(100) };

fn units(served: &[Served], flow: u32, within: std::ops::Range<Nanos>) -> u32 {
    let own = served.iter().filter(|one| one.request.flow == FlowId(flow) && within.contains(&one.done));
    own.map(|one| one.request.length_bytes / UNIT_BYTES).sum()
}

#[test]
fn who_has_no_contract_has_its_part_beside_one_that_asks_for_more_than_it_was_promised() {
    for (outstanding, part) in [(1, 0.2..0.6), (8, 0.4..0.6)] {
        let greedy = [Greedy { flow: 0, units: 16, outstanding: 8 }, Greedy { flow: 1, units: 16, outstanding }];
        let served = Server::new(&mut pclock(&[(0, SMALL)]), TIMES, &greedy).run(&[], Nanos::from_secs(60), &mut ());
        for second in 0..60 {
            let within = Nanos::from_secs(second)..Nanos::from_secs(second + 1);
            let [with, without] = [0, 1].map(|flow| f64::from(units(&served, flow, within.clone())));
            let got = without / (with + without);
            assert!(part.contains(&got), "second {second}, {outstanding} at once: {without} units beside {with}");
        }
    }
}

/// One of them had what the contracts left for long; the other one comes then.
#[test]
fn who_has_no_contract_and_was_served_before_has_its_part_beside_another_one() {
    let from = Nanos::from_secs(30);
    let crowd: Vec<Arrival> = (0..4000).map(|_| Arrival { at: from, flow: 2, units: 16 }).collect();
    let greedy = [Greedy { flow: 0, units: 16, outstanding: 8 }, Greedy { flow: 1, units: 16, outstanding: 8 }];
    let served = Server::new(&mut pclock(&[(0, SMALL)]), TIMES, &greedy).run(&crowd, from, &mut ());
    let within = from..from + Nanos::SECOND;
    let got = [0, 1, 2].map(|flow| units(&served, flow, within.clone()));
    assert!(got.iter().all(|units| units.abs_diff(4900) < 600), "{got:?} units");
}

/// What a flow had beyond its contract beside one without is neither held against it nor against another contract.
#[test]
fn contracts_are_kept_beside_who_has_none_and_after_spare_time() {
    let from = Nanos::from_secs(30);
    let contract = Contract { rate_per_second: 6000.0, burst: 64.0, delay: Nanos::from_millis(20) };
    let spaced = |flow: u32, units: u32, each: u64| {
        (0..1000).map(move |number| Arrival { at: from + Nanos(number * each), flow, units })
    };
    // Four requests of 16 units come within each 10.7 ms at most, as the contract has it.
    let mut arrivals: Vec<Arrival> = spaced(2, 16, 2_700_000).chain(spaced(3, 4, 17_000_000)).collect();
    arrivals.sort_by_key(|arrival| arrival.at);
    let greedy = [Greedy { flow: 0, units: 16, outstanding: 8 }, Greedy { flow: 1, units: 16, outstanding: 8 }];
    let mut pclock = pclock(&[(0, SMALL), (2, contract), (3, SMALL)]);
    let until = from + Nanos::from_secs(3);
    let served = Server::new(&mut pclock, TIMES, &greedy).run(&arrivals, until, &mut ());
    for (flow, delay) in [(2, contract.delay), (3, SMALL.delay)] {
        let own = served.iter().filter(|one| one.request.flow == FlowId(flow));
        let longest = own.map(|one| one.done.since(one.request.arrived)).max().unwrap();
        // And what was under way.
        assert!(longest <= delay + Nanos::from_millis(2), "flow {flow}: {longest}");
    }
    // It took ten times its contract until then, and has it all the same.
    for second in 30..32 {
        let within = Nanos::from_secs(second)..Nanos::from_secs(second + 1);
        let got = units(&served, 0, within);
        assert!(got >= 244 - 16, "second {second}: {got} units");
    }
}

/// One contract is short and its flow always asks for more; the requests of the other one have time, so that one waits nearly always.
#[test]
fn who_has_no_contract_has_its_part_beside_one_that_asks_for_more_and_one_that_has_time() {
    // 20 MB/s.
    let short = Contract { rate_per_second: 4883.0, burst: 64.0, delay: Nanos::from_millis(10) };
    let patient = Contract { delay: Nanos::SECOND, ..SMALL };
    let greedy = [Greedy { flow: 0, units: 16, outstanding: 8 }, Greedy { flow: 1, units: 16, outstanding: 8 }];
    let small: Vec<Arrival> =
        (0..2000).map(|number| Arrival { at: Nanos::from_millis(5 * number), flow: 2, units: 1 }).collect();
    let mut pclock = pclock(&[(0, short), (2, patient)]);
    let served = Server::new(&mut pclock, TIMES, &greedy).run(&small, Nanos::from_secs(10), &mut ());
    for second in 0..10 {
        let within = Nanos::from_secs(second)..Nanos::from_secs(second + 1);
        let [with, without, patient] = [0, 1, 2].map(|flow| f64::from(units(&served, flow, within.clone())));
        let left = with + without + patient - short.rate_per_second - patient;
        assert!(without >= 0.3 * left, "second {second}: {without} units of {left}, beside {with} and {patient}");
        assert!(with >= short.rate_per_second - 16.0 && patient >= 190.0, "second {second}: {with} and {patient}");
    }
}
