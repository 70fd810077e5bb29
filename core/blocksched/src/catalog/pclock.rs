//! pClock (Gulati, Merchant, Varman, SIGMETRICS 2007): burst, rate and delay per flow, earliest deadline first.
//!
//! A flow with contract (sigma, rho, delta) that sends at most sigma + rho*t in any interval t has each request served
//! within delta, if the admission test ([`crate::admit`]) passes. A request within the contract starts now; one beyond it
//! starts when the bucket will hold it; its deadline is start + delta. Work-conserving: spare capacity is given away and,
//! because all tags are moved back when everybody is ahead, never held against anyone.
//!
//! The paper counts requests and starts those beyond the contract one spacing after the last start. For requests of unequal
//! sizes that is too late for a large one that the bucket nearly holds, and a small one behind it is late with it; when the
//! bucket holds it is the same instant for equal sizes, and right for all. The paper's wording on two points is not public:
//! tokens here may go negative, and the smallest start of a flow is that of its oldest pending request.
//!
//! The paper knows no flow without a contract. One with next to no rate would be served when everybody else had run hours ahead of
//! their contracts, so with a single greedy one: never. Here flows without a contract have no tags. While one of them has something
//! queued, the earliest deadline is that of a request that may start by now: one that is ahead of its contract must not be served for
//! its short delay while another that may start has time. What the contracts leave is shared by start-time fair queueing among all that
//! have something queued, each alike: whenever no flow with a contract has a request that may start by now. A contract's flow that is
//! served so has its tags moved back, it alone, so that this is not held against it either. Without such flows everything is as in the
//! paper.

use super::{Entry, Promise, UNIT_BYTES};
use crate::table::{Flow, FlowTable};
use crate::tokens::{Bucket, Fill, Instant, cost_units, float, instant, rate_per_second, time_of};
use crate::{Cost, Discipline, Dispatch, FlowId, FlowParameters, IndexedHeap, Request, Scheduler};
use minerva_model::Nanos;

/// pClock. Work-conserving.
#[derive(Debug)]
pub struct PClock {
    cost: Cost,
    flows: FlowTable<State, Tags>,
    /// Backlogged flows with a contract by the deadline of their oldest request, as stored for all.
    by_finish: IndexedHeap<Instant>,
    /// Those of them that were seen to be able to start it, likewise.
    ready: IndexedHeap<Instant>,
    /// The others by the start of their oldest request.
    by_start: IndexedHeap<Instant>,
    /// All backlogged flows by what they had of what the contracts leave.
    by_share: IndexedHeap<u64>,
    /// Where the last one stood that was served so, before it was charged.
    share_now: u64,
    drift: Instant,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    bucket: Bucket,
    /// By how much the tags of this flow alone were moved back.
    moved: Instant,
    /// Units that it had of what the contracts leave, or was taken to have had when it came.
    shared_units: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Tags {
    start: Instant,
    finish: Instant,
}

impl PClock {
    /// Contracts count in units of `cost`.
    pub fn new(cost: Cost) -> Self {
        Self {
            cost,
            flows: FlowTable::new(),
            by_finish: IndexedHeap::new(),
            ready: IndexedHeap::new(),
            by_start: IndexedHeap::new(),
            by_share: IndexedHeap::new(),
            share_now: 0,
            drift: 0,
        }
    }

    /// Whether only flows with a contract have something queued.
    fn is_as_published(&self) -> bool {
        self.by_share.len() == self.by_finish.len()
    }

    /// Moves all tags back when every backlogged flow is ahead of its contract.
    fn adjust(&mut self, now: Instant) {
        let all_wait = self.is_as_published() && self.ready.is_empty();
        if let Some((start, _)) = self.by_start.peek().filter(|_| all_wait) {
            self.drift = self.drift.max(start - now);
        }
    }

    /// Gives a flow the tokens that it earned until now, if it has a contract.
    fn refill(&mut self, flow: FlowId, now: Instant) {
        let drift = self.drift;
        let Flow { queue, state, parameters } = self.flows.at(flow);
        let Some(contract) = parameters.contract else { return };
        if queue.is_empty() {
            state.bucket.skip_drift(drift);
        }
        let fill = Fill { initial: contract.burst, cap: contract.burst, floor: f64::NEG_INFINITY, credit_drift: true };
        state.bucket.refill(now, drift, rate_per_second(&contract), fill);
    }

    /// Judges a flow by its new contract as if it had just come, with all that it has queued: what it was given before counted with
    /// the other rate.
    fn begin_anew(&mut self, flow: FlowId, now: Instant) {
        let Flow { state, queue, .. } = self.flows.at(flow);
        state.bucket = Bucket::default();
        let queued = queue.len();
        if queued == 0 {
            return;
        }
        self.refill(flow, now);
        for index in 0..queued {
            let request = self.flows.at(flow).queue[index].0;
            let tags = self.tags(flow, &request, now);
            self.flows.at(flow).queue[index].1 = tags;
        }
        self.track_head(flow);
    }

    /// Charges a request that counts from `now`, and gives it its tags. Without a contract there are none.
    fn tags(&mut self, flow: FlowId, request: &Request, now: Instant) -> Tags {
        let (drift, cost) = (self.drift, self.cost);
        let Flow { state, parameters, .. } = self.flows.at(flow);
        let Some(contract) = parameters.contract else { return Tags::default() };
        state.bucket.tokens -= cost_units(cost, request);
        let start = now + drift + state.moved + time_of(&contract, -state.bucket.tokens);
        Tags { start, finish: start.saturating_add(instant(contract.delay)) }
    }

    fn track_head(&mut self, flow: FlowId) {
        let slot = flow.index();
        self.ready.remove(slot);
        let Flow { queue, state, parameters } = self.flows.at(flow);
        match queue.front().filter(|_| parameters.contract.is_some()) {
            Some((_, tags)) => {
                self.by_start.set(slot, tags.start - state.moved);
                self.by_finish.set(slot, tags.finish - state.moved);
            }
            None => {
                self.by_start.remove(slot);
                self.by_finish.remove(slot);
            }
        }
        match queue.is_empty() {
            true => _ = self.by_share.remove(slot),
            false => self.by_share.set(slot, state.shared_units),
        }
    }

    /// Finds the flows that may start by now. Until their oldest request leaves they may.
    fn find_ready(&mut self, now: Instant) {
        while let Some((_, slot)) = self.by_start.peek().filter(|(start, _)| start - self.drift <= now) {
            self.by_start.remove(slot);
            if let Some(finish) = self.by_finish.key(slot) {
                self.ready.set(slot, finish);
            }
        }
    }

    /// Chooses the flow to serve: the earliest deadline, and while a flow without a contract waits, of those that may start by now, if any.
    fn choose(&mut self, now: Instant) -> Option<FlowId> {
        if self.is_as_published() {
            return self.by_finish.peek().map(|(_, slot)| FlowId(slot as u32));
        }
        self.find_ready(now);
        if let Some((_, slot)) = self.ready.peek() {
            return Some(FlowId(slot as u32));
        }
        let (units, slot) = self.by_share.peek()?;
        self.share_now = self.share_now.max(units);
        let (flow, cost) = (FlowId(slot as u32), self.cost);
        let Flow { queue, state, .. } = self.flows.at(flow);
        state.shared_units += queue.front().map_or(0, |(request, _)| cost.of(request));
        self.move_back(flow, now);
        Some(flow)
    }

    /// Moves the tags of one flow back so that its oldest request starts now.
    fn move_back(&mut self, flow: FlowId, now: Instant) {
        self.refill(flow, now);
        let drift = self.drift;
        let Flow { queue, state, parameters } = self.flows.at(flow);
        let (Some(contract), Some((_, tags))) = (parameters.contract, queue.front()) else { return };
        let ahead = (tags.start - state.moved - drift - now).max(0);
        state.moved += ahead;
        state.bucket.tokens += rate_per_second(&contract) * float(ahead) / 1e9;
    }
}

/// In the catalogue.
pub(super) const ENTRY: Entry = Entry {
    name: "pclock",
    summary: "pClock: burst, rate and delay, work-conserving.",
    build: |_| Box::new(PClock::new(Cost::PerBytes(UNIT_BYTES))),
    options: |_| format!("{:?}", Cost::PerBytes(UNIT_BYTES)),
    depth: |disk| if disk.rotational { 1 } else { disk.depth },
    sends_beside_hung: false,
    cost: Cost::PerBytes(UNIT_BYTES),
    promises: &[Promise::Contract],
    discipline: Some(Discipline::EarliestDeadline),
    conserves_work: true,
};

impl Scheduler for PClock {
    fn name(&self) -> &'static str {
        "pclock"
    }

    fn set_flow(&mut self, now: Nanos, flow: FlowId, parameters: FlowParameters) {
        let before = std::mem::replace(&mut self.flows.at(flow).parameters, parameters);
        if before.contract != parameters.contract {
            self.begin_anew(flow, instant(now));
        }
    }

    fn remove_flow(&mut self, _now: Nanos, flow: FlowId) {
        let Flow { queue, state, parameters } = self.flows.at(flow);
        *parameters = FlowParameters::default();
        if queue.is_empty() {
            *state = State::default();
        }
        // What it has queued is sent as that of a flow without a contract.
        self.track_head(flow);
    }

    fn cancel(&mut self, now: Nanos, flow: FlowId, cancelled: &mut Vec<Request>) {
        // Before it leaves the backlog: what the drift moved until now is its credit.
        self.refill(flow, instant(now));
        let cost = self.cost;
        let Flow { queue, state, .. } = self.flows.at(flow);
        state.bucket.tokens += queue.iter().map(|(request, _)| cost_units(cost, request)).sum::<f64>();
        self.flows.cancel(flow, cancelled);
        self.track_head(flow);
    }

    fn charge(&mut self, now: Nanos, request: &Request) {
        self.refill(request.flow, instant(now));
        let (cost, share_now) = (self.cost, self.share_now);
        let Flow { state, parameters, .. } = self.flows.at(request.flow);
        match parameters.contract {
            Some(_) => state.bucket.tokens -= cost_units(cost, request),
            None => state.shared_units = state.shared_units.max(share_now) + cost.of(request),
        }
        self.track_head(request.flow);
    }

    fn add(&mut self, now: Nanos, request: Request) {
        let now = instant(now);
        self.adjust(now);
        self.refill(request.flow, now);
        let tags = self.tags(request.flow, &request, now);
        if self.flows.push(request, tags) {
            let state = &mut self.flows.at(request.flow).state;
            state.shared_units = state.shared_units.max(self.share_now);
            self.track_head(request.flow);
        }
    }

    fn next(&mut self, now: Nanos) -> Dispatch {
        let Some(flow) = self.choose(instant(now)) else { return Dispatch::Idle };
        // Also here, not only when a request comes: a synchronous flow that is alone has nothing queued then, and what it
        // was served would be held against it. Before it may leave the backlog, what the drift moved is its credit.
        self.adjust(instant(now));
        self.refill(flow, instant(now));
        let Some((request, _)) = self.flows.pop(flow) else { return Dispatch::Idle };
        self.track_head(flow);
        Dispatch::Send(request)
    }

    fn complete(&mut self, _now: Nanos, _request: &Request) {}

    fn queued(&self) -> usize {
        self.flows.queued()
    }
}
