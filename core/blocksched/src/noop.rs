//! First come, first served: the baseline, and what guests should run when the host schedules.

use crate::{Dispatch, FlowId, FlowParameters, Request, Scheduler};
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

impl Scheduler for Noop {
    fn name(&self) -> &'static str {
        "noop"
    }

    fn set_flow(&mut self, _now: Nanos, _flow: FlowId, _parameters: FlowParameters) {}

    fn remove_flow(&mut self, _now: Nanos, _flow: FlowId) {}

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
