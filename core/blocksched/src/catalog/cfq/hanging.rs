//! Flows of which all that is at the device hangs. Where others wait they are passed over (`in_flight`), outside of all orders.

use super::Cfq;
use crate::{Dispatch, FlowId, FlowParameters};
use minerva_model::Nanos;

impl Cfq {
    /// Whether any flow has work and nothing at the device, and is not passed over.
    pub(super) fn somebody_waits(&self) -> bool {
        self.flows.any(|flow| !flow.queue.is_empty() && flow.state.in_flight.waits())
    }

    /// Whether any flow has work that is not passed over.
    pub(super) fn has_work(&mut self) -> bool {
        let flows = &mut self.flows;
        !self.by_virtual.is_empty() || self.service.is_some_and(|service| !flows.at(service.flow).queue.is_empty())
    }

    /// All that is in flight hangs: as much is dispatched beside it, of those who waited, if there are any, and whoever is in service waits for
    /// its next slice.
    pub(super) fn make_room(&mut self, now: Nanos) {
        let somebody_waits = self.somebody_waits();
        self.end_service(now);
        while let Some(flow) = self.at_device.give_up_one() {
            self.flows.at(flow).state.in_flight.give_up();
            if somebody_waits {
                self.pass_over(flow);
            }
        }
    }

    fn pass_over(&mut self, flow: FlowId) {
        self.leave(flow);
        let own = self.flows.at(flow);
        own.state.in_flight.pass_over();
        if !own.queue.is_empty() {
            self.passed_over.set(flow, &own.state.in_flight);
        }
    }

    /// Takes a flow out of its group's order, if it is there, and the group out of the order of groups if it was the last.
    pub(super) fn leave(&mut self, flow: FlowId) {
        let FlowParameters { group, class, .. } = self.flows.at(flow).parameters;
        let index = group.index();
        let was_queued = self.group(index).trees[class as usize].remove(flow.index());
        if was_queued && self.group(index).busy() == 0 {
            self.place(index, None);
            if self.service.is_none_or(|service| service.group != index) {
                self.busy_weight -= self.weight(index);
            }
        }
    }

    /// A flow is passed over no more, and has its place in the order as one that comes.
    pub(super) fn take_back(&mut self, flow: FlowId, now: Nanos) {
        self.passed_over.remove(flow);
        let own = self.flows.at(flow);
        own.state.in_flight.go_on();
        if !own.queue.is_empty() {
            self.enqueue(flow, now);
        }
    }

    /// Sends one request of a flow that is passed over. It has no place at the device by it, and nobody's time.
    pub(super) fn probe(&mut self, flow: FlowId, now: Nanos) -> Dispatch {
        let Some((request, ())) = self.flows.pop(flow) else { return Dispatch::Idle };
        let own = self.flows.at(flow);
        own.state.in_flight.probed(now);
        match own.queue.is_empty() {
            true => self.passed_over.remove(flow),
            false => self.passed_over.set(flow, &own.state.in_flight),
        }
        Dispatch::Send(request)
    }
}
