//! What a tenant's own requests say of its share on one disk.

use minerva_model::{Factor, Level, Policy, Reason};

/// See the file's documentation. The default is a tenant that asked for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Stance {
    /// It steps back, to this part of its share in percent.
    pub(crate) level: Option<(Level, u32)>,
    /// Percent of the neutral share that was bought, and slices left.
    pub(crate) boost: Option<(u32, u32)>,
    pub(crate) operation: Option<OperationStance>,
}

/// A coordinated operation under way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct OperationStance {
    pub(crate) bytes: u64,
    /// Raised to this while others use the disk.
    pub(crate) percent: u32,
    pub(crate) history_factor: f64,
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

    /// Something that people should be told of when it changes, though the share may be the same.
    pub(crate) fn mark(&self) -> u8 {
        let level = self.level.map_or(0, |(level, _)| level as u8);
        level | (u8::from(self.boost.is_some()) << 2) | (u8::from(self.operation.is_some()) << 3)
    }

    /// The factors after that of history, `history`.
    pub(crate) fn factors(&self, history: f64) -> impl Iterator<Item = Factor> {
        let credits = self.boost.map(|(percent, slices_left)| Factor {
            policy: Policy::Credits,
            value: f64::from(percent) / 100.0 / history,
            reason: Reason::Boosted { percent, slices_left, request: None },
        });
        let operation = self.operation.filter(|_| self.boost.is_none()).map(|operation| Factor {
            policy: Policy::Coordination,
            value: operation.history_factor / history * f64::from(operation.percent) / 100.0,
            reason: Reason::Coordinated { bytes: operation.bytes, percent: operation.percent, request: None },
        });
        let level = self.level.filter(|_| self.boost.is_none()).map(|(level, percent)| Factor {
            policy: Policy::Levels,
            value: f64::from(percent) / 100.0,
            reason: Reason::SteppedBack { level, percent, request: None },
        });
        [credits, operation, level].into_iter().flatten()
    }
}
