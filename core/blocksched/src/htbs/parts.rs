//! Equal parts for flows without a contract: what contracts leave is not all for those that have one and ask for more.
//!
//! Such a flow begins a turn when there is room for it beside all contracts, and then not again until every other backlogged
//! flow could have had as much time as it had.

use super::{Htbs, State};
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
        let Flow { parameters, queue, state, .. } = self.flows.at(flow);
        let waits = parameters.contract.is_none() && !queue.is_empty() && state.in_flight == 0;
        match waits && self.options.equal_parts {
            // Kept while it waits, so that whoever waits longest comes first.
            true if self.parts.key(slot).is_none() => self.parts.set(slot, state.part_not_before.max(now)),
            true => {}
            false => _ = self.parts.remove(slot),
        }
    }

    /// A request of a flow without a contract held the disk for so long.
    pub(super) fn charge_part(&mut self, flow: FlowId, now: Nanos, took: Nanos) {
        let others = self.by_finish.len() - usize::from(self.by_finish.key(flow.index()).is_some());
        let State { part_not_before, .. } = &mut self.flows.at(flow).state;
        *part_not_before = (*part_not_before).max(now) + Nanos(took.0.saturating_mul(others as u64));
    }
}
