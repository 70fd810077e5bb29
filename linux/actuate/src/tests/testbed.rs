//! Real cgroups, disks and mounts that go away with their owner, and the sweep of those whose owner was killed.

use crate::{InstanceLock, RestoreReport, Writer, WriterSettings, boottime_now};
use minerva_model::{CgroupRef, DeviceId, KnobFile, KnobInspection, KnobTarget, KnobWrite, Nanos, WriteId};
use rustix::ioctl::{IntegerSetter, ioctl};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub(super) const BLKIO: &str = "/sys/fs/cgroup/blkio";
const LOOP_CTL_ADD: u32 = 0x4C80;
const LOOP_CTL_REMOVE: u32 = 0x4C81;

static NUMBER: AtomicU32 = AtomicU32::new(0);
static SWEEP: Once = Once::new();

/// A name that no other test has, and that tells its owner.
fn unique(prefix: &str) -> String {
    format!("{prefix}-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// Whether `name` is `<prefix>-<pid>-<n>` with a pid that lives no more.
fn is_left_over(name: &str, prefix: &str) -> bool {
    let pid = name.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('-')).and_then(|rest| rest.split('-').next());
    pid.is_some_and(|pid| pid.parse::<u32>().is_ok() && !Path::new(&format!("/proc/{pid}")).exists())
}

fn sweep() {
    for entry in fs::read_dir(BLKIO).into_iter().flatten().flatten() {
        if is_left_over(&entry.file_name().to_string_lossy(), "minerva-test-lact") {
            drop(fs::remove_dir(entry.path()));
        }
    }
    for entry in fs::read_dir("/sys/block").into_iter().flatten().flatten() {
        let Ok(file) = fs::read_to_string(entry.path().join("loop/backing_file")) else { continue };
        let name = Path::new(file.trim()).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let number = entry.file_name().to_string_lossy().trim_start_matches("loop").parse();
        if let (true, Ok(number)) = (is_left_over(&name, "minerva-test-lact"), number) {
            remove_loop(number);
        }
    }
}

/// Whether this machine lets the test run; says what it needs if not.
pub(super) fn ready() -> bool {
    SWEEP.call_once(sweep);
    let root = rustix::process::geteuid().is_root();
    let ready = root && Path::new(BLKIO).join("cgroup.procs").exists() && Path::new("/dev/loop-control").exists();
    if !ready {
        println!("skipped: needs root, cgroup v1 blkio at {BLKIO} and loop devices");
    }
    ready
}

/// Waits for `condition`, which something that runs now will bring about.
pub(super) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(60), "still waiting for: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A scratch cgroup of the blkio hierarchy.
pub(super) struct Cgroup {
    pub(super) name: String,
}

impl Cgroup {
    pub(super) fn new() -> Self {
        let name = unique("minerva-test-lact");
        fs::create_dir(Path::new(BLKIO).join(&name)).unwrap();
        Self { name }
    }

    pub(super) fn dir(&self) -> PathBuf {
        Path::new(BLKIO).join(&self.name)
    }

    pub(super) fn target(&self) -> KnobTarget {
        let inode = fs::metadata(self.dir()).unwrap().ino();
        KnobTarget::Cgroup { tenant: None, cgroup: CgroupRef { path: self.name.clone(), inode } }
    }

    pub(super) fn text(&self, file: KnobFile) -> String {
        fs::read_to_string(self.dir().join(file.file_name())).unwrap()
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        drop(fs::remove_dir(self.dir()));
    }
}

/// A loop device on a sparse file, under BFQ.
pub(super) struct Disk {
    number: u32,
    pub(super) id: DeviceId,
    _dir: TempDir,
}

impl Disk {
    pub(super) fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let file = dir.path().join(unique("minerva-test-lact"));
        fs::File::create(&file).unwrap().set_len(16 << 20).unwrap();
        // Numbers of its own: a device that `losetup --find` hands out could be somebody else's a moment later.
        let number = (0..)
            .map(|offset| 4000 + (std::process::id() * 7 + NUMBER.fetch_add(1, Ordering::Relaxed)) % 4000 + offset)
            .find(|number| control_loop::<LOOP_CTL_ADD>(*number).is_ok())
            .unwrap();
        let node = format!("/dev/loop{number}");
        wait_until("the device node", || Path::new(&node).exists());
        let attached = Command::new("losetup").arg(&node).arg(&file).status().unwrap();
        assert!(attached.success());
        let id = fs::read_to_string(format!("/sys/block/loop{number}/dev")).unwrap().trim().parse().unwrap();
        let disk = Self { number, id, _dir: dir };
        disk.set(KnobFile::Elevator, "bfq");
        disk
    }

    pub(super) fn target(&self) -> KnobTarget {
        KnobTarget::Disk { name: format!("loop{}", self.number) }
    }

    pub(super) fn remove(&self) {
        remove_loop(self.number);
    }

    fn knob(&self, file: KnobFile) -> PathBuf {
        Path::new(&format!("/sys/block/loop{}", self.number)).join(file.file_name())
    }

    pub(super) fn text(&self, file: KnobFile) -> String {
        fs::read_to_string(self.knob(file)).unwrap()
    }

    /// A setting of the queue that is no knob of Minerva's.
    pub(super) fn queue(&self, name: &str) -> String {
        fs::read_to_string(format!("/sys/block/loop{}/queue/{name}", self.number)).unwrap()
    }

    pub(super) fn set_queue(&self, name: &str, text: &str) {
        fs::write(format!("/sys/block/loop{}/queue/{name}", self.number), text).unwrap();
    }

    pub(super) fn set(&self, file: KnobFile, text: &str) {
        fs::write(self.knob(file), text).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.remove();
    }
}

fn remove_loop(number: u32) {
    let node = format!("/dev/loop{number}");
    if !Path::new(&node).exists() {
        return;
    }
    drop(Command::new("losetup").arg("-d").arg(&node).output());
    // The device is busy until the last reader of its size (udev, losetup) is done with it.
    for _ in 0..500 {
        match control_loop::<LOOP_CTL_REMOVE>(number) {
            Err(rustix::io::Errno::BUSY) => std::thread::sleep(Duration::from_millis(2)),
            _ => return,
        }
    }
}

fn control_loop<const OPERATION: u32>(number: u32) -> rustix::io::Result<()> {
    let control = fs::File::open("/dev/loop-control").unwrap();
    // SAFETY: both operations take the device's number as an integer argument and touch no memory of ours.
    unsafe { ioctl(control, IntegerSetter::<OPERATION>::new_usize(number as usize)) }
}

/// A runtime directory and the settings that name it.
pub(super) struct Runtime {
    dir: TempDir,
    pub(super) settings: WriterSettings,
}

impl Runtime {
    pub(super) fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let settings = WriterSettings::new(dir.path().join("run"), BLKIO);
        Self { dir, settings }
    }

    pub(super) fn root(&self) -> &Path {
        self.dir.path()
    }

    pub(super) fn start(&self) -> (InstanceLock, Writer, RestoreReport) {
        let lock = InstanceLock::acquire(&self.settings.runtime_dir).unwrap();
        let (mut writer, report) = Writer::open(&self.settings, &lock).unwrap();
        writer.renew_lease(boottime_now() + Nanos::from_secs(3600)).unwrap();
        (lock, writer, report)
    }

    pub(super) fn journal_path(&self) -> PathBuf {
        self.settings.runtime_dir.join("undo.journal")
    }

    pub(super) fn journal_lines(&self) -> usize {
        fs::read_to_string(self.journal_path()).map_or(0, |text| text.lines().count())
    }
}

pub(super) fn knob_write(target: &KnobTarget, file: KnobFile, device: DeviceId, text: &str, undo: &str) -> KnobWrite {
    KnobWrite { id: WriteId(1), target: target.clone(), file, device, text: text.into(), undo: undo.into() }
}

/// A write of a per-device weight, with the undo that `core/actuate` gives for a group without one.
pub(super) fn weight(target: &KnobTarget, device: DeviceId, weight: u32) -> KnobWrite {
    let text = format!("{device} {weight}");
    knob_write(target, KnobFile::BfqV1WeightDevice, device, &text, &format!("{device} default"))
}

pub(super) fn inspection(target: &KnobTarget, file: KnobFile, device: DeviceId) -> KnobInspection {
    KnobInspection { id: WriteId(1), target: target.clone(), file, device }
}

/// Runs one of this binary's tests as a process of its own, told by the environment what to do.
pub(super) fn child(test: &str, environment: &[(&str, &str)]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("tests::{test}"), "--nocapture", "--test-threads=1"]);
    command.envs(environment.iter().copied());
    command
}
