//! When queues will be done, from plan to plan.

use super::Worklist;
use crate::ahead::PARTS;
use crate::nouns::Plan;
use crate::work::Work;
use minerva_model::{BackgroundId, DeviceId, Nanos};
use std::collections::BTreeMap;

impl Worklist {
    /// When each queue of a disk will be done if work goes by this plan in their present order; of those only that will be.
    pub(super) fn ends(&self, now: Nanos, device: DeviceId, plan: &Plan) -> BTreeMap<BackgroundId, f64> {
        let rank = Self::ranking(now, false);
        let ready = self.works.values().filter(|work| work.queue.device == device && work.is_ready());
        let mut ready: Vec<&Work> = ready.collect();
        ready.sort_by_cached_key(|work| rank(work));
        let mut slots = plan.slots.iter();
        // Core-seconds up to the end of the slot that was last looked at, and that slot.
        let (mut until, mut slot) = (0.0, None);
        let mut work_ahead = 0.0;
        let mut ends = BTreeMap::new();
        for work in ready {
            work_ahead += f64::from(PARTS) * work.left_seconds();
            while until < work_ahead {
                slot = slots.next();
                let Some(slot) = slot else { return ends };
                until += slot.usable_cores(PARTS) * slot.seconds;
            }
            let end = slot.map_or(now.as_secs_f64(), |slot| {
                let cores = slot.usable_cores(PARTS).max(f64::MIN_POSITIVE);
                slot.start_seconds + slot.seconds - (until - work_ahead) / cores
            });
            ends.insert(work.queue.id, end);
        }
        ends
    }

    /// Takes by how far ends moved since the last plan, which said `before` of them.
    pub(super) fn slipped(
        &mut self,
        (before, made): (&BTreeMap<BackgroundId, f64>, Nanos),
        now: Nanos,
        ends: &BTreeMap<BackgroundId, f64>,
    ) {
        let within = now.since(made).as_secs_f64();
        for (id, end) in ends.iter().filter(|_| within > 0.0) {
            if let (Some(before), Some(work)) = (before.get(id), self.works.get_mut(id)) {
                work.slip.moved(end - before, within);
            }
        }
    }
}
