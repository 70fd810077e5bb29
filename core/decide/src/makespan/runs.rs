//! What earlier runs of jobs moved, by name.

use super::bursts::BurstsOfRuns;
use minerva_model::JobPhase;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Of the newest run in what is known of a name.
const RUN_WEIGHT: f64 = 0.3;
/// Names whose runs are remembered.
pub(super) const NAMES_MAX: usize = 1024;

/// The runs of all names.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Runs(BTreeMap<String, OfName>);

/// Runs of one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct OfName {
    pub(super) mean_bytes: f64,
    /// Mean distance from the mean.
    pub(super) spread_bytes: f64,
    #[serde(default)]
    pub(super) count: u32,
    #[serde(default)]
    bursts: BurstsOfRuns,
    /// The greater, the later its last run ended.
    #[serde(default)]
    seen: u64,
}

impl Runs {
    /// A run of a name has moved so much, in these phases, if they are known.
    pub(super) fn learn(&mut self, name: &str, bytes: f64, phases: &[JobPhase]) {
        let seen = self.0.values().map(|runs| runs.seen).max().map_or(0, |latest| latest.saturating_add(1));
        if self.0.len() >= NAMES_MAX && !self.0.contains_key(name) {
            self.forget_oldest();
        }
        let first = OfName { mean_bytes: bytes, spread_bytes: bytes / 2.0, ..OfName::default() };
        let runs = self.0.entry(name.to_owned()).or_insert(first);
        runs.count = runs.count.saturating_add(1);
        runs.seen = seen;
        let error = bytes - runs.mean_bytes;
        runs.mean_bytes += RUN_WEIGHT * error;
        runs.spread_bytes += RUN_WEIGHT * (error.abs() - runs.spread_bytes);
        runs.bursts.learn(phases);
    }

    /// Forgets the name that has not run for the longest time.
    fn forget_oldest(&mut self) {
        let oldest = self.0.iter().min_by_key(|(_, runs)| runs.seen).map(|(name, _)| name.clone());
        if let Some(name) = oldest {
            self.0.remove(&name);
        }
    }

    /// Bursts of the runs of a name.
    pub(super) fn bursts(&self, name: &str) -> Option<&BurstsOfRuns> {
        self.0.get(name).map(|runs| &runs.bursts)
    }

    /// What the next run of a name will move, and how certain that is, 0 to 1.
    pub(super) fn bytes(&self, name: &str) -> Option<(f64, f64)> {
        let runs = self.0.get(name)?;
        Some((runs.mean_bytes, (1.0 - runs.spread_bytes / runs.mean_bytes).clamp(0.0, 1.0)))
    }

    /// Name by name.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&String, &OfName)> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::{NAMES_MAX, Runs};

    #[test]
    fn who_runs_now_and_then_is_known_whatever_many_other_names_run_in_between() {
        let mut runs = Runs::default();
        runs.learn("a", 7.0, &[]);
        runs.learn("b", 7.0, &[]);
        for number in 0..2_000 {
            runs.learn(&format!("z{number}"), 1.0, &[]);
            if number % 500 == 0 {
                runs.learn("a", 7.0, &[]);
            }
        }
        assert_eq!(runs.bytes("a").map(|(bytes, _)| bytes), Some(7.0));
        assert_eq!((runs.bytes("b"), runs.bytes("z0"), runs.iter().count()), (None, None, NAMES_MAX));
        assert!(runs.bytes("z1999").is_some());
    }
}
