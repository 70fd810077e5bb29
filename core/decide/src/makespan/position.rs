//! A job on one disk, and what stands decided for it there.

use crate::shortest_first::Remaining;
use minerva_model::Nanos;
use serde::{Deserialize, Serialize};

/// A job on one disk.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Running {
    pub(super) attained_bytes: u64,
    pub(super) bytes_per_second_max: f64,
    pub(super) since: Nanos,
    pub(super) last_used: Nanos,
}

/// What stands decided for a job.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct QueuePosition {
    pub(super) place: usize,
    pub(super) jobs: usize,
    pub(super) remaining: Remaining,
    /// No tenant but jobs used the disk.
    pub(super) alone: bool,
    /// How many go before the others: the first, and who comes next where those before leave of the slice.
    #[serde(default = "one")]
    pub(super) ahead: usize,
    #[serde(default)]
    pub(super) rests: bool,
}

const fn one() -> usize {
    1
}

impl QueuePosition {
    pub(super) const fn is_ahead(&self) -> bool {
        self.place < self.ahead
    }
}
