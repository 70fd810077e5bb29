//! `minerva-lab reproduce table`: scene one and the paper's Fig. 2 at each scale and in each way of taking part, every tenant by name.
//!
//! Equal weights are measured once a round for all ways, in one drawn order with them: who takes part in what is all the same there.

use crate::binaries;
use crate::cli::ReproduceTableArguments;
use crate::figure::{SLICE_MS, drawn_seed, median};
use crate::signals;
use anyhow::Context as _;
use minerva_lab::scene::{
    Comparison, EndogenicPlan, Equal, Minervad, RunResult, Scene, Stage, endogenic_slice_ms, run_scene,
};
use minerva_lab::workload::WorkerProgram;
use minerva_model::Level;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// The levels and meanings of a deadline that the paper's scene is played with.
const WAYS: [(Level, bool); 4] =
    [(Level::Low, false), (Level::Low, true), (Level::Lowest, false), (Level::Lowest, true)];
/// By how much each tenant's completion is to change at most, in percent.
const MOST_NOISY: [f64; 4] = [-40.0, -40.0, 5.0, 5.0];
const MOST_ENDOGENIC: [f64; 4] = [-40.0, -40.0, -30.0, 3.0];

/// A scene in one way, at one scale.
#[derive(Clone, Debug, Serialize)]
struct Case {
    title: String,
    scale: f64,
    slice_ms: u64,
    rows: Vec<Row>,
    /// The whole disk, of what it delivered with equal weights; a number a round.
    disk_percent: Vec<f64>,
}

/// One tenant; a number a round in each list.
#[derive(Clone, Debug, Serialize)]
struct Row {
    tenant: String,
    does: String,
    /// It asks for nothing and steps back from nothing.
    is_silent: bool,
    equal_s: Vec<f64>,
    steered_s: Vec<f64>,
    change_percent: Vec<f64>,
    change_percent_most: f64,
}

impl Case {
    fn new(title: String, scene: &Scene, slice_ms: u64, most: [f64; 4]) -> Self {
        let rows = scene.tenants.iter().zip(most).map(|(plan, change_percent_most)| Row {
            tenant: plan.name.clone(),
            does: plan.description.clone(),
            is_silent: plan.part.is_none(),
            equal_s: Vec::new(),
            steered_s: Vec::new(),
            change_percent: Vec::new(),
            change_percent_most,
        });
        Self { title, scale: scene.scale, slice_ms, rows: rows.collect(), disk_percent: Vec::new() }
    }

    fn add(&mut self, equal: &RunResult, steered: &RunResult) {
        let comparison = Comparison::new(equal, steered);
        for (index, row) in self.rows.iter_mut().enumerate() {
            row.equal_s.push(equal.tenants[index].completion_s);
            row.steered_s.push(steered.tenants[index].completion_s);
            row.change_percent.push(comparison.tenants[index].completion_change_percent);
        }
        self.disk_percent.push(comparison.disk_percent);
    }
}

/// A scene and all the ways in which it is played.
struct Play {
    scenes: Vec<Scene>,
    cases: Vec<Case>,
    slice_ms: u64,
}

impl Play {
    fn noisy_neighbour(scale: f64) -> Self {
        let scene = Scene::noisy_neighbour(scale);
        let case = Case::new("noisy-neighbour".to_owned(), &scene, SLICE_MS, MOST_NOISY);
        Self { scenes: vec![scene], cases: vec![case], slice_ms: SLICE_MS }
    }

    fn endogenic(scale: f64) -> Self {
        let slice_ms = endogenic_slice_ms(scale);
        let plan = |(level, done_within)| EndogenicPlan { level, done_within, ..EndogenicPlan::paper(scale) }.scene();
        let scenes: Vec<Scene> = WAYS.into_iter().map(plan).collect();
        let cases = scenes.iter().zip(WAYS).map(|(scene, (level, done_within))| {
            let deadline = if done_within { "done" } else { "begun" };
            let title = format!("endogenic, one steps back ({level}), one is {deadline} within its time");
            Case::new(title, scene, slice_ms, MOST_ENDOGENIC)
        });
        Self { cases: cases.collect(), scenes, slice_ms }
    }

    /// About how long one round takes, in seconds.
    fn estimate_s(&self, profile: &str) -> Option<f64> {
        Some(self.scenes[0].estimate_s(profile)? * (self.scenes.len() + 1) as f64)
    }

    /// Equal weights and every way once, in drawn order.
    fn round(&mut self, minervad: &Path, stage: &Stage<'_>, random: &mut fastrand::Rng) -> anyhow::Result<()> {
        let steering = Minervad::new(minervad.to_owned(), self.slice_ms);
        // The last of the order is equal weights.
        let mut order: Vec<usize> = (0..=self.scenes.len()).collect();
        random.shuffle(&mut order);
        let mut runs: BTreeMap<usize, RunResult> = BTreeMap::new();
        for index in order {
            let run = match self.scenes.get(index) {
                Some(scene) => run_scene(scene, &steering, stage, &mut |_| ())?,
                None => run_scene(&self.scenes[0], &Equal, stage, &mut |_| ())?,
            };
            let name = self.cases.get(index).map_or("equal weights", |case| case.title.as_str());
            let ends: Vec<String> = run.tenants.iter().map(|tenant| format!("{:.1}", tenant.completion_s)).collect();
            eprintln!("scale {}, {name}: done after {} s", self.scenes[0].scale, ends.join(" "));
            runs.insert(index, run);
        }
        let equal = runs.remove(&self.scenes.len()).context("there is no run with equal weights")?;
        runs.iter().for_each(|(index, run)| self.cases[*index].add(&equal, run));
        Ok(())
    }
}

/// Plays all of it, and writes the table after each scene of each round, so that an interrupted run keeps what it has.
pub(crate) fn run(arguments: &ReproduceTableArguments) -> anyhow::Result<()> {
    minerva_lab::disk::check_machine()?;
    minerva_lab::sweep::sweep("minerva-lab-")?;
    let minervad = binaries::minervad(&arguments.output)?;
    let interrupted = signals::interrupt_flag()?;
    let program = WorkerProgram::own()?;
    let stage = Stage { program: &program, profile: &arguments.profile, interrupted: &interrupted };
    let mut random = fastrand::Rng::with_seed(drawn_seed(arguments.seed));
    let mut plays: Vec<Play> =
        arguments.scale.iter().flat_map(|scale| [Play::noisy_neighbour(*scale), Play::endogenic(*scale)]).collect();
    std::fs::create_dir_all(&arguments.folder)
        .with_context(|| format!("failed to make {}", arguments.folder.display()))?;
    let round_s: Option<f64> = plays.iter().map(|play| play.estimate_s(&arguments.profile)).sum();
    let rounds = arguments.rounds;
    if let Some(seconds) = round_s {
        eprintln!("about {:.0} minutes a round, {rounds} rounds", seconds / 60.0);
    }
    for _ in 0..rounds {
        for index in 0..plays.len() {
            plays[index].round(&minervad, &stage, &mut random)?;
            let cases: Vec<&Case> = plays.iter().flat_map(|play| &play.cases).collect();
            write(&arguments.folder, &cases)?;
        }
    }
    let cases: Vec<&Case> = plays.iter().flat_map(|play| &play.cases).collect();
    if arguments.output.json {
        return crate::output::line(serde_json::to_string(&cases)?);
    }
    crate::output::line(text(&cases).trim_end())
}

fn write(folder: &Path, cases: &[&Case]) -> anyhow::Result<()> {
    for (name, contents) in [("table.json", serde_json::to_string_pretty(cases)?), ("table.txt", text(cases))] {
        let path = folder.join(name);
        std::fs::write(&path, contents).with_context(|| format!("failed to write {}", path.display()))?;
    }
    Ok(())
}

/// For people; of each list the median, and the least and greatest.
fn text(cases: &[&Case]) -> String {
    let mut text = String::new();
    for case in cases.iter().filter(|case| !case.disk_percent.is_empty()) {
        // Writing into a string cannot fail.
        let _ = writeln!(
            text,
            "{}, scale {}, slices of {} ms, {} rounds: whole disk {:.1} % of its throughput with equal weights",
            case.title,
            case.scale,
            case.slice_ms,
            case.disk_percent.len(),
            median(case.disk_percent.iter().copied()),
        );
        for row in &case.rows {
            let change = median(row.change_percent.iter().copied());
            let least = row.change_percent.iter().copied().fold(f64::INFINITY, f64::min);
            let most = row.change_percent.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let met = if change <= row.change_percent_most { "met" } else { "missed" };
            let silent = if row.is_silent { "silent" } else { "" };
            let _ = writeln!(
                text,
                "  {:10} {:6} {:55} {:8.2} s {:8.2} s {change:+6.1} % ({least:+.1} to {most:+.1}), at most {:+} %: {met}",
                row.tenant,
                silent,
                row.does,
                median(row.equal_s.iter().copied()),
                median(row.steered_s.iter().copied()),
                row.change_percent_most,
            );
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Play, text};

    #[test]
    fn every_way_is_a_case_and_who_is_silent_is_named() {
        let mut play = Play::endogenic(0.1);
        assert_eq!((play.cases.len(), play.scenes.len()), (4, 4));
        assert_eq!(text(&play.cases.iter().collect::<Vec<_>>()), "", "nothing before a round is done");
        // 2 runs of scene one and 5 of the paper's, of 15.7 GB at 40 MB/s, at three scales.
        let plays = [0.1, 0.25, 1.0].map(|scale| [Play::noisy_neighbour(scale), Play::endogenic(scale)]);
        let round_s: f64 = plays.iter().flatten().filter_map(|play| play.estimate_s("sata7200-80g")).sum();
        assert!((3_600.0..3_750.0).contains(&round_s), "{round_s}");
        for (index, row) in play.cases[1].rows.iter_mut().enumerate() {
            row.equal_s = vec![10.0, 12.0];
            row.steered_s = vec![5.0, 6.0];
            row.change_percent = vec![-50.0, -30.0 + index as f64 * 20.0];
        }
        play.cases[1].disk_percent = vec![99.0, 101.0];
        let shown = text(&play.cases.iter().collect::<Vec<_>>());
        assert!(
            shown.starts_with("endogenic, one steps back (low), one is done within its time, scale 0.1"),
            "{shown}"
        );
        let lines: Vec<&str> = shown.lines().skip(1).filter(|line| !line.is_empty()).collect();
        assert_eq!(lines.iter().filter(|line| line.contains(" silent ")).count(), 2, "{shown}");
        assert!(lines[0].contains("tenant-1   silent") && lines[0].ends_with("at most -40 %: met"), "{shown}");
        assert!(lines[1].contains("coordinates, done within") && lines[1].ends_with("-40 %: missed"), "{shown}");
    }
}
