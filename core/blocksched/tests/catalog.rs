//! The catalogue: names lead to schedulers and back, and what a scheduler says of itself is so.

use minerva_blocksched::{
    BuildOptions, Contract, Dispatch, FlowId, FlowParameters, Kind, Promise, Request, RequestId, Scheduler,
    SchedulerName,
};
use minerva_model::Nanos;
use std::collections::BTreeSet;

const DISKS: [BuildOptions; 2] = [BuildOptions::for_disk(true, 1), BuildOptions::for_disk(false, 32)];

fn request(id: u64, flow: u32, now: Nanos) -> Request {
    Request {
        id: RequestId(id),
        flow: FlowId(flow),
        kind: Kind::Read,
        sync: true,
        tag: None,
        offset_bytes: u64::from(flow) << 36 | id << 12,
        length_bytes: 4096,
        arrived: now,
    }
}

#[test]
fn names_lead_to_schedulers_and_back() {
    for name in SchedulerName::ALL {
        assert_eq!(name.as_str().parse(), Ok(*name));
        assert!(!name.entry().summary.is_empty());
        for disk in DISKS {
            let scheduler = name.build(disk);
            assert!(name.as_str().starts_with(scheduler.name()), "{name} builds a {}", scheduler.name());
            assert!((1..=disk.depth).contains(&name.depth(disk)), "{name}");
            assert!((name.depth(disk)..=disk.depth).contains(&name.places(disk)), "{name}");
        }
    }
    let names: BTreeSet<&str> = SchedulerName::ALL.iter().map(|name| name.as_str()).collect();
    assert_eq!(names.len(), SchedulerName::ALL.len());
    let unknown = "cfs".parse::<SchedulerName>().expect_err("there is none").to_string();
    assert!(unknown.contains("`cfs`") && names.iter().all(|name| unknown.contains(name)), "{unknown}");
}

#[test]
fn b_max_and_t_wait_of_htbs_can_be_set_and_are_said() {
    let asked = BuildOptions {
        turn_units_max: Some(77),
        wait_max: Some(Nanos::from_millis(3)),
        ..BuildOptions::for_disk(true, 1)
    };
    for name in [SchedulerName::Htbs, SchedulerName::HtbsOriginal] {
        let options = name.options(asked);
        assert!(options.contains("turn_units_max: 77") && options.contains("wait_max: Nanos(3000000)"), "{options}");
        // The flow in service is waited for that long.
        let mut scheduler = name.build(asked);
        (0..2).for_each(|flow| {
            let contract = Contract { rate_per_second: 1000.0, burst: 100.0, delay: Nanos::from_millis(200) };
            let parameters = FlowParameters { contract: Some(contract), ..FlowParameters::default() };
            scheduler.set_flow(Nanos::ZERO, FlowId(flow), parameters);
            scheduler.add(Nanos::ZERO, request(u64::from(flow), flow, Nanos::ZERO));
        });
        let Dispatch::Send(first) = scheduler.next(Nanos::ZERO) else { panic!("two are queued") };
        let now = Nanos::from_millis(1);
        scheduler.complete(now, &first);
        assert_eq!(scheduler.next(now), Dispatch::WaitUntil(Nanos::from_millis(4)), "{name}");
    }
}

/// Of a thousand requests served one by one, while two flows always have some queued: how many were of flow 0.
fn of_flow_0(scheduler: &mut dyn Scheduler, mut now: Nanos, mut number: u64) -> usize {
    let mut queued = [0; 2];
    let mut count = 0;
    for _ in 0..1000 {
        for (flow, queued) in (0..).zip(&mut queued) {
            while *queued < 40 {
                scheduler.add(now, request(number, flow, now));
                number += 1;
                *queued += 1;
            }
        }
        let sent = loop {
            match scheduler.next(now) {
                Dispatch::Send(request) => break request,
                Dispatch::WaitUntil(until) => now = until,
                Dispatch::Idle => panic!("idle for ever"),
            }
        };
        now += Nanos::from_millis(1);
        scheduler.complete(now, &sent);
        queued[sent.flow.index()] -= 1;
        count += usize::from(sent.flow == FlowId(0));
    }
    count
}

/// A guest that is reset owes nothing for what it never got, and gains nothing either.
#[test]
fn what_is_cancelled_costs_nothing_and_gains_nothing() {
    for name in SchedulerName::ALL {
        for disk in DISKS {
            let played = |resets: u64| {
                let mut scheduler = name.build(disk);
                let contract = Contract { rate_per_second: 100.0, burst: 50.0, delay: Nanos::from_millis(100) };
                let parameters = FlowParameters {
                    contract: name.keeps(Promise::Contract).then_some(contract),
                    reservation_per_second: 10.0,
                    ..FlowParameters::default()
                };
                (0..2).for_each(|flow| scheduler.set_flow(Nanos::ZERO, FlowId(flow), parameters));
                // Both are known by one request each; of flow 0 many more are taken back.
                let now = Nanos::SECOND;
                (0..2).for_each(|flow| scheduler.add(now, request(u64::from(flow), flow, now)));
                let mut cancelled = Vec::new();
                for reset in 0..resets {
                    (0..500).for_each(|id| scheduler.add(now, request(100 + 500 * reset + id, 0, now)));
                    scheduler.cancel(now, FlowId(0), &mut cancelled);
                    assert_eq!(scheduler.queued(), 1, "{name}");
                }
                if resets > 0 {
                    assert_eq!(cancelled.len() as u64, 500 * resets + 1, "{name}");
                    scheduler.add(now, request(0, 0, now));
                }
                of_flow_0(scheduler.as_mut(), now, 1_000_000)
            };
            let (undisturbed, reset) = (played(0), played(8));
            // Some batches or a slice, at most, may fall to the other.
            assert!(undisturbed.abs_diff(reset) <= 80, "{name} on {disk:?}: {reset}, without resets {undisturbed}");
        }
    }
}

/// Also by schedulers of contracts: of two with the same.
#[test]
fn who_was_served_past_the_order_has_so_much_less_in_turn() {
    let large = |id: u64, flow: u32, now| Request { length_bytes: 64 << 10, ..request(id << 8, flow, now) };
    for name in [
        SchedulerName::Sfq,
        SchedulerName::Bfq,
        SchedulerName::Mclock,
        SchedulerName::MclockAllow,
        SchedulerName::Pclock,
        SchedulerName::Htbs,
        SchedulerName::Tag,
    ] {
        for has_contract in [false, true] {
            let mut scheduler = name.build(BuildOptions::for_disk(false, 1));
            let contract =
                has_contract.then(|| Contract { rate_per_second: 4000.0, burst: 64.0, delay: Nanos::from_millis(100) });
            let (mut now, mut number, mut served) = (Nanos::from_secs(1), 0, [0_u32; 2]);
            for flow in 0..2 {
                let parameters = FlowParameters { contract, ..FlowParameters::default() };
                scheduler.set_flow(now, FlowId(flow), parameters);
            }
            (0..1024).for_each(|id| scheduler.charge(now, &large(id, 0, now)));
            // First the other: what a flow had while nobody else asked for anything is forgiven.
            for flow in [1, 1, 0, 0] {
                number += 1;
                scheduler.add(now, large(number, flow, now));
            }
            for _ in 0..512 {
                let sent = match scheduler.next(now) {
                    Dispatch::Send(sent) => sent,
                    Dispatch::WaitUntil(until) => {
                        now = until;
                        continue;
                    }
                    Dispatch::Idle => panic!("{name} idles"),
                };
                served[sent.flow.index()] += 1;
                number += 1;
                now += Nanos::from_millis(1);
                scheduler.add(now, large(number, sent.flow.0, now));
                scheduler.complete(now, &sent);
            }
            assert!(served[0] * 2 < served[1], "{name}, contract: {has_contract}: {served:?}");
        }
    }
}
