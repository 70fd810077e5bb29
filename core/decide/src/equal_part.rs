//! Who holds the disk for longer than an equal part of its time (docs/adr/0015).
//!
//! Bytes do not tell it: who reads 4 KiB here and there moves next to nothing and leaves a disk with arms no time for anybody else.
//! By its bytes alone it would be sparing for ever. So where disk time is counted it sinks among the groups with its time: from the
//! first at an equal part to the last at [`HEAVIEST_AT`] times that. Who has less than an equal part is judged by its bytes, which
//! spares who reads little at random, and nobody is held below an equal part for the disk being slow.
//!
//! The average starts at zero as those of bytes do. A newcomer that takes the whole disk beside two others reaches an equal part
//! after half a minute: one that is done by then was never held back.
//!
//! An equal part is one in so many as use the disk at all, each by the operator's weight. Whoever uses less than
//! [`USES_PART`] counts only as far as it does, so that many that are hardly there do not make everyone's part small.

use crate::usage::{Averages, Usage};
use serde::{Deserialize, Serialize};

/// Who uses this part of the disk's time counts as one. It is what the default floor guarantees.
const USES_PART: f64 = 0.01;
/// Equal parts at which a tenant is in the last group.
const HEAVIEST_AT: f64 = 1.5;

/// All who are remembered on one disk.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Everyone {
    /// In the units of the epochs.
    pub(crate) heaviest: Averages,
    /// The operator's weights of those who use it.
    weights: f64,
}

impl Everyone {
    /// Looks at all histories; `held_scale` converts their disk time to parts of it, and is 0 where it does not count.
    pub(crate) fn of(usages: &[Usage], held_scale: f64) -> Self {
        usages.iter().fold(Self::default(), |all, usage| Self {
            heaviest: all.heaviest.or_heavier(usage.counted()),
            weights: all.weights + usage.weight * (usage.held * usage.weight * held_scale / USES_PART).min(1.0),
        })
    }

    /// The part of the disk's time per operator's weight that is each one's; nothing if nobody uses it.
    pub(crate) fn equal_part(&self) -> Option<f64> {
        // Who is there alone and hardly there has no less than the disk.
        (self.weights > 0.0).then(|| 1.0 / self.weights.max(1.0))
    }
}

/// The place among `groups` of who holds `held` where an equal part is `equal`; negative below that.
pub(crate) fn place(groups: u8, held: f64, equal: f64) -> f64 {
    f64::from(groups) * (held / equal - 1.0) / (HEAVIEST_AT - 1.0)
}
