//! Which queue of a disk runs, and at what pace.

use super::{InForce, REPLAN, SHARE_MAX, SHARE_STEP, STEAL_AHEAD, URGENT_PART, Whose, Worklist};
use crate::work::Work;
use minerva_model::{BackgroundHold, BackgroundId, BackgroundOrder, BackgroundPace, DeviceId, Nanos};

/// What costs others less than this costs them nothing that was measured.
const SLOW_DOWN_LEAST: f64 = 0.05;
/// Why work rests.
const CALIBRATED: &str = "its disk is calibrated: what that serves to others is measured without any work";
/// Why work has gaps alone that may be late by that.
const LOSES: &str = "runs while nobody else uses the disk, and takes no time from others, however late it is: it would begin again what it \
                     was stopped in, and get on by nothing";
/// In which costs are compared.
const COST_STEPS: f64 = 20.0;

/// Whether it says or does nothing, whether it comes last whatever its deadline, whether it gets on in gaps alone where time is taken from
/// others, its urgency, its priority, the space that it ties, what it costs others, and its number.
type Rank = ((bool, bool, bool), (u8, u64), (u8, bool), u64, u64, BackgroundId);

impl Worklist {
    /// Orders that changed.
    pub(super) fn orders(&mut self, now: Nanos, device: DeviceId) -> Vec<BackgroundOrder> {
        let front = self.front(now, device);
        let front_name = front.and_then(|id| self.works.get(&id)).map(|work| work.queue.name.clone());
        let share = self.share(now, device, front);
        let is_calibrated = self.calibrating.contains_key(&device);
        let mut orders = Vec::new();
        for work in self.works.values_mut().filter(|work| work.queue.device == device) {
            let (pace, reason) = match &front_name {
                _ if work.state.is_over() => (BackgroundPace::Hold, format!("it is {}", work.state.as_str())),
                _ if work.queue.is_paused => (BackgroundPace::Hold, "the operator paused it".to_owned()),
                _ if is_calibrated => (BackgroundPace::Hold, CALIBRATED.to_owned()),
                Some(first) if Some(work.queue.id) != front => {
                    (BackgroundPace::Hold, format!("{first} goes first on this disk"))
                }
                _ if share > 0 => (BackgroundPace::Share(share), why_share(share, work.learnt.cost.slow_down)),
                _ if !work.can_take() => (BackgroundPace::Gaps, LOSES.to_owned()),
                _ => (BackgroundPace::Gaps, "runs while nobody else uses the disk".to_owned()),
            };
            let order = BackgroundOrder { id: work.queue.id, pace, reason, processors: work.processors.allowed() };
            if !work.is_told || work.order.pace != pace || work.order.processors != order.processors {
                orders.push(order.clone());
            }
            work.is_told = true;
            work.order = order;
        }
        orders
    }

    /// Whether a queue's work takes time from others: it has a part of it, or ends beside them what it would lose, at a limit.
    pub fn takes_from_others(&self, id: BackgroundId) -> bool {
        self.works.get(&id).is_some_and(|work| match work.order.pace {
            BackgroundPace::Share(_) => true,
            BackgroundPace::Gaps => work.is_beside_others,
            BackgroundPace::Hold => false,
        })
    }

    /// Whether a queue's work goes before others in the time that it takes from them: it does where it rests for them in between, in stretches.
    /// At a limit it would only hold up each of their requests by all that it has under way.
    pub fn goes_before_others(&self, id: BackgroundId) -> bool {
        let goes = |work: &Work| work.queue.hold == BackgroundHold::Stop && work.takes_in_stretches();
        self.settings.goes_before_others && self.takes_from_others(id) && self.works.get(&id).is_some_and(goes)
    }

    /// Who runs: whose deadline is near, the earliest first; else the greatest priority; else who frees most space in a second. While
    /// time is taken from others it is a second of theirs that counts: who frees most for what they lose, and of those that free nothing
    /// who costs them least. What costs much is left to the gaps then, and what gets on in gaps alone comes after what does not. What tenants
    /// say that they owe comes after all of the operator's work that gets on, whatever deadline or space they claim.
    pub(super) fn front(&self, now: Nanos, device: DeviceId) -> Option<BackgroundId> {
        let rank = self.ranking(now, self.is_short(now, device));
        self.ready(Whose::all(device)).min_by_key(|work| rank(work)).map(|work| work.queue.id)
    }

    /// By which queues of a disk go one after the other, the least first.
    pub(super) fn ranking(&self, now: Nanos, is_against_others: bool) -> impl Fn(&Work) -> Rank + use<> {
        let debts_come_last = self.settings.debts_come_last;
        let lost =
            move |work: &Work| if is_against_others { work.learnt.slow_down().max(SLOW_DOWN_LEAST) } else { 1.0 };
        move |work: &Work| {
            let due = work.due();
            let urgent_from = Nanos(due.0.saturating_sub(work.given().0 / URGENT_PART));
            let is_told = work.queue.hold == BackgroundHold::Told;
            let urgent = if urgent_from <= now { (u8::from(is_told), due.0) } else { (u8::MAX, 0) };
            // Whole bytes a second: a key must be in a total order.
            let density = (work.tied_bytes / work.left_seconds() / lost(work)) as u64;
            let cost = (lost(work) * COST_STEPS) as u64;
            let priority = (u8::MAX - work.queue.priority, is_told);
            let needs_gaps = is_against_others && !work.can_take();
            let behind = (work.is_silent(now) || work.is_hung(), debts_come_last && is_told, needs_gaps);
            (behind, urgent, priority, u64::MAX - density, cost, work.queue.id)
        }
    }

    /// The part of the disk's time that the plan takes from others now, for the queue that runs.
    pub(super) fn share(&self, now: Nanos, device: DeviceId, front: Option<BackgroundId>) -> u16 {
        let is_short = |in_force: &&InForce| self.is_short(now, device) && front.is_none_or(|id| in_force.counts(id));
        let Some(InForce { plan, served, .. }) = self.plans.get(&device).filter(is_short) else { return 0 };
        let front = front.and_then(|id| self.works.get(&id));
        if front.is_some_and(|work| work.is_hung() || !work.can_take()) {
            return 0;
        }
        let now_seconds = now.as_secs_f64();
        // Who is ahead of the plan need not take from others for it.
        let behind = plan.done_by(now_seconds + 1.0) - served;
        let planned = plan.slot(now_seconds).map_or(0.0, |slot| slot.background_cores);
        let slow_down = front.map_or(0.0, |work| work.learnt.slow_down());
        let share = behind.clamp(0.0, planned.ceil()) as u16;
        share.next_multiple_of(SHARE_STEP).min(share_max(slow_down))
    }

    /// The gaps alone would not do: soon, or so much less that what may be taken from others later would not make up for it.
    fn is_short(&self, now: Nanos, device: DeviceId) -> bool {
        let is_within = |at: Option<f64>, ahead: Nanos| at.is_some_and(|at| at <= (now + ahead).as_secs_f64());
        self.plans.get(&device).is_some_and(|in_force| {
            let plan = &in_force.plan;
            is_within(plan.short_seconds, STEAL_AHEAD) || is_within(plan.steal_from_seconds, REPLAN)
        })
    }

    /// Thousandths of a disk's time that its work may take against others, by what it costs them in the mean of all that is left. None where
    /// nothing would get on in it.
    pub(super) fn against_max(&self, whose: Whose<'_>) -> f64 {
        let (mut lost, mut left) = (0.0, 0.0);
        for work in self.ready(whose).filter(|work| work.can_take()) {
            let seconds = work.left_seconds();
            (lost, left) = (lost + seconds * work.learnt.slow_down(), left + seconds);
        }
        if left <= 0.0 && self.ready(whose).next().is_some() {
            return 0.0;
        }
        share_max(if left > 0.0 { lost / left } else { 0.0 }).into()
    }
}

fn why_share(share: u16, slow_down: Option<f64>) -> String {
    let why = format!("gaps alone would not do in time: {share} of 1,000 parts of the disk's time against others");
    match slow_down {
        Some(lost) => {
            format!("{why}, who lose {:.0} % of their requests by it, as measured", lost * f64::from(share) / 10.0)
        }
        None => why,
    }
}

/// The greatest share of work of which a second costs others so many of theirs.
fn share_max(slow_down: f64) -> u16 {
    let share = (f64::from(SHARE_MAX) / slow_down.max(1.0)) as u16;
    (share - share % SHARE_STEP).max(SHARE_STEP)
}
