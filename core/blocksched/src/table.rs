//! Flows with their queues, indexed by number: what every per-flow scheduler keeps.

use crate::{FlowId, FlowParameters, Request};
use minerva_model::Nanos;
use std::collections::VecDeque;

/// One flow: what it was promised, what it has queued, and a scheduler's own state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flow<State, Tags> {
    pub(crate) parameters: FlowParameters,
    pub(crate) queue: VecDeque<(Request, Tags)>,
    pub(crate) state: State,
}

/// All flows. A number that was never seen is an empty flow with default parameters.
#[derive(Clone, Debug)]
pub(crate) struct FlowTable<State, Tags> {
    flows: Vec<Flow<State, Tags>>,
    queued: usize,
    /// Of a flow that was never seen.
    unseen: State,
}

impl<State: Default + Clone, Tags: Default> FlowTable<State, Tags> {
    pub(crate) fn new() -> Self {
        Self::with(State::default())
    }

    /// A flow that was never seen has this state.
    pub(crate) fn with(unseen: State) -> Self {
        Self { flows: Vec::new(), queued: 0, unseen }
    }

    /// The flow, made if it was never seen.
    pub(crate) fn at(&mut self, flow: FlowId) -> &mut Flow<State, Tags> {
        let index = flow.index();
        if index >= self.flows.len() {
            self.grow(index + 1);
        }
        &mut self.flows[index]
    }

    #[cold]
    fn grow(&mut self, count: usize) {
        let unseen = || Flow { state: self.unseen.clone(), ..Flow::default() };
        self.flows.resize_with(count, unseen);
    }

    /// Queues a request; whether its flow was empty before.
    pub(crate) fn push(&mut self, request: Request, tags: Tags) -> bool {
        self.queued += 1;
        let queue = &mut self.at(request.flow).queue;
        queue.push_back((request, tags));
        queue.len() == 1
    }

    /// Takes the oldest request of a flow.
    pub(crate) fn pop(&mut self, flow: FlowId) -> Option<(Request, Tags)> {
        let taken = self.at(flow).queue.pop_front();
        self.queued -= usize::from(taken.is_some());
        taken
    }

    /// Takes the request at `position` of a flow's queue.
    pub(crate) fn take(&mut self, flow: FlowId, position: usize) -> Option<(Request, Tags)> {
        let queue = &mut self.at(flow).queue;
        let taken = if position == 0 { queue.pop_front() } else { queue.remove(position) };
        self.queued -= usize::from(taken.is_some());
        taken
    }

    /// Takes back all that a flow has queued.
    pub(crate) fn cancel(&mut self, flow: FlowId, cancelled: &mut Vec<Request>) {
        let before = cancelled.len();
        cancelled.extend(self.at(flow).queue.drain(..).map(|(request, _)| request));
        self.queued -= cancelled.len() - before;
    }

    /// Whether any flow is such a one; for rare sweeps.
    pub(crate) fn any(&self, is_such: impl FnMut(&Flow<State, Tags>) -> bool) -> bool {
        self.flows.iter().any(is_such)
    }

    /// Requests queued in all flows.
    pub(crate) fn queued(&self) -> usize {
        self.queued
    }
}

/// How many of a flow's oldest requests are looked at for the one that is nearest onwards.
pub(crate) const SWEEP_WINDOW: usize = 32;

/// The position in `queue` of the request to send next when the head stands at `position_bytes`: the nearest onwards among
/// the oldest, and after the last the lowest, but the oldest of all once it has waited for `expire`.
pub(crate) fn sweep<Tags>(
    queue: &VecDeque<(Request, Tags)>,
    position_bytes: u64,
    now: Nanos,
    expire: Nanos,
    window: usize,
) -> usize {
    if queue.front().is_none_or(|(oldest, _)| now.since(oldest.arrived) >= expire) {
        return 0;
    }
    let key = |request: &Request| (request.offset_bytes < position_bytes, request.offset_bytes);
    let nearest = queue.iter().take(window.max(1)).enumerate().min_by_key(|(_, (request, _))| key(request));
    nearest.map_or(0, |(index, _)| index)
}
