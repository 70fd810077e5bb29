//! `minerva-lab figure slice-cost`, `memory` and `idle-writes`: one kind of run, of which each prints its part.

use super::Line;
use crate::cli::CrowdArguments;
use crate::{binaries, signals};
use minerva_lab::figure::{CrowdPlan, CrowdResult, crowd};
use minerva_lab::workload::WorkerProgram;

/// The design's number of tenants, for which the budgets are.
const TENANTS: usize = 1200;
/// While nobody uses the disk, with a hundred who do, and when all do.
const IDLE_MS_MAX: f64 = 8.0;
const BUSY_MS_MAX: f64 = 10.0;
const ALL_BUSY_MS_MAX: f64 = 100.0;
const BUSY: usize = 100;
const PROCESSES: u32 = 20;
const MEMORY_MIB_MAX: f64 = 150.0;
/// So many slices are asked for: fewer meet no goal.
const SLICES_MIN: usize = 20;

/// Tenants, active ones, and processes of each of those.
type Case = (usize, usize, u32);
const ALL_BUSY: Case = (TENANTS, TENANTS, PROCESSES);

pub(super) fn slice_cost(arguments: &CrowdArguments) -> anyhow::Result<()> {
    measure(arguments, &[(10, 10, 1), (TENANTS, BUSY, 1), (10_000, BUSY, 1), ALL_BUSY], |result, case| {
        slice_cost_lines(result, case).into()
    })
}

fn slice_cost_lines(result: &CrowdResult, (tenants, active, processes): Case) -> [Line; 2] {
    // Linear above the design's number; below it there is room for what does not depend on the tenants.
    let scale = (tenants as f64 / TENANTS as f64).max(1.0);
    let line = |costs: &[f64], most: f64, what: &str| {
        let mean = costs.iter().sum::<f64>() / costs.len().max(1) as f64;
        let p99 = costs.get((costs.len() * 99).div_ceil(100).saturating_sub(1)).copied().unwrap_or(0.0);
        Line {
            id: "slice-cost",
            value: mean,
            unit: "ms CPU a slice",
            goal: format!("at most {most:.0} at {tenants} tenants, {what}, in {SLICES_MIN} slices"),
            met: costs.len() >= SLICES_MIN && mean <= most,
            detail: format!(
                "{tenants} cgroups, {what}: mean {mean:.1} ms, p99 {p99:.1} ms over {} slices",
                costs.len()
            ),
        }
    };
    let busy_max = if active > BUSY { ALL_BUSY_MS_MAX } else { BUSY_MS_MAX };
    let busy = match processes {
        1 => format!("{active} busy"),
        _ => format!("{active} busy with {processes} processes each"),
    };
    [line(&result.cpu_ms, busy_max * scale, &busy), line(&result.idle_cpu_ms, IDLE_MS_MAX * scale, "all idle")]
}

/// Slices with active tenants and slices with idle ones are each as many as are asked for.
fn is_enough(result: &CrowdResult) -> bool {
    result.cpu_ms.len() >= SLICES_MIN && result.idle_cpu_ms.len() >= SLICES_MIN
}

pub(super) fn memory(arguments: &CrowdArguments) -> anyhow::Result<()> {
    measure(arguments, &[(TENANTS, 16, 1), ALL_BUSY], |result, case| vec![memory_line(result, case)])
}

fn memory_line(result: &CrowdResult, (tenants, active, processes): Case) -> Line {
    let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let most = MEMORY_MIB_MAX * (tenants as f64 / TENANTS as f64).max(1.0);
    // A limit is one at any time.
    let value = mebibytes(result.resident_bytes_max);
    Line {
        id: "memory",
        value,
        unit: "MiB resident",
        goal: format!("at most {most:.0} at {tenants} tenants, in {SLICES_MIN} slices"),
        met: is_enough(result) && value <= most,
        detail: format!(
            "{tenants} cgroups, {active} active with processes: {processes} each: {value:.1} MiB at most, {:.1} MiB at the end",
            mebibytes(result.resident_bytes)
        ),
    }
}

pub(super) fn idle_writes(arguments: &CrowdArguments) -> anyhow::Result<()> {
    measure(arguments, &[(TENANTS, 16, 1)], |result, case| vec![idle_writes_line(result, case)])
}

fn idle_writes_line(result: &CrowdResult, (tenants, ..): Case) -> Line {
    Line {
        id: "idle-writes",
        // No unchanged slice, no measurement.
        value: if result.unchanged_slices > 0 { result.unchanged_writes as f64 } else { f64::NAN },
        unit: "writes",
        goal: format!("0 in {SLICES_MIN} slices"),
        met: is_enough(result) && result.unchanged_writes == 0 && result.unchanged_slices > 0,
        detail: format!(
            "{tenants} cgroups: in {} slices in which no decision changed, of {}; {} writes in all the run",
            result.unchanged_slices,
            result.cpu_ms.len() + result.idle_cpu_ms.len(),
            result.writes
        ),
    }
}

fn measure(
    arguments: &CrowdArguments,
    default: &[Case],
    lines: impl Fn(&CrowdResult, Case) -> Vec<Line>,
) -> anyhow::Result<()> {
    let daemon = binaries::minervad(&arguments.output)?;
    let interrupted = signals::interrupt_flag()?;
    let program = WorkerProgram::own()?;
    let asked = arguments.tenants.as_ref().map(|counts| {
        let case = |tenants: &usize| (*tenants, arguments.active.min(*tenants), arguments.processes);
        counts.iter().map(case).collect::<Vec<Case>>()
    });
    for &case in asked.as_deref().unwrap_or(default) {
        let (tenants, active, processes) = case;
        let plan = CrowdPlan { tenants, active, processes, slices: arguments.slices, daemon: daemon.clone() };
        let result = crowd(&plan, &program, &interrupted)?;
        for line in lines(&result, case) {
            line.print(arguments.output.json)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{idle_writes_line, memory_line, slice_cost_lines};
    use minerva_lab::figure::CrowdResult;

    fn result(slices: usize, unchanged_slices: u32) -> CrowdResult {
        CrowdResult {
            tenants: 1200,
            active: 16,
            cpu_ms: vec![1.0; slices],
            idle_cpu_ms: vec![1.0; slices],
            resident_bytes: 1 << 20,
            resident_bytes_max: 1 << 20,
            unchanged_slices,
            unchanged_writes: 0,
            writes: 9,
        }
    }

    #[test]
    fn too_few_slices_and_none_that_is_unchanged_meet_no_goal() {
        let met = |slices, unchanged| {
            let (result, case) = (result(slices, unchanged), (1200, 16, 1));
            let [busy, idle] = slice_cost_lines(&result, case);
            [busy.met, idle.met, memory_line(&result, case).met, idle_writes_line(&result, case).met]
        };
        assert_eq!([met(20, 5), met(19, 5)], [[true; 4], [false; 4]]);
        assert_eq!(met(20, 0), [true, true, true, false]);
        assert!(idle_writes_line(&result(20, 0), (1200, 16, 1)).value.is_nan(), "nothing was measured");
    }
}
