//! The start: checks the settings and the host, and takes the lock. What is then opened is in `daemon`.

use crate::arguments::Arguments;
use crate::daemon::Daemon;
use crate::logging;
use crate::operator::status;
use crate::operator_file::OperatorFile;
use anyhow::{Context, bail};
use minerva_config::Config;
use minerva_linux_actuate::InstanceLock;
use minerva_linux_observe::Roots;
use minerva_model::{CgroupVersion, Mode};
use rustix::io::Errno;
use rustix::mm::{MlockAllFlags, mlockall};
use std::fmt::Write;
use std::path::Path;

/// `--check`: the file and the host, judged; nothing is changed.
pub(crate) fn check(arguments: &Arguments) -> anyhow::Result<()> {
    let file = load(arguments)?;
    for warning in &file.config.warnings {
        eprintln!("{warning}\n");
    }
    let roots = roots(&file.config)?;
    requirements(&file.config, &roots)?;
    let mode = file.config.engine.mode;
    eprintln!("good: {} mode, {}", status::mode(mode), hierarchy(&roots));
    Ok(())
}

/// Runs the daemon to its end.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let file = load(arguments)?;
    let level = logging::start(file.config.daemon.log);
    for warning in &file.config.warnings {
        tracing::warn!("{warning}");
    }
    let roots = roots(&file.config)?;
    requirements(&file.config, &roots)?;
    let lock = lock(&file.config.daemon.runtime_dir)?;
    stay_in_memory();
    let (mode, hierarchy) = (status::mode(file.config.engine.mode), hierarchy(&roots));
    let daemon = Daemon::start(file, roots, &lock, level, arguments.slices)?;
    tracing::info!(version = env!("CARGO_PKG_VERSION"), mode, hierarchy, "started");
    let result = daemon.run();
    // Held to the very end: the next daemon starts when this one has put everything back.
    drop(lock);
    result
}

fn load(arguments: &Arguments) -> anyhow::Result<OperatorFile> {
    OperatorFile::load(arguments.config.as_deref(), arguments.mode.map(Mode::from)).map_err(anyhow::Error::new)
}

/// Where this host keeps its trees; the operator's word on the hierarchy wins.
fn roots(config: &Config) -> anyhow::Result<Roots> {
    let roots = Roots::detect().context("failed to find the host's hierarchies")?;
    Ok(match &config.daemon.cgroup_root {
        Some(root) => roots.with_cgroup_root(root),
        None => roots,
    })
}

fn hierarchy(roots: &Roots) -> String {
    match roots.version {
        CgroupVersion::V1 => format!("cgroup v1 (blkio) at {}", roots.cgroup.display()),
        CgroupVersion::V2 => format!("cgroup v2 at {}", roots.cgroup.display()),
        CgroupVersion::Absent => {
            "no disk controller in cgroup v1 or v2: disks are watched, nobody can be steered".to_owned()
        }
    }
}

/// Says all that is missing to do what the file asks, at once.
fn requirements(config: &Config, roots: &Roots) -> anyhow::Result<()> {
    let mut missing = String::new();
    if config.engine.mode == Mode::Enforce
        && let Some(why) = why_not_steered(config, roots)
    {
        // Writing into a string cannot fail; the same holds below.
        let _ = write!(missing, "\n- {why}");
    }
    for directory in [&config.daemon.runtime_dir, &config.daemon.state_dir] {
        if let Some(why) = why_not_written(directory) {
            let _ = write!(missing, "\n- {why}");
        }
    }
    let groups = minerva_operator_server::listen::check(&config.daemon);
    let certificates = minerva_tenant_server::listen::check(&config.participation).map_err(anyhow::Error::new);
    for error in [groups, certificates].into_iter().filter_map(Result::err) {
        let _ = write!(missing, "\n- {error:#}");
    }
    if missing.is_empty() {
        return Ok(());
    }
    bail!("cannot do what the settings ask:{missing}")
}

/// What keeps the hierarchy from being written, and what to do about it.
fn why_not_steered(config: &Config, roots: &Roots) -> Option<String> {
    let shown = roots.cgroup.display();
    if roots.version == CgroupVersion::Absent {
        return Some(match &config.daemon.cgroup_root {
            Some(root) if !root.exists() => {
                format!("{shown}, the daemon.cgroup_root, is not there: mend it, or leave it out to have it found")
            }
            Some(_) => format!(
                "{shown}, the daemon.cgroup_root, has neither the io controller (v2) nor the blkio controller (v1): name the \
                 root of the hierarchy that has it, or leave it out to have it found"
            ),
            None => "the io (v2) or blkio (v1) controller is not mounted; `minerva-ctl doctor` says more".to_owned(),
        });
    }
    // A file, because the kernel makes the root's directory read-only and its files writable.
    match rustix::fs::access(roots.cgroup.join("cgroup.procs"), rustix::fs::Access::WRITE_OK) {
        Ok(()) => None,
        Err(Errno::NOENT) => {
            Some(format!("{shown} has no cgroup.procs, so it is no cgroup: mend daemon.cgroup_root, or leave it out"))
        }
        Err(Errno::ROFS) => Some(format!(
            "{shown} is mounted read-only here: a container, or ProtectControlGroups= in the unit, hides the real one"
        )),
        Err(_) => Some(format!("{shown} cannot be written: run as root, and without ProtectControlGroups=")),
    }
}

/// What keeps the directory from being written, or made in the nearest one above that is there, and what to do about it.
fn why_not_written(directory: &Path) -> Option<String> {
    let shown = directory.display();
    let there = directory.ancestors().find(|path| path.exists());
    match there.map_or(Err(Errno::NOENT), |path| rustix::fs::access(path, rustix::fs::Access::WRITE_OK)) {
        Ok(()) => None,
        // `ProtectSystem=strict` leaves the unit only what it names.
        Err(Errno::ROFS) => Some(format!(
            "{shown} is read-only here: under the unit add ReadWritePaths={shown} (systemctl edit minervad), after making the \
             directory; or name another in [daemon]"
        )),
        Err(_) => Some(format!("{shown} cannot be written: run as root, or name another in [daemon]")),
    }
}

fn lock(runtime_dir: &Path) -> anyhow::Result<InstanceLock> {
    if let Some(parent) = runtime_dir.parent() {
        std::fs::create_dir_all(parent).with_context(|| format!("failed to make {}", parent.display()))?;
    }
    InstanceLock::acquire(runtime_dir).context("failed to start")
}

/// A daemon that waits for its own pages cannot steer the disk they are on. Pages are locked as they are used, so that this does
/// not load the whole program.
fn stay_in_memory() {
    let flags = MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT;
    if let Err(error) = mlockall(flags) {
        tracing::info!(%error, "memory is not locked (CAP_IPC_LOCK), so the daemon may be slow when memory is short, ignoring");
    }
}
