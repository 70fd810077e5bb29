//! Tenants' cgroups: real groups of the controller that steers disks, `blkio` in cgroup v1 or `io` in v2, whichever this
//! kernel has mounted.
//!
//! All tenants of a run lie under one parent whose name ends in the process number of its owner. So a leftover is known
//! by its dead owner.

use super::hierarchy::{Hierarchy, find_hierarchy, hierarchy_roots};
use crate::error::{At, LabError, Result};
use minerva_model::{CgroupVersion, DeviceId};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Killed processes leave their group within milliseconds unless they wait for a disk.
const PATIENCE: Duration = Duration::from_secs(5);

/// The parent of a run's tenants. Dropping it kills what runs in it and removes it with all its tenants.
#[derive(Debug)]
pub struct CgroupParent {
    hierarchy: Hierarchy,
    path: PathBuf,
}

/// The parents of this process.
struct Living {
    parents: usize,
    /// The root's groups had no io controller before the first of them.
    gave_io: bool,
}

static LIVING: Mutex<Living> = Mutex::new(Living { parents: 0, gave_io: false });

impl CgroupParent {
    /// Makes `PREFIX-PID-N` directly below the root of the hierarchy.
    pub fn create(prefix: &str) -> Result<Self> {
        // Two parents of one process, as parallel tests make, differ by the number.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let hierarchy = find_hierarchy().ok_or(LabError::Missing {
            what: "a tenant's cgroup",
            needs: "the blkio (v1) or io (v2) cgroup controller",
            remedy: "mount it, for example with `mount -t cgroup -o blkio cgroup /sys/fs/cgroup/blkio`",
        })?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = hierarchy.root.join(format!("{prefix}-{}-{number}", std::process::id()));
        // None of this process takes the controller from the root while another is being made.
        let mut living = LIVING.lock().unwrap_or_else(PoisonError::into_inner);
        let gave_io = hierarchy.version == CgroupVersion::V2 && give_io(&hierarchy.root)?;
        fs::create_dir(&path).at("create the cgroup", &path)?;
        (living.parents, living.gave_io) = (living.parents + 1, living.gave_io || gave_io);
        let parent = Self { hierarchy, path };
        if parent.hierarchy.version == CgroupVersion::V2 {
            let control = parent.path.join("cgroup.subtree_control");
            let given = fs::write(&control, "+io");
            drop(living);
            given.at("enable the io controller in", &control)?;
            // So that a buffered write is charged to its tenant; where it cannot be had all else is as it is.
            let _ = fs::write(&control, "+memory");
        }
        Ok(parent)
    }

    /// Makes a tenant's group in it.
    pub fn tenant(&self, name: &str) -> Result<TenantCgroup> {
        let path = self.path.join(name);
        fs::create_dir(&path).at("create the cgroup", &path)?;
        Ok(TenantCgroup { path })
    }

    /// The file that holds the BFQ weight, 1 to 1,000, of the tenant `name` in it.
    pub(crate) fn bfq_weight_file(&self, name: &str) -> PathBuf {
        let file = match self.hierarchy.version {
            CgroupVersion::V2 => "io.bfq.weight",
            _ => "blkio.bfq.weight",
        };
        self.path.join(name).join(file)
    }

    /// Sets that weight, past any controller.
    pub(crate) fn set_bfq_weight(&self, name: &str, weight: u32) -> Result<()> {
        let path = self.bfq_weight_file(name);
        fs::write(&path, weight.to_string()).at("write", &path)
    }

    /// Which weight the kernel looks at on a disk with this elevator, if it looks at any.
    pub(crate) fn weight_knob(&self, device: DeviceId, elevator: &str) -> Option<WeightKnob> {
        if elevator == "bfq" {
            return Some(WeightKnob::Bfq);
        }
        let qos = fs::read_to_string(self.hierarchy.root.join("io.cost.qos")).unwrap_or_default();
        let is_calibrated = line_of(&qos, device).is_some_and(|line| line.split(' ').any(|word| word == "enable=1"));
        is_calibrated.then_some(WeightKnob::IoCost)
    }

    /// The weight that the tenant `name` in it has on a disk.
    pub(crate) fn weight_of(&self, name: &str, device: DeviceId, knob: WeightKnob) -> Option<f64> {
        let group = self.path.join(name);
        // v1 keeps the weights of single disks in a file of their own.
        let files: &[&str] = match (knob, self.hierarchy.version) {
            (WeightKnob::IoCost, _) => &["io.weight"],
            (WeightKnob::Bfq, CgroupVersion::V2) => &["io.bfq.weight"],
            (WeightKnob::Bfq, _) => &["blkio.bfq.weight_device", "blkio.bfq.weight"],
        };
        let mut texts = files.iter().filter_map(|file| fs::read_to_string(group.join(file)).ok());
        texts.find_map(|text| weight_in(&text, device))
    }

    /// Its path below the root of the hierarchy, without a leading slash: the form operators' rules match.
    pub fn relative_path(&self) -> String {
        let relative = self.path.strip_prefix(&self.hierarchy.root).unwrap_or(&self.path);
        relative.to_string_lossy().into_owned()
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// A weight that the kernel looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WeightKnob {
    /// BFQ's.
    Bfq,
    /// iocost's.
    IoCost,
}

/// What a file of settings by disk says of one, behind the disk's number.
fn line_of(text: &str, device: DeviceId) -> Option<&str> {
    let number = device.to_string();
    text.lines().find_map(|line| line.strip_prefix(number.as_str())?.strip_prefix(' '))
}

/// The weight of a disk, or the one of all disks.
fn weight_in(text: &str, device: DeviceId) -> Option<f64> {
    let of_all = || text.lines().find_map(|line| line.strip_prefix("default ").unwrap_or(line).trim().parse().ok());
    line_of(text, device).and_then(|weight| weight.trim().parse().ok()).or_else(of_all)
}

impl Drop for CgroupParent {
    fn drop(&mut self) {
        for root in hierarchy_roots() {
            // A group that cannot be removed now is swept by the next run.
            let _ = remove_tree(&root.join(self.relative_path()));
        }
        let mut living = LIVING.lock().unwrap_or_else(PoisonError::into_inner);
        living.parents -= 1;
        if living.parents == 0 && std::mem::take(&mut living.gave_io) {
            // Refused while another process' groups need it.
            let _ = fs::write(self.hierarchy.root.join("cgroup.subtree_control"), "-io");
        }
    }
}

/// Gives the groups below `root` the io controller; true if they had none.
fn give_io(root: &Path) -> Result<bool> {
    let control = root.join("cgroup.subtree_control");
    let given = fs::read_to_string(&control).at("read", &control)?;
    if given.split_whitespace().any(|controller| controller == "io") {
        return Ok(false);
    }
    fs::write(&control, "+io").at("enable the io controller in", &control)?;
    Ok(true)
}

/// One tenant's group. Dropping it kills what runs in it and removes it.
#[derive(Debug)]
pub struct TenantCgroup {
    path: PathBuf,
}

impl TenantCgroup {
    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file into which a process writes to be moved here.
    pub fn processes_file(&self) -> PathBuf {
        self.path.join("cgroup.procs")
    }
}

impl Drop for TenantCgroup {
    fn drop(&mut self) {
        let _ = remove_tree(&self.path);
    }
}

/// Kills what runs below `path` and removes it, children first.
fn remove_tree(path: &Path) -> io::Result<()> {
    let children = fs::read_dir(path)?.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    for child in children {
        remove_tree(&child.path())?;
    }
    let start = Instant::now();
    loop {
        match fs::remove_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && start.elapsed() < PATIENCE => {
                kill_members(path);
                std::thread::sleep(Duration::from_millis(5));
            }
            result => return result,
        }
    }
}

fn kill_members(path: &Path) {
    let members = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
    for process in members.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)) {
        // One that has ended meanwhile is fine.
        let _ = kill_process(process, Signal::KILL);
    }
}

/// Removes the parents named `PREFIX…-PID-N` whose owner is dead. Returns how many.
pub(crate) fn remove_leftover_cgroups(prefix: &str) -> usize {
    let is_left =
        |name: &str| name.starts_with(prefix) && owner_of(name).is_some_and(|owner| test_kill_process(owner).is_err());
    let mut removed = BTreeSet::new();
    for entry in hierarchy_roots().iter().flat_map(fs::read_dir).flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if is_left(&name) && remove_tree(&entry.path()).is_ok() {
            removed.insert(name);
        }
    }
    removed.len()
}

/// The process number in `PREFIX-PID-N`.
fn owner_of(name: &str) -> Option<Pid> {
    Pid::from_raw(name.rsplit('-').nth(1)?.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::super::hierarchy::{blkio_version, hierarchy_roots};
    use super::{CgroupParent, line_of, owner_of, remove_leftover_cgroups, weight_in};
    use minerva_model::{CgroupVersion, DeviceId};

    #[test]
    fn a_weight_is_that_of_the_disk_or_of_all_disks() {
        let device = DeviceId { major: 7, minor: 0 };
        assert_eq!(weight_in("default 100\n7:0 800\n7:1 5\n", device), Some(800.0));
        assert_eq!(weight_in("default 100\n7:01 800\n", device), Some(100.0));
        // v1: one file for single disks, which may hold none, and one that holds a number.
        assert_eq!((weight_in("", device), weight_in("250\n", device)), (None, Some(250.0)));
        assert_eq!(line_of("7:0 enable=1 ctrl=user\n", device), Some("enable=1 ctrl=user"));
    }

    #[test]
    fn the_owner_is_in_the_name() {
        assert_eq!(owner_of("minerva-test-x-123-0").map(|pid| pid.as_raw_nonzero().get()), Some(123));
        assert_eq!(owner_of("minerva-test"), None);
    }

    #[test]
    fn groups_go_with_their_guards() {
        if blkio_version() == CgroupVersion::Absent || !rustix::process::geteuid().is_root() {
            println!("skipped: needs root and a blkio or io controller");
            return;
        }
        let parent = CgroupParent::create("minerva-test-guard").unwrap();
        let tenant = parent.tenant("one").unwrap();
        let path = parent.path().to_owned();
        assert!(tenant.path().is_dir());
        assert!(parent.relative_path().starts_with("minerva-test-guard-"));
        // As a daemon makes it for its work.
        let beside: Vec<_> = hierarchy_roots().iter().map(|root| root.join(parent.relative_path())).collect();
        beside.iter().for_each(|group| std::fs::create_dir_all(group.join("named-background")).unwrap());
        drop(parent);
        assert!(!path.exists() && beside.iter().all(|group| !group.exists()), "{beside:?}");
        drop(tenant);
        // Nobody has such a number.
        let left = format!("minerva-test-guard-left-{}-0", i32::MAX);
        let left: Vec<_> = hierarchy_roots().iter().map(|root| root.join(&left)).collect();
        left.iter().for_each(|group| std::fs::create_dir(group).unwrap());
        assert_eq!(remove_leftover_cgroups("minerva-test-guard-left-"), 1);
        assert!(left.iter().all(|group| !group.exists()));
    }
}
