//! mClock (Gulati, Merchant, Varman, OSDI 2010), on one server: reservation, limit and weight per flow.
//!
//! Reservation and limit tags are instants; first whoever is behind its reservation is served, then by weight whoever is
//! not at its limit. The weight tags are virtual time as in start-time fair queueing: a flow that comes back starts where
//! the others are, which is what the paper gets by shifting everybody's tags.
//!
//! Tags are computed when a request reaches the head of its flow, so that changed parameters act at once.

use crate::table::FlowTable;
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
    limited: IndexedHeap<u128>,
    /// Backlogged flows below their limit, by weight tag.
    ready: IndexedHeap<u128>,
    virtual_now: u128,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    reservation: Instant,
    limit: Instant,
    weight_finish: u128,
    weight_start: u128,
}

/// Further than any clock.
const NEVER: Instant = Instant::MAX;

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
            virtual_now: 0,
        }
    }

    /// Computes the tags of the oldest request of a flow, or takes the flow out.
    fn tag_head(&mut self, flow: FlowId) {
        let slot = flow.index();
        let (cost, virtual_now) = (self.cost, self.virtual_now);
        let flow = self.flows.at(flow);
        let Some((request, ())) = flow.queue.front() else {
            self.by_reservation.remove(slot);
            self.by_limit.remove(slot);
            self.limited.remove(slot);
            self.ready.remove(slot);
            return;
        };
        let units = cost.of(request);
        let arrived = instant(request.arrived);
        let parameters = flow.parameters;
        let state = &mut flow.state;
        if parameters.reservation_per_second > 0.0 {
            state.reservation = arrived.max(state.reservation + step(parameters.reservation_per_second, units));
            self.by_reservation.set(slot, state.reservation);
        } else {
            self.by_reservation.remove(slot);
        }
        state.limit = if parameters.limit_per_second.is_finite() && parameters.limit_per_second > 0.0 {
            arrived.max(state.limit + step(parameters.limit_per_second, units))
        } else {
            0
        };
        state.weight_start = state.weight_finish.max(virtual_now);
        state.weight_finish = state.weight_start + (u128::from(units) << 32) / u128::from(parameters.weight.max(1));
        self.ready.remove(slot);
        self.by_limit.set(slot, state.limit);
        if self.at_limit == AtLimit::Allow {
            self.limited.set(slot, state.weight_start);
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
            let start = self.flows.at(FlowId(slot as u32)).state.weight_start;
            self.ready.set(slot, start);
        }
    }

    fn send(&mut self, flow: FlowId, by_weight: bool) -> Dispatch {
        let Some((request, ())) = self.flows.pop(flow) else { return Dispatch::Idle };
        if by_weight {
            let units = self.cost.of(&request);
            let state = self.flows.at(flow);
            let reservation_per_second = state.parameters.reservation_per_second;
            self.virtual_now = self.virtual_now.max(state.state.weight_start);
            if reservation_per_second > 0.0 {
                // What was served by weight does not count against the reservation.
                state.state.reservation -= step(reservation_per_second, units);
            }
        }
        self.tag_head(flow);
        Dispatch::Send(request)
    }
}

impl Scheduler for MClock {
    fn name(&self) -> &'static str {
        "mclock"
    }

    fn set_flow(&mut self, _now: Nanos, flow: FlowId, parameters: FlowParameters) {
        self.flows.at(flow).parameters = parameters;
    }

    fn remove_flow(&mut self, _now: Nanos, flow: FlowId) {
        let flow = self.flows.at(flow);
        flow.parameters = FlowParameters::default();
        if flow.queue.is_empty() {
            flow.state = State::default();
        }
    }

    fn add(&mut self, _now: Nanos, request: Request) {
        if self.flows.push(request, ()) {
            self.tag_head(request.flow);
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

    fn complete(&mut self, _now: Nanos, _request: &Request) {}

    fn queued(&self) -> usize {
        self.flows.queued()
    }
}

#[cfg(test)]
mod tests {
    use super::{AtLimit, MClock};
    use crate::{Cost, Dispatch, FlowId, FlowParameters, Kind, Request, RequestId, Scheduler};
    use minerva_model::Nanos;

    /// Serves three flows that always have a request queued, one request each 10 ms, from one second to another. How many each
    /// got.
    fn serve(mclock: &mut MClock, seconds: std::ops::Range<u64>) -> [u32; 3] {
        let mut served = [0; 3];
        for step in seconds.start * 100..seconds.end * 100 {
            let now = Nanos::from_millis(step * 10);
            let request = |flow| Request {
                id: RequestId(step),
                flow: FlowId(flow),
                kind: Kind::Read,
                sync: true,
                tag: None,
                offset_bytes: 0,
                length_bytes: 4096,
                arrived: now,
            };
            for flow in 0..3 {
                if mclock.flows.at(FlowId(flow)).queue.len() < 2 {
                    mclock.add(now, request(flow));
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
}
