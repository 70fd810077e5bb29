//! What a burst costs beside busy neighbours: straight to their disk, by way of a fast one and copied back at once, and through the
//! pool, from which it moves when their disk is quiet.
//!
//! Two neighbours work without a pause, then in bursts with pauses, the same in all arms of a round; then it is quiet. The tenant begins
//! its burst two seconds after them.

use super::burst::{Burst, MigrationArm, TENANT, Written};
use super::service::{ServedTenant, Service, ServiceConfig};
use crate::clock::boottime;
use crate::daemon::{Daemon, DaemonConfig};
use crate::disk::{Disk, DiskSpec, FileSystem, RUNTIME_DIRECTORY};
use crate::error::{At, LabError, Result};
use crate::figure::race::wait_until;
use crate::figure::undo::arm_counters;
use crate::scene::{Contents, Directory};
use crate::workload::{
    Access, Appearance, CgroupParent, Compute, Latency, Progress, TenantCgroup, Worker, WorkerProgram, WorkloadSpec,
    blkio_version, bytes_at,
};
use minerva_model::{CgroupVersion, Nanos};
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// The burst comes to a disk that is busy already.
const LEAD: Nanos = Nanos::from_secs(2);
/// What an arm before wrote is on the disk.
const SETTLE: Nanos = Nanos::from_secs(3);
/// Bursts of the neighbours and their pauses, once they pause; drawn.
const BURST_MS: std::ops::Range<u64> = 3_000..6_000;
const PAUSE_MS: std::ops::Range<u64> = 4_000..8_000;
const FILES: u32 = 8;
const SLICE_MS: u64 = 1000;
/// For plots.
const BIN: Nanos = Nanos::from_millis(500);
/// Far more than a burst.
const QUOTA: u64 = 3 << 30;

/// Names of the neighbours, with order and bytes a request.
pub const NEIGHBOURS: [(&str, Access, u32); 2] =
    [("random reads of 8 KiB", Access::RandomRead, 8 << 10), ("scan of 256 KiB", Access::SequentialRead, 256 << 10)];

/// What to measure.
#[derive(Clone, Debug)]
pub struct MigrationPlan {
    /// The profile of the disk where files belong.
    pub profile: String,
    /// Its elevator.
    pub elevator: String,
    /// The profile of the disk set aside.
    pub pool_profile: String,
    /// How much the tenant writes, in eight files.
    pub burst_bytes: u64,
    /// For how long neighbours work without a pause.
    pub busy: Nanos,
    /// After it, so many bursts with a pause after each.
    pub bursts: u32,
    /// How often all arms play.
    pub rounds: u32,
    /// Seed of orders, bursts and pauses.
    pub seed: u64,
    /// `minerva-fs`.
    pub service: PathBuf,
    /// `minervad`, which then tells the service who uses the disk, in all arms; without it the disk's counters do.
    pub daemon: Option<PathBuf>,
}

/// What a neighbour did in a stretch.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NeighbourRun {
    /// Megabytes a second while it worked.
    pub mb_per_s: f64,
    /// How long its requests took.
    pub latency: Latency,
}

/// What came of an arm. Seconds are from the start of the neighbours.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MigrationRun {
    /// Which.
    pub arm: MigrationArm,
    /// When the burst began, was written as far as the program is concerned, and was at its place; none without a burst.
    pub burst_s: Option<[f64; 3]>,
    /// The neighbours while they worked without a pause.
    pub busy: Vec<NeighbourRun>,
    /// And while they paused now and then.
    pub pausing: Vec<NeighbourRun>,
    /// When they worked: from, until.
    pub worked_s: Vec<[f64; 2]>,
    /// Bytes that moved from the pool while they paused now and then.
    pub moved_pausing: u64,
    /// Megabytes a second of each neighbour, by half seconds.
    pub series: Vec<Vec<f64>>,
}

impl MigrationRun {
    /// Seconds until the program was done.
    pub fn done_s(&self) -> Option<f64> {
        self.burst_s.map(|[began, done, _]| done - began)
    }

    /// Seconds from when the neighbours had gone until all was at its place; none without a burst.
    pub fn placed_after_quiet_s(&self) -> Option<f64> {
        let quiet = self.worked_s.last().map_or(0.0, |[_, until]| *until);
        self.burst_s.map(|[_, _, placed]| (placed - quiet).max(0.0))
    }
}

/// Plays all arms in a drawn order, so many times. `told` hears which is next.
pub fn cache_migration(
    plan: &MigrationPlan,
    program: &WorkerProgram,
    interrupted: &AtomicBool,
    told: &mut dyn FnMut(u32, MigrationArm),
) -> Result<Vec<Vec<MigrationRun>>> {
    let name = format!("cache-{}", std::process::id());
    // Dropped in the opposite order: file systems, disks, what the disks held.
    let (slow, fast) = (Kept::create(&name, &plan.profile, &plan.elevator)?, pool_disk(&name, &plan.pool_profile)?);
    let parent = CgroupParent::create("minerva-lab-cache")?;
    if plan.elevator != "bfq" && blkio_version() == CgroupVersion::V1 {
        arm_counters(slow.disk.info().id, &parent)?;
    }
    let groups = Groups::create(&parent)?;
    let directory = Directory::create(Path::new(RUNTIME_DIRECTORY).join(format!("{name}-daemon")))?;
    let daemon =
        plan.daemon.as_ref().map(|program| start_daemon(program, &directory, &parent, &slow.disk)).transpose()?;
    let service = ServiceConfig {
        program: &plan.service,
        name: format!("{name}-service"),
        pool: &fast.files.path().join("pool"),
        tenants: &[ServedTenant {
            name: TENANT.to_owned(),
            temporary_bytes: 1 << 20,
            stable_bytes: QUOTA,
            files: 1000,
        }],
        daemon: daemon.is_some().then(|| directory.path().join("control.sock")),
        group: Some(&groups.service),
    };
    let mut service = Service::start(&service, interrupted)?;
    let mut random = fastrand::Rng::with_seed(plan.seed);
    let mut rounds = Vec::new();
    for round in 0..plan.rounds {
        let spans: Vec<(u64, u64)> = (0..plan.bursts).map(|_| (random.u64(BURST_MS), random.u64(PAUSE_MS))).collect();
        let mut arms = MigrationArm::ALL;
        random.shuffle(&mut arms);
        let mut runs = Vec::new();
        for arm in arms {
            told(round, arm);
            let stage =
                Stage { plan, slow: &slow, fast: &fast, service: &service, groups: &groups, program, interrupted };
            runs.push(stage.play(arm, &spans)?);
            service.check()?;
        }
        runs.sort_by_key(|run| MigrationArm::ALL.iter().position(|arm| *arm == run.arm));
        rounds.push(runs);
    }
    service.end()?;
    if let Some(daemon) = daemon {
        daemon.end()?;
    }
    Ok(rounds)
}

fn start_daemon(program: &Path, directory: &Directory, parent: &CgroupParent, disk: &Disk) -> Result<Daemon> {
    let config = DaemonConfig {
        directory: directory.path(),
        slice_ms: SLICE_MS,
        parent,
        disk: disk.info(),
        guard: true,
        further: String::new(),
    };
    config.write()?;
    Daemon::start(program, directory.path())
}

/// Who takes part.
struct Groups {
    neighbours: Vec<TenantCgroup>,
    burst: TenantCgroup,
    service: TenantCgroup,
}

impl Groups {
    fn create(parent: &CgroupParent) -> Result<Self> {
        Ok(Self {
            neighbours: ["random", "scan"].into_iter().map(|name| parent.tenant(name)).collect::<Result<_>>()?,
            burst: parent.tenant(TENANT)?,
            service: parent.tenant("minerva-fs")?,
        })
    }
}

/// A disk with a file system.
pub(super) struct Kept {
    pub(super) files: FileSystem,
    pub(super) disk: Disk,
    _contents: Contents,
}

impl Kept {
    pub(super) fn create(name: &str, profile: &str, elevator: &str) -> Result<Self> {
        let mut spec = DiskSpec::new(name, profile);
        elevator.clone_into(&mut spec.elevator);
        let contents = Contents(Path::new(RUNTIME_DIRECTORY).join(format!("{name}.contents")));
        spec.backing = Some(contents.0.clone());
        let disk = Disk::create(&spec)?;
        let files = FileSystem::create(&disk)?;
        Ok(Self { files, disk, _contents: contents })
    }
}

/// The disk set aside, without an elevator, as an SSD has.
pub(super) fn pool_disk(name: &str, profile: &str) -> Result<Kept> {
    Kept::create(&format!("{name}-pool"), profile, "none")
}

struct Stage<'a> {
    plan: &'a MigrationPlan,
    slow: &'a Kept,
    fast: &'a Kept,
    service: &'a Service,
    groups: &'a Groups,
    program: &'a WorkerProgram,
    interrupted: &'a AtomicBool,
}

impl Stage<'_> {
    fn play(&self, arm: MigrationArm, spans: &[(u64, u64)]) -> Result<MigrationRun> {
        let (place, fast) = (self.slow.files.path().join("files"), self.fast.files.path().join("copies"));
        for directory in [&place, &fast] {
            if directory.exists() {
                fs::remove_dir_all(directory).at("remove", directory)?;
            }
            fs::create_dir(directory).at("create", directory)?;
            let opened = fs::File::open(directory).at("open", directory)?;
            rustix::fs::syncfs(&opened).map_err(std::io::Error::from).at("sync", directory)?;
        }
        self.wait(SETTLE)?;
        let burst = Burst {
            arm,
            files: FILES,
            bytes: self.plan.burst_bytes,
            place: &place,
            fast: &fast,
            service: self.service,
            program: self.program,
            group: &self.groups.burst,
            interrupted: self.interrupted,
        };
        let (begin, has_burst) = (boottime(), arm != MigrationArm::Nobody);
        let (neighbours, written) = std::thread::scope(|scope| {
            let written = scope.spawn(|| {
                self.wait(LEAD)?;
                if has_burst { burst.play().map(Some) } else { Ok(None) }
            });
            let neighbours = self.neighbours(begin, spans);
            let written = written.join().map_err(|_| LabError::BadPlan("a burst panicked".to_owned()))?;
            Ok::<_, LabError>((neighbours?, written?))
        })?;
        Ok(neighbours.into_run(arm, begin, written))
    }

    /// The neighbours, from their start to their last end.
    fn neighbours(&self, begin: Nanos, spans: &[(u64, u64)]) -> Result<Neighbours> {
        let mut done = Neighbours::default();
        self.stretch(0, self.plan.busy, &mut done)?;
        let moved_before = self.service.moved_bytes()?;
        for (seed, (burst_ms, pause_ms)) in (1..).zip(spans) {
            self.wait(Nanos::from_millis(*pause_ms))?;
            self.stretch(seed, Nanos::from_millis(*burst_ms), &mut done)?;
        }
        done.moved = self.service.moved_bytes()? - moved_before;
        done.begin = begin;
        Ok(done)
    }

    /// All neighbours at work for a while.
    fn stretch(&self, seed: u64, span: Nanos, done: &mut Neighbours) -> Result<()> {
        let mut workers = Vec::new();
        for (place, group) in self.groups.neighbours.iter().enumerate() {
            workers.push(Worker::spawn(self.program, &self.spec(place, seed), Some(group))?);
        }
        let from = boottime();
        workers.iter_mut().try_for_each(Worker::start)?;
        self.wait(span)?;
        workers.iter_mut().for_each(Worker::stop);
        let until = boottime();
        let results = workers.into_iter().map(Worker::wait).collect::<Result<Vec<_>>>()?;
        done.stretches.push(Stretch {
            from,
            until,
            latencies: results.iter().map(|result| result.finished.latency.clone()).collect(),
            progress: results.into_iter().map(|result| result.progress).collect(),
        });
        Ok(())
    }

    /// Beyond the file system, each in a part of its own.
    fn spec(&self, place: usize, seed: u64) -> WorkloadSpec {
        let size = self.slow.disk.info().size_bytes;
        let (name, access, block_bytes) = NEIGHBOURS[place];
        let blocks = |bytes: u64| bytes / u64::from(block_bytes) * u64::from(block_bytes);
        WorkloadSpec {
            tenant: name.to_owned(),
            path: self.slow.disk.device().to_owned(),
            access,
            bytes: None,
            block_bytes,
            region_start: blocks(size / 8 * (1 + 3 * place as u64)),
            region_bytes: blocks(size / 4),
            depth: 1,
            compute: Compute::Nothing,
            think: Nanos::ZERO,
            rests: None,
            appearance: Appearance::default(),
            part: None,
            seed,
        }
    }

    fn wait(&self, span: Nanos) -> Result<Nanos> {
        wait_until(boottime() + span, self.interrupted)
    }
}

/// What neighbours did while they worked.
struct Stretch {
    from: Nanos,
    until: Nanos,
    latencies: Vec<Latency>,
    progress: Vec<Vec<Progress>>,
}

impl Stretch {
    fn seconds(&self) -> f64 {
        self.until.since(self.from).as_secs_f64().max(1e-3)
    }

    fn bytes(&self, place: usize) -> f64 {
        bytes_at(&self.progress[place], self.until)
    }
}

#[derive(Default)]
struct Neighbours {
    begin: Nanos,
    stretches: Vec<Stretch>,
    moved: u64,
}

impl Neighbours {
    fn into_run(self, arm: MigrationArm, begin: Nanos, written: Option<Written>) -> MigrationRun {
        let since = |at: Nanos| at.since(begin).as_secs_f64();
        let places = 0..NEIGHBOURS.len();
        let (busy, pausing) = self.stretches.split_at(self.stretches.len().min(1));
        let of = |stretches: &[Stretch]| places.clone().map(|place| neighbour(stretches, place)).collect();
        MigrationRun {
            arm,
            burst_s: written.map(|Written { began, done, placed }| [since(began), since(done), since(placed)]),
            busy: of(busy),
            pausing: of(pausing),
            worked_s: self.stretches.iter().map(|stretch| [since(stretch.from), since(stretch.until)]).collect(),
            moved_pausing: self.moved,
            series: places.clone().map(|place| self.series(place)).collect(),
        }
    }

    /// Megabytes a second, by bins.
    fn series(&self, place: usize) -> Vec<f64> {
        let until = self.stretches.last().map_or(self.begin, |stretch| stretch.until);
        let bins = (until.since(self.begin).0 / BIN.0) as usize;
        let had = |at: Nanos| -> f64 { self.stretches.iter().map(|one| bytes_at(&one.progress[place], at)).sum() };
        let bin = |bin: usize| {
            let from = self.begin + Nanos(BIN.0 * bin as u64);
            (had(from + BIN) - had(from)) / BIN.as_secs_f64() / 1e6
        };
        (0..bins).map(bin).collect()
    }
}

fn neighbour(stretches: &[Stretch], place: usize) -> NeighbourRun {
    let seconds: f64 = stretches.iter().map(Stretch::seconds).sum();
    let bytes: f64 = stretches.iter().map(|stretch| stretch.bytes(place)).sum();
    NeighbourRun {
        mb_per_s: bytes / seconds.max(1e-3) / 1e6,
        latency: Latency::merged(stretches.iter().map(|stretch| &stretch.latencies[place])),
    }
}

#[cfg(test)]
mod tests {
    use super::{MigrationArm, Neighbours, Stretch, Written};
    use crate::workload::{Latency, Progress};
    use minerva_model::Nanos;

    fn stretch(from_s: u64, bytes: u64) -> Stretch {
        let (from, until) = (Nanos::from_secs(from_s), Nanos::from_secs(from_s + 2));
        let progress = vec![Progress { at: from, bytes: 0 }, Progress { at: until, bytes }];
        let latencies = vec![Latency::default(), Latency::default()];
        Stretch { from, until, latencies, progress: vec![progress.clone(), progress] }
    }

    #[test]
    fn what_neighbours_had_is_told_for_both_stretches_and_the_quiet_begins_after_them() {
        let stretches = vec![stretch(10, 4_000_000), stretch(14, 2_000_000), stretch(18, 6_000_000)];
        let neighbours = Neighbours { begin: Nanos::from_secs(10), stretches, moved: 7 };
        let [began, done, placed] = [12, 13, 27].map(Nanos::from_secs);
        let run = neighbours.into_run(MigrationArm::Pool, Nanos::from_secs(10), Some(Written { began, done, placed }));
        assert_eq!([run.busy[0].mb_per_s, run.pausing[1].mb_per_s], [2.0, 2.0]);
        assert_eq!((run.done_s(), run.placed_after_quiet_s()), (Some(1.0), Some(7.0)));
        // Bins of half a second: at work, in a pause, at work again.
        assert_eq!([run.series[0][1], run.series[0][5], run.series[0][9]], [2.0, 0.0, 1.0]);
        assert_eq!(run.series[0].len(), 20);
    }
}
