//! When queues will be done, from plan to plan.

use super::{InForce, Whose, Worklist};
use crate::ahead::PARTS;
use crate::nouns::{Plan, PlannedSlot};
use crate::slip::{STEP_RATE_MAX, STEP_RATE_MAX_BEFORE};
use crate::work::Work;
use minerva_model::{BackgroundId, DeviceId, Nanos};
use std::collections::{BTreeMap, BTreeSet};

impl Worklist {
    /// Queues of a disk that are still to be done, one after the other.
    pub(super) fn in_order(&self, now: Nanos, device: DeviceId) -> Vec<BackgroundId> {
        let rank = self.ranking(now, false);
        let mut ready: Vec<&Work> = self.ready(Whose::all(device)).collect();
        ready.sort_by_cached_key(|work| rank(work));
        ready.into_iter().map(|work| work.queue.id).collect()
    }

    /// When each queue will be done if work runs in the gaps that this plan expects, in this order; of those only that will be, and of which
    /// that is known. What the plan takes from others counts for nothing here: it takes more where ends moved, and they would move by that.
    pub(super) fn ends(&self, now: Nanos, plan: &Plan, order: &[BackgroundId]) -> BTreeMap<BackgroundId, f64> {
        let is_like = self.settings.compares_like_ends;
        let cores = |slot: &PlannedSlot| if is_like { slot.left_cores(PARTS) } else { slot.usable_cores(PARTS) };
        let mut slots = plan.slots.iter();
        // Core-seconds up to the end of the slot that was last looked at, and that slot.
        let (mut until, mut slot) = (0.0, None);
        let mut work_ahead = 0.0;
        let mut ends = BTreeMap::new();
        for work in order.iter().filter_map(|id| self.works.get(id)) {
            // Its end, and all behind it, move once it says how much there is, whatever came of the plan.
            if is_like && work.total_items.is_none() {
                return ends;
            }
            work_ahead += f64::from(PARTS) * work.left_seconds();
            while until < work_ahead {
                slot = slots.next();
                let Some(slot) = slot else { return ends };
                until += cores(slot) * slot.seconds;
            }
            let end = slot.map_or(now.as_secs_f64(), |slot| {
                slot.start_seconds + slot.seconds - (until - work_ahead) / cores(slot).max(f64::MIN_POSITIVE)
            });
            ends.insert(work.queue.id, end);
        }
        ends
    }

    /// Takes by how far ends moved since the plan that was in force before.
    pub(super) fn slipped(
        &mut self,
        before: &InForce,
        now: Nanos,
        ends: &BTreeMap<BackgroundId, f64>,
        order: &[BackgroundId],
    ) {
        let within = now.since(before.made).as_secs_f64();
        let is_like = self.settings.compares_like_ends;
        let alike = is_like.then(|| placed_alike(&before.order, order));
        let step_rate_max = if is_like { STEP_RATE_MAX } else { STEP_RATE_MAX_BEFORE };
        let is_compared = |id: &BackgroundId| alike.as_ref().is_none_or(|alike| alike.contains(id));
        for (id, end) in ends.iter().filter(|(id, _)| within > 0.0 && is_compared(id)) {
            if let (Some(before), Some(work)) = (before.ends.get(id), self.works.get_mut(id)) {
                work.slip.moved(end - before, within, step_rate_max);
            }
        }
    }
}

/// Queues that have the same ones before them in two orders: what changed is not who goes first.
fn placed_alike(before: &[BackgroundId], now: &[BackgroundId]) -> BTreeSet<BackgroundId> {
    // Of those so far, what is in one of both.
    let mut differing = BTreeSet::new();
    let mut alike = BTreeSet::new();
    for (before, now) in before.iter().zip(now) {
        if before == now && differing.is_empty() {
            alike.insert(*now);
        }
        for id in [before, now] {
            if !differing.remove(id) {
                differing.insert(*id);
            }
        }
    }
    alike
}

#[cfg(test)]
mod tests {
    use super::placed_alike;
    use minerva_model::BackgroundId;

    fn alike(before: &[u32], now: &[u32]) -> Vec<u32> {
        let [before, now] = [before, now].map(|ids| ids.iter().copied().map(BackgroundId).collect::<Vec<_>>());
        placed_alike(&before, &now).into_iter().map(|id| id.0).collect()
    }

    #[test]
    fn a_queue_is_compared_where_the_same_ones_go_before_it_in_whatever_order() {
        assert_eq!(alike(&[1, 2, 3], &[1, 2, 3]), [1, 2, 3]);
        assert_eq!(alike(&[1, 2, 3, 4], &[2, 1, 3, 4]), [3, 4]);
        assert_eq!(alike(&[1, 2, 3], &[1, 3, 2]), [1]);
        assert_eq!(alike(&[1, 2, 3], &[4, 1, 2, 3]), [0; 0]);
        assert_eq!(alike(&[1, 2], &[1, 2, 3]), [1, 2], "one that was added behind");
        assert_eq!(alike(&[], &[1]), [0; 0], "a plan of an earlier version does not say");
    }
}
