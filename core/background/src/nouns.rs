//! What a plan is made from, and what it says.

use crate::debt::Debts;
use crate::ledger::Expected;
use crate::spread::Spread;
use crate::terms::QueueId;
use serde::{Deserialize, Serialize};

/// Less of a core is rounding.
const STOLEN_LEAST: f64 = 1e-6;

/// What the work is done by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Cores in all.
    pub cores: u32,
    /// Foreground requests that one core serves in a second, as calibrated.
    pub foreground_ops_per_core_second: f64,
}

/// What a plan is made from.
#[derive(Clone, Copy, Debug)]
pub struct PlanInput<'a> {
    /// When the first slot begins.
    pub now_seconds: f64,
    /// The machine.
    pub machine: Machine,
    /// What is owed, with what adds to it.
    pub debts: &'a Debts,
    /// The forecast, slot after slot.
    pub expected: &'a [Expected],
    /// Blocks in use, beside those that debt ties.
    pub used_blocks: f64,
    /// The part of the pool that used and tied blocks may take, such as 0.95.
    pub limit_share: f64,
    /// Where work goes first.
    pub spread: Spread,
    /// Cores that may work in a slot however many the foreground wants; more only where it leaves more. Endless: all of them.
    pub against_cores_max: f64,
    /// Mean wait that the foreground's cores are sized for (M/M/c); `None`: the load by the rate of a core, rounded up.
    pub wait_seconds: Option<f64>,
}

/// A slot of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlannedSlot {
    /// When it begins.
    pub start_seconds: f64,
    /// Its length.
    pub seconds: f64,
    /// Cores that the foreground is expected to want; may be more than there are.
    pub foreground_cores: f64,
    /// Cores that work in the background.
    pub background_cores: f64,
    /// Core-seconds that the plan has done when it begins.
    pub done_core_seconds: f64,
    /// Of these, taken from what the foreground wants: the paper's capacity forecast factor. Above 0 it is a violation.
    pub stolen_cores: f64,
    /// Blocks in use at its end, beside debt.
    pub used_blocks: f64,
    /// Blocks that debt ties at its end.
    pub debt_blocks: f64,
    /// Blocks that debt may tie: the bucket.
    pub bucket_blocks: f64,
}

/// When what is owed now is paid.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Payment {
    /// Whose debt.
    pub id: QueueId,
    /// The end of the slot that pays the last of it; `None`: not within the plan.
    pub paid_seconds: Option<f64>,
}

/// What a queue has and owes in a stretch of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueueStretch {
    /// When it begins.
    pub start_seconds: f64,
    /// Its length.
    pub seconds: f64,
    /// Cores that work on the queue, in the mean.
    pub cores: f64,
    /// Core-seconds that are owed at its end.
    pub core_seconds: f64,
    /// Blocks that the queue ties at its end.
    pub blocks: f64,
}

/// A queue in a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueOverTime {
    /// Which.
    pub id: QueueId,
    /// In order, without gaps.
    pub stretches: Vec<QueueStretch>,
}

/// What runs short.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Shortage {
    /// Space: so many blocks too few.
    Space {
        /// Above what used and tied blocks may be.
        blocks: f64,
    },
    /// Time: a queue's deadline is missed.
    Deadline {
        /// Whose.
        id: QueueId,
    },
}

/// The pool or the machine is oversubscribed: even if everything that may do so worked in the background from now on, something would
/// not hold. Add a disk or move load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alarm {
    /// From when on.
    pub at_seconds: f64,
    /// What runs short.
    pub shortage: Shortage,
}

/// A plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// In order.
    pub slots: Vec<PlannedSlot>,
    /// One for each queue that owes something.
    pub payments: Vec<Payment>,
    /// By date, the first of each kind.
    pub alarms: Vec<Alarm>,
    /// When space or a deadline would not hold if no core were stolen; `None`: it holds.
    pub short_seconds: Option<f64>,
    /// When cores must be stolen at the latest for that, as many as may be; `None`: never.
    #[serde(default)]
    pub steal_from_seconds: Option<f64>,
}

impl PlannedSlot {
    /// Cores of `cores` that the foreground leaves.
    pub(crate) fn left_cores(&self, cores: u32) -> f64 {
        (f64::from(cores) - self.foreground_cores).max(0.0)
    }

    /// Those that can work in the background: what the foreground leaves, and what is taken from it.
    pub(crate) fn usable_cores(&self, cores: u32) -> f64 {
        self.left_cores(cores).max(self.background_cores)
    }
}

impl Plan {
    /// Slots in which the foreground is short of cores for the background's sake.
    pub fn violations(&self) -> usize {
        self.slots.iter().filter(|slot| slot.stolen_cores > STOLEN_LEAST).count()
    }

    /// Core-seconds that the plan has done by `seconds`, from its start.
    pub fn done_by(&self, seconds: f64) -> f64 {
        let at = self.slots.partition_point(|slot| slot.start_seconds <= seconds);
        let slot = at.checked_sub(1).and_then(|at| self.slots.get(at));
        slot.map_or(0.0, |slot| {
            slot.done_core_seconds + slot.background_cores * (seconds - slot.start_seconds).min(slot.seconds)
        })
    }

    /// Blocks that the plan has in use at `seconds`, beside debt; `at_start` were when it was made.
    pub fn used_by(&self, seconds: f64, at_start: f64) -> f64 {
        let at = self.slots.partition_point(|slot| slot.start_seconds + slot.seconds <= seconds);
        let before = at.checked_sub(1).and_then(|at| self.slots.get(at)).map_or(at_start, |slot| slot.used_blocks);
        self.slots
            .get(at)
            .filter(|slot| slot.start_seconds <= seconds && slot.seconds > 0.0)
            .map_or(before, |slot| before + (slot.used_blocks - before) * (seconds - slot.start_seconds) / slot.seconds)
    }

    /// The slot that an instant lies in.
    pub fn slot(&self, seconds: f64) -> Option<&PlannedSlot> {
        let at = self.slots.partition_point(|slot| slot.start_seconds + slot.seconds <= seconds);
        self.slots.get(at).filter(|slot| slot.start_seconds <= seconds)
    }
}
