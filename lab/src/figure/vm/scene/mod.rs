//! A scene whose tenants are guests: each a stock kernel in QEMU, which runs in the tenant's cgroup and has a partition of the emulated
//! disk as its own. The kernel's BFQ orders their requests, by the weights that the daemon sets, if there is one. Tenants that take part
//! in their own scheduling ask from within their guests, through an agent and a vsock.

mod guest;
mod heard;

use super::steal::Times;
use super::{BOOT_PATIENCE, STEP, VmWaited};
use crate::clock::boottime;
use crate::daemon::quoted;
use crate::disk::{Disk, DiskSpec};
use crate::error::{At, LabError, Result};
use crate::priority::hurry;
use crate::scene::{
    Arm, Equal, Live, Minervad, RunResult, Scene, Steered, Steering, SteeringContext, TenantInScene, TenantPlan,
};
use crate::workload::{CgroupParent, TenantCgroup, WorkerResult};
use guest::TenantGuest;
use heard::Heard;
use minerva_model::Nanos;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The daemon's port on vsock, which a device in user space puts behind its own path.
const PORT: u32 = 7420;

/// Who steers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VmSceneArm {
    /// Nobody: BFQ as the kernel ships it, with `low_latency`.
    Shipped,
    /// Nobody: BFQ that obeys weights at once, and equal weights.
    Equal,
    /// The daemon, under the same BFQ.
    Minerva {
        /// `minervad`.
        program: PathBuf,
        /// Length of its slice.
        slice_ms: u64,
        /// At its end what it remembers is copied there.
        keeps: PathBuf,
    },
}

/// What to play.
#[derive(Clone, Debug)]
pub struct VmScenePlan<'a> {
    /// Who does what. All tenants come at its start, and nobody computes: an emulated processor takes longer for a checksum than the disk
    /// for the data.
    pub scene: &'a Scene,
    /// Which disk to emulate.
    pub profile: &'a str,
    /// Who steers.
    pub arm: VmSceneArm,
    /// The program `minerva-lab`, small enough for a guest.
    pub worker: &'a Path,
    /// The program `minerva-agent`, small enough for a guest.
    pub agent: &'a Path,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct VmSceneRun {
    /// By the host's clock, from when all guests were given the word.
    pub result: RunResult,
    /// Time that was wanted of a processor and not had.
    pub waited: VmWaited,
}

/// Boots the guests, gives all of them the word at once, and kills them when all are done. `watch` is called fifty times a second from then on.
pub fn run_vm_scene(
    plan: &VmScenePlan<'_>,
    interrupted: &AtomicBool,
    watch: &mut (dyn FnMut(&Live) + Send),
) -> Result<VmSceneRun> {
    if plan.scene.last_arrival() > Nanos::ZERO {
        return Err(LabError::BadPlan(format!("{}: in guests all tenants come at the start", plan.scene.name)));
    }
    // In a thread of its own, as its priority goes over to all that it starts.
    std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            hurry();
            run(plan, interrupted, watch)
        });
        run.join().unwrap_or_else(|_| Err(LabError::BadPlan("a thread of the measurement panicked".to_owned())))
    })
}

fn run(plan: &VmScenePlan<'_>, interrupted: &AtomicBool, watch: &mut dyn FnMut(&Live)) -> Result<VmSceneRun> {
    let name = format!("minerva-lab-vm-{}", std::process::id());
    let disk = Disk::create(&DiskSpec { has_partitions: true, ..DiskSpec::new(name, plan.profile) })?;
    let directory = tempfile::Builder::new().prefix("minerva-lab-vm-").tempdir();
    let directory = directory.at("make a directory in", std::env::temp_dir())?;
    let parent = CgroupParent::create("minerva-lab-vm")?;
    let tenants = &plan.scene.tenants;
    let groups = tenants.iter().map(|tenant| parent.tenant(&tenant.name)).collect::<Result<Vec<_>>>()?;
    let in_scene = |tenant: &TenantPlan| TenantInScene { name: tenant.name.clone(), weight_percent: 100 };
    let context =
        SteeringContext { disk: disk.info(), parent: &parent, tenants: tenants.iter().map(in_scene).collect() };
    let steering = plan.arm.steering(plan.scene, directory.path());
    let mut steered = steering.start(&context)?;
    let guests = (1..).zip(tenants).zip(&groups).map(|((number, tenant), group)| {
        let device = partition(&disk, number, tenant)?;
        TenantGuest::new(plan, tenant, (device, group), directory.path())
    });
    let guests = guests.collect::<Result<Vec<_>>>()?;
    let Conducted { word, results, waited } = conduct((&guests, &groups), steered.as_mut(), interrupted, watch)?;
    steered.end()?;
    Ok(VmSceneRun { result: RunResult::new(plan.scene, steering.name(), word, &results), waited })
}

/// The part of the disk with a tenant's data, which lies there as in the same scene without guests.
fn partition(disk: &Disk, number: u32, tenant: &TenantPlan) -> Result<PathBuf> {
    let (size, block) = (disk.info().size_bytes, u64::from(tenant.block_bytes));
    let start = (size as f64 * tenant.region.clamp(0.0, 1.0)) as u64 / block * block;
    if size.saturating_sub(start) < tenant.bytes {
        return Err(LabError::BadPlan(format!(
            "{}: its data does not fit on the disk: use a smaller scale",
            tenant.name
        )));
    }
    disk.partition(number, start, tenant.bytes)
}

impl VmSceneArm {
    /// Whether there is somebody to ask.
    fn has_daemon(&self) -> bool {
        matches!(self, Self::Minerva { .. })
    }

    fn steering(&self, scene: &Scene, directory: &Path) -> Box<dyn Steering> {
        match self {
            Self::Equal => Box::new(Equal),
            Self::Shipped => Box::new(Arm {
                name: "shipped".to_owned(),
                elevator: "bfq".to_owned(),
                low_latency: true,
                steering: Box::new(Equal),
            }),
            Self::Minerva { program, slice_ms, keeps } => {
                let sections = identities(scene, directory);
                let keeps = Some(keeps.clone());
                Box::new(Minervad { sections, keeps, ..Minervad::new(program.clone(), *slice_ms) })
            }
        }
    }
}

/// The vsock of a tenant's guest, on the host.
fn vsock(directory: &Path, tenant: &TenantPlan) -> PathBuf {
    directory.join(format!("{}.vsock", tenant.name))
}

/// Which guest is at the other end of which vsock, in the daemon's file.
fn identities(scene: &Scene, directory: &Path) -> String {
    let mut text = String::new();
    for tenant in scene.tenants.iter().filter(|tenant| tenant.part.is_some()) {
        let socket = format!("{}_{PORT}", vsock(directory, tenant).display());
        let (name, socket) = (quoted(&tenant.name), quoted(&socket));
        // Writing into a string cannot fail.
        let _ = write!(text, "\n[[identities]]\ntenant = {name}\nvsock_socket = {socket}\n");
    }
    text
}

/// How the guests fared.
struct Conducted {
    /// When all were given the word.
    word: Nanos,
    results: Vec<WorkerResult>,
    waited: VmWaited,
}

/// Runs each guest in a thread until all are done, or one of them cannot be.
fn conduct(
    (guests, groups): (&[TenantGuest<'_>], &[TenantCgroup]),
    steered: &mut dyn Steered,
    interrupted: &AtomicBool,
    watch: &mut dyn FnMut(&Live),
) -> Result<Conducted> {
    let heard: Vec<Mutex<Heard>> = guests.iter().map(|_| Mutex::default()).collect();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let start = |(guest, heard)| {
            let is_over = &is_over;
            scope.spawn(move || TenantGuest::run(guest, heard, is_over))
        };
        let threads: Vec<_> = guests.iter().zip(&heard).map(start).collect();
        let mut goes_on = || {
            steered.check()?;
            if interrupted.load(Ordering::Relaxed) {
                return Err(LabError::Interrupted);
            }
            let has_ended = threads.iter().any(|thread| thread.is_finished());
            if has_ended { Err(LabError::BadPlan("a guest ended before the scene did".to_owned())) } else { Ok(()) }
        };
        let conducted = play((guests, groups), &heard, &mut goes_on, watch);
        is_over.store(true, Ordering::Relaxed);
        let ended = threads.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| Err(LabError::BadPlan("a guest's thread panicked".to_owned())))
        });
        let ended = ended.collect::<Result<Vec<()>>>();
        match conducted {
            Ok(conducted) => ended.map(|_| conducted),
            Err(LabError::Interrupted) => Err(LabError::Interrupted),
            // What a guest said of its end says more than that it ended.
            Err(error) => Err(ended.err().unwrap_or(error)),
        }
    })
}

fn play(
    (guests, groups): (&[TenantGuest<'_>], &[TenantCgroup]),
    heard: &[Mutex<Heard>],
    goes_on: &mut dyn FnMut() -> Result<()>,
    watch: &mut dyn FnMut(&Live),
) -> Result<Conducted> {
    let booting = Instant::now();
    while !heard.iter().all(|heard| lock(heard).is_ready()) {
        goes_on()?;
        if booting.elapsed() > BOOT_PATIENCE {
            let message = format!("the guests were not ready within {} s", BOOT_PATIENCE.as_secs());
            return Err(LabError::BadPlan(message));
        }
        std::thread::sleep(STEP);
    }
    // Open until the end: a worker whose input is closed stops.
    let mut inputs = guests.iter().map(TenantGuest::input).collect::<Result<Vec<_>>>()?;
    let before = Times::read(groups, None);
    let word = boottime();
    inputs.iter_mut().try_for_each(guest::give_the_word)?;
    while !heard.iter().all(|heard| lock(heard).is_finished()) {
        goes_on()?;
        let bytes = guests.iter().zip(heard).map(|(guest, heard)| (lock(heard).bytes(), guest.bytes()));
        watch(&Live { elapsed_s: boottime().since(word).as_secs_f64(), bytes: bytes.collect() });
        std::thread::sleep(STEP);
    }
    let waited = before.until(&Times::read(groups, None), boottime().since(word));
    let result = |heard: &Mutex<Heard>| std::mem::take(&mut *lock(heard)).result(word);
    let results = heard.iter().filter_map(result).collect();
    Ok(Conducted { word, results, waited })
}

fn lock(heard: &Mutex<Heard>) -> MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::identities;
    use crate::scene::EndogenicPlan;
    use std::path::Path;

    #[test]
    fn who_takes_part_is_known_by_the_vsock_of_its_guest_and_nobody_else_has_one() {
        let text = identities(&EndogenicPlan::paper(0.1).scene(), Path::new("/tmp/d"));
        let expected = ["tenant-2", "tenant-4"].map(|tenant| {
            format!("\n[[identities]]\ntenant = \"{tenant}\"\nvsock_socket = \"/tmp/d/{tenant}.vsock_7420\"\n")
        });
        assert_eq!(text, expected.concat());
    }
}
