//! Runs of batch jobs in the form of the contract.

use minerva_api::v1;
use minerva_model::{JobPhase, JobStep};
use minerva_store::JobRunRow;

/// A phase of a run, or of what a job did so far.
pub fn phase(phase: &JobPhase) -> v1::JobPhase {
    v1::JobPhase {
        kind: phase.kind.as_str().to_owned(),
        seconds: phase.seconds,
        read_bytes_per_second: phase.read_bytes_per_second,
        write_bytes_per_second: phase.write_bytes_per_second,
    }
}

/// A run that was kept, for operators.
pub(crate) fn run(row: JobRunRow) -> v1::JobRun {
    let JobRunRow { tenant_name, device_name, ended_unix_ms, declared_bytes, profile, .. } = row;
    let step = |step: JobStep| v1::JobStep {
        seconds: step.seconds,
        read_bytes: step.read_bytes,
        write_bytes: step.write_bytes,
        cores: step.cores,
        memory_bytes: step.memory_bytes,
    };
    v1::JobRun {
        ended_unix_ns: ended_unix_ms.saturating_mul(1_000_000),
        tenant: tenant_name,
        device: device_name,
        declared_bytes,
        seconds: profile.seconds,
        read_bytes: profile.read_bytes,
        write_bytes: profile.write_bytes,
        phases: profile.phases.iter().map(phase).collect(),
        steps: profile.steps.into_iter().map(step).collect(),
        cpu_correlation: profile.cpu_correlation,
        memory_correlation: profile.memory_correlation,
        disk_permille: (profile.disk_part.clamp(0.0, 1.0) * 1000.0).round() as u32,
        intensity: profile.intensity.as_str().to_owned(),
    }
}
