//! Many clients of one daemon: how long answers take, what a client costs in memory, and what a slice costs meanwhile.

use super::crowd::resident;
use crate::daemon::{Daemon, DaemonConfig};
use crate::disk::{Disk, DiskSpec, RUNTIME_DIRECTORY};
use crate::error::{At, LabError, Result};
use crate::scene::Directory;
use crate::workload::CgroupParent;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const SLICE_MS: u64 = 1000;
/// The daemon is left alone for so long before its memory is looked at.
const CALM: Duration = Duration::from_secs(3);

/// What to measure.
#[derive(Clone, Debug)]
pub struct ClientsPlan {
    /// Clients, each with a connection of its own, in all.
    pub clients: usize,
    /// Requests in all.
    pub requests_per_second: u32,
    /// For how long.
    pub seconds: u32,
    /// Tenants that the clients belong to.
    pub tenants: usize,
    /// The daemon.
    pub daemon: PathBuf,
    /// The program that is a tenant's clients, as `PROGRAM callers --spec JSON`.
    pub callers: PathBuf,
}

/// What one program of clients does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallersSpec {
    /// The daemon's socket.
    pub socket: PathBuf,
    /// The `cgroup.procs` to move into first.
    pub cgroup_processes: PathBuf,
    /// Clients.
    pub clients: usize,
    /// Requests of all of them.
    pub requests_per_second: u32,
    /// For how long.
    pub seconds: u32,
}

/// What it met.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallersReport {
    /// Time until each answer, in microseconds, from the moment at which the request was due.
    pub answers_us: Vec<u32>,
    /// Requests that were refused or failed.
    pub failed: u64,
    /// Why the first of them did.
    pub failure: String,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClientsResult {
    /// Clients that were connected.
    pub clients: usize,
    /// Time until each answer in milliseconds, sorted.
    pub answers_ms: Vec<f64>,
    /// Requests that were refused or failed.
    pub failed: u64,
    /// Why the first of them did.
    pub failure: String,
    /// Resident memory of the daemon before anybody connected, with everybody connected, and after the requests, in bytes.
    pub resident_bytes: [u64; 3],
    /// What the daemon spent on a slice in the mean before anybody connected and while everybody asked, in milliseconds.
    pub slice_ms: [f64; 2],
    /// Slices that began late meanwhile.
    pub slices_late: u64,
}

impl ClientsResult {
    /// The time that this part of the answers did not exceed, in milliseconds.
    pub fn answer_ms(&self, part: f64) -> f64 {
        let rank = (self.answers_ms.len() as f64 * part).ceil() as usize;
        self.answers_ms.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
    }

    /// Memory of the daemon for each client, the larger of idle and used, in bytes.
    pub fn bytes_per_client(&self) -> f64 {
        let [before, connected, after] = self.resident_bytes;
        connected.max(after).saturating_sub(before) as f64 / self.clients.max(1) as f64
    }
}

/// Runs the daemon and the clients.
pub fn clients(plan: &ClientsPlan, interrupted: &AtomicBool) -> Result<ClientsResult> {
    let disk = Disk::create(&DiskSpec::new(format!("clients-{}", std::process::id()), "sata-ssd"))?;
    let parent = CgroupParent::create("minerva-lab-clients")?;
    let groups =
        (0..plan.tenants).map(|index| parent.tenant(&format!("tenant-{index}"))).collect::<Result<Vec<_>>>()?;
    let directory = Directory::create(Path::new(RUNTIME_DIRECTORY).join(format!("clients-{}", std::process::id())))?;
    let config = DaemonConfig {
        directory: directory.path(),
        slice_ms: SLICE_MS,
        parent: &parent,
        disk: disk.info(),
        guard: true,
        further: LIMITS.to_owned(),
    };
    config.write()?;
    let mut daemon = Daemon::start(&plan.daemon, directory.path())?;
    std::thread::sleep(CALM);
    let before = (resident(daemon.pid())?.0, slices(&daemon)?);
    std::thread::sleep(CALM);
    let alone = slices(&daemon)?.since(&before.1);

    let spec = |index: usize| CallersSpec {
        socket: DaemonConfig::participation_socket(directory.path()),
        cgroup_processes: groups[index].processes_file(),
        clients: plan.clients / plan.tenants,
        requests_per_second: plan.requests_per_second / plan.tenants as u32,
        seconds: plan.seconds,
    };
    let mut callers =
        (0..plan.tenants).map(|index| Callers::start(&plan.callers, &spec(index))).collect::<Result<Vec<_>>>()?;
    for one in &mut callers {
        one.line()?;
        check(interrupted, &mut daemon)?;
    }
    std::thread::sleep(CALM);
    let connected = (resident(daemon.pid())?.0, slices(&daemon)?);
    callers.iter_mut().try_for_each(Callers::go)?;
    let mut report = CallersReport::default();
    for one in &mut callers {
        let line = one.line()?;
        let part: CallersReport =
            serde_json::from_str(&line).map_err(|error| failure(&format!("said what is no report: {error}")))?;
        report.answers_us.extend(part.answers_us);
        report.failed += part.failed;
        if report.failure.is_empty() {
            report.failure = part.failure;
        }
        check(interrupted, &mut daemon)?;
    }
    let busy = slices(&daemon)?.since(&connected.1);
    let after = resident(daemon.pid())?.0;
    let mut answers_ms: Vec<f64> = report.answers_us.iter().map(|answer| f64::from(*answer) / 1e3).collect();
    answers_ms.sort_by(f64::total_cmp);
    Ok(ClientsResult {
        clients: plan.clients / plan.tenants * plan.tenants,
        answers_ms,
        failed: report.failed,
        failure: report.failure,
        resident_bytes: [before.0, connected.0, after],
        slice_ms: [alone.mean_ms(), busy.mean_ms()],
        slices_late: busy.late as u64,
    })
}

/// Above what the clients do: the figure is of the server, not of its limits.
const LIMITS: &str = "requests_per_second = 100000\nburst = 100000\nconnections_max = 20000\n\
     connections_per_account_max = 20000\nstreams_max = 20000\nstreams_per_account_max = 20000\n";

fn check(interrupted: &AtomicBool, daemon: &mut Daemon) -> Result<()> {
    if interrupted.load(Ordering::Relaxed) {
        return Err(LabError::Interrupted);
    }
    daemon.check()
}

/// Slices up to now.
struct Slices {
    count: f64,
    seconds: f64,
    late: f64,
}

impl Slices {
    fn since(&self, before: &Self) -> Self {
        let Self { count, seconds, late } = before;
        Self { count: self.count - count, seconds: self.seconds - seconds, late: self.late - late }
    }

    fn mean_ms(&self) -> f64 {
        self.seconds * 1e3 / self.count.max(1.0)
    }
}

fn slices(daemon: &Daemon) -> Result<Slices> {
    let metrics = daemon.metrics()?;
    let value = |name: &str| metrics.get(name).copied().unwrap_or(0.0);
    Ok(Slices {
        count: value("minerva_slice_duration_seconds_count"),
        seconds: value("minerva_slice_duration_seconds_sum"),
        late: value("minerva_slices_late_total"),
    })
}

/// A program of clients; killed when dropped.
struct Callers {
    child: Child,
    said: BufReader<ChildStdout>,
    told: ChildStdin,
}

impl Callers {
    fn start(program: &Path, spec: &CallersSpec) -> Result<Self> {
        let spec = serde_json::to_string(spec).map_err(|error| failure(&error.to_string()))?;
        let mut command = Command::new(program);
        command.args(["callers", "--spec", &spec]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().at("start", program)?;
        match (child.stdout.take(), child.stdin.take()) {
            (Some(said), Some(told)) => Ok(Self { child, said: BufReader::new(said), told }),
            _ => Err(failure("has no pipes")),
        }
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.said.read_line(&mut line).at("read from", "the clients")?;
        if line.is_empty() { Err(failure("ended early; it said why above")) } else { Ok(line) }
    }

    fn go(&mut self) -> Result<()> {
        self.told.write_all(b"go\n").at("write to", "the clients")
    }
}

impl Drop for Callers {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn failure(message: &str) -> LabError {
    LabError::Controller { program: "the program of clients".to_owned(), message: message.to_owned() }
}
