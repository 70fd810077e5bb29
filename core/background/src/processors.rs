//! How many processors the processes of background work may use: what the others leave, measured slice by slice.
//!
//! Others keep as many as let a request for a processor wait no longer than [`WAIT_SECONDS`] (M/M/c, as the plan's cores), at what they use
//! and the margin that was needed lately. Where somebody else waits for a processor all the same, work has one less, whatever the formula
//! says. It narrows at once and widens by one in a slice, and never has none: a process that holds a lock must get on.

use crate::erlang::cores_for_wait;
use crate::margin::Margin;
use minerva_model::ProcessorUse;
use serde::{Deserialize, Serialize};

/// A process computes for so long at a time: a hundredth of a second, the order of the kernel's own slices.
const BURSTS_PER_SECOND: f64 = 100.0;
/// Mean wait of others for a processor.
const WAIT_SECONDS: f64 = 0.002;
/// Of the slices others may use more than is kept for them in this part.
const MISS_SHARE: f64 = 0.05;
/// Others wait for a processor where somebody does for more than this part of a slice.
const WAITED_PART: f64 = 0.05;
/// Slices in which nobody waited, after which work has another processor.
const CALM_SLICES: u32 = 5;

/// See the file's documentation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Processors {
    margin: Margin,
    /// 0 until something was measured.
    allowed: u32,
    others: Option<f64>,
    calm_slices: u32,
}

impl Default for Processors {
    fn default() -> Self {
        Self { margin: Margin::new(MISS_SHARE), allowed: 0, others: None, calm_slices: 0 }
    }
}

impl Processors {
    /// Takes what was seen in a slice; nothing where work cannot be confined to some of the processors.
    pub fn slice(&mut self, seen: Option<&ProcessorUse>) {
        let Some(seen) = seen.filter(|seen| seen.available > 0) else {
            *self = Self::default();
            return;
        };
        let seconds = seen.elapsed.as_secs_f64();
        if seconds <= 0.0 {
            // They may have become fewer all the same.
            self.allowed = self.allowed.min(seen.available);
            return;
        }
        let others = seen.others.as_secs_f64() / seconds;
        self.others = Some(others);
        self.margin.observe(others);
        let bound = self.margin.bound().unwrap_or(others);
        let kept = cores_for_wait(seen.available, bound * BURSTS_PER_SECOND, BURSTS_PER_SECOND, WAIT_SECONDS);
        let room = (seen.available - kept).max(1);
        let before = if self.allowed == 0 { room } else { self.allowed };
        let waited = seen.others_waited.as_secs_f64() > WAITED_PART * seconds;
        self.calm_slices = if waited { 0 } else { self.calm_slices.saturating_add(1) };
        self.allowed = if waited {
            room.min(before.saturating_sub(1)).max(1)
        } else if room > before && self.calm_slices >= CALM_SLICES {
            before + 1
        } else {
            room.min(before)
        };
    }

    /// So many processors; 0: as many as there are, because nothing was measured.
    pub const fn allowed(&self) -> u32 {
        self.allowed
    }

    /// Processors that others used in the last slice.
    pub const fn others(&self) -> Option<f64> {
        self.others
    }
}

#[cfg(test)]
mod tests {
    use super::Processors;
    use minerva_model::{Nanos, ProcessorUse};
    use proptest::prelude::*;

    fn seen(available: u32, others: f64, waited: f64) -> ProcessorUse {
        let nanos = |seconds: f64| Nanos((seconds * 1e9) as u64);
        ProcessorUse { available, elapsed: Nanos::SECOND, others: nanos(others), others_waited: nanos(waited) }
    }

    /// What is allowed after each of these slices (processors that others use, part in which they wait) on a host of 16.
    fn after(slices: impl IntoIterator<Item = (f64, f64)>) -> Vec<u32> {
        let mut processors = Processors::default();
        let slices = slices.into_iter();
        slices
            .map(|(others, waited)| {
                processors.slice(Some(&seen(16, others, waited)));
                processors.allowed()
            })
            .collect()
    }

    #[test]
    fn work_narrows_at_once_where_others_use_more_and_widens_one_by_one() {
        let quiet = after([(0.5, 0.0); 100]);
        assert!((13..16).contains(&quiet[99]), "{quiet:?}");
        let rises = after([(0.5, 0.0); 20].into_iter().chain([(12.0, 0.0); 20]).chain([(0.5, 0.0); 100]));
        assert!(rises[20] <= 2, "in the slice in which they come back: {rises:?}");
        assert!(rises[40..].windows(2).all(|pair| pair[1] <= pair[0] + 1), "{rises:?}");
        assert_eq!(rises[139], quiet[99], "{rises:?}");
    }

    #[test]
    fn who_waits_for_a_processor_gets_one_though_the_others_use_few() {
        let waits = after([(0.5, 0.0); 20].into_iter().chain([(0.5, 0.3); 30]).chain([(0.5, 0.0); 100]));
        assert!(waits[20..50].windows(2).all(|pair| pair[1] < pair[0] || pair[1] == 1), "{waits:?}");
        assert_eq!((waits[49], waits[52]), (1, 1), "as long as they wait, and a while more: {waits:?}");
        assert!(waits[149] >= 13, "{waits:?}");
    }

    #[test]
    fn where_nothing_can_be_confined_or_nothing_was_seen_all_are_allowed() {
        let mut processors = Processors::default();
        assert_eq!(processors.allowed(), 0);
        processors.slice(Some(&seen(2, 0.1, 0.0)));
        assert_eq!(processors.allowed(), 1, "of two others keep one");
        processors.slice(None);
        assert_eq!((processors.allowed(), processors.others()), (0, None));
    }

    proptest! {
        #[test]
        fn never_none_and_never_more_than_there_are(slices in prop::collection::vec((0u32..300, 0u64..u64::MAX, any::<u64>(), any::<u64>()), 1..40)) {
            let mut processors = Processors::default();
            for (available, elapsed, others, waited) in slices {
                let seen = ProcessorUse { available, elapsed: Nanos(elapsed), others: Nanos(others), others_waited: Nanos(waited) };
                let was_measured = processors.allowed() > 0 || elapsed > 0;
                processors.slice(Some(&seen));
                prop_assert!(processors.allowed() <= available);
                prop_assert!(available == 0 || !was_measured || processors.allowed() > 0);
            }
        }
    }
}
