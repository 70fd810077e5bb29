//! Whether weights bite: two equal readers at unequal shares.

use crate::clock::boottime;
use crate::disk::{Disk, DiskSpec};
use crate::error::{LabError, Result};
use crate::scene::{Steering, SteeringContext, TenantInScene};
use crate::workload::bytes_at;
use crate::workload::{Access, Appearance, CgroupParent, Compute, Progress, Worker, WorkerProgram, WorkloadSpec};
use minerva_model::Nanos;
use serde::Serialize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The shares of the two readers.
pub const SHARES: [u32; 2] = [800, 100];
/// BFQ needs a few budgets to learn the disk's peak rate, and a controller some slices until it has judged both readers by
/// their use: until then one of them may be a group below the other.
const WARM_UP: Nanos = Nanos::from_secs(20);

/// How to measure whether weights bite.
#[derive(Clone, Debug)]
pub struct BitePlan {
    /// The disk; its elevator must be `bfq`.
    pub disk: DiskSpec,
    /// Bytes a request.
    pub block_bytes: u32,
    /// Order of the reads.
    pub access: Access,
    /// Length of a window.
    pub window: Nanos,
    /// How many windows to measure, one after the other, after a warm-up.
    pub windows: u32,
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

/// Runs two equal readers on a fresh emulated disk and compares what they get in each window. Their regions lie at the start and in the
/// middle of the disk, so that every change between them costs a seek. `steering` is to weigh them by [`SHARES`]:
/// [`FixedWeights`](crate::scene::FixedWeights) shows what the kernel alone makes of them.
pub fn weights_bite(
    plan: &BitePlan,
    program: &WorkerProgram,
    steering: &dyn Steering,
    interrupted: &AtomicBool,
) -> Result<Vec<BiteResult>> {
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
            depth: 1,
            compute: Compute::Nothing,
            think: Nanos::ZERO,
            rests: None,
            appearance: Appearance::default(),
            part: None,
            seed: 1 + index as u64,
        };
        workers.push(Worker::spawn(program, &spec, Some(group))?);
    }
    workers.iter_mut().try_for_each(Worker::start)?;
    let from = boottime() + WARM_UP;
    let until = from + Nanos(plan.window.0 * u64::from(plan.windows));
    while boottime() < until {
        if interrupted.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        steered.check()?;
        std::thread::sleep(Duration::from_millis(50));
    }
    workers.iter_mut().for_each(Worker::stop);
    let mut progress = Vec::new();
    for worker in workers {
        progress.push(worker.wait()?.progress);
    }
    let window = |index: u32| {
        let start = from + Nanos(plan.window.0 * u64::from(index));
        let rate = |of: &Vec<Progress>| bytes_at(of, start + plan.window) - bytes_at(of, start);
        let rates: Vec<f64> = progress.iter().map(|of| rate(of) / plan.window.as_secs_f64() / 1e6).collect();
        result(plan, rates[0], rates[1])
    };
    Ok((0..plan.windows).map(window).collect())
}

fn result(plan: &BitePlan, heavy: f64, light: f64) -> BiteResult {
    let ratio = heavy / light.max(f64::MIN_POSITIVE);
    let meant = f64::from(SHARES[0]) / f64::from(SHARES[1]);
    BiteResult {
        block_bytes: plan.block_bytes,
        access: plan.access,
        heavy_mb_per_s: heavy,
        light_mb_per_s: light,
        ratio,
        error: (ratio - meant).abs() / meant,
        total_mb_per_s: heavy + light,
    }
}
