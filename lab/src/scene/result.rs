//! What came of a run. Times are seconds after the scene's start; rates are megabytes (10^6 bytes) a second.

use super::{Scene, TenantPlan};
use crate::workload::{Progress, WorkerResult, bytes_at};
use minerva_model::Nanos;
use serde::Serialize;

/// Width of a bin of the series.
pub(super) const BIN: Nanos = Nanos::from_millis(250);

/// One tenant's outcome.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TenantResult {
    /// Who.
    pub name: String,
    /// What it did.
    pub description: String,
    /// Bytes moved.
    pub bytes: u64,
    /// When it came.
    pub started_s: f64,
    /// From its own start to the end of its work.
    pub completion_s: f64,
    /// Over that time.
    pub mb_per_s: f64,
    /// Median time of a request, in milliseconds.
    pub latency_ms_p50: f64,
    /// The time that 99 % of the requests did not exceed, in milliseconds.
    pub latency_ms_p99: f64,
}

/// A part of the run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// `before`, `contention` or `after`.
    pub name: &'static str,
    /// Start.
    pub from_s: f64,
    /// End.
    pub until_s: f64,
    /// What the whole disk delivered.
    pub mb_per_s: f64,
    /// Jain's index over the rates of the tenants that worked in it, each over its own time in it; 1 is equal.
    pub jain: f64,
}

/// Rates over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// Width of a bin in seconds.
    pub bin_s: f64,
    /// For each tenant, in the order of the scene, the rate in each bin.
    pub mb_per_s: Vec<Vec<f64>>,
}

/// What came of one run of one scene.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunResult {
    /// The scene.
    pub scene: String,
    /// Who steered.
    pub steering: String,
    /// Factor on the bytes of the workloads.
    pub scale: f64,
    /// The tenants, in the order of the scene.
    pub tenants: Vec<TenantResult>,
    /// From the start of the scene to the end of the last tenant.
    pub makespan_s: f64,
    /// Whole disk: all bytes over the makespan.
    pub disk_mb_per_s: f64,
    /// The parts of the run, without empty ones.
    pub phases: Vec<Phase>,
    /// Rates over time.
    pub series: Series,
    /// For each tenant the weight that the kernel held for it, in the series' bins; none where it looks at no weights.
    pub weights: Option<Vec<Vec<f64>>>,
}

impl RunResult {
    /// Works out the numbers from what the workers reported; both slices are in the order of the scene.
    pub(crate) fn new(scene: &Scene, steering: &str, origin: Nanos, results: &[WorkerResult]) -> Self {
        let tenants: Vec<TenantResult> =
            scene.tenants.iter().zip(results).map(|(plan, result)| tenant_result(plan, result, origin)).collect();
        let end = results.iter().map(|result| result.finished.ended).max().unwrap_or(origin);
        let makespan_s = end.since(origin).as_secs_f64();
        let bytes: u64 = results.iter().map(|result| result.finished.bytes).sum();
        Self {
            scene: scene.name.clone(),
            steering: steering.to_owned(),
            scale: scene.scale,
            makespan_s,
            disk_mb_per_s: rate(bytes as f64, makespan_s),
            phases: phases(scene, origin, results),
            series: series(origin, end, results),
            weights: None,
            tenants,
        }
    }

    /// The phase of that name, if the run had it.
    pub fn phase(&self, name: &str) -> Option<&Phase> {
        self.phases.iter().find(|phase| phase.name == name)
    }
}

fn tenant_result(plan: &TenantPlan, result: &WorkerResult, origin: Nanos) -> TenantResult {
    let finished = &result.finished;
    let completion_s = finished.ended.since(finished.started).as_secs_f64();
    let milliseconds = |part| finished.latency.quantile(part).map_or(0.0, Nanos::as_millis_f64);
    TenantResult {
        name: plan.name.clone(),
        description: plan.description.clone(),
        bytes: finished.bytes,
        started_s: finished.started.since(origin).as_secs_f64(),
        completion_s,
        mb_per_s: rate(finished.bytes as f64, completion_s),
        latency_ms_p50: milliseconds(0.5),
        latency_ms_p99: milliseconds(0.99),
    }
}

fn rate(bytes: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes / seconds / 1e6 } else { 0.0 }
}

/// Jain's fairness index: the square of the sum over n times the sum of squares. 1 when all are equal, 1/n when one has
/// everything, and 1 for nobody.
pub fn jain_index(values: &[f64]) -> f64 {
    let (sum, squares) = values.iter().fold((0.0, 0.0), |(sum, squares), value| (sum + value, squares + value * value));
    if squares > 0.0 { sum * sum / (values.len() as f64 * squares) } else { 1.0 }
}

/// Contention begins when the last tenant has come. Where others came before it, it ends when the newcomers are done;
/// where all came together, when only one of them is left.
fn phases(scene: &Scene, origin: Nanos, results: &[WorkerResult]) -> Vec<Phase> {
    let last = scene.last_arrival();
    let arrival = |index: usize| scene.tenants[index].starts_at;
    let mut ends: Vec<Nanos> = results.iter().map(|result| result.finished.ended).collect();
    let newcomers = (0..results.len()).filter(|index| arrival(*index) == last);
    let begin = newcomers.clone().map(|index| results[index].finished.started).min().unwrap_or(origin);
    let newcomers_end = newcomers.clone().map(|index| ends[index]).max().unwrap_or(origin);
    let all_together = newcomers.count() == results.len();
    ends.sort_unstable();
    let end = ends.last().copied().unwrap_or(origin);
    let contended_until = match ends.len().checked_sub(2) {
        Some(index) if all_together => ends[index],
        _ => newcomers_end,
    };
    let before = (last > Nanos::ZERO).then(|| phase("before", origin, origin, begin, results));
    let contention = phase("contention", origin, begin, contended_until, results);
    let after = (contended_until < end).then(|| phase("after", origin, contended_until, end, results));
    before.into_iter().chain([contention]).chain(after).collect()
}

fn phase(name: &'static str, origin: Nanos, from: Nanos, until: Nanos, results: &[WorkerResult]) -> Phase {
    let mut rates = Vec::new();
    let mut bytes = 0.0;
    for WorkerResult { finished, progress } in results {
        let active = finished.ended.min(until).since(finished.started.max(from)).as_secs_f64();
        let moved = moved(progress, from, until);
        bytes += moved;
        if active > 0.0 {
            rates.push(rate(moved, active));
        }
    }
    Phase {
        name,
        from_s: from.since(origin).as_secs_f64(),
        until_s: until.since(origin).as_secs_f64(),
        mb_per_s: rate(bytes, until.since(from).as_secs_f64()),
        jain: jain_index(&rates),
    }
}

fn moved(progress: &[Progress], from: Nanos, until: Nanos) -> f64 {
    bytes_at(progress, until) - bytes_at(progress, from)
}

fn series(origin: Nanos, end: Nanos, results: &[WorkerResult]) -> Series {
    let bins = end.since(origin).0.div_ceil(BIN.0);
    let start = |bin: u64| origin + Nanos(BIN.0 * bin);
    let of_tenant = |result: &WorkerResult| {
        (0..bins).map(|bin| rate(moved(&result.progress, start(bin), start(bin + 1)), BIN.as_secs_f64())).collect()
    };
    Series { bin_s: BIN.as_secs_f64(), mb_per_s: results.iter().map(of_tenant).collect() }
}

#[cfg(test)]
mod tests {
    use super::{RunResult, jain_index};
    use crate::scene::Scene;
    use crate::workload::{Finished, Latency, Progress, WorkerResult};
    use minerva_model::Nanos;

    /// Ten megabytes a second from `start` to `end`, in milliseconds.
    fn steady(start: u64, end: u64) -> WorkerResult {
        let at = |ms: u64| Progress { at: Nanos::from_millis(1_000 + ms), bytes: (ms - start) * 10_000 };
        let progress = (start..=end).step_by(100).map(at).collect::<Vec<_>>();
        let finished = Finished {
            started: at(start).at,
            ended: at(end).at,
            bytes: at(end).bytes,
            latency: Latency::default(),
            checksum: None,
        };
        WorkerResult { finished, progress }
    }

    #[test]
    fn jain_is_one_for_equals_and_one_nth_for_a_monopoly() {
        assert_eq!(jain_index(&[3.0, 3.0, 3.0]), 1.0);
        assert_eq!(jain_index(&[5.0, 0.0]), 0.5);
        assert_eq!(jain_index(&[]), 1.0);
    }

    #[test]
    fn phases_rates_and_bins_follow_from_the_reports() {
        let scene = Scene::noisy_neighbour(0.1);
        let workers = [steady(10_000, 12_000), steady(10_000, 14_000), steady(0, 20_000), steady(0, 30_000)];
        let run = RunResult::new(&scene, "equal", Nanos::from_secs(1), &workers);
        let phases: Vec<_> = run.phases.iter().map(|p| (p.name, p.from_s, p.until_s)).collect();
        assert_eq!(phases, [("before", 0.0, 10.0), ("contention", 10.0, 14.0), ("after", 14.0, 30.0)]);
        assert!((run.phases[0].mb_per_s - 20.0).abs() < 1e-6);
        assert!((run.phases[1].mb_per_s - 35.0).abs() < 1e-6, "tenant 1 was there for half of it");
        assert!(run.phases.iter().all(|phase| (phase.jain - 1.0).abs() < 1e-6), "all rates are equal");
        assert_eq!((run.makespan_s, run.tenants[0].completion_s), (30.0, 2.0));
        assert!((run.tenants[2].mb_per_s - 10.0).abs() < 1e-6);
        assert_eq!(run.series.mb_per_s[0].len(), 120);
        assert_eq!(run.series.mb_per_s[0][39], 0.0);
        assert!((run.series.mb_per_s[0][40] - 10.0).abs() < 1e-6);
    }

    #[test]
    fn together_contention_lasts_until_one_is_left() {
        let workers = [steady(0, 2_000), steady(0, 4_000), steady(0, 20_000), steady(0, 30_000)];
        let run = RunResult::new(&Scene::together(0.1), "equal", Nanos::from_secs(1), &workers);
        let phases: Vec<_> = run.phases.iter().map(|p| (p.name, p.from_s, p.until_s)).collect();
        assert_eq!(phases, [("contention", 0.0, 20.0), ("after", 20.0, 30.0)]);
    }
}
