//! The Tag Scheduler, decision by decision.

use minerva_blocksched::{
    Cost, Dispatch, FlowId, FlowParameters, Kind, Request, RequestId, Scheduler, Tag, TagOptions, priority,
};
use minerva_model::Nanos;

const UNIT_BYTES: u32 = 4096;
const OPTIONS: TagOptions =
    TagOptions { cost: Cost::PerBytes(UNIT_BYTES), depth: 1, plug: Nanos::ZERO, forget_after: Nanos::from_secs(10) };

fn request(id: u64, flow: u32, kind: Kind, tag: Option<u8>, arrived: Nanos) -> Request {
    let length_bytes = if kind == Kind::Flush { 0 } else { UNIT_BYTES };
    Request {
        id: RequestId(id),
        flow: FlowId(flow),
        kind,
        sync: true,
        tag,
        offset_bytes: id << 20,
        length_bytes,
        arrived,
    }
}

/// Sends the next request and completes it at once; whose it was.
fn serve(tag: &mut Tag, now: Nanos) -> Option<u32> {
    let Dispatch::Send(request) = tag.next(now) else { return None };
    tag.complete(now, &request);
    Some(request.flow.0)
}

/// Sends and completes `count` requests; how many of flow 1.
fn served_of_one(tag: &mut Tag, now: Nanos, count: usize) -> usize {
    (0..count).filter(|_| serve(tag, now) == Some(1)).count()
}

#[test]
fn a_tag_counts_up_to_what_the_flow_may_claim_and_reserved_ones_count_for_nothing() {
    let of = |tag, tag_default, tag_max| {
        let parameters = FlowParameters { tag_default, tag_max, ..FlowParameters::default() };
        priority(&parameters, &request(0, 0, Kind::Read, tag, Nanos::ZERO))
    };
    assert_eq!((of(Some(12), 4, 254), of(Some(12), 4, 8), of(None, 4, 254), of(None, 40, 8)), (12, 8, 4, 8));
    assert_eq!(
        (of(Some(0), 4, 254), of(Some(255), 4, 254), of(Some(254), 4, 254), of(Some(1), 4, 254)),
        (4, 4, 254, 1)
    );
    // A setting out of range is brought into it.
    assert_eq!((of(None, 0, 254), of(None, 255, 255), of(Some(9), 4, 0)), (1, 254, 1));
}

#[test]
fn every_kind_of_request_is_served_in_proportion() {
    for kind in [Kind::Read, Kind::Write, Kind::Flush, Kind::Discard] {
        let mut tag = Tag::new(OPTIONS);
        for id in 0..200 {
            tag.add(Nanos::ZERO, request(id, (id % 2) as u32, kind, Some([2, 6][id as usize % 2]), Nanos::ZERO));
        }
        let of_one = served_of_one(&mut tag, Nanos::ZERO, 80);
        assert!((60..=61).contains(&of_one), "{kind:?} at priorities 2 and 6: {of_one} of 80");
    }
}

#[test]
fn a_large_discard_costs_no_more_than_a_small_one() {
    let large = Request { length_bytes: 1 << 30, ..request(0, 0, Kind::Discard, None, Nanos::ZERO) };
    assert_eq!(OPTIONS.cost.of(&large), 1);
    assert_eq!(OPTIONS.cost.of(&Request { kind: Kind::Write, ..large }), 1 << 18);
}

/// It came in the one moment in which nobody had anything queued. Its counter must not begin at zero, or it would have the disk
/// for as long as the others have had it.
#[test]
fn a_newcomer_gets_no_more_than_its_share() {
    let mut tag = Tag::new(OPTIONS);
    for id in 0..1000 {
        tag.add(Nanos::ZERO, request(id, 0, Kind::Read, None, Nanos::ZERO));
        assert_eq!(serve(&mut tag, Nanos::ZERO), Some(0));
    }
    for id in 1000..1400 {
        tag.add(Nanos::ZERO, request(id, [1, 0][id as usize % 2], Kind::Read, None, Nanos::ZERO));
    }
    let of_newcomer = served_of_one(&mut tag, Nanos::ZERO, 200);
    assert!((99..=101).contains(&of_newcomer), "{of_newcomer} of 200");
}

/// A flow that was away is owed nothing for it, however low its counter was.
#[test]
fn who_was_away_is_not_owed_what_it_did_not_ask_for() {
    let mut tag = Tag::new(OPTIONS);
    tag.add(Nanos::ZERO, request(0, 1, Kind::Read, None, Nanos::ZERO));
    assert_eq!(serve(&mut tag, Nanos::ZERO), Some(1));
    (1..400).for_each(|id| tag.add(Nanos::ZERO, request(id, 0, Kind::Read, None, Nanos::ZERO)));
    assert_eq!(served_of_one(&mut tag, Nanos::ZERO, 300), 0);
    (400..500).for_each(|id| tag.add(Nanos::from_secs(1), request(id, 1, Kind::Read, None, Nanos::from_secs(1))));
    let back = served_of_one(&mut tag, Nanos::from_secs(1), 100);
    assert!((49..=51).contains(&back), "{back} of 100");
}

/// It begins where those are who are owed most; of equal ones the greater priority is first, whatever the number of its flow.
#[test]
fn who_asks_seldom_and_in_a_hurry_waits_for_no_further_request() {
    let mut tag = Tag::new(OPTIONS);
    (0..100).for_each(|id| tag.add(Nanos::ZERO, request(id, (id % 2) as u32, Kind::Read, Some(2), Nanos::ZERO)));
    // Both are owed the same all the time, a request each by turns.
    for id in 100..120 {
        tag.add(Nanos::ZERO, request(id, 2, Kind::Read, Some(200), Nanos::ZERO));
        assert_eq!(serve(&mut tag, Nanos::ZERO), Some(2), "request {id}");
        assert!(serve(&mut tag, Nanos::ZERO).is_some_and(|flow| flow < 2));
    }
    // Who is less urgent than they are comes after those who are owed as much.
    tag.add(Nanos::ZERO, request(120, 3, Kind::Read, Some(1), Nanos::ZERO));
    assert!(serve(&mut tag, Nanos::ZERO).is_some_and(|flow| flow < 2));
}

/// A great request leaves a flow behind the others; a silence of ten seconds wipes that out, and less does not.
#[test]
fn dead_flows_expire() {
    for (silence, first) in [(Nanos::from_secs(9), 0), (Nanos::from_secs(10), 1)] {
        let mut tag = Tag::new(OPTIONS);
        let great = Request { length_bytes: 1 << 20, ..request(0, 1, Kind::Read, None, Nanos::ZERO) };
        tag.add(Nanos::ZERO, great);
        assert_eq!(serve(&mut tag, Nanos::ZERO), Some(1));
        // Behind the request of the silent flow in the queue, before it by what each was served.
        let back = request(1, 1, Kind::Read, None, silence);
        tag.add(silence, request(2, 0, Kind::Read, None, silence));
        assert_eq!(serve(&mut tag, silence), Some(0));
        tag.add(silence, back);
        tag.add(silence, request(3, 0, Kind::Read, None, silence));
        assert_eq!(serve(&mut tag, silence), Some(first), "after {silence:?}");
    }
}

/// Within the plug a flow that is owed more is waited for; after it nobody is.
#[test]
fn the_plug_waits_for_who_is_owed_and_no_longer() {
    let plug = Nanos::from_micros(500);
    let mut tag = Tag::new(TagOptions { plug, ..OPTIONS });
    tag.add(Nanos::ZERO, request(0, 0, Kind::Read, Some(1), Nanos::ZERO));
    tag.add(Nanos::ZERO, request(1, 0, Kind::Read, Some(1), Nanos::ZERO));
    tag.add(Nanos::ZERO, request(2, 1, Kind::Read, Some(100), Nanos::ZERO));
    assert_eq!((serve(&mut tag, Nanos::ZERO), serve(&mut tag, Nanos::ZERO)), (Some(1), Some(0)));
    // Flow 1 has nothing queued now, and a lesser counter.
    assert_eq!(tag.next(Nanos::ZERO), Dispatch::WaitUntil(plug));
    let mut waited = tag;
    let soon = Nanos::from_micros(100);
    waited.add(soon, request(3, 1, Kind::Read, Some(100), soon));
    assert_eq!(serve(&mut waited, soon), Some(1));
    assert_eq!(waited.next(soon), Dispatch::WaitUntil(soon + plug));
    assert_eq!(serve(&mut waited, soon + plug), Some(0));
}

/// Its number comes again as another flow: neither what is still queued nor what is new goes before everybody else's.
#[test]
fn who_is_removed_with_requests_queued_gains_nothing_by_it() {
    let mut tag = Tag::new(OPTIONS);
    (0..2000).for_each(|id| tag.add(Nanos::ZERO, request(id, (id % 2) as u32, Kind::Read, None, Nanos::ZERO)));
    assert_eq!(served_of_one(&mut tag, Nanos::ZERO, 1000), 500);
    tag.remove_flow(Nanos::ZERO, FlowId(1));
    let of_one = served_of_one(&mut tag, Nanos::ZERO, 200);
    assert!((99..=101).contains(&of_one), "{of_one} of 200");
}

/// A device that does what it has in an order of its own: whoever asks all the time has its part all the same, at any depth.
#[test]
fn priorities_count_at_any_depth() {
    const PRIORITIES: [u8; 6] = [12, 10, 8, 6, 4, 2];
    const BACKLOG: u64 = 8;
    for depth in [1, 2, 4, 8, 16, 32] {
        for seed in 1..=5u64 {
            let mut tag = Tag::new(TagOptions { depth, ..TagOptions::default() });
            let (mut number, mut now, mut at_device) = (0, Nanos::ZERO, Vec::new());
            let mut served = [0u64; PRIORITIES.len()];
            let mut add = |tag: &mut Tag, now, flow: usize| {
                number += 1;
                tag.add(now, request(number, flow as u32, Kind::Read, Some(PRIORITIES[flow]), now));
            };
            (0..PRIORITIES.len()).for_each(|flow| (0..BACKLOG).for_each(|_| add(&mut tag, now, flow)));
            let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            for _ in 0..8400 {
                while let Dispatch::Send(request) = tag.next(now) {
                    at_device.push(request);
                }
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                assert!(
                    !at_device.is_empty() && at_device.len() <= depth as usize,
                    "{} at depth {depth}",
                    at_device.len()
                );
                let done = at_device.swap_remove((random >> 33) as usize % at_device.len());
                now += Nanos::from_millis(5);
                tag.complete(now, &done);
                served[done.flow.index()] += 1;
                // The program asks again within the plug.
                add(&mut tag, now + Nanos::from_micros(50), done.flow.index());
            }
            assert!(served.is_sorted_by(|left, right| left >= right), "depth {depth}, seed {seed}: {served:?}");
            let part = |(served, priority): (&u64, &u8)| *served as f64 / (200.0 * f64::from(*priority)) - 1.0;
            let off = served.iter().zip(&PRIORITIES).map(part).fold(0.0, |most: f64, off| most.max(off.abs()));
            assert!(off < 0.1, "depth {depth}, seed {seed}: {off:.3} off, {served:?}");
        }
    }
}

/// It is owed more, and what it has at the device is never done: it is waited for once, and not again until it is done.
#[test]
fn who_is_owed_service_and_has_a_request_that_hangs_is_waited_for_once() {
    let mut tag = Tag::new(TagOptions { depth: 8, ..TagOptions::default() });
    let hung = request(0, 0, Kind::Read, Some(100), Nanos::ZERO);
    tag.add(Nanos::ZERO, hung);
    assert_eq!(tag.next(Nanos::ZERO), Dispatch::Send(hung));
    (1..100).for_each(|id| tag.add(Nanos::ZERO, request(id, 1, Kind::Read, Some(1), Nanos::ZERO)));
    assert_eq!(served_of_one(&mut tag, Nanos::ZERO, 10), 1, "its counter is above the other's by then");
    assert_eq!(tag.next(Nanos::ZERO), Dispatch::WaitUntil(Nanos::SECOND));
    assert_eq!(served_of_one(&mut tag, Nanos::SECOND, 10), 10);
    // Another one of the same flow is served, and waited for within the plug as always.
    tag.add(Nanos::SECOND, request(100, 0, Kind::Read, Some(100), Nanos::SECOND));
    assert_eq!(serve(&mut tag, Nanos::SECOND), Some(0));
    let after_plug = Nanos::SECOND + TagOptions::default().plug;
    assert_eq!(serve(&mut tag, Nanos::SECOND), Some(1), "which is owed as much now");
    assert_eq!(tag.next(Nanos::SECOND), Dispatch::WaitUntil(after_plug));
    assert_eq!(served_of_one(&mut tag, after_plug, 10), 10);
    // It is done after all: the flow is waited for again as long as a request of it is at the device.
    tag.complete(after_plug, &hung);
    let next = request(101, 0, Kind::Read, Some(100), after_plug);
    tag.add(after_plug, next);
    assert_eq!(tag.next(after_plug), Dispatch::Send(next));
    assert_eq!(serve(&mut tag, after_plug), Some(1));
    assert_eq!(tag.next(after_plug), Dispatch::WaitUntil(after_plug + Nanos::SECOND));
}
