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

/// What a tenant used in a slice, per operator's weight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used {
    pub(crate) bytes_per_second: f64,
    /// Of the disk's time; 0 where it is not counted.
    pub(crate) disk_part: f64,
    pub(crate) weight: f64,
}

/// One history on one disk.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Usage {
    pub(crate) averages: Averages,
    /// The part of the disk's time that it took, over the recent horizon and in the units of its epoch.
    pub(crate) held: f64,
    /// The operator's weight, by which use counts.
    pub(crate) weight: f64,
    /// Nothing until the first use.
    pub(crate) group: Option<u8>,
    /// The group that the latest slices ask for, and how many did in a row.
    pub(crate) wanted: u8,
    #[serde(rename = "verdicts")]
    pub(crate) asking_slices: u8,
    /// All who have this history step back; it counts per percent of this. Set anew in each slice.
    pub(crate) level_percent: Option<u32>,
    stored: Option<Stored>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Stored {
    averages: Averages,
    held: f64,
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
    pub(crate) fn restored(averages: Averages, held: f64, weight: f64, group: u8) -> Self {
        let stored = Some(Stored { averages, held, group });
        Self { averages, held, weight, group: Some(group), stored, ..Self::default() }
    }

    /// The averages as they count in comparisons.
    pub(crate) fn counted(&self) -> Averages {
        let factor = self.per_level();
        self.averages.times(Averages { recent: factor, long_term: factor })
    }

    /// The disk's time as it counts in comparisons.
    pub(crate) fn counted_held(&self) -> f64 {
        self.held * self.per_level()
    }

    fn per_level(&self) -> f64 {
        100.0 / f64::from(self.level_percent.unwrap_or(100).max(1))
    }

    /// Adds what was used, weighed by the gain of the time it lasted.
    pub(crate) fn add(&mut self, used: Used, gain: Averages) {
        self.averages.recent += used.bytes_per_second * gain.recent;
        self.averages.long_term += used.bytes_per_second * gain.long_term;
        self.held += used.disk_part * gain.recent;
        self.weight = used.weight;
    }

    /// Converts to new epochs.
    pub(crate) fn convert(&mut self, factors: Averages) {
        self.averages = self.averages.times(factors);
        self.held *= factors.recent;
        if let Some(stored) = &mut self.stored {
            stored.averages = stored.averages.times(factors);
            stored.held *= factors.recent;
        }
    }

    /// Whether the store should learn of this history: it was never told, or what it has is off by what would matter after
    /// a restart. An idle history ages in the store as it does here, so it is not.
    pub(crate) fn needs_storing(&self) -> bool {
        let Some(group) = self.group else { return false };
        let Some(stored) = &self.stored else { return true };
        let differs = |value: f64, stored: f64| (value - stored).abs() > STORE_AGAIN_AT * stored;
        group != stored.group
            || differs(self.averages.recent, stored.averages.recent)
            || differs(self.averages.long_term, stored.averages.long_term)
            || differs(self.held, stored.held)
    }

    /// Whether the store has not exactly this.
    pub(crate) fn differs_from_stored(&self) -> bool {
        let stored = self.stored.map(|stored| (stored.averages, stored.held, Some(stored.group)));
        self.group.is_some() && stored != Some((self.averages, self.held, self.group))
    }

    /// The store was told.
    pub(crate) fn stored(&mut self) {
        if let Some(group) = self.group {
            self.stored = Some(Stored { averages: self.averages, held: self.held, group });
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
        assert!(!one.needs_storing(), "no group, no history");
        one.group = Some(4);
        assert!(one.needs_storing() && !one.was_stored());
        one.stored();
        assert!(!one.needs_storing() && !one.differs_from_stored());
        one.averages.recent *= 1.04;
        assert!(!one.needs_storing() && one.differs_from_stored());
        one.averages.recent *= 1.02;
        assert!(one.needs_storing());
    }
}
