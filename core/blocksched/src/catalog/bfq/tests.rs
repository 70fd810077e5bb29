use super::{Bfq, BfqOptions};
use crate::{BuildOptions, Dispatch, FlowId, FlowParameters, GroupId, Kind, Request, RequestId, Scheduler};
use minerva_model::Nanos;

/// A reader of 64 KiB in a group of its own; its requests follow each other.
fn request(flow: u32, number: u64, arrived: Nanos) -> Request {
    Request {
        id: RequestId(number),
        flow: FlowId(flow),
        kind: Kind::Read,
        sync: true,
        tag: None,
        offset_bytes: u64::from(flow) << 32 | number << 16,
        length_bytes: 1 << 16,
        arrived,
    }
}

fn two_groups() -> Bfq {
    let mut bfq = Bfq::new(BfqOptions { queues_internally: true, ..BfqOptions::default() });
    for flow in 0..2 {
        let parameters = FlowParameters { group: GroupId(flow), ..FlowParameters::default() };
        bfq.set_flow(Nanos::ZERO, FlowId(flow), parameters);
    }
    bfq
}

#[test]
fn the_disk_is_kept_idle_between_two_groups_of_equal_weight_and_past_the_time_of_the_one_in_service() {
    let mut bfq = two_groups();
    bfq.add(Nanos::ZERO, request(0, 0, Nanos::ZERO));
    bfq.add(Nanos::ZERO, request(1, 0, Nanos::ZERO));
    let Dispatch::Send(first) = bfq.next(Nanos::ZERO) else { panic!("the disk is free") };
    let late = Nanos::from_millis(200);
    bfq.complete(late, &first);
    let Dispatch::WaitUntil(until) = bfq.next(late) else { panic!("its next request is worth waiting for") };
    assert_eq!(until, late + BfqOptions::default().slice_idle);
    // It comes, and waits for its next turn: the first one's time is over.
    bfq.add(late, request(first.flow.0, 1, late));
    let Dispatch::Send(second) = bfq.next(late) else { panic!("the disk is free") };
    assert_ne!(second.flow, first.flow);
}

#[test]
fn the_wait_for_who_is_away_begins_when_the_disk_falls_idle() {
    let mut bfq = two_groups();
    bfq.add(Nanos::ZERO, request(0, 0, Nanos::ZERO));
    let Dispatch::Send(first) = bfq.next(Nanos::ZERO) else { panic!("the disk is free") };
    let done = Nanos::from_millis(5);
    bfq.complete(done, &first);
    // Somebody else comes while it is waited for: the wait began when the disk fell idle.
    let soon = Nanos::from_millis(7);
    bfq.add(soon, request(1, 0, soon));
    let until = done + BfqOptions::default().slice_idle;
    assert_eq!(bfq.next(soon), Dispatch::WaitUntil(until));
    let Dispatch::Send(second) = bfq.next(until) else { panic!("the wait is over") };
    bfq.complete(until, &second);
    // A second later nobody waits for the other one any more.
    let late = Nanos::SECOND;
    bfq.add(late, request(0, 1, late));
    assert!(matches!(bfq.next(late), Dispatch::Send(third) if third.flow == FlowId(0)));
}

#[test]
fn who_does_not_come_back_is_not_waited_for_longer() {
    let mut bfq = two_groups();
    bfq.add(Nanos::ZERO, request(0, 0, Nanos::ZERO));
    bfq.add(Nanos::ZERO, request(1, 0, Nanos::ZERO));
    let Dispatch::Send(first) = bfq.next(Nanos::ZERO) else { panic!("the disk is free") };
    bfq.complete(Nanos(1), &first);
    let Dispatch::WaitUntil(until) = bfq.next(Nanos(1)) else { panic!("its next request is worth waiting for") };
    assert!(matches!(bfq.next(until), Dispatch::Send(second) if second.flow != first.flow));
}

/// Two flows of equal weight in one group that read anywhere, 40 times each, and again after `think`. Whether others wait for what follows then
/// the request of one of them.
fn is_waited_for(options: BfqOptions, think: Nanos) -> bool {
    let mut bfq = Bfq::new(options);
    let mut now = Nanos::ZERO;
    let read = |flow, number, now| Request { offset_bytes: number << 24, ..request(flow, number, now) };
    for (flow, number) in (0..2).flat_map(|flow| (0..40).map(move |number| (flow, number))) {
        bfq.add(now, read(flow, number, now));
        let sent = loop {
            match bfq.next(now) {
                Dispatch::Send(sent) => break sent,
                Dispatch::WaitUntil(until) => now = until,
                Dispatch::Idle => panic!("one is queued"),
            }
        };
        now += Nanos::from_millis(1);
        bfq.complete(now, &sent);
        now += think;
    }
    (0..2).for_each(|flow| bfq.add(now, read(flow, 40, now)));
    assert!(matches!(bfq.next(now), Dispatch::Send(_)));
    matches!(bfq.next(now), Dispatch::WaitUntil(_))
}

#[test]
fn equal_flows_that_lie_apart_are_waited_for_on_a_disk_that_seeks_if_they_ask_on() {
    let for_images = |rotational| BfqOptions::for_disk(BuildOptions::for_images(rotational, 32));
    let for_disk = BfqOptions::for_disk(BuildOptions::for_disk(true, 32));
    let [brief, long] = [0, 20].map(Nanos::from_millis);
    assert!(is_waited_for(for_images(true), brief));
    assert!(!is_waited_for(for_images(true), long), "who thinks for long");
    assert!(!is_waited_for(for_images(false), brief), "a disk that does not seek");
    assert!(!is_waited_for(for_disk, brief), "flows that lie side by side");
}

/// Four seconds of writes that follow each other, each with another request behind it that is at the start of the disk.
fn writes_beside(kind: Kind, length_bytes: u32) -> Bfq {
    let mut bfq = two_groups();
    for number in 0..4000 {
        let now = Nanos::from_millis(number);
        let write = Request { kind: Kind::Write, ..request(0, number, now) };
        let other = Request { kind, offset_bytes: 0, length_bytes, ..write };
        for one in [write, other] {
            bfq.add(now, one);
            let Dispatch::Send(sent) = bfq.next(now) else { panic!("the disk is free") };
            bfq.complete(now, &sent);
        }
        assert_eq!(bfq.position_bytes, write.end_bytes());
    }
    bfq
}

#[test]
fn a_flush_is_no_seek() {
    assert_eq!(writes_beside(Kind::Flush, 0).flows.at(FlowId(0)).state.seeks, 0);
}

#[test]
fn a_discard_is_no_seek_and_says_nothing_of_how_fast_the_disk_is() {
    let mut bfq = writes_beside(Kind::Discard, 32 << 20);
    assert_eq!(bfq.flows.at(FlowId(0)).state.seeks, 0);
    let learnt = bfq.peak_rate.bytes_within(Nanos::SECOND).expect("seconds of writes");
    assert!((60_000_000..80_000_000).contains(&learnt), "{learnt}: the writes are 65,536,000 a second");
}
