//! Who steers while a scene plays: nobody, so that all weights are equal, or a controller.

use crate::disk::{DiskInfo, RUNTIME_DIRECTORY};
use crate::error::{At, LabError, Result};
use crate::workload::CgroupParent;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A daemon that is not ready after this long will not be.
const READY_PATIENCE: Duration = Duration::from_secs(15);
/// It restores every knob at its end, which takes a moment.
const END_PATIENCE: Duration = Duration::from_secs(15);

/// A tenant as a controller must know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantInScene {
    /// Name of its cgroup below the parent.
    pub name: String,
    /// The operator's factor on its share, in percent.
    pub weight_percent: u32,
}

/// What is to be steered.
#[derive(Debug)]
pub struct SteeringContext<'a> {
    /// The disk.
    pub disk: &'a DiskInfo,
    /// The parent of the tenants' cgroups.
    pub parent: &'a CgroupParent,
    /// The tenants.
    pub tenants: Vec<TenantInScene>,
}

/// Something that may steer a scene.
pub trait Steering {
    /// Short name for tables and legends.
    fn name(&self) -> &str;
    /// Begins to steer.
    fn start(&self, context: &SteeringContext<'_>) -> Result<Box<dyn Steered>>;
}

/// A controller at work. Dropping it ends it, and with it what it wrote.
pub trait Steered {
    /// Whether it still is at work; an error says why it is not.
    fn check(&mut self) -> Result<()>;
}

/// Nobody steers: every tenant keeps the kernel's default weight.
#[derive(Clone, Copy, Debug)]
pub struct Equal;

impl Steering for Equal {
    fn name(&self) -> &str {
        "equal"
    }

    fn start(&self, _: &SteeringContext<'_>) -> Result<Box<dyn Steered>> {
        Ok(Box::new(Self))
    }
}

impl Steered for Equal {
    fn check(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Nobody steers, but the tenants hold these weights throughout, in the order of the scene: what the kernel alone makes of
/// them, and a bound for what a controller can reach.
#[derive(Clone, Debug)]
pub struct FixedWeights(pub Vec<u32>);

impl Steering for FixedWeights {
    fn name(&self) -> &str {
        "fixed"
    }

    fn start(&self, context: &SteeringContext<'_>) -> Result<Box<dyn Steered>> {
        if self.0.len() != context.tenants.len() {
            let (weights, tenants) = (self.0.len(), context.tenants.len());
            return Err(LabError::BadPlan(format!("{weights} weights for {tenants} tenants: give one for each")));
        }
        let mut pairs = context.tenants.iter().zip(&self.0);
        pairs.try_for_each(|(tenant, weight)| context.parent.set_bfq_weight(&tenant.name, *weight))?;
        Ok(Box::new(Equal))
    }
}

/// The daemon steers, as a process of its own with a configuration of its own.
#[derive(Clone, Debug)]
pub struct Minervad {
    /// The program.
    pub program: PathBuf,
    /// Length of its slice.
    pub slice_ms: u64,
}

impl Steering for Minervad {
    fn name(&self) -> &str {
        "minerva"
    }

    fn start(&self, context: &SteeringContext<'_>) -> Result<Box<dyn Steered>> {
        let directory = Path::new(RUNTIME_DIRECTORY).join(format!("steering-{}", context.disk.name));
        fs::create_dir_all(&directory).at("create", &directory)?;
        let directory = Directory(directory);
        let config = directory.0.join("minervad.toml");
        fs::write(&config, self.config(context, &directory.0)).at("write", &config)?;
        let notify = directory.0.join("notify");
        let ready = UnixDatagram::bind(&notify).at("listen on", &notify)?;
        ready.set_read_timeout(Some(Duration::from_millis(100))).at("listen on", &notify)?;
        let log = directory.0.join("log");
        let errors = File::create(&log).at("create", &log)?;
        let mut command = Command::new(&self.program);
        command.arg("--config").arg(&config).env("NOTIFY_SOCKET", &notify);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        let child = command.spawn().at("start", &self.program)?;
        let mut steered = Process { program: self.program.display().to_string(), child, log, _directory: directory };
        steered.wait_until_ready(&ready)?;
        Ok(Box::new(steered))
    }
}

impl Minervad {
    /// The daemon's configuration for a scene: everything it keeps lies in `directory`, and it looks at nothing but the
    /// scene's disk and tenants. Whatever is not said here is the daemon's own default.
    fn config(&self, context: &SteeringContext<'_>, directory: &Path) -> String {
        let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
        let inside = |name: &str| quoted(&directory.join(name).to_string_lossy());
        let parent = context.parent.relative_path();
        let mut text = format!(
            "mode = \"enforce\"\n\n[observe]\nslice = \"{}ms\"\n\n[daemon]\nruntime_dir = {}\nstate_dir = {}\n\
             socket = {}\nmetrics = \"none\"\ninclude = [{}]\ndevices_only = [{}]\n",
            self.slice_ms,
            inside("runtime"),
            inside("state"),
            inside("control.sock"),
            quoted(&format!("{parent}/*")),
            quoted(&context.disk.kernel_name),
        );
        for tenant in &context.tenants {
            text += &format!(
                "\n[[rules]]\npattern = {}\nname = {}\nweight_percent = {}\n",
                quoted(&format!("{parent}/{}", tenant.name)),
                quoted(&tenant.name),
                tenant.weight_percent
            );
        }
        text
    }
}

/// A directory that goes with its owner.
#[derive(Debug)]
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        // A leftover hurts nobody: the next run of the same name writes over it.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The daemon's process. Ended by SIGTERM, so that it restores what it wrote.
#[derive(Debug)]
struct Process {
    program: String,
    child: Child,
    log: PathBuf,
    _directory: Directory,
}

impl Process {
    /// Waits for the daemon's `READY=1`, the way systemd does.
    fn wait_until_ready(&mut self, ready: &UnixDatagram) -> Result<()> {
        let start = Instant::now();
        let mut message = [0; 4096];
        while start.elapsed() < READY_PATIENCE {
            match ready.recv(&mut message) {
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

    fn failure(&self, what: &str) -> LabError {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let last: Vec<&str> = log.lines().rev().take(5).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        LabError::Controller {
            program: self.program.clone(),
            message: format!("{what}; it said:\n{}", last.join("\n")),
        }
    }
}

impl Steered for Process {
    fn check(&mut self) -> Result<()> {
        match self.child.try_wait().at("look after", &self.program)? {
            None => Ok(()),
            Some(status) => Err(self.failure(&format!("ended early ({status})"))),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The child is not reaped before this, so the number cannot be another's.
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let start = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && start.elapsed() < END_PATIENCE {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
