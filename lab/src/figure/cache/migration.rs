//! What a burst costs beside busy neighbours: straight to their disk, by way of a fast one and copied back at once, and through the
//! pool, from which it moves when their disk is quiet.
//!
//! Two neighbours work without a pause, then in bursts with pauses, the same in all arms of a round; then it is quiet. The tenant begins
//! its burst two seconds after them.

use super::burst::{Burst, MigrationArm, TENANT};
use super::neighbours::{MigrationRun, NEIGHBOURS, Neighbours, Stretch};
use super::service::{ServedTenant, Service, ServiceConfig};
use crate::clock::boottime;
use crate::daemon::{Daemon, DaemonConfig};
use crate::disk::{Disk, DiskSpec, FileSystem, RUNTIME_DIRECTORY};
use crate::error::{At, LabError, Result};
use crate::figure::race::wait_until;
use crate::figure::undo::arm_counters;
use crate::scene::{Contents, Directory};
use crate::workload::{
    Appearance, CgroupParent, Compute, TenantCgroup, Worker, WorkerProgram, WorkloadSpec, blkio_version,
};
use minerva_model::{CgroupVersion, Nanos};
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
/// Far more than a burst.
const QUOTA: u64 = 3 << 30;

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
    let control = daemon.is_some().then(|| directory.path().join("control.sock"));
    let mut service = start_service(plan, &name, &fast, control, &groups, interrupted)?;
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

fn start_service(
    plan: &MigrationPlan,
    name: &str,
    fast: &Kept,
    daemon: Option<PathBuf>,
    groups: &Groups,
    interrupted: &AtomicBool,
) -> Result<Service> {
    let tenant = ServedTenant { name: TENANT.to_owned(), temporary_bytes: 1 << 20, stable_bytes: QUOTA, files: 1000 };
    let config = ServiceConfig {
        program: &plan.service,
        name: format!("{name}-service"),
        pool: &fast.files.path().join("pool"),
        tenants: &[tenant],
        daemon,
        group: Some(&groups.service),
    };
    Service::start(&config, interrupted)
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
