//! Whether an undo bites: what two equal readers get before the daemon's first write, under it, and after it put everything back,
//! because it ends or because it is told to leave them alone.

use super::race::{equal_reader, wait_until};
use crate::clock::boottime;
use crate::daemon::{Daemon, DaemonConfig, quoted};
use crate::disk::{Disk, DiskSpec, RUNTIME_DIRECTORY};
use crate::error::{At, LabError, Result};
use crate::figure::SHARES;
use crate::scene::{Calibrated, Directory};
use crate::workload::bytes_at;
use crate::workload::{CgroupParent, Progress, Worker, WorkerProgram};
use minerva_model::{BackEnd, DeviceId, Mode, Nanos};
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// BFQ needs a few budgets to learn the disk's peak rate.
const WARM_UP: Nanos = Nanos::from_secs(5);
/// After the end of the daemon: what was queued under its weights or caps is served.
const SETTLE: Nanos = Nanos::from_secs(2);
/// The daemon has judged both readers by their use after this long, with [`QUICK`].
const JUDGED: Nanos = Nanos::from_secs(12);
const QUICK: &str = "\n[fennel]\nrecent_half_life = \"1s\"\nlong_term_half_life = \"2s\"\ngroup_change_slices = 1\n";
const NAMES: [&str; 2] = ["heavy", "light"];
const SLICE_MS: u64 = 500;
/// What an operator who calibrated the disk for iocost would have set, somewhat below what two interleaved readers reach on it, so
/// that it is the controller that shares out. Bytes and requests a second.
const IOCOST_MODEL: &str =
    "ctrl=user model=linear rbps=8000000 rseqiops=100 rrandiops=60 wbps=8000000 wseqiops=100 wrandiops=60";
/// What the operator says the disk delivers where shares become caps: less than the two read without, so that caps hold them.
const CAPPED_BANDWIDTH: &str = "4MB";

/// Why the daemon puts everything back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndoBy {
    /// It ends.
    End,
    /// Its mode becomes `shadow`, by a reload.
    Mode,
    /// A rule excludes both tenants, by a reload: they are tenants no more.
    Exclusion,
}

impl UndoBy {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::End, Self::Mode, Self::Exclusion];

    /// As it is asked for.
    pub const fn word(self) -> &'static str {
        match self {
            Self::End => "end",
            Self::Mode => "mode",
            Self::Exclusion => "exclusion",
        }
    }
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct UndoPlan {
    /// What has the daemon put everything back.
    pub by: UndoBy,
    /// Through which back end the daemon steers.
    pub back_end: BackEnd,
    /// The emulated disk's profile.
    pub profile: String,
    /// Length of each of the three windows.
    pub window: Nanos,
    /// `minervad`.
    pub daemon: PathBuf,
}

/// Megabytes a second of the two readers in the three windows; the first reader's tenant has share 800, the other's 100.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct UndoResult {
    /// Before the daemon started.
    pub before: [f64; 2],
    /// While it steered.
    pub during: [f64; 2],
    /// After it put everything back.
    pub after: [f64; 2],
}

impl UndoResult {
    /// How far what a reader gets is from what it got before, as a part of that, for the one that is further off: 0 is a full undo.
    pub fn error(&self) -> f64 {
        let off = |reader: usize| (self.after[reader] / self.before[reader].max(f64::MIN_POSITIVE) - 1.0).abs();
        off(0).max(off(1))
    }

    /// How many times as much the first reader got while the daemon steered.
    pub fn ratio_during(&self) -> f64 {
        self.during[0] / self.during[1].max(f64::MIN_POSITIVE)
    }
}

/// Runs two equal readers on a fresh emulated disk and measures them before, under and after a daemon.
pub fn undo_bites(plan: &UndoPlan, program: &WorkerProgram, interrupted: &AtomicBool) -> Result<UndoResult> {
    let disk = fresh_disk(plan)?;
    let parent = CgroupParent::create("minerva-lab-undo")?;
    let groups = [parent.tenant(NAMES[0])?, parent.tenant(NAMES[1])?];
    if plan.back_end == BackEnd::ThrottleV1 {
        arm_counters(disk.info().id, &parent)?;
    }
    let _calibrated = (plan.back_end == BackEnd::IoCost)
        .then(|| Calibrated::new(disk.info().id, &parent, IOCOST_MODEL))
        .transpose()?;
    let directory = Directory::create(Path::new(RUNTIME_DIRECTORY).join(format!("undo-{}", std::process::id())))?;
    let config = |exclude| DaemonConfig {
        directory: directory.path(),
        slice_ms: SLICE_MS,
        parent: &parent,
        disk: disk.info(),
        guard: true,
        further: further(plan.back_end, &disk, &parent, exclude),
    };
    config(false).write()?;
    let mut readers = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        readers.push(Worker::spawn(program, &equal_reader(&disk, NAMES[index], index as u64, 2), Some(group))?);
    }
    readers.iter_mut().try_for_each(Worker::start)?;
    let wait = |from: Nanos, span: Nanos| wait_until(from + span, interrupted);
    let before = wait(boottime(), WARM_UP)?;
    wait(before, plan.window)?;
    let mut daemon = Daemon::start(&plan.daemon, directory.path())?;
    let during = wait(boottime(), JUDGED)?;
    wait(during, plan.window)?;
    daemon.check()?;
    let daemon = undo(daemon, plan, config)?;
    let after = wait(boottime(), SETTLE)?;
    wait(after, plan.window)?;
    daemon.map_or(Ok(()), |daemon| end(daemon, plan))?;
    readers.iter_mut().for_each(Worker::stop);
    let progress = readers.into_iter().map(|reader| Ok(reader.wait()?.progress)).collect::<Result<Vec<_>>>()?;
    let rates = |start| [0, 1].map(|index| rate(&progress[index], start, plan.window));
    Ok(UndoResult { before: rates(before), during: rates(during), after: rates(after) })
}

/// Has the daemon undo what it wrote; the daemon, where it goes on.
fn undo<'a>(mut daemon: Daemon, plan: &UndoPlan, config: impl Fn(bool) -> DaemonConfig<'a>) -> Result<Option<Daemon>> {
    match plan.by {
        UndoBy::End => return end(daemon, plan).map(|()| None),
        UndoBy::Mode => drop(config(false).write_in(Mode::Shadow)?),
        UndoBy::Exclusion => drop(config(true).write()?),
    }
    daemon.reload()?;
    Ok(Some(daemon))
}

fn end(daemon: Daemon, plan: &UndoPlan) -> Result<()> {
    let status = daemon.end()?;
    if status.success() {
        return Ok(());
    }
    Err(LabError::Controller { program: plan.daemon.display().to_string(), message: status.to_string() })
}

/// A disk with the elevator that the back end wants.
fn fresh_disk(plan: &UndoPlan) -> Result<Disk> {
    let mut spec = DiskSpec::new(format!("undo-{}", std::process::id()), plan.profile.clone());
    let is_bfq = matches!(plan.back_end, BackEnd::Bfq | BackEnd::BfqV1);
    if !is_bfq {
        "mq-deadline".clone_into(&mut spec.elevator);
    }
    let disk = Disk::create(&spec)?;
    if is_bfq {
        disk.queue().write("iosched/low_latency", "0")?;
    }
    Ok(disk)
}

/// Megabytes a second in a window.
fn rate(progress: &[Progress], start: Nanos, window: Nanos) -> f64 {
    (bytes_at(progress, start + window) - bytes_at(progress, start)) / window.as_secs_f64() / 1e6
}

/// What the daemon is told of the disk and its two tenants.
fn further(back_end: BackEnd, disk: &Disk, parent: &CgroupParent, exclude: bool) -> String {
    let rules = NAMES.iter().zip(SHARES).map(|(name, share)| {
        let pattern = quoted(&format!("{}/{name}", parent.relative_path()));
        let name = quoted(name);
        format!("\n[[rules]]\npattern = {pattern}\nname = {name}\nweight_percent = {share}\nexclude = {exclude}\n")
    });
    let mut device =
        format!("{QUICK}\n[devices.{}]\nback_end = {}\n", disk.info().kernel_name, quoted(back_end.as_str()));
    if matches!(back_end, BackEnd::Max | BackEnd::ThrottleV1) {
        device += &format!("bandwidth_bytes_per_second = \"{CAPPED_BANDWIDTH}\"\n");
    }
    device + &rules.collect::<String>()
}

/// The kernel counts what groups use of a disk only after its first throttle rule, and goes on when that is removed.
pub(super) fn arm_counters(device: DeviceId, parent: &CgroupParent) -> Result<()> {
    let path = parent.path().join("blkio.throttle.read_bps_device");
    for limit in [1_u64 << 50, 0] {
        fs::write(&path, format!("{device} {limit}")).at("write", &path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::UndoResult;

    #[test]
    fn an_effect_that_stays_is_an_error() {
        let result = |after| UndoResult { before: [10.0, 10.0], during: [21.7, 3.5], after };
        assert!(result([10.1, 9.9]).error() < 0.02);
        assert!(result([21.5, 3.2]).error() > 0.7);
        assert!(result([3.0, 17.0]).error() > 0.6);
        // A limit that stays holds both alike.
        assert!((result([4.0, 4.0]).error() - 0.6).abs() < 1e-9);
        assert!((result([10.0, 9.0]).error() - 0.1).abs() < 1e-9, "the one that is further off");
        assert!((result([1.0, 1.0]).ratio_during() - 6.2).abs() < 0.01);
    }
}
