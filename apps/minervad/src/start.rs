//! The start: judge the file, look at the host, take the lock, open everything, say that it is ready.

use crate::arguments::Arguments;
use crate::command::{Command, Commands};
use crate::findings::Findings;
use crate::jobs::Jobs;
use crate::knobs::Knobs;
use crate::metrics::Metrics;
use crate::notify::ServiceManager;
use crate::operator::foreseen::Foreseen;
use crate::operator::status;
use crate::operator_file::OperatorFile;
use crate::progress::Progress;
use crate::recording::Recording;
use crate::slice_loop::Driver;
use crate::tenants::pending::Parts;
use crate::tenants::together::Together;
use crate::watch::Watch;
use crate::{background, guard, logging, signals};
use anyhow::{Context, bail};
use minerva_config::Config;
use minerva_engine::Engine;
use minerva_linux_actuate::{InstanceLock, Writer, sweep_probes};
use minerva_linux_observe::Roots;
use minerva_model::{CgroupVersion, Mode};
use minerva_operator_server::call::QUEUE_LENGTH;
use minerva_operator_server::listen::OperatorListeners;
use minerva_operator_server::server::Server;
use minerva_operator_server::service::{Service, WATCH_QUEUE_LENGTH};
use minerva_served_disks::{ServedMetrics, Servers};
use minerva_store_thread::{Memory, MemorySettings};
use minerva_tenant_server::listen::TenantListeners;
use minerva_tenant_server::live_settings::LiveSettings;
use minerva_tenant_server::refusals::Refusals;
use minerva_tenant_server::server::TenantServer;
use minerva_tenant_server::shared::Shared;
use rustix::io::Errno;
use rustix::mm::{MlockAllFlags, mlockall};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

/// `--check`: the file and the host, judged; nothing is changed.
pub(crate) fn check(arguments: &Arguments) -> anyhow::Result<()> {
    let file = load(arguments)?;
    for warning in &file.config.warnings {
        eprintln!("{warning}\n");
    }
    let roots = roots(&file.config)?;
    privileges(&file.config, &roots)?;
    let mode = file.config.engine.mode;
    eprintln!("good: {} mode, {}", status::mode(mode), hierarchy(&roots));
    Ok(())
}

/// Runs the daemon to its end.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let file = load(arguments)?;
    let config = file.config.clone();
    let level = logging::start(config.daemon.log);
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    let roots = roots(&config)?;
    privileges(&config, &roots)?;
    let lock = lock(&config.daemon.runtime_dir)?;
    stay_in_memory();
    let settings = guard::writer_settings(&config, &roots);
    let (writer, left) = Writer::open(&settings, &lock).context("failed to open the journal of knobs")?;
    if !left.is_empty() {
        tracing::warn!("an earlier daemon ended without putting everything back; done now:\n{left}");
    }
    for path in sweep_probes(&settings) {
        tracing::info!("{} of a killed `minerva-ctl doctor --probe` was removed", path.display());
    }
    let guard = if config.daemon.guard { Some(guard::spawn(&config, &roots)?) } else { None };
    let mode = config.engine.mode;
    let (metrics, mut registry) = Metrics::new(status::mode(mode));
    let served = ServedMetrics::default();
    served.register(&mut registry);
    let listeners = OperatorListeners::open(&config.daemon)?;
    let tenant_listeners = TenantListeners::open(&config.participation)?;
    let (sender, commands) = sync_channel(QUEUE_LENGTH);
    let sender = Commands::new(sender, metrics.commands_waiting.clone());
    let memory = remember(&config, &metrics, sender.clone())?;
    let slices = tokio::sync::broadcast::Sender::new(WATCH_QUEUE_LENGTH);
    let service = Service {
        calls: Arc::new(sender.clone()),
        slices: slices.clone(),
        questions: memory.questions(),
        dropped: metrics.client_slices_dropped.clone(),
    };
    let live_settings = LiveSettings::new(&config.participation, tenant_listeners.tls());
    let parts = Parts::new(Refusals::new(metrics.refusals_dropped.clone()), live_settings);
    let shared = Shared::new(
        Arc::new(sender.clone()),
        parts.directory.clone(),
        parts.refusals.clone(),
        roots.clone(),
        &parts.live_settings,
        config.engine.observe.slice,
    );
    let background = background::queues(&config, &roots);
    signals::listen(sender.clone())?;
    let server = Server::start(listeners, service, registry)?;
    let tenant_server = TenantServer::start(tenant_listeners, shared)?;
    let place = hierarchy(&roots);
    let manager = ServiceManager::from_environment();
    let driver = Driver {
        watch: Watch::begin(&config, &settings, roots)?,
        engine: Engine::new(),
        knobs: Knobs::new(writer, &settings, guard),
        memory,
        background,
        jobs: Jobs::default(),
        commands: sender,
        metrics,
        manager,
        level,
        slices,
        parts,
        together: Together::default(),
        recording: Recording::default(),
        tenants: BTreeMap::new(),
        devices: BTreeMap::new(),
        foreseen: Foreseen::default(),
        servers: Servers::new(config.daemon.runtime_dir.clone(), served),
        findings: Findings::default(),
        progress: Progress::new(arguments.slices),
        file,
    };
    tracing::info!(version = env!("CARGO_PKG_VERSION"), mode = status::mode(mode), hierarchy = place, "started");
    driver.manager.ready("steering");
    let result = driver.run(&commands);
    tenant_server.stop();
    server.stop();
    // Held to the very end: the next daemon starts when this one has put everything back.
    drop(lock);
    result
}

/// What was remembered, and the thread that goes on.
fn remember(config: &Config, metrics: &Metrics, commands: Commands) -> anyhow::Result<Memory> {
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let settings = MemorySettings {
        state_dir: config.daemon.state_dir.clone(),
        boot_id: boot_id.trim().to_owned(),
        ledger_keep: config.participation.ledger_keep,
    };
    let wake = Box::new(move || {
        // A full queue means that the loop is awake.
        let _ = commands.send(Command::StoreAnswered);
    });
    Ok(Memory::start(settings, metrics.store.clone(), wake)?)
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
fn privileges(config: &Config, roots: &Roots) -> anyhow::Result<()> {
    let mut missing = String::new();
    if config.engine.mode == Mode::Enforce
        && let Some(why) = why_not_steered(config, roots)
    {
        // Writing into a string cannot fail; the same holds below.
        let _ = write!(missing, "\n- {why}");
    }
    for directory in [&config.daemon.runtime_dir, &config.daemon.state_dir] {
        if !can_be_made(directory) {
            let shown = directory.display();
            let _ = write!(missing, "\n- {shown} cannot be written: run as root, or name another in [daemon]");
        }
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

/// The directory can be written, or made in the nearest one above that is there.
fn can_be_made(directory: &Path) -> bool {
    let there = directory.ancestors().find(|path| path.exists());
    there.is_some_and(|path| rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok())
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
