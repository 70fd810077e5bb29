//! The plan: how many cores work in the background in each slot, what they pay and when, and what cannot be kept.
//!
//! As Kachmar and Kaeli (2020) describe it: replay the forecast; where space does not hold, add work before; repeat. Work is added
//! for all queues together ([`crate::spread`]), then replayed queue by queue in the order in which it will be paid, and where that
//! frees less than was thought, more is asked for. So a plan without an alarm never overfills the pool when the forecast is right.

use crate::debt::Debts;
use crate::erlang::cores_for_wait;
use crate::ledger::{Expected, Ledger};
use crate::nouns::{Alarm, Machine, Payment, Plan, PlanInput, PlannedSlot, Shortage};
use crate::quantity;
use crate::spread::{Curves, TOLERANCE, most, spread};

/// Times that a plan is corrected by what its replay lacked; then, as many times again, everything is paid before what does not hold,
/// and at last everything from there on.
const CORRECTIONS: usize = 8;
/// More than was missing is asked for, so that corrections come to an end.
const CORRECTION_FACTOR: f64 = 1.1;
/// Of sums of work.
const ROUNDING_SHARE: f64 = 1e-12;
/// Work is done by the end of a slot, and what comes in it too: an instant before.
const BEFORE_END_SHARE: f64 = 1e-6;

impl Plan {
    /// Makes a plan for the slots of the forecast; an empty one without a forecast.
    pub fn new(input: &PlanInput<'_>) -> Self {
        let expected: Vec<Expected> = input.expected.iter().map(Expected::sane).collect();
        let input = PlanInput { expected: &expected, limit_share: quantity(input.limit_share).min(1.0), ..*input };
        Draft::new(input).finish()
    }
}

/// A plan being made.
struct Draft<'a> {
    input: PlanInput<'a>,
    ledger: Ledger,
    foreground: Vec<f64>,
    free: Vec<f64>,
    seconds: Vec<f64>,
    /// Cores that may work in each slot.
    limit: Vec<f64>,
    most: Vec<f64>,
    /// Core-seconds that must be done by each slot's end.
    required: Vec<f64>,
    alarms: Vec<Alarm>,
}

/// What a replay found.
struct Replayed {
    slots: Vec<PlannedSlot>,
    payments: Vec<Payment>,
    broken: Vec<Broken>,
}

/// What does not hold at the end of a slot.
struct Broken {
    at: usize,
    shortage: Shortage,
    /// Core-seconds done by then.
    done: f64,
    /// Blocks freed by them.
    freed: f64,
}

impl<'a> Draft<'a> {
    fn new(input: PlanInput<'a>) -> Self {
        let PlanInput { now_seconds, debts, expected, used_blocks, limit_share, .. } = input;
        let ledger = Ledger::new(now_seconds, debts, expected, used_blocks, limit_share);
        let foreground: Vec<f64> = expected.iter().map(|slot| foreground_cores(&input, slot)).collect();
        let cores = f64::from(input.machine.cores);
        let free: Vec<f64> = foreground.iter().map(|wanted| cores - wanted).collect();
        let against = quantity(input.against_cores_max);
        let limit: Vec<f64> = free.iter().map(|free| free.max(against).min(cores)).collect();
        let seconds: Vec<f64> = expected.iter().map(|slot| slot.seconds).collect();
        let most = most(&limit, &seconds, &ledger.ready);
        // Where nothing frees space no work helps.
        let work = |blocks: f64| if ledger.density > 0.0 { blocks.max(0.0) / ledger.density } else { 0.0 };
        let required = ledger.excess.iter().zip(&ledger.due).map(|(excess, due)| work(*excess).max(*due)).collect();
        Self { input, ledger, foreground, free, seconds, limit, most, required, alarms: Vec::new() }
    }

    fn finish(mut self) -> Plan {
        let mut correction = 0;
        loop {
            let replayed = self.replay(&self.cores());
            // Not short of `any`, which would stop at the first.
            let corrected =
                replayed.broken.iter().filter(|broken| self.correct(broken, correction >= CORRECTIONS)).count();
            if corrected == 0 || correction > 2 * CORRECTIONS {
                replayed.broken.iter().for_each(|broken| self.alarm(broken));
                self.alarms.sort_by(|a, b| a.at_seconds.total_cmp(&b.at_seconds));
                let (short_seconds, steal_from_seconds) = self.short();
                let Replayed { slots, payments, .. } = replayed;
                return Plan { slots, payments, alarms: self.alarms, short_seconds, steal_from_seconds };
            }
            correction += 1;
            if correction > 2 * CORRECTIONS {
                let from = replayed.broken.first().map_or(0, |broken| broken.at);
                self.required[from..].copy_from_slice(&self.most[from..]);
            }
        }
    }

    /// Cores of each slot that meet what is required as far as that is possible.
    fn cores(&self) -> Vec<f64> {
        let mut least = 0.0;
        let required: Vec<f64> = self
            .required
            .iter()
            .zip(&self.most)
            .map(|(required, most)| {
                least = f64::max(least, required.min(*most));
                least
            })
            .collect();
        let curves = Curves {
            cores: f64::from(self.input.machine.cores),
            limit: &self.limit,
            free: &self.free,
            seconds: &self.seconds,
            ready: &self.ledger.ready,
            required: &required,
        };
        spread(self.input.spread, curves)
    }

    /// The end of the first slot whose requirement the cores that are free do not meet; and the beginning of the last slot in which as many
    /// as may work can still make up for all that.
    fn short(&self) -> (Option<f64>, Option<f64>) {
        let mut done = 0.0;
        let slots = self.free.iter().zip(&self.seconds).zip(&self.ledger.ready).zip(&self.required);
        let missing: Vec<f64> = slots
            .map(|(((free, seconds), ready), required)| {
                done = f64::min(done + free.max(0.0) * seconds, *ready);
                if done + TOLERANCE < *required { required - done } else { 0.0 }
            })
            .collect();
        let short = missing.iter().zip(&self.ledger.ends).find(|(missing, _)| **missing > 0.0).map(|(_, end)| *end);
        // Backwards: what must be stolen by the end of each slot, when everything is stolen as late as it can be.
        let (mut stolen, mut from) = (0.0, None);
        for at in (0..missing.len()).rev() {
            stolen = f64::max(stolen, missing[at]);
            if stolen > 0.0 {
                from = Some(self.ledger.ends[at] - self.seconds[at]);
            }
            let most = (self.limit[at] - self.free[at].max(0.0)) * self.seconds[at];
            stolen = (stolen - most).max(0.0);
        }
        (short, from)
    }

    /// Asks for more work before what does not hold, or for all there is; whether more can be done.
    fn correct(&mut self, broken: &Broken, everything: bool) -> bool {
        let most = self.most[broken.at];
        if broken.done + 2.0 * TOLERANCE + ROUNDING_SHARE * most >= most {
            return false;
        }
        let more = match broken.shortage {
            Shortage::Space { blocks } if broken.freed > 0.0 && !everything => {
                CORRECTION_FACTOR * blocks * broken.done / broken.freed
            }
            // What is ahead of a late queue is not known here: everything.
            Shortage::Space { .. } | Shortage::Deadline { .. } => f64::INFINITY,
        };
        self.required[broken.at] = (broken.done + more).min(most);
        true
    }

    fn alarm(&mut self, broken: &Broken) {
        let is_known = |alarm: &Alarm| match (alarm.shortage, broken.shortage) {
            (Shortage::Space { .. }, Shortage::Space { .. }) => true,
            (Shortage::Deadline { id: known }, Shortage::Deadline { id }) => known == id,
            _ => false,
        };
        if !self.alarms.iter().any(is_known) {
            self.alarms.push(Alarm { at_seconds: self.ledger.ends[broken.at], shortage: broken.shortage });
        }
    }

    /// Plays the forecast forward with these cores, queue by queue.
    fn replay(&self, cores: &[f64]) -> Replayed {
        let mut debts = self.input.debts.clone();
        // Of each queue how much it will have done in all when what it owes now is done.
        let mut owed: Vec<(Payment, f64)> = debts
            .queues()
            .iter()
            .map(|queue| (Payment { id: queue.id, paid_seconds: None }, queue.paid() + queue.items()))
            .collect();
        let mut replayed =
            Replayed { slots: Vec::with_capacity(cores.len()), payments: Vec::new(), broken: Vec::new() };
        let (mut start, mut done, mut freed) = (self.input.now_seconds, 0.0, 0.0);
        for (at, slot) in self.input.expected.iter().enumerate() {
            grow(&mut debts, start, slot);
            let end = start + slot.seconds;
            let served = debts.serve(before_end(end, slot.seconds), cores[at] * slot.seconds);
            done += served.core_seconds;
            freed += served.blocks;
            date_payments(&debts, end, &mut owed);
            let tied = debts.tied_blocks();
            let planned = self.planned(at, start, (done - served.core_seconds, served.core_seconds), tied);
            let over = planned.used_blocks + tied - self.ledger.limit[at];
            if over > TOLERANCE * (1.0 + self.ledger.limit[at]) {
                replayed.broken.push(Broken { at, shortage: Shortage::Space { blocks: over }, done, freed });
            }
            for queue in debts.queues() {
                // Late is late once; the next cohort has its own slot.
                let is_late = |due: f64| due <= end && (due > start || at == 0);
                if queue.cohorts.front().is_some_and(|front| front.items > TOLERANCE && is_late(front.due_seconds)) {
                    replayed.broken.push(Broken { at, shortage: Shortage::Deadline { id: queue.id }, done, freed });
                }
            }
            replayed.slots.push(planned);
            start = end;
        }
        replayed.payments = owed.into_iter().map(|(payment, _)| payment).collect();
        replayed
    }

    /// A slot that did so many core-seconds, and so many before.
    fn planned(&self, at: usize, start_seconds: f64, (before, done): (f64, f64), debt_blocks: f64) -> PlannedSlot {
        let seconds = self.seconds[at];
        // Of slots too short for a number the quotient may be anything.
        let background_cores = if seconds > 0.0 { (done / seconds).min(self.input.machine.cores.into()) } else { 0.0 };
        PlannedSlot {
            start_seconds,
            seconds,
            foreground_cores: self.foreground[at],
            background_cores,
            done_core_seconds: before,
            stolen_cores: (background_cores - self.free[at].max(0.0)).max(0.0),
            used_blocks: self.ledger.used[at],
            debt_blocks,
            bucket_blocks: (self.ledger.limit[at] - self.ledger.used[at]).max(0.0),
        }
    }
}

/// Cores that the foreground wants in a slot.
fn foreground_cores(input: &PlanInput<'_>, slot: &Expected) -> f64 {
    let Machine { cores, foreground_ops_per_core_second: rate } = input.machine;
    let rate = quantity(rate);
    let load = slot.foreground_ops_per_second;
    let by_rate = if rate > 0.0 { (load / rate).ceil() } else { f64::from(cores) };
    match input.wait_seconds {
        Some(wait) if load > 0.0 => by_rate.max(cores_for_wait(cores, load, rate, wait).into()),
        _ => by_rate,
    }
}

/// When what comes in a slot of `seconds` that ends then, and what is done in it, is counted.
pub(crate) fn before_end(end_seconds: f64, seconds: f64) -> f64 {
    end_seconds - BEFORE_END_SHARE * seconds
}

/// Adds what a slot brings.
pub(crate) fn grow(debts: &mut Debts, start_seconds: f64, slot: &Expected) {
    for queue in debts.queues_mut() {
        let growth = queue.terms.growth;
        let items = growth.items_per_second(slot.written_blocks_per_second, slot.unique_share) * slot.seconds;
        queue.defer(start_seconds, items);
    }
}

/// Notes what is done by the end of a slot.
fn date_payments(debts: &Debts, end_seconds: f64, owed: &mut [(Payment, f64)]) {
    for (queue, (payment, whole)) in debts.queues().iter().zip(owed) {
        if payment.paid_seconds.is_none() && queue.paid() + TOLERANCE >= *whole {
            payment.paid_seconds = Some(end_seconds);
        }
    }
}
