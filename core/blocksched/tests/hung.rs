//! A request that hangs: whoever waits beside it is served after a while, and beside what hangs from then on.

use minerva_blocksched::{
    BuildOptions, Contract, Dispatch, FlowId, FlowParameters, GroupId, Kind, Request, RequestId, Scheduler,
    SchedulerName,
};
use minerva_model::Nanos;

/// Within this others are served, however many requests hang.
const PATIENCE: Nanos = Nanos::from_secs(2);

fn read(id: u64, flow: u32, now: Nanos) -> Request {
    Request {
        id: RequestId(id),
        flow: FlowId(flow),
        kind: Kind::Read,
        sync: true,
        tag: None,
        offset_bytes: u64::from(flow) << 40 | id << 16,
        length_bytes: 1 << 16,
        arrived: now,
    }
}

/// Flow 0, whose requests hang, and flow 1, in groups of their own and of unequal weight, with a contract each.
fn two_flows(name: SchedulerName, rotational: bool) -> Box<dyn Scheduler> {
    let mut scheduler = name.build(BuildOptions::for_disk(rotational, 32));
    for (flow, weight) in [(0, 100), (1, 300)] {
        let contract = Contract { rate_per_second: 1000.0, burst: 1000.0, delay: Nanos::from_millis(50) };
        let parameters =
            FlowParameters { weight, group: GroupId(flow), contract: Some(contract), ..FlowParameters::default() };
        scheduler.set_flow(Nanos::ZERO, FlowId(flow), parameters);
        scheduler.set_group_weight(Nanos::ZERO, GroupId(flow), weight);
    }
    scheduler
}

/// The next request that leaves, with `now` then.
fn next(scheduler: &mut dyn Scheduler, now: &mut Nanos, until: Nanos) -> Option<Request> {
    loop {
        match scheduler.next(*now) {
            Dispatch::Send(request) => return Some(request),
            Dispatch::WaitUntil(at) if at <= until => *now = at,
            Dispatch::WaitUntil(_) | Dispatch::Idle => return None,
        }
    }
}

/// Serves flow 1, which asks one by one for some seconds, and says what it waited the longest and in all. Whatever of flow 0 leaves
/// hangs.
fn serve_beside(
    scheduler: &mut dyn Scheduler,
    now: &mut Nanos,
    first_id: u64,
    hung: &mut Vec<Request>,
) -> Option<(Nanos, Nanos)> {
    let (mut longest, mut all) = (Nanos::ZERO, Nanos::ZERO);
    for id in first_id..first_id + 5000 {
        let asked = *now;
        scheduler.add(asked, read(id, 1, asked));
        let sent = loop {
            let sent = next(scheduler, now, asked + PATIENCE)?;
            if sent.flow == FlowId(1) {
                break sent;
            }
            hung.push(sent);
        };
        longest = longest.max(now.since(asked));
        all += now.since(asked);
        *now += Nanos::from_millis(1);
        scheduler.complete(*now, &sent);
    }
    Some((longest, all))
}

#[test]
fn who_asks_beside_a_request_that_hangs_is_served_and_waits_for_it_once() {
    for (name, rotational) in NAMES.iter().flat_map(|name| [(*name, false), (*name, true)]) {
        let of = format!("{name}, rotational {rotational}");
        let mut scheduler = two_flows(name, rotational);
        let mut now = Nanos::ZERO;
        // Sequential reads that are served at once, and one that hangs.
        for id in 0..40 {
            scheduler.add(now, read(id, 0, now));
            let sent = next(scheduler.as_mut(), &mut now, PATIENCE).unwrap_or_else(|| panic!("{of}"));
            now += Nanos::from_millis(1);
            scheduler.complete(now, &sent);
        }
        scheduler.add(now, read(40, 0, now));
        let mut hung: Vec<_> = next(scheduler.as_mut(), &mut now, PATIENCE).into_iter().collect();
        // What comes behind it is served all the same, and holds up nobody.
        for id in 41..45 {
            let waited = serve_beside(scheduler.as_mut(), &mut now, 10_000 * id, &mut hung);
            let (longest, all) = waited.unwrap_or_else(|| panic!("{of}: it waits for {hung:?}"));
            assert!(all <= PATIENCE, "{of}, before {id}: {longest} once, {all} in all");
            assert!(hung.len() as u64 == id - 40, "{of}: {hung:?}");
            scheduler.add(now, read(id, 0, now));
        }
        // All are done after all.
        for request in hung {
            scheduler.complete(now, &request);
        }
        let left = next(scheduler.as_mut(), &mut now, Nanos(u64::MAX));
        assert_eq!((left.map(|request| request.id), scheduler.queued()), (Some(RequestId(44)), 0), "{of}");
    }
}

/// CFQ has eight at the disk.
#[test]
fn who_asks_beside_as_many_that_hang_as_cfq_has_at_the_disk_is_served() {
    let mut scheduler = two_flows(SchedulerName::Cfq, true);
    let mut now = Nanos::ZERO;
    (0..16).for_each(|id| scheduler.add(now, read(id, 0, now)));
    let mut hung: Vec<_> = std::iter::from_fn(|| next(scheduler.as_mut(), &mut now, Nanos::ZERO)).collect();
    assert_eq!(hung.len(), 8);
    let waited = serve_beside(scheduler.as_mut(), &mut now, 1000, &mut hung);
    let (longest, all) = waited.expect("what hangs keeps all places");
    // Twice: for the first eight, and for those behind them.
    assert!(longest <= PATIENCE && all <= Nanos(2 * PATIENCE.0), "{longest} once, {all} in all");
    assert_eq!(hung.len(), 16);
    // All are done after all, and it has eight at the disk as before.
    for request in hung {
        scheduler.complete(now, &request);
    }
    (20..40).for_each(|id| scheduler.add(now, read(id, 0, now)));
    let soon = now + Nanos::from_millis(500);
    assert_eq!(std::iter::from_fn(|| next(scheduler.as_mut(), &mut now, soon)).count(), 8);
}

/// Of what was queued before the first eight were given up the rest is answered at once.
#[test]
fn what_is_answered_beside_requests_that_hang_does_not_pass_for_them() {
    let mut scheduler = two_flows(SchedulerName::Cfq, true);
    let mut now = Nanos::ZERO;
    (0..64).for_each(|id| scheduler.add(now, read(id, 0, now)));
    let hung: Vec<_> = std::iter::from_fn(|| next(scheduler.as_mut(), &mut now, Nanos::ZERO)).collect();
    assert_eq!(hung.len(), 8);
    let (mut waited, mut answered) = (Nanos::ZERO, 0);
    // Each flow has its slices in turn.
    for id in 1000..5000 {
        let asked = now;
        scheduler.add(asked, read(id, 1, asked));
        loop {
            let sent = next(scheduler.as_mut(), &mut now, asked + PATIENCE).expect("what hangs keeps all places");
            now += Nanos::from_millis(1);
            scheduler.complete(now, &sent);
            if sent.id == RequestId(id) {
                break;
            }
            answered += 1;
        }
        waited += now.since(asked + Nanos::from_millis(1));
    }
    assert_eq!((answered, scheduler.queued()), (56, 0));
    assert!(waited <= PATIENCE, "{waited} in all");
}

/// Those that keep the disk idle for a flow. The published HTBS does as ours, but may start a flow in the past, so that others are late.
const NAMES: [SchedulerName; 5] =
    [SchedulerName::Bfq, SchedulerName::Cfq, SchedulerName::Anticipatory, SchedulerName::Tag, SchedulerName::Htbs];
