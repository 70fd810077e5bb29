//! mClock (Gulati, Merchant, Varman, OSDI 2010), on one server: reservation, limit and weight per flow.
//!
//! Reservation and limit tags are instants; first whoever is behind its reservation is served, then by weight whoever is
//! not at its limit. The weight tags are virtual time as in start-time fair queueing: a flow that comes back starts where
//! the others are, which is what the paper gets by shifting everybody's tags.
//!
//! Tags are computed when a request reaches the head of its flow, and again when the flow's parameters change, so that those
//! act at once: a limit that is lifted frees the request that waits for it.

#[cfg(test)]
mod tests;

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
