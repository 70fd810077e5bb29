//! What many tenants with many files cost the service: its start, memory, descriptors, time while nobody does anything, and answers.

use super::service::{ServedTenant, Service, ServiceConfig};
use crate::clock::boottime;
use crate::error::{At, LabError, Result};
use crate::figure::race::wait_until;
use crate::scene::Directory;
use minerva_model::Nanos;
use serde::Serialize;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The kernel's unit of processor time in `/proc`.
const TICKS_PER_SECOND: f64 = 100.0;
const FILES_A_DIRECTORY: u64 = 1000;
/// After the start, before anything is measured.
const SETTLE: Nanos = Nanos::from_secs(2);

/// What to measure.
#[derive(Clone, Debug)]
pub struct CacheCrowdPlan {
    /// `minerva-fs`.
    pub service: PathBuf,
    /// A directory on the disk for `stable`.
    pub pool: PathBuf,
    /// How many tenants.
    pub tenants: u32,
    /// Files of all together, empty ones, in `stable` before the start.
    pub files: u64,
    /// For how long nobody does anything.
    pub idle: Duration,
}

impl CacheCrowdPlan {
    /// How many files each tenant has.
    fn files_each(&self) -> u64 {
        self.files / u64::from(self.tenants.max(1))
    }

    /// How many there are in all: as many for each.
    pub fn files_made(&self) -> u64 {
        self.files_each() * u64::from(self.tenants)
    }
}

/// What it cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CacheCrowdResult {
    /// Seconds from the start of the process to its first answer: all is mounted, and all files are counted.
    pub start_s: f64,
    /// Resident memory then, in KiB.
    pub resident_kib: u64,
    /// Its threads.
    pub threads: u64,
    /// Its open files.
    pub descriptors: u64,
    /// Processor time in a second in which nobody does anything, in milliseconds.
    pub idle_ms: f64,
    /// Seconds that `minerva-fs status --json` takes.
    pub status_s: f64,
    /// Files that a walk through all trees found, and those that it was refused.
    pub found: u64,
    /// See `found`.
    pub refused: u64,
    /// Seconds of the walk.
    pub walk_s: f64,
    /// Resident memory after it, in KiB, when the kernel knows all files.
    pub resident_walked_kib: u64,
    /// And open files.
    pub descriptors_walked: u64,
    /// Seconds from SIGTERM to the end.
    pub end_s: f64,
}

/// Makes the files, serves them, and measures. `told` hears what is done.
pub fn cache_crowd(
    plan: &CacheCrowdPlan,
    interrupted: &AtomicBool,
    told: &mut dyn FnMut(&str),
) -> Result<CacheCrowdResult> {
    let name = format!("cachecrowd-{}", std::process::id());
    let folder = Directory::create(plan.pool.join(&name))?;
    let files = plan.files_each();
    let tenants: Vec<ServedTenant> = (0..plan.tenants)
        .map(|number| ServedTenant {
            name: format!("t{number}"),
            temporary_bytes: 1 << 20,
            stable_bytes: 1 << 30,
            files: 2 * files + 1000,
        })
        .collect();
    told(&format!("making {} files", plan.files_made()));
    for tenant in &tenants {
        make_files(&folder.path().join("tenants").join(&tenant.name), files, interrupted)?;
    }
    told(&format!("starting with {} tenants", tenants.len()));
    let config = ServiceConfig {
        program: &plan.service,
        name,
        pool: folder.path(),
        tenants: &tenants,
        daemon: None,
        group: None,
    };
    let mut service = Service::start(&config, interrupted)?;
    wait_until(boottime() + SETTLE, interrupted)?;
    let mut result = CacheCrowdResult { start_s: service.started_in.as_secs_f64(), ..CacheCrowdResult::default() };
    let of = |service: &Service| Ok((status_field(service.pid(), "VmRSS")?, descriptors(service.pid())?));
    (result.resident_kib, result.descriptors) = of(&service)?;
    result.threads = status_field(service.pid(), "Threads")?;
    told(&format!("doing nothing for {} s", plan.idle.as_secs()));
    result.idle_ms = idle(&service, plan.idle, interrupted)?;
    result.status_s = status(&plan.service, &service.config())?;
    told("walking through all trees");
    let begun = Instant::now();
    for tenant in &tenants {
        walk(&service.tree(&tenant.name, "stable"), interrupted, &mut result)?;
    }
    result.walk_s = begun.elapsed().as_secs_f64();
    service.check()?;
    (result.resident_walked_kib, result.descriptors_walked) = of(&service)?;
    told("ending");
    result.end_s = service.end()?.as_secs_f64();
    Ok(result)
}

fn make_files(tree: &Path, files: u64, interrupted: &AtomicBool) -> Result<()> {
    for directory in 0..files.div_ceil(FILES_A_DIRECTORY) {
        let path = tree.join(format!("d{directory}"));
        fs::create_dir_all(&path).at("create", &path)?;
        let left = files - directory * FILES_A_DIRECTORY;
        for file in 0..left.min(FILES_A_DIRECTORY) {
            let file = path.join(format!("f{file}"));
            File::create(&file).at("create", &file)?;
        }
        look(interrupted)?;
    }
    fs::create_dir_all(tree).at("create", tree)
}

/// Looks at each file, as `find` does.
fn walk(directory: &Path, interrupted: &AtomicBool, result: &mut CacheCrowdResult) -> Result<()> {
    look(interrupted)?;
    let Ok(entries) = fs::read_dir(directory) else {
        result.refused += 1;
        return Ok(());
    };
    for entry in entries {
        match entry.and_then(|entry| Ok((entry.path(), entry.metadata()?))) {
            Ok((path, shown)) if shown.is_dir() => walk(&path, interrupted, result)?,
            Ok(_) => result.found += 1,
            Err(_) => result.refused += 1,
        }
    }
    Ok(())
}

/// Processor time in a second, in milliseconds.
fn idle(service: &Service, span: Duration, interrupted: &AtomicBool) -> Result<f64> {
    let before = processor_ticks(service.pid())?;
    wait_until(boottime() + Nanos(span.as_nanos() as u64), interrupted)?;
    let ticks = processor_ticks(service.pid())? - before;
    Ok(ticks as f64 / TICKS_PER_SECOND * 1e3 / span.as_secs_f64().max(1e-3))
}

/// Processor time so far (proc_pid_stat(5), fields 14 and 15).
fn processor_ticks(pid: u32) -> Result<u64> {
    let path = PathBuf::from(format!("/proc/{pid}/stat"));
    let text = fs::read_to_string(&path).at("read", &path)?;
    let after = text.rsplit(')').next().unwrap_or_default();
    let fields: Vec<u64> = after.split_whitespace().skip(11).take(2).filter_map(|field| field.parse().ok()).collect();
    Ok(fields.iter().sum())
}

/// A number of `/proc/PID/status`.
fn status_field(pid: u32, name: &str) -> Result<u64> {
    let path = PathBuf::from(format!("/proc/{pid}/status"));
    let text = fs::read_to_string(&path).at("read", &path)?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    Ok(line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0))
}

fn descriptors(pid: u32) -> Result<u64> {
    let path = PathBuf::from(format!("/proc/{pid}/fd"));
    Ok(fs::read_dir(&path).at("read", &path)?.count() as u64)
}

/// The least of three, as the machine may be busy.
fn status(program: &Path, config: &Path) -> Result<f64> {
    let mut least = f64::INFINITY;
    for _ in 0..3 {
        let begun = Instant::now();
        let mut command = Command::new(program);
        command.args(["status", "--json", "--config"]).arg(config).stdout(Stdio::null());
        let status = command.status().at("start", program)?;
        if !status.success() {
            return Err(LabError::BadPlan(format!("{} status ended with {status}", program.display())));
        }
        least = least.min(begun.elapsed().as_secs_f64());
    }
    Ok(least)
}

fn look(interrupted: &AtomicBool) -> Result<()> {
    if interrupted.load(Ordering::Relaxed) { Err(LabError::Interrupted) } else { Ok(()) }
}
