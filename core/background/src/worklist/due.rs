//! When a plan is made anew.

use super::{InForce, REPLAN, Whose, Worklist};
use crate::ahead::PARTS;
use crate::planner::PlannerSettings;
use crate::work::Work;
use minerva_model::{DeviceId, Nanos};

/// A plan is not made anew more often than this because estimates moved.
const REPLAN_MIN: Nanos = Nanos::from_secs(60);
/// A plan that erred is made anew after this part of the time to the nearest deadline: one that is made before anything is known of the others
/// must not stand until the deadline is past.
const DEADLINE_PART: u64 = 20;
/// And not more often than this, however near it is.
const ERRED_MIN: Nanos = Nanos::from_secs(10);
/// Less of the disk's time is no error, however little was expected.
const LEFT_PART_LEAST: f64 = 0.02;
/// Less of a file system is none either.
const GROWN_PART_LEAST: f64 = 0.002;

impl InForce {
    /// Of a slice of `seconds` the foreground left so many cores.
    pub(super) fn left_by_foreground(&mut self, now: Nanos, cores: f64, seconds: f64) {
        // A slice that ends as the plan begins belongs to its first slot.
        let Some(slot) = self.plan.slot(now.as_secs_f64()) else { return };
        let expected = (f64::from(PARTS) - slot.foreground_cores).max(0.0);
        self.left = (self.left.0 + cores * seconds, self.left.1 + expected * seconds);
    }

    /// What the foreground left, or what it added to what is in use, is not what was expected; `used_blocks` are in use now.
    fn has_erred(&self, now: Nanos, used_blocks: f64) -> bool {
        let error_share = PlannerSettings::default().error_share;
        let differs = |measured: f64, expected: f64, least: f64| {
            (measured - expected).abs() > (error_share * expected).max(least)
        };
        let seconds = now.since(self.made).as_secs_f64();
        let (left, expected) = self.left;
        if differs(left, expected, LEFT_PART_LEAST * f64::from(PARTS) * seconds) {
            return true;
        }
        let Some(slot) = self.plan.slot(now.as_secs_f64()) else { return false };
        let limit = slot.used_blocks + slot.bucket_blocks;
        let expected = (self.plan.used_by(now.as_secs_f64(), self.used_blocks) - self.used_blocks).max(0.0);
        differs(used_blocks - self.used_blocks, expected, GROWN_PART_LEAST * limit)
    }
}

impl Worklist {
    pub(super) fn is_plan_due(&self, now: Nanos, device: DeviceId) -> bool {
        self.plans.get(&device).is_none_or(|in_force| {
            let age = now.since(in_force.made);
            let erred_after = self.erred_after(now, device, in_force);
            let used_blocks = || self.used_blocks(Whose::only(device, in_force.counted.as_ref()));
            let has_erred = || self.settings.replan_on_error && in_force.has_erred(now, used_blocks());
            let is_stale = || in_force.is_stale || in_force.counted != self.counted(now, device);
            age >= REPLAN || (age >= REPLAN_MIN.min(erred_after) && is_stale()) || (age >= erred_after && has_erred())
        })
    }

    /// How long a plan that erred stands. What is past needs none in time, and what a plan is not made for does not move it. In recordings
    /// of before alarms outlasted a plan both count.
    fn erred_after(&self, now: Nanos, device: DeviceId, in_force: &InForce) -> Nanos {
        let longest = Nanos((PlannerSettings::default().replan_seconds_min * 1e9) as u64);
        if !self.settings.replans_by_deadline {
            return longest;
        }
        let nearest = match self.settings.alarms_outlast_a_plan {
            true => {
                let counted = self.ready(Whose::only(device, in_force.counted.as_ref()));
                counted.map(Work::due).filter(|due| *due > now).min()
            }
            false => self.ready(Whose::all(device)).map(Work::due).min(),
        };
        nearest.map_or(longest, |due| Nanos(due.since(in_force.made).0 / DEADLINE_PART).clamp(ERRED_MIN, longest))
    }

    /// Blocks in use, beside what is tied, on the file system that a disk's plan is made for.
    pub(super) fn used_blocks(&self, whose: Whose<'_>) -> f64 {
        let file_system = self.shortest_of_space(whose);
        let tied = self.ready(whose).map(|work| work.tied_blocks(file_system)).sum();
        self.disks.get(&whose.device).map_or(0.0, |disk| disk.space(file_system).used_blocks(tied))
    }
}
