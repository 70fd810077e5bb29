//! Stopping all work at the end of a daemon. First all of it begins to stop, then whoever does that may do what is more urgent, and then all of
//! it is waited for, no longer than to one deadline: some calls into the kernel end when the kernel is done, and nobody can hurry them.

use crate::directories::read;
use crate::error::WorkError;
use crate::left_behind::{ArrayLeft, put_arrays_back};
use crate::run::Run;
use crate::scrub_speed;
use crate::spec::Spec;
use crate::worker::Assignment;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long is waited in all, after the beginning.
const STOP_MAX: Duration = Duration::from_secs(10);

/// Work that begins to stop.
#[derive(Debug)]
#[must_use = "whether it has stopped is known only to who waits"]
pub struct Stopping {
    runs: Vec<Run>,
    failed: Vec<WorkError>,
    deadline: Instant,
}

/// Stops the work of a daemon that is gone, so that none goes on without anybody who looks for others: for its guard. This waits for nothing.
pub fn stop_all(runtime_dir: &Path, sys: &Path) -> Stopping {
    stop_all_but(runtime_dir, sys, &[])
}

/// The same for who puts back what the daemon did, with the arrays whose speeds that were. A check is ended.
pub fn put_arrays_back_and_stop_all(runtime_dir: &Path, sys: &Path) -> (Vec<ArrayLeft>, Stopping) {
    // First, for stopping puts speeds back too, and then nobody would be told.
    let mut arrays = put_arrays_back(runtime_dir, sys);
    let stopping = stop_all_but(runtime_dir, sys, &arrays);
    // A check that was not slowed is slowed by that, as the next daemon would have it.
    let slowed = put_arrays_back(runtime_dir, sys);
    let is_new = |array: &ArrayLeft| arrays.iter().all(|known| known.path != array.path);
    let slowed: Vec<ArrayLeft> = slowed.into_iter().filter(is_new).collect();
    arrays.extend(slowed);
    (arrays, stopping)
}

/// Except on arrays whose speeds were put back just now.
fn stop_all_but(runtime_dir: &Path, sys: &Path, put_back: &[ArrayLeft]) -> Stopping {
    let queues = fs::read_dir(runtime_dir.join("background")).into_iter().flatten().flatten();
    let assignments = queues.filter_map(|queue| read::<Assignment>(&queue.path().join("spec")));
    let is_put_back = |spec: &Spec| spec.kind.is_of_array() && put_back.iter().any(|array| array.path == spec.path);
    let (living, gone): (Vec<Assignment>, Vec<Assignment>) =
        assignments.partition(|assignment| assignment.place.is_alive());
    let living = living.into_iter().filter(|assignment| !is_put_back(&assignment.spec));
    let mut stopping = Stopping::begin(living.map(|Assignment { spec, place }| Run::left(spec, place)), sys);
    // Of a scrub whose worker is gone too. That of one that lives was put back when it was stopped.
    let not_put_back = gone.iter().filter_map(|Assignment { place, .. }| scrub_speed::put_back(&place.runtime).err());
    stopping.failed.extend(not_put_back);
    stopping
}

impl Stopping {
    /// Begins to stop these.
    pub(crate) fn begin(runs: impl Iterator<Item = Run>, sys: &Path) -> Self {
        let (mut runs, deadline) = (runs.collect::<Vec<Run>>(), Instant::now() + STOP_MAX);
        let failed = runs.iter_mut().flat_map(|run| run.leave(sys)).collect();
        Self { runs, failed, deadline }
    }

    /// The deadline has passed.
    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= self.deadline
    }

    /// Waits until all has stopped, or until the deadline. What could not be stopped, or not in time, if anything.
    pub fn wait(self) -> Vec<WorkError> {
        let deadline = self.deadline;
        self.wait_until(deadline)
    }

    pub(crate) fn wait_until(mut self, deadline: Instant) -> Vec<WorkError> {
        let late = self.runs.iter_mut().filter_map(|run| run.wait_until(deadline).err());
        self.failed.extend(late);
        self.failed
    }
}
