//! When processes started, for levels that are bound to one. A process can let whoever asks that wait for ever, so that threads of their own
//! ask, a tenant waits so long for its answer, and those that do not come back count for whoever runs the tenant's processes until they do.

use crate::authenticate::process::{LiveProcess, ProcessHandle};
use crate::status::Denial;
use minerva_linux_observe::{AsideThreads, Roots};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// A process that is not held up takes microseconds.
const PATIENCE: Duration = Duration::from_secs(1);
/// Threads that ask for one maker's processes.
const THREADS_PER_MAKER: usize = 4;
/// And for all.
const THREADS_MAX: usize = 64;

/// By maker ([`minerva_model::Tenant::maker`]), the threads that ask for it.
type Counts = Arc<Mutex<BTreeMap<String, usize>>>;

/// See the file's documentation.
#[derive(Debug)]
pub(crate) struct Starts {
    threads: AsideThreads,
    counts: Counts,
}

impl Default for Starts {
    fn default() -> Self {
        Self { threads: AsideThreads::new(THREADS_MAX), counts: Counts::default() }
    }
}

impl Starts {
    /// The process with the moment of its start.
    pub(crate) async fn bind(&self, maker: &str, process: LiveProcess, roots: &Roots) -> Result<ProcessHandle, Denial> {
        let pid = process.pid;
        let Some(slot) = Slot::take(&self.counts, maker) else { return Err(Denial::held_up(pid)) };
        let (tell, told) = oneshot::channel();
        let roots = roots.clone();
        let look = move || {
            let start_ticks = roots.start_ticks_of(pid);
            drop(slot);
            // Whoever asked may have gone.
            let _ = tell.send(start_ticks);
        };
        let begun = self.threads.start(look).is_ok();
        match tokio::time::timeout(PATIENCE, told).await {
            Ok(Ok(start_ticks)) if begun => Ok(process.started(start_ticks)?),
            _ => Err(Denial::held_up(pid)),
        }
    }
}

/// One thread of a maker's.
#[derive(Debug)]
struct Slot {
    counts: Counts,
    maker: String,
}

impl Slot {
    fn take(counts: &Counts, maker: &str) -> Option<Self> {
        let mut by_maker = counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = by_maker.entry(maker.to_owned()).or_default();
        if *count >= THREADS_PER_MAKER {
            return None;
        }
        *count += 1;
        Some(Self { counts: Arc::clone(counts), maker: maker.to_owned() })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut by_maker = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = by_maker.get_mut(&self.maker) {
            *count -= 1;
            if *count == 0 {
                by_maker.remove(&self.maker);
            }
        }
    }
}
