//! How long guests and server waited for a processor, which no disk scheduler can mend.

use crate::workload::TenantCgroup;
use minerva_model::Nanos;
use std::fs;

/// Parts of the measured time that were spent runnable and not running, all threads together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VmWaited {
    /// By guest.
    pub guests: Vec<f64>,
    /// Of the server; 0 where there is none.
    pub server: f64,
}

/// What the kernel has counted so far.
pub(super) struct Times {
    guests: Vec<u64>,
    server: u64,
}

impl Times {
    /// Of the processes in each guest's group, and of the server.
    pub(super) fn read(groups: &[TenantCgroup], server: Option<u32>) -> Self {
        let of_group = |group: &TenantCgroup| {
            let processes = fs::read_to_string(group.processes_file()).unwrap_or_default();
            processes.lines().filter_map(|line| line.parse().ok()).map(waited_ns).sum()
        };
        Self { guests: groups.iter().map(of_group).collect(), server: server.map_or(0, waited_ns) }
    }

    /// What was added since, as parts of the time that passed.
    pub(super) fn until(&self, later: &Self, passed: Nanos) -> VmWaited {
        let part = |before: u64, after: u64| after.saturating_sub(before) as f64 / passed.0.max(1) as f64;
        let guests = self.guests.iter().zip(&later.guests).map(|(before, after)| part(*before, *after)).collect();
        VmWaited { guests, server: part(self.server, later.server) }
    }
}

/// Nanoseconds on a run queue, of all threads of a process (`Documentation/scheduler/sched-stats.rst`).
fn waited_ns(process: u32) -> u64 {
    let Ok(tasks) = fs::read_dir(format!("/proc/{process}/task")) else { return 0 };
    let of_task = |task: fs::DirEntry| {
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    tasks.filter_map(Result::ok).filter_map(of_task).sum()
}
