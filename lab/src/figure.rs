//! Measurements behind the figures: one function a figure.

use crate::clock::boottime;
use crate::disk::{Disk, DiskSpec};
use crate::error::{LabError, Result};
use crate::scene::{Steering, SteeringContext, TenantInScene};
use crate::workload::{Access, CgroupParent, Compute, Progress, Worker, WorkerProgram, WorkloadSpec};
use minerva_model::Nanos;
use serde::Serialize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The shares of the two readers.
pub const SHARES: [u32; 2] = [800, 100];
/// BFQ needs a few budgets to learn the disk's peak rate, and a controller a few slices to see the readers.
const WARM_UP: Nanos = Nanos::from_secs(3);

/// How to measure whether weights bite.
#[derive(Clone, Debug)]
pub struct BitePlan {
    /// The disk; its elevator must be `bfq`.
    pub disk: DiskSpec,
    /// Bytes a request.
    pub block_bytes: u32,
    /// Order of the reads.
    pub access: Access,
    /// How long to measure, after a warm-up.
    pub window: Nanos,
    /// Settings of the queue, as file below `queue/` and value.
    pub settings: Vec<(String, String)>,
}

/// What two equal readers at shares 800:100 got.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BiteResult {
    /// Bytes a request.
    pub block_bytes: u32,
    /// Order of the reads.
    pub access: Access,
    /// Megabytes a second of the reader with share 800.
    pub heavy_mb_per_s: f64,
    /// Megabytes a second of the reader with share 100.
    pub light_mb_per_s: f64,
    /// The one through the other; 8 is meant.
    pub ratio: f64,
    /// How far the ratio is from 8, as a part of 8.
    pub error: f64,
    /// Both together.
    pub total_mb_per_s: f64,
}

/// Runs two equal readers on a fresh emulated disk and compares what they get. Their regions lie at the start and in the
/// middle of the disk, so that every change between them costs a seek. `steering` is to weigh them by [`SHARES`]:
/// [`FixedWeights`](crate::scene::FixedWeights) shows what the kernel alone makes of them.
pub fn weights_bite(
    plan: &BitePlan,
    program: &WorkerProgram,
    steering: &dyn Steering,
    interrupted: &AtomicBool,
) -> Result<BiteResult> {
    let disk = Disk::create(&plan.disk)?;
    let queue = disk.queue();
    for (file, value) in &plan.settings {
        queue.write(file, value)?;
    }
    let parent = CgroupParent::create("minerva-lab-bite")?;
    let names = ["heavy", "light"];
    let groups = [parent.tenant(names[0])?, parent.tenant(names[1])?];
    let tenants = names.iter().zip(SHARES);
    let tenants =
        tenants.map(|(name, share)| TenantInScene { name: (*name).to_owned(), weight_percent: share }).collect();
    let mut steered = steering.start(&SteeringContext { disk: disk.info(), parent: &parent, tenants })?;
    let half = disk.info().size_bytes / 2 / u64::from(plan.block_bytes) * u64::from(plan.block_bytes);
    let mut workers = Vec::new();
    for (index, (name, group)) in names.iter().zip(&groups).enumerate() {
        let spec = WorkloadSpec {
            tenant: (*name).to_owned(),
            path: disk.device().to_owned(),
            access: plan.access,
            bytes: None,
            block_bytes: plan.block_bytes,
            region_start: half * index as u64,
            // The same outer part of each half: readers at unlike speeds would not be equal.
            region_bytes: half / 4 / u64::from(plan.block_bytes) * u64::from(plan.block_bytes),
            compute: Compute::Nothing,
            think: Nanos::ZERO,
            seed: 1 + index as u64,
        };
        workers.push(Worker::spawn(program, &spec, Some(group))?);
    }
    workers.iter_mut().try_for_each(Worker::start)?;
    let from = boottime() + WARM_UP;
    let until = from + plan.window;
    while boottime() < until {
        if interrupted.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        steered.check()?;
        std::thread::sleep(Duration::from_millis(50));
    }
    workers.iter_mut().for_each(Worker::stop);
    let mut rates = Vec::new();
    for worker in workers {
        let progress = worker.wait()?.progress;
        let bytes = bytes_at(&progress, until) - bytes_at(&progress, from);
        rates.push(bytes / plan.window.as_secs_f64() / 1e6);
    }
    let ratio = rates[0] / rates[1].max(f64::MIN_POSITIVE);
    let meant = f64::from(SHARES[0]) / f64::from(SHARES[1]);
    Ok(BiteResult {
        block_bytes: plan.block_bytes,
        access: plan.access,
        heavy_mb_per_s: rates[0],
        light_mb_per_s: rates[1],
        ratio,
        error: (ratio - meant).abs() / meant,
        total_mb_per_s: rates[0] + rates[1],
    })
}

/// Bytes done at an instant, by straight lines between the reports: zero before the first, all after the last.
pub(crate) fn bytes_at(progress: &[Progress], at: Nanos) -> f64 {
    let after = progress.partition_point(|report| report.at <= at);
    let Some(left) = after.checked_sub(1).map(|index| progress[index]) else { return 0.0 };
    let Some(right) = progress.get(after) else { return left.bytes as f64 };
    let part = at.since(left.at).0 as f64 / right.at.since(left.at).0.max(1) as f64;
    left.bytes as f64 + part * (right.bytes.saturating_sub(left.bytes)) as f64
}

#[cfg(test)]
mod tests {
    use super::bytes_at;
    use crate::workload::Progress;
    use minerva_model::Nanos;

    #[test]
    fn bytes_between_reports_lie_on_a_line() {
        let progress = [(10, 0), (20, 100), (30, 100), (40, 400)].map(|(at, bytes)| Progress { at: Nanos(at), bytes });
        let read = |at| bytes_at(&progress, Nanos(at));
        assert_eq!([read(5), read(10), read(15), read(25), read(35), read(99)], [0.0, 0.0, 50.0, 100.0, 250.0, 400.0]);
        assert_eq!(bytes_at(&[], Nanos(3)), 0.0);
    }
}
