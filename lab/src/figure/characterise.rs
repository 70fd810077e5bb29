//! Programs that read, compute and write as the eight do that Matteussi and Geyer (2018) characterised, each alone on an emulated disk,
//! beside what a daemon that knows them as jobs says of their runs. What each did is known, as it is told to do it.

use super::race::wait_until;
use super::undo::arm_counters;
use crate::clock::boottime;
use crate::daemon::{Daemon, DaemonConfig};
use crate::disk::{Disk, DiskSpec, RUNTIME_DIRECTORY};
use crate::error::{At, LabError, Result};
use crate::scene::{Contents, Directory};
use crate::workload::{
    Access, Appearance, CgroupParent, Compute, TenantCgroup, Worker, WorkerProgram, WorkloadSpec, blkio_version,
};
use minerva_model::{CgroupVersion, Nanos};
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const BLOCK_BYTES: u32 = 512 << 10;
/// Of the file in memory that is computed on.
const MEMORY_BYTES: u64 = 16 << 20;
/// The daemon has seen its tenants, and what a program before wrote is on the disk.
const SETTLE: Nanos = Nanos::from_secs(3);
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How often the daemon is asked for a run that has just ended, and for how long.
const ASK_EVERY: Nanos = Nanos::from_millis(300);
const ASKED_MAX: u32 = 100;

/// What a program does for a while.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Does {
    /// Reads so many megabytes.
    Reads(u64),
    /// Reads them and computes on every byte.
    ReadsAndComputes(u64),
    /// Writes them.
    Writes(u64),
    /// Reads and writes as much, at once.
    Shuffles(u64),
    /// Computes for so many seconds, and leaves the disk alone.
    Computes(u64),
}

impl Does {
    /// The word by which a profile tells it.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Reads(_) | Self::ReadsAndComputes(_) => "read",
            Self::Writes(_) => "write",
            Self::Shuffles(_) => "shuffle",
            Self::Computes(_) => "compute",
        }
    }
}

/// A program.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchProgram {
    /// The paper's name for it.
    pub name: &'static str,
    /// What the paper's read and wrote, in gigabytes, and how long it took, in seconds.
    pub paper: (f64, f64, u32),
    /// How the paper calls its use of the disk, of the three that it shows.
    pub paper_kind: Option<&'static str>,
    /// What ours does.
    pub does: Vec<Does>,
}

/// The paper's eight. What ours do is in its proportions, far smaller; what lies between reading and writing is ours where the paper shows none.
pub fn batch_programs() -> Vec<BatchProgram> {
    use Does::{Computes, Reads, ReadsAndComputes, Shuffles, Writes};
    let program = |name, paper, paper_kind, does| BatchProgram { name, paper, paper_kind, does };
    let (intensive, moderate, light) = ("disk-intensive", "moderately disk-intensive", "not disk-intensive");
    // Small writes are more than reads, in turns with computing.
    let bayes = [Reads(60), Computes(6), Writes(120), Computes(6)].repeat(3);
    vec![
        program("sort", (15.9, 15.1, 2225), Some(intensive), vec![Reads(400), Shuffles(200), Writes(380)]),
        program("terasort", (37.2, 37.2, 1265), None, vec![Reads(600), Shuffles(300), Writes(600)]),
        program("wordcount", (11.4, 0.001, 2286), None, vec![ReadsAndComputes(800), Computes(4), Writes(1)]),
        program("nutch", (0.509, 0.2084, 266), None, vec![Reads(100), Computes(20), Writes(40)]),
        program("pagerank", (1.3, 0.476, 160), None, vec![Reads(260), Shuffles(100), Computes(4), Writes(200)]),
        program(
            "k-means",
            (46.4, 57.0, 3038),
            Some(light),
            vec![Reads(200), Computes(24), Reads(200), Computes(24), Writes(200)],
        ),
        program("bayes", (0.352, 0.001, 401), Some(moderate), bayes),
        program("hive", (5.0, 1.7, 788), None, vec![Reads(400), Computes(10), Writes(140)]),
    ]
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct CharacterisePlan {
    /// The emulated disk's profile.
    pub profile: String,
    /// Its elevator.
    pub elevator: String,
    /// The programs.
    pub programs: Vec<BatchProgram>,
    /// Multiplies what they move and how long they compute.
    pub scale: f64,
    /// `minervad`.
    pub daemon: PathBuf,
    /// `minerva-ctl`.
    pub tool: PathBuf,
}

/// A stretch of what a program did.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TruePhase {
    /// As [`Does::kind`].
    pub kind: &'static str,
    /// How long it took.
    pub seconds: f64,
    /// What it moved.
    pub bytes: u64,
}

/// A program that ran.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Characterised {
    /// Its name.
    pub name: &'static str,
    /// What it did.
    pub did: Vec<TruePhase>,
    /// What `minerva-ctl --json jobs profile` says of it.
    pub profile: serde_json::Value,
}

/// Runs each program alone and asks for its profile. After each, `told` gets it, so that what an interruption leaves is not lost.
pub fn characterise(
    plan: &CharacterisePlan,
    program: &WorkerProgram,
    interrupted: &AtomicBool,
    mut told: impl FnMut(&Characterised),
) -> Result<()> {
    let mut spec = DiskSpec::new(format!("characterise-{}", std::process::id()), plan.profile.clone());
    spec.elevator.clone_from(&plan.elevator);
    let disk = Disk::create(&spec)?;
    let parent = CgroupParent::create("minerva-lab-characterise")?;
    if plan.elevator != "bfq" && blkio_version() == CgroupVersion::V1 {
        arm_counters(disk.info().id, &parent)?;
    }
    let directory =
        Directory::create(Path::new(RUNTIME_DIRECTORY).join(format!("characterise-{}", std::process::id())))?;
    // In memory, so that who computes leaves the disk alone; removed at the end.
    let memory = Contents(PathBuf::from(format!("/dev/shm/minerva-lab-compute-{}", std::process::id())));
    fs::write(&memory.0, vec![0x5a; MEMORY_BYTES as usize]).at("write", &memory.0)?;
    let job = |job: &BatchProgram| {
        format!("\n[[jobs]]\npattern = \"{}/{1}\"\nname = \"{1}\"\n", parent.relative_path(), job.name)
    };
    let config = DaemonConfig {
        directory: directory.path(),
        slice_ms: 1000,
        parent: &parent,
        disk: disk.info(),
        guard: true,
        further: plan.programs.iter().map(job).collect(),
    };
    config.write()?;
    let mut daemon = Daemon::start(&plan.daemon, directory.path())?;
    let stage = Stage { plan, disk: &disk, memory: &memory.0, directory: directory.path(), program, interrupted };
    for job in &plan.programs {
        let group = parent.tenant(job.name)?;
        wait_until(boottime() + SETTLE, interrupted)?;
        let did = stage.run(job, &group)?;
        // The run ends with its tenant.
        drop(group);
        daemon.check()?;
        told(&Characterised { name: job.name, did, profile: stage.profile(job.name)? });
    }
    daemon.end().map(drop)
}

struct Stage<'a> {
    plan: &'a CharacterisePlan,
    disk: &'a Disk,
    memory: &'a Path,
    directory: &'a Path,
    program: &'a WorkerProgram,
    interrupted: &'a AtomicBool,
}

impl Stage<'_> {
    fn run(&self, job: &BatchProgram, group: &TenantCgroup) -> Result<Vec<TruePhase>> {
        job.does.iter().map(|does| self.phase(job.name, *does, group)).collect()
    }

    fn phase(&self, name: &str, does: Does, group: &TenantCgroup) -> Result<TruePhase> {
        use Access::{SequentialRead, SequentialWrite};
        let specs = match does {
            Does::Reads(megabytes) => vec![self.spec(name, SequentialRead, Compute::Nothing, megabytes)],
            Does::ReadsAndComputes(megabytes) => vec![self.spec(name, SequentialRead, Compute::Checksum, megabytes)],
            Does::Writes(megabytes) => vec![self.spec(name, SequentialWrite, Compute::Nothing, megabytes)],
            Does::Shuffles(megabytes) => [SequentialRead, SequentialWrite]
                .map(|access| self.spec(name, access, Compute::Nothing, megabytes))
                .to_vec(),
            Does::Computes(_) => vec![WorkloadSpec {
                path: self.memory.to_owned(),
                bytes: None,
                region_start: 0,
                region_bytes: MEMORY_BYTES,
                ..self.spec(name, SequentialRead, Compute::Checksum, 1)
            }],
        };
        let begun = boottime();
        let mut workers = Vec::new();
        for spec in &specs {
            let mut worker = Worker::spawn(self.program, spec, Some(group))?;
            worker.start()?;
            workers.push(worker);
        }
        if let Does::Computes(seconds) = does {
            wait_until(begun + Nanos((seconds as f64 * self.plan.scale * 1e9) as u64), self.interrupted)?;
            workers.iter_mut().for_each(Worker::stop);
        }
        let (mut bytes, mut ended) = (0, begun);
        for worker in workers {
            while !worker.is_done() {
                if self.interrupted.load(Ordering::Relaxed) {
                    return Err(LabError::Interrupted);
                }
                std::thread::sleep(LOOK_EVERY);
            }
            let finished = worker.wait()?.finished;
            (bytes, ended) = (bytes + finished.bytes, ended.max(finished.ended));
        }
        let bytes = if matches!(does, Does::Computes(_)) { 0 } else { bytes };
        Ok(TruePhase { kind: does.kind(), seconds: ended.since(begun).as_secs_f64(), bytes })
    }

    /// Reads the first half of the disk, writes the second.
    fn spec(&self, name: &str, access: Access, compute: Compute, megabytes: u64) -> WorkloadSpec {
        let block = u64::from(BLOCK_BYTES);
        let half = self.disk.info().size_bytes / 2 / block * block;
        let blocks = (megabytes as f64 * self.plan.scale * 1e6 / block as f64).round() as u64;
        WorkloadSpec {
            tenant: name.to_owned(),
            path: self.disk.device().to_owned(),
            access,
            bytes: Some(blocks.max(1) * block),
            block_bytes: BLOCK_BYTES,
            region_start: if access == Access::SequentialWrite { half } else { 0 },
            region_bytes: half,
            depth: 1,
            compute,
            think: Nanos::ZERO,
            rests: None,
            appearance: Appearance::default(),
            part: None,
            seed: 1,
        }
    }

    /// What the daemon says of the run that ended last.
    fn profile(&self, name: &str) -> Result<serde_json::Value> {
        let (tool, socket) = (&self.plan.tool, self.directory.join("control.sock"));
        for _ in 0..ASKED_MAX {
            let mut command = Command::new(tool);
            command.arg("--socket").arg(&socket).args(["--json", "jobs", "profile", name]);
            let output = command.output().at("start", tool)?;
            let last = String::from_utf8_lossy(&output.stdout).lines().last().map(serde_json::from_str);
            if let (true, Some(Ok(run))) = (output.status.success(), last) {
                return Ok(run);
            }
            wait_until(boottime() + ASK_EVERY, self.interrupted)?;
        }
        Err(LabError::BadPlan(format!("the daemon says nothing of the run of {name}")))
    }
}

#[cfg(test)]
mod tests {
    use super::batch_programs;

    #[test]
    fn the_papers_eight_begin_with_what_a_profile_begins_with() {
        let programs = batch_programs();
        assert_eq!(programs.len(), 8);
        // A run begins with its first transfer.
        assert!(programs.iter().all(|program| program.does[0].kind() == "read"));
        // As many as the paper gives a kind for: Sort, K-means and Bayes.
        assert_eq!(programs.iter().filter(|program| program.paper_kind.is_some()).count(), 3);
    }
}
