use super::{Goals, judge};
use crate::contest::Contest;
use crate::scene::RunResult;
use crate::workload::{Finished, Latency, Progress, WorkerResult};
use minerva_model::Nanos;
use std::collections::BTreeMap;

/// One run of the scene in which scanners end after `heavy_s` and the short jobs `short_s` after they came.
fn run(contest: &Contest, short_s: f64, heavy_s: f64) -> RunResult {
    let origin = Nanos::from_secs(100);
    let results: Vec<WorkerResult> = contest
        .scene
        .tenants
        .iter()
        .map(|plan| {
            let took_s = if plan.starts_at.0 > 0 { short_s } else { heavy_s };
            let started = origin + plan.starts_at;
            let ended = started + Nanos((took_s * 1e9) as u64);
            let latency = Latency::default();
            let finished = Finished { started, ended, bytes: plan.bytes, latency, checksum: None };
            let progress = [(started, 0), (ended, plan.bytes)].map(|(at, bytes)| Progress { at, bytes });
            WorkerResult { finished, progress: progress.to_vec() }
        })
        .collect();
    RunResult::new(&contest.scene, "test", origin, &results)
}

#[test]
fn the_baseline_is_the_best_arm_or_the_one_that_is_told() {
    let contest = Contest::of("short-2", "slow-ssd", 1.0).unwrap();
    let arms = [("none", 10.0, 40.0), ("iocost", 7.0, 40.0), ("minerva-max", 5.9, 41.0)];
    let arms: BTreeMap<String, Vec<RunResult>> = arms
        .into_iter()
        .map(|(name, short_s, heavy_s)| (name.to_owned(), vec![run(&contest, short_s, heavy_s)]))
        .collect();
    let alone = contest.alone().into_iter().map(|(index, _)| (index, run(&contest, 1.0, 20.0))).collect();
    let best = judge(&contest, &arms, "minerva-max", &alone, &Goals::default()).unwrap();
    assert_eq!(best.baseline, "iocost");
    let told = judge(&contest, &arms, "minerva-max", &alone, &Goals::beside_nobody("none")).unwrap();
    assert_eq!(told.baseline, "none");
    let rows: Vec<(&str, f64, bool)> =
        told.rows.iter().map(|row| (row.what.as_str(), (row.value * 100.0).round(), row.met)).collect();
    let expected =
        [("completion of the short", 59.0, true), ("completion of the heavy", 102.0, true), ("whole disk", 98.0, true)];
    assert_eq!(rows, expected);
    // 40 % sooner is asked for, and no noise is forgiven.
    let arms = BTreeMap::from([
        ("none".to_owned(), vec![run(&contest, 10.0, 40.0)]),
        ("minerva-max".to_owned(), vec![run(&contest, 6.2, 40.0)]),
    ]);
    let missed = judge(&contest, &arms, "minerva-max", &alone, &Goals::beside_nobody("none")).unwrap();
    assert!(!missed.rows[0].met && missed.rows[1].met, "{:?}", missed.rows);
}
