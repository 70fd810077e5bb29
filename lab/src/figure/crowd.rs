//! What the daemon costs with many tenants: time and memory of its process, and how often it writes when nothing changed.

use crate::clock::boottime;
use crate::daemon::{Daemon, DaemonConfig};
use crate::disk::{Disk, DiskSpec, RUNTIME_DIRECTORY};
use crate::error::{At, LabError, Result};
use crate::scene::Directory;
use crate::workload::{Access, Appearance, CgroupParent, Compute, TenantCgroup, Worker, WorkerProgram, WorkloadSpec};
use minerva_model::Nanos;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The daemon's default slice.
const SLICE: Duration = Duration::from_secs(1);
/// The first so many active tenants think for times of their own, the others for nearly a slice: with a thousand of them the machine
/// is not to be busy with reading.
const UNLIKE: u64 = 16;
const THINK_MS: u64 = 900;
/// Slices before counting begins: the first ones learn what every knob holds.
const WARM_UP_SLICES: u32 = 5;
/// Ten thousand groups are found in some seconds, also on a busy machine.
const FOUND_PATIENCE: Duration = Duration::from_secs(120);

/// What to measure.
#[derive(Clone, Debug)]
pub struct CrowdPlan {
    /// How many tenants, each a real cgroup.
    pub tenants: usize,
    /// How many of them use the disk in the first half of the slices.
    pub active: usize,
    /// Processes of each of those; all but one sleep.
    pub processes: u32,
    /// Slices that are measured with active tenants, and as many with idle ones.
    pub slices: u32,
    /// The daemon.
    pub daemon: PathBuf,
}

/// What the daemon cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CrowdResult {
    /// Tenants that the daemon watched.
    pub tenants: u64,
    /// Of these, how many used the disk in the first half.
    pub active: usize,
    /// CPU time of the whole process in each slice with active tenants, sorted, in milliseconds.
    pub cpu_ms: Vec<f64>,
    /// The same with idle tenants.
    pub idle_cpu_ms: Vec<f64>,
    /// Resident memory at the end, in bytes.
    pub resident_bytes: u64,
    /// The most there was, in bytes.
    pub resident_bytes_max: u64,
    /// Slices in which no decision changed, nor in the one before.
    pub unchanged_slices: u32,
    /// Knobs written in them.
    pub unchanged_writes: u64,
    /// Knobs written in all.
    pub writes: u64,
}

/// Runs the daemon over many real cgroups, some of which read from a fast emulated disk, in mode enforce.
pub fn crowd(plan: &CrowdPlan, program: &WorkerProgram, interrupted: &AtomicBool) -> Result<CrowdResult> {
    let disk = Disk::create(&DiskSpec::new(format!("crowd-{}", std::process::id()), "sata-ssd"))?;
    let parent = CgroupParent::create("minerva-lab-crowd")?;
    let groups = (0..plan.tenants).map(|index| parent.tenant(&format!("tenant-{index:05}")));
    let groups = groups.collect::<Result<Vec<_>>>()?;
    let directory = Directory::create(Path::new(RUNTIME_DIRECTORY).join(format!("crowd-{}", std::process::id())))?;
    let config = DaemonConfig {
        directory: directory.path(),
        slice_ms: SLICE.as_millis() as u64,
        parent: &parent,
        disk: disk.info(),
        guard: true,
        further: String::new(),
    };
    config.write()?;
    let mut daemon = Daemon::start(&plan.daemon, directory.path())?;

    let active = plan.tenants.min(plan.active);
    let mut workers = Vec::new();
    let mut sleepers = Vec::new();
    // Spread over all tenants, so that no part of them is special.
    for (index, group) in groups.iter().step_by((plan.tenants / active.max(1)).max(1)).take(active).enumerate() {
        let mut worker = Worker::spawn(program, &job(&disk, index as u64), Some(group))?;
        worker.start()?;
        workers.push(worker);
        if plan.processes > 1 {
            sleepers.push(Sleepers::start(group, plan.processes - 1)?);
        }
    }
    let mut watch = Watch { daemon: &mut daemon, interrupted, last: Snapshot::default(), quiet: 0, unchanged: (0, 0) };
    watch.settle(plan.tenants as u64)?;
    let cpu_ms = watch.slices(plan.slices)?;
    workers.iter_mut().for_each(Worker::stop);
    drop(workers);
    let idle_cpu_ms = watch.slices(plan.slices)?;
    let (unchanged_slices, unchanged_writes) = watch.unchanged;
    let (writes, tenants) = (watch.last.writes, watch.last.tenants);
    let (resident_bytes, resident_bytes_max) = resident(daemon.pid())?;
    Ok(CrowdResult {
        tenants,
        active,
        cpu_ms,
        idle_cpu_ms,
        resident_bytes,
        resident_bytes_max,
        unchanged_slices,
        unchanged_writes,
        writes,
    })
}

/// Processes that do nothing, ended with their shell.
struct Sleepers(Child);

impl Sleepers {
    /// In a group, the shell among them.
    fn start(group: &TenantCgroup, count: u32) -> Result<Self> {
        // The shell waits for its input to end, and then takes the others with it.
        let script = "echo $$ > \"$0\"; i=1; while [ $i -lt \"$1\" ]; do sleep 1000000 & i=$((i+1)); done; read line; \
                      trap '' TERM; kill 0";
        let mut command = Command::new("sh");
        command.args(["-c", script]).arg(group.processes_file()).arg(count.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0);
        Ok(Self(command.spawn().at("start", "sh")?))
    }
}

impl Drop for Sleepers {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // It ends by itself; that it has ended already is as good.
        let _ = self.0.wait();
    }
}

/// Light load, unlike between tenants, so that there is something to decide and the machine is not busy with reading.
fn job(disk: &Disk, index: u64) -> WorkloadSpec {
    WorkloadSpec {
        tenant: format!("active-{index}"),
        path: disk.device().to_owned(),
        access: Access::RandomRead,
        bytes: None,
        block_bytes: 4096,
        region_start: 0,
        region_bytes: disk.info().size_bytes / 4096 * 4096,
        depth: 1,
        compute: Compute::Nothing,
        think: Nanos::from_millis(if index < UNLIKE { 20 + 20 * index } else { THINK_MS }),
        rests: None,
        appearance: Appearance::default(),
        part: None,
        seed: index,
    }
}

/// What is counted, at one instant.
#[derive(Clone, Copy, Debug, Default)]
struct Snapshot {
    slices: u64,
    decisions: u64,
    writes: u64,
    tenants: u64,
    cpu: Nanos,
}

/// Looks at the daemon once a slice, in the middle between two.
struct Watch<'a> {
    daemon: &'a mut Daemon,
    interrupted: &'a AtomicBool,
    last: Snapshot,
    /// Slices since the last decision.
    quiet: u64,
    /// Slices in which nothing changed, and writes in them.
    unchanged: (u32, u64),
}

impl Watch<'_> {
    fn look(&mut self) -> Result<Snapshot> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        self.daemon.check()?;
        let cpu = cpu_time(self.daemon.pid())?;
        let metrics = self.daemon.metrics()?;
        let sum = |prefix: &str| -> u64 {
            metrics.iter().filter(|(name, _)| name.starts_with(prefix)).map(|(_, value)| *value as u64).sum()
        };
        Ok(Snapshot {
            slices: sum("minerva_slices_total"),
            decisions: sum("minerva_decisions_total"),
            writes: sum("minerva_knob_writes_total"),
            tenants: metrics.get("minerva_tenants").map_or(0, |value| *value as u64),
            cpu,
        })
    }

    /// Waits until all tenants are watched, then to the middle of a slice, then some slices.
    fn settle(&mut self, tenants: u64) -> Result<()> {
        let start = Instant::now();
        let mut seen = self.look()?;
        while seen.tenants < tenants {
            if start.elapsed() > FOUND_PATIENCE {
                let message = format!("{} of {tenants} tenants were found in time", seen.tenants);
                return Err(LabError::Controller { program: "minervad".to_owned(), message });
            }
            std::thread::sleep(Duration::from_millis(200));
            seen = self.look()?;
        }
        let slices = seen.slices;
        while seen.slices == slices {
            std::thread::sleep(Duration::from_millis(20));
            seen = self.look()?;
        }
        std::thread::sleep(SLICE / 2);
        self.last = self.look()?;
        self.slices(WARM_UP_SLICES)?;
        self.unchanged = (0, 0);
        Ok(())
    }

    /// The CPU time of each of the next slices in milliseconds, sorted.
    fn slices(&mut self, count: u32) -> Result<Vec<f64>> {
        let mut costs = Vec::new();
        let mut next = boottime();
        while costs.len() < count as usize {
            next += Nanos(SLICE.as_nanos() as u64);
            std::thread::sleep(Duration::from_nanos(next.since(boottime()).0));
            let seen = self.look()?;
            let slices = seen.slices - self.last.slices;
            if slices == 0 {
                continue;
            }
            costs.push(seen.cpu.since(self.last.cpu).as_millis_f64() / slices as f64);
            self.quiet = if seen.decisions == self.last.decisions { self.quiet + slices } else { 0 };
            if self.quiet > slices {
                self.unchanged.0 += slices as u32;
                self.unchanged.1 += seen.writes - self.last.writes;
            }
            self.last = seen;
        }
        costs.sort_by(f64::total_cmp);
        Ok(costs)
    }
}

/// What all threads of a process have used of a processor.
fn cpu_time(pid: u32) -> Result<Nanos> {
    let tasks = format!("/proc/{pid}/task");
    let mut sum = 0;
    for task in fs::read_dir(&tasks).at("list", &tasks)?.flatten() {
        // A thread may end meanwhile.
        let text = fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        sum += text.split_whitespace().next().and_then(|first| first.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(Nanos(sum))
}

/// Resident memory now and at most, in bytes.
pub(super) fn resident(pid: u32) -> Result<(u64, u64)> {
    let path = format!("/proc/{pid}/status");
    let text = fs::read_to_string(&path).at("read", &path)?;
    let fields: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once(':')).collect();
    let kibibytes =
        |name: &str| fields.get(name).and_then(|value| value.split_whitespace().next()?.parse::<u64>().ok());
    let bytes = |name: &str| kibibytes(name).unwrap_or(0) << 10;
    Ok((bytes("VmRSS"), bytes("VmHWM")))
}
