//! What of the original is mended, each by name, so that the effect of each can be measured.

use crate::Cost;
use minerva_model::Nanos;

/// How HTBS tells that a flow reads or writes sequentially.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequentialTest {
    /// As the original: until its first jump, then never again.
    Sticky,
    /// At most this many jumps among the flow's last 32 requests.
    Window {
        /// Jumps allowed.
        jumps_max: u32,
    },
}

/// In which order one flow's requests leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithinFlow {
    /// As the original: as they came.
    Arrival,
    /// The next one onwards from where the flow last was, among this many of the oldest, unless the oldest is due.
    Sweep {
        /// How many of the oldest are looked at.
        window: usize,
    },
}

/// All options. [`HtbsOptions::original`] is the published scheduler, [`HtbsOptions::default`] ours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HtbsOptions {
    /// B_max: cost units that one flow may have served in a row.
    pub turn_units_max: u64,
    /// T_wait: how long the disk is kept idle for the flow in service.
    pub wait_max: Nanos,
    /// What a request costs; the original counts requests.
    pub cost: Cost,
    /// When a flow counts as sequential.
    pub sequential: SequentialTest,
    /// Idle only for flows whose last request somebody waits for. The slides say so, the original does not look.
    pub wait_for_sync_only: bool,
    /// A start tag never lies in the past. In the original an exhausted flow can start at an old tag.
    pub start_not_past: bool,
    /// The debt that a flow can run up, in seconds of its rate; infinite in the original.
    pub debt_seconds_max: f64,
    /// Time by which tags are moved back refills the buckets too, so that using spare capacity leaves no debt.
    pub credit_drift: bool,
    /// The wait ends when another flow has a request this close to the last one, in bytes; 0 never.
    pub close_bytes: u64,
    /// Order inside a flow.
    pub within_flow: WithinFlow,
    /// The flow in service loses its turn when another one's deadline would pass during the wait.
    pub yield_to_due: bool,
}

impl HtbsOptions {
    /// The published scheduler (author's module, state of 2011-08-31).
    pub const fn original() -> Self {
        Self {
            turn_units_max: 20,
            wait_max: Nanos::from_millis(10),
            cost: Cost::PerRequest,
            sequential: SequentialTest::Sticky,
            wait_for_sync_only: false,
            start_not_past: false,
            debt_seconds_max: f64::INFINITY,
            credit_drift: false,
            close_bytes: 0,
            within_flow: WithinFlow::Arrival,
            yield_to_due: false,
        }
    }
}

impl Default for HtbsOptions {
    fn default() -> Self {
        Self {
            turn_units_max: 20,
            wait_max: Nanos::from_millis(10),
            cost: Cost::PerRequest,
            sequential: SequentialTest::Window { jumps_max: 4 },
            wait_for_sync_only: true,
            start_not_past: true,
            debt_seconds_max: 1.0,
            credit_drift: true,
            close_bytes: 0,
            within_flow: WithinFlow::Arrival,
            yield_to_due: true,
        }
    }
}
