//! First come, first served: the baseline, and what guests should run when the host schedules.

use super::{Entry, UNIT_BYTES};
use crate::{Cost, Dispatch, FlowId, FlowParameters, Request, Scheduler};
use minerva_model::Nanos;
use std::collections::VecDeque;

/// One queue in order of arrival. Work-conserving.
#[derive(Debug, Default)]
pub struct Noop {
    queue: VecDeque<Request>,
}

impl Noop {
    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }
}

/// In the catalogue.
pub(super) const ENTRY: Entry = Entry {
    name: "noop",
    summary: "First come, first served.",
    build: |_| Box::new(Noop::new()),
    options: |_| "none".to_owned(),
    depth: |disk| disk.depth,
    sends_beside_hung: false,
    cost: Cost::PerBytes(UNIT_BYTES),
    promises: &[],
    discipline: None,
    conserves_work: true,
};

impl Scheduler for Noop {
    fn name(&self) -> &'static str {
        "noop"
    }

    fn set_flow(&mut self, _now: Nanos, _flow: FlowId, _parameters: FlowParameters) {}

    fn remove_flow(&mut self, _now: Nanos, _flow: FlowId) {}

    fn cancel(&mut self, _now: Nanos, flow: FlowId, cancelled: &mut Vec<Request>) {
        cancelled.extend(self.queue.iter().filter(|request| request.flow == flow));
        self.queue.retain(|request| request.flow != flow);
    }

    fn add(&mut self, _now: Nanos, request: Request) {
        self.queue.push_back(request);
    }

    fn next(&mut self, _now: Nanos) -> Dispatch {
        self.queue.pop_front().map_or(Dispatch::Idle, Dispatch::Send)
    }

    fn complete(&mut self, _now: Nanos, _request: &Request) {}

    fn queued(&self) -> usize {
        self.queue.len()
    }
}
