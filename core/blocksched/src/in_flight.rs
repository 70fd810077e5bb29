//! What a flow has at the device, and for how long others are kept waiting because of it.
//!
//! A scheduler that keeps the disk idle for a flow waits for the flow's next request, which seldom comes before the one in flight is
//! done. A request that hangs is never done, as on a file system whose server has gone. So others wait for a flow with requests in
//! flight for [`HUNG_AFTER`] at most. What is in flight by then counts as hung, and as in flight no more, until it is done.
//!
//! A flow may have many more queued that would hang as well, and take all places again. So where somebody waited for it, it is passed over
//! from then on ([`PassedOver`]), until anything of it is done. That what comes now would be answered shows if one is sent now and then:
//! a probe, for which nobody waits.

use crate::{Dispatch, FlowId, IndexedHeap, Request, RequestId};
use minerva_model::Nanos;

/// For so long at most the disk is kept idle for a flow that has requests in flight, since one of them was dispatched or done. No disk
/// that is well takes longer, a flush of a large buffer apart; and who waits beside a hung request loses no more than this, once.
pub(crate) const HUNG_AFTER: Nanos = Nanos::SECOND;
/// For so long after anybody else last asked or was answered a flow is passed over. Who writes now and then, as a journal does, is to find no
/// place taken either.
const BESIDE: Nanos = Nanos::from_secs(60);
/// Each probe comes after twice the time of the one before, as all that are not answered take places of the device; so often at most.
const DOUBLINGS_MAX: u32 = 16;

/// The requests of a flow that are at the device.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InFlight {
    requests: u32,
    hung: u32,
    /// When one was last dispatched or done.
    moved_at: Nanos,
    /// What arrived later was not in flight when the others were given up.
    hung_since: Nanos,
    /// Probes that were sent since it is passed over, if it is.
    probes: Option<u32>,
}

impl InFlight {
    /// How many there are, without those that hang.
    pub(crate) fn count(&self) -> u32 {
        self.requests
    }

    /// Whether there are some that hang.
    pub(crate) fn hangs(&self) -> bool {
        self.hung > 0
    }

    /// When those in flight count as hung unless one of them is done before.
    pub(crate) fn hung_at(&self) -> Nanos {
        self.moved_at + HUNG_AFTER
    }

    /// One more.
    pub(crate) fn dispatched(&mut self, now: Nanos) {
        self.requests += 1;
        self.moved_at = now;
    }

    /// One is done; whether it counted until now. For who gives up a flow only while that has nothing queued.
    pub(crate) fn completed(&mut self, now: Nanos, request: &Request) -> bool {
        let counted = self.hung == 0 || request.arrived > self.hung_since;
        self.completed_one(now, counted);
        counted
    }

    /// The same, for who knows whether it counted.
    pub(crate) fn completed_one(&mut self, now: Nanos, counted: bool) {
        self.moved_at = now;
        let requests = if counted { &mut self.requests } else { &mut self.hung };
        *requests = requests.saturating_sub(1);
        self.probes = None;
    }

    /// All that are in flight count as hung. Answers how many.
    pub(crate) fn give_up(&mut self) -> u32 {
        let given_up = std::mem::take(&mut self.requests);
        if given_up > 0 {
            self.hung += given_up;
            self.hung_since = self.moved_at;
        }
        given_up
    }

    /// It is passed over from now on, if anything of it hangs.
    pub(crate) fn pass_over(&mut self) {
        if self.hung > 0 {
            self.probes = self.probes.or(Some(0));
        }
    }

    /// It is passed over no more.
    pub(crate) fn go_on(&mut self) {
        self.probes = None;
    }

    /// Whether others go before it, because what it has in flight hangs and nothing of it was done since.
    pub(crate) fn is_passed_over(&self) -> bool {
        self.probes.is_some()
    }

    /// Whether it waits for a place at the device, if it has something queued: it has none, and is not passed over.
    pub(crate) fn waits(&self) -> bool {
        self.count() == 0 && !self.is_passed_over()
    }

    /// When the next probe is due, once it is passed over.
    pub(crate) fn probe_at(&self) -> Nanos {
        self.moved_at + Nanos(HUNG_AFTER.0 << self.probes.unwrap_or(0).min(DOUBLINGS_MAX))
    }

    /// A probe was sent. It counts as hung until it is done.
    pub(crate) fn probed(&mut self, now: Nanos) {
        self.hung += 1;
        self.probes = self.probes.map(|probes| probes.saturating_add(1));
        self.moved_at = now;
    }
}

/// Flows that are passed over and have work, by when the next probe of each is due.
#[derive(Debug, Default)]
pub(crate) struct PassedOver {
    flows: IndexedHeap<Nanos>,
    /// When a flow that is not passed over last asked or was answered.
    used_at: Nanos,
}

impl PassedOver {
    /// A flow that is not passed over asks, or was answered.
    pub(crate) fn used(&mut self, now: Nanos) {
        self.used_at = now;
    }

    /// A flow is passed over and has work.
    pub(crate) fn set(&mut self, flow: FlowId, in_flight: &InFlight) {
        self.flows.set(flow.index(), in_flight.probe_at());
    }

    /// A flow has no work any more, or is not passed over.
    pub(crate) fn remove(&mut self, flow: FlowId) {
        self.flows.remove(flow.index());
    }

    /// One of them whose probe is due.
    pub(crate) fn due(&self, now: Nanos) -> Option<FlowId> {
        self.flows.peek().filter(|(at, _)| *at <= now).map(|(_, slot)| FlowId(slot as u32))
    }

    /// One of them that is passed over for nobody's sake any more.
    pub(crate) fn alone(&self, now: Nanos) -> Option<FlowId> {
        self.flows.peek().filter(|_| now >= self.used_at + BESIDE).map(|(_, slot)| FlowId(slot as u32))
    }

    /// What to do where nobody else has work, no probe is due, and none of them is alone.
    pub(crate) fn wait(&self) -> Dispatch {
        let until = self.flows.peek().map(|(at, _)| at.min(self.used_at + BESIDE));
        until.map_or(Dispatch::Idle, Dispatch::WaitUntil)
    }
}

/// The requests of all flows that are at the device, without those that hang: as many as a scheduler wants there at once, at most. What
/// comes later may have been queued before others were given up, so that only the number of a request tells whether it counts.
#[derive(Debug, Default)]
pub(crate) struct AtDevice {
    requests: Vec<(FlowId, RequestId)>,
    /// When one was last dispatched or done.
    moved_at: Nanos,
}

impl AtDevice {
    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.requests.len()
    }

    /// When all of them count as hung unless one is done before.
    pub(crate) fn hung_at(&self) -> Nanos {
        self.moved_at + HUNG_AFTER
    }

    /// One more.
    pub(crate) fn dispatched(&mut self, now: Nanos, request: &Request) {
        self.requests.push((request.flow, request.id));
        self.moved_at = now;
    }

    /// One is done; whether it counted until now.
    pub(crate) fn completed(&mut self, now: Nanos, request: &Request) -> bool {
        self.moved_at = now;
        let position = self.requests.iter().position(|(_, id)| *id == request.id);
        position.into_iter().for_each(|position| _ = self.requests.swap_remove(position));
        position.is_some()
    }

    /// Those of a flow count as hung.
    pub(crate) fn give_up(&mut self, flow: FlowId) {
        self.requests.retain(|(of, _)| *of != flow);
    }

    /// One of them counts as hung. Whose it is.
    pub(crate) fn give_up_one(&mut self) -> Option<FlowId> {
        self.requests.pop().map(|(flow, _)| flow)
    }
}
