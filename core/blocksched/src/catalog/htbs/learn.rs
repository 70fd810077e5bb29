//! What completions and arrivals tell: how long requests take, how long flows think, and that a request hangs.

use super::Htbs;
use crate::Request;
use crate::flow::FlowId;
use minerva_model::Nanos;

impl Htbs {
    /// Learns from a completion how long a unit of this flow and a change of flows take. With several requests at the
    /// device their times cannot be told apart.
    pub(super) fn measure(&mut self, now: Nanos, request: &Request) {
        let options = self.options;
        let units = options.cost.of(request) as f64;
        let state = &mut self.flows.at(request.flow).state;
        let took_ns = now.since(state.sent_at).0 as f64;
        let sequential = state.sequence.is_sequential(options.sequential);
        if !(state.came_by_seek && sequential) {
            state.unit.note(took_ns / units);
        }
        if state.came_by_seek {
            let transfer_ns = if sequential { state.unit.mean_ns() * units } else { 0.0 };
            self.seek.note((took_ns - transfer_ns).max(0.0));
        }
    }

    /// Learns how long the flow thought; whether it asks on, that is, within T_wait.
    pub(super) fn note_think(&mut self, flow: FlowId, now: Nanos) -> bool {
        let wait_max = self.options.wait_max;
        let flow = self.flows.at(flow);
        if flow.state.in_flight.count() > 0 || !flow.queue.is_empty() {
            return true;
        }
        let Some(completed_at) = flow.state.completed_at.take() else { return false };
        // More than twice the wait says no more than that.
        let think = now.since(completed_at).min(wait_max + wait_max);
        flow.state.think.note(think.0 as f64);
        think <= wait_max
    }

    /// What a flow has at the device hangs: others are served beside it. It is charged with the time for which they waited.
    pub(super) fn give_up(&mut self, flow: FlowId, now: Nanos) {
        let at_device = u64::from(self.in_flight.max(1));
        let state = &mut self.flows.at(flow).state;
        self.in_flight = self.in_flight.saturating_sub(state.in_flight.give_up());
        if !state.terms.has_contract {
            self.charge_part(flow, now, at_device);
            self.track_part(flow, now);
        }
    }
}
