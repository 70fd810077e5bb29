//! What HTBS learns and keeps for itself.

use super::{Htbs, HtbsOptions};
use crate::{Contract, Dispatch, FlowId, FlowParameters, Kind, Request, RequestId, Scheduler};
use minerva_model::Nanos;

fn request(id: u64, flow: u32, kind: Kind, offset_bytes: u64, arrived: Nanos) -> Request {
    let length_bytes = if kind == Kind::Flush { 0 } else { 65_536 };
    Request { id: RequestId(id), flow: FlowId(flow), kind, sync: true, tag: None, offset_bytes, length_bytes, arrived }
}

/// A sequential writer with a flush after each fourth write, or without, beside a reader; served one by one.
fn writer_beside_a_reader(flushes: bool) -> Htbs {
    let mut htbs = Htbs::new(HtbsOptions::default());
    let contract = Contract { rate_per_second: 1000.0, burst: 64.0, delay: Nanos::from_millis(200) };
    let parameters = FlowParameters { contract: Some(contract), ..FlowParameters::default() };
    (0..2).for_each(|flow| htbs.set_flow(Nanos::ZERO, FlowId(flow), parameters));
    let (mut now, mut id, mut places, mut writes) = (Nanos::ZERO, 0, [0, 1 << 36], 0);
    let mut add = |htbs: &mut Htbs, now: Nanos, flow: u32| {
        id += 1;
        let is_flush = flow == 0 && flushes && writes % 5 == 4;
        writes += u64::from(flow == 0);
        let place = &mut places[flow as usize];
        let kind = [if is_flush { Kind::Flush } else { Kind::Write }, Kind::Read][flow as usize];
        htbs.add(now, request(id, flow, kind, if is_flush { 0 } else { *place }, now));
        *place += if is_flush { 0 } else { 65_536 };
    };
    (0..2).for_each(|flow| add(&mut htbs, now, flow));
    for _ in 0..2000 {
        match htbs.next(now) {
            Dispatch::Send(sent) => {
                now += Nanos::from_millis(if sent.kind == Kind::Flush { 20 } else { 2 });
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
    let [mut plain, mut flushing] = [false, true].map(writer_beside_a_reader);
    let [plain, flushing] = [&mut plain, &mut flushing].map(|htbs| htbs.flows.at(FlowId(0)).state);
    assert!(flushing.sequence.is_sequential(HtbsOptions::default().sequential));
    let (plain, flushing) = (plain.unit.mean_ns(), flushing.unit.mean_ns());
    assert!(plain > 0.0 && (plain - flushing).abs() < 0.01 * plain, "{plain} ns a unit, with flushes {flushing}");
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
