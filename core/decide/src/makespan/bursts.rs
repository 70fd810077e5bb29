//! What jobs of a name transfer between two stretches of computing, by the phases of earlier runs: the first of a run is expected to be as
//! the first of those before, and so on. It counts until a tenant's own bursts are known (docs/adr/0043).

use minerva_model::{Burst, JobPhase, JobPhaseKind};
use serde::{Deserialize, Serialize};

/// Of a run so many bursts are remembered, and after as many of its own a tenant's are known without earlier runs.
const BURSTS_MAX: usize = 8;
/// Bursts that were expected before anything is told.
const SCORED_MIN: u32 = 4;
/// Of the newest run in what is known of a name.
const RUN_WEIGHT: f64 = 0.3;
/// Of the newest error, at least.
const ERROR_WEIGHT: f64 = 1.0 / 8.0;
/// As of a tenant's own bursts, an error of this part of a burst leaves nothing certain.
const ERROR_MAX: f64 = 0.35;
/// Of its certainty, before a run has done once as those before it: what it may cost others if it does something else.
const UNTRIED: f64 = 0.5;
/// A slice in which less is moved than this, in bytes a second, or than this part of the fastest slice, is one of computing.
const ACTIVE_BYTES_PER_SECOND: f64 = 65_536.0;
pub(super) const ACTIVE_PART: f64 = 0.05;

/// Bursts of the runs of one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct BurstsOfRuns {
    /// By their number in the run.
    bytes: Vec<f64>,
    /// Mean error of what was expected, as a part of the greater of both.
    error: f64,
    scored: u32,
}

impl BurstsOfRuns {
    /// A run has ended.
    pub(super) fn learn(&mut self, phases: &[JobPhase]) {
        for (number, came) in bursts(phases).into_iter().take(BURSTS_MAX).enumerate() {
            let Some(expected) = self.bytes.get_mut(number) else {
                self.bytes.push(came);
                continue;
            };
            self.scored = self.scored.saturating_add(1);
            let weight = ERROR_WEIGHT.max(1.0 / f64::from(self.scored));
            self.error += weight * (error(came, *expected) - self.error);
            *expected += RUN_WEIGHT * (came - *expected);
        }
    }

    fn certainty(&self) -> f64 {
        if self.scored < SCORED_MIN { 0.0 } else { (1.0 - self.error / ERROR_MAX).clamp(0.0, 1.0) }
    }
}

/// Bursts of a run: what it moves between two phases of computing. One that never computes has none: how it goes on nobody can tell.
fn bursts(phases: &[JobPhase]) -> Vec<f64> {
    if phases.iter().all(|phase| phase.kind != JobPhaseKind::Compute) {
        return Vec::new();
    }
    let moved = |phase: &JobPhase| (phase.read_bytes_per_second + phase.write_bytes_per_second) * phase.seconds;
    let all = phases.split(|phase| phase.kind == JobPhaseKind::Compute).map(|burst| burst.iter().map(moved).sum());
    all.filter(|bytes: &f64| bytes.is_finite() && *bytes > 0.0).collect()
}

fn error(came: f64, expected: f64) -> f64 {
    (came - expected).abs() / came.max(expected).max(f64::MIN_POSITIVE)
}

/// Where a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Course {
    /// Bursts that are over.
    over: usize,
    under_way: f64,
    bytes_per_second_max: f64,
    /// The worst error of those that are over.
    error_max: f64,
}

impl Course {
    /// A slice of so many seconds, and what was moved in it.
    pub(super) fn slice(&mut self, seconds: f64, bytes: f64, known: Option<&BurstsOfRuns>) {
        if seconds <= 0.0 {
            return;
        }
        self.bytes_per_second_max = self.bytes_per_second_max.max(bytes / seconds);
        let active = ACTIVE_BYTES_PER_SECOND.max(ACTIVE_PART * self.bytes_per_second_max);
        if bytes >= active * seconds {
            self.under_way += bytes;
            return;
        }
        let came = std::mem::take(&mut self.under_way);
        if came > 0.0 {
            let expected = known.and_then(|known| known.bytes.get(self.over));
            self.error_max = expected.map_or(self.error_max, |expected| self.error_max.max(error(came, *expected)));
            self.over = self.over.saturating_add(1);
        }
    }

    /// The burst under way, or the next, by earlier runs. A run that differed from them is not told by them any more.
    pub(super) fn expected(&self, known: &BurstsOfRuns) -> Option<Burst> {
        let bytes = *known.bytes.get(self.over)?;
        // One that outgrows what was expected differs already.
        let outgrown = if self.under_way > bytes { error(self.under_way, bytes) } else { 0.0 };
        let so_far = (1.0 - self.error_max.max(outgrown) / ERROR_MAX).clamp(0.0, 1.0);
        let certainty = known.certainty().min(so_far) * if self.over == 0 { UNTRIED } else { 1.0 };
        (certainty > 0.0).then_some(Burst { bytes, certainty, by_runs: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use minerva_model::JobPhaseKind::{Compute, Read, Write};

    const MB: f64 = 1e6;

    fn phases(megabytes: &[f64]) -> Vec<JobPhase> {
        let of = |kind, rate| JobPhase {
            kind,
            seconds: 4.0,
            read_bytes_per_second: rate / 4.0,
            write_bytes_per_second: 0.0,
        };
        megabytes.iter().flat_map(|bytes| [of(Read, bytes * MB), of(Compute, 0.0)]).collect()
    }

    fn known<const COUNT: usize>(runs: &[[f64; COUNT]]) -> BurstsOfRuns {
        let mut known = BurstsOfRuns::default();
        runs.iter().for_each(|run| known.learn(&phases(run)));
        known
    }

    #[test]
    fn the_next_burst_is_as_that_of_earlier_runs_and_certain_as_far_as_these_were_alike() {
        let twice = known(&[[400.0, 100.0, 400.0]; 2]);
        assert_eq!(Course::default().expected(&twice), None, "three were expected so far");
        let alike = known(&[[400.0, 100.0, 400.0]; 3]);
        let mut course = Course::default();
        let next = |course: &Course| course.expected(&alike).map(|burst| (burst.bytes / MB, burst.certainty));
        assert_eq!(next(&course), Some((400.0, 0.5)), "nothing of this run was seen yet");
        (0..4).for_each(|_| course.slice(1.0, 100.0 * MB, Some(&alike)));
        assert_eq!(next(&course), Some((400.0, 0.5)), "under way");
        course.slice(1.0, 0.1 * MB, Some(&alike));
        assert_eq!(next(&course), Some((100.0, 1.0)));
        let differ = known(&[[400.0, 100.0], [100.0, 400.0], [900.0, 20.0], [50.0, 700.0]]);
        assert_eq!(Course::default().expected(&differ), None);
        assert_eq!(known(&[[400.0; 20]; 9]).bytes.len(), BURSTS_MAX);
    }

    #[test]
    fn a_run_that_differs_is_told_by_earlier_ones_no_more() {
        let alike = known(&[[400.0; 5]; 3]);
        let run = |megabytes: &[f64]| {
            let mut course = Course::default();
            megabytes.iter().for_each(|bytes| course.slice(1.0, bytes * MB, Some(&alike)));
            course.expected(&alike).map(|burst| burst.certainty)
        };
        assert_eq!(run(&[900.0]), None, "it goes on and on");
        assert_eq!(run(&[100.0, 0.0]), None);
        assert_eq!(run(&[100.0, 0.0, 400.0, 0.0, 400.0]), None, "for the rest of the run");
        let somewhat = run(&[380.0, 0.0]).unwrap();
        assert!((0.8..0.9).contains(&somewhat), "{somewhat}");
        assert_eq!(run(&[400.0, 0.0].repeat(5)), None, "nothing is known of a sixth");
    }

    #[test]
    fn one_that_never_computes_has_no_bursts_and_numbers_that_are_none_do_no_harm() {
        let scan = JobPhase { kind: Write, ..phases(&[8.0])[0] };
        assert!(bursts(&[scan]).is_empty());
        assert!(bursts(&[]).is_empty());
        let odd = known(&[[f64::NAN, f64::INFINITY, -4.0, 0.0]]);
        assert_eq!(odd, BurstsOfRuns::default());
    }
}
