//! How trees grow, and what of a row they are told.

use crate::boosting::Loss;
use crate::tenant::{FEATURES, FEATURES_WITHOUT_DAY_AGO};
use serde::{Deserialize, Serialize};

/// See the file's documentation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Growth {
    /// By levels, four each, from rows that know nothing of the day before: as earlier versions.
    #[default]
    ByLevels,
    /// Leaf by leaf, where most is gained.
    ByLeaves {
        /// Leaves of the median's trees.
        median: u8,
        /// Leaves of the mean's trees.
        mean: u8,
        /// Trees of the mean; those of the median are [`super::LearnerSettings::trees`].
        mean_trees: usize,
    },
}

impl Growth {
    /// What was chosen on a part of the data that no figure is measured on (docs/adr/0042).
    pub const CHOSEN: Self = Self::ByLeaves { median: 16, mean: 31, mean_trees: 100 };

    /// Features of a row that are learnt from.
    pub(super) const fn features(self) -> usize {
        match self {
            Self::ByLevels => FEATURES_WITHOUT_DAY_AGO,
            Self::ByLeaves { .. } => FEATURES,
        }
    }

    /// Leaves of a tree; `None` by levels.
    pub(super) fn leaves(self, loss: Loss) -> Option<usize> {
        match self {
            Self::ByLevels => None,
            Self::ByLeaves { median, mean, .. } => {
                Some(usize::from(if loss == Loss::Absolute { median } else { mean }))
            }
        }
    }
}
