//! The Tag Scheduler (Bai and Huang): priorities that guest applications give their requests, 1 to 254, obeyed
//! across VMs.
//!
//! Each flow, a (VM, stream) pair, has a virtual counter. The flow with the least counter is served and its counter rises by
//! G * cost / priority: stride scheduling, so that backlogged flows are served in proportion to their priorities. A flow
//! that was away starts at the least counter of those that have something queued, or where the last one was served: that it
//! came in the one moment in which the others had nothing queued must not be worth an hour of their service. Of flows whose
//! counters are about equal the one with the greater priority is first, so that one that asks seldom waits for what is at the
//! device, and not for everybody who is owed as much.
//!
//! What the seed left as future work is here: every kind of request is scheduled, not only reads; flows that fell silent
//! are forgotten; and a short plug keeps the order from decaying to first come, first served on a fast device.
//!
//! The plug: between a completion and the next request of a synchronous flow there is a gap, in which the flow with the
//! least counter has nothing queued. Serving the next best flow in that gap, every time, gives everybody the same. So the
//! scheduler waits for a flow with a lesser counter that completed a request at most a plug ago, or has one at the device and nothing
//! queued, unless that one hangs ([`HUNG_AFTER`](crate::in_flight::HUNG_AFTER)), for which it is passed over then. So the order is kept
//! with several requests at the device too: it decides who is sent, in which order the device does them is its own. What that costs is time
//! for the urgent.

mod hanging;

use super::{BuildOptions, Entry, Promise, UNIT_BYTES};
use crate::in_flight::{AtDevice, InFlight, PassedOver};
use crate::table::FlowTable;
use crate::{Cost, Dispatch, FlowId, FlowParameters, IndexedHeap, PlainKey, Request, Scheduler};
use minerva_model::Nanos;
use std::cmp::Reverse;

/// The stride constant G: a priority of 254 still tells costs apart. Counters of 128 bits never come near their end, so that
/// none is ever brought down again.
const STRIDE: u128 = 1 << 20;

/// More at the disk would leave nothing to order: programs seldom have more under way themselves.
pub const TAG_DEPTH_MAX: u32 = 32;

/// Options of the Tag Scheduler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TagOptions {
    /// What a request costs.
    pub cost: Cost,
    /// Requests at the device at once. More and the device's own order takes over.
    pub depth: u32,
    /// How long to wait for a flow that is owed service and just completed a request; zero as the seed.
    pub plug: Nanos,
    /// A flow silent for this long is new when it comes back.
    pub forget_after: Nanos,
}

impl Default for TagOptions {
    fn default() -> Self {
        Self { cost: Cost::PerBytes(4096), depth: 1, plug: Nanos::from_micros(500), forget_after: Nanos::from_secs(10) }
    }
}

/// The Tag Scheduler. Not work-conserving while the plug is in.
#[derive(Debug)]
pub struct Tag {
    options: TagOptions,
    flows: FlowTable<State, ()>,
    /// Backlogged flows, by the priority of the oldest request.
    backlogged: IndexedHeap<Rank>,
    /// Flows with nothing queued that may come back within the plug, by the priority of the last request.
    expected: IndexedHeap<Rank>,
    /// The counter of the flow served last, before it was charged.
    served: u128,
    at_device: AtDevice,
    passed_over: PassedOver,
}

/// Counters that are less than this apart are equal: what 64 KiB cost at priority 254. More would let the urgent go before others for
/// seconds on a disk that seeks.
const EQUAL_WITHIN: u128 = STRIDE / 16;

/// Who is first: the least counter, and the greater priority among equal ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    round: u128,
    priority: Reverse<u8>,
    counter: u128,
}

impl PlainKey for Rank {}

impl Rank {
    const fn new(counter: u128, priority: u8) -> Self {
        Self { round: counter / EQUAL_WITHIN, priority: Reverse(priority), counter }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    counter: u128,
    in_flight: InFlight,
    active_at: Nanos,
}

/// The tags that say nothing: 0 and 255 are reserved.
const RESERVED: [u8; 2] = [0, 255];

/// The priority of a request: what it asks for or the flow's default, never more than the flow may claim.
pub fn priority(parameters: &FlowParameters, request: &Request) -> u8 {
    let given = request.tag.filter(|tag| !RESERVED.contains(tag));
    given.unwrap_or(parameters.tag_default).min(parameters.tag_max).clamp(1, 254)
}

impl Tag {
    /// With these options.
    pub fn new(options: TagOptions) -> Self {
        Self {
            options,
            flows: FlowTable::new(),
            backlogged: IndexedHeap::new(),
            expected: IndexedHeap::new(),
            served: 0,
            at_device: AtDevice::default(),
            passed_over: PassedOver::default(),
        }
    }

    /// Where a flow starts that was away: at the least counter of those that have something queued, or where the last one was served.
    fn present(&self) -> u128 {
        self.backlogged.peek().map_or(self.served, |(rank, _)| rank.counter)
    }

    /// Sends the oldest request of a flow. One that is passed over has no place at the device by it, and is owed nothing for the time before.
    fn send(&mut self, now: Nanos, id: FlowId) -> Dispatch {
        let (present, options) = (self.present(), self.options);
        let Some((request, ())) = self.flows.pop(id) else { return Dispatch::Idle };
        let flow = self.flows.at(id);
        let own = priority(&flow.parameters, &request);
        let cost = STRIDE * u128::from(options.cost.of(&request)) / u128::from(own);
        let (counter, is_last) = (flow.state.counter.max(present) + cost, flow.queue.is_empty());
        (flow.state.counter, flow.state.active_at) = (counter, now);
        if flow.state.in_flight.is_passed_over() {
            flow.state.in_flight.probed(now);
        } else {
            flow.state.in_flight.dispatched(now);
            self.at_device.dispatched(now, &request);
        }
        self.queue_up(id);
        if is_last && options.plug > Nanos::ZERO && request.sync {
            self.expected.set(id.index(), Rank::new(counter, own));
        }
        Dispatch::Send(request)
    }
}

impl TagOptions {
    /// One request on the medium and one on its way keep an SSD busy. One that seeks loses half of what it can do unless it has several to
    /// choose from (docs/adr/0037). Others can be asked for.
    fn for_disk(disk: BuildOptions) -> Self {
        let own = if disk.rotational { 8 } else { 2 };
        let depth = disk.tag_depth.unwrap_or(own).clamp(1, TAG_DEPTH_MAX.min(disk.depth.max(1)));
        Self { cost: Cost::PerBytes(UNIT_BYTES), depth, ..Self::default() }
    }

    /// As in the paper: neither plug nor bounded depth.
    fn original() -> Self {
        Self { cost: Cost::PerBytes(UNIT_BYTES), depth: 32, plug: Nanos::ZERO, ..Self::default() }
    }
}

/// In the catalogue.
pub(super) const ENTRY: Entry = Entry {
    name: "tag",
    summary: "The Tag Scheduler with plug and bounded depth.",
    build: |disk| Box::new(Tag::new(TagOptions::for_disk(disk))),
    options: |disk| format!("{:?}", TagOptions::for_disk(disk)),
    depth: |disk| TagOptions::for_disk(disk).depth,
    sends_beside_hung: true,
    cost: Cost::PerBytes(UNIT_BYTES),
    promises: &[Promise::Tags],
    discipline: None,
    conserves_work: false,
};

/// The published one in the catalogue.
pub(super) const ORIGINAL_ENTRY: Entry = Entry {
    name: "tag-original",
    summary: "The Tag Scheduler as in Bai and Huang: neither plug nor bounded depth.",
    build: |_| Box::new(Tag::new(TagOptions::original())),
    options: |_| format!("{:?}", TagOptions::original()),
    depth: |disk| disk.depth,
    sends_beside_hung: true,
    cost: Cost::PerBytes(UNIT_BYTES),
    promises: &[Promise::Tags],
    discipline: None,
    conserves_work: true,
};

impl Scheduler for Tag {
    fn name(&self) -> &'static str {
        "tag"
    }

    fn set_flow(&mut self, _now: Nanos, flow: FlowId, parameters: FlowParameters) {
        self.flows.at(flow).parameters = parameters;
    }

    fn remove_flow(&mut self, _now: Nanos, flow: FlowId) {
        self.expected.remove(flow.index());
        // Its number may be another's next.
        if self.flows.at(flow).state.in_flight.is_passed_over() {
            self.take_back(flow);
        }
        let flow = self.flows.at(flow);
        flow.parameters = FlowParameters::default();
        // What is still queued keeps its place; with a counter of zero it would go before everybody else's.
        if flow.queue.is_empty() {
            flow.state.counter = 0;
        }
    }

    fn cancel(&mut self, _now: Nanos, flow: FlowId, cancelled: &mut Vec<Request>) {
        // Only what is sent is charged.
        self.flows.cancel(flow, cancelled);
        self.backlogged.remove(flow.index());
        self.expected.remove(flow.index());
        self.passed_over.remove(flow);
    }

    fn charge(&mut self, now: Nanos, request: &Request) {
        let present = self.present();
        let cost = self.options.cost.of(request);
        let flow = self.flows.at(request.flow);
        let own = priority(&flow.parameters, request);
        flow.state.counter = flow.state.counter.max(present) + STRIDE * u128::from(cost) / u128::from(own);
        flow.state.active_at = now;
    }

    fn add(&mut self, now: Nanos, request: Request) {
        let (id, present) = (request.flow, self.present());
        let is_expected = self.expected.remove(id.index());
        let flow = self.flows.at(id);
        let state = &mut flow.state;
        if flow.queue.is_empty() && !is_expected {
            let is_away = state.in_flight.count() == 0 && !state.in_flight.hangs();
            let is_silent = is_away && now.since(state.active_at) >= self.options.forget_after;
            // What it did not ask for it is not owed, and what it took is forgotten after a long silence.
            state.counter = if is_silent { present } else { state.counter.max(present) };
        }
        state.active_at = now;
        if !state.in_flight.is_passed_over() {
            self.passed_over.used(now);
        }
        if self.flows.push(request, ()) {
            self.queue_up(id);
        }
    }

    fn next(&mut self, now: Nanos) -> Dispatch {
        while let Some(flow) = self.passed_over.alone(now) {
            self.take_back(flow);
        }
        if let Some(flow) = self.passed_over.due(now) {
            return self.send(now, flow);
        }
        if self.backlogged.is_empty() {
            return self.passed_over.wait();
        }
        if let Some(wait) = self.make_room(now) {
            return wait;
        }
        let Some((first, slot)) = self.backlogged.peek() else { return Dispatch::Idle };
        if let Some(wait) = self.wait_for_owed(now, first) {
            return wait;
        }
        self.served = self.served.max(first.counter);
        self.send(now, FlowId(slot as u32))
    }

    fn complete(&mut self, now: Nanos, request: &Request) {
        let counted = self.at_device.completed(now, request);
        let state = &mut self.flows.at(request.flow).state;
        let was_passed_over = state.in_flight.is_passed_over();
        state.in_flight.completed_one(now, counted);
        state.active_at = now;
        if was_passed_over {
            self.take_back(request.flow);
        }
        self.passed_over.used(now);
    }

    fn queued(&self) -> usize {
        self.flows.queued()
    }
}
