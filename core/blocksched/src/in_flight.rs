//! What a flow has at the device, and for how long others are kept waiting because of it.
//!
//! A scheduler that keeps the disk idle for a flow waits for the flow's next request, which seldom comes before the one in flight is
//! done. A request that hangs is never done, as on a file system whose server has gone. So others wait for a flow with requests in
//! flight for [`HUNG_AFTER`] at most. What is in flight by then counts as hung, and as in flight no more, until it is done.

use crate::{FlowId, Request, RequestId};
use minerva_model::Nanos;

/// For so long at most the disk is kept idle for a flow that has requests in flight, since one of them was dispatched or done. No disk
/// that is well takes longer, a flush of a large buffer apart; and who waits beside a hung request loses no more than this, once.
pub(crate) const HUNG_AFTER: Nanos = Nanos::SECOND;

/// The requests of a flow that are at the device.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InFlight {
    requests: u32,
    hung: u32,
    /// When one was last dispatched or done.
    moved_at: Nanos,
    /// What arrived later was not in flight when the others were given up.
    hung_since: Nanos,
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

    /// All count as hung. Whose each of them is.
    pub(crate) fn give_up_all(&mut self) -> impl Iterator<Item = FlowId> + '_ {
        self.requests.drain(..).map(|(flow, _)| flow)
    }
}
