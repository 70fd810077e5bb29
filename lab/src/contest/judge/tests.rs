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

/// A run of `commit-2`, in which the two that last get so many megabytes a second each, and the heavy 40 together.
fn lasting_run(contest: &Contest, lasting: [f64; 2], weights: Option<[f64; 4]>) -> RunResult {
    let origin = Nanos::from_secs(100);
    let rates = [20.0, 20.0, lasting[0], lasting[1]];
    let results: Vec<WorkerResult> = contest
        .scene
        .tenants
        .iter()
        .zip(rates)
        .map(|(plan, rate)| {
            let (started, lasts) = (origin + plan.starts_at, plan.lasts.unwrap());
            let bytes = (rate * 1e6 * lasts.as_secs_f64()) as u64;
            let ended = started + lasts;
            let latency = Latency::default();
            let finished = Finished { started, ended, bytes, latency, checksum: None };
            let progress = [(started, 0), (ended, bytes)].map(|(at, bytes)| Progress { at, bytes });
            WorkerResult { finished, progress: progress.to_vec() }
        })
        .collect();
    let run = RunResult::new(&contest.scene, "test", origin, &results);
    let bins = run.series.mb_per_s[0].len();
    RunResult { weights: weights.map(|weights| weights.map(|weight| vec![weight; bins]).to_vec()), ..run }
}

fn judged(ours: [f64; 2], weights: Option<[f64; 4]>) -> Vec<super::Row> {
    let contest = Contest::of("commit-2", "sata7200-80g", 1.0).unwrap();
    let arms = BTreeMap::from([
        ("bfq".to_owned(), vec![lasting_run(&contest, [2.0, 2.0], None)]),
        ("minerva".to_owned(), vec![lasting_run(&contest, ours, weights)]),
    ]);
    // Scanners alone get 40 MB/s, who commits 4.
    let alone = contest.alone().into_iter().map(|(index, scene)| {
        let rate = if index == 0 { 40.0 } else { 4.0 };
        let lone = Contest { scene: scene.clone(), roles: vec![contest.roles[index]] };
        let mut run = lasting_run(&Contest { scene: contest.scene.clone(), ..lone }, [2.0, 2.0], None);
        run.tenants[0].mb_per_s = rate;
        (index, run)
    });
    judge(&contest, &arms, "minerva", &alone.collect(), &Goals::default()).unwrap().rows
}

#[test]
fn a_victim_that_lasts_no_whole_while_is_told_as_not_measured() {
    let contest = Contest::of("commit-2", "sata7200-80g", 0.3).unwrap();
    let play = |rate| vec![lasting_run(&contest, [rate; 2], None)];
    let arms = BTreeMap::from([("bfq".to_owned(), play(1.0)), ("minerva".to_owned(), play(9.0))]);
    let alone = contest.alone().into_iter().map(|(index, _)| (index, lasting_run(&contest, [9.0; 2], None))).collect();
    let judgement = judge(&contest, &arms, "minerva", &alone, &Goals::default()).unwrap();
    let victims: Vec<_> = judgement.rows.iter().filter(|row| row.what.starts_with("done by ")).collect();
    assert_eq!(victims.len(), 2, "{:?}", judgement.rows);
    for row in victims {
        assert!(!row.met && row.value.is_nan() && row.detail.starts_with("not measured, as it lasts less"), "{row:?}");
    }
}

#[test]
fn a_victim_that_starves_beside_another_is_a_miss() {
    let rows = judged([4.0, 0.5], None);
    let missed: Vec<&str> = rows.iter().filter(|row| !row.met).map(|row| row.what.as_str()).collect();
    let whiles = ["done by tenant-4, 0 to 6 s", "done by tenant-4, 6 to 12 s", "done by tenant-4, 12 to 18 s"];
    assert_eq!(missed, whiles, "together they got more than under the kernel's own");
    let detail = &rows[0].detail;
    assert!(rows[0].what == "done by tenant-3, 0 to 6 s" && detail.starts_with("4.000 for 2.000 MB/s"), "{detail}");
}

#[test]
fn what_is_missed_by_little_is_missed_and_says_so() {
    let rows = judged([1.96, 2.0], None);
    let row = &rows[0];
    assert!(!row.met && row.detail.contains("missed by less than medians differ"), "{row:?}");
    assert!(rows[3].met, "{:?}", rows[3]);
}

#[test]
fn the_heavy_are_to_keep_what_the_weights_in_force_say() {
    let row = |weights| judged([2.0, 2.0], weights).into_iter().find(|row| row.what.starts_with("disk time")).unwrap();
    // They are served half of all that is served.
    let least = row(None);
    assert!(least.met && least.detail.contains("the least share says 4.8 %"), "{least:?}");
    let weighed = row(Some([100.0, 100.0, 100.0, 100.0]));
    assert!(weighed.met && weighed.detail.contains("50.0 % of the time that all are served"), "{weighed:?}");
    assert!(!row(Some([100.0, 100.0, 50.0, 50.0])).met, "two thirds are theirs");
}
