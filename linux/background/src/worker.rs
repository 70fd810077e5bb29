//! What a worker was given to do, and what it says of it.

use crate::directories::{Progress, QueueDirectories, replace};
use crate::error::plain;
use crate::spec::{Found, Spec};
use minerva_model::Nanos;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

/// Entries that are looked at between two words on progress.
const LOOKS_A_WORD: u64 = 64;

/// What a worker is started with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Assignment {
    /// What to do.
    pub(crate) spec: Spec,
    /// Where.
    pub(crate) place: QueueDirectories,
}

/// A worker at work.
#[derive(Debug)]
pub(crate) struct Worker {
    assignment: Assignment,
    /// Bytes, as bits of a float.
    tied: AtomicU64,
    freed: AtomicU64,
    looked: AtomicU64,
    message: String,
}

impl Worker {
    pub(crate) const fn new(assignment: Assignment) -> Self {
        let [tied, freed, looked] = [const { AtomicU64::new(0) }; 3];
        Self { assignment, tied, freed, looked, message: String::new() }
    }

    pub(crate) const fn assignment(&self) -> &Assignment {
        &self.assignment
    }

    /// See [`Worker::say`].
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Bytes that were given back.
    pub(crate) fn freed_bytes(&self) -> u64 {
        self.freed.load(Ordering::Relaxed)
    }

    pub(crate) fn spec(&self) -> &Spec {
        &self.assignment.spec
    }

    /// Says how far it is. What cannot be written is said next time.
    pub(crate) fn progress(&self, done: f64, total: Option<f64>, position: u64) {
        self.progress_with(done, total, position, self.spec().found);
    }

    /// The same, with what was found up to there.
    pub(crate) fn progress_with(&self, done: f64, total: Option<f64>, position: u64, found: Found) {
        let tied_bytes = f64::from_bits(self.tied.load(Ordering::Relaxed));
        let used = clock_gettime(ClockId::ProcessCPUTime);
        let worker = Nanos(used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64);
        let looked = self.looked.load(Ordering::Relaxed);
        let progress = Progress { done, total, tied_bytes, looked, position, found, worker };
        let _ = replace(&self.assignment.place.runtime.join("progress"), &progress, false);
    }

    /// One more entry was looked at, of a tree of which this worker has done nothing yet; says so now and then. Else the daemon would take
    /// what counts for long for what hangs.
    pub(crate) fn looked(&self, total: Option<f64>) {
        let looked = self.looked.fetch_add(1, Ordering::Relaxed) + 1;
        if looked.is_multiple_of(LOOKS_A_WORD) {
            self.progress(self.spec().position as f64, total, self.spec().position);
        }
    }

    /// So many bytes are tied by what is left.
    pub(crate) fn ties(&self, bytes: f64) {
        self.tied.store(bytes.to_bits(), Ordering::Relaxed);
    }

    /// So many bytes were given back.
    pub(crate) fn freed(&self, bytes: u64) {
        self.freed.fetch_add(bytes, Ordering::Relaxed);
    }

    /// What people are to be told at the end.
    pub(crate) fn say(&mut self, message: &str) {
        self.message = plain(message);
    }

    /// A call into the kernel begins now. Whoever stopped this worker since the call before cancelled nothing, and if this one is cancelled
    /// it may be by somebody else. The daemon says so only once this process can begin no call, so that of one that it cancels nothing is lost.
    pub(crate) fn begins_call(&self) {
        self.was_stopped();
    }

    /// The daemon cancelled the call into the kernel to stop it; true once for each time.
    pub(crate) fn was_stopped(&self) -> bool {
        fs::remove_file(self.assignment.place.runtime.join("stopped")).is_ok()
    }
}

#[cfg(test)]
impl Worker {
    /// Of work that is asked for now, with directories below `root`.
    pub(crate) fn of(root: &std::path::Path, kind: crate::Kind, path: &std::path::Path) -> Self {
        use crate::directories::Groups;
        use minerva_model::BackgroundId;
        let id = BackgroundId(1);
        let groups = Groups { io: root.join("io"), freezer: root.join("freezer"), processors: None };
        let place = QueueDirectories::of(&root.join("run"), &root.join("state"), id, groups);
        place.make().unwrap();
        let spec = Spec {
            id,
            name: "test".to_owned(),
            kind,
            path: path.to_owned(),
            identity: kind.identity(path, &root.join("sys")).unwrap(),
            command: Vec::new(),
            never_stop: false,
            position: 0,
            found: Found::default(),
            used_percent_max: 50,
        };
        Self::new(Assignment { spec, place })
    }

    pub(crate) fn spec_mut(&mut self) -> &mut Spec {
        &mut self.assignment.spec
    }
}
