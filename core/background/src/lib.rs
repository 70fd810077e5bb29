//! Background work in the gaps: what is deferred, what it ties, and when it is paid (Kachmar and Kaeli 2020).
//!
//! | file | what |
//! |---|---|
//! | `terms` | what a kind of debt costs and ties, and which of them are refused |
//! | `debt` | queues of deferred work |
//! | `order` | which queue is paid first |
//! | `erlang` | how many cores a load needs (M/M/c) |
//! | `bucket` | the fixed bucket: cores by how full it is |
//! | `ledger` | a forecast as curves: work that can be paid, work that must be |
//! | `spread` | the least work in each slot that keeps to both curves |
//! | `nouns` | what a plan is made from, and what it says |
//! | `plan` | the plan: spread, replayed queue by queue, corrected until space holds, or an alarm |
//! | `by_queue` | what each queue has and owes over a plan |
//! | `margin` | how much more than expected the next second may bring |
//! | `planner` | keeps a plan, says when it is outdated, and splits the cores each second |
//! | `processors` | how many processors the processes of real work may use |
//! | `ahead` | a disk as a machine: what is expected of it in the next hour, day, week and month |
//! | `file_system` | how full a file system is, and by how much it grows |
//! | `slip` | how far the end of work moves away from plan to plan |
//! | `cost` | what work costs, learnt while it runs |
//! | `work`, `worklist` | real work: which queue of each disk may run, and how |
//! | `gap` | whether others have paused |
//!
//! Work is in core-seconds, space in blocks, time in seconds from an origin of the caller's. What lies ahead comes as
//! [`Expected`] slots of any length, so a horizon may be seconds or a month. Nothing here can fail: what is no number counts as nothing.
//! The choices that the paper leaves open are in docs/adr/0017.

mod ahead;
mod bucket;
mod by_queue;
mod cost;
mod debt;
mod erlang;
mod file_system;
mod gap;
mod ledger;
mod margin;
mod nouns;
mod order;
mod plan;
mod planner;
mod processors;
mod slip;
mod spread;
mod terms;
mod work;
mod worklist;

pub use ahead::{Forecast, Foreground, Foreseen, Span};
pub use bucket::FixedBucket;
pub use debt::{Debts, Owed, Served};
pub use erlang::{cores_for_wait, mean_wait_seconds, wait_probability};
pub use file_system::Written;
pub use gap::Gap;
pub use ledger::Expected;
pub use margin::Margin;
pub use nouns::{Alarm, Machine, Payment, Plan, PlanInput, PlannedSlot, QueueOverTime, QueueStretch, Shortage};
pub use planner::{Measured, Planner, PlannerSettings, Replan, Split};
pub use processors::Processors;
pub use spread::Spread;
pub use terms::{Growth, QueueId, Refusal, Terms};
pub use work::{HUNG, SLA_DEFAULT};
pub use worklist::{SpaceDate, WorkView, Worklist};

/// A quantity: what is below 0 or no number is 0, and nothing is endless.
fn quantity(value: f64) -> f64 {
    const LARGEST: f64 = 1e18;
    if value.is_nan() { 0.0 } else { value.clamp(0.0, LARGEST) }
}
