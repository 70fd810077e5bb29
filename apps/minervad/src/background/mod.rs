//! Background work in the daemon: what the operator registered is kept in the store, the engine says when each may run, and a thread
//! of its own lets it run in the gaps, which it looks for every few milliseconds.

pub(crate) mod carrier;
mod disk_of;
mod registered;
mod requests;
mod show;
mod slices;

use crate::background::carrier::Carrier;
use minerva_config::Config;
use minerva_linux_background::{Settings, WorkerProgram};
use minerva_linux_observe::Roots;
use minerva_model::{BackgroundId, BackgroundOrder, DeviceId};
use minerva_store::BackgroundRow;
use std::collections::BTreeMap;
use std::path::Path;

/// What the loop knows of background work.
pub(crate) struct Background {
    settings: Settings,
    roots: Roots,
    /// Started with the first queue.
    carrier: Option<Carrier>,
    /// The store was read.
    is_loaded: bool,
    queues: BTreeMap<BackgroundId, Queue>,
    last_id: BackgroundId,
}

/// A queue that was registered.
#[derive(Clone, Debug)]
struct Queue {
    row: BackgroundRow,
    device: Option<DeviceId>,
    /// Kept in the store as it is, when by the loop's clock.
    kept_at: minerva_model::Nanos,
}

impl Background {
    pub(crate) fn new(config: &Config, roots: &Roots) -> Self {
        let worker = WorkerProgram {
            // By the link of the kernel: after an upgrade the path holds another version.
            program: "/proc/self/exe".into(),
            name: "minervad".into(),
            arguments: vec!["background".into()],
        };
        let settings = Settings {
            runtime_dir: config.daemon.runtime_dir.clone(),
            state_dir: config.daemon.state_dir.clone(),
            cgroup_root: roots.cgroup.clone(),
            version: roots.version,
            parent: config.named.parent.clone(),
            sys: roots.sys.clone(),
            proc: roots.proc.clone(),
            worker,
        };
        Self {
            settings,
            roots: roots.clone(),
            carrier: None,
            is_loaded: false,
            queues: BTreeMap::new(),
            last_id: BackgroundId(0),
        }
    }

    /// When a queue may run from now on.
    pub(crate) fn order(&self, order: BackgroundOrder) {
        if let Some(carrier) = &self.carrier {
            carrier.order(order);
        }
    }

    fn named(&self, name: &str) -> Option<&Queue> {
        self.queues.values().find(|queue| queue.row.name == name)
    }
}

/// What a worker's process does.
pub(crate) fn work(runtime: &Path) -> anyhow::Result<()> {
    minerva_linux_background::work(runtime, Path::new("/sys")).map_err(anyhow::Error::new)
}
