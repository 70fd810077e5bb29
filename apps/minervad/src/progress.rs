//! How far the slice loop has come.

use crate::clock::{boottime, unix_ns};
use minerva_model::Nanos;

/// Counts slices.
#[derive(Debug)]
pub(crate) struct Progress {
    started: Nanos,
    /// Slices that have ended.
    pub(crate) slices: u64,
    /// What the latest one took.
    pub(crate) cost: Nanos,
    /// When it was, by the wall clock.
    pub(crate) unix_ns: i64,
    /// The loop ends after this many.
    slices_max: Option<u64>,
}

impl Progress {
    /// Nothing yet.
    pub(crate) fn new(slices_max: Option<u64>) -> Self {
        Self { started: boottime(), slices: 0, cost: Nanos::ZERO, unix_ns: 0, slices_max }
    }

    /// One slice more.
    pub(crate) fn count(&mut self) {
        self.slices += 1;
        self.unix_ns = unix_ns();
    }

    /// Whether the slices that were asked for are over.
    pub(crate) fn is_over(&self) -> bool {
        self.slices_max.is_some_and(|most| self.slices >= most)
    }

    /// Since the start.
    pub(crate) fn uptime(&self) -> Nanos {
        boottime().since(self.started)
    }
}
