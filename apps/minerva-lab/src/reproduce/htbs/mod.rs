//! `minerva-lab reproduce htbs`: Rocha and Bona 2012 with real guests, and the same guests in the simulator.

mod plays;
mod report;

use super::beside::{self, By};
use crate::figure::{drawn_seed, median};
use crate::vm::contracts::{Scene, simulated};
use crate::vm::simulated::{Simulation, simulate};
use crate::vm::{Programs, arm};
use crate::vm_cli::ReproduceHtbsArguments;
use crate::{output, signals};
use anyhow::Context as _;
use minerva_lab::figure::VmArm;
use minerva_model::Nanos;
use plays::{Play, Plays, READER_ARMS};

/// How long a program takes to ask again where no run was logged: a system call and a switch of context.
const THINK: Nanos = Nanos::from_micros(50);

/// A scene, and who orders.
struct Case {
    scene: Scene,
    arm: String,
}

pub(crate) fn run(arguments: &ReproduceHtbsArguments) -> anyhow::Result<()> {
    minerva_lab::disk::check_machine()?;
    minerva_lab::sweep::sweep("minerva-lab-")?;
    let interrupted = signals::interrupt_flag()?;
    let programs = Programs::prepare(&arguments.rounds.output)?;
    let (seed, cases) = (drawn_seed(arguments.rounds.seed), cases(arguments)?);
    let disk = (arguments.profile.as_str(), arguments.rounds.seconds);
    let mut random = fastrand::Rng::with_seed(seed);
    let mut plays = Vec::new();
    for round in 1..=arguments.rounds.rounds.max(1) {
        let mut order: Vec<&Case> = cases.iter().collect();
        random.shuffle(&mut order);
        for case in order {
            let guests = case.scene.rates_kb.len();
            eprintln!("round {round}, {guests} guests under {}: they boot, then read for {} s", case.arm, disk.1);
            let play = case.scene.play(&programs, &case.arm, disk, None, &interrupted)?;
            let play = Play::of(&case.scene, &case.arm, &play, By::Guests);
            eprintln!("  {}", play.told());
            plays.push(play);
        }
    }
    let think = median(plays.iter().filter_map(|play| play.think).map(|think| think.0 as f64));
    let think = if think > 0.0 { Nanos(think as u64) } else { THINK };
    for round in 0..arguments.rounds.rounds.max(1) {
        for case in &cases {
            plays.extend(in_simulator(case, disk, think, seed + u64::from(round))?);
        }
    }
    told(arguments, &plays, think)
}

fn cases(arguments: &ReproduceHtbsArguments) -> anyhow::Result<Vec<Case>> {
    let block = u32::try_from(arguments.rounds.block).context("a block must be shorter than 4 GiB")?;
    let four = |arm: &String| Case { scene: Scene::four_jobs(block), arm: arm.clone() };
    let equal =
        |count: &u32| READER_ARMS.map(|arm| Case { scene: Scene::equal_readers(*count, block), arm: arm.to_owned() });
    let counts = arguments.readers.iter().filter(|count| **count > 0);
    Ok(arguments.arm.iter().map(four).chain(counts.flat_map(equal)).collect())
}

/// The same guests on the disk's model, where the simulator has such an arm.
fn in_simulator(case: &Case, disk: (&str, u64), think: Nanos, seed: u64) -> anyhow::Result<Option<Play>> {
    let Some(scheduler) = simulated(&case.arm) else { return Ok(None) };
    let guests = case.scene.guests(&case.arm, disk.0);
    let run = simulate(&Simulation {
        profile: disk.0,
        guests: &guests,
        parameters: case.scene.parameters(scheduler),
        scheduler,
        is_kernel: arm(&case.arm) == VmArm::KernelBfq,
        tag_depth: None,
        think,
        seconds: disk.1,
        seed,
    })?;
    Ok(Some(Play::of(&case.scene, &case.arm, &run, By::Simulator)))
}

fn told(arguments: &ReproduceHtbsArguments, plays: &[Play], think: Nanos) -> anyhow::Result<()> {
    let all = Plays(plays);
    let text = format!("{}\n{}", report::table(&all, think), beside::text(&report::besides(&all)));
    if arguments.rounds.output.json {
        output::line(serde_json::json!({ "plays": plays, "think_us": think.0 / 1000 }))?;
    } else {
        output::line(text.trim_end())?;
    }
    let page = report::page(&all, &arguments.profile, &text);
    std::fs::write(&arguments.report, page).with_context(|| {
        format!("failed to write {}; choose another file with --report", arguments.report.display())
    })?;
    eprintln!("report with plots: {}", arguments.report.display());
    Ok(())
}
