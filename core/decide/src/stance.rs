//! What a tenant's own requests say of its share on one disk.

use minerva_model::Level;
use serde::{Deserialize, Serialize};

/// See the file's documentation. The default is a tenant that asked for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Stance {
    /// It steps back, to this part of its share in percent.
    pub(crate) level: Option<(Level, u32)>,
    /// Percent of the neutral share that was bought, and slices left.
    pub(crate) boost: Option<(u32, u32)>,
    pub(crate) operation: Option<OperationStance>,
}

/// A coordinated operation under way.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct OperationStance {
    pub(crate) bytes: u64,
    /// Raised to this while others use the disk.
    pub(crate) percent: u32,
    pub(crate) history_factor: f64,
    /// Somebody who says nothing would pay for it: neither is it raised, nor does it keep the place it began with.
    #[serde(default)]
    pub(crate) is_held_back: bool,
}

impl Stance {
    /// Only when nobody else uses the disk: the least share, and no floor.
    pub(crate) fn is_idle(&self) -> bool {
        self.boost.is_none() && matches!(self.level, Some((Level::Idle, _)))
    }

    /// The part of its share that the tenant keeps, in percent, when it steps back.
    pub(crate) fn level_percent(&self) -> Option<u32> {
        self.level.filter(|_| self.boost.is_none()).map(|(_, percent)| percent.max(1))
    }
}
