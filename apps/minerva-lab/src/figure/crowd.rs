//! `minerva-lab figure slice-cost`, `memory` and `idle-writes`: one kind of run, of which each prints its part.

use super::Line;
use crate::cli::CrowdArguments;
use crate::{binaries, signals};
use minerva_lab::figure::{CrowdPlan, CrowdResult, crowd};
use minerva_lab::workload::WorkerProgram;

/// The design's number of tenants, for which the budgets are.
const TENANTS: usize = 1200;
const SLICE_MS_MAX: f64 = 50.0;
const MEMORY_MIB_MAX: f64 = 150.0;

pub(super) fn slice_cost(arguments: &CrowdArguments) -> anyhow::Result<()> {
    measure(arguments, &[10, TENANTS, 10_000], |result, tenants| {
        let mean = result.cpu_ms_mean();
        // Linear above the design's number; below it there is room for what does not depend on the tenants.
        let most = SLICE_MS_MAX * (tenants as f64 / TENANTS as f64).max(1.0);
        let idle = result.idle_cpu_ms.iter().sum::<f64>() / result.idle_cpu_ms.len().max(1) as f64;
        Line {
            id: "slice-cost",
            value: mean,
            unit: "ms CPU a slice",
            goal: format!("at most {most:.0} at {tenants} tenants"),
            met: mean <= most,
            detail: format!(
                "{tenants} cgroups, {} active: mean {mean:.1} ms, p99 {:.1} ms over {} slices; {idle:.1} ms when all are idle",
                result.active,
                result.cpu_ms_p99(),
                result.cpu_ms.len(),
            ),
        }
    })
}

pub(super) fn memory(arguments: &CrowdArguments) -> anyhow::Result<()> {
    measure(arguments, &[TENANTS], |result, tenants| {
        let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let most = MEMORY_MIB_MAX * (tenants as f64 / TENANTS as f64).max(1.0);
        let value = mebibytes(result.resident_bytes);
        Line {
            id: "memory",
            value,
            unit: "MiB resident",
            goal: format!("at most {most:.0} at {tenants} tenants"),
            met: value <= most,
            detail: format!(
                "{tenants} cgroups, {} active: {value:.1} MiB at the end, {:.1} MiB at most",
                result.active,
                mebibytes(result.resident_bytes_max)
            ),
        }
    })
}

pub(super) fn idle_writes(arguments: &CrowdArguments) -> anyhow::Result<()> {
    measure(arguments, &[TENANTS], |result, tenants| Line {
        id: "idle-writes",
        value: result.unchanged_writes as f64,
        unit: "writes",
        goal: "0".to_owned(),
        // No unchanged slice, no measurement.
        met: result.unchanged_writes == 0 && result.unchanged_slices > 0,
        detail: format!(
            "{tenants} cgroups: in {} slices in which no decision changed, of {}; {} writes in all the run",
            result.unchanged_slices,
            result.cpu_ms.len() + result.idle_cpu_ms.len(),
            result.writes
        ),
    })
}

fn measure(
    arguments: &CrowdArguments,
    default: &[usize],
    line: impl Fn(&CrowdResult, usize) -> Line,
) -> anyhow::Result<()> {
    let daemon = binaries::minervad(&arguments.output)?;
    let interrupted = signals::interrupt_flag()?;
    let program = WorkerProgram::own()?;
    for &tenants in arguments.tenants.as_deref().unwrap_or(default) {
        let plan = CrowdPlan { tenants, slices: arguments.slices, daemon: daemon.clone() };
        let result = crowd(&plan, &program, &interrupted)?;
        line(&result, tenants).print(arguments.output.json)?;
    }
    Ok(())
}
