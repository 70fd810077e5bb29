//! Who decides how many cores pay debt in the next second.

use crate::outlook::Outlook;
use crate::server::Server;
use minerva_background::{
    Debts, Expected, FixedBucket, Measured, Plan, PlanInput, PlannedSlot, Planner, PlannerSettings, Spread,
};
use minerva_forecast::seasonal::{BIN_SECONDS, BINS_PER_WEEK};

/// What used and tied blocks may take of the pool, as published.
const LIMIT_SHARE: f64 = 0.95;
/// Mean wait that ours sizes the foreground for: a quarter of what a request takes.
const WAIT_SECONDS: f64 = 0.005;
const REPLAN_SECONDS: f64 = 3600.0;

/// A policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// No background work: what bursts alone do.
    Floor,
    /// The published fixed bucket.
    Fixed,
    /// The published dynamic bucket.
    Published,
    /// Ours.
    Ours,
}

impl Policy {
    /// The word for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Floor => "no background work",
            Self::Fixed => "fixed bucket",
            Self::Published => "dynamic bucket, as published",
            Self::Ours => "Minerva",
        }
    }
}

/// What a policy sees.
pub(crate) struct View<'a> {
    pub(crate) now_seconds: f64,
    pub(crate) debts: &'a Debts,
    pub(crate) used_blocks: f64,
    pub(crate) outlook: &'a Outlook<'a>,
    /// Seconds of the bin under way that are over.
    pub(crate) gone_seconds: f64,
}

/// A policy at work.
pub(crate) struct Deciding {
    policy: Policy,
    server: Server,
    planner: Planner,
    expected: Vec<Expected>,
    last_ops: f64,
    pub(crate) plans: u32,
    /// Instants of the first alarm of each plan that had one, and when it was raised.
    pub(crate) alarms: Vec<(f64, f64)>,
}

impl Deciding {
    pub(crate) fn new(policy: Policy, server: Server) -> Self {
        let settings = PlannerSettings::default();
        let planner = Planner::new(server.machine, settings);
        Self { policy, server, planner, expected: Vec::new(), last_ops: 0.0, plans: 0, alarms: Vec::new() }
    }

    /// Cores for the background in the second that begins.
    pub(crate) fn cores(&mut self, view: &View<'_>) -> f64 {
        let cores = f64::from(self.server.machine.cores);
        let capacity = self.server.capacity_blocks;
        match self.policy {
            Policy::Floor => 0.0,
            Policy::Fixed => FixedBucket::PUBLISHED.cores(cores, view.debts.tied_blocks(), capacity).round(),
            Policy::Published => {
                self.plan_if_due(view, Spread::Even, None);
                if view.used_blocks + view.debts.tied_blocks() > LIMIT_SHARE * capacity {
                    return cores;
                }
                let slot = self.planner.plan().and_then(|plan| plan.slot(view.now_seconds));
                slot.map_or(0.0, |slot| self.published(slot))
            }
            Policy::Ours => {
                self.plan_if_due(view, Spread::Headroom, Some(WAIT_SECONDS));
                f64::from(self.planner.split(view.now_seconds, view.debts).background_cores)
            }
        }
    }

    /// Takes what a second brought.
    pub(crate) fn observe(&mut self, now_seconds: f64, measured: Measured) {
        self.last_ops = measured.foreground_ops;
        let at = (now_seconds / BIN_SECONDS as f64).floor();
        let first = self.planner.plan().and_then(|plan| plan.slots.first());
        let index = first.map(|slot| (at - (slot.start_seconds / BIN_SECONDS as f64).floor()) as usize);
        let expected = index.and_then(|index| self.expected.get(index)).map(|slot| slot.written_blocks_per_second);
        // Without a forecast nothing can differ from it.
        self.planner.observe(measured, expected.unwrap_or(measured.written_blocks));
    }

    /// Foreground cores by the greater of the current and the forecast rate, less the capacity forecast factor; the plan's cores
    /// for the background, as far as those are left.
    fn published(&self, slot: &PlannedSlot) -> f64 {
        let cores = f64::from(self.server.machine.cores);
        let current = (self.last_ops / self.server.machine.foreground_ops_per_core_second).ceil();
        let foreground = (current.max(slot.foreground_cores) - slot.stolen_cores).clamp(0.0, cores);
        slot.background_cores.ceil().min((cores - foreground).floor())
    }

    fn plan_if_due(&mut self, view: &View<'_>, spread: Spread, wait_seconds: Option<f64>) {
        let is_due = match self.policy {
            // Each hour, as published.
            Policy::Published => view.now_seconds % REPLAN_SECONDS == 0.0,
            _ => self.planner.due(view.now_seconds, view.debts).is_some(),
        };
        if !is_due {
            return;
        }
        self.expected = view.outlook.expected(view.gone_seconds, BINS_PER_WEEK);
        if self.expected.is_empty() {
            return;
        }
        let plan = Plan::new(&PlanInput {
            now_seconds: view.now_seconds,
            machine: self.server.machine,
            debts: view.debts,
            expected: &self.expected,
            used_blocks: view.used_blocks,
            limit_share: LIMIT_SHARE,
            spread,
            against_cores_max: f64::INFINITY,
            wait_seconds,
        });
        self.plans += 1;
        self.alarms.extend(plan.alarms.first().map(|alarm| (view.now_seconds, alarm.at_seconds)));
        self.planner.adopt(view.now_seconds, plan, view.debts);
    }
}
