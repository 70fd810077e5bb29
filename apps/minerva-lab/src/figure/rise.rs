//! `minerva-lab figure rise`

use super::Line;
use crate::cli::RiseArguments;
use crate::signals;
use minerva_lab::figure::{RisePlan, rise};
use minerva_lab::workload::WorkerProgram;
use minerva_model::Nanos;

/// A boost, or the end of one, is to show within so many seconds.
const SECONDS_MAX: f64 = 10.0;

pub(super) fn run(arguments: &RiseArguments) -> anyhow::Result<()> {
    let interrupted = signals::interrupt_flag()?;
    let program = WorkerProgram::own()?;
    for weight in &arguments.weight {
        let plan = RisePlan {
            profile: arguments.profile.clone(),
            weight: *weight,
            others: arguments.others,
            watched: Nanos::from_secs(arguments.seconds),
        };
        let result = rise(&plan, &program, &interrupted)?;
        let line = Line {
            id: "rise",
            value: result.after_s.unwrap_or(f64::INFINITY).min(arguments.seconds as f64),
            unit: "s until it shows",
            goal: format!("at most {SECONDS_MAX}"),
            met: result.after_s.is_some_and(|after| after <= SECONDS_MAX),
            detail: format!(
                "{}, from weight {weight} to 100 beside {} of 100: {} until it had half an equal part for two seconds; its MB/s \
                 before {:.2}, at the end {:.2}, of all {:.1}",
                arguments.profile,
                arguments.others,
                result.after_s.map_or_else(|| format!("not within {} s", arguments.seconds), |s| format!("{s:.1} s")),
                result.before_mb_per_s,
                result.after_mb_per_s,
                result.total_mb_per_s,
            ),
        };
        line.print(arguments.output.json)?;
    }
    Ok(())
}
