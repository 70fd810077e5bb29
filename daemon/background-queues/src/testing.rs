//! Queues for tests.

use crate::Queues;
use minerva_linux_background::{Settings, WorkerProgram};
use minerva_linux_observe::Roots;
use minerva_model::CgroupVersion;
use std::path::Path;

/// Without a thread, which nobody asks for.
pub(crate) fn queues() -> Queues {
    queues_in(Path::new("/nonexistent"))
}

pub(crate) fn queues_in(root: &Path) -> Queues {
    let worker =
        WorkerProgram { program: "true".into(), name: "true".into(), arguments: Vec::new(), service_starter: None };
    let settings = Settings {
        runtime_dir: root.join("run"),
        state_dir: root.join("state"),
        cgroup_root: root.join("cgroup"),
        version: CgroupVersion::V2,
        parent: "minerva".to_owned(),
        sys: root.join("sys"),
        proc: root.join("proc"),
        worker,
    };
    let Settings { cgroup_root: cgroup, version, proc, sys, .. } = settings.clone();
    Queues::new(settings, Roots { cgroup, version, proc, sys })
}
