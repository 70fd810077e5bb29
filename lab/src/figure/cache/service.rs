//! `minerva-fs` as a process of its own, with a pool, mounts and a socket that nobody else uses. What it is asked goes over its socket,
//! as any program asks.

use crate::disk::{Claim, RUNTIME_DIRECTORY, unmount};
use crate::error::{At, LabError, Result};
use crate::mounts::read_mounts;
use crate::scene::Directory;
use crate::workload::TenantCgroup;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A thousand tenants take a while to be mounted, and to be unmounted.
const PATIENCE: Duration = Duration::from_secs(300);
const LOOK: Duration = Duration::from_millis(10);

/// A tenant of the service.
#[derive(Clone, Debug)]
pub(super) struct ServedTenant {
    pub(super) name: String,
    /// Its quotas, in bytes.
    pub(super) temporary_bytes: u64,
    pub(super) stable_bytes: u64,
    /// Files in each pool.
    pub(super) files: u64,
}

/// How the service is started.
#[derive(Clone, Debug)]
pub(super) struct ServiceConfig<'a> {
    /// The program.
    pub(super) program: &'a Path,
    /// Names its mounts and socket, below [`RUNTIME_DIRECTORY`].
    pub(super) name: String,
    /// Where `stable` lies.
    pub(super) pool: &'a Path,
    pub(super) tenants: &'a [ServedTenant],
    /// The socket of a daemon that tells who uses a disk.
    pub(super) daemon: Option<PathBuf>,
    /// In which group it runs; in this process's without.
    pub(super) group: Option<&'a TenantCgroup>,
}

/// The service. Dropping it ends it, and unmounts what it leaves.
#[derive(Debug)]
pub(super) struct Service {
    child: Child,
    program: String,
    /// From the start of the process to its first answer.
    pub(super) started_in: Duration,
    directory: Directory,
    _claim: Claim,
}

impl Service {
    /// Starts it, and waits until it serves.
    pub(super) fn start(config: &ServiceConfig<'_>, interrupted: &AtomicBool) -> Result<Self> {
        let claim = Claim::take(&config.name)?;
        let directory = Directory::create(Path::new(RUNTIME_DIRECTORY).join(&config.name).join("cache"))?;
        let (file, log) = (directory.path().join("fs.toml"), directory.path().join("log"));
        fs::write(&file, settings(config, directory.path())).at("write", &file)?;
        let errors = File::create(&log).at("create", &log)?;
        let mut command = Command::new(config.program);
        // What a terminal sends is for whoever started it, who then ends it in order.
        command.arg("--config").arg(&file).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        let begun = Instant::now();
        let child = command.spawn().at("start", config.program)?;
        let program = config.program.display().to_string();
        let mut service = Self { child, program, started_in: Duration::ZERO, directory, _claim: claim };
        if let Some(group) = config.group {
            let path = group.processes_file();
            fs::write(&path, service.pid().to_string()).at("move a process into the cgroup through", &path)?;
        }
        while service.ask(&serde_json::json!({ "ask": "flush", "directory": "/nonexistent" })).is_err() {
            if interrupted.load(Ordering::Relaxed) {
                return Err(LabError::Interrupted);
            }
            service.check()?;
            if begun.elapsed() > PATIENCE {
                return Err(service.failure(&format!("does not serve after {} s", PATIENCE.as_secs())));
            }
            std::thread::sleep(LOOK);
        }
        service.started_in = begun.elapsed();
        Ok(service)
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The root of a tenant's tree: `temporary` or `stable`.
    pub(super) fn tree(&self, tenant: &str, pool: &str) -> PathBuf {
        self.directory.path().join("trees").join(tenant).join(pool)
    }

    /// Its file, for the program's own commands.
    pub(super) fn config(&self) -> PathBuf {
        self.directory.path().join("fs.toml")
    }

    /// One request, and its answer; a refusal is an error.
    pub(super) fn ask(&self, request: &Value) -> Result<Value> {
        let socket = self.directory.path().join("run/control.sock");
        let stream = UnixStream::connect(&socket).at("connect to", &socket)?;
        stream.set_read_timeout(Some(PATIENCE)).at("listen to", &socket)?;
        writeln!(&stream, "{request}").at("write to", &socket)?;
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).at("read", &socket)?;
        let answer: Value = serde_json::from_str(&line).map_err(std::io::Error::other).at("understand", &socket)?;
        match answer.get("why").and_then(Value::as_str) {
            Some(why) => {
                Err(LabError::Controller { program: self.program.clone(), message: format!("refused: {why}") })
            }
            None => Ok(answer),
        }
    }

    /// Makes a file that is to go to `path`; what is to be written in its place.
    pub(super) fn defer(&self, tenant: &str, path: &Path, bytes: u64) -> Result<PathBuf> {
        let parent = path.parent().unwrap_or(Path::new("/"));
        let parent = fs::metadata(parent).at("examine", parent)?;
        let answer = self.ask(&serde_json::json!({
            "ask": "defer", "path": path, "directory": [parent.dev(), parent.ino()], "mode": 0o644, "pool": "stable",
            "tenant": tenant, "bytes": bytes,
        }))?;
        let data = answer.get("data").and_then(Value::as_str).map(PathBuf::from);
        data.ok_or_else(|| LabError::BadPlan(format!("the cache named no file: {answer}")))
    }

    /// What was moved since the start, in bytes.
    pub(super) fn moved_bytes(&self) -> Result<u64> {
        let answer = self.ask(&serde_json::json!({ "ask": "status" }))?;
        Ok(answer["migration"]["moved_bytes"].as_u64().unwrap_or(0))
    }

    /// An error when it is not running any more.
    pub(super) fn check(&mut self) -> Result<()> {
        match self.child.try_wait().at("look after", &self.program)? {
            None => Ok(()),
            Some(status) => Err(self.failure(&format!("ended early ({status})"))),
        }
    }

    /// SIGTERM, and how long its end took.
    pub(super) fn end(mut self) -> Result<Duration> {
        let begun = Instant::now();
        self.terminate();
        match self.child.try_wait().at("wait for", &self.program)? {
            Some(status) if status.success() => Ok(begun.elapsed()),
            ended => Err(self.failure(&format!("did not end well: {ended:?}"))),
        }
    }

    fn terminate(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        // The child is not reaped before this, so the number cannot be another's.
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let begun = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && begun.elapsed() < PATIENCE {
            std::thread::sleep(LOOK);
        }
    }

    fn failure(&self, what: &str) -> LabError {
        let log = fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let last = lines[lines.len().saturating_sub(5)..].join("\n");
        LabError::Controller { program: self.program.clone(), message: format!("{what}; it said:\n{last}") }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.terminate();
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Memory with files in it stays mounted after the service's own end; innermost mounts come last.
        let left = read_mounts().into_iter().filter(|mount| mount.mount_point.starts_with(self.directory.path()));
        left.collect::<Vec<_>>().iter().rev().for_each(|mount| unmount(&mount.mount_point));
    }
}

/// The service's file.
fn settings(config: &ServiceConfig<'_>, directory: &Path) -> String {
    let daemon = config.daemon.clone().unwrap_or_else(|| directory.join("no-daemon"));
    let mut text = format!(
        "[server]\nmount = \"{0}/trees\"\nruntime = \"{0}/run\"\n[pools.stable]\npath = \"{1}\"\n[migration]\ndaemon = \"{2}\"\n",
        directory.display(),
        config.pool.display(),
        daemon.display()
    );
    for ServedTenant { name, temporary_bytes, stable_bytes, files } in config.tenants {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "[tenants.{name}]\ntemporary = \"{temporary_bytes}B\"\nstable = \"{stable_bytes}B\"\ntemporary_files = {files}\n\
             stable_files = {files}\n"
        );
    }
    text
}
