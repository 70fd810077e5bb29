//! The parts of the daemon, opened in order: knobs, listeners, memory, servers, and the slice loop that has them all.

use crate::command::{Command, Commands};
use crate::findings::Findings;
use crate::jobs::Jobs;
use crate::knobs::Knobs;
use crate::logging::LevelSwitch;
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
use crate::{background, guard, signals};
use anyhow::Context;
use minerva_config::Config;
use minerva_engine::Engine;
use minerva_linux_actuate::{InstanceLock, Writer, WriterSettings, sweep_probes};
use minerva_linux_observe::Roots;
use minerva_operator_server::call::QUEUE_LENGTH;
use minerva_operator_server::listen::OperatorListeners;
use minerva_operator_server::server::Server;
use minerva_operator_server::service::{Service, Slices, WATCH_QUEUE_LENGTH};
use minerva_served_disks::{ServedMetrics, Servers};
use minerva_store_thread::{Memory, MemorySettings};
use minerva_tenant_server::listen::TenantListeners;
use minerva_tenant_server::live_settings::LiveSettings;
use minerva_tenant_server::refusals::Refusals;
use minerva_tenant_server::server::TenantServer;
use minerva_tenant_server::shared::Shared;
use prometheus_client::registry::Registry;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

/// The slice loop, ready to run, and the servers that bring it commands.
pub(crate) struct Daemon {
    driver: Driver,
    commands: Receiver<Command>,
    operators: Server,
    tenants: TenantServer,
}

/// Commands for the loop: where they are given, and where it takes them.
fn commands(metrics: &Metrics) -> (Commands, Receiver<Command>) {
    let (sender, commands) = sync_channel(QUEUE_LENGTH);
    (Commands::new(sender, metrics.commands_waiting.clone()), commands)
}

impl Daemon {
    /// Puts back what an earlier daemon left, opens everything and begins to serve. `slices`: to end after so many.
    pub(crate) fn start(
        file: OperatorFile,
        roots: Roots,
        lock: &InstanceLock,
        level: LevelSwitch,
        slices: Option<u64>,
    ) -> anyhow::Result<Self> {
        let config = file.config.clone();
        let settings = guard::writer_settings(&config, &roots);
        let knobs = open_knobs(&config, &roots, &settings, lock)?;
        let (metrics, served, registry) = registered_metrics(&config);
        let operator_listeners = OperatorListeners::open(&config.daemon)?;
        let tenant_listeners = TenantListeners::open(&config.participation)?;
        let (sender, commands) = commands(&metrics);
        let memory = remember(&config, &metrics, sender.clone())?;
        let slice = config.engine.observe.slice;
        let live_settings = LiveSettings::new(&config.participation, slice, tenant_listeners.tls());
        let parts = Parts::new(Refusals::new(metrics.refusals_dropped.clone()), live_settings);
        let shared = share(&roots, &parts, &sender);
        let watched_slices = tokio::sync::broadcast::Sender::new(WATCH_QUEUE_LENGTH);
        let service = service(&sender, &watched_slices, &memory, &metrics);
        let background = background::queues(&config, &roots);
        signals::listen(sender.clone())?;
        let operators = Server::start(operator_listeners, service, registry)?;
        let tenants = TenantServer::start(tenant_listeners, shared)?;
        let driver = Driver {
            watch: Watch::begin(&config, &settings, roots)?,
            engine: Engine::new(),
            knobs,
            memory,
            background,
            jobs: Jobs::default(),
            commands: sender,
            metrics,
            manager: ServiceManager::from_environment(),
            level,
            slices: watched_slices,
            parts,
            together: Together::default(),
            recording: Recording::default(),
            tenants: BTreeMap::new(),
            devices: BTreeMap::new(),
            foreseen: Foreseen::default(),
            servers: Servers::new(config.daemon.runtime_dir, served),
            findings: Findings::default(),
            progress: Progress::new(slices),
            file,
        };
        Ok(Self { driver, commands, operators, tenants })
    }

    /// Runs until told to stop, then puts everything back and ends the servers.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let Self { driver, commands, operators, tenants } = self;
        driver.manager.ready("steering");
        let result = driver.run(&commands);
        tenants.stop();
        operators.stop();
        result
    }
}

fn registered_metrics(config: &Config) -> (Metrics, ServedMetrics, Registry) {
    let (metrics, mut registry) = Metrics::new(status::mode(config.engine.mode));
    let served = ServedMetrics::default();
    served.register(&mut registry);
    (metrics, served, registry)
}

/// Everything is put back that an earlier daemon did not; from then on a guard watches over what this one writes.
fn open_knobs(config: &Config, roots: &Roots, settings: &WriterSettings, lock: &InstanceLock) -> anyhow::Result<Knobs> {
    let (writer, left) = Writer::open(settings, lock).context("failed to open the journal of knobs")?;
    if !left.is_empty() {
        tracing::warn!("an earlier daemon ended without putting everything back; done now:\n{left}");
    }
    let probes = sweep_probes(settings);
    for path in &probes.removed {
        tracing::info!("{} of a killed `minerva-ctl doctor --probe` was removed", path.display());
    }
    for left in &probes.left {
        let path = left.path.display();
        tracing::warn!("not all could be put back of the killed `minerva-ctl doctor` of {path}: {}", left.error);
    }
    let guard = if config.daemon.guard { Some(guard::spawn(config, roots)?) } else { None };
    Ok(Knobs::new(writer, settings, guard))
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

/// What the server for operators answers from.
fn service(commands: &Commands, slices: &Slices, memory: &Memory, metrics: &Metrics) -> Service {
    let calls = Arc::new(commands.clone());
    Service::new(calls, slices.clone(), memory.questions(), metrics.client_slices_dropped.clone())
}

/// What the server for tenants shares with the slice loop.
fn share(roots: &Roots, parts: &Parts, commands: &Commands) -> Shared {
    Shared::new(
        Arc::new(commands.clone()),
        parts.directory.clone(),
        parts.refusals.clone(),
        roots.clone(),
        &parts.live_settings,
    )
}
