//! `minerva-lab figure weights-bite`

use super::{Line, median, range, steering};
use crate::cli::WeightsBiteArguments;
use crate::{output, signals};
use anyhow::Context as _;
use minerva_lab::disk::DiskSpec;
use minerva_lab::figure::{BitePlan, SHARES, weights_bite};
use minerva_lab::workload::{Access, WorkerProgram, blkio_version};
use minerva_model::{CgroupVersion, Nanos};
use std::time::Duration;

/// Within this part of 8:1 the weights bite.
const ERROR_MAX: f64 = 0.15;
/// So many windows are asked for: fewer meet no goal.
const WINDOWS_MIN: usize = 3;
const GOAL: &str = "8 within 15 % in the median of 3 windows";
/// An emulated processor takes its time.
const GUEST_SECONDS: u64 = 20;
/// Besides the windows.
const GUEST_PATIENCE: Duration = Duration::from_secs(240);
const MEANT: f64 = SHARES[0] as f64 / SHARES[1] as f64;

pub(super) fn run(arguments: &WeightsBiteArguments) -> anyhow::Result<()> {
    let steering = steering(arguments.raw.then(|| SHARES.to_vec()), &arguments.output)?;
    let settings = arguments.settings.iter().map(|setting| {
        let (file, value) = setting.split_once('=').with_context(|| format!("`{setting}` is not FILE=VALUE"))?;
        Ok((file.to_owned(), value.to_owned()))
    });
    let settings = settings.collect::<anyhow::Result<Vec<_>>>()?;
    let interrupted = signals::interrupt_flag()?;
    let program = WorkerProgram::own()?;
    for block in &arguments.block {
        let mut disk = DiskSpec::new(format!("bite-{}", std::process::id()), arguments.profile.clone());
        disk.queue_depth = arguments.queue_depth;
        let plan = BitePlan {
            disk,
            block_bytes: u32::try_from(*block).context("a block of 4 GiB or more cannot be read at once")?,
            access: if arguments.random { Access::RandomRead } else { Access::SequentialRead },
            window: Nanos::from_secs(arguments.seconds.max(1)),
            windows: arguments.windows,
            settings: settings.clone(),
        };
        let windows = weights_bite(&plan, &program, steering.as_ref(), &interrupted)?;
        let ratios: Vec<f64> = windows.iter().map(|window| window.ratio).collect();
        let ratio = median(ratios.iter().copied());
        let order = if arguments.random { "random" } else { "sequential" };
        let line = Line {
            id: "weights-bite",
            value: ratio,
            unit: "ratio",
            goal: GOAL.to_owned(),
            met: is_met(&ratios),
            detail: format!(
                "{}, cgroup {}, {order} reads of {} KiB: median of {} windows of {} s ({}), {:.2} and {:.2} MB/s",
                steering.name(),
                version(),
                block >> 10,
                windows.len(),
                arguments.seconds,
                range(&ratios),
                median(windows.iter().map(|window| window.heavy_mb_per_s)),
                median(windows.iter().map(|window| window.light_mb_per_s)),
            ),
        };
        line.print(arguments.output.json)?;
    }
    // In a guest the unified hierarchy is there already.
    if blkio_version() == CgroupVersion::V1 && !arguments.raw && !arguments.no_guest {
        in_guest(arguments)?;
    }
    Ok(())
}

/// The ratios of the windows are enough, and their median is near what is meant.
fn is_met(ratios: &[f64]) -> bool {
    let ratio = median(ratios.iter().copied());
    ratios.len() >= WINDOWS_MIN && (ratio - MEANT).abs() / MEANT <= ERROR_MAX
}

/// The same in a guest, whose kernel has the io controller of cgroup v2. Processors are emulated there, so the disk is one
/// that is slow beside them, and blocks are large.
fn in_guest(arguments: &WeightsBiteArguments) -> anyhow::Result<()> {
    let (seconds, windows) = (arguments.seconds.max(GUEST_SECONDS), arguments.windows);
    let figure = format!("weights-bite --windows {windows} --seconds {seconds} --block 256K");
    let patience = GUEST_PATIENCE + Duration::from_secs(seconds.saturating_mul(windows.into()));
    match super::in_guest::figure(&figure, &arguments.output, patience)? {
        Ok(lines) => output::line(lines),
        // A figure that cannot be measured somewhere says why.
        Err(why) => {
            let (detail, goal) = (format!("not measured on cgroup v2: {why}"), GOAL.to_owned());
            let line = Line { id: "weights-bite", value: f64::NAN, unit: "ratio", goal, met: false, detail };
            line.print(arguments.output.json)
        }
    }
}

fn version() -> &'static str {
    match blkio_version() {
        CgroupVersion::V1 => "v1",
        CgroupVersion::V2 => "v2",
        CgroupVersion::Absent => "absent",
    }
}

#[cfg(test)]
mod tests {
    use super::is_met;

    #[test]
    fn too_few_windows_meet_no_goal() {
        assert_eq!([is_met(&[8.1, 7.9, 8.0]), is_met(&[8.0, 8.0]), is_met(&[8.0, 5.0, 5.0])], [true, false, false]);
    }
}
