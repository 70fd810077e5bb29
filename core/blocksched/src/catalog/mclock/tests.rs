use super::{AtLimit, MClock};
use crate::{Cost, Dispatch, FlowId, FlowParameters, Kind, Request, RequestId, Scheduler};
use minerva_model::Nanos;

fn request(id: u64, flow: u32, arrived: Nanos) -> Request {
    Request {
        id: RequestId(id),
        flow: FlowId(flow),
        kind: Kind::Read,
        sync: true,
        tag: None,
        offset_bytes: 0,
        length_bytes: 4096,
        arrived,
    }
}

/// Serves three flows that always have a request queued, one request each 10 ms, from one second to another. How many each
/// got.
fn serve(mclock: &mut MClock, seconds: std::ops::Range<u64>) -> [u32; 3] {
    let mut served = [0; 3];
    for step in seconds.start * 100..seconds.end * 100 {
        let now = Nanos::from_millis(step * 10);
        for flow in 0..3 {
            if mclock.flows.at(FlowId(flow)).queue.len() < 2 {
                mclock.add(now, request(step, flow, now));
            }
        }
        if let Dispatch::Send(request) = mclock.next(now) {
            served[request.flow.index()] += 1;
            mclock.complete(now, &request);
        }
    }
    served
}

fn mclock(at_limit: AtLimit, parameters: [(f64, f64, u32); 3]) -> MClock {
    let mut mclock = MClock::new(Cost::PerRequest, at_limit);
    for (flow, (reservation_per_second, limit_per_second, weight)) in parameters.into_iter().enumerate() {
        let flow_parameters =
            FlowParameters { reservation_per_second, limit_per_second, weight, ..FlowParameters::default() };
        mclock.set_flow(Nanos::ZERO, FlowId(flow as u32), flow_parameters);
    }
    mclock
}

#[test]
fn a_reservation_is_kept_a_limit_is_not_passed_and_the_rest_goes_by_weight() {
    let parameters = [(40.0, f64::INFINITY, 1), (0.0, 10.0, 500), (0.0, f64::INFINITY, 500)];
    let served = serve(&mut mclock(AtLimit::Wait, parameters), 0..10);
    assert!((398..=405).contains(&served[0]), "{served:?}");
    assert!((98..=101).contains(&served[1]), "{served:?}");
    assert_eq!(served.iter().sum::<u32>(), 1000, "{served:?}");
}

#[test]
fn beyond_limits_that_may_be_passed_the_weights_rule() {
    let limited = |weight| (0.0, 10.0, weight);
    let served = serve(&mut mclock(AtLimit::Allow, [limited(100), limited(200), limited(500)]), 0..8);
    for (count, expected) in served.into_iter().zip([100, 200, 500_u32]) {
        // Below the limits they are served as they come back below them, which is the first few.
        assert!(count.abs_diff(expected) <= 8, "{served:?}");
    }
}

#[test]
fn changed_parameters_act_at_once() {
    let unlimited = |weight| (0.0, f64::INFINITY, weight);
    let mut mclock = mclock(AtLimit::Wait, [unlimited(100), unlimited(100), unlimited(200)]);
    let served = serve(&mut mclock, 0..4);
    assert!(served.into_iter().zip([100, 100, 200_u32]).all(|(count, expected)| count.abs_diff(expected) <= 2));
    let limit = FlowParameters { limit_per_second: 5.0, weight: 200, ..FlowParameters::default() };
    mclock.set_flow(Nanos::from_secs(4), FlowId(2), limit);
    let reserved = FlowParameters { reservation_per_second: 70.0, weight: 100, ..FlowParameters::default() };
    mclock.set_flow(Nanos::from_secs(4), FlowId(0), reserved);
    let served = serve(&mut mclock, 4..8);
    assert!(served[0] >= 279 && served[2] <= 22, "{served:?}");
}

/// Serves flows that always have a request queued, one request each `step_ms`, from one second to another.
fn serve_each(mclock: &mut MClock, flows: u32, step_ms: u64, seconds: std::ops::Range<u64>) -> Vec<u32> {
    let mut served = vec![0; flows as usize];
    for step in seconds.start * 1000 / step_ms..seconds.end * 1000 / step_ms {
        let now = Nanos::from_millis(step * step_ms);
        for flow in 0..flows {
            while mclock.flows.at(FlowId(flow)).queue.len() < 2 {
                mclock.add(now, request(step, flow, now));
            }
        }
        if let Dispatch::Send(request) = mclock.next(now) {
            served[request.flow.index()] += 1;
            mclock.complete(now, &request);
        }
    }
    served
}

#[test]
fn a_newcomer_after_a_time_of_reservations_only_has_its_weight_of_the_spare_capacity_and_no_more() {
    let reserved = (50.0, f64::INFINITY, 100);
    let mut mclock = mclock(AtLimit::Wait, [reserved, reserved, (0.0, f64::INFINITY, 100)]);
    // The reservations take all of a disk of 100 requests a second. Then it does 200.
    assert_eq!(serve_each(&mut mclock, 2, 10, 0..10), [500, 500]);
    let served = serve_each(&mut mclock, 3, 5, 10..20);
    assert!(served[2].abs_diff(667) <= 10, "{served:?} of 2,000");
}

#[test]
fn a_newcomer_that_finds_nothing_queued_owes_and_is_owed_nothing() {
    for others_at_device in [0, 1] {
        let reserved = (1000.0, f64::INFINITY, 1);
        let mut mclock = mclock(AtLimit::Wait, [reserved, (0.0, f64::INFINITY, 1), (0.0, f64::INFINITY, 1)]);
        // A synchronous flow alone, far below its reservation: it is served by that and by nothing else. With two
        // requests at the disk the disk is never idle, though nothing is ever queued for long.
        let mut at_device = std::collections::VecDeque::new();
        for step in 0..1000 {
            let now = Nanos::from_millis(step * 10);
            mclock.add(now, request(step, 0, now));
            let Dispatch::Send(sent) = mclock.next(now) else { panic!("it is behind its reservation") };
            at_device.push_back(sent);
            while at_device.len() > others_at_device {
                let done = at_device.pop_front().expect("one at the device");
                mclock.complete(now, &done);
            }
        }
        // Its reservation ends as another flow comes.
        mclock.set_flow(Nanos::from_secs(10), FlowId(0), FlowParameters { weight: 1, ..FlowParameters::default() });
        let served = serve_each(&mut mclock, 2, 10, 10..12);
        assert!(served[1].abs_diff(100) <= 2, "{served:?} of 200, {others_at_device} at the disk");
    }
}

#[test]
fn synchronous_flows_get_their_weights() {
    let weighted = |weight| (0.0, f64::INFINITY, weight);
    let mut mclock = mclock(AtLimit::Wait, [weighted(300), weighted(100), weighted(100)]);
    let mut served = [0_u32; 2];
    (0..2).for_each(|flow| mclock.add(Nanos::ZERO, request(0, flow, Nanos::ZERO)));
    for step in 0..400 {
        let now = Nanos::from_millis(step * 10);
        let Dispatch::Send(sent) = mclock.next(now) else { panic!("one is queued") };
        served[sent.flow.index()] += 1;
        // One at the disk, and each flow asks again as soon as it has its answer.
        mclock.complete(now, &sent);
        mclock.add(now, request(step, sent.flow.0, now));
    }
    assert!(served[0].abs_diff(300) <= 2, "{served:?}");
}

#[test]
fn a_lifted_limit_frees_the_request_that_waits_for_it() {
    for removed in [false, true] {
        let slow = FlowParameters { limit_per_second: 0.01, ..FlowParameters::default() };
        let mut mclock = MClock::new(Cost::PerRequest, AtLimit::Wait);
        mclock.set_flow(Nanos::ZERO, FlowId(0), slow);
        (0..2).for_each(|id| mclock.add(Nanos::ZERO, request(id, 0, Nanos::ZERO)));
        assert!(matches!(mclock.next(Nanos::ZERO), Dispatch::Send(_)));
        let later = Nanos::SECOND;
        assert_eq!(mclock.next(later), Dispatch::WaitUntil(Nanos::from_secs(100)));
        match removed {
            true => mclock.remove_flow(later, FlowId(0)),
            false => mclock.set_flow(later, FlowId(0), FlowParameters { limit_per_second: 10.0, ..slow }),
        }
        assert!(matches!(mclock.next(later), Dispatch::Send(_)), "removed: {removed}");
    }
}

#[test]
fn what_was_served_beyond_an_old_limit_is_not_held_against_a_flow_under_a_new_one() {
    let limited = |limit_per_second| FlowParameters { limit_per_second, ..FlowParameters::default() };
    let mut mclock = MClock::new(Cost::PerRequest, AtLimit::Allow);
    mclock.set_flow(Nanos::ZERO, FlowId(0), limited(1.0));
    mclock.set_flow(Nanos::ZERO, FlowId(1), limited(1.0));
    // Both far beyond their limits: in ten seconds each has had 500 requests for ten.
    let served = serve_each(&mut mclock, 2, 10, 0..10);
    assert!(served[0].abs_diff(500) <= 1, "{served:?}");
    mclock.set_flow(Nanos::from_secs(10), FlowId(1), limited(90.0));
    let served = serve_each(&mut mclock, 2, 10, 10..20);
    assert!(served[1] >= 890, "{served:?} with limits of 1 and 90 a second");
}
