//! `minerva-lab figure noisy-neighbour`: pairs of runs, equal weights and minervad, because a machine's speed
//! drifts, in drawn order, because who goes second may find another machine.

use super::{Line, SLICE_MS, drawn_seed, median, range, steering};
use crate::cli::NoisyNeighbourArguments;
use crate::{binaries, signals};
use minerva_lab::scene::{Comparison, Equal, Minervad, RunResult, Scene, Stage, Steering, run_scene};
use minerva_lab::workload::WorkerProgram;

/// Completion of the short tenants is to change by at most this, in percent.
const SHORT_MOST: f64 = -40.0;
/// That of the scans.
const SCAN_MOST: f64 = 5.0;
/// The disk is to deliver at least this much of what it does with equal weights, in percent.
const DISK_LEAST: f64 = 97.0;
/// So many pairs are asked for: fewer meet no goal.
const PAIRS_MIN: usize = 3;

pub(super) fn run(arguments: &NoisyNeighbourArguments) -> anyhow::Result<()> {
    let steering: Box<dyn Steering> = match arguments.share_heavy {
        None => steering(arguments.weights.clone(), &arguments.output)?,
        Some(share) => {
            let sections = format!("\n[fennel]\nshare_heavy = {share}\n");
            Box::new(Minervad { sections, ..Minervad::new(binaries::minervad(&arguments.output)?, SLICE_MS) })
        }
    };
    let interrupted = signals::interrupt_flag()?;
    let program = WorkerProgram::own()?;
    let stage = Stage { program: &program, profile: &arguments.profile, interrupted: &interrupted };
    let mut random = fastrand::Rng::with_seed(drawn_seed(arguments.seed));
    for scale in &arguments.scale {
        let scene = Scene::noisy_neighbour(*scale);
        let mut pairs = Vec::new();
        for pair in 1..=arguments.pairs {
            let steered_first = random.bool();
            let play = |steered: bool| match steered {
                true => run_scene(&scene, steering.as_ref(), &stage, &mut |_| ()),
                false => run_scene(&scene, &Equal, &stage, &mut |_| ()),
            };
            let (first, second) = (play(steered_first)?, play(!steered_first)?);
            let (equal, steered) = if steered_first { (second, first) } else { (first, second) };
            let order = if steered_first { "the daemon first" } else { "equal weights first" };
            eprintln!("scale {scale}, pair {pair} of {} done, {order}", arguments.pairs);
            pairs.push((Comparison::new(&equal, &steered), equal, steered));
        }
        for index in 0..scene.tenants.len() {
            tenant_line(&scene, &pairs, index).print(arguments.output.json)?;
        }
        disk_line(*scale, &pairs).print(arguments.output.json)?;
    }
    Ok(())
}

type Pair = (Comparison, RunResult, RunResult);

fn tenant_line(scene: &Scene, pairs: &[Pair], index: usize) -> Line {
    let changes: Vec<f64> =
        pairs.iter().map(|(comparison, ..)| comparison.tenants[index].completion_change_percent).collect();
    let change = median(changes.iter().copied());
    let completion =
        |run: fn(&Pair) -> &RunResult| median(pairs.iter().map(|pair| run(pair).tenants[index].completion_s));
    // Who comes late has little to do and is to gain.
    let most = if scene.tenants[index].starts_at == scene.last_arrival() { SHORT_MOST } else { SCAN_MOST };
    Line {
        id: "noisy-neighbour",
        value: change,
        unit: "% completion",
        goal: format!("at most {most:+} in {PAIRS_MIN} pairs"),
        met: pairs.len() >= PAIRS_MIN && change <= most,
        detail: format!(
            "{} ({}, scale {}): {:.2} s with equal weights, {:.2} s under {}; median of {} pairs, {}",
            scene.tenants[index].name,
            scene.tenants[index].description,
            scene.scale,
            completion(|pair| &pair.1),
            completion(|pair| &pair.2),
            pairs[0].0.steering,
            pairs.len(),
            range(&changes),
        ),
    }
}

fn disk_line(scale: f64, pairs: &[Pair]) -> Line {
    let percents: Vec<f64> = pairs.iter().map(|(comparison, ..)| comparison.disk_percent).collect();
    let percent = median(percents.iter().copied());
    Line {
        id: "noisy-neighbour",
        value: percent,
        unit: "% of throughput",
        goal: format!("at least {DISK_LEAST} in {PAIRS_MIN} pairs"),
        met: pairs.len() >= PAIRS_MIN && percent >= DISK_LEAST,
        detail: format!(
            "whole disk, scale {scale}: {:.2} MB/s with equal weights, {:.2} MB/s under {}; {:.0} % under contention; median of {} pairs, {}",
            median(pairs.iter().map(|pair| pair.1.disk_mb_per_s)),
            median(pairs.iter().map(|pair| pair.2.disk_mb_per_s)),
            pairs[0].0.steering,
            median(pairs.iter().map(|pair| pair.0.contended_percent)),
            pairs.len(),
            range(&percents),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::{Pair, disk_line, tenant_line};
    use minerva_lab::scene::{Comparison, RunResult, Scene, Series, TenantResult};

    /// Every tenant of the scene takes so long.
    fn run(scene: &Scene, completion_s: f64) -> RunResult {
        let tenant = TenantResult {
            name: String::new(),
            description: String::new(),
            bytes: 1,
            started_s: 0.0,
            completion_s,
            mb_per_s: 1.0,
            latency_ms_p50: 1.0,
            latency_ms_p99: 1.0,
        };
        RunResult {
            scene: scene.name.clone(),
            steering: "test".to_owned(),
            scale: scene.scale,
            tenants: vec![tenant; scene.tenants.len()],
            makespan_s: completion_s,
            disk_mb_per_s: 40.0,
            phases: Vec::new(),
            series: Series { bin_s: 1.0, mb_per_s: vec![Vec::new(); scene.tenants.len()] },
            weights: None,
        }
    }

    #[test]
    fn too_few_pairs_meet_no_goal() {
        let scene = Scene::noisy_neighbour(1.0);
        let met = |count: usize| {
            let pair = || -> Pair {
                let (equal, steered) = (run(&scene, 40.0), run(&scene, 10.0));
                (Comparison::new(&equal, &steered), equal, steered)
            };
            let pairs: Vec<Pair> = (0..count).map(|_| pair()).collect();
            let tenants = (0..scene.tenants.len()).map(|index| tenant_line(&scene, &pairs, index));
            tenants.chain([disk_line(1.0, &pairs)]).map(|line| line.met).collect::<Vec<_>>()
        };
        assert!(met(3).iter().all(|met| *met), "{:?}", met(3));
        assert!(met(2).iter().all(|met| !met), "{:?}", met(2));
    }
}
