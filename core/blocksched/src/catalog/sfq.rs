//! Start-time fair queueing with a bounded number of requests at the device, SFQ(D).
//!
//! A request of cost c in a flow of weight w starts, in virtual time, when the flow's last one finished or now, whichever
//! is later, and finishes c/w after. Requests leave in order of start. Virtual time is the start of the request sent last.
//!
//! Bound (Jin, Chase, Kaur 2004): for two flows backlogged over an interval, the difference of what they were served per
//! weight is at most (D + 1) times the sum of their greatest costs per weight.

use super::{BuildOptions, Entry, UNIT_BYTES};
use crate::table::{Flow, FlowTable};
use crate::{Cost, Dispatch, FlowId, FlowParameters, IndexedHeap, Request, Scheduler};
use minerva_model::Nanos;

/// Virtual time, in cost units per weight, with 32 bits of fraction.
type Virtual = u128;

const FRACTION_BITS: u32 = 32;

/// SFQ(D). Work-conserving up to its depth.
#[derive(Debug)]
pub struct Sfq {
    depth: u32,
    cost: Cost,
    flows: FlowTable<LastFinish, Start>,
    /// Backlogged flows by the start of their oldest request.
    by_start: IndexedHeap<Virtual>,
    now: Virtual,
    finish_max: Virtual,
    in_flight: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct LastFinish(Virtual);

#[derive(Clone, Copy, Debug, Default)]
struct Start(Virtual);

impl Sfq {
    /// At most `depth` requests at the device at once, at least one.
    pub fn new(depth: u32, cost: Cost) -> Self {
        Self {
            depth: depth.max(1),
            cost,
            flows: FlowTable::new(),
            by_start: IndexedHeap::new(),
            now: 0,
            finish_max: 0,
            in_flight: 0,
        }
    }
}

/// Requests at the device at once: on a disk that seeks one, or the disk's own order takes over.
fn depth(disk: BuildOptions) -> u32 {
    if disk.rotational { 1 } else { 4.min(disk.depth.max(1)) }
}

/// In the catalogue.
pub(super) const ENTRY: Entry = Entry {
    name: "sfq",
    summary: "Start-time fair queueing with a bounded depth.",
    build: |disk| Box::new(Sfq::new(depth(disk), Cost::PerBytes(UNIT_BYTES))),
    options: |disk| format!("depth {}, {:?}", depth(disk), Cost::PerBytes(UNIT_BYTES)),
    depth,
    sends_beside_hung: false,
    cost: Cost::PerBytes(UNIT_BYTES),
    promises: &[],
    discipline: None,
    conserves_work: true,
};

impl Scheduler for Sfq {
    fn name(&self) -> &'static str {
        "sfq"
    }

    fn set_flow(&mut self, _now: Nanos, flow: FlowId, parameters: FlowParameters) {
        self.flows.at(flow).parameters = parameters;
    }

    fn remove_flow(&mut self, _now: Nanos, flow: FlowId) {
        let flow = self.flows.at(flow);
        flow.parameters = FlowParameters::default();
        // What is still queued counts: who has the number next starts after it.
        if flow.queue.is_empty() {
            flow.state = LastFinish::default();
        }
    }

    fn cancel(&mut self, _now: Nanos, flow: FlowId, cancelled: &mut Vec<Request>) {
        self.by_start.remove(flow.index());
        let oldest = self.flows.at(flow).queue.front().map(|(_, Start(start))| *start);
        self.flows.cancel(flow, cancelled);
        if let Some(start) = oldest {
            // The next one starts where the oldest of them would have.
            self.flows.at(flow).state = LastFinish(start);
        }
    }

    fn charge(&mut self, _now: Nanos, request: &Request) {
        let (cost, now) = (self.cost.of(request), self.now);
        let Flow { parameters, state: LastFinish(last), .. } = self.flows.at(request.flow);
        *last = now.max(*last) + (Virtual::from(cost) << FRACTION_BITS) / Virtual::from(parameters.weight.max(1));
    }

    fn add(&mut self, _now: Nanos, request: Request) {
        let cost = self.cost.of(&request);
        let now = self.now;
        let flow = self.flows.at(request.flow);
        let start = now.max(flow.state.0);
        let finish = start + (Virtual::from(cost) << FRACTION_BITS) / Virtual::from(flow.parameters.weight.max(1));
        flow.state = LastFinish(finish);
        if self.flows.push(request, Start(start)) {
            self.by_start.set(request.flow.index(), start);
        }
    }

    fn next(&mut self, _now: Nanos) -> Dispatch {
        if self.in_flight >= self.depth {
            return Dispatch::Idle;
        }
        let Some((start, slot)) = self.by_start.peek() else { return Dispatch::Idle };
        let flow = FlowId(slot as u32);
        let Some((request, _)) = self.flows.pop(flow) else { return Dispatch::Idle };
        let Flow { queue, state: LastFinish(last), .. } = self.flows.at(flow);
        // Where the next one of the flow starts, at the earliest: what is queued may be taken back.
        let finish = match queue.front() {
            Some((_, Start(next))) => {
                self.by_start.set(slot, *next);
                *next
            }
            None => {
                self.by_start.remove(slot);
                *last
            }
        };
        self.now = start;
        self.finish_max = self.finish_max.max(finish);
        self.in_flight += 1;
        Dispatch::Send(request)
    }

    fn complete(&mut self, _now: Nanos, _request: &Request) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if self.in_flight == 0 && self.flows.queued() == 0 {
            // The system is empty: whoever comes next owes nothing for what nobody else wanted.
            self.now = self.finish_max;
        }
    }

    fn queued(&self) -> usize {
        self.flows.queued()
    }
}
