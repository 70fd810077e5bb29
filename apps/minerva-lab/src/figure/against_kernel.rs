//! `minerva-lab figure against-kernel`: Minerva against each elevator as the kernel ships it, in one run, in drawn order.

use super::{Line, SLICE_MS, drawn_seed, median};
use crate::arms::{ARMS, STEERED};
use crate::cli::AgainstKernelArguments;
use crate::{binaries, signals};
use anyhow::Context as _;
use minerva_lab::contest::{CONTESTS, Contest, Goals, Judgement, judge, plot};
use minerva_lab::scene::{Arm, Equal, Minervad, RunResult, Stage, Steering, run_scene};
use minerva_lab::workload::WorkerProgram;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The arm under which the times alone are taken.
const ALONE: &str = "bfq";

pub(super) fn run(arguments: &AgainstKernelArguments) -> anyhow::Result<()> {
    let chosen = |all: &[&'static str], wanted: &[String]| -> Vec<&'static str> {
        all.iter().copied().filter(|one| wanted.is_empty() || wanted.iter().any(|name| name == one)).collect()
    };
    let (scenes, arms) = (chosen(&CONTESTS, &arguments.scene), chosen(&ARMS, &arguments.arm));
    anyhow::ensure!(arguments.scale > 0.0, "a scale of {} is no good: use one above 0", arguments.scale);
    let daemon = binaries::minervad(&arguments.output)?;
    let interrupted = signals::interrupt_flag()?;
    let program = WorkerProgram::own()?;
    let mut play = Play {
        arguments,
        arms,
        daemon,
        random: fastrand::Rng::with_seed(drawn_seed(arguments.seed)),
        runs: Vec::new(),
    };
    let mut short = Vec::new();
    for profile in &arguments.profile {
        let stage = Stage { program: &program, profile, interrupted: &interrupted };
        for scene in &scenes {
            let contest = Contest::of(scene, profile, arguments.scale).context("an unknown scene")?;
            let judgement = play.contest(&contest, &stage)?;
            if let Some(judgement) = &judgement {
                eprint!("{profile}, baseline {}: {}", judgement.baseline, judgement.table);
                print_rows(arguments, scene, profile, judgement)?;
                short.extend(judgement.short);
            }
            // After each scene, so that a long run that is interrupted keeps what it has.
            play.write_runs()?;
        }
    }
    if !short.is_empty() {
        overall(&short).print(arguments.output.json)?;
    }
    Ok(())
}

/// What all scenes are played with, and what came of them.
struct Play<'a> {
    arguments: &'a AgainstKernelArguments,
    arms: Vec<&'static str>,
    daemon: PathBuf,
    random: fastrand::Rng,
    runs: Vec<serde_json::Value>,
}

impl Play<'_> {
    /// Every round of one scene, and each kind of its tenants alone.
    fn contest(&mut self, contest: &Contest, stage: &Stage<'_>) -> anyhow::Result<Option<Judgement>> {
        let name = &contest.scene.name;
        let mut alone = BTreeMap::new();
        for (index, scene) in contest.alone() {
            eprintln!("{} {name}: {} alone", stage.profile, scene.tenants[0].description);
            alone.insert(index, self.once(&scene, ALONE, 0, stage)?);
        }
        let mut runs: BTreeMap<String, Vec<RunResult>> = BTreeMap::new();
        for round in 1..=self.arguments.rounds.max(1) {
            let mut order = self.arms.clone();
            self.random.shuffle(&mut order);
            for arm in order {
                let run = self.once(&contest.scene, arm, round, stage)?;
                let ends: Vec<String> =
                    run.tenants.iter().map(|tenant| format!("{:.1}", tenant.completion_s)).collect();
                eprintln!("{} {name}, round {round}, {arm}: done after {} s", stage.profile, ends.join(" "));
                runs.entry(arm.to_owned()).or_default().push(run);
            }
        }
        let judgement = judge(contest, &runs, STEERED, &alone, &Goals::default());
        if let (Some(folder), Some(_)) = (&self.arguments.plots, &judgement) {
            write_plot(folder, contest, stage.profile, &runs)?;
        }
        Ok(judgement)
    }

    fn once(
        &mut self,
        scene: &minerva_lab::scene::Scene,
        arm: &str,
        round: u32,
        stage: &Stage<'_>,
    ) -> anyhow::Result<RunResult> {
        let run = run_scene(scene, &self.arm(arm), stage, &mut |_| ())?;
        self.runs.push(serde_json::json!({ "profile": stage.profile, "arm": arm, "round": round, "run": run }));
        Ok(run)
    }

    fn arm(&self, name: &str) -> Arm {
        let steering: Box<dyn Steering> = match name {
            name if name.starts_with(STEERED) => {
                let disk_keys = match name {
                    "minerva-strict" => "strict_guarantees = true",
                    "minerva-by-use" => "strict_guarantees_by_use = true",
                    _ => "",
                };
                Box::new(Minervad { disk_keys: disk_keys.to_owned(), ..Minervad::new(self.daemon.clone(), SLICE_MS) })
            }
            _ => Box::new(Equal),
        };
        let elevator = match name {
            name if name.starts_with("bfq") || name.starts_with(STEERED) => "bfq",
            elevator => elevator,
        };
        Arm { name: name.to_owned(), elevator: elevator.to_owned(), low_latency: !name.ends_with("-low-0"), steering }
    }

    fn write_runs(&self) -> anyhow::Result<()> {
        let Some(path) = &self.arguments.runs else { return Ok(()) };
        let text = serde_json::to_string(&self.runs)?;
        std::fs::write(path, text).with_context(|| format!("failed to write {}", path.display()))
    }
}

fn print_rows(
    arguments: &AgainstKernelArguments,
    scene: &str,
    profile: &str,
    judgement: &Judgement,
) -> anyhow::Result<()> {
    for row in &judgement.rows {
        let line = Line {
            id: "against-kernel",
            value: row.value,
            unit: "of the baseline",
            goal: row.goal.clone(),
            met: row.met,
            detail: format!(
                "{profile}, {scene}, {}: {} ({} rounds, scale {})",
                row.what, row.detail, arguments.rounds, arguments.scale
            ),
        };
        line.print(arguments.output.json)?;
    }
    Ok(())
}

/// The goal over all scenes, from each scene's completion of the short as a part of the baseline's and of the time alone.
fn overall(short: &[(f64, f64)]) -> Line {
    let goals = Goals::default();
    let mean = |of: fn(&(f64, f64)) -> f64| {
        let logarithms: f64 = short.iter().map(|pair| of(pair).ln()).sum();
        (logarithms / short.len() as f64).exp()
    };
    let (baseline, alone) = (mean(|pair| pair.0), mean(|pair| pair.1));
    Line {
        id: "against-kernel",
        value: baseline,
        unit: "of the baseline",
        goal: format!("at most {}, or {} of the time alone", goals.overall_most, goals.alone_most),
        met: baseline <= goals.overall_most || alone <= goals.alone_most,
        detail: format!(
            "completion of the short over {} scenes, geometric mean; {alone:.2} of the time alone",
            short.len()
        ),
    }
}

/// The short's completion, or what the lasting got, under each arm.
fn write_plot(
    folder: &Path,
    contest: &Contest,
    profile: &str,
    runs: &BTreeMap<String, Vec<RunResult>>,
) -> anyhow::Result<()> {
    let last = contest.scene.last_arrival().0;
    let has_end = contest.scene.tenants.iter().any(|plan| plan.starts_at.0 > 0 && plan.lasts.is_none());
    let value = |run: &RunResult| {
        let late = contest.scene.tenants.iter().zip(&run.tenants).filter(|(plan, _)| plan.starts_at.0 > 0 || last == 0);
        let values: Vec<f64> =
            late.map(|(_, tenant)| if has_end { tenant.completion_s } else { tenant.mb_per_s }).collect();
        values.iter().sum::<f64>() / values.len().max(1) as f64
    };
    let bars: Vec<(String, [f64; 3])> = runs
        .iter()
        .map(|(arm, runs)| {
            let values: Vec<f64> = runs.iter().map(value).collect();
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let most = values.iter().copied().fold(0.0, f64::max);
            (arm.clone(), [median(values), least, most])
        })
        .collect();
    let unit = if has_end { "completion of the newcomers, s" } else { "newcomers, MB/s" };
    std::fs::create_dir_all(folder).with_context(|| format!("failed to make {}", folder.display()))?;
    let path = folder.join(format!("against-kernel-{}-{profile}.svg", contest.scene.name));
    let svg = plot(&format!("{} ({profile})", contest.scene.title), unit, &bars)?;
    std::fs::write(&path, svg).with_context(|| format!("failed to write {}", path.display()))
}
