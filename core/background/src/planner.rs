//! Keeps a plan up to date, and splits the cores each second by what was measured, not by the plan alone.

use crate::debt::Debts;
use crate::margin::Margin;
use crate::nouns::{Machine, Plan};
use crate::quantity;

/// How a plan is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlannerSettings {
    /// A plan is made anew after this time in any case.
    pub replan_seconds: f64,
    /// And once what was written since differs by this part from what was expected.
    pub error_share: f64,
    /// Not more often than this.
    pub replan_seconds_min: f64,
    /// The part of seconds in which the foreground may find too few cores for the background's sake.
    pub miss_share: f64,
    /// Cores are stolen only for what would not hold within this time: what is further away may never come.
    pub steal_seconds: f64,
    /// From this part of the pool on, everything works in the background.
    pub emergency_share: f64,
}

impl Default for PlannerSettings {
    fn default() -> Self {
        Self {
            replan_seconds: 3600.0,
            error_share: 0.25,
            replan_seconds_min: 600.0,
            miss_share: 0.001,
            steal_seconds: 6.0 * 3600.0,
            emergency_share: 0.97,
        }
    }
}

/// What a second brought.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// Requests that came.
    pub foreground_ops: f64,
    /// Requests that wait at its end.
    pub waiting_ops: f64,
    /// Blocks written.
    pub written_blocks: f64,
    /// Work done in the background, in core-seconds.
    pub served_core_seconds: f64,
    /// Blocks in use, beside debt.
    pub used_blocks: f64,
    /// The pool's size.
    pub capacity_blocks: f64,
}

/// Why a plan is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replan {
    /// There is none.
    First,
    /// It is old.
    Time,
    /// What came is not what was expected.
    ForecastErred,
    /// A queue came, went or changed.
    QueuesChanged,
    /// The pool has another size.
    CapacityChanged,
}

/// Who has the cores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Split {
    /// For the foreground.
    pub foreground_cores: u32,
    /// For the background.
    pub background_cores: u32,
    /// Of these, more than the foreground is sure to leave.
    pub stolen_cores: u32,
}

/// The planner.
#[derive(Clone, Debug)]
pub struct Planner {
    machine: Machine,
    settings: PlannerSettings,
    margin: Margin,
    plan: Option<Plan>,
    made_seconds: f64,
    changes: u64,
    capacity_blocks: f64,
    /// Since the plan was made: blocks written, and blocks that were expected.
    written: (f64, f64),
    served_core_seconds: f64,
    last: Measured,
}

impl Planner {
    /// One without a plan: until it has one it pays from what the foreground leaves.
    pub fn new(machine: Machine, settings: PlannerSettings) -> Self {
        Self {
            machine,
            settings,
            margin: Margin::new(settings.miss_share),
            plan: None,
            made_seconds: 0.0,
            changes: 0,
            capacity_blocks: 0.0,
            written: (0.0, 0.0),
            served_core_seconds: 0.0,
            last: Measured::default(),
        }
    }

    /// Why a plan is to be made now; `None` while the one there is will do.
    pub fn due(&self, now_seconds: f64, debts: &Debts) -> Option<Replan> {
        let age = now_seconds - self.made_seconds;
        let (written, expected) = self.written;
        let error = (written - expected).abs();
        if self.plan.is_none() {
            Some(Replan::First)
        } else if debts.changes() != self.changes {
            Some(Replan::QueuesChanged)
        } else if self.last.capacity_blocks != self.capacity_blocks {
            Some(Replan::CapacityChanged)
        } else if age >= self.settings.replan_seconds || age < 0.0 {
            Some(Replan::Time)
        } else if age >= self.settings.replan_seconds_min && error > self.settings.error_share * expected {
            Some(Replan::ForecastErred)
        } else {
            None
        }
    }

    /// Takes a plan that was made now.
    pub fn adopt(&mut self, now_seconds: f64, plan: Plan, debts: &Debts) {
        self.plan = Some(plan);
        self.made_seconds = now_seconds;
        self.changes = debts.changes();
        self.capacity_blocks = self.last.capacity_blocks;
        self.written = (0.0, 0.0);
        self.served_core_seconds = 0.0;
    }

    /// The plan.
    pub fn plan(&self) -> Option<&Plan> {
        self.plan.as_ref()
    }

    /// Takes what the last second brought, and how many blocks the forecast had for it.
    pub fn observe(&mut self, measured: Measured, expected_written_blocks: f64) {
        self.margin.observe(measured.foreground_ops);
        self.written.0 += quantity(measured.written_blocks);
        self.written.1 += quantity(expected_written_blocks);
        self.served_core_seconds += quantity(measured.served_core_seconds);
        self.last = measured;
    }

    /// The cores of the second that begins at `now_seconds`.
    pub fn split(&self, now_seconds: f64, debts: &Debts) -> Split {
        let cores = f64::from(self.machine.cores);
        let ready = debts.ready_core_seconds(now_seconds);
        let rate = quantity(self.machine.foreground_ops_per_core_second).max(f64::MIN_POSITIVE);
        // Before the first reading nobody knows what the foreground wants.
        let bound = self.margin.bound().map_or(f64::INFINITY, |bound| bound + quantity(self.last.waiting_ops));
        let free = cores - (bound / rate).ceil().min(cores);
        let wanted = self.wanted(now_seconds, debts).max(free).min(ready.ceil()).clamp(0.0, cores).round();
        Split {
            foreground_cores: (cores - wanted) as u32,
            background_cores: wanted as u32,
            stolen_cores: (wanted - free).max(0.0) as u32,
        }
    }

    /// Cores that must work, whatever the foreground wants.
    fn wanted(&self, now_seconds: f64, debts: &Debts) -> f64 {
        let full = self.settings.emergency_share * quantity(self.last.capacity_blocks);
        if self.last.capacity_blocks > 0.0 && self.last.used_blocks + debts.tied_blocks() > full {
            return f64::from(self.machine.cores);
        }
        let short = self
            .plan
            .as_ref()
            .filter(|plan| plan.short_seconds.is_some_and(|short| short <= now_seconds + self.settings.steal_seconds));
        let Some(plan) = short else { return 0.0 };
        // Who is ahead of the plan need not steal for it.
        let behind = plan.done_by(now_seconds + 1.0) - self.served_core_seconds;
        let planned = plan.slot(now_seconds).map_or(0.0, |slot| slot.background_cores);
        behind.clamp(0.0, planned.ceil())
    }
}
