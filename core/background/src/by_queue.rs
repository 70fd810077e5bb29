//! What each queue has and owes over a plan.

use crate::nouns::{Plan, PlanInput, QueueOverTime, QueueStretch};
use crate::plan::{before_end, grow};

impl Plan {
    /// Plays the plan that was made from this forward, and tells of each queue in so many stretches of slots at most.
    pub fn by_queue(&self, input: &PlanInput<'_>, stretches: usize) -> Vec<QueueOverTime> {
        let each = self.slots.len().div_ceil(stretches.max(1)).max(1);
        let mut debts = input.debts.clone();
        let mut queues: Vec<QueueOverTime> =
            debts.queues().iter().map(|queue| QueueOverTime { id: queue.id, stretches: Vec::new() }).collect();
        for (part, expected) in self.slots.chunks(each).zip(input.expected.chunks(each)) {
            let paid: Vec<f64> = debts.queues().iter().map(|queue| queue.paid()).collect();
            for (slot, expected) in part.iter().zip(expected) {
                grow(&mut debts, slot.start_seconds, &expected.sane());
                let end = slot.start_seconds + slot.seconds;
                debts.serve(before_end(end, slot.seconds), slot.background_cores * slot.seconds);
            }
            let seconds: f64 = part.iter().map(|slot| slot.seconds).sum();
            let start_seconds = part.first().map_or(0.0, |slot| slot.start_seconds);
            for ((queue, paid), over_time) in debts.queues().iter().zip(paid).zip(&mut queues) {
                let done = (queue.paid() - paid) * queue.terms.core_seconds_per_item;
                over_time.stretches.push(QueueStretch {
                    start_seconds,
                    seconds,
                    cores: if seconds > 0.0 { done / seconds } else { 0.0 },
                    core_seconds: queue.items() * queue.terms.core_seconds_per_item,
                    blocks: queue.items() * queue.terms.blocks_per_item,
                });
            }
        }
        queues
    }
}
