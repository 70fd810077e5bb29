//! `minerva-lab figure undo-bites`

use super::{Line, in_guest, median};
use crate::cli::UndoBitesArguments;
use crate::{binaries, output, signals};
use anyhow::bail;
use minerva_lab::figure::{UndoBy, UndoPlan, UndoResult, undo_bites};
use minerva_lab::workload::{WorkerProgram, blkio_version};
use minerva_model::{BackEnd, CgroupVersion, Nanos};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Within this part of what it was, what each reader gets is back.
const ERROR_MAX: f64 = 0.1;
/// The shares are 8:1. What did not come near that under the daemon shows nothing by being undone.
const RATIO_MIN: f64 = 3.0;
/// So many rounds are asked for: fewer do not meet the goal.
const ROUNDS_MIN: usize = 3;
const GOAL: &str = "at most 10 for each reader, and at least 3:1 while steered, in the median of three rounds";
/// For a guest to boot, and for one run there; processors are emulated.
const BOOT: Duration = Duration::from_secs(180);
const RUN: Duration = Duration::from_secs(120);

const BACK_ENDS: [(BackEnd, CgroupVersion); 5] = [
    (BackEnd::BfqV1, CgroupVersion::V1),
    (BackEnd::ThrottleV1, CgroupVersion::V1),
    (BackEnd::Bfq, CgroupVersion::V2),
    (BackEnd::IoCost, CgroupVersion::V2),
    (BackEnd::Max, CgroupVersion::V2),
];

pub(super) fn run(arguments: &UndoBitesArguments) -> anyhow::Result<()> {
    let known = BACK_ENDS.map(|(back_end, _)| back_end.as_str());
    if let Some(unknown) = arguments.back_end.iter().find(|name| !known.contains(&name.as_str())) {
        bail!("`{unknown}` is not a back end that writes: there are {}", known.join(", "));
    }
    let interrupted = signals::interrupt_flag()?;
    let program = WorkerProgram::own()?;
    for (back_end, version) in BACK_ENDS {
        let name = back_end.as_str();
        if !arguments.back_end.is_empty() && !arguments.back_end.iter().any(|wanted| wanted == name) {
            continue;
        }
        if blkio_version() == version {
            measure(arguments, back_end, &program, &interrupted)?;
        } else if arguments.no_guest || version == CgroupVersion::V1 {
            // In a guest the unified hierarchy is all there is.
            not_measured(arguments, &format!("{name}: not measured, it needs cgroup {version:?} here"))?;
        } else {
            measure_in_guest(arguments, name)?;
        }
    }
    Ok(())
}

/// On this machine.
fn measure(
    arguments: &UndoBitesArguments,
    back_end: BackEnd,
    program: &WorkerProgram,
    interrupted: &AtomicBool,
) -> anyhow::Result<()> {
    for by in UndoBy::ALL.into_iter().filter(|by| arguments.by.iter().any(|word| word == by.word())) {
        let plan = UndoPlan {
            by,
            back_end,
            profile: arguments.profile.clone(),
            window: Nanos::from_secs(arguments.seconds.max(1)),
            daemon: binaries::minervad(&arguments.output)?,
        };
        let mut rounds = Vec::new();
        for round in 1..=arguments.rounds {
            let result = undo_bites(&plan, program, interrupted)?;
            eprintln!("{}, by {}, round {round}: {}", back_end.as_str(), by.word(), rates(&result));
            rounds.push(result);
        }
        line(arguments, &plan, &rounds).print(arguments.output.json)?;
    }
    Ok(())
}

/// The median of the rounds decides, and every round is told.
fn line(arguments: &UndoBitesArguments, plan: &UndoPlan, rounds: &[UndoResult]) -> Line {
    let error = median(rounds.iter().map(UndoResult::error));
    let ratio = median(rounds.iter().map(UndoResult::ratio_during));
    let off: Vec<String> = rounds.iter().map(|round| format!("{:.1}", round.error() * 100.0)).collect();
    let each: Vec<String> = rounds.iter().map(rates).collect();
    Line {
        id: "undo-bites",
        value: error * 100.0,
        unit: "% off",
        goal: GOAL.to_owned(),
        met: rounds.len() >= ROUNDS_MIN && error <= ERROR_MAX && ratio >= RATIO_MIN,
        detail: format!(
            "{}, by {}, windows of {} s on {}: median of {} rounds ({} %), {ratio:.1}:1 while steered. {}",
            plan.back_end.as_str(),
            plan.by.word(),
            arguments.seconds,
            arguments.profile,
            rounds.len(),
            off.join(", "),
            each.join("; "),
        ),
    }
}

fn rates(result: &UndoResult) -> String {
    let of = |rates: [f64; 2]| format!("{:.2} and {:.2} MB/s", rates[0], rates[1]);
    let UndoResult { before, during, after } = *result;
    format!("{} before the first write, {} at shares 8:1, {} after", of(before), of(during), of(after))
}

fn measure_in_guest(arguments: &UndoBitesArguments, name: &str) -> anyhow::Result<()> {
    let UndoBitesArguments { seconds, profile, rounds, .. } = arguments;
    let by = arguments.by.join(",");
    let figure =
        format!("undo-bites --back-end {name} --seconds {seconds} --profile {profile} --rounds {rounds} --by {by}");
    let patience = BOOT + RUN * rounds.max(&1).saturating_mul(u32::try_from(arguments.by.len()).unwrap_or(u32::MAX));
    match in_guest::figure(&figure, &arguments.output, patience)? {
        Ok(lines) => output::line(lines)?,
        Err(why) => not_measured(arguments, &format!("{name}: not measured, as there is no guest: {why}"))?,
    }
    Ok(())
}

fn not_measured(arguments: &UndoBitesArguments, detail: &str) -> anyhow::Result<()> {
    let (detail, goal) = (detail.to_owned(), GOAL.to_owned());
    Line { id: "undo-bites", value: f64::NAN, unit: "% off", goal, met: false, detail }.print(arguments.output.json)
}

#[cfg(test)]
mod tests {
    use super::line;
    use crate::cli::{Cli, Command, FigureCommand, UndoBitesArguments};
    use clap::Parser;
    use minerva_lab::figure::{UndoBy, UndoPlan, UndoResult};
    use minerva_model::{BackEnd, Nanos};

    fn arguments() -> UndoBitesArguments {
        match Cli::parse_from(["minerva-lab", "figure", "undo-bites"]).command {
            Command::Figure(FigureCommand::UndoBites(arguments)) => arguments,
            other => panic!("another command: {other:?}"),
        }
    }

    #[test]
    fn the_median_of_the_rounds_decides_and_every_round_is_told() {
        let plan = UndoPlan {
            by: UndoBy::Mode,
            back_end: BackEnd::BfqV1,
            profile: "sata7200-80g".to_owned(),
            window: Nanos::SECOND,
            daemon: "minervad".into(),
        };
        let round = |after: [f64; 2]| UndoResult { before: [10.0, 10.0], during: [16.0, 2.0], after };
        let judged = |off: usize| {
            let rounds: Vec<UndoResult> =
                (0..3).map(|index| if index < off { round([15.0, 5.0]) } else { round([10.1, 9.9]) }).collect();
            line(&arguments(), &plan, &rounds)
        };
        let one_off = judged(1);
        assert!(one_off.met && one_off.detail.contains("by mode") && one_off.detail.contains("(50.0, 1.0, 1.0 %)"));
        assert!(!judged(2).met);
    }
}
