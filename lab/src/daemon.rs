//! The daemon under test, as a process of its own with a configuration of its own that looks at nothing but the
//! laboratory's disk and tenants.

use crate::disk::DiskInfo;
use crate::error::{At, LabError, Result};
use crate::workload::CgroupParent;
use minerva_model::Mode;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A daemon that is not ready after this long will not be.
const READY_PATIENCE: Duration = Duration::from_secs(30);
/// A daemon that hangs takes connections still, and answers none.
const ANSWER_PATIENCE: Duration = Duration::from_secs(30);
/// It restores every knob at its end, which takes a moment.
const END_PATIENCE: Duration = Duration::from_secs(30);

/// What the daemon is told. Whatever is not said here is its own default.
#[derive(Debug)]
pub struct DaemonConfig<'a> {
    /// Where everything that it keeps lies.
    pub directory: &'a Path,
    /// Length of its slice.
    pub slice_ms: u64,
    /// The parent of the tenants.
    pub parent: &'a CgroupParent,
    /// The disk.
    pub disk: &'a DiskInfo,
    /// Whether a second process puts everything back when it dies.
    pub guard: bool,
    /// Further sections of the file.
    pub further: String,
}

impl DaemonConfig<'_> {
    /// Where [`Daemon::metrics`] reads.
    fn metrics_socket(directory: &Path) -> PathBuf {
        directory.join("metrics.sock")
    }

    /// Where tenants ask.
    pub fn participation_socket(directory: &Path) -> PathBuf {
        directory.join("tenant.sock")
    }

    /// The store of the daemon, in `directory`.
    pub fn store(directory: &Path) -> PathBuf {
        directory.join("state/minerva.db")
    }

    /// Writes the file and says where it is.
    pub fn write(&self) -> Result<PathBuf> {
        self.write_in(Mode::Enforce)
    }

    /// Writes the file with another mode.
    pub fn write_in(&self, mode: Mode) -> Result<PathBuf> {
        let path = self.directory.join("minervad.toml");
        fs::write(&path, self.text(mode)).at("write", &path)?;
        Ok(path)
    }

    fn text(&self, mode: Mode) -> String {
        let inside = |name: &str| quoted(&self.directory.join(name).to_string_lossy());
        let metrics = format!("unix:{}", Self::metrics_socket(self.directory).display());
        format!(
            "mode = \"{}\"\n\n[observe]\nslice = \"{}ms\"\n\n[daemon]\nruntime_dir = {}\nstate_dir = {}\n\
             socket = {}\nmetrics = {}\ninclude = [{}]\ndevices_only = [{}]\nguard = {}\n\n[participation]\nsocket = {}\n{}",
            word(mode),
            self.slice_ms,
            inside("runtime"),
            inside("state"),
            inside("control.sock"),
            quoted(&metrics),
            quoted(&format!("{}/*", self.parent.relative_path())),
            quoted(&self.disk.kernel_name),
            self.guard,
            quoted(&Self::participation_socket(self.directory).to_string_lossy()),
            self.further,
        )
    }
}

/// A mode as the configuration file has it.
const fn word(mode: Mode) -> &'static str {
    match mode {
        Mode::Observe => "observe",
        Mode::Shadow => "shadow",
        Mode::Enforce => "enforce",
    }
}

/// A string of the configuration file.
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A running daemon. Dropping it ends it by SIGTERM, so that it puts everything back.
#[derive(Debug)]
pub struct Daemon {
    program: String,
    child: Child,
    directory: PathBuf,
    ready: UnixDatagram,
}

impl Daemon {
    /// Starts the program with the file that [`DaemonConfig::write`] wrote into `directory`; it is not ready yet.
    pub fn launch(program: &Path, directory: &Path) -> Result<Self> {
        let notify = directory.join("notify");
        // One of an earlier daemon, or none.
        let _ = fs::remove_file(&notify);
        let ready = UnixDatagram::bind(&notify).at("listen on", &notify)?;
        ready.set_read_timeout(Some(Duration::from_millis(100))).at("listen on", &notify)?;
        let log = directory.join("log");
        let errors = File::options().create(true).append(true).open(&log).at("create", &log)?;
        let mut command = Command::new(program);
        command.arg("--config").arg(directory.join("minervad.toml")).env("NOTIFY_SOCKET", &notify);
        // What a terminal sends is for whoever started it, who then ends it in order.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        let child = command.spawn().at("start", program)?;
        Ok(Self { program: program.display().to_string(), child, directory: directory.to_owned(), ready })
    }

    /// Starts the program and waits until it says that it steers.
    pub fn start(program: &Path, directory: &Path) -> Result<Self> {
        let mut daemon = Self::launch(program, directory)?;
        daemon.wait_until_ready()?;
        Ok(daemon)
    }

    /// Waits for the daemon's `READY=1`, the way systemd does.
    pub fn wait_until_ready(&mut self) -> Result<()> {
        let start = Instant::now();
        let mut message = [0; 4096];
        while start.elapsed() < READY_PATIENCE {
            match self.ready.recv(&mut message) {
                Ok(length) if message[..length].split(|byte| *byte == b'\n').any(|line| line == b"READY=1") => {
                    return Ok(());
                }
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => self.check()?,
                Err(error) => return Err(error).at("listen to", &self.program),
            }
        }
        Err(self.failure(&format!("was not ready after {} s", READY_PATIENCE.as_secs())))
    }

    /// Has it read its file anew, and waits until what that says is in force.
    pub fn reload(&mut self) -> Result<()> {
        self.check()?;
        self.signal(Signal::HUP);
        self.wait_until_ready()
    }

    /// An error when it is not running any more.
    pub fn check(&mut self) -> Result<()> {
        match self.child.try_wait().at("look after", &self.program)? {
            None => Ok(()),
            Some(status) => Err(self.failure(&format!("ended early ({status})"))),
        }
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its metrics, by name and labels as a scrape gives them.
    pub fn metrics(&self) -> Result<BTreeMap<String, f64>> {
        let socket = DaemonConfig::metrics_socket(&self.directory);
        let mut stream = UnixStream::connect(&socket).at("connect to", &socket)?;
        stream.set_read_timeout(Some(ANSWER_PATIENCE)).at("connect to", &socket)?;
        let request = b"GET /metrics HTTP/1.1\r\nHost: minervad\r\nConnection: close\r\n\r\n";
        stream.write_all(request).at("write to", &socket)?;
        let mut text = String::new();
        stream.read_to_string(&mut text).at("read", &socket)?;
        Ok(parse_metrics(&text))
    }

    /// `kill -9`, and waits until it is gone.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill().at("kill", &self.program)?;
        self.child.wait().at("wait for", &self.program).map(drop)
    }

    /// SIGTERM, and waits for its end.
    pub fn end(mut self) -> Result<ExitStatus> {
        self.terminate();
        let status = self.child.try_wait().at("wait for", &self.program)?;
        status.ok_or_else(|| self.failure(&format!("did not end within {} s", END_PATIENCE.as_secs())))
    }

    /// Sends SIGTERM and waits for a while.
    fn terminate(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        self.signal(Signal::TERM);
        let start = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && start.elapsed() < END_PATIENCE {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Sends a signal to a child that was just seen to run: it is not reaped before this, so the number cannot be another's.
    fn signal(&self, signal: Signal) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, signal);
        }
    }

    fn failure(&self, what: &str) -> LabError {
        let log = fs::read_to_string(self.directory.join("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let last = lines[lines.len().saturating_sub(5)..].join("\n");
        LabError::Controller { program: self.program.clone(), message: format!("{what}; it said:\n{last}") }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.terminate();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Lines of the form `NAME VALUE`; the rest of the answer has none.
fn parse_metrics(text: &str) -> BTreeMap<String, f64> {
    let line = |line: &str| {
        let (name, value) = line.trim().rsplit_once(' ')?;
        Some((name.to_owned(), value.parse().ok()?))
    };
    text.lines().filter(|line| !line.starts_with('#')).filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::parse_metrics;

    #[test]
    fn metrics_are_found_among_headers_and_comments() {
        let text = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n# HELP x y 3\nx_total{a=\"b c\"} 4\nx 0.5\n# EOF\n";
        let metrics = parse_metrics(text);
        assert_eq!(metrics.get("x_total{a=\"b c\"}"), Some(&4.0));
        assert_eq!(metrics.get("x"), Some(&0.5));
    }
}
