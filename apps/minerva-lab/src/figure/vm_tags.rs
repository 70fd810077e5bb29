//! `minerva-lab figure vm-tags`: six programs in three guests, with priorities 12 to 2 (Bai and Huang, Tag Scheduler).

use super::{Line, drawn_seed, median};
use crate::signals;
use crate::vm::Programs;
use crate::vm::tags::Scene;
use crate::vm_cli::{TagsAccess, VmTagsArguments};
use anyhow::Context as _;
use minerva_lab::figure::{VmRun, VmTagged, inversions, judge_tags, proportion_error};
use minerva_lab::workload::Access;
use std::cmp::Reverse;
use std::sync::atomic::AtomicBool;

/// Shares are within this of their part.
const ERROR_MAX: f64 = 0.1;
/// Of what they get together when nobody orders.
const AGGREGATE_MIN: f64 = 0.98;
/// A program has something queued in so many of the moments in which something is chosen.
const EMPTY_MAX: f64 = 0.01;
/// So many runs are asked for: fewer do not meet the goal.
const RUNS_MIN: usize = 20;
/// And so many seconds of each.
const SECONDS_MIN: u64 = 15;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arm {
    /// `minerva-blk` with `tag`.
    Tag,
    /// `minerva-blk` with `noop`.
    None,
    /// Plain levels of best effort in the guests, the kernel's BFQ on the host.
    Ionice,
}

/// One run.
struct Fared {
    bytes: Vec<u64>,
    tagged: Vec<VmTagged>,
    bytes_per_second: f64,
    waited: f64,
}

pub(super) fn run(arguments: &VmTagsArguments) -> anyhow::Result<()> {
    let interrupted = signals::interrupt_flag()?;
    let programs = Programs::prepare(&arguments.output)?;
    let block = u32::try_from(arguments.block).context("a block must be shorter than 4 GiB")?;
    let access = match arguments.access {
        TagsAccess::Read => Access::RandomRead,
        TagsAccess::Write => Access::RandomWrite,
    };
    let scene = Scene { has_arm64: arguments.arm64, ..Scene::three_guests(access, arguments.depth, block) };
    let mut random = fastrand::Rng::with_seed(drawn_seed(arguments.seed));
    let mut arms = vec![(Arm::Tag, Vec::new()), (Arm::None, Vec::new())];
    // Who has no program of ours does not report what it had, so that only a server's log tells.
    if !arguments.no_kernel && !arguments.arm64 {
        arms.push((Arm::Ionice, Vec::new()));
    }
    for number in 1..=arguments.runs {
        let mut order: Vec<usize> = (0..arms.len()).collect();
        random.shuffle(&mut order);
        for index in order {
            let (arm, runs) = &mut arms[index];
            eprintln!("run {number} of {}, {arm:?}: three guests boot", arguments.runs);
            let run = measure(arguments, &scene, (*arm, number), &programs, &interrupted)?;
            let run = Fared::of(&scene, &run);
            eprintln!("  {:?} bytes, {} inversions", run.bytes, inversions(&run.bytes));
            runs.push(run);
        }
    }
    let none = median(arms[1].1.iter().map(|run| run.bytes_per_second));
    arms.iter().try_for_each(|(arm, runs)| line(arguments, &scene, *arm, runs, none).print(arguments.output.json))
}

fn measure(
    arguments: &VmTagsArguments,
    scene: &Scene,
    (arm, number): (Arm, u32),
    programs: &Programs,
    interrupted: &AtomicBool,
) -> anyhow::Result<VmRun> {
    let log = arguments.logs.as_ref().map(|folder| folder.join(format!("{arm:?}-{number}.csv").to_lowercase()));
    let name = match arm {
        Arm::Tag => "tag",
        Arm::None => "noop",
        Arm::Ionice => "kernel-bfq",
    };
    let disk = (arguments.profile.as_str(), arguments.seconds);
    scene.play(programs, (name, arguments.tag_depth), disk, log, interrupted)
}

impl Fared {
    fn of(scene: &Scene, run: &VmRun) -> Self {
        let tagged = judge_tags(&run.records, &scene.all_tags(), run.begin, run.end);
        let mut programs = scene.programs(run);
        programs.sort_by_key(|program| Reverse(program.tag));
        let bytes: Vec<u64> = programs.iter().map(|program| program.bytes).collect();
        let seconds = run.end.since(run.begin).as_secs_f64();
        let bytes_per_second = bytes.iter().sum::<u64>() as f64 / seconds.max(1e-9);
        Self { bytes, tagged, bytes_per_second, waited: run.waited.guests.iter().copied().fold(0.0, f64::max) }
    }
}

fn line(arguments: &VmTagsArguments, scene: &Scene, arm: Arm, runs: &[Fared], none: f64) -> Line {
    let count: usize = runs.iter().map(|run| inversions(&run.bytes)).sum();
    let programs = scene.all_tags().len();
    let pairs = runs.len() * programs * (programs - 1) / 2;
    let error = median(runs.iter().map(|run| proportion_error(&run.tagged)));
    let error_max = runs.iter().map(|run| proportion_error(&run.tagged)).fold(0.0, f64::max);
    let aggregate = median(runs.iter().map(|run| run.bytes_per_second));
    let empty = runs.iter().flat_map(|run| &run.tagged).map(|one| one.empty).fold(0.0, f64::max);
    let queued = runs.iter().flat_map(|run| &run.tagged).map(|one| one.queued_mean).fold(f64::INFINITY, f64::min);
    let waited = runs.iter().map(|run| run.waited).fold(0.0, f64::max);
    let (name, goal) = match arm {
        Arm::Tag => ("minerva-blk with `tag`", "0 in 20 runs of 15 s, shares within 10 %, 0.98 of none's"),
        Arm::None => ("minerva-blk with `noop`", "none: shown beside"),
        Arm::Ionice => ("plain ionice under the host's BFQ", "none: shown beside"),
    };
    let is_enough = runs.len() >= RUNS_MIN && arguments.seconds >= SECONDS_MIN;
    let is_good =
        is_enough && count == 0 && error_max <= ERROR_MAX && aggregate >= AGGREGATE_MIN * none && empty <= EMPTY_MAX;
    let shares = match arm {
        Arm::Ionice => String::new(),
        _ => format!(
            "; furthest from its part {:.1} % (median of the runs {:.1} %); queue at each decision {queued:.1} at least on average, empty in {:.2} % at most",
            error_max * 100.0,
            error * 100.0,
            empty * 100.0
        ),
    };
    Line {
        id: "vm-tags",
        value: count as f64,
        unit: "inversions",
        goal: goal.to_owned(),
        met: arm != Arm::Tag || is_good,
        detail: format!(
            "{name}: of {pairs} pairs in {} runs of {} s, six programs of {} {} of {} KiB at random in three guests{} on {}{shares}; {:.2} MB/s, {:.3} of none's; guests waited for a processor {:.1} % of the time at most",
            runs.len(),
            arguments.seconds,
            arguments.depth,
            if scene.access.is_write() { "writes" } else { "reads" },
            arguments.block / 1024,
            if scene.has_arm64 { ", one of them on arm64," } else { "" },
            arguments.profile,
            aggregate / 1e6,
            aggregate / none,
            waited * 100.0,
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::{Arm, Fared, line};
    use crate::cli::{Cli, Command, FigureCommand};
    use crate::vm::tags::Scene;
    use clap::Parser;
    use minerva_lab::workload::Access;

    #[test]
    fn too_few_runs_and_too_short_ones_meet_no_goal() {
        let scene = Scene::three_guests(Access::RandomRead, 8, 1 << 18);
        let met = |seconds: &str, runs: usize| {
            let Command::Figure(FigureCommand::VmTags(arguments)) =
                Cli::parse_from(["minerva-lab", "figure", "vm-tags", "--seconds", seconds]).command
            else {
                panic!("another command");
            };
            let fared =
                || Fared { bytes: vec![6, 5, 4, 3, 2, 1], tagged: Vec::new(), bytes_per_second: 2e7, waited: 0.0 };
            let runs: Vec<Fared> = (0..runs).map(|_| fared()).collect();
            line(&arguments, &scene, Arm::Tag, &runs, 2e7).met
        };
        assert_eq!([met("15", 20), met("14", 20), met("15", 19)], [true, false, false]);
    }
}
