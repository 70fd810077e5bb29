//! Plays a scene: a fresh disk, a cgroup and a worker process for each tenant, and a conductor that gives each the word.

use super::result::BIN;
use super::weights::WeightLog;
use super::{RunResult, Scene, Steering, SteeringContext, TenantInScene, TenantPlan};
use crate::clock::boottime;
use crate::disk::{Disk, DiskSpec, FileSystem, RUNTIME_DIRECTORY};
use crate::error::{LabError, Result};
use crate::workload::{CgroupParent, TakesPart, Worker, WorkerProgram, WorkloadSpec};
use minerva_model::Nanos;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often the conductor looks around.
pub(super) const BEAT: Duration = Duration::from_millis(20);

/// What a scene is played on.
#[derive(Debug)]
pub struct Stage<'a> {
    /// The program that has the `worker` subcommand.
    pub program: &'a WorkerProgram,
    /// Disk profile.
    pub profile: &'a str,
    /// Set from outside to end early; everything is removed then.
    pub interrupted: &'a AtomicBool,
}

/// How far a run has come.
#[derive(Clone, Debug, PartialEq)]
pub struct Live {
    /// Seconds since the scene's start.
    pub elapsed_s: f64,
    /// For each tenant: bytes done and bytes to do.
    pub bytes: Vec<(u64, u64)>,
}

/// Plays the scene once and says what came of it. `watch` is called fifty times a second.
pub fn run_scene(
    scene: &Scene,
    steering: &dyn Steering,
    stage: &Stage<'_>,
    watch: &mut dyn FnMut(&Live),
) -> Result<RunResult> {
    let mut spec = DiskSpec::new(format!("demo-{}", std::process::id()), stage.profile);
    let needs_files = scene.tenants.iter().any(|plan| plan.access.is_buffered());
    let contents = needs_files.then(|| Contents(Path::new(RUNTIME_DIRECTORY).join(format!("{}.contents", spec.name))));
    spec.backing = contents.as_ref().map(|contents| contents.0.clone());
    // Dropped in the opposite order: the file system, the disk, what the disk held.
    let disk = Disk::create(&spec)?;
    let files = needs_files.then(|| FileSystem::create(&disk)).transpose()?;
    let parent = CgroupParent::create("minerva-lab-demo")?;
    let groups = scene.tenants.iter().map(|plan| parent.tenant(&plan.name)).collect::<Result<Vec<_>>>()?;
    let tenants = scene.tenants.iter().map(|plan| TenantInScene { name: plan.name.clone(), weight_percent: 100 });
    let context = SteeringContext { disk: disk.info(), parent: &parent, tenants: tenants.collect() };
    let mut steered = steering.start(&context)?;
    let mut workers = Vec::new();
    for (plan, group) in scene.tenants.iter().zip(&groups) {
        let job = job(plan, &disk, files.as_ref(), steered.participation_socket());
        workers.push(Worker::spawn(stage.program, &job, Some(group))?);
    }

    let names = scene.tenants.iter().map(|plan| plan.name.as_str()).collect();
    let mut weights = WeightLog::new(&parent, &disk, names, BIN);
    let origin = boottime();
    let mut waiting: Vec<usize> = (0..workers.len()).collect();
    let mut lasting = waiting.clone();
    while !(waiting.is_empty() && workers.iter().all(Worker::is_done)) {
        if stage.interrupted.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        steered.check()?;
        let elapsed = boottime().since(origin);
        for index in waiting.extract_if(.., |index| scene.tenants[*index].starts_at <= elapsed) {
            workers[index].start()?;
        }
        for index in lasting.extract_if(.., |index| scene.tenants[*index].ends_at().is_some_and(|end| end <= elapsed)) {
            workers[index].stop();
        }
        let live = live(scene, &workers, elapsed);
        steered.see(&live.bytes.iter().map(|(done, all)| all.saturating_sub(*done)).collect::<Vec<_>>())?;
        weights.look(elapsed);
        watch(&live);
        std::thread::sleep(BEAT);
    }
    let results = workers.into_iter().map(Worker::wait).collect::<Result<Vec<_>>>()?;
    Ok(RunResult { weights: weights.into_rows(), ..RunResult::new(scene, steering.name(), origin, &results) })
}

/// What a run's disk holds, kept in memory for as long as the run lasts.
pub(crate) struct Contents(pub(crate) PathBuf);

impl Drop for Contents {
    fn drop(&mut self) {
        // The disk may have failed before it made the file.
        let _ = std::fs::remove_file(&self.0);
    }
}

pub(super) fn job(plan: &TenantPlan, disk: &Disk, files: Option<&FileSystem>, socket: Option<&Path>) -> WorkloadSpec {
    let (size, block) = (disk.info().size_bytes, u64::from(plan.block_bytes));
    let start = ((size as f64 * plan.region.clamp(0.0, 1.0)) as u64 / block * block).min(size.saturating_sub(block));
    WorkloadSpec {
        tenant: plan.name.clone(),
        path: match files.filter(|_| plan.access.is_buffered()) {
            Some(files) => files.path().join(&plan.name),
            None => disk.device().to_owned(),
        },
        access: plan.access,
        bytes: plan.lasts.is_none().then_some(plan.bytes),
        block_bytes: plan.block_bytes,
        region_start: if plan.access.is_buffered() { 0 } else { start },
        region_bytes: plan.region_bytes.unwrap_or(plan.bytes).min((size - start) / block * block),
        depth: plan.depth,
        compute: plan.compute,
        think: Nanos::ZERO,
        rests: plan.rests,
        appearance: plan.appearance,
        part: plan.part.zip(socket).map(|(part, socket)| TakesPart { socket: socket.to_owned(), part }),
        seed: plan.seed,
    }
}

fn live(scene: &Scene, workers: &[Worker], elapsed: Nanos) -> Live {
    let bytes = scene.tenants.iter().zip(workers);
    let bytes = bytes.map(|(plan, worker)| (worker.progress().map_or(0, |progress| progress.bytes), plan.bytes));
    Live { elapsed_s: elapsed.as_secs_f64(), bytes: bytes.collect() }
}
