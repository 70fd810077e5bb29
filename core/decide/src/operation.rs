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
/// An operation that moved nothing for so many slices is over: its tenant crashed, or never heard the call.
const SILENT_SLICES_MAX: u32 = 10;
/// An operation is done when it moved what it declared and a quarter more, for what is read beside it.
const DONE_AT_PERCENT: u128 = 125;

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
    /// The end of the last slice in which its tenant moved anything, or when it began.
    #[serde(default)]
    pub(crate) last_bytes_at: Nanos,
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
    /// It has taken so long that it has had its precedence, which is no shorter than `least`.
    pub(crate) fn is_overdue(&self, now: Nanos, slice: Nanos, least: Nanos) -> bool {
        let slices = Nanos(slice.0.saturating_mul(TURN_SLICES_LEAST));
        now.since(self.begun_at) > self.long().max(slices).max(least)
    }

    /// A slice ended.
    pub(crate) fn note_silence(&mut self, now: Nanos, is_silent: bool) {
        if is_silent {
            self.silent_slices += 1;
        } else {
            (self.silent_slices, self.last_bytes_at) = (0, now);
        }
    }

    /// Its tenant has moved nothing for long, and for no less than `least`.
    pub(crate) fn is_silent(&self, now: Nanos, least: Nanos) -> bool {
        self.silent_slices >= SILENT_SLICES_MAX && now.since(self.last_bytes_at) >= least
    }

    /// Bytes until it is done.
    pub(crate) fn lacks(&self, operation: &Operation) -> u64 {
        let done = u128::from(operation.bytes) * DONE_AT_PERCENT / 100 + 1;
        u64::try_from(done).unwrap_or(u64::MAX).saturating_sub(self.moved_bytes)
    }

    /// It has taken so long that nobody will hear of its end.
    pub(crate) fn is_over(&self, now: Nanos) -> bool {
        now.since(self.begun_at) > self.long().max(OVERRUN_LEAST)
    }

    fn long(&self) -> Nanos {
        Nanos(self.done_at.since(self.begun_at).0.saturating_mul(OVERRUN_TIMES))
    }
}
