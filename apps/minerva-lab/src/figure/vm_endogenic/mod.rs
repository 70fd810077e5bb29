//! `minerva-lab figure vm-endogenic`: the paper's Fig. 2 with four real guests, in rounds of the kernel alone and the daemon.

mod remembered;
mod stage;

use super::endogenic::{self, Pair};
use super::{Line, drawn_seed, median, range};
use crate::signals;
use crate::vm_cli::VmEndogenicArguments;
use anyhow::Context as _;
use minerva_lab::figure::VmSceneRun;
use minerva_lab::scene::{Comparison, EndogenicPlan, Scene};
use minerva_model::Level;
use remembered::Remembered;
use stage::{Arm, Stage};
use std::collections::{BTreeMap, BTreeSet};

const ID: &str = "vm-endogenic";
/// In round numbers, how long four guests take to boot.
const BOOT_S: f64 = 20.0;

/// What a round found.
struct Round {
    shipped: Option<VmSceneRun>,
    equal: VmSceneRun,
    /// In the order of the ways.
    steered: Vec<(VmSceneRun, Remembered)>,
}

pub(super) fn run(arguments: &VmEndogenicArguments) -> anyhow::Result<()> {
    let scale = arguments.scale;
    anyhow::ensure!(scale > 0.0 && scale <= 1.0, "a scale of {scale} is not possible: use one above 0, up to 1");
    let stage = Stage::prepare(arguments, signals::interrupt_flag()?)?;
    let scenes: Vec<Scene> = ways(arguments).iter().map(EndogenicPlan::scene).map(without_checksum).collect();
    let mut arms = vec![Arm::Equal];
    arms.extend((!arguments.no_kernel).then_some(Arm::Shipped));
    arms.extend((0..scenes.len()).map(Arm::Minerva));
    if let Some(run_s) = scenes[0].estimate_s(&arguments.profile) {
        let minutes = (run_s + BOOT_S) * arms.len() as f64 / 60.0;
        eprintln!("{} rounds of {} runs, about {minutes:.0} minutes a round", arguments.rounds, arms.len());
    }
    let mut random = fastrand::Rng::with_seed(drawn_seed(arguments.seed));
    let mut rounds = Vec::new();
    for number in 1..=arguments.rounds {
        random.shuffle(&mut arms);
        let mut runs = BTreeMap::new();
        for arm in &arms {
            eprintln!("round {number} of {}, {}: four guests boot", arguments.rounds, told(*arm, &scenes));
            let run = stage.play(*arm, &scenes)?;
            let ends = run.0.result.tenants.iter().map(|tenant| format!("{:.1}", tenant.completion_s));
            eprintln!("  done after {} s", ends.collect::<Vec<_>>().join(" "));
            runs.insert(*arm, run);
        }
        rounds.push(Round::of(runs)?);
    }
    lines(arguments, &scenes, &rounds).into_iter().try_for_each(|line| line.print(arguments.output.json))
}

/// The ways in which tenants take part that were asked for.
fn ways(arguments: &VmEndogenicArguments) -> Vec<EndogenicPlan> {
    let plan = |level: &str, deadline: &str| EndogenicPlan {
        level: if level == "low" { Level::Low } else { Level::Lowest },
        done_within: deadline == "done",
        ..EndogenicPlan::paper(arguments.scale)
    };
    let of_level = |level| arguments.deadline.iter().map(move |deadline| plan(level, deadline));
    arguments.level.iter().flat_map(|level| of_level(level)).collect()
}

/// As guests with emulated processors play it: nobody computes.
fn without_checksum(mut scene: Scene) -> Scene {
    for tenant in &mut scene.tenants {
        tenant.description = tenant.description.replace("checksum of", "read of");
    }
    scene
}

fn told(arm: Arm, scenes: &[Scene]) -> String {
    match arm {
        Arm::Shipped => "the kernel's BFQ as shipped".to_owned(),
        Arm::Equal => "equal weights".to_owned(),
        Arm::Minerva(way) => format!("minervad, beside {}", endogenic::ways(&scenes[way])),
    }
}

impl Round {
    fn of(mut runs: BTreeMap<Arm, (VmSceneRun, Remembered)>) -> anyhow::Result<Self> {
        let mut unsteered = |arm| runs.remove(&arm).map(|(run, _)| run);
        let shipped = unsteered(Arm::Shipped);
        let equal = unsteered(Arm::Equal).context("there is no run with equal weights")?;
        Ok(Self { shipped, equal, steered: runs.into_values().collect() })
    }

    fn pair(&self, way: usize, scene: &Scene) -> Pair {
        let (equal, steered) = (self.equal.result.clone(), self.steered[way].0.result.clone());
        Pair { scene: scene.clone(), comparison: Comparison::new(&equal, &steered), equal, steered }
    }
}

/// The lines of all ways, and what stands beside them.
fn lines(arguments: &VmEndogenicArguments, scenes: &[Scene], rounds: &[Round]) -> Vec<Line> {
    let mut lines = Vec::new();
    for (way, scene) in scenes.iter().enumerate() {
        let pairs: Vec<Pair> = rounds.iter().map(|round| round.pair(way, scene)).collect();
        let judged = endogenic::paper(arguments.scale, &pairs).into_iter();
        lines.extend(judged.map(|line| Line { id: ID, detail: format!("{}; in guests", line.detail), ..line }));
        let runs: Vec<&(VmSceneRun, Remembered)> = rounds.iter().map(|round| &round.steered[way]).collect();
        lines.push(known(scene, &runs));
    }
    lines.extend(shipped(&scenes[0], rounds));
    lines
}

/// Whether the daemon knew the guests, and was asked from within them.
fn known(scene: &Scene, runs: &[&(VmSceneRun, Remembered)]) -> Line {
    let tenants = scene.tenants.len();
    let fewest = runs.iter().map(|(_, remembered)| remembered.rates.len()).min().unwrap_or(0);
    let names = |names: BTreeSet<String>| match names.len() {
        0 => "nobody".to_owned(),
        _ => Vec::from_iter(names).join(", "),
    };
    let last = runs.last().map(|(_, remembered)| remembered.clone()).unwrap_or_default();
    let operation = |(name, took_s): (&String, &f64)| format!("; {name} was done {took_s:.1} s after it asked");
    let operations: String = last.operations_s.iter().map(operation).collect();
    let waited = runs.iter().flat_map(|(run, _)| run.waited.guests.iter().copied()).fold(0.0, f64::max);
    Line {
        id: ID,
        value: fewest as f64,
        unit: "guests known to the daemon by what they moved",
        goal: format!(
            "{tenants} in every run, and what those that take part asked from within their guests was granted"
        ),
        met: runs.iter().all(|(_, remembered)| remembered.is_whole(scene)),
        detail: format!(
            "{}; in the last of {} runs, of what the daemon saw of all, and in brackets of what all read: {}; asked: {}; were \
             granted it: {}{}; guests waited for a processor {:.1} % of the time at most",
            endogenic::ways(scene),
            runs.len(),
            last.parts(scene),
            names(last.asked),
            names(last.granted),
            operations,
            waited * 100.0
        ),
    }
}

/// What the kernel does by default, beside equal weights; no line where that was not measured.
fn shipped(scene: &Scene, rounds: &[Round]) -> Option<Line> {
    let compared = |round: &Round| Some(Comparison::new(&round.equal.result, &round.shipped.as_ref()?.result));
    let comparisons: Vec<Comparison> = rounds.iter().filter_map(compared).collect();
    if comparisons.is_empty() {
        return None;
    }
    let disks: Vec<f64> = comparisons.iter().map(|comparison| comparison.disk_percent).collect();
    let change = |index: usize| {
        let of = |comparison: &Comparison| comparison.tenants[index].completion_change_percent;
        format!("{:+.0}", median(comparisons.iter().map(of)))
    };
    let changes: Vec<String> = (0..scene.tenants.len()).map(change).collect();
    Some(Line {
        id: ID,
        value: median(disks.iter().copied()),
        unit: "% of throughput",
        goal: "none: shown beside".to_owned(),
        met: true,
        detail: format!(
            "whole disk, by the kernel's BFQ as shipped, of what equal weights gave; its tenants, against equal weights, {} % \
             completion: medians of {} rounds, the disk {}",
            changes.join(", "),
            comparisons.len(),
            range(&disks)
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::{Remembered, Round, VmSceneRun, lines, ways, without_checksum};
    use crate::cli::{Cli, Command, FigureCommand};
    use crate::figure::endogenic;
    use crate::vm_cli::VmEndogenicArguments;
    use clap::Parser;
    use minerva_lab::figure::VmWaited;
    use minerva_lab::scene::{EndogenicPlan, Scene};
    use std::collections::BTreeSet;

    fn arguments(words: &[&str]) -> VmEndogenicArguments {
        let words = ["minerva-lab", "figure", "vm-endogenic"].iter().chain(words);
        let Command::Figure(FigureCommand::VmEndogenic(arguments)) = Cli::parse_from(words).command else {
            panic!("another command");
        };
        arguments
    }

    fn run(scene: &Scene, seconds: [f64; 4]) -> VmSceneRun {
        VmSceneRun { result: endogenic::tests::run(scene, seconds), waited: VmWaited::default() }
    }

    #[test]
    fn the_goals_are_those_of_the_scene_without_guests() {
        let arguments = arguments(&["--scale", "1"]);
        let scenes: Vec<Scene> = ways(&arguments).iter().map(EndogenicPlan::scene).map(without_checksum).collect();
        assert!(scenes[0].tenants[0].description.starts_with("read of 200 MB"), "{:?}", scenes[0].tenants[0]);
        let judged = |count: usize, remembered: &Remembered| {
            let round = || Round {
                shipped: Some(run(&scenes[0], [18.0, 40.0, 171.0, 426.0])),
                equal: run(&scenes[0], [18.0, 40.0, 171.0, 426.0]),
                steered: vec![(run(&scenes[0], [10.0, 19.0, 100.0, 420.0]), remembered.clone())],
            };
            let rounds: Vec<Round> = (0..count).map(|_| round()).collect();
            let lines = lines(&arguments, &scenes, &rounds);
            assert!(lines.iter().all(|line| line.id == "vm-endogenic"));
            lines.iter().map(|line| line.met).collect::<Vec<_>>()
        };
        let names = ["tenant-1", "tenant-2", "tenant-3", "tenant-4"].map(str::to_owned);
        let asked: BTreeSet<String> = [names[1].clone(), names[3].clone()].into();
        let rates = names.into_iter().zip((1..).map(f64::from)).collect();
        let whole = Remembered { rates, granted: asked.clone(), asked, ..Remembered::default() };
        // Four tenants, the disk, the operation's deadline; who was known; the kernel beside.
        assert_eq!(judged(3, &whole), [true; 8]);
        assert_eq!(judged(2, &whole), [false, false, false, false, false, false, true, true]);
    }

    #[test]
    fn every_way_that_is_asked_for_is_measured() {
        let arguments = arguments(&["--level", "low,lowest", "--deadline", "begin,done"]);
        assert_eq!(ways(&arguments).len(), 4);
    }
}
