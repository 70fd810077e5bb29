//! One history on one disk: its averages, its group, and what the store has of it.

use serde::{Deserialize, Serialize};

/// A stored average is stored again when it is off by more than this part.
const STORE_AGAIN_AT: f64 = 0.05;

/// Two averages in the units of the epochs. Comparable with each other, not a rate until `Fennel::rates` made it one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Averages {
    pub(crate) recent: f64,
    pub(crate) long_term: f64,
}

/// One history on one disk.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Usage {
    pub(crate) averages: Averages,
    /// Nothing until the first use.
    pub(crate) group: Option<u8>,
    /// The group that the verdicts ask for, and how many did in a row.
    pub(crate) wanted: u8,
    pub(crate) verdicts: u8,
    /// All who have this history step back; it counts per percent of this. Set anew in each slice.
    pub(crate) level_percent: Option<u32>,
    stored: Option<Stored>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Stored {
    averages: Averages,
    group: u8,
}

impl Averages {
    /// The greater of each.
    pub(crate) fn or_heavier(self, other: Self) -> Self {
        Self { recent: self.recent.max(other.recent), long_term: self.long_term.max(other.long_term) }
    }

    fn times(self, factors: Self) -> Self {
        Self { recent: self.recent * factors.recent, long_term: self.long_term * factors.long_term }
    }
}

impl Usage {
    /// A past that was remembered.
    pub(crate) fn restored(averages: Averages, group: u8) -> Self {
        let stored = Some(Stored { averages, group });
        Self { averages, group: Some(group), stored, ..Self::default() }
    }

    /// The averages as they count in comparisons.
    pub(crate) fn counted(&self) -> Averages {
        match self.level_percent {
            None => self.averages,
            Some(percent) => {
                let factor = 100.0 / f64::from(percent);
                self.averages.times(Averages { recent: factor, long_term: factor })
            }
        }
    }

    /// Adds a rate, weighed by the gain of the time it lasted.
    pub(crate) fn add(&mut self, bytes_per_second: f64, gain: Averages) {
        self.averages.recent += bytes_per_second * gain.recent;
        self.averages.long_term += bytes_per_second * gain.long_term;
    }

    /// Converts to new epochs.
    pub(crate) fn convert(&mut self, factors: Averages) {
        self.averages = self.averages.times(factors);
        if let Some(stored) = &mut self.stored {
            stored.averages = stored.averages.times(factors);
        }
    }

    /// Whether the store should learn of this history: it was never told, or what it has is off by what would matter after
    /// a restart. An idle history ages in the store as it does here, so it is not.
    pub(crate) fn store_due(&self) -> bool {
        let Some(group) = self.group else { return false };
        let Some(stored) = &self.stored else { return true };
        let differs = |value: f64, stored: f64| (value - stored).abs() > STORE_AGAIN_AT * stored;
        group != stored.group
            || differs(self.averages.recent, stored.averages.recent)
            || differs(self.averages.long_term, stored.averages.long_term)
    }

    /// Whether the store has not exactly this.
    pub(crate) fn store_differs(&self) -> bool {
        let stored = self.stored.map(|stored| (stored.averages, Some(stored.group)));
        self.group.is_some() && stored != Some((self.averages, self.group))
    }

    /// The store was told.
    pub(crate) fn stored(&mut self) {
        if let Some(group) = self.group {
            self.stored = Some(Stored { averages: self.averages, group });
        }
    }

    /// Whether the store was ever told.
    pub(crate) fn was_stored(&self) -> bool {
        self.stored.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::{Averages, Usage};

    #[test]
    fn an_idle_history_is_stored_once() {
        let mut one = Usage { averages: Averages { recent: 3.0, long_term: 0.1 }, ..Usage::default() };
        assert!(!one.store_due(), "no group, no history");
        one.group = Some(4);
        assert!(one.store_due() && !one.was_stored());
        one.stored();
        assert!(!one.store_due() && !one.store_differs());
        one.averages.recent *= 1.04;
        assert!(!one.store_due() && one.store_differs());
        one.averages.recent *= 1.02;
        assert!(one.store_due());
    }
}
