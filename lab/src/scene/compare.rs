//! One scene under equal weights against the same scene under a controller.

use super::RunResult;
use serde::Serialize;

/// How one tenant fared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TenantChange {
    /// Who.
    pub name: String,
    /// Completion under the controller against equal weights, in percent; negative is sooner.
    pub completion_change_percent: f64,
}

/// What a controller changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The scene.
    pub scene: String,
    /// Who steered.
    pub steering: String,
    /// For each tenant.
    pub tenants: Vec<TenantChange>,
    /// Whole disk over the makespan, in percent of what it was with equal weights.
    pub disk_percent: f64,
    /// Whole disk in the phase of contention, likewise.
    pub contended_percent: f64,
}

impl Comparison {
    /// Compares two runs of one scene.
    pub fn new(equal: &RunResult, steered: &RunResult) -> Self {
        let contended = |run: &RunResult| run.phase("contention").map_or(0.0, |phase| phase.mb_per_s);
        let tenants = equal.tenants.iter().zip(&steered.tenants).map(|(before, after)| TenantChange {
            name: before.name.clone(),
            completion_change_percent: percent(after.completion_s, before.completion_s) - 100.0,
        });
        Self {
            scene: equal.scene.clone(),
            steering: steered.steering.clone(),
            tenants: tenants.collect(),
            disk_percent: percent(steered.disk_mb_per_s, equal.disk_mb_per_s),
            contended_percent: percent(contended(steered), contended(equal)),
        }
    }

    /// The comparisons that `runs` allow: every run that is not `equal` against the equal one of its scene.
    pub fn all(runs: &[RunResult]) -> Vec<Self> {
        let equal_of =
            |run: &RunResult| runs.iter().find(|other| other.scene == run.scene && other.steering == "equal");
        let steered = runs.iter().filter(|run| run.steering != "equal");
        steered.filter_map(|run| equal_of(run).map(|equal| Self::new(equal, run))).collect()
    }
}

/// A change in whole percent with its sign, and without one where there is none.
pub fn signed_percent(change: f64) -> String {
    match change.round() {
        0.0 => "0 %".to_owned(),
        whole => format!("{whole:+.0} %"),
    }
}

fn percent(value: f64, of: f64) -> f64 {
    if of > 0.0 { value / of * 100.0 } else { 0.0 }
}
