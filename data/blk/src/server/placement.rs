//! Threads that run on given processors only.

use crate::error::ServerError;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

const WHAT: &str = "choose the processors of a disk's threads";

/// Starts threads that run on these processors, or anywhere if there are none: a thread inherits where the one may run that starts it.
pub(super) fn start_on<T>(cpus: &[u16], start: impl FnOnce() -> Result<T, ServerError>) -> Result<T, ServerError> {
    if cpus.is_empty() {
        return start();
    }
    let before = sched_getaffinity(None).map_err(ServerError::system(WHAT))?;
    let mut wanted = CpuSet::new();
    cpus.iter().map(|cpu| usize::from(*cpu)).filter(|cpu| *cpu < CpuSet::MAX_CPU).for_each(|cpu| wanted.set(cpu));
    sched_setaffinity(None, &wanted).map_err(ServerError::system(WHAT))?;
    let started = start();
    sched_setaffinity(None, &before).map_err(ServerError::system(WHAT))?;
    started
}
