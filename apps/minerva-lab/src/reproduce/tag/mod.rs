//! `minerva-lab reproduce tag`: Bai and Huang with real guests, and the same guests in the simulator.

mod plays;
mod report;

use super::beside::{self, By};
use crate::figure::drawn_seed;
use crate::vm::simulated::{Simulation, simulate};
use crate::vm::tags::Scene;
use crate::vm::{Programs, contracts};
use crate::vm_cli::ReproduceTagArguments;
use crate::{output, signals};
use anyhow::Context as _;
use minerva_blocksched::SchedulerName;
use minerva_lab::workload::Access;
use minerva_model::Nanos;
use plays::{Play, Plays};

/// How long a program takes to ask again, where it has one request under way.
const THINK: Nanos = Nanos::from_micros(50);

/// A scene, which of the paper's figures it is, and who orders.
struct Case {
    figure: u8,
    scene: Scene,
    arm: &'static str,
}

pub(crate) fn run(arguments: &ReproduceTagArguments) -> anyhow::Result<()> {
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
            eprintln!(
                "round {round}, Fig. {} under {}: {} guests boot, then read for {} s",
                case.figure,
                case.arm,
                case.scene.tags.len(),
                disk.1
            );
            let arm = (case.arm, arguments.tag_depth);
            let run = case.scene.play(&programs, arm, disk, None, &interrupted)?;
            let play = Play::of((case.figure, case.arm), &case.scene, &run, By::Guests);
            eprintln!("  {:.2} MB/s, {} inversions", play.mb_per_second, play.inversions.len());
            plays.push(play);
        }
    }
    for round in 0..arguments.rounds.rounds.max(1) {
        for case in &cases {
            plays.push(in_simulator(case, arguments.tag_depth, disk, seed + u64::from(round))?);
        }
    }
    told(arguments, &plays)
}

fn cases(arguments: &ReproduceTagArguments) -> anyhow::Result<Vec<Case>> {
    let block = u32::try_from(arguments.rounds.block).context("a block must be shorter than 4 GiB")?;
    // As the paper's programs, which read files of 1 GB with a stride of 256 KB.
    let two = Scene::two_guests(Access::SequentialRead, arguments.depth, block);
    let three = Scene { nested: "bfq", ..Scene::three_guests(Access::SequentialRead, arguments.depth, block) };
    let seventh = ["kernel-bfq", "tag"].map(|arm| Case { figure: 7, scene: two.clone(), arm });
    let eighth = ["noop", "kernel-bfq", "tag"].map(|arm| Case { figure: 8, scene: three.clone(), arm });
    let is_wanted = |case: &Case| arguments.arm.iter().any(|arm| arm == case.arm);
    Ok(seventh.into_iter().chain(eighth).filter(is_wanted).collect())
}

fn in_simulator(case: &Case, tag_depth: Option<u32>, disk: (&str, u64), seed: u64) -> anyhow::Result<Play> {
    let scheduler = contracts::simulated(case.arm).unwrap_or(SchedulerName::Noop);
    let guests = case.scene.guests(case.arm, disk.0);
    let run = simulate(&Simulation {
        profile: disk.0,
        guests: &guests,
        parameters: case.scene.parameters(),
        scheduler,
        is_kernel: case.arm == "kernel-bfq",
        tag_depth,
        think: THINK,
        seconds: disk.1,
        seed,
    })?;
    Ok(Play::of((case.figure, case.arm), &case.scene, &run, By::Simulator))
}

fn told(arguments: &ReproduceTagArguments, plays: &[Play]) -> anyhow::Result<()> {
    let all = Plays(plays);
    let text = format!("{}\n{}", report::table(&all), beside::text(&report::besides(&all)));
    if arguments.rounds.output.json {
        output::line(serde_json::json!({ "plays": plays }))?;
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
