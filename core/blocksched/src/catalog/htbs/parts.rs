//! Equal parts for flows without a contract: what contracts leave is not all for those that have one and ask for more.
//!
//! Such a flow begins a turn when there is room for it beside all contracts, and then not again until every other backlogged
//! flow could have had as much time as it had, idling included.

use super::Htbs;
use crate::flow::FlowId;
use crate::table::Flow;
use minerva_model::Nanos;

impl Htbs {
    /// The flow without a contract that may have its part now, if there is room for it.
    pub(super) fn part_due(&mut self, now: Nanos) -> Option<FlowId> {
        let (_, slot) = self.parts.peek().filter(|(not_before, _)| *not_before <= now)?;
        let flow = FlowId(slot as u32);
        let more_ns = self.seek.mean_ns() + self.next_request_ns(flow);
        self.has_room(flow, now, more_ns).then_some(flow)
    }

    /// A flow's queue, contract or number of requests at the device changed.
    pub(super) fn track_part(&mut self, flow: FlowId, now: Nanos) {
        let slot = flow.index();
        let Flow { queue, state, .. } = self.flows.at(flow);
        // What hangs of it is not waited for either.
        let is_free = state.in_flight.count() == 0 || now >= state.in_flight.hung_at();
        let waits = !state.terms.has_contract && !queue.is_empty() && is_free;
        match waits && self.options.equal_parts {
            // Kept while it waits, so that whoever waits longest comes first.
            true if self.parts.key(slot).is_none() => self.parts.set(slot, state.part_not_before.max(now)),
            true => {}
            false => _ = self.parts.remove(slot),
        }
    }

    /// Whether a flow without a contract keeps the disk until its part is over: it has more to ask for, or is expected to ask
    /// sooner than a seek away takes.
    pub(super) fn keeps_part(&mut self, flow: FlowId) -> bool {
        let seek_ns = self.seek.mean_ns();
        let Flow { queue, state, .. } = self.flows.at(flow);
        let asks_soon = state.sequence.last_sync && state.think.is_measured() && state.think.high_ns() <= seek_ns;
        self.options.equal_parts && !state.terms.has_contract && (!queue.is_empty() || asks_soon)
    }

    /// A request of a flow without a contract was completed: it is charged with the time that it took, and for which the disk was
    /// kept idle for it.
    pub(super) fn charge_part(&mut self, flow: FlowId, now: Nanos, at_device: u64) {
        let others = self.by_finish.len() - usize::from(self.by_finish.key(flow.index()).is_some());
        let (is_in_service, wait_max) = (self.current == Some(flow), self.options.wait_max);
        let state = &mut self.flows.at(flow).state;
        let took = match is_in_service {
            true => now - state.part_charged_at.max(state.sent_at - wait_max),
            false => Nanos(now.since(state.sent_at).0 / at_device),
        };
        state.part_charged_at = now;
        let whole = Nanos(took.0.saturating_mul(others as u64 + 1));
        state.part_not_before = state.part_not_before.max(now - took) + whole;
    }

    /// A request of a flow without a contract went past the order: it is charged with the time that it takes on average, a seek included.
    pub(super) fn charge_part_beside(&mut self, flow: FlowId, now: Nanos, units: u32) {
        let others = self.by_finish.len() - usize::from(self.by_finish.key(flow.index()).is_some());
        let state = &mut self.flows.at(flow).state;
        let took = self.seek.mean_ns() + state.unit.mean_ns() * f64::from(units);
        let whole = Nanos((took * (others + 1) as f64) as u64);
        state.part_not_before = state.part_not_before.max(now) + whole;
    }
}
