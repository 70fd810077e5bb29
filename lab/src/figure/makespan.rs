//! Batch jobs that share a disk: all at once, all at once under the daemon that knows them, and one after the other, the shortest
//! first (Matteussi and Geyer 2018). The jobs are programs that read, compute and write as Hadoop's do; they are not Hadoop.

use super::race::wait_until;
use super::undo::arm_counters;
use crate::clock::boottime;
use crate::daemon::{Daemon, DaemonConfig};
use crate::disk::{Disk, DiskSpec, RUNTIME_DIRECTORY};
use crate::error::{At, LabError, Result};
use crate::scene::Directory;
use crate::workload::{
    Access, Appearance, CgroupParent, Compute, TenantCgroup, Worker, WorkerProgram, WorkloadSpec, blkio_version,
};
use minerva_model::{CgroupVersion, Nanos};
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const SLICE_MS: u64 = 1000;
const BLOCK_BYTES: u32 = 512 << 10;
/// The daemon has seen its tenants, and what an arm before wrote is on the disk.
const SETTLE: Nanos = Nanos::from_secs(3);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// One phase of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Phase {
    access: Access,
    megabytes: u64,
    compute: Compute,
}

/// A job.
#[derive(Clone, Debug, PartialEq)]
pub struct MakespanJob {
    /// Its name.
    pub name: &'static str,
    phases: Vec<Phase>,
}

impl MakespanJob {
    /// What it reads and writes in all, at a scale.
    fn bytes(&self, scale: f64) -> u64 {
        self.phases.iter().map(|phase| phase_bytes(phase, scale)).sum()
    }
}

fn phase_bytes(phase: &Phase, scale: f64) -> u64 {
    let blocks = phase.megabytes as f64 * scale * 1e6 / f64::from(BLOCK_BYTES);
    (blocks.round() as u64).max(1) * u64::from(BLOCK_BYTES)
}

fn reads(megabytes: u64) -> Phase {
    Phase { access: Access::SequentialRead, megabytes, compute: Compute::Nothing }
}

fn computes_on(megabytes: u64) -> Phase {
    Phase { compute: Compute::Checksum, ..reads(megabytes) }
}

fn writes(megabytes: u64) -> Phase {
    Phase { access: Access::SequentialWrite, ..reads(megabytes) }
}

/// The paper's five, with what each reads and writes in the paper's proportions, far smaller.
pub fn mixed_jobs() -> Vec<MakespanJob> {
    let job = |name, phases| MakespanJob { name, phases };
    vec![
        job("terasort", vec![reads(600), writes(600)]),
        job("sort", vec![reads(160), writes(150)]),
        job("wordcount", vec![computes_on(300), writes(1)]),
        job("k-means", vec![computes_on(150), computes_on(150), computes_on(150), writes(50)]),
        job("pagerank", vec![reads(65), writes(24), reads(65), writes(24)]),
    ]
}

/// One program with four workloads.
pub fn alike_jobs() -> Vec<MakespanJob> {
    let sort = |name, megabytes| MakespanJob { name, phases: vec![reads(megabytes), writes(megabytes)] };
    vec![sort("sort-8", 480), sort("sort-4", 240), sort("sort-2", 120), sort("sort-1", 60)]
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct MakespanPlan {
    /// The emulated disk's profile.
    pub profile: String,
    /// Its elevator.
    pub elevator: String,
    /// The jobs.
    pub jobs: Vec<MakespanJob>,
    /// Multiplies what they move.
    pub scale: f64,
    /// How often all arms are measured.
    pub rounds: u32,
    /// Seed of the orders.
    pub seed: u64,
    /// `minervad`.
    pub daemon: PathBuf,
}

/// How the jobs run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Arm {
    /// All at once, by the elevator as the kernel ships it.
    Unrestricted,
    /// All at once, under a daemon that knows them.
    Minerva,
    /// One after the other, which tells how long each takes alone.
    Alone,
}

/// What an arm brought.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MakespanRun {
    /// Seconds from the begin of all to the end of each; of jobs that ran alone from the begin of each.
    pub seconds: Vec<f64>,
    /// The part of the time for which the disk was busy.
    pub busy: f64,
}

/// All arms of one round.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MakespanRound {
    /// All at once.
    pub unrestricted: MakespanRun,
    /// All at once, under the daemon.
    pub minerva: MakespanRun,
    /// Each by itself.
    pub alone: MakespanRun,
}

/// Measures all arms in a drawn order, so many times.
pub fn makespan(plan: &MakespanPlan, program: &WorkerProgram, interrupted: &AtomicBool) -> Result<Vec<MakespanRound>> {
    let mut spec = DiskSpec::new(format!("makespan-{}", std::process::id()), plan.profile.clone());
    spec.elevator.clone_from(&plan.elevator);
    let disk = Disk::create(&spec)?;
    let parent = CgroupParent::create("minerva-lab-makespan")?;
    if plan.elevator != "bfq" && blkio_version() == CgroupVersion::V1 {
        arm_counters(disk.info().id, &parent)?;
    }
    let directory = Directory::create(Path::new(RUNTIME_DIRECTORY).join(format!("makespan-{}", std::process::id())))?;
    let mut random = fastrand::Rng::with_seed(plan.seed);
    let mut rounds = Vec::new();
    for _ in 0..plan.rounds {
        let mut arms = [Arm::Unrestricted, Arm::Minerva, Arm::Alone];
        random.shuffle(&mut arms);
        let mut round = MakespanRound::default();
        for arm in arms {
            // New groups each time: nobody has a past.
            let groups = plan.jobs.iter().map(|job| parent.tenant(job.name)).collect::<Result<Vec<_>>>()?;
            let stage = Stage { plan, disk: &disk, groups: &groups, program, interrupted };
            stage.set_low_latency(arm)?;
            match arm {
                Arm::Unrestricted => round.unrestricted = stage.together()?,
                Arm::Alone => round.alone = stage.one_by_one()?,
                Arm::Minerva => {
                    let config = DaemonConfig {
                        directory: directory.path(),
                        slice_ms: SLICE_MS,
                        parent: &parent,
                        disk: disk.info(),
                        guard: true,
                        further: stage.settings(&parent),
                    };
                    config.write()?;
                    let mut daemon = Daemon::start(&plan.daemon, directory.path())?;
                    wait_until(boottime() + SETTLE, interrupted)?;
                    round.minerva = stage.together()?;
                    daemon.check()?;
                    daemon.end()?;
                    // What earlier rounds taught must not tell sizes to later ones.
                    fs::remove_dir_all(directory.path().join("state")).at("remove", directory.path())?;
                }
            }
            wait_until(boottime() + SETTLE, interrupted)?;
        }
        rounds.push(round);
    }
    Ok(rounds)
}

struct Stage<'a> {
    plan: &'a MakespanPlan,
    disk: &'a Disk,
    groups: &'a [TenantCgroup],
    program: &'a WorkerProgram,
    interrupted: &'a AtomicBool,
}

impl Stage<'_> {
    /// Weights act at once without BFQ's `low_latency`, and the kernel ships it on.
    fn set_low_latency(&self, arm: Arm) -> Result<()> {
        let value = if arm == Arm::Unrestricted { "1" } else { "0" };
        if self.plan.elevator == "bfq" { self.disk.queue().write("iosched/low_latency", value) } else { Ok(()) }
    }

    /// The jobs, as the operator's file names them.
    fn settings(&self, parent: &CgroupParent) -> String {
        let job = |job: &MakespanJob| {
            let (above, bytes) = (parent.relative_path(), job.bytes(self.plan.scale));
            format!("\n[[jobs]]\npattern = \"{above}/{0}\"\nname = \"{0}\"\nbytes = {bytes}\n", job.name)
        };
        self.plan.jobs.iter().map(job).collect()
    }

    fn together(&self) -> Result<MakespanRun> {
        let (begin, busy_before) = (boottime(), self.busy_seconds()?);
        let ended = std::thread::scope(|scope| {
            let runs: Vec<_> = (0..self.plan.jobs.len()).map(|job| scope.spawn(move || self.run(job))).collect();
            let ended =
                runs.into_iter().map(|run| run.join().map_err(|_| LabError::BadPlan("a job panicked".to_owned()))?);
            ended.collect::<Result<Vec<Nanos>>>()
        })?;
        let seconds: Vec<f64> = ended.iter().map(|ended| ended.since(begin).as_secs_f64()).collect();
        let whole = seconds.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        Ok(MakespanRun { seconds, busy: (self.busy_seconds()? - busy_before) / whole })
    }

    fn one_by_one(&self) -> Result<MakespanRun> {
        let (begin, busy_before) = (boottime(), self.busy_seconds()?);
        let alone = |job| {
            let begin = boottime();
            Ok(self.run(job)?.since(begin).as_secs_f64())
        };
        let seconds = (0..self.plan.jobs.len()).map(alone).collect::<Result<Vec<f64>>>()?;
        let whole = boottime().since(begin).as_secs_f64().max(f64::MIN_POSITIVE);
        Ok(MakespanRun { seconds, busy: (self.busy_seconds()? - busy_before) / whole })
    }

    /// Runs the phases of a job one after the other, each a process of its own in the job's group; when the last ended.
    fn run(&self, job: usize) -> Result<Nanos> {
        let mut ended = boottime();
        for phase in &self.plan.jobs[job].phases {
            let mut worker = Worker::spawn(self.program, &self.spec(job, phase), Some(&self.groups[job]))?;
            worker.start()?;
            while !worker.is_done() {
                if self.interrupted.load(std::sync::atomic::Ordering::Relaxed) {
                    return Err(LabError::Interrupted);
                }
                std::thread::sleep(LOOK_EVERY);
            }
            ended = worker.wait()?.finished.ended;
        }
        Ok(ended)
    }

    /// Each job has a part of the disk of its own: it reads in the first half, and writes in the second.
    fn spec(&self, job: usize, phase: &Phase) -> WorkloadSpec {
        let blocks = |bytes: u64| bytes / u64::from(BLOCK_BYTES) * u64::from(BLOCK_BYTES);
        let part = blocks(self.disk.info().size_bytes / self.plan.jobs.len() as u64);
        let is_written = phase.access == Access::SequentialWrite;
        WorkloadSpec {
            tenant: self.plan.jobs[job].name.to_owned(),
            path: self.disk.device().to_owned(),
            access: phase.access,
            bytes: Some(phase_bytes(phase, self.plan.scale)),
            block_bytes: BLOCK_BYTES,
            region_start: part * job as u64 + if is_written { blocks(part / 2) } else { 0 },
            region_bytes: blocks(part / 2),
            depth: 1,
            compute: phase.compute,
            think: Nanos::ZERO,
            rests: None,
            appearance: Appearance::default(),
            part: None,
            seed: 1 + job as u64,
        }
    }

    /// For how long the disk was busy since it is there (the kernel's Documentation/admin-guide/iostats.rst, field 10).
    fn busy_seconds(&self) -> Result<f64> {
        let path = Path::new("/sys/block").join(&self.disk.info().kernel_name).join("stat");
        let text = fs::read_to_string(&path).at("read", &path)?;
        let busy_ms: Option<f64> = text.split_whitespace().nth(9).and_then(|field| field.parse().ok());
        busy_ms.map(|ms| ms / 1e3).ok_or_else(|| LabError::BadPlan(format!("{} tells no busy time", path.display())))
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOCK_BYTES, alike_jobs, mixed_jobs};

    #[test]
    fn jobs_are_whole_blocks_at_any_scale() {
        for job in mixed_jobs().iter().chain(&alike_jobs()) {
            for scale in [0.001, 0.3, 1.0] {
                let bytes = job.bytes(scale);
                assert!(bytes > 0 && bytes.is_multiple_of(u64::from(BLOCK_BYTES)), "{} {scale}", job.name);
            }
        }
    }
}
