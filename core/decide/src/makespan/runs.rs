//! What earlier runs of jobs moved, by name.

use super::bursts::BurstsOfRuns;
use minerva_model::JobPhase;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Of the newest run in what is known of a name.
const RUN_WEIGHT: f64 = 0.3;
/// Names whose runs are remembered.
pub(super) const NAMES_MAX: usize = 1024;
/// Whoever has more of them pushes out its own.
const OWNER_NAMES_MAX: usize = NAMES_MAX / 10;

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
    /// Whose that run was; none where it is from before the last restart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
}

impl Runs {
    /// A run of a name, of this owner's, has moved so much, in these phases, if they are known.
    pub(super) fn learn(&mut self, name: &str, owner: Option<&str>, bytes: f64, phases: &[JobPhase]) {
        let seen = self.0.values().map(|runs| runs.seen).max().map_or(0, |latest| latest.saturating_add(1));
        if self.0.len() >= NAMES_MAX && !self.0.contains_key(name) {
            self.forget_one();
        }
        let first = OfName { mean_bytes: bytes, spread_bytes: bytes / 2.0, ..OfName::default() };
        let runs = self.0.entry(name.to_owned()).or_insert(first);
        runs.count = runs.count.saturating_add(1);
        runs.seen = seen;
        runs.owner = owner.map(str::to_owned);
        let error = bytes - runs.mean_bytes;
        runs.mean_bytes += RUN_WEIGHT * error;
        runs.spread_bytes += RUN_WEIGHT * (error.abs() - runs.spread_bytes);
        runs.bursts.learn(phases);
    }

    /// Forgets the name that has not run for the longest time: of whoever has most, where that is much, else of all.
    fn forget_one(&mut self) {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        self.0
            .values()
            .filter_map(|runs| runs.owner.as_deref())
            .for_each(|owner| *counts.entry(owner).or_default() += 1);
        let most = counts.into_iter().max_by_key(|(_, count)| *count).filter(|(_, count)| *count > OWNER_NAMES_MAX);
        let most = most.map(|(owner, _)| owner);
        let may_go = |runs: &OfName| most.is_none_or(|most| runs.owner.as_deref() == Some(most));
        let oldest = self.0.iter().filter(|(_, runs)| may_go(runs)).min_by_key(|(_, runs)| runs.seen);
        let oldest = oldest.map(|(name, _)| name.clone());
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
    use super::{NAMES_MAX, OWNER_NAMES_MAX, Runs};

    #[test]
    fn who_runs_now_and_then_is_known_whatever_many_other_names_run_in_between() {
        let mut runs = Runs::default();
        runs.learn("a", None, 7.0, &[]);
        runs.learn("b", None, 7.0, &[]);
        for number in 0..2_000 {
            runs.learn(&format!("z{number}"), None, 1.0, &[]);
            if number % 500 == 0 {
                runs.learn("a", None, 7.0, &[]);
            }
        }
        assert_eq!(runs.bytes("a").map(|(bytes, _)| bytes), Some(7.0));
        assert_eq!((runs.bytes("b"), runs.bytes("z0"), runs.iter().count()), (None, None, NAMES_MAX));
        assert!(runs.bytes("z1999").is_some());
    }

    #[test]
    fn who_calls_each_run_another_name_pushes_out_its_own_also_of_names_from_before_a_restart() {
        let mut runs = Runs::default();
        let names =
            |runs: &Runs, owner: Option<&str>| runs.iter().filter(|(_, of)| of.owner.as_deref() == owner).count();
        (0..600).for_each(|number| runs.learn(&format!("recalled {number}"), None, 7.0, &[]));
        runs.learn("nightly", Some("backup"), 7.0, &[]);
        (0..3_000).for_each(|number| runs.learn(&format!("z{number}"), Some("noisy"), 1.0, &[]));
        assert_eq!((names(&runs, None), names(&runs, Some("noisy"))), (600, NAMES_MAX - 601));
        assert!(runs.bytes("nightly").is_some() && runs.bytes("z2999").is_some());
        // Many with a name or two: of those the oldest goes, and not one's that has two.
        let mut runs = Runs::default();
        (0..2).for_each(|number| runs.learn(&format!("nightly {number}"), Some("backup"), 7.0, &[]));
        let of_each = |number: usize| (format!("z{number}"), format!("owner {}", number / 2));
        for (name, owner) in (0..2 * NAMES_MAX).map(of_each) {
            runs.learn(&name, Some(&owner), 1.0, &[]);
            runs.learn("nightly 1", Some("backup"), 7.0, &[]);
        }
        assert_eq!((names(&runs, Some("backup")), runs.iter().count()), (1, NAMES_MAX));
        assert!(runs.bytes("nightly 1").is_some() && OWNER_NAMES_MAX > 2);
    }
}
