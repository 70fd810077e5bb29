//! What background work takes of the pauses of a reader, and what that loses by it.

mod contents;
mod plan;
mod tool;

use super::idle::{Window, end};
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
use contents::{BACKUP_MIB, SCRUBBED_MIB, make_tree, write_file};
use minerva_model::{CgroupVersion, Nanos};
use plan::{BURST_MS, PAUSE_MS, SETTLE};
use serde::Serialize;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use tool::Tool;

pub use plan::{GapsPlan, GapsReader, GapsWork};

const SLICE_MS: u64 = 1000;
const BLOCK_BYTES: u32 = 8 << 10;

/// What a window brought.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bursts {
    /// The reader, burst by burst.
    pub bursts: Vec<Window>,
    /// Requests a second in all bursts.
    pub requests_per_s: f64,
    /// The part of the pauses in which background work ran, of a reader without any that of the whole window; 0 without work. Of work that
    /// ends within the window only pauses before the one that it ended in count, and there may be none.
    pub used: Option<f64>,
    /// The part of the bursts in which it ran beside the reader, of one that pauses.
    pub beside: f64,
    /// The work was over before the window was.
    pub is_over: bool,
}

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
    /// All pairs of a kind, on a file system of its own.
    fn play_kind(&self, work: GapsWork, told: &mut impl FnMut(&GapsResult)) -> Result<()> {
        let files = match work {
            GapsWork::Scrub => FileSystem::create_btrfs(self.disk)?,
            GapsWork::Backup | GapsWork::Delete => FileSystem::create(self.disk)?,
        };
        match work {
            GapsWork::Backup => write_file(&files.path().join("backup"), BACKUP_MIB)?,
            GapsWork::Scrub => write_file(&files.path().join("file"), SCRUBBED_MIB)?,
            GapsWork::Delete => {}
        }
        let mut random = fastrand::Rng::with_seed(self.plan.seed);
        for reader in &self.plan.readers {
            self.play((work, *reader), &mut random, || prepare(work, files.path()), told)?;
        }
        Ok(())
    }

    /// Pairs of windows with the same bursts and pauses, with work that is added for the one and removed after it.
    fn play(
        &self,
        (work, reader): (GapsWork, GapsReader),
        random: &mut fastrand::Rng,
        prepare: impl Fn() -> Result<Vec<String>>,
        told: &mut impl FnMut(&GapsResult),
    ) -> Result<()> {
        let has_pauses = reader == GapsReader::Pauses;
        let words = if has_pauses { work.words().to_owned() } else { format!("{}, no pauses", work.words()) };
        let mut result = GapsResult { words, has_pauses, pairs: Vec::new() };
        for _ in 0..self.plan.rounds {
            let draw = |random: &mut fastrand::Rng| (random.u64(BURST_MS), random.u64(PAUSE_MS));
            let spans: Vec<(u64, u64)> = (0..self.plan.bursts).map(|_| draw(random)).collect();
            let spans = if has_pauses { spans } else { vec![(spans.iter().map(|(burst_ms, _)| burst_ms).sum(), 0)] };
            let first = usize::from(random.bool());
            let mut pair = [None, None];
            for arm in [first, 1 - first] {
                let arguments = if arm == 0 { Some(prepare()?) } else { None };
                self.wait(SETTLE)?;
                if let Some(arguments) = &arguments {
                    self.tool.add(arguments)?;
                }
                let bursts = self.window(&spans, arguments.is_some());
                if arguments.is_some() {
                    self.tool.run(&["background", "remove", "work"])?;
                    // Its worker lets go of the file system before another is made.
                    self.wait(SETTLE)?;
                }
                pair[arm] = Some(bursts?);
            }
            if let [Some(with), Some(without)] = pair {
                result.pairs.push([with, without]);
                told(&result);
            }
        }
        Ok(())
    }

    fn window(&self, spans: &[(u64, u64)], has_work: bool) -> Result<Bursts> {
        let mut bursts = Vec::new();
        let (mut busy_ms, mut requests) = (0, 0.0);
        // For how long the work ran until the begin of each burst and each pause, and whether it was over then.
        let mut ran = Vec::new();
        let told = || if has_work { self.tool.status() } else { Ok((0.0, false)) };
        for (number, (burst_ms, pause_ms)) in (1..).zip(spans) {
            let mut worker = self.worker(number)?;
            worker.start()?;
            ran.push(self.told_within(*burst_ms, told)?);
            let window = end(worker)?;
            requests += window.mb_per_s * 1e6 * (*burst_ms as f64 / 1e3) / f64::from(BLOCK_BYTES);
            bursts.push(window);
            busy_ms += burst_ms;
            ran.push(self.told_within(*pause_ms, told)?);
        }
        // What ran in the last slice is told after it.
        if has_work {
            let mut worker = self.worker(0)?;
            worker.start()?;
            self.wait(SETTLE)?;
            end(worker)?;
        }
        ran.push(told()?);
        let busy_s = busy_ms as f64 / 1e3;
        let has_pauses = spans.iter().any(|(_, pause_ms)| *pause_ms > 0);
        let (used, beside) = match (has_pauses, ran.first(), ran.last()) {
            (true, ..) => parts(&ran, spans),
            (false, Some(first), Some(last)) => (Some((last.0 - first.0) / busy_s.max(1e-3)), 0.0),
            (false, ..) => (None, 0.0),
        };
        let is_over = ran.last().is_some_and(|last| last.1);
        Ok(Bursts { bursts, requests_per_s: requests / busy_s, used, beside, is_over })
    }

    /// Waits, and asks `told` a slice after the begin: it tells then what ran until the begin.
    fn told_within(&self, span_ms: u64, told: impl Fn() -> Result<(f64, bool)>) -> Result<(f64, bool)> {
        let end = boottime() + Nanos::from_millis(span_ms);
        self.wait(Nanos::from_millis(SLICE_MS.min(span_ms)))?;
        let answer = told()?;
        wait_until(end, self.interrupted)?;
        Ok(answer)
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

/// The parts of the pauses and of the bursts in which work ran. `ran` is for how many seconds it had run at the begin of each burst and of each
/// pause in turn, and at the end, and whether it was over; `spans` how many milliseconds each burst and the pause after it were. What a pause
/// cannot hold is told late of a burst, and counts as nobody's; so does the pause in which the work ended, as it is not known when.
fn parts(ran: &[(f64, bool)], spans: &[(u64, u64)]) -> (Option<f64>, f64) {
    let (mut used_s, mut pauses_s, mut beside_s, mut bursts_s) = (0.0, 0.0, 0.0, 0.0);
    for (told, (burst_ms, pause_ms)) in ran.windows(3).step_by(2).zip(spans) {
        let [at_burst, at_pause, at_end] = [told[0], told[1], told[2]];
        let (burst_s, pause_s) = (*burst_ms as f64 / 1e3, *pause_ms as f64 / 1e3);
        beside_s += (at_pause.0 - at_burst.0).clamp(0.0, burst_s);
        bursts_s += burst_s;
        if !at_end.1 {
            used_s += (at_end.0 - at_pause.0).clamp(0.0, pause_s);
            pauses_s += pause_s;
        }
    }
    ((pauses_s > 0.0).then(|| used_s / pauses_s), beside_s / bursts_s.max(1e-3))
}

/// Makes what the work works on, where that is made anew for each window, and says how the work is added.
fn prepare(work: GapsWork, files: &Path) -> Result<Vec<String>> {
    let add = |kind: &str, path: &Path| ["--kind", kind, "--path", &path.to_string_lossy()].map(str::to_owned).to_vec();
    Ok(match work {
        GapsWork::Backup => {
            let backup = files.join("backup");
            let read = format!("if={} of=/dev/null bs=256k iflag=direct status=none", backup.display());
            let endless = format!("while :; do dd {read}; done");
            let command = ["--", "sh", "-c", &endless].map(str::to_owned).to_vec();
            [add("command", files), command].concat()
        }
        GapsWork::Delete => {
            let tree = files.join("tree");
            make_tree(&tree)?;
            add("delete", &tree)
        }
        GapsWork::Scrub => add("btrfs-scrub", files),
    })
}

#[cfg(test)]
mod tests {
    use super::parts;

    #[test]
    fn what_ran_in_bursts_is_no_use_of_pauses() {
        let spans = [(4_000, 2_000), (3_000, 6_000)];
        let of = |ran: [f64; 5]| parts(&ran.map(|ran_s| (ran_s, false)), &spans);
        // Half of the first pause, five sixths of the second.
        assert_eq!(of([0.0, 0.0, 1.0, 1.0, 6.0]), (Some(0.75), 0.0));
        // In bursts only.
        assert_eq!(of([0.0, 4.0, 4.0, 7.0, 7.0]), (Some(0.0), 1.0));
        // More than a pause holds was told late.
        assert_eq!(of([0.0, 0.0, 3.0, 3.0, 9.0]), (Some(1.0), 0.0));
    }

    #[test]
    fn the_pause_in_which_work_ended_says_nothing() {
        let spans = [(4_000, 2_000), (3_000, 6_000)];
        // Over within the second pause, told in the burst after it; then within the first.
        let told = [(0.0, false), (0.0, false), (1.5, false), (1.5, false), (2.0, true)];
        assert_eq!(parts(&told, &spans), (Some(0.75), 0.0));
        let told = [(0.0, false), (0.0, false), (1.5, true), (1.5, true), (1.5, true)];
        assert_eq!(parts(&told, &spans), (None, 0.0));
    }
}
