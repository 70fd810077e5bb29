//! mClock (Gulati, Merchant, Varman, OSDI 2010), on one server: reservation, limit and weight per flow.
//!
//! Reservation and limit tags are instants; first whoever is behind its reservation is served, then by weight whoever is
//! not at its limit. The weight tags are virtual time as in start-time fair queueing: a flow that comes back starts where
//! the others are, which is what the paper gets by shifting everybody's tags.
//!
//! Tags are computed when a request reaches the head of its flow, and again when the flow's parameters change, so that those
//! act at once: a limit that is lifted frees the request that waits for it.

use super::{Entry, Promise, UNIT_BYTES};
use crate::table::{Flow, FlowTable};
use crate::tokens::{Instant, instant};
use crate::{Cost, Dispatch, FlowId, FlowParameters, IndexedHeap, Request, Scheduler};
use minerva_model::Nanos;

/// What happens when every backlogged flow is at its limit and none is behind its reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtLimit {
    /// The disk idles until a limit or a reservation allows more.
    Wait,
    /// Whoever is next by weight is served, beyond its limit.
    Allow,
}

/// mClock. Work-conserving only when limits may be passed.
#[derive(Debug)]
pub struct MClock {
    cost: Cost,
    at_limit: AtLimit,
    flows: FlowTable<State, ()>,
    by_reservation: IndexedHeap<Instant>,
    /// Backlogged flows that are not known to be below their limit, by limit tag.
    by_limit: IndexedHeap<Instant>,
    /// The same by weight tag, where limits may be passed.
    limited: IndexedHeap<Virtual>,
    /// Backlogged flows below their limit, by weight tag.
    ready: IndexedHeap<Virtual>,
    /// Flows with a request queued or at the device, by where their next one starts.
    active: IndexedHeap<Virtual>,
    virtual_now: Virtual,
}

/// Virtual time: cost units per weight, with 32 bits of fraction.
type Virtual = u128;

/// The tags of one request.
#[derive(Clone, Copy, Debug)]
struct Tags {
    reservation: Instant,
    limit: Instant,
    start: Virtual,
    finish: Virtual,
}

impl Default for Tags {
    /// Those of the request before a flow's first.
    fn default() -> Self {
        Self { reservation: LONG_AGO, limit: LONG_AGO, start: 0, finish: 0 }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// Of the request that was sent last: what the next one's are counted from.
    sent: Tags,
    /// Of the oldest queued request. Meaningless while nothing is queued.
    head: Tags,
    in_flight: u32,
}

/// Further than any clock.
const NEVER: Instant = Instant::MAX;
/// Before any clock began, and far enough from the end of the numbers to be counted from.
const LONG_AGO: Instant = Instant::MIN / 2;

fn step(per_second: f64, units: u64) -> Instant {
    (units as f64 * 1e9 / per_second).clamp(0.0, 1e18) as Instant
}

impl MClock {
    /// Rates count in units of `cost`.
    pub fn new(cost: Cost, at_limit: AtLimit) -> Self {
        Self {
            cost,
            at_limit,
            flows: FlowTable::new(),
            by_reservation: IndexedHeap::new(),
            by_limit: IndexedHeap::new(),
            limited: IndexedHeap::new(),
            ready: IndexedHeap::new(),
            active: IndexedHeap::new(),
            virtual_now: 0,
        }
    }

    /// The oldest request of a flow is another one than before, or there is none.
    fn head_changed(&mut self, flow: FlowId) {
        let virtual_now = self.virtual_now;
        let state = &mut self.flows.at(flow).state;
        state.head.start = state.sent.finish.max(virtual_now);
        self.track(flow);
    }

    /// Computes the tags of the oldest request of a flow from its start and the flow's parameters, and gives the flow its
    /// places; or takes it out.
    fn track(&mut self, flow: FlowId) {
        let (slot, cost) = (flow.index(), self.cost);
        let flow = self.flows.at(flow);
        let Some((request, ())) = flow.queue.front() else {
            self.by_reservation.remove(slot);
            self.by_limit.remove(slot);
            self.limited.remove(slot);
            self.ready.remove(slot);
            match flow.state.in_flight {
                0 => _ = self.active.remove(slot),
                _ => self.active.set(slot, flow.state.sent.finish),
            }
            return;
        };
        let units = cost.of(request);
        let arrived = instant(request.arrived);
        let parameters = flow.parameters;
        let State { sent, head, .. } = &mut flow.state;
        head.reservation = sent.reservation;
        if parameters.reservation_per_second > 0.0 {
            head.reservation = arrived.max(sent.reservation + step(parameters.reservation_per_second, units));
            self.by_reservation.set(slot, head.reservation);
        } else {
            self.by_reservation.remove(slot);
        }
        head.limit = match is_limited(&parameters) {
            true => arrived.max(sent.limit + step(parameters.limit_per_second, units)),
            false => LONG_AGO,
        };
        head.finish = head.start + (Virtual::from(units) << 32) / Virtual::from(parameters.weight.max(1));
        self.active.set(slot, head.start);
        self.ready.remove(slot);
        self.by_limit.set(slot, head.limit);
        if self.at_limit == AtLimit::Allow {
            self.limited.set(slot, head.start);
        }
    }

    /// Moves flows whose limit has passed to the ready ones.
    fn release(&mut self, now: Instant) {
        while let Some((limit, slot)) = self.by_limit.peek() {
            if limit > now {
                return;
            }
            self.by_limit.remove(slot);
            self.limited.remove(slot);
            let start = self.flows.at(FlowId(slot as u32)).state.head.start;
            self.ready.set(slot, start);
        }
    }

    fn send(&mut self, flow: FlowId, by_weight: bool) -> Dispatch {
        let Some((request, ())) = self.flows.pop(flow) else { return Dispatch::Idle };
        let units = self.cost.of(&request);
        let Flow { state, parameters, .. } = self.flows.at(flow);
        state.sent = state.head;
        state.in_flight += 1;
        if by_weight {
            self.virtual_now = self.virtual_now.max(state.sent.start);
            if parameters.reservation_per_second > 0.0 {
                // What was served by weight does not count against the reservation.
                state.sent.reservation -= step(parameters.reservation_per_second, units);
            }
        }
        self.head_changed(flow);
        // Who is served by reservations moves on by weight as well, and the others with it: otherwise who comes later would
        // start far behind, and have all that the reservations leave.
        if !by_weight && let Some((start, _)) = self.active.peek() {
            self.virtual_now = self.virtual_now.max(start);
        }
        Dispatch::Send(request)
    }
}

fn is_limited(parameters: &FlowParameters) -> bool {
    parameters.limit_per_second.is_finite() && parameters.limit_per_second > 0.0
}

/// In the catalogue.
pub(super) const ENTRY: Entry = Entry {
    name: "mclock",
    summary: "mClock: reservation, limit and weight.",
    build: |_| Box::new(MClock::new(Cost::PerBytes(UNIT_BYTES), AtLimit::Wait)),
    options: |_| format!("{:?}, {:?}", Cost::PerBytes(UNIT_BYTES), AtLimit::Wait),
    depth: |disk| disk.depth,
    sends_beside_hung: false,
    cost: Cost::PerBytes(UNIT_BYTES),
    promises: &[Promise::Reservation, Promise::Limit],
    discipline: None,
    conserves_work: false,
};

/// The one whose limits may be passed, in the catalogue.
pub(super) const ALLOW_ENTRY: Entry = Entry {
    name: "mclock-allow",
    summary: "mClock whose limits may be passed while the disk would idle.",
    build: |_| Box::new(MClock::new(Cost::PerBytes(UNIT_BYTES), AtLimit::Allow)),
    options: |_| format!("{:?}, {:?}", Cost::PerBytes(UNIT_BYTES), AtLimit::Allow),
    depth: |disk| disk.depth,
    sends_beside_hung: false,
    cost: Cost::PerBytes(UNIT_BYTES),
    promises: &[Promise::Reservation],
    discipline: None,
    conserves_work: true,
};

impl Scheduler for MClock {
    fn name(&self) -> &'static str {
        "mclock"
    }

    fn set_flow(&mut self, now: Nanos, flow: FlowId, parameters: FlowParameters) {
        let Flow { state, parameters: old, .. } = self.flows.at(flow);
        if old.limit_per_second != parameters.limit_per_second {
            // A new limit counts from now on; what was served beyond the old one is not owed to it.
            state.sent.limit = state.sent.limit.min(instant(now));
        }
        *old = parameters;
        self.track(flow);
    }

    fn remove_flow(&mut self, now: Nanos, flow: FlowId) {
        self.set_flow(now, flow, FlowParameters::default());
        let Flow { state, queue, .. } = self.flows.at(flow);
        if queue.is_empty() {
            *state = State { in_flight: state.in_flight, ..State::default() };
        }
    }

    fn cancel(&mut self, _now: Nanos, flow: FlowId, cancelled: &mut Vec<Request>) {
        // Only what is sent is charged.
        self.flows.cancel(flow, cancelled);
        self.track(flow);
    }

    fn charge(&mut self, now: Nanos, request: &Request) {
        let (units, virtual_now, at) = (self.cost.of(request), self.virtual_now, instant(now));
        let Flow { state, parameters, .. } = self.flows.at(request.flow);
        let sent = &mut state.sent;
        if parameters.reservation_per_second > 0.0 {
            sent.reservation = at.max(sent.reservation + step(parameters.reservation_per_second, units));
        }
        if is_limited(parameters) {
            sent.limit = at.max(sent.limit + step(parameters.limit_per_second, units));
        }
        sent.start = sent.finish.max(virtual_now);
        sent.finish = sent.start + (Virtual::from(units) << 32) / Virtual::from(parameters.weight.max(1));
        self.head_changed(request.flow);
    }

    fn add(&mut self, _now: Nanos, request: Request) {
        if self.flows.push(request, ()) {
            self.head_changed(request.flow);
        }
    }

    fn next(&mut self, now: Nanos) -> Dispatch {
        let at = instant(now);
        if let Some((reservation, slot)) = self.by_reservation.peek()
            && reservation <= at
        {
            return self.send(FlowId(slot as u32), false);
        }
        self.release(at);
        if let Some((_, slot)) = self.ready.peek() {
            return self.send(FlowId(slot as u32), true);
        }
        let Some((limit, _)) = self.by_limit.peek() else { return Dispatch::Idle };
        match self.limited.peek() {
            Some((_, slot)) => self.send(FlowId(slot as u32), true),
            None => {
                let reservation = self.by_reservation.peek().map_or(NEVER, |(tag, _)| tag);
                Dispatch::WaitUntil(Nanos(u64::try_from(limit.min(reservation).max(0)).unwrap_or(u64::MAX)))
            }
        }
    }

    fn complete(&mut self, _now: Nanos, request: &Request) {
        let Flow { state, queue, .. } = self.flows.at(request.flow);
        state.in_flight = state.in_flight.saturating_sub(1);
        if state.in_flight == 0 && queue.is_empty() {
            self.active.remove(request.flow.index());
        }
    }

    fn queued(&self) -> usize {
        self.flows.queued()
    }
}

#[cfg(test)]
mod tests {
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
}
