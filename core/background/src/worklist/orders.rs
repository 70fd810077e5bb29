//! Which queue of a disk runs, and at what pace.

use super::{InForce, SHARE_MAX, SHARE_STEP, STEAL_AHEAD, URGENT_PART, Worklist};
use crate::work::Work;
use minerva_model::{BackgroundId, BackgroundOrder, BackgroundPace, DeviceId, Nanos};

impl Worklist {
    /// Orders that changed.
    pub(super) fn orders(&mut self, now: Nanos, device: DeviceId) -> Vec<BackgroundOrder> {
        let front = self.front(now, device);
        let front_name = front.and_then(|id| self.works.get(&id)).map(|work| work.queue.name.clone());
        let share = self.share(now, device);
        let mut orders = Vec::new();
        for work in self.works.values_mut().filter(|work| work.queue.device == device) {
            let (pace, reason) = match &front_name {
                _ if work.state.is_over() => (BackgroundPace::Hold, format!("it is {}", work.state.as_str())),
                _ if work.queue.is_paused => (BackgroundPace::Hold, "the operator paused it".to_owned()),
                Some(first) if Some(work.queue.id) != front => {
                    (BackgroundPace::Hold, format!("{first} goes first on this disk"))
                }
                _ if share > 0 => {
                    let why = format!(
                        "gaps alone would not do in time: {share} of 1,000 parts of the disk's time against others"
                    );
                    (BackgroundPace::Share(share), why)
                }
                _ => (BackgroundPace::Gaps, "runs while nobody else uses the disk".to_owned()),
            };
            if !work.is_told || work.order.pace != pace {
                orders.push(BackgroundOrder { id: work.queue.id, pace, reason: reason.clone() });
            }
            work.is_told = true;
            work.order = BackgroundOrder { id: work.queue.id, pace, reason };
        }
        orders
    }

    /// Who runs: whose deadline is near, the earliest first; else the greatest priority; else who frees most space in a second.
    pub(super) fn front(&self, now: Nanos, device: DeviceId) -> Option<BackgroundId> {
        let ready = self.works.values().filter(|work| work.queue.device == device && work.is_ready());
        let key = |work: &Work| {
            let (added, due) = (work.queue.added, work.due());
            let urgent_from = Nanos(due.0.saturating_sub(due.since(added).0 / URGENT_PART));
            let urgent = if urgent_from <= now { due.0 } else { u64::MAX };
            // Whole bytes a second: a key must be in a total order.
            let density = (work.tied_bytes / work.left_seconds()) as u64;
            (work.is_silent(now), urgent, u8::MAX - work.queue.priority, u64::MAX - density, work.queue.id)
        };
        ready.min_by_key(|work| key(work)).map(|work| work.queue.id)
    }

    /// The part of the disk's time that the plan takes from others now.
    pub(super) fn share(&self, now: Nanos, device: DeviceId) -> u16 {
        let Some(InForce { plan, served, .. }) = self.plans.get(&device) else { return 0 };
        let now_seconds = now.as_secs_f64();
        if plan.short_seconds.is_none_or(|short| short > now_seconds + STEAL_AHEAD.as_secs_f64()) {
            return 0;
        }
        // Who is ahead of the plan need not take from others for it.
        let behind = plan.done_by(now_seconds + 1.0) - served;
        let planned = plan.slot(now_seconds).map_or(0.0, |slot| slot.background_cores);
        let share = behind.clamp(0.0, planned.ceil()).min(f64::from(SHARE_MAX)) as u16;
        share.next_multiple_of(SHARE_STEP)
    }
}
