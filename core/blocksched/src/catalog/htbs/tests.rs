//! What HTBS learns and keeps for itself.

use super::{Htbs, HtbsOptions};
use crate::{Contract, Dispatch, FlowId, FlowParameters, Kind, Request, RequestId, Scheduler};
use minerva_model::Nanos;

fn request(id: u64, flow: u32, kind: Kind, offset_bytes: u64, arrived: Nanos) -> Request {
    let length_bytes = match kind {
        Kind::Flush => 0,
        Kind::Discard => 32 << 20,
        Kind::Read | Kind::Write => 65_536,
    };
    Request { id: RequestId(id), flow: FlowId(flow), kind, sync: true, tag: None, offset_bytes, length_bytes, arrived }
}

/// A sequential writer with a request of a kind that moves nothing after each fourth write, or without, beside a reader; served one by
/// one.
fn writer_beside_a_reader(between: Option<Kind>) -> Htbs {
    let mut htbs = Htbs::new(HtbsOptions::default());
    let contract = Contract { rate_per_second: 1000.0, burst: 64.0, delay: Nanos::from_millis(200) };
    let parameters = FlowParameters { contract: Some(contract), ..FlowParameters::default() };
    (0..2).for_each(|flow| htbs.set_flow(Nanos::ZERO, FlowId(flow), parameters));
    let (mut now, mut id, mut places, mut writes) = (Nanos::ZERO, 0, [0, 1 << 36], 0);
    let mut add = |htbs: &mut Htbs, now: Nanos, flow: u32| {
        id += 1;
        let between = between.filter(|_| flow == 0 && writes % 5 == 4);
        writes += u64::from(flow == 0);
        let place = &mut places[flow as usize];
        let kind = between.unwrap_or([Kind::Write, Kind::Read][flow as usize]);
        htbs.add(now, request(id, flow, kind, if between.is_some() { 0 } else { *place }, now));
        *place += if between.is_some() { 0 } else { 65_536 };
    };
    (0..2).for_each(|flow| add(&mut htbs, now, flow));
    for _ in 0..2000 {
        match htbs.next(now) {
            Dispatch::Send(sent) => {
                now += Nanos::from_millis(if sent.moves_data() { 2 } else { 20 });
                htbs.complete(now, &sent);
                add(&mut htbs, now, sent.flow.0);
            }
            Dispatch::WaitUntil(until) => now = until,
            Dispatch::Idle => panic!("idle"),
        }
    }
    htbs
}

#[test]
fn a_flush_is_no_jump_and_its_time_is_not_that_of_a_unit() {
    is_no_jump_and_its_time_is_not_that_of_a_unit(Kind::Flush);
}

#[test]
fn a_discard_is_no_jump_and_its_time_is_not_that_of_a_unit() {
    is_no_jump_and_its_time_is_not_that_of_a_unit(Kind::Discard);
}

fn is_no_jump_and_its_time_is_not_that_of_a_unit(kind: Kind) {
    let [mut plain, mut mixed] = [None, Some(kind)].map(writer_beside_a_reader);
    let [plain, mixed] = [&mut plain, &mut mixed].map(|htbs| htbs.flows.at(FlowId(0)).state);
    assert!(mixed.sequence.is_sequential(HtbsOptions::default().sequential));
    let (plain, mixed) = (plain.unit.mean_ns(), mixed.unit.mean_ns());
    assert!(plain > 0.0 && (plain - mixed).abs() < 0.01 * plain, "{plain} ns a unit, with {kind:?} {mixed}");
}

/// Two sequential writers for whom nobody waits, with eight requests queued each.
#[test]
fn writes_that_nobody_waits_for_keep_the_turn_while_more_are_queued_and_are_not_waited_for() {
    let mut htbs = Htbs::new(HtbsOptions::default());
    let contract = Contract { rate_per_second: 1000.0, burst: 128.0, delay: Nanos::from_millis(200) };
    let parameters = FlowParameters { contract: Some(contract), ..FlowParameters::default() };
    (0..2).for_each(|flow| htbs.set_flow(Nanos::ZERO, FlowId(flow), parameters));
    let (mut now, mut id, mut places) = (Nanos::ZERO, 0, [0, 1 << 36]);
    let mut add = |htbs: &mut Htbs, now: Nanos, flow: u32| {
        id += 1;
        let place = &mut places[flow as usize];
        htbs.add(now, Request { sync: false, ..request(id, flow, Kind::Write, *place, now) });
        *place += 65_536;
    };
    (0..2).for_each(|flow| (0..8).for_each(|_| add(&mut htbs, now, flow)));
    let (mut last, mut changes, mut served) = (None, 0, [0; 2]);
    for _ in 0..1000 {
        let Dispatch::Send(sent) = htbs.next(now) else { panic!("it waits") };
        let is_change = last.replace(sent.flow) != Some(sent.flow);
        changes += u32::from(is_change);
        served[sent.flow.index()] += 1;
        now += Nanos::from_millis(if is_change { 12 } else { 2 });
        htbs.complete(now, &sent);
        add(&mut htbs, now, sent.flow.0);
    }
    assert!(changes <= 125, "{changes} changes of flow in 1,000 requests");
    assert!(served.iter().all(|served| *served >= 300), "{served:?}");
    // Whoever has nothing queued any more loses its turn at once.
    let flow = last.unwrap();
    let mut cancelled = Vec::new();
    while htbs.flows.at(flow).queue.len() > 1 {
        cancelled.extend(htbs.flows.take(flow, 1));
    }
    let Dispatch::Send(sent) = htbs.next(now) else { panic!("it waits") };
    let Dispatch::Send(beside) = htbs.next(now) else {
        panic!("it waits for what follows a write that nobody waits for")
    };
    assert!(sent.flow != flow || beside.flow != flow);
}

/// On a device that takes several requests at once.
#[test]
fn what_takes_long_on_spare_time_and_a_flush_break_no_contract_of_another() {
    let contract = |delay| Some(Contract { rate_per_second: 1000.0, burst: 16.0, delay: Nanos::from_millis(delay) });
    // Of a writer in rows: one that has nothing but spare time, and one that is owed more.
    for (of_writer, kind) in [(None, Kind::Write), (None, Kind::Flush), (contract(200), Kind::Flush)] {
        let mut htbs = Htbs::new(HtbsOptions::default());
        for (flow, contract) in [(0, of_writer), (1, contract(50))] {
            htbs.set_flow(Nanos::ZERO, FlowId(flow), FlowParameters { contract, ..FlowParameters::default() });
        }
        htbs.add(Nanos::ZERO, request(0, 0, kind, 0, Nanos::ZERO));
        assert!(matches!(htbs.next(Nanos::ZERO), Dispatch::Send(sent) if sent.flow == FlowId(0)));
        let asked = Nanos::from_millis(1);
        htbs.add(asked, request(1, 1, Kind::Read, 1 << 36, asked));
        // What follows it is waited for, while there is time for that.
        let of = format!("{kind:?} of {of_writer:?}");
        let Dispatch::WaitUntil(until) = htbs.next(asked) else { panic!("{of}: it does not wait") };
        assert!(until > asked && until < asked + Nanos::from_millis(50), "{of}: until {until}");
        let next = htbs.next(until);
        assert!(matches!(next, Dispatch::Send(sent) if sent.flow == FlowId(1)), "{of}: {next:?}");
    }
}

/// The same beside one that was promised nothing, and has its part.
#[test]
fn a_turn_on_spare_time_ends_also_while_a_write_takes_long() {
    let options = HtbsOptions::default();
    let mut htbs = Htbs::new(options);
    htbs.add(Nanos::ZERO, request(0, 0, Kind::Write, 0, Nanos::ZERO));
    assert!(matches!(htbs.next(Nanos::ZERO), Dispatch::Send(_)));
    let asked = Nanos::from_millis(1);
    htbs.add(asked, request(1, 1, Kind::Read, 1 << 36, asked));
    let until = options.spare.unwrap().turn_time_max;
    assert_eq!(htbs.next(asked), Dispatch::WaitUntil(until));
    assert!(matches!(htbs.next(until), Dispatch::Send(sent) if sent.flow == FlowId(1)));
}

#[test]
fn contracts_beyond_all_measure_are_counted_without_an_overflow() {
    let mut htbs = Htbs::new(HtbsOptions::default());
    let contract = Contract { rate_per_second: 1e15, burst: 1e18, delay: Nanos::from_secs(10) };
    let parameters = FlowParameters { contract: Some(contract), ..FlowParameters::default() };
    let mut now = Nanos::ZERO;
    for id in 0..100 {
        let flow = id as u32 % 4;
        htbs.set_flow(now, FlowId(flow), parameters);
        (0..2).for_each(|more| htbs.add(now, request(2 * id + more, flow, Kind::Read, id << 20, now)));
        if let Dispatch::Send(sent) = htbs.next(now) {
            now += Nanos::from_millis(5);
            htbs.complete(now, &sent);
        }
    }
    assert!(htbs.reserved_ns > 0);
}
