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

/// Whoever has a contract asks on and on, and one without it whose request hangs asks again later.
#[test]
fn under_htbs_who_has_no_contract_has_its_part_beside_what_hangs_of_it() {
    let mut scheduler = SchedulerName::Htbs.build(BuildOptions::for_disk(false, 32));
    let contract = Contract { rate_per_second: 1000.0, burst: 1000.0, delay: Nanos::from_millis(50) };
    scheduler.set_flow(Nanos::ZERO, FlowId(0), FlowParameters::default());
    let parameters = FlowParameters { contract: Some(contract), ..FlowParameters::default() };
    scheduler.set_flow(Nanos::ZERO, FlowId(1), parameters);
    let mut now = Nanos::ZERO;
    scheduler.add(now, read(0, 0, now));
    assert_eq!(next(scheduler.as_mut(), &mut now, Nanos::ZERO).map(|hung| hung.flow), Some(FlowId(0)));
    scheduler.add(now, read(1, 1, now));
    let mut waits_since = None;
    for id in 2..9000 {
        scheduler.add(now, read(id, 1, now));
        if id == 3000 {
            waits_since = Some(now);
            scheduler.add(now, read(10_000, 0, now));
        }
        let until = now + PATIENCE;
        let sent = next(scheduler.as_mut(), &mut now, until).expect("two wait");
        if sent.flow == FlowId(0) {
            let waited = waits_since.map(|since| now.since(since)).expect("it asks again");
            assert!(waited <= PATIENCE, "{waited}");
            return;
        }
        now += Nanos::from_millis(1);
        scheduler.complete(now, &sent);
    }
    panic!("it asked at {waits_since:?}, and has nothing at {now}");
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
    // Once: for the first eight. Of those behind them two are sent meanwhile to see whether they are answered.
    assert!(longest <= PATIENCE && all <= PATIENCE, "{longest} once, {all} in all");
    assert_eq!(hung.len(), 10);
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

/// Those that send others beside what hangs, with what they have at the disk at once.
const BESIDE: [(SchedulerName, bool, usize); 3] =
    [(SchedulerName::Tag, false, 2), (SchedulerName::Tag, true, 8), (SchedulerName::Cfq, false, 8)];

/// All that leaves until then, and is not answered.
fn leave(scheduler: &mut dyn Scheduler, now: &mut Nanos, until: Nanos) -> Vec<Request> {
    std::iter::from_fn(|| next(scheduler, now, until)).collect()
}

/// The same, of so many that flow 0 asks for.
fn hang(scheduler: &mut dyn Scheduler, now: &mut Nanos, count: u64, until: Nanos) -> Vec<Request> {
    (0..count).for_each(|id| scheduler.add(*now, read(id, 0, *now)));
    leave(scheduler, now, until)
}

#[test]
fn who_asks_beside_a_deep_queue_that_hangs_waits_once_and_that_is_sent_again_when_it_is_answered() {
    for (name, rotational, depth) in BESIDE {
        let of = format!("{name}, rotational {rotational}");
        let mut scheduler = two_flows(name, rotational);
        let mut now = Nanos::ZERO;
        let mut hung = hang(scheduler.as_mut(), &mut now, 64, Nanos::ZERO);
        assert_eq!(hung.len(), depth, "{of}");
        let (_, all) = serve_beside(scheduler.as_mut(), &mut now, 1_000, &mut hung).expect("it is served");
        assert!(all <= Nanos::SECOND, "{of}: {all} in all");
        for first_id in [10_000, 20_000] {
            let (_, all) = serve_beside(scheduler.as_mut(), &mut now, first_id, &mut hung).expect("it is served");
            assert_eq!(all, Nanos::ZERO, "{of}");
        }
        // After one second, three, seven and fifteen.
        assert_eq!(hung.len(), depth + 4, "{of}");
        // The last of them is answered: what is queued behind it is sent as ever.
        scheduler.complete(now, &hung[hung.len() - 1]);
        let rest = std::iter::from_fn(|| {
            let until = now + PATIENCE;
            let sent = next(scheduler.as_mut(), &mut now, until)?;
            now += Nanos::from_millis(1);
            scheduler.complete(now, &sent);
            Some(sent)
        });
        assert_eq!(rest.count(), 64 - hung.len(), "{of}");
        assert!(now < Nanos::from_secs(17) && scheduler.queued() == 0, "{of}: {now}");
    }
}

/// Also where it was there before others came, and a minute after they have gone.
#[test]
fn a_flow_that_hangs_and_is_alone_has_as_many_sent_each_second() {
    for (name, rotational, depth) in BESIDE {
        let of = format!("{name}, rotational {rotational}");
        let mut scheduler = two_flows(name, rotational);
        let mut now = Nanos::ZERO;
        let mut hung = hang(scheduler.as_mut(), &mut now, 256, Nanos::from_secs(4));
        assert_eq!((hung.len(), now), (5 * depth, Nanos::from_secs(4)), "{of}");
        let (_, all) = serve_beside(scheduler.as_mut(), &mut now, 1_000, &mut hung).expect("it is served");
        assert!(all <= PATIENCE, "{of}: {all} in all");
        let [minute, later] = [59, 65].map(|seconds| now + Nanos::from_secs(seconds));
        let meanwhile = leave(scheduler.as_mut(), &mut now, minute).len();
        assert!(meanwhile <= 5, "{of}: {meanwhile}");
        let sent = leave(scheduler.as_mut(), &mut now, later).len();
        assert!(sent >= 5 * depth, "{of}: {sent}");
    }
}

/// Its place in the order is not kept for it: it would be served alone for as long as it was passed over.
#[test]
fn who_is_answered_again_is_owed_nothing_for_the_time_before() {
    for (name, rotational, _) in BESIDE {
        let of = format!("{name}, rotational {rotational}");
        let mut scheduler = two_flows(name, rotational);
        let mut now = Nanos::ZERO;
        let mut hung = hang(scheduler.as_mut(), &mut now, 256, Nanos::ZERO);
        serve_beside(scheduler.as_mut(), &mut now, 1_000, &mut hung).expect("it is served");
        hung.iter().for_each(|request| scheduler.complete(now, request));
        (10_000..10_256).for_each(|id| scheduler.add(now, read(id, 1, now)));
        let mut served = [0; 2];
        while served[0] + served[1] < 400 && scheduler.queued() > 0 {
            let until = now + PATIENCE;
            let sent = next(scheduler.as_mut(), &mut now, until).expect("both have work");
            served[sent.flow.index()] += 1;
            now += Nanos::from_millis(1);
            scheduler.complete(now, &sent);
            if served[1] == 0 {
                assert!(served[0] < 150, "{of}: {served:?}");
            }
        }
        assert!(served[1] > 0, "{of}: {served:?}");
    }
}

/// Those that keep the disk idle for a flow. The published HTBS does as ours, but may start a flow in the past, so that others are late.
const NAMES: [SchedulerName; 5] =
    [SchedulerName::Bfq, SchedulerName::Cfq, SchedulerName::Anticipatory, SchedulerName::Tag, SchedulerName::Htbs];
