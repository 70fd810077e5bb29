//! Contracts and tags of real guests: stock kernels in QEMU that read from one emulated disk, through `minerva-blk` or through
//! what else orders requests between guests today; and scenes whose tenants are guests.

mod busybox;
mod guests;
mod judge;
mod log;
mod part;
mod scene;
mod served;
mod steal;

pub use judge::{VmKept, VmPromise, VmTagged, inversions, judge_contract, judge_tags, proportion_error};
pub use log::Record;
pub use scene::{VmSceneArm, VmScenePlan, VmSceneRun, run_vm_scene};
pub use steal::VmWaited;

use crate::disk::{Disk, DiskSpec};
use crate::error::{At, LabError, Result};
use crate::guest::Architecture;
use crate::priority::hurry;
use crate::workload::{Access, CgroupParent, Progress, TenantCgroup};
use guests::Signs;
use minerva_model::Nanos;
use part::GuestPart;
use rustix::time::{ClockId, clock_gettime};
use served::Server;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use steal::Times;

/// Guests boot within seconds; on a busy machine several at once may take minutes.
const BOOT_PATIENCE: Duration = Duration::from_secs(240);
const STEP: Duration = Duration::from_millis(20);
/// The first second is for learning how the disk is.
const WARM_UP: Duration = Duration::from_secs(1);

/// What orders the requests of several guests to one disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VmArm {
    /// `minerva-blk` with this scheduler.
    Served(String),
    /// The kernel's BFQ, with a weight for each guest.
    KernelBfq,
    /// Nobody; QEMU limits each guest.
    QemuThrottle,
}

/// One program of a guest. Most of them read.
#[derive(Clone, Debug, PartialEq)]
pub struct VmReader {
    /// In which order it reads or writes.
    pub access: Access,
    /// Bytes a request.
    pub block_bytes: u32,
    /// Requests under way at once.
    pub depth: u32,
    /// Pause after each request, for a depth of one.
    pub think: Nanos,
    /// First byte of its region.
    pub region_start: u64,
    /// Length of its region.
    pub region_bytes: u64,
    /// Its I/O priority, as `ioprio_set(2)` takes it, of class best effort; none for the kernel's default.
    pub ioprio: Option<u16>,
}

/// One guest.
#[derive(Clone, Debug, PartialEq)]
pub struct VmGuest {
    /// Its name, and that of its disk.
    pub name: String,
    /// Where its processors are not like this host's, `ionice` and `dd` of its busybox are its programs; they report once.
    pub architecture: Architecture,
    /// The rest of its disk's table in `blk.toml`, for [`VmArm::Served`].
    pub served: String,
    /// For [`VmArm::KernelBfq`], 1 to 1,000.
    pub bfq_weight: u32,
    /// For [`VmArm::QemuThrottle`].
    pub limit_bytes_per_second: u64,
    /// The guest's own elevator: `none`, or `bfq`.
    pub elevator: &'static str,
    /// Its programs.
    pub readers: Vec<VmReader>,
}

impl VmGuest {
    /// Whether a program of it writes.
    fn writes(&self) -> bool {
        self.readers.iter().any(|reader| reader.access.is_write())
    }
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct VmPlan<'a> {
    /// Who orders.
    pub arm: VmArm,
    /// All guests, which read at the same time.
    pub guests: Vec<VmGuest>,
    /// The rest of the disk's table in the server's file.
    pub device: String,
    /// Which disk to emulate.
    pub profile: String,
    /// For so long, in seconds, after the first second in which all read.
    pub seconds: u64,
    /// The program `minerva-blk`.
    pub server: &'a Path,
    /// The program `minerva-lab`, small enough for a guest.
    pub reader: &'a Path,
    /// Where the server's log is kept; none for nowhere.
    pub log: Option<PathBuf>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct VmRun {
    /// Every request that the server answered, in the order in which they came; none in the other arms.
    pub records: Vec<Record>,
    /// What is to be judged of them.
    pub begin: Nanos,
    /// And its end.
    pub end: Nanos,
    /// By guest: what its readers reported, of the same time.
    pub guests: Vec<VmProgress>,
    /// Time that was wanted of a processor and not had.
    pub waited: VmWaited,
}

/// What the readers of one guest reported, by its own clock.
#[derive(Clone, Debug, PartialEq)]
pub struct VmProgress {
    /// About the same instants as of the run.
    pub begin: Nanos,
    /// Likewise.
    pub end: Nanos,
    /// By reader.
    pub readers: Vec<Vec<Progress>>,
}

/// The clock of the server's log.
fn monotonic() -> Nanos {
    let now = clock_gettime(ClockId::Monotonic);
    Nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

/// Boots the guests, lets them read together, and kills them.
pub fn run_vms(plan: &VmPlan<'_>, interrupted: &AtomicBool) -> Result<VmRun> {
    // In a thread of its own, as its priority goes over to all that it starts.
    std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            hurry();
            run(plan, interrupted)
        });
        run.join().unwrap_or_else(|_| Err(LabError::BadPlan("a thread of the measurement panicked".to_owned())))
    })
}

fn run(plan: &VmPlan<'_>, interrupted: &AtomicBool) -> Result<VmRun> {
    let elevator = if plan.arm == VmArm::KernelBfq { "bfq" } else { "none" };
    let name = format!("minerva-lab-vm-{}", std::process::id());
    let has_partitions = plan.guests.iter().any(VmGuest::writes);
    let elevator = elevator.to_owned();
    let disk = Disk::create(&DiskSpec { elevator, has_partitions, ..DiskSpec::new(name, &plan.profile) })?;
    let parts = part::of_guests(&plan.guests, &disk)?;
    let directory = tempfile::Builder::new().prefix("minerva-lab-vm-").tempdir();
    let directory = directory.map_err(|source| LabError::Io {
        operation: "make a directory in",
        path: std::env::temp_dir(),
        source,
    })?;
    let parent = CgroupParent::create("minerva-lab-vm")?;
    let groups = plan.guests.iter().map(|guest| {
        let group = parent.tenant(&guest.name)?;
        if plan.arm == VmArm::KernelBfq {
            parent.set_bfq_weight(&guest.name, guest.bfq_weight)?;
        }
        Ok(group)
    });
    let groups = groups.collect::<Result<Vec<TenantCgroup>>>()?;
    let server = match &plan.arm {
        VmArm::Served(scheduler) => Some(Server::start(plan, scheduler, (disk.info(), &parts), directory.path())?),
        _ => None,
    };
    let mut run = conduct(plan, &parts, directory.path(), &groups, server.as_ref(), interrupted)?;
    if let Some(server) = server {
        let log = server.end()?;
        if let Some(kept) = &plan.log {
            std::fs::copy(&log, kept).at("keep the log as", kept)?;
        }
        run.records = log::read(&log)?;
        run.records.sort_by_key(|record| record.arrived);
    }
    Ok(run)
}

fn conduct(
    plan: &VmPlan<'_>,
    parts: &[GuestPart],
    directory: &Path,
    groups: &[TenantCgroup],
    server: Option<&Server>,
    interrupted: &AtomicBool,
) -> Result<VmRun> {
    let signs: Vec<Signs> = plan.guests.iter().map(|_| Signs::default()).collect();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let start = |(((guest, part), group), signs)| {
            let (socket, is_over) = (served::socket(directory, guest), &is_over);
            scope.spawn(move || guests::run(plan, (guest, part), &socket, group, (signs, is_over)))
        };
        let threads: Vec<_> = plan.guests.iter().zip(parts).zip(groups).zip(&signs).map(start).collect();
        let wait = |is_time: &dyn Fn() -> bool, patience: Duration| {
            let begun = Instant::now();
            while !is_time() && begun.elapsed() < patience {
                if interrupted.load(Ordering::Relaxed) || threads.iter().any(|thread| thread.is_finished()) {
                    return false;
                }
                std::thread::sleep(STEP);
            }
            true
        };
        let has_begun = || signs.iter().all(|sign| sign.has_begun.load(Ordering::Relaxed));
        let latest = || signs.iter().map(|sign| Nanos(sign.latest.load(Ordering::Relaxed))).collect::<Vec<_>>();
        let times = || Times::read(groups, server.map(Server::pid));
        let mut goes_on = wait(&has_begun, BOOT_PATIENCE) && has_begun() && wait(&|| false, WARM_UP);
        let (begin, begin_latest, before) = (monotonic(), latest(), times());
        goes_on = goes_on && wait(&|| false, Duration::from_secs(plan.seconds));
        let (end, end_latest, after) = (monotonic(), latest(), times());
        is_over.store(true, Ordering::Relaxed);
        let outputs = threads.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| Err(LabError::BadPlan("a guest's thread panicked".to_owned())))
        });
        let outputs = outputs.collect::<Result<Vec<_>>>();
        if interrupted.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        let outputs = outputs?;
        if !goes_on || !has_begun() {
            return Err(LabError::BadPlan(format!("the guests did not all read within {} s", BOOT_PATIENCE.as_secs())));
        }
        let guests = outputs.into_iter().zip(begin_latest).zip(end_latest);
        let guests = guests.map(|((readers, begin), end)| VmProgress { begin, end, readers }).collect();
        Ok(VmRun { records: Vec::new(), begin, end, guests, waited: before.until(&after, end.since(begin)) })
    })
}
