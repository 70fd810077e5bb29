//! What background work takes of the pauses of a reader, and what that loses by it.

mod contents;
mod plan;
mod steady;
mod tool;
mod window;

use super::race::wait_until;
use super::undo::arm_counters;
use crate::clock::boottime;
use crate::daemon::{Daemon, DaemonConfig};
use crate::disk::{Disk, DiskSpec, FileSystem, RUNTIME_DIRECTORY};
use crate::error::Result;
use crate::scene::{Contents, Directory};
use crate::workload::{
    Access, Appearance, CgroupParent, Compute, TenantCgroup, Worker, WorkerProgram, WorkloadSpec, blkio_version,
};
use minerva_model::{CgroupVersion, Nanos};
use plan::{BURST_MS, PAUSE_MS, SETTLE};
use serde::Serialize;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use tool::Tool;

pub use plan::{GAPS_DEADLINE_S, GapsPlan, GapsReader, GapsWork};
pub use window::Bursts;

const SLICE_MS: u64 = 1000;
const BLOCK_BYTES: u32 = 8 << 10;

/// A kind of background work beside the reader.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GapsResult {
    /// What it is and beside which reader, in words.
    pub words: String,
    /// The reader pauses.
    pub has_pauses: bool,
    /// Windows with it and without.
    pub pairs: Vec<[Bursts; 2]>,
}

/// Measures background work beside random reads, on one disk under one daemon. After each pair `told` gets all pairs of that
/// kind so far, so that what an interruption leaves is not lost.
pub fn gaps(
    plan: &GapsPlan,
    program: &WorkerProgram,
    interrupted: &AtomicBool,
    mut told: impl FnMut(&GapsResult),
) -> Result<()> {
    let mut spec = DiskSpec::new(format!("gaps-{}", std::process::id()), plan.profile.clone());
    spec.elevator.clone_from(&plan.elevator);
    // Dropped in the opposite order: the file system, the disk, what the disk held.
    let contents = Contents(Path::new(RUNTIME_DIRECTORY).join(format!("{}.contents", spec.name)));
    spec.backing = Some(contents.0.clone());
    let disk = Disk::create(&spec)?;
    let parent = CgroupParent::create("minerva-lab-gaps")?;
    if plan.elevator != "bfq" && blkio_version() == CgroupVersion::V1 {
        arm_counters(disk.info().id, &parent)?;
    }
    let directory = Directory::create(Path::new(RUNTIME_DIRECTORY).join(format!("gaps-{}", std::process::id())))?;
    let config = DaemonConfig {
        directory: directory.path(),
        slice_ms: SLICE_MS,
        parent: &parent,
        disk: disk.info(),
        guard: true,
        further: format!("\n[named]\nparent = \"{}/named\"\n", parent.relative_path()),
    };
    config.write()?;
    let stage = Stage {
        plan,
        tool: Tool { plan, directory: directory.path() },
        reader: parent.tenant("reader")?,
        disk: &disk,
        program,
        interrupted,
    };
    let mut daemon = Daemon::start(&plan.daemon, directory.path())?;
    for work in &plan.work {
        stage.play_kind(*work, &mut told)?;
        daemon.check()?;
    }
    daemon.end().map(drop)
}

struct Stage<'a> {
    plan: &'a GapsPlan,
    tool: Tool<'a>,
    reader: TenantCgroup,
    disk: &'a Disk,
    program: &'a WorkerProgram,
    interrupted: &'a AtomicBool,
}

impl Stage<'_> {
    /// All pairs of a kind.
    fn play_kind(&self, work: GapsWork, told: &mut impl FnMut(&GapsResult)) -> Result<()> {
        let mut random = fastrand::Rng::with_seed(self.plan.seed);
        let mut files = None;
        for reader in &self.plan.readers {
            self.play((work, *reader), &mut random, &mut files, told)?;
        }
        Ok(())
    }

    /// Pairs of windows with the same bursts and pauses, with work that is added for the one and removed after it.
    fn play(
        &self,
        (work, reader): (GapsWork, GapsReader),
        random: &mut fastrand::Rng,
        files: &mut Option<FileSystem>,
        told: &mut impl FnMut(&GapsResult),
    ) -> Result<()> {
        let has_pauses = reader == GapsReader::Pauses;
        let words = if has_pauses { work.words().to_owned() } else { format!("{}, no pauses", work.words()) };
        let mut result = GapsResult { words, has_pauses, pairs: Vec::new() };
        for _ in 0..self.plan.rounds {
            let draw = |random: &mut fastrand::Rng| (random.u64(BURST_MS), random.u64(PAUSE_MS));
            let spans: Vec<(u64, u64)> = (0..self.plan.bursts).map(|_| draw(random)).collect();
            let first = usize::from(random.bool());
            let mut pair = [None, None];
            for arm in [first, 1 - first] {
                pair[arm] = Some(if arm == 0 {
                    self.with_work(work, files, |added| self.beside(reader, &spans, added))?
                } else {
                    self.alone(reader, &spans)?
                });
            }
            if let [Some((mut with, counted)), Some((mut without, _))] = pair {
                if has_pauses {
                    with.leave(counted, &spans);
                    without.leave(counted, &spans);
                }
                result.pairs.push([with, without]);
                told(&result);
            }
        }
        Ok(())
    }

    /// The reader beside work that was added at `added`, until that is done, and how many of its bursts were over before.
    fn beside(&self, reader: GapsReader, spans: &[(u64, u64)], added: Nanos) -> Result<(Bursts, usize)> {
        if reader == GapsReader::Steady {
            return Ok((self.steady_beside(added)?, 1));
        }
        let (window, counted) = self.window(spans, true)?;
        Ok((Bursts { done_s: self.until_done(spans, added)?, ..window }, counted))
    }

    fn alone(&self, reader: GapsReader, spans: &[(u64, u64)]) -> Result<(Bursts, usize)> {
        self.wait(SETTLE)?;
        if reader == GapsReader::Steady { Ok((self.steady_alone()?, 1)) } else { self.window(spans, false) }
    }

    /// Measures while there is work, from when it was added.
    fn with_work<R>(
        &self,
        work: GapsWork,
        files: &mut Option<FileSystem>,
        measure: impl FnOnce(Nanos) -> Result<R>,
    ) -> Result<R> {
        if contents::is_used_up(work) {
            // Not mounted any more before another is made in its place.
            drop(files.take());
        }
        let files = match files {
            Some(files) => files,
            None => files.insert(contents::make(work, self.disk)?),
        };
        self.wait(SETTLE)?;
        let added = boottime();
        self.tool.add(GAPS_DEADLINE_S, &contents::arguments(work, self.disk, files.path()))?;
        let measured = measure(added);
        self.tool.run(&["background", "remove", "work"])?;
        // Its worker lets go of the file system before another is made.
        self.wait(SETTLE)?;
        measured
    }

    fn worker(&self, seed: u64) -> Result<Worker> {
        let size = self.disk.info().size_bytes;
        let blocks = |bytes: u64| bytes / u64::from(BLOCK_BYTES) * u64::from(BLOCK_BYTES);
        let spec = WorkloadSpec {
            tenant: "reader".to_owned(),
            path: self.disk.device().to_owned(),
            access: Access::RandomRead,
            bytes: None,
            block_bytes: BLOCK_BYTES,
            region_start: blocks(size / 4),
            region_bytes: blocks(size / 2),
            depth: 1,
            compute: Compute::Nothing,
            think: Nanos::ZERO,
            rests: None,
            appearance: Appearance::default(),
            part: None,
            seed,
        };
        Worker::spawn(self.program, &spec, Some(&self.reader))
    }

    fn wait(&self, span: Nanos) -> Result<Nanos> {
        wait_until(boottime() + span, self.interrupted)
    }
}
