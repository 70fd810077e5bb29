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
}

impl Runs {
    /// A run of a name has moved so much, in these phases, if they are known.
    pub(super) fn learn(&mut self, name: &str, bytes: f64, phases: &[JobPhase]) {
        if self.0.len() >= NAMES_MAX && !self.0.contains_key(name) {
            self.0.pop_first();
        }
        let first = OfName { mean_bytes: bytes, spread_bytes: bytes / 2.0, ..OfName::default() };
        let runs = self.0.entry(name.to_owned()).or_insert(first);
        runs.count = runs.count.saturating_add(1);
        let error = bytes - runs.mean_bytes;
        runs.mean_bytes += RUN_WEIGHT * error;
        runs.spread_bytes += RUN_WEIGHT * (error.abs() - runs.spread_bytes);
        runs.bursts.learn(phases);
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
