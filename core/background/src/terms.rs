//! What a kind of background work costs, what it ties, and by when it is due.

use serde::{Deserialize, Serialize};
use std::fmt;

/// No item takes longer than this many core-seconds, some 30 years: beyond is no estimate.
const CORE_SECONDS_MAX: f64 = 1e9;
/// Deadline of work for which none was given: so that none is put off for ever.
const SLA_SECONDS_DEFAULT: f64 = 30.0 * 86_400.0;

/// A queue of debt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct QueueId(pub u32);

/// What the items of a queue have in common.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// The greater goes first.
    pub priority: u8,
    /// Time of one core for one item; above 0.
    pub core_seconds_per_item: f64,
    /// Blocks that an item ties until it is done; 0 for work that frees nothing, such as a scrub.
    pub blocks_per_item: f64,
    /// An item is to be done within this time of when it can be; 30 days if not given. 0 or less: it is late already.
    pub sla_seconds: Option<f64>,
    /// How more of it comes.
    pub growth: Growth,
}

/// From what a forecast derives the debt that will be added.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Growth {
    /// Items for each block written.
    pub items_per_written_block: f64,
    /// Items for each block overwritten.
    pub items_per_overwritten_block: f64,
    /// Items in any case.
    pub items_per_second: f64,
    /// Items can be worked on from the next multiple of this time on, as blocks of an hourly snapshot once it expires; else at
    /// once. Blocks are tied all the while.
    pub release_period_seconds: Option<f64>,
}

impl Growth {
    /// Items of a second with these writes.
    pub fn items_per_second(&self, written_blocks: f64, unique_share: f64) -> f64 {
        crate::quantity(
            self.items_per_second
                + written_blocks * self.items_per_written_block
                + written_blocks * (1.0 - unique_share) * self.items_per_overwritten_block,
        )
    }

    /// When items added at `now_seconds` can be worked on.
    pub fn release_seconds(&self, now_seconds: f64) -> f64 {
        match self.release_period_seconds {
            Some(period) if period > 0.0 && period.is_finite() => ((now_seconds / period).floor() + 1.0) * period,
            _ => now_seconds,
        }
    }
}

/// Why terms were not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The service time is 0 or negative.
    ServiceNotPositive,
    /// The service time is endless or no number.
    ServiceEndless,
    /// The space is negative, endless or no number.
    SpaceImpossible,
    /// Growth is negative, endless or no number.
    GrowthImpossible,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ServiceNotPositive => "the service time of an item must be above 0 core-seconds",
            Self::ServiceEndless => {
                "the service time of an item must be at most 1e9 core-seconds; measure one and declare that"
            }
            Self::SpaceImpossible => "the space that an item ties must be a number of blocks, 0 or more",
            Self::GrowthImpossible => "what is added must be a number of items, 0 or more",
        })
    }
}

impl Terms {
    /// Why these terms cannot be kept; `None` if they can.
    pub fn refusal(&self) -> Option<Refusal> {
        let Growth { items_per_written_block, items_per_overwritten_block, items_per_second, .. } = self.growth;
        let growth = [items_per_written_block, items_per_overwritten_block, items_per_second];
        let is_quantity = |value: f64| value.is_finite() && value >= 0.0;
        if self.core_seconds_per_item <= 0.0 {
            Some(Refusal::ServiceNotPositive)
        } else if self.core_seconds_per_item.is_nan() || self.core_seconds_per_item > CORE_SECONDS_MAX {
            Some(Refusal::ServiceEndless)
        } else if !is_quantity(self.blocks_per_item) {
            Some(Refusal::SpaceImpossible)
        } else if !growth.into_iter().all(is_quantity) {
            Some(Refusal::GrowthImpossible)
        } else {
            None
        }
    }

    /// Blocks freed by a core-second (the paper's priority of a queue).
    pub fn blocks_per_core_second(&self) -> f64 {
        self.blocks_per_item / self.core_seconds_per_item
    }

    /// The deadline of an item from when it can be worked on.
    pub(crate) fn sla(&self) -> f64 {
        self.sla_seconds.filter(|seconds| seconds.is_finite()).map_or(SLA_SECONDS_DEFAULT, |seconds| seconds.max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_that_nobody_can_keep_are_refused_with_a_sentence() {
        let good = Terms {
            priority: 1,
            core_seconds_per_item: 0.05,
            blocks_per_item: 1.0,
            sla_seconds: None,
            growth: Growth::default(),
        };
        assert_eq!(good.refusal(), None);
        let service = |core_seconds_per_item| Terms { core_seconds_per_item, ..good }.refusal();
        assert_eq!(service(0.0), Some(Refusal::ServiceNotPositive));
        assert_eq!(service(-1.0), Some(Refusal::ServiceNotPositive));
        assert_eq!(service(f64::INFINITY), Some(Refusal::ServiceEndless));
        assert_eq!(service(f64::NAN), Some(Refusal::ServiceEndless));
        assert_eq!(Terms { blocks_per_item: -1.0, ..good }.refusal(), Some(Refusal::SpaceImpossible));
        let growth = Growth { items_per_second: f64::NAN, ..Growth::default() };
        assert_eq!(Terms { growth, ..good }.refusal(), Some(Refusal::GrowthImpossible));
        assert!(Refusal::ServiceEndless.to_string().contains("measure one"));
    }

    #[test]
    fn a_deadline_in_the_past_is_now_and_a_missing_one_a_month() {
        let terms = |sla_seconds| Terms {
            priority: 0,
            core_seconds_per_item: 1.0,
            blocks_per_item: 0.0,
            sla_seconds,
            growth: Growth::default(),
        };
        assert_eq!(terms(Some(-5.0)).sla(), 0.0);
        assert_eq!(terms(Some(f64::INFINITY)).sla(), SLA_SECONDS_DEFAULT);
        assert_eq!(terms(None).sla(), 30.0 * 86_400.0);
    }

    #[test]
    fn what_is_released_hourly_waits_for_the_hour() {
        let hourly = Growth { release_period_seconds: Some(3600.0), ..Growth::default() };
        assert_eq!([0.0, 3599.0, 3600.0].map(|now| hourly.release_seconds(now)), [3600.0, 3600.0, 7200.0]);
        assert_eq!(Growth::default().release_seconds(5.0), 5.0);
    }
}
