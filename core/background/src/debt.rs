//! Queues of deferred work: what is owed, what it ties, by when it is due.

use crate::order::{self, Claim};
use crate::quantity;
use crate::terms::{QueueId, Refusal, Terms};
use std::collections::VecDeque;

/// Items that come within this part of their deadline of each other have the deadline of the first.
const MERGED_SLA_SHARE: f64 = 1.0 / 32.0;
/// A queue keeps no more deadlines than these.
const COHORTS_MAX: usize = 64;
/// The last part of its time in which an item goes ahead of priorities.
const URGENT_SLA_SHARE: f64 = 1.0 / 8.0;

/// Items with one deadline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cohort {
    /// When it can be worked on.
    pub(crate) from_seconds: f64,
    pub(crate) due_seconds: f64,
    pub(crate) items: f64,
}

impl Cohort {
    fn is_urgent(&self, now_seconds: f64) -> bool {
        self.due_seconds - URGENT_SLA_SHARE * (self.due_seconds - self.from_seconds) <= now_seconds
    }
}

/// What is left of a budget by rounding is nothing left.
const ROUNDING_SHARE: f64 = 1e-12;

/// One queue.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Queue {
    pub(crate) id: QueueId,
    pub(crate) terms: Terms,
    /// By when they can be worked on.
    pub(crate) cohorts: VecDeque<Cohort>,
    /// Of all cohorts.
    items: f64,
    /// Done so far.
    paid: f64,
}

/// What a queue owes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Owed {
    /// Whose.
    pub id: QueueId,
    /// The greater goes first.
    pub priority: u8,
    /// Items not done.
    pub items: f64,
    /// Work in them, in seconds of a core.
    pub core_seconds: f64,
    /// Blocks they tie.
    pub blocks: f64,
    /// The earliest deadline; `None` if nothing is owed.
    pub due_seconds: Option<f64>,
}

/// What was paid.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Served {
    /// Time of cores that was used.
    pub core_seconds: f64,
    /// Blocks that are free again.
    pub blocks: f64,
}

/// All queues of a pool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Debts {
    /// The greater priority first, then by id.
    queues: Vec<Queue>,
    changes: u64,
}

impl Debts {
    /// Takes a queue, or new terms of one that is there, whose debt stays. Why not, if it was refused; then nothing changed.
    pub fn register(&mut self, id: QueueId, terms: Terms) -> Option<Refusal> {
        let refusal = terms.refusal();
        if refusal.is_none() {
            let before = self.take(id);
            let (cohorts, items, paid) =
                before.map(|queue| (queue.cohorts, queue.items, queue.paid)).unwrap_or_default();
            let at = self.queues.partition_point(|queue| {
                (std::cmp::Reverse(queue.terms.priority), queue.id) < (std::cmp::Reverse(terms.priority), id)
            });
            self.queues.insert(at, Queue { id, terms, cohorts, items, paid });
            self.changes += 1;
        }
        refusal
    }

    /// A queue vanished, and its debt with it; the blocks that it tied. Whether they are free the caller must find out.
    pub fn remove(&mut self, id: QueueId) -> f64 {
        self.take(id).map_or(0.0, |queue| {
            self.changes += 1;
            queue.items() * queue.terms.blocks_per_item
        })
    }

    /// Adds items that can be worked on as the queue's terms say; whether there is such a queue. What is no number of items adds nothing.
    pub fn defer(&mut self, now_seconds: f64, id: QueueId, items: f64) -> bool {
        let Some(queue) = self.queues.iter_mut().find(|queue| queue.id == id) else { return false };
        queue.defer(now_seconds, if items.is_finite() { items } else { 0.0 });
        true
    }

    /// Items that were done outside a plan, as measured; never more than are owed. Their blocks.
    pub fn settle(&mut self, id: QueueId, items: f64) -> f64 {
        let Some(queue) = self.queues.iter_mut().find(|queue| queue.id == id) else { return 0.0 };
        let done = quantity(items).min(queue.items());
        queue.pay(f64::INFINITY, done);
        done * queue.terms.blocks_per_item
    }

    /// Works for so much time of cores on what can be worked on at `now_seconds`: the urgent by deadline, then the greater priority,
    /// within one in proportion to blocks freed per core-second.
    pub fn serve(&mut self, now_seconds: f64, core_seconds: f64) -> Served {
        let mut left = quantity(core_seconds);
        let mut served = Served::default();
        if left <= 0.0 {
            return served;
        }
        for (_, at) in self.urgent(now_seconds) {
            let queue = &mut self.queues[at];
            let Some(front) = queue.cohorts.front() else { continue };
            let paid = queue.pay(now_seconds, front.items.min(left / queue.terms.core_seconds_per_item));
            left -= queue.book(paid, &mut served);
        }
        let mut from = 0;
        while from < self.queues.len() && left > ROUNDING_SHARE * core_seconds {
            let priority = self.queues[from].terms.priority;
            let to = from + self.queues[from..].partition_point(|queue| queue.terms.priority == priority);
            left -= serve_equals(&mut self.queues[from..to], now_seconds, left, &mut served);
            from = to;
        }
        served
    }

    /// What each queue owes, the greater priority first.
    pub fn owed(&self) -> impl Iterator<Item = Owed> + '_ {
        self.queues.iter().map(Queue::owed)
    }

    /// Blocks that all queues tie.
    pub fn tied_blocks(&self) -> f64 {
        self.queues.iter().map(|queue| queue.items() * queue.terms.blocks_per_item).sum()
    }

    /// Work that can be done at `now_seconds`, in seconds of a core.
    pub fn ready_core_seconds(&self, now_seconds: f64) -> f64 {
        self.queues.iter().map(|queue| queue.ready(now_seconds) * queue.terms.core_seconds_per_item).sum()
    }

    /// Grows with every queue that comes, goes or changes its terms.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    pub(crate) fn queues(&self) -> &[Queue] {
        &self.queues
    }

    pub(crate) fn queues_mut(&mut self) -> &mut [Queue] {
        &mut self.queues
    }

    fn take(&mut self, id: QueueId) -> Option<Queue> {
        let at = self.queues.iter().position(|queue| queue.id == id)?;
        Some(self.queues.remove(at))
    }

    /// Every urgent cohort's deadline and queue, the earliest first.
    fn urgent(&self, now_seconds: f64) -> Vec<(f64, usize)> {
        let of = |(at, queue)| {
            let cohorts = Queue::cohorts(queue);
            cohorts
                .iter()
                .take_while(move |cohort| cohort.from_seconds <= now_seconds && cohort.is_urgent(now_seconds))
                .map(move |cohort| (cohort.due_seconds, at))
        };
        let mut urgent: Vec<(f64, usize)> = self.queues.iter().enumerate().flat_map(of).collect();
        urgent.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        urgent
    }
}

/// Serves queues of one priority; the time used.
fn serve_equals(queues: &mut [Queue], now_seconds: f64, core_seconds: f64, served: &mut Served) -> f64 {
    let mut claims: Vec<Claim> = queues
        .iter()
        .map(|queue| Claim {
            work: queue.ready(now_seconds) * queue.terms.core_seconds_per_item,
            weight: queue.terms.blocks_per_core_second(),
            granted: 0.0,
        })
        .collect();
    order::share_out(core_seconds, &mut claims);
    let mut used = 0.0;
    for (queue, claim) in queues.iter_mut().zip(claims).filter(|(_, claim)| claim.granted > 0.0) {
        let paid = queue.pay(now_seconds, claim.granted / queue.terms.core_seconds_per_item);
        used += queue.book(paid, served);
    }
    used
}

impl Queue {
    pub(crate) fn items(&self) -> f64 {
        self.items
    }

    /// Done so far.
    pub(crate) fn paid(&self) -> f64 {
        self.paid
    }

    pub(crate) fn defer(&mut self, now_seconds: f64, items: f64) {
        let items = quantity(items);
        if items <= 0.0 {
            return;
        }
        self.items += items;
        let from = self.terms.growth.release_seconds(now_seconds);
        let sla = self.terms.sla();
        let is_full = self.cohorts.len() >= COHORTS_MAX;
        match self.cohorts.back_mut() {
            Some(last) if from == last.from_seconds => last.items += items,
            // One that cannot be worked on yet must not be taken for one that can.
            Some(last) if is_full || (from <= now_seconds && from - last.from_seconds <= MERGED_SLA_SHARE * sla) => {
                last.items += items;
            }
            last => {
                // Terms may have changed, time may have gone back: cohorts stay in order.
                let from_seconds = last.map_or(from, |last| from.max(last.from_seconds));
                self.cohorts.push_back(Cohort { from_seconds, due_seconds: from_seconds + sla, items });
            }
        }
    }

    fn cohorts(queue: &Self) -> &VecDeque<Cohort> {
        &queue.cohorts
    }

    fn owed(&self) -> Owed {
        let items = self.items();
        Owed {
            id: self.id,
            priority: self.terms.priority,
            items,
            core_seconds: items * self.terms.core_seconds_per_item,
            blocks: items * self.terms.blocks_per_item,
            due_seconds: self.cohorts.front().map(|cohort| cohort.due_seconds),
        }
    }

    /// Items that can be worked on.
    fn ready(&self, now_seconds: f64) -> f64 {
        self.cohorts.iter().take_while(|cohort| cohort.from_seconds <= now_seconds).map(|cohort| cohort.items).sum()
    }

    /// Does items, the oldest first; how many.
    fn pay(&mut self, now_seconds: f64, items: f64) -> f64 {
        let mut left = items;
        while let Some(front) = self.cohorts.front_mut().filter(|front| front.from_seconds <= now_seconds) {
            // Remainders of rounding are no work.
            if front.items > left * (1.0 + 1e-12) + 1e-9 {
                front.items -= left;
                left = 0.0;
                break;
            }
            left = (left - front.items).max(0.0);
            self.cohorts.pop_front();
            if left <= 0.0 {
                break;
            }
        }
        let paid = items - left;
        self.paid += paid;
        // An empty queue owes nothing, not what rounding left of it.
        self.items = if self.cohorts.is_empty() { 0.0 } else { (self.items - paid).max(0.0) };
        paid
    }

    /// Adds what was paid; the time it took.
    fn book(&self, items: f64, served: &mut Served) -> f64 {
        let core_seconds = items * self.terms.core_seconds_per_item;
        served.core_seconds += core_seconds;
        served.blocks += items * self.terms.blocks_per_item;
        core_seconds
    }
}
