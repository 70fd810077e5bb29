//! Flows whose requests hang: they have no place at the device, and are passed over where somebody waits for that.

use super::{Rank, State, Tag, priority};
use crate::{Dispatch, FlowId};
use minerva_model::Nanos;

impl Tag {
    /// The instant until which to wait for a flow that is owed more than the best backlogged one.
    pub(super) fn wait_for_owed(&mut self, now: Nanos, best: Rank) -> Option<Dispatch> {
        while let Some((rank, slot)) = self.expected.peek() {
            // One that would be first for its priority alone is not owed more.
            if rank >= best || rank.counter >= best.counter {
                return None;
            }
            let state = &mut self.flows.at(FlowId(slot as u32)).state;
            let is_at_device = state.in_flight.count() > 0;
            let until = if is_at_device { state.in_flight.hung_at() } else { state.active_at + self.options.plug };
            if now < until {
                return Some(Dispatch::WaitUntil(until));
            }
            if state.in_flight.give_up() > 0 {
                state.in_flight.pass_over();
            }
            self.at_device.give_up(FlowId(slot as u32));
            self.expected.remove(slot);
        }
        None
    }

    /// Until when to wait before the device gets one more, if it has as many as are wanted there. They hang once none of them was done for so
    /// long, and as many are sent beside them: of those who waited, if there are any.
    pub(super) fn make_room(&mut self, now: Nanos) -> Option<Dispatch> {
        if self.at_device.count() < self.options.depth as usize {
            return None;
        }
        let until = self.at_device.hung_at();
        if now < until {
            return Some(Dispatch::WaitUntil(until));
        }
        let somebody_waits = self.flows.any(|flow| !flow.queue.is_empty() && flow.state.in_flight.waits());
        while let Some(flow) = self.at_device.give_up_one() {
            let in_flight = &mut self.flows.at(flow).state.in_flight;
            in_flight.give_up();
            if somebody_waits {
                in_flight.pass_over();
                self.queue_up(flow);
            }
        }
        None
    }

    /// Puts a flow where it belongs that has something queued: among the others, or among those that are passed over.
    pub(super) fn queue_up(&mut self, id: FlowId) {
        let flow = self.flows.at(id);
        let State { counter, in_flight, .. } = flow.state;
        let rank = flow.queue.front().map(|(oldest, ())| Rank::new(counter, priority(&flow.parameters, oldest)));
        match rank.filter(|_| !in_flight.is_passed_over()) {
            Some(rank) => self.backlogged.set(id.index(), rank),
            None => _ = self.backlogged.remove(id.index()),
        }
        match rank.filter(|_| in_flight.is_passed_over()) {
            Some(_) => self.passed_over.set(id, &in_flight),
            None => self.passed_over.remove(id),
        }
    }

    /// A flow is passed over no more. What it did not get meanwhile it is not owed.
    pub(super) fn take_back(&mut self, id: FlowId) {
        let present = self.present();
        let state = &mut self.flows.at(id).state;
        state.in_flight.go_on();
        state.counter = state.counter.max(present);
        self.queue_up(id);
    }
}
