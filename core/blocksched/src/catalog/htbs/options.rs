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
    /// The wait for a flow is judged by how long it thought before, not by T_wait: a flow that thinks longer than T_wait is
    /// not waited for, and one that thinks briefly costs nobody a deadline.
    pub wait_as_measured: bool,
    /// A turn may be as long as the contract earns in two delays, where that is more than B_max: a flow that is served once a
    /// delay would otherwise fall behind for ever.
    pub turn_covers_contract: bool,
    /// A bucket holds the burst and what two delays earn; in the original the burst and what a second earns, so that a flow
    /// that could not use its rate for a while then takes a second's worth from everybody.
    pub bucket_by_delay: bool,
    /// A flow that asks again at once is due when its rate says so, not a whole delay after it asked. A synchronous flow that
    /// seeks could otherwise have one request a delay, whatever its rate.
    pub due_by_rate: bool,
    /// Beyond its tokens and B_max a sequential flow keeps the disk while every other flow can still be served in time.
    /// None in the original: a turn ends with the tokens, whoever waits or not.
    pub spare: Option<Spare>,
    /// Flows without a contract have an equal part of spare time. In the original they are served when nobody with a contract
    /// asks, so that few greedy flows with small contracts leave them nothing.
    pub equal_parts: bool,
}

/// How spare time is given away.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spare {
    /// The longest turn on spare time while others wait.
    pub turn_time_max: Nanos,
    /// How long a seek to another flow is taken to last before one was measured.
    pub seek_assumed: Nanos,
}

impl Default for Spare {
    fn default() -> Self {
        Self { turn_time_max: Nanos::from_millis(150), seek_assumed: Nanos::from_millis(15) }
    }
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
            wait_as_measured: false,
            turn_covers_contract: false,
            bucket_by_delay: false,
            due_by_rate: false,
            spare: None,
            equal_parts: false,
        }
    }
}

impl Default for HtbsOptions {
    fn default() -> Self {
        Self {
            turn_units_max: 512,
            wait_max: Nanos::from_millis(10),
            cost: Cost::PerBytes(4096),
            sequential: SequentialTest::Window { jumps_max: 4 },
            wait_for_sync_only: true,
            start_not_past: true,
            debt_seconds_max: 1.0,
            credit_drift: true,
            close_bytes: 0,
            within_flow: WithinFlow::Arrival,
            yield_to_due: true,
            wait_as_measured: true,
            turn_covers_contract: true,
            bucket_by_delay: true,
            due_by_rate: true,
            spare: Some(Spare::default()),
            equal_parts: true,
        }
    }
}
