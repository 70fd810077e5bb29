//! Who steers while a scene plays: nobody, so that all weights are equal, or a controller.

use crate::daemon::{Daemon, DaemonConfig, quoted};
use crate::disk::{DiskInfo, RUNTIME_DIRECTORY};
use crate::error::{At, LabError, Result};
use crate::workload::CgroupParent;
use std::fs;
use std::path::{Path, PathBuf};

/// Where the daemon keeps what must last, in its directory.
const STATE: &str = "state";

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

    /// Is told, in the order of the scene, how many bytes each tenant has left, fifty times a second. No controller of a real host
    /// knows that; what knows it bounds what a forecast could gain.
    fn see(&mut self, _left_bytes: &[u64]) -> Result<()> {
        Ok(())
    }

    /// Where tenants may ask, if they may.
    fn participation_socket(&self) -> Option<&Path> {
        None
    }

    /// Ends it in order. One that is dropped ends too, and keeps nothing.
    fn end(self: Box<Self>) -> Result<()> {
        Ok(())
    }
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
    /// What its file says of the disk, one key a line; nothing as a rule.
    pub disk_keys: String,
    /// Further sections of its file; nothing as a rule.
    pub sections: String,
    /// It begins with what an earlier daemon kept in this directory.
    pub recalls: Option<PathBuf>,
    /// At its end what it keeps is copied there.
    pub keeps: Option<PathBuf>,
}

impl Minervad {
    /// With its own defaults.
    pub fn new(program: PathBuf, slice_ms: u64) -> Self {
        Self { program, slice_ms, disk_keys: String::new(), sections: String::new(), recalls: None, keeps: None }
    }
}

impl Steering for Minervad {
    fn name(&self) -> &str {
        "minerva"
    }

    fn start(&self, context: &SteeringContext<'_>) -> Result<Box<dyn Steered>> {
        let directory = Path::new(RUNTIME_DIRECTORY).join(format!("steering-{}", context.disk.name));
        let directory = Directory::create(directory)?;
        let further = context.tenants.iter().map(|tenant| {
            let pattern = format!("{}/{}", context.parent.relative_path(), tenant.name);
            let (pattern, name) = (quoted(&pattern), quoted(&tenant.name));
            format!("\n[[rules]]\npattern = {pattern}\nname = {name}\nweight_percent = {}\n", tenant.weight_percent)
        });
        let disk = match self.disk_keys.as_str() {
            "" => String::new(),
            keys => format!("\n[devices.{}]\n{keys}\n", context.disk.kernel_name),
        };
        let config = DaemonConfig {
            directory: directory.path(),
            slice_ms: self.slice_ms,
            parent: context.parent,
            disk: context.disk,
            guard: true,
            further: further.chain([disk, self.sections.clone()]).collect(),
        };
        config.write()?;
        let state = directory.path().join(STATE);
        if let Some(recalls) = &self.recalls {
            copy(recalls, &state)?;
        }
        let daemon = Daemon::start(&self.program, directory.path())?;
        let participation_socket = DaemonConfig::participation_socket(directory.path());
        let keeps = self.keeps.clone().map(|to| (state, to));
        Ok(Box::new(Process { daemon: Some(daemon), participation_socket, keeps, _directory: directory }))
    }
}

/// The daemon at work, ended before its directory goes.
#[derive(Debug)]
struct Process {
    daemon: Option<Daemon>,
    participation_socket: PathBuf,
    /// What is copied at the end, and where to.
    keeps: Option<(PathBuf, PathBuf)>,
    _directory: Directory,
}

impl Steered for Process {
    fn check(&mut self) -> Result<()> {
        self.daemon.as_mut().map_or(Ok(()), Daemon::check)
    }

    fn participation_socket(&self) -> Option<&Path> {
        Some(&self.participation_socket)
    }

    fn end(mut self: Box<Self>) -> Result<()> {
        if let Some(daemon) = self.daemon.take() {
            daemon.end()?;
        }
        self.keeps.take().map_or(Ok(()), |(state, to)| copy(&state, &to))
    }
}

/// Copies the files of a directory, and what lies below it, over what is there.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).at("create", to)?;
    for entry in fs::read_dir(from).at("read", from)? {
        let entry = entry.at("read", from)?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            copy(&source, &target)?;
        } else if source.is_file() {
            fs::copy(&source, &target).at("copy", &source)?;
        }
    }
    Ok(())
}

/// A directory that goes with its owner.
#[derive(Debug)]
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn create(path: PathBuf) -> Result<Self> {
        fs::create_dir_all(&path).at("create", &path)?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // A leftover hurts nobody: the next run of the same name writes over it.
        let _ = fs::remove_dir_all(&self.0);
    }
}
