//! How far apart the shares of backlogged flows can be, and that more weight never gives less.

mod server;

use minerva_blocksched::{
    AtLimit, Bfq, BfqOptions, Cfq, CfqOptions, Cost, Dispatch, FlowId, FlowParameters, GroupId, Kind, MClock, Request,
    RequestId, Scheduler, ServiceTimes, Sfq, Tag, TagOptions,
};
use minerva_model::Nanos;
use proptest::prelude::{ProptestConfig, Strategy, prop_assert, proptest};
use server::{Arrival, Greedy, Served, Server, UNIT_BYTES};

const COST: Cost = Cost::PerBytes(UNIT_BYTES);

/// A flow that always has requests queued, of one of several sizes.
#[derive(Clone, Debug)]
struct Backlogged {
    weight: u32,
    group: u32,
    units: Vec<u32>,
}

impl Backlogged {
    fn units_max(&self) -> f64 {
        f64::from(self.units.iter().copied().max().unwrap_or(1))
    }
}

fn backlogged() -> impl Strategy<Value = Backlogged> {
    let sizes = proptest::collection::vec(1u32..64, 1..6);
    (1u32..2000, sizes).prop_map(|(weight, units)| Backlogged { weight, group: 0, units })
}

fn request(id: u64, flow: u32, units: u32) -> Request {
    Request {
        id: RequestId(id),
        flow: FlowId(flow),
        kind: Kind::Read,
        sync: true,
        tag: None,
        offset_bytes: id << 24,
        length_bytes: units * UNIT_BYTES,
        arrived: Nanos::ZERO,
    }
}

/// Units served to each flow, by request sent: flows that are always backlogged, and a depth of requests at the device.
fn shares(scheduler: &mut dyn Scheduler, flows: &[Backlogged], depth: usize, requests: u64) -> Vec<(usize, f64)> {
    let mut sent = Vec::new();
    let mut at_device = std::collections::VecDeque::new();
    let mut made = vec![0usize; flows.len()];
    let mut number = 0;
    let mut add = |scheduler: &mut dyn Scheduler, flow: usize| {
        let sizes = &flows[flow].units;
        scheduler.add(Nanos::ZERO, request(number, flow as u32, sizes[made[flow] % sizes.len()]));
        number += 1;
        made[flow] += 1;
    };
    for (flow, parameters) in flows.iter().enumerate() {
        let Backlogged { weight, group, .. } = *parameters;
        let parameters = FlowParameters { weight, group: GroupId(group), ..FlowParameters::default() };
        scheduler.set_flow(Nanos::ZERO, FlowId(flow as u32), parameters);
        // Two: one that is sent and one behind it, so that the flow is never without work.
        add(scheduler, flow);
        add(scheduler, flow);
    }
    while (sent.len() as u64) < requests {
        match scheduler.next(Nanos::ZERO) {
            Dispatch::Send(request) if at_device.len() < depth => {
                sent.push((request.flow.index(), f64::from(request.length_bytes / UNIT_BYTES)));
                add(scheduler, request.flow.index());
                at_device.push_back(request);
            }
            _ => {}
        }
        if at_device.len() == depth
            && let Some(done) = at_device.pop_front()
        {
            scheduler.complete(Nanos::ZERO, &done);
        }
    }
    sent
}

/// The span of what `follow` makes of all that was sent: the greatest difference over any interval.
fn span(sent: &[(usize, f64)], follow: impl Fn(usize, f64) -> f64) -> f64 {
    let mut at = 0.0_f64;
    let (mut least, mut most) = (0.0_f64, 0.0_f64);
    for (flow, units) in sent {
        at += follow(*flow, *units);
        least = least.min(at);
        most = most.max(at);
    }
    most - least
}

proptest! {
    #[test]
    fn sfq_keeps_backlogged_flows_within_the_published_bound(
        flows in proptest::collection::vec(backlogged(), 2..6), depth in 1u32..9,
    ) {
        let sent = shares(&mut Sfq::new(depth, COST), &flows, depth as usize, 600);
        for (i, one) in flows.iter().enumerate() {
            for (j, other) in flows.iter().enumerate().skip(i + 1) {
                let (one_weight, other_weight) = (f64::from(one.weight), f64::from(other.weight));
                let apart = span(&sent, |flow, units| match flow {
                    flow if flow == i => units / one_weight,
                    flow if flow == j => -units / other_weight,
                    _ => 0.0,
                });
                let bound = f64::from(depth + 1) * (one.units_max() / one_weight + other.units_max() / other_weight);
                prop_assert!(apart <= bound, "flows {} and {}: {} apart, at most {}", i, j, apart, bound);
            }
        }
    }

    #[test]
    fn bfq_lags_behind_the_ideal_by_its_budgets_only(
        flows in proptest::collection::vec(backlogged(), 2..6), budget_units in 64u64..512,
    ) {
        let options = BfqOptions { budget_bytes_max: Some(budget_units * u64::from(UNIT_BYTES)), ..BfqOptions::default() };
        let sent = shares(&mut Bfq::new(options), &flows, 1, 2000);
        let weights: f64 = flows.iter().map(|flow| f64::from(flow.weight)).sum();
        let units_max = flows.iter().map(Backlogged::units_max).fold(0.0, f64::max);
        for (i, flow) in flows.iter().enumerate() {
            let part = f64::from(flow.weight) / weights;
            // Whole budgets take turns: a flow can be one of its own ahead or behind, and wait for one of somebody else's.
            let lag = span(&sent, |served, units| part * units - if served == i { units } else { 0.0 });
            let bound = 2.0 * (budget_units as f64 + units_max);
            prop_assert!(lag <= bound, "flow {}: {} units, at most {}", i, lag, bound);
        }
    }

    #[test]
    fn bfq_shares_between_groups_first_and_within_each_group_then(
        mut flows in proptest::collection::vec(backlogged(), 3..8), group_weights in proptest::array::uniform3(1u32..1000),
        budget_units in 64u64..512,
    ) {
        // Each group has a flow, and the others lie anywhere.
        flows.iter_mut().zip([0, 1, 2, 0, 0, 1, 2]).for_each(|(flow, group)| flow.group = group);
        let options = BfqOptions { budget_bytes_max: Some(budget_units * u64::from(UNIT_BYTES)), ..BfqOptions::default() };
        let mut bfq = Bfq::new(options);
        for (group, weight) in (0..).zip(group_weights) {
            bfq.set_group_weight(Nanos::ZERO, GroupId(group), weight);
        }
        let sent = shares(&mut bfq, &flows, 1, 2000);
        let units_max = flows.iter().map(Backlogged::units_max).fold(0.0, f64::max);
        let bound = 2.0 * (budget_units as f64 + units_max);
        let weights = f64::from(group_weights.iter().sum::<u32>());
        for (group, weight) in (0..).zip(group_weights) {
            let part = f64::from(weight) / weights;
            let lag = span(&sent, |served, units| part * units - if flows[served].group == group { units } else { 0.0 });
            prop_assert!(lag <= bound, "group {}: {} units, at most {}", group, lag, bound);
        }
        for (i, flow) in flows.iter().enumerate() {
            let own = |served: usize| flows[served].group == flow.group;
            let weights: u32 = flows.iter().filter(|other| other.group == flow.group).map(|other| other.weight).sum();
            let part = f64::from(flow.weight) / f64::from(weights);
            let lag = span(&sent, |served, units| match served {
                served if served == i => (part - 1.0) * units,
                served if own(served) => part * units,
                _ => 0.0,
            });
            prop_assert!(lag <= bound, "flow {} in its group: {} units, at most {}", i, lag, bound);
        }
    }
}

/// A script for a few flows; it is the same whatever the weights.
fn script() -> impl Strategy<Value = Vec<Arrival>> {
    let arrival = (0u64..5000, 0u32..4, 1u32..32);
    proptest::collection::vec(arrival, 500..2000).prop_map(|arrivals| {
        let mut arrivals: Vec<Arrival> = arrivals
            .into_iter()
            .map(|(at_ms, flow, units)| Arrival { at: Nanos::from_millis(at_ms), flow, units })
            .collect();
        arrivals.sort_by_key(|arrival| arrival.at);
        arrivals
    })
}

/// Schedulers with weights, and how many units more weight may cost a flow at some instant. None is exact: what is under
/// way is not stopped, and what the others had before is not given back.
///
/// * SFQ, Tag and mClock decide request by request: two requests, one that somebody else has begun and one by which the orders of
///   the two runs are out of step.
/// * BFQ gives out budgets: one of its own that comes later, and one of somebody else's before it.
/// * CFQ gives out slices of time: one of each other group's before its own, and the 200 ms by which a group that comes
///   back stands behind the last. That holds for flows that stay: one that is served sooner has nothing queued more often, and
///   each time it comes back it stands behind, so that more weight can cost it more than that.
fn weighted() -> [(Box<dyn Scheduler>, f64); 5] {
    let budget_bytes_max = Some(u64::from(BUDGET_UNITS * UNIT_BYTES));
    let bfq = BfqOptions { budget_bytes_max, slice_idle: Nanos::ZERO, ..BfqOptions::default() };
    let cfq = CfqOptions { slice_idle: Nanos::ZERO, group_idle: Nanos::ZERO, quantum: 1, ..CfqOptions::default() };
    let slices = 3.0 * cfq.slice_sync.as_secs_f64() + 0.2;
    [
        (Box::new(Sfq::new(1, COST)), 2.0 * UNITS_MAX),
        (Box::new(Tag::new(TagOptions { plug: Nanos::ZERO, ..TagOptions::default() })), 2.0 * UNITS_MAX),
        (Box::new(MClock::new(COST, AtLimit::Wait)), 2.0 * UNITS_MAX),
        (Box::new(Bfq::new(bfq)), f64::from(2 * BUDGET_UNITS) + UNITS_MAX),
        (Box::new(Cfq::new(cfq)), slices * 1e9 / TIMES.unit_ns + UNITS_MAX),
    ]
}

/// The largest request of a script.
const UNITS_MAX: f64 = 31.0;
const BUDGET_UNITS: u32 = 256;
const TIMES: ServiceTimes = ServiceTimes { unit_ns: 500_000.0, request: Nanos(200_000), seek: Nanos::ZERO };

/// Gives four flows their weights: as a weight, as a priority, and as that of a group for the scheduler that weighs groups.
fn weigh(scheduler: &mut dyn Scheduler, weights: [u32; 4]) {
    for (flow, weight) in weights.into_iter().enumerate() {
        let group = if scheduler.name() == "cfq" { GroupId(flow as u32) } else { GroupId(0) };
        let tag_default = weight.min(254) as u8;
        let parameters = FlowParameters { weight, group, tag_default, ..FlowParameters::default() };
        scheduler.set_flow(Nanos::ZERO, FlowId(flow as u32), parameters);
        if scheduler.name() == "cfq" {
            scheduler.set_group_weight(Nanos::ZERO, group, weight);
        }
    }
}

/// What flow 0 was served, and when.
fn own(served: &[Served]) -> impl Iterator<Item = (Nanos, f64)> + '_ {
    let own = served.iter().filter(|served| served.request.flow == FlowId(0));
    own.map(|served| (served.done, f64::from(served.request.length_bytes / UNIT_BYTES)))
}

/// By how many units flow 0 falls behind at worst when its weight is raised.
fn loss(lighter: &[Served], heavier: &[Served]) -> f64 {
    let gained = own(heavier).map(|(done, units)| (done, -units));
    let mut all: Vec<(Nanos, f64)> = own(lighter).chain(gained).collect();
    all.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
    let mut at = 0.0_f64;
    let behind = all.iter().map(|(_, units)| {
        at += units;
        at
    });
    behind.fold(0.0, f64::max)
}

proptest! {
    // Each serves thousands of requests, ten times over.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn more_weight_gives_no_less_of_the_same_requests(
        arrivals in script(), weights in proptest::array::uniform4(1u32..125), raised in 1u32..125,
    ) {
        let heavier = [weights[0] + raised, weights[1], weights[2], weights[3]];
        let pairs = weighted().into_iter().zip(weighted()).filter(|((one, _), _)| one.name() != "cfq");
        for ((mut light, slack_units), (mut heavy, _)) in pairs {
            weigh(light.as_mut(), weights);
            weigh(heavy.as_mut(), heavier);
            let [lighter, heavier] = [&mut light, &mut heavy]
                .map(|scheduler| Server::new(scheduler.as_mut(), TIMES, &[]).run(&arrivals, Nanos::ZERO, &mut ()));
            let loss = loss(&lighter, &heavier);
            prop_assert!(loss <= slack_units, "{}: {} units, at most {}", light.name(), loss, slack_units);
        }
    }

    #[test]
    fn more_weight_gives_a_backlogged_flow_no_less(
        units in proptest::array::uniform4(1u32..32), weights in proptest::array::uniform4(1u32..125), raised in 1u32..125,
    ) {
        let greedy = [0, 1, 2, 3].map(|flow: u32| Greedy { flow, units: units[flow as usize], outstanding: 4 });
        let heavier = [weights[0] + raised, weights[1], weights[2], weights[3]];
        let until = Nanos::from_secs(20);
        for ((mut light, slack_units), (mut heavy, _)) in weighted().into_iter().zip(weighted()) {
            weigh(light.as_mut(), weights);
            weigh(heavy.as_mut(), heavier);
            let [lighter, heavier] = [&mut light, &mut heavy].map(|scheduler| {
                let served = Server::new(scheduler.as_mut(), TIMES, &greedy).run(&[], until, &mut ());
                own(&served).map(|(_, units)| units).sum::<f64>()
            });
            let name = light.name();
            prop_assert!(heavier + slack_units >= lighter, "{}: {} and {} units", name, lighter, heavier);
        }
    }
}

/// The units that two flows of CFQ, each in a group of its own, were served in ten seconds from `from` on.
fn cfq_shares(greedy: &[Greedy], arrivals: &[Arrival], from: Nanos) -> [f64; 2] {
    let mut cfq = Cfq::new(CfqOptions::default());
    for flow in 0..2 {
        let parameters = FlowParameters { group: GroupId(flow), ..FlowParameters::default() };
        cfq.set_flow(Nanos::ZERO, FlowId(flow), parameters);
    }
    let until = from + Nanos::from_secs(10);
    let served = Server::new(&mut cfq, TIMES, greedy).run(arrivals, until, &mut ());
    [0, 1].map(|flow| {
        let own = served.iter().filter(|one| one.request.flow == FlowId(flow) && one.done > from && one.done <= until);
        own.map(|one| f64::from(one.request.length_bytes / UNIT_BYTES)).sum()
    })
}

/// Many requests of these flows, all at once.
fn crowd(at: Nanos, flows: &[u32]) -> Vec<Arrival> {
    let one = |number: usize| Arrival { at, flow: flows[number % flows.len()], units: 16 };
    (0..flows.len() * 2000).map(one).collect()
}

fn is_half(shares: [f64; 2]) -> bool {
    (0.4..0.6).contains(&(shares[0] / (shares[0] + shares[1])))
}

#[test]
fn a_group_that_comes_to_cfq_starts_where_the_one_in_service_is() {
    let greedy = [Greedy { flow: 0, units: 16, outstanding: 1 }];
    let from = Nanos::from_secs(60);
    let shares = cfq_shares(&greedy, &crowd(from, &[1]), from);
    assert!(is_half(shares), "{shares:?}");
}

#[test]
fn cfq_charges_nobody_for_a_disk_that_nobody_wanted() {
    let from = Nanos::from_secs(60);
    let first = |flow| Arrival { at: Nanos::ZERO, flow, units: 16 };
    for (flow, order) in [(0, [1, 0]), (1, [1, 0]), (0, [0, 1])] {
        let arrivals = [vec![first(flow)], crowd(from, &order)].concat();
        let shares = cfq_shares(&[], &arrivals, from);
        assert!(is_half(shares), "flow {flow} came first, then {order:?}: {shares:?}");
    }
}

/// One that was alone for long owes nothing to one that comes when it has gone.
#[test]
fn a_group_that_comes_to_an_idle_disk_of_cfq_starts_where_the_last_one_was() {
    let busy: Vec<Arrival> = (0..5000).map(|at| Arrival { at: Nanos::from_millis(at), flow: 0, units: 1 }).collect();
    let from = Nanos::from_secs(10);
    let arrivals = [busy, crowd(from, &[1, 0])].concat();
    let shares = cfq_shares(&[], &arrivals, from);
    assert!(is_half(shares), "{shares:?}");
}

#[test]
fn levels_are_weights_within_a_group_of_bfq() {
    let budget_bytes_max = Some(u64::from(BUDGET_UNITS * UNIT_BYTES));
    let mut bfq = Bfq::new(BfqOptions { budget_bytes_max, slice_idle: Nanos::ZERO, ..BfqOptions::default() });
    for (flow, level) in [(0, 0), (1, 4), (2, 7)] {
        bfq.set_flow(Nanos::ZERO, FlowId(flow), FlowParameters { level, ..FlowParameters::default() });
    }
    let greedy = [0, 1, 2].map(|flow| Greedy { flow, units: 16, outstanding: 4 });
    let served = Server::new(&mut bfq, TIMES, &greedy).run(&[], Nanos::from_secs(120), &mut ());
    let count = |flow| served.iter().filter(|one| one.request.flow == FlowId(flow)).count() as f64;
    // (8 - level) x 10.
    assert!((1.8..2.2).contains(&(count(0) / count(1))), "{} and {}", count(0), count(1));
    assert!((3.5..4.5).contains(&(count(1) / count(2))), "{} and {}", count(1), count(2));
}
