//! What people see of queues.

use super::Worklist;
use minerva_model::{BackgroundOrder, BackgroundQueue, Nanos};

/// What people see of a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkView<'a> {
    /// As registered, with what it costs now.
    pub queue: &'a BackgroundQueue,
    /// What it costs now.
    pub cost: minerva_model::BackgroundCost,
    /// How it stands.
    pub state: minerva_model::BackgroundState,
    /// When it may run, and why.
    pub order: &'a BackgroundOrder,
    /// Items done.
    pub done_items: f64,
    /// Items in all, if known.
    pub total_items: Option<f64>,
    /// For how long it will still run.
    pub left_seconds: f64,
    /// Bytes that it ties.
    pub tied_bytes: f64,
    /// By when it is to be done.
    pub due: Nanos,
    /// By when it is planned to be done, sooner by what it slips.
    pub planned_due: Nanos,
    /// By how many seconds its end moved away from plan to plan in all; below 0 where it came nearer.
    pub slipped_seconds: f64,
    /// It gave no report for a while.
    pub is_silent: bool,
    /// It ran for ten minutes and more without getting on.
    pub is_hung: bool,
    /// Processors that others use, as measured; absent where its processes cannot be confined.
    pub others_processors: Option<f64>,
}

impl Worklist {
    /// All queues, for people.
    pub fn views(&self, now: Nanos) -> impl Iterator<Item = WorkView<'_>> {
        self.works.values().map(move |work| WorkView {
            queue: &work.queue,
            cost: work.learnt.cost,
            state: work.state,
            order: &work.order,
            done_items: work.done_items,
            total_items: work.total_items,
            left_seconds: if work.is_owed() { work.left_seconds() } else { 0.0 },
            tied_bytes: work.tied_bytes,
            due: work.due(),
            planned_due: work.planned_due(now),
            slipped_seconds: work.slip.seconds,
            is_silent: work.is_silent(now),
            is_hung: work.is_hung(),
            others_processors: work.processors.others(),
        })
    }
}
