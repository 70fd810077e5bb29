//! How long the disk is kept idle while somebody waits, and who goes first: the anticipatory scheduler's bound and CFQ's classes.

mod server;

use minerva_blocksched::{
    Anticipatory, AnticipatoryOptions, Cfq, CfqOptions, Class, FlowId, FlowParameters, GroupId, Scheduler, ServiceTimes,
};
use minerva_model::Nanos;
use proptest::prelude::{ProptestConfig, Strategy, prop_assert, proptest};
use server::{Arrival, Served, Server};

const TIMES: ServiceTimes = ServiceTimes { unit_ns: 500_000.0, request: Nanos(200_000), seek: Nanos::from_millis(4) };
const UNITS_MAX: u32 = 31;
/// What the longest request takes.
const REQUEST_MAX: Nanos = Nanos(4_200_000 + UNITS_MAX as u64 * 500_000);

/// Bursts of six flows, some close together and some after a while.
fn script() -> impl Strategy<Value = Vec<Arrival>> {
    let burst = (0u64..4000, 0u32..6, 1..=UNITS_MAX, 1usize..16);
    proptest::collection::vec(burst, 5..60).prop_map(|mut bursts| {
        bursts.sort_by_key(|(at_ms, ..)| *at_ms);
        let arrivals = bursts.into_iter().map(|(at_ms, flow, units, count)| {
            std::iter::repeat_n(Arrival { at: Nanos::from_millis(at_ms), flow, units }, count)
        });
        arrivals.flatten().collect()
    })
}

/// What was queued when the `index`-th request left, itself included.
fn queued(served: &[Served], index: usize) -> impl Iterator<Item = &Served> {
    let sent = served[index].sent;
    served[index..].iter().filter(move |later| later.request.arrived <= sent)
}

/// The first request, if any, that left later than it may: after it could, and after what the wait for the flow served before
/// it explains. That wait ends when the flow asks, and at `until`, given when the disk was free and since when somebody waits.
fn late(served: &[Served], until: impl Fn(Nanos, Nanos) -> Nanos) -> Option<usize> {
    (1..served.len()).find(|index| {
        let before = served[index - 1];
        let oldest = queued(served, *index).map(|waiting| waiting.request.arrived).min().unwrap_or_default();
        let own = queued(served, *index).filter(|waiting| waiting.request.flow == before.request.flow);
        let own = own.map(|waiting| waiting.request.arrived).min().unwrap_or(Nanos(u64::MAX));
        served[*index].sent > before.done.max(own.min(until(before.done, oldest)))
    })
}

const CLASSES: [Class; 3] = [Class::RealTime, Class::BestEffort, Class::Idle];

/// A flow's group and class: two groups with a flow of each class.
fn place(flow: FlowId) -> (GroupId, Class) {
    (GroupId(flow.0 / 3), CLASSES[flow.index() % 3])
}

fn cfq() -> Cfq {
    let mut cfq = Cfq::new(CfqOptions::default());
    for flow in (0..6).map(FlowId) {
        let (group, class) = place(flow);
        cfq.set_flow(Nanos::ZERO, flow, FlowParameters { group, class, ..FlowParameters::default() });
    }
    cfq
}

proptest! {
    // Each looks at every request beside every later one.
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_anticipatory_scheduler_waits_no_longer_than_its_bound_and_only_for_who_has_nothing_queued(arrivals in script()) {
        let options = AnticipatoryOptions::default();
        let mut scheduler = Anticipatory::new(options);
        let served = Server::new(&mut scheduler, TIMES, &[]).run(&arrivals, Nanos::ZERO, &mut ());
        // Counted from the completion: who comes later than that finds a disk that waits for nobody.
        let late = late(&served, |free, oldest| oldest.max(free + options.wait_max));
        prop_assert!(late.is_none(), "{:?}", late.map(|index| &served[index - 1..=index]));
    }

    #[test]
    fn cfq_idles_no_longer_than_its_slice_idle_whatever_the_class(arrivals in script()) {
        let mut scheduler = cfq();
        let served = Server::new(&mut scheduler, TIMES, &[]).run(&arrivals, Nanos::ZERO, &mut ());
        // So the idle class is served as soon as nobody else asks.
        let late = late(&served, |free, oldest| oldest.max(free) + CfqOptions::default().slice_idle);
        prop_assert!(late.is_none(), "{:?}", late.map(|index| &served[index - 1..=index]));
    }

    #[test]
    fn a_lower_class_goes_before_a_higher_one_of_its_group_only_to_end_its_slice(arrivals in script()) {
        let mut scheduler = cfq();
        let served = Server::new(&mut scheduler, TIMES, &[]).run(&arrivals, Nanos::ZERO, &mut ());
        for (index, one) in served.iter().enumerate() {
            let (group, class) = place(one.request.flow);
            let passed_over = queued(&served, index).filter(|other| {
                let (other_group, other_class) = place(other.request.flow);
                other_group == group && other_class < class
            });
            let Some(since) = passed_over.map(|other| other.request.arrived).min() else { continue };
            let goes_on = index > 0 && served[index - 1].request.flow == one.request.flow;
            prop_assert!(goes_on, "a slice began before a higher class: {:?}", one);
            // A slice lasts from its first completion.
            let end = since + REQUEST_MAX + CfqOptions::default().slice_sync;
            prop_assert!(one.sent <= end, "a slice went on for too long: {:?} since {:?}", one, since);
        }
    }
}
