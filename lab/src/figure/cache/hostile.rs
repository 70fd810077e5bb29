//! What a hostile tenant costs its neighbour in the cache. The neighbour makes, writes, reads and removes small files, one at a time, and
//! each such round is timed: without anybody beside it, with the other at work in its own trees, and with the other doing the same to
//! plain memory, which costs processor time alone.

use super::acts::{HostileProcess, Hostility};
use super::service::{ServedTenant, Service, ServiceConfig};
use crate::clock::boottime;
use crate::disk::{Claim, RUNTIME_DIRECTORY, unmount};
use crate::error::{At, LabError, Result};
use crate::figure::race::wait_until;
use crate::scene::Directory;
use crate::workload::{Latency, Recorder, WorkerProgram};
use minerva_model::Nanos;
use rustix::mount::{MountFlags, mount};
use serde::Serialize;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

const NAMES: [&str; 2] = ["neighbour", "hostile"];
/// Quotas of each.
const QUOTA: u64 = 256 << 20;
const FILES: u64 = 400_000;
/// What the neighbour writes in a round.
const WRITTEN: usize = 16 << 10;
/// The other has gone, or the machine has got used to it.
const SETTLE: Nanos = Nanos::from_secs(1);
/// Far more than the other takes to hold all its files; one that takes longer is measured as it is, and judged by what it held.
const PATIENCE: Nanos = Nanos::from_secs(120);

/// What to measure.
#[derive(Clone, Debug)]
pub struct HostilePlan {
    /// `minerva-fs`.
    pub service: PathBuf,
    /// A directory on the disk for `stable`.
    pub pool: PathBuf,
    /// Length of each window.
    pub window: Nanos,
    /// How often everything is measured, in an order that is drawn.
    pub rounds: u32,
    /// Seed of the orders.
    pub seed: u64,
}

/// A neighbour in a window.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HostileWindow {
    /// How long its rounds took.
    pub latency: Latency,
    /// Rounds in which anything was refused.
    pub errors: u64,
    /// What the hostile tenant did meanwhile.
    pub acts: u64,
    /// And what it was refused.
    pub refused: u64,
    /// How many files it held open at the end.
    pub held: u64,
    /// How many of its processes did nothing meanwhile.
    pub idle: u64,
}

/// All windows of one kind of hostility: without it, with it in the service, and with it in plain memory; a set a round.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostileResult {
    /// Which.
    pub hostility: Hostility,
    /// See the type.
    pub windows: Vec<[HostileWindow; 3]>,
}

/// Measures all kinds in a drawn order. `told` hears which is next.
pub fn cache_hostile(
    plan: &HostilePlan,
    program: &WorkerProgram,
    interrupted: &AtomicBool,
    told: &mut dyn FnMut(Hostility),
) -> Result<Vec<HostileResult>> {
    let name = format!("cachehostile-{}", std::process::id());
    let folder = Directory::create(plan.pool.join(&name))?;
    let tenants = NAMES.map(|name| ServedTenant {
        name: name.to_owned(),
        temporary_bytes: QUOTA,
        stable_bytes: QUOTA,
        files: FILES,
    });
    let config = ServiceConfig {
        program: &plan.service,
        name: name.clone(),
        pool: folder.path(),
        tenants: &tenants,
        daemon: None,
        group: None,
    };
    let mut service = Service::start(&config, interrupted)?;
    let plain = Plain::mount(&format!("{name}-plain"))?;
    let bed = Bed { plan, program, service: &service, plain: &plain.0, interrupted };
    let mut random = fastrand::Rng::with_seed(plan.seed);
    let mut results: Vec<HostileResult> =
        Hostility::ALL.map(|hostility| HostileResult { hostility, windows: Vec::new() }).into();
    for _ in 0..plan.rounds {
        let mut order: Vec<usize> = (0..results.len()).collect();
        random.shuffle(&mut order);
        for index in order {
            told(results[index].hostility);
            let windows = bed.windows(results[index].hostility, &mut random)?;
            results[index].windows.push(windows);
        }
    }
    service.check()?;
    service.end()?;
    Ok(results)
}

struct Bed<'a> {
    plan: &'a HostilePlan,
    program: &'a WorkerProgram,
    service: &'a Service,
    plain: &'a Path,
    interrupted: &'a AtomicBool,
}

impl Bed<'_> {
    fn windows(&self, hostility: Hostility, random: &mut fastrand::Rng) -> Result<[HostileWindow; 3]> {
        let mut order = [0, 1, 2];
        random.shuffle(&mut order);
        let mut windows: [HostileWindow; 3] = Default::default();
        for which in order {
            let at = match which {
                0 => None,
                1 => Some(self.service.tree(NAMES[1], "temporary")),
                _ => Some(self.plain.to_owned()),
            };
            windows[which] = self.window(hostility, at.as_deref())?;
        }
        Ok(windows)
    }

    /// The neighbour for a while, beside a hostile one in this directory or without.
    fn window(&self, hostility: Hostility, at: Option<&Path>) -> Result<HostileWindow> {
        let start = |directory: &Path| HostileProcess::start_all(self.program, hostility, directory);
        let mut processes = at.map(start).transpose()?.unwrap_or_default();
        let until = boottime() + PATIENCE;
        processes.iter_mut().try_for_each(|process| process.wait_until_at_work(until, self.interrupted))?;
        let window = self.neighbour(&mut || processes.iter_mut().try_for_each(HostileProcess::begin))?;
        let done = HostileProcess::end_all(processes)?;
        Ok(HostileWindow {
            acts: done.iter().map(|done| done.acts).sum(),
            refused: done.iter().map(|done| done.refused).sum(),
            held: done.iter().map(|done| done.held).sum(),
            idle: done.iter().filter(|done| done.is_idle(hostility)).count() as u64,
            ..window
        })
    }

    /// Who is beside it hears when it begins.
    fn neighbour(&self, begin: &mut dyn FnMut() -> Result<()>) -> Result<HostileWindow> {
        let tree = self.service.tree(NAMES[0], "temporary");
        let end = wait_until(boottime() + SETTLE, self.interrupted)? + self.plan.window;
        begin()?;
        let (mut recorder, mut errors, mut buffer) = (Recorder::new(), 0, vec![0x5a; WRITTEN]);
        while boottime() < end {
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(LabError::Interrupted);
            }
            let before = boottime();
            errors += u64::from(round(&tree.join("file"), &mut buffer).is_err());
            recorder.record(boottime().since(before));
        }
        Ok(HostileWindow { latency: recorder.finish(), errors, ..HostileWindow::default() })
    }
}

/// What is timed.
fn round(path: &Path, buffer: &mut [u8]) -> io::Result<()> {
    File::create(path)?.write_all(buffer)?;
    File::open(path)?.read_exact(buffer)?;
    fs::remove_file(path)
}

/// Plain memory, of the same size.
struct Plain(PathBuf, #[expect(dead_code, reason = "holds the name")] Claim);

impl Plain {
    fn mount(name: &str) -> Result<Self> {
        let claim = Claim::take(name)?;
        let at = Path::new(RUNTIME_DIRECTORY).join(name).join("mount");
        mount("minerva-lab", &at, "tmpfs", MountFlags::NODEV, c"size=256m,mode=0700")
            .map_err(io::Error::from)
            .at("mount memory at", &at)?;
        Ok(Self(at, claim))
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        unmount(&self.0);
    }
}
