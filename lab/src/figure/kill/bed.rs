//! What daemons are killed over: a disk, tenants and load that does not stand still.

use super::{KillPlan, failed_output};
use crate::daemon::{Daemon, DaemonConfig};
use crate::disk::{Disk, DiskSpec, RUNTIME_DIRECTORY};
use crate::error::{LabError, Result};
use crate::figure::knob_files::{knob_files, weigh};
use crate::scene::Directory;
use crate::workload::{Access, Appearance, CgroupParent, Compute, TenantCgroup, Worker, WorkerProgram, WorkloadSpec};
use minerva_model::Nanos;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const TENANTS: usize = 8;
/// Every so many-th tenant has a weight of the operator's.
const WEIGHED_EVERY: usize = 3;
/// One of the others has stepped back to `idle`.
const IDLE: usize = 2;
/// The shortest slice there is: the more is written, the more a kill can hit.
const SLICE_MS: u64 = 100;
/// How often load moves to another tenant, or a tenant comes or goes.
const CHURN: Duration = Duration::from_millis(120);
/// What the load had asked for is done.
const REST: Duration = Duration::from_secs(1);
/// Changes of use are followed at once.
const QUICK: &str = "\n[fennel]\nrecent_half_life = \"1s\"\nlong_term_half_life = \"2s\"\ngroup_change_slices = 1\n\
                     \n[actuation]\nverify_every_slices = 3\n";
const QUEUE_FILES: [&str; 2] = ["scheduler", "iosched/low_latency"];

/// The tenants' groups, while nobody changes them.
pub(super) type Still<'a> = MutexGuard<'a, Option<TenantCgroup>>;

/// A disk, tenants and load. The heaviest reader goes from tenant to tenant, and one tenant comes and goes.
pub(super) struct Bed {
    /// What every knob held before the first daemon. Tenants that come later hold what [`fresh`](Self::fresh) does.
    knobs: BTreeMap<PathBuf, String>,
    /// What a group that nobody touched holds, by file name.
    fresh: BTreeMap<&'static str, String>,
    /// The tenant that comes and goes. Whoever holds the lock finds all groups still.
    guest: Mutex<Option<TenantCgroup>>,
    readers: Vec<Worker>,
    groups: Vec<TenantCgroup>,
    pub(super) directory: Directory,
    parent: CgroupParent,
    pub(super) disk: Disk,
}

impl Bed {
    pub(super) fn new(plan: &KillPlan, program: &WorkerProgram) -> Result<Self> {
        // A slow one, so that in a race it is the elevator that shares out, and not the processors.
        let disk = Disk::create(&DiskSpec::new(format!("kill-{}", std::process::id()), "sata7200-80g"))?;
        // So that there is something to change in the queue as well.
        disk.queue().write("iosched/low_latency", "1")?;
        let parent = CgroupParent::create("minerva-lab-kill")?;
        let untouched = parent.tenant("untouched")?;
        let fresh = knob_files(untouched.path()).map(|(name, _, text)| (name, text)).collect();
        drop(untouched);
        let groups = (0..TENANTS).map(|index| parent.tenant(&format!("tenant-{index}")));
        let groups = groups.collect::<Result<Vec<_>>>()?;
        for (index, group) in groups.iter().enumerate().step_by(WEIGHED_EVERY) {
            weigh(group, &disk, 100 + 50 * index as u32)?;
        }
        let directory = Directory::create(Path::new(RUNTIME_DIRECTORY).join(format!("kill-{}", std::process::id())))?;
        let disk_info = disk.info();
        let config = DaemonConfig {
            directory: directory.path(),
            slice_ms: SLICE_MS,
            parent: &parent,
            disk: disk_info,
            guard: false,
            // The daemon may turn off low_latency, which is one more knob to put back.
            further: format!("{QUICK}\n[devices.{}]\nelevator = \"bfq\"\n", disk_info.kernel_name),
        };
        config.write()?;
        step_back(plan, directory.path(), &groups[IDLE])?;
        let mut readers = Vec::new();
        for (index, think_ms) in [2, 20, 60].into_iter().enumerate() {
            let mut reader = Worker::spawn(program, &job(&disk, index as u64, think_ms), Some(&groups[index]))?;
            reader.start()?;
            readers.push(reader);
        }
        let guest = Mutex::default();
        let mut bed = Self { knobs: BTreeMap::new(), fresh, guest, readers, groups, directory, parent, disk };
        bed.knobs = bed.read_knobs();
        Ok(bed)
    }

    pub(super) fn still(&self) -> Still<'_> {
        self.guest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves load about until `over`.
    pub(super) fn churn(&self, over: &AtomicBool) {
        for turn in 0.. {
            if over.load(Ordering::Relaxed) {
                return;
            }
            let mut guest = self.still();
            // Whatever fails here is load that is not there, which the daemon's next start would show.
            self.join(0, &self.groups[turn / 3 % TENANTS]);
            match guest.take() {
                Some(group) => {
                    self.join(1, &self.groups[1]);
                    drop(group);
                }
                None => {
                    *guest = self.parent.tenant("guest").ok();
                    if let Some(group) = guest.as_ref() {
                        self.join(1, group);
                    }
                }
            }
            drop(guest);
            std::thread::sleep(CHURN);
        }
    }

    fn join(&self, reader: usize, group: &TenantCgroup) {
        let _ = fs::write(group.processes_file(), self.readers[reader].pid().to_string());
    }

    /// Every knob that the daemon might touch: of all groups, their parent and its parent, and the disk.
    fn read_knobs(&self) -> BTreeMap<PathBuf, String> {
        let mut groups = vec![self.parent.path().to_owned()];
        groups.extend(self.parent.path().parent().map(Path::to_owned));
        let children = fs::read_dir(self.parent.path()).into_iter().flatten().flatten();
        groups.extend(children.map(|entry| entry.path()).filter(|path| path.is_dir()));
        let mut knobs = BTreeMap::new();
        for group in groups {
            knobs.extend(knob_files(&group).map(|(_, path, text)| (path, text)));
        }
        let queue = PathBuf::from(format!("/sys/block/{}/queue", self.disk.info().kernel_name));
        for file in QUEUE_FILES {
            let path = queue.join(file);
            knobs.insert(path.clone(), fs::read_to_string(&path).unwrap_or_default());
        }
        knobs
    }

    fn changed(&self) -> Vec<(PathBuf, String)> {
        let meant = |path: &Path| {
            let fresh = || self.fresh.get(path.file_name()?.to_str()?);
            self.knobs.get(path).or_else(fresh).cloned().unwrap_or_default()
        };
        let changed = |(path, text): &(PathBuf, String)| meant(path) != *text;
        self.read_knobs().into_iter().filter(changed).collect()
    }

    /// How many knobs hold something else than before.
    pub(super) fn differences(&self, _: &Still<'_>) -> usize {
        self.changed().len()
    }

    /// The groups of tenants that the operator gave no weight.
    pub(super) fn plain_groups(&self) -> Vec<&TenantCgroup> {
        let plain = self.groups.iter().enumerate().filter(|(index, _)| index % WEIGHED_EVERY != 0);
        plain.map(|(_, group)| group).collect()
    }

    /// Does something while the load does nothing.
    pub(super) fn at_rest<T>(&self, _: &Still<'_>, action: impl FnOnce() -> T) -> T {
        self.readers.iter().for_each(Worker::pause);
        std::thread::sleep(REST);
        let done = action();
        self.readers.iter().for_each(Worker::resume);
        done
    }

    pub(super) fn describe(&self, _: &Still<'_>) -> String {
        let line = |(path, text): (PathBuf, String)| format!("{} holds {text:?}", path.display());
        self.changed().into_iter().map(line).collect::<Vec<_>>().join(", ")
    }
}

/// Has a tenant step back to `idle`, which the store keeps from one daemon to the next: beside others it is capped.
fn step_back(plan: &KillPlan, directory: &Path, group: &TenantCgroup) -> Result<()> {
    let daemon = Daemon::start(&plan.daemon, directory)?;
    let mut command = Command::new("sh");
    command.args(["-c", "echo $$ > \"$1\" && exec \"$2\" priority idle --config \"$3\"", "sh"]);
    command.arg(group.processes_file()).arg(&plan.tool).arg(directory.join("minervad.toml"));
    let said = failed_output(&mut command)?;
    daemon.end()?;
    let program = plan.tool.display().to_string();
    said.map_or(Ok(()), |message| Err(LabError::Controller { program, message }))
}

fn job(disk: &Disk, index: u64, think_ms: u64) -> WorkloadSpec {
    WorkloadSpec {
        tenant: format!("reader-{index}"),
        path: disk.device().to_owned(),
        access: Access::RandomRead,
        bytes: None,
        block_bytes: 64 << 10,
        region_start: 0,
        region_bytes: disk.info().size_bytes / 65536 * 65536,
        depth: 1,
        compute: Compute::Nothing,
        think: Nanos::from_millis(think_ms),
        rests: None,
        appearance: Appearance::default(),
        part: None,
        seed: index,
    }
}
