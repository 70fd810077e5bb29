//! One coordinated operation, and how far it is.

use crate::compose::{Pair, SharePolicy};
use minerva_model::{DeviceId, Nanos, Operation, PolicyName, Reason};
use serde::{Deserialize, Serialize};

/// An operation that takes so many times as long as it should has had its precedence, and then is taken for over.
const OVERRUN_TIMES: u64 = 4;
/// But it has precedence for so many slices: what is short is badly estimated.
const TURN_SLICES_LEAST: u64 = 10;
/// And it is never taken for over before this.
const OVERRUN_LEAST: Nanos = Nanos::from_secs(60);

/// The precedence of an operation as a factor.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Rule;

impl SharePolicy for Rule {
    fn name(&self) -> PolicyName {
        PolicyName::COORDINATION
    }

    fn factor(&self, pair: &Pair<'_>, _: f64) -> Option<f64> {
        let operation = pair.stance.operation.filter(|_| pair.stance.boost.is_none())?;
        if operation.is_held_back {
            return Some(1.0);
        }
        Some(operation.history_factor / pair.history() * f64::from(operation.percent) / 100.0)
    }

    fn reason(&self, pair: &Pair<'_>, _: f64) -> Reason {
        let (bytes, percent) = pair.stance.operation.map_or((0, 100), |operation| {
            (operation.bytes, if operation.is_held_back { 100 } else { operation.percent })
        });
        Reason::Coordinated { bytes, percent, request: None }
    }

    fn mark(&self, pair: &Pair<'_>) -> u8 {
        pair.stance.operation.is_some().into()
    }
}

/// An operation that was asked for.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Asked {
    pub(crate) operation: Operation,
    pub(crate) asked_at: Nanos,
    pub(crate) stage: Stage,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Stage {
    /// `promised`: it was told that it can begin then.
    Waiting {
        promised: Option<Nanos>,
    },
    Running(Running),
}

/// Under way.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Running {
    pub(crate) begun_at: Nanos,
    /// Until when its precedence was charged.
    pub(crate) charged_at: Nanos,
    /// When it should be done.
    pub(crate) done_at: Nanos,
    pub(crate) moved_bytes: u64,
    pub(crate) silent_slices: u32,
    /// It has precedence. Once lost it does not come back, so that shares do not flap.
    #[serde(alias = "in_turn")]
    pub(crate) has_precedence: bool,
    /// The factor of its tenant's place among the groups when it began.
    pub(crate) history_factor: f64,
}

impl Asked {
    /// Its precedence, if it has it, on a disk.
    pub(crate) fn precedence_on(&self, device: DeviceId) -> Option<Running> {
        match self.stage {
            Stage::Running(running) if running.has_precedence && self.operation.device == device => Some(running),
            _ => None,
        }
    }

    /// It waits to begin on a disk.
    pub(crate) fn waits_for(&self, device: DeviceId) -> bool {
        matches!(self.stage, Stage::Waiting { .. }) && self.operation.device == device
    }
}

impl Running {
    /// It has taken so long that it has had its precedence.
    pub(crate) fn is_overdue(&self, now: Nanos, slice: Nanos) -> bool {
        now.since(self.begun_at) > self.long().max(Nanos(slice.0.saturating_mul(TURN_SLICES_LEAST)))
    }

    /// It has taken so long that nobody will hear of its end.
    pub(crate) fn is_over(&self, now: Nanos) -> bool {
        now.since(self.begun_at) > self.long().max(OVERRUN_LEAST)
    }

    fn long(&self) -> Nanos {
        Nanos(self.done_at.since(self.begun_at).0.saturating_mul(OVERRUN_TIMES))
    }
}
