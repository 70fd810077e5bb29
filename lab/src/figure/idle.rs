//! What a tenant at level `idle` costs others, and what it gets of a disk that nobody else uses.

use super::race::wait_until;
use super::undo::arm_counters;
use crate::clock::boottime;
use crate::daemon::{Daemon, DaemonConfig};
use crate::disk::{Disk, DiskSpec, RUNTIME_DIRECTORY};
use crate::error::Result;
use crate::scene::Directory;
use crate::workload::{
    Access, Appearance, CgroupParent, Compute, Latency, Part, TakesPart, TenantCgroup, Worker, WorkerProgram,
    WorkloadSpec, blkio_version,
};
use minerva_model::{CgroupVersion, Level, Nanos};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

const SLICE_MS: u64 = 1000;
/// BFQ learns the disk's peak rate meanwhile.
const WARM_UP: Nanos = Nanos::from_secs(4);
/// By then a tenant at `idle` has the whole of a disk that others have left.
const ALONE_AGAIN: Nanos = Nanos::from_secs(5);
/// By then the daemon has seen who came.
const SEEN: Nanos = Nanos::from_secs(3);
/// By then a request that a paused tenant at `idle` had asked for is done.
const DONE: Nanos = Nanos::from_secs(5);
/// A tenant that goes on after a pause is at work.
const RESUMED: Nanos = Nanos::from_secs(1);
/// What a tenant that just came gets is judged over this.
const ARRIVAL: Nanos = Nanos::from_secs(2);

/// Kinds of work: what they are called, order and bytes a request. One request at a time: a scan of several at once settles now on one
/// speed and now on twice that, whoever is beside it.
type Work = (&'static str, Access, u32);
const OTHERS: [Work; 2] =
    [("random 8 KiB", Access::RandomRead, 8 << 10), ("scan 256 KiB", Access::SequentialRead, 256 << 10)];
const IDLE: [Work; 2] =
    [("random 4 KiB", Access::RandomRead, 4 << 10), ("scan 256 KiB", Access::SequentialRead, 256 << 10)];

/// What to measure.
#[derive(Clone, Debug)]
pub struct IdlePlan {
    /// The emulated disk's profile.
    pub profile: String,
    /// Its elevator.
    pub elevator: String,
    /// Length of each window.
    pub window: Nanos,
    /// How often each pair of windows, with and without, is measured.
    pub rounds: u32,
    /// Seed of the orders.
    pub seed: u64,
    /// `minervad`.
    pub daemon: PathBuf,
}

/// What was measured in a window.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Window {
    /// Megabytes a second.
    pub mb_per_s: f64,
    /// How long requests took.
    pub latency: Latency,
}

/// Another tenant, with one at `idle` beside it and without, in turns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Beside {
    /// The work of the two, in words.
    pub words: String,
    /// Windows with the tenant at `idle`, and those without that stand beside them.
    pub pairs: Vec<[Window; 2]>,
    /// Megabytes a second in the first two seconds after it came, with and without.
    pub arrival_mb_per_s: [f64; 2],
    /// Requests a second that the tenant at `idle` completed beside it.
    pub idle_requests_per_s: f64,
}

/// A tenant that has the disk to itself, at `idle` and at `normal`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Alone {
    /// Its work, in words.
    pub words: String,
    /// Megabytes a second at `idle` and at `normal`, a pair a round.
    pub mb_per_s: Vec<[f64; 2]>,
}

/// All of one disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct IdleResult {
    /// What others lose.
    pub beside: Vec<Beside>,
    /// What it gets.
    pub alone: Vec<Alone>,
}

/// Measures all of it on one disk under one daemon, in an order that is drawn.
pub fn idle(plan: &IdlePlan, program: &WorkerProgram, interrupted: &AtomicBool) -> Result<IdleResult> {
    let mut spec = DiskSpec::new(format!("idle-{}", std::process::id()), plan.profile.clone());
    spec.elevator.clone_from(&plan.elevator);
    let disk = Disk::create(&spec)?;
    let parent = CgroupParent::create("minerva-lab-idle")?;
    if plan.elevator != "bfq" && blkio_version() == CgroupVersion::V1 {
        arm_counters(disk.info().id, &parent)?;
    }
    let directory = Directory::create(Path::new(RUNTIME_DIRECTORY).join(format!("idle-{}", std::process::id())))?;
    let config = DaemonConfig {
        directory: directory.path(),
        slice_ms: SLICE_MS,
        parent: &parent,
        disk: disk.info(),
        guard: true,
        further: String::new(),
    };
    config.write()?;
    let stage = Stage {
        plan,
        socket: DaemonConfig::participation_socket(directory.path()),
        other: parent.tenant("other")?,
        idle: parent.tenant("idle")?,
        disk: &disk,
        program,
        interrupted,
    };
    let mut daemon = Daemon::start(&plan.daemon, directory.path())?;
    stage.window(OTHERS[1], None, WARM_UP)?;
    let mut random = fastrand::Rng::with_seed(plan.seed);
    let mut scenes: Vec<(Option<Work>, Work)> = IDLE.iter().map(|work| (None, *work)).collect();
    scenes.extend(OTHERS.iter().flat_map(|other| IDLE.map(|work| (Some(*other), work))));
    random.shuffle(&mut scenes);
    let mut result = IdleResult::default();
    for (other, work) in scenes {
        match other {
            Some(other) => result.beside.push(stage.beside(other, work, &mut random)?),
            None => result.alone.push(stage.alone(work, &mut random)?),
        }
        daemon.check()?;
    }
    daemon.end()?;
    Ok(result)
}

/// Where it is played.
struct Stage<'a> {
    plan: &'a IdlePlan,
    socket: PathBuf,
    other: TenantCgroup,
    idle: TenantCgroup,
    disk: &'a Disk,
    program: &'a WorkerProgram,
    interrupted: &'a AtomicBool,
}

impl Stage<'_> {
    /// A tenant by itself, in turns at `idle` and at `normal`.
    fn alone(&self, work: Work, random: &mut fastrand::Rng) -> Result<Alone> {
        self.wait(ALONE_AGAIN)?;
        let mut mb_per_s = Vec::new();
        for _ in 0..self.plan.rounds {
            let first = usize::from(random.bool());
            let mut pair = [0.0; 2];
            for turn in [first, 1 - first] {
                let level = (turn == 0).then_some(Level::Idle);
                pair[turn] = self.window(work, level, self.plan.window)?.mb_per_s;
            }
            mb_per_s.push(pair);
        }
        Ok(Alone { words: work.0.to_owned(), mb_per_s })
    }

    /// Another tenant comes to a disk which one at `idle` has had to itself, and stays, while that one works and pauses in turns.
    fn beside(&self, other: Work, work: Work, random: &mut fastrand::Rng) -> Result<Beside> {
        let mut idle = self.worker(work, Some(Level::Idle), &self.idle)?;
        idle.start()?;
        self.wait(ALONE_AGAIN)?;
        let (mut present, arrival) = self.arrive(other)?;
        let (mut pairs, mut requests) = (Vec::new(), 0.0);
        for _ in 0..self.plan.rounds {
            let works_first = random.bool();
            let mut pair = [None, None];
            for works in [works_first, !works_first] {
                if works {
                    idle.resume();
                    self.wait(RESUMED)?;
                } else {
                    idle.pause();
                    self.wait(DONE)?;
                }
                let before = bytes_of(&idle);
                let (window, next) = self.take_turns(present, other)?;
                present = next;
                requests += (bytes_of(&idle) - before) / f64::from(work.2);
                pair[usize::from(!works)] = Some(window);
            }
            if let [Some(with), Some(without)] = pair {
                pairs.push([with, without]);
            }
        }
        idle.resume();
        end(idle)?;
        end(present)?;
        self.wait(SEEN)?;
        let (present, alone) = self.arrive(other)?;
        end(present)?;
        let seconds = f64::from(self.plan.rounds) * self.plan.window.as_secs_f64();
        let words = format!("{} beside {} at idle", other.0, work.0);
        Ok(Beside {
            words,
            pairs,
            arrival_mb_per_s: [arrival, alone],
            idle_requests_per_s: requests / seconds.max(1.0),
        })
    }

    /// The other tenant comes; what it had in its first two seconds, in megabytes a second.
    fn arrive(&self, work: Work) -> Result<(Worker, f64)> {
        let mut worker = self.worker(work, None, &self.other)?;
        worker.start()?;
        self.wait(ARRIVAL)?;
        let had = bytes_of(&worker) / ARRIVAL.as_secs_f64() / 1e6;
        self.wait(SEEN)?;
        Ok((worker, had))
    }

    /// Another worker of the same tenant takes the place of the one at work, for a window, and a third one its.
    fn take_turns(&self, present: Worker, work: Work) -> Result<(Window, Worker)> {
        let mut measured = self.worker(work, None, &self.other)?;
        let mut next = self.worker(work, None, &self.other)?;
        measured.start()?;
        end(present)?;
        self.wait(self.plan.window)?;
        next.start()?;
        Ok((end(measured)?, next))
    }

    fn window(&self, work: Work, level: Option<Level>, span: Nanos) -> Result<Window> {
        let mut worker = self.worker(work, level, &self.idle)?;
        worker.start()?;
        self.wait(span)?;
        end(worker)
    }

    fn worker(&self, (name, access, block_bytes): Work, level: Option<Level>, group: &TenantCgroup) -> Result<Worker> {
        let size = self.disk.info().size_bytes;
        let blocks = |bytes: u64| bytes / u64::from(block_bytes) * u64::from(block_bytes);
        // Each works in a part of its own.
        let part = if group.path() == self.idle.path() { size / 2 } else { size / 10 };
        let spec = WorkloadSpec {
            tenant: name.to_owned(),
            path: self.disk.device().to_owned(),
            access,
            bytes: None,
            block_bytes,
            region_start: blocks(part),
            region_bytes: blocks(size / 4),
            depth: 1,
            compute: Compute::Nothing,
            think: Nanos::ZERO,
            rests: None,
            appearance: Appearance::default(),
            part: level.map(|level| TakesPart { socket: self.socket.clone(), part: Part::StepsBack(level) }),
            seed: 1,
        };
        Worker::spawn(self.program, &spec, Some(group))
    }

    fn wait(&self, span: Nanos) -> Result<Nanos> {
        wait_until(boottime() + span, self.interrupted)
    }
}

fn bytes_of(worker: &Worker) -> f64 {
    worker.progress().map_or(0.0, |progress| progress.bytes as f64)
}

/// Ends a worker; what it did from its start on.
pub(super) fn end(mut worker: Worker) -> Result<Window> {
    worker.stop();
    let done = worker.wait()?.finished;
    let seconds = done.ended.since(done.started).as_secs_f64().max(1e-3);
    Ok(Window { mb_per_s: done.bytes as f64 / seconds / 1e6, latency: done.latency })
}
