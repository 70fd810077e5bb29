//! `minerva-lab figure undo-bites`

use super::{Line, in_guest};
use crate::cli::UndoBitesArguments;
use crate::{binaries, output, signals};
use anyhow::bail;
use minerva_lab::figure::{UndoPlan, undo_bites};
use minerva_lab::workload::{WorkerProgram, blkio_version};
use minerva_model::{BackEnd, CgroupVersion, Nanos};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Within this part of what it was, the first reader's share is back.
const ERROR_MAX: f64 = 0.1;
/// The shares are 8:1. What did not come near that under the daemon shows nothing by being undone.
const RATIO_MIN: f64 = 3.0;
/// For one back end; processors are emulated.
const GUEST_PATIENCE: Duration = Duration::from_secs(300);

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
    let plan = UndoPlan {
        back_end,
        profile: arguments.profile.clone(),
        window: Nanos::from_secs(arguments.seconds.max(1)),
        daemon: binaries::minervad(&arguments.output)?,
    };
    let result = undo_bites(&plan, program, interrupted)?;
    let of = |rates: [f64; 2]| format!("{:.2} and {:.2} MB/s", rates[0], rates[1]);
    let line = Line {
        id: "undo-bites",
        value: result.error() * 100.0,
        unit: "% off",
        goal: "10, and at least 3:1 while steered".to_owned(),
        met: result.error() <= ERROR_MAX && result.ratio_during() >= RATIO_MIN,
        detail: format!(
            "{}, windows of {} s on {}: {} before the first write, {} at shares 8:1, {} after the end",
            back_end.as_str(),
            arguments.seconds,
            arguments.profile,
            of(result.before),
            of(result.during),
            of(result.after),
        ),
    };
    line.print(arguments.output.json)
}

fn measure_in_guest(arguments: &UndoBitesArguments, name: &str) -> anyhow::Result<()> {
    let UndoBitesArguments { seconds, profile, .. } = arguments;
    let figure = format!("undo-bites --back-end {name} --seconds {seconds} --profile {profile}");
    match in_guest::figure(&figure, &arguments.output, GUEST_PATIENCE)? {
        Ok(lines) => output::line(lines)?,
        Err(why) => not_measured(arguments, &format!("{name}: not measured, as there is no guest: {why}"))?,
    }
    Ok(())
}

fn not_measured(arguments: &UndoBitesArguments, detail: &str) -> anyhow::Result<()> {
    let (detail, goal) = (detail.to_owned(), "10, and at least 3:1 while steered".to_owned());
    Line { id: "undo-bites", value: f64::NAN, unit: "% off", goal, met: false, detail }.print(arguments.output.json)
}
