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

use super::{Entry, Promise, UNIT_BYTES};
use crate::table::{Flow, FlowTable};
use crate::tokens::{BACKGROUND, Bucket, Fill, Instant, cost_units, instant, rate_per_second, time_of};
use crate::{Cost, Discipline, Dispatch, FlowId, FlowParameters, IndexedHeap, Request, Scheduler};
use minerva_model::Nanos;

/// pClock. Work-conserving.
#[derive(Debug)]
pub struct PClock {
    cost: Cost,
    flows: FlowTable<Bucket, Tags>,
    /// Backlogged flows by the start of their oldest request, as stored.
    by_start: IndexedHeap<Instant>,
    /// Backlogged flows by the deadline of their oldest request, as stored.
    by_finish: IndexedHeap<Instant>,
    drift: Instant,
}

#[derive(Clone, Copy, Debug, Default)]
struct Tags {
    start: Instant,
    finish: Instant,
}

impl PClock {
    /// Contracts count in units of `cost`.
    pub fn new(cost: Cost) -> Self {
        Self { cost, flows: FlowTable::new(), by_start: IndexedHeap::new(), by_finish: IndexedHeap::new(), drift: 0 }
    }

    /// Moves all tags back when every backlogged flow is ahead of its contract.
    fn adjust(&mut self, now: Instant) {
        if let Some((start, _)) = self.by_start.peek() {
            self.drift = self.drift.max(start - now);
        }
    }

    /// Gives a flow the tokens that it earned until now.
    fn refill(&mut self, flow: FlowId, now: Instant) {
        let drift = self.drift;
        let flow = self.flows.at(flow);
        let contract = flow.parameters.contract.unwrap_or(BACKGROUND);
        if flow.queue.is_empty() {
            flow.state.skip_drift(drift);
        }
        let fill = Fill { initial: contract.burst, cap: contract.burst, floor: f64::NEG_INFINITY, credit_drift: true };
        flow.state.refill(now, drift, rate_per_second(&contract), fill);
    }

    /// Judges a flow by its new contract as if it had just come, with all that it has queued: what it was given before counted with
    /// the other rate.
    fn begin_anew(&mut self, flow: FlowId, now: Instant) {
        let Flow { state, queue, .. } = self.flows.at(flow);
        *state = Bucket::default();
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

    /// Charges a request that counts from `now`, and gives it its tags.
    fn tags(&mut self, flow: FlowId, request: &Request, now: Instant) -> Tags {
        let (drift, cost) = (self.drift, self.cost);
        let flow = self.flows.at(flow);
        let contract = flow.parameters.contract.unwrap_or(BACKGROUND);
        flow.state.tokens -= cost_units(cost, request);
        let start = now + drift + time_of(&contract, -flow.state.tokens);
        Tags { start, finish: start.saturating_add(instant(contract.delay)) }
    }

    fn track_head(&mut self, flow: FlowId) {
        match self.flows.at(flow).queue.front() {
            Some((_, tags)) => {
                self.by_start.set(flow.index(), tags.start);
                self.by_finish.set(flow.index(), tags.finish);
            }
            None => {
                self.by_start.remove(flow.index());
                self.by_finish.remove(flow.index());
            }
        }
    }
}

/// In the catalogue.
pub(super) const ENTRY: Entry = Entry {
    name: "pclock",
    summary: "pClock: burst, rate and delay, work-conserving.",
    build: |_| Box::new(PClock::new(Cost::PerBytes(UNIT_BYTES))),
    options: |_| format!("{:?}", Cost::PerBytes(UNIT_BYTES)),
    depth: |disk| if disk.rotational { 1 } else { disk.depth },
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
        let flow = self.flows.at(flow);
        flow.parameters = FlowParameters::default();
        if flow.queue.is_empty() {
            flow.state = Bucket::default();
        }
    }

    fn cancel(&mut self, now: Nanos, flow: FlowId, cancelled: &mut Vec<Request>) {
        // Before it leaves the backlog: what the drift moved until now is its credit.
        self.refill(flow, instant(now));
        let cost = self.cost;
        let Flow { queue, state, .. } = self.flows.at(flow);
        state.tokens += queue.iter().map(|(request, _)| cost_units(cost, request)).sum::<f64>();
        self.flows.cancel(flow, cancelled);
        self.track_head(flow);
    }

    fn charge(&mut self, now: Nanos, request: &Request) {
        self.refill(request.flow, instant(now));
        self.flows.at(request.flow).state.tokens -= cost_units(self.cost, request);
    }

    fn add(&mut self, now: Nanos, request: Request) {
        let now = instant(now);
        self.adjust(now);
        self.refill(request.flow, now);
        let tags = self.tags(request.flow, &request, now);
        if self.flows.push(request, tags) {
            self.track_head(request.flow);
        }
    }

    fn next(&mut self, now: Nanos) -> Dispatch {
        let Some((_, slot)) = self.by_finish.peek() else { return Dispatch::Idle };
        let flow = FlowId(slot as u32);
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
