//! What the daemon remembers, kept off the slice loop: a thread of its own writes to the store, because the disk under it may be
//! the very one that is overloaded. Steering goes on whatever the store says.
//!
//! Histories that could not be written are kept and merged, one a tenant and disk, so nothing is lost while the store fails;
//! audit rows are kept up to a bound and then given up and counted.

use crate::metrics::Metrics;
use anyhow::Context;
use minerva_model::{DeviceId, TenantHistory};
use minerva_store::{AuditLimits, AuditRow, Store, StoreError, StoreNote, system_clock};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Batches and questions that may wait for the store.
const QUEUE_LENGTH: usize = 16;
/// Audit rows that are kept while the store fails: some minutes of a busy host, some 30 MB.
const AUDIT_ROWS_MAX: usize = 50_000;
/// How often a store that could not be opened is tried again.
const REOPEN_PERIOD: Duration = Duration::from_secs(10);
/// How often old rows are deleted.
const PRUNE_PERIOD: Duration = Duration::from_secs(60);

/// Rows of one slice, or of several while the store fails.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    histories: BTreeMap<(String, DeviceId), TenantHistory>,
    audit: Vec<AuditRow>,
}

impl Batch {
    fn is_empty(&self) -> bool {
        self.histories.is_empty() && self.audit.is_empty()
    }

    /// Adds what is newer; the answer is how many audit rows were given up.
    fn merge(&mut self, newer: Self) -> u64 {
        self.histories.extend(newer.histories);
        self.audit.extend(newer.audit);
        let excess = self.audit.len().saturating_sub(AUDIT_ROWS_MAX);
        self.audit.drain(..excess);
        excess as u64
    }
}

/// What the thread is asked to do.
#[derive(Debug)]
enum Job {
    Keep(Batch),
    Explain { tenant: String, at_unix_ms: Option<i64>, answer: oneshot::Sender<Result<Vec<AuditRow>, String>> },
    End,
}

/// Asks the store's thread from other threads.
#[derive(Clone, Debug)]
pub(crate) struct Questions(SyncSender<Job>);

impl Questions {
    /// The decisions in force for a tenant at an instant.
    pub(crate) async fn explain(&self, tenant: &str, at_unix_ms: Option<i64>) -> Result<Vec<AuditRow>, String> {
        let (answer, answered) = oneshot::channel();
        let job = Job::Explain { tenant: tenant.to_owned(), at_unix_ms, answer };
        self.0.try_send(job).map_err(|_| "the store is too slow to answer now, ask again in a second".to_owned())?;
        answered.await.map_err(|_| "the daemon is stopping".to_owned())?
    }
}

/// The loop's end of the store.
pub(crate) struct Memory {
    queue: SyncSender<Job>,
    pending: Batch,
    /// A second connection: SQLite's log lets it read while the thread writes, so that a recall never waits for a sync.
    /// Where the store did not open at the start there is none, and the past is recalled by the next start: opening checks
    /// the whole file, for which the loop cannot wait.
    reader: Option<Store>,
    health: Arc<Mutex<String>>,
    thread: JoinHandle<()>,
    metrics: Metrics,
}

impl Memory {
    /// Opens the store in `state_dir` and starts its thread. A store that does not open is reported and tried again.
    pub(crate) fn start(state_dir: &Path, metrics: &Metrics) -> anyhow::Result<Self> {
        let health = Arc::new(Mutex::new(String::new()));
        let (queue, jobs) = sync_channel(QUEUE_LENGTH);
        let path = state_dir.join("minerva.db");
        let mut keeper = Keeper {
            store: None,
            opened_last: None,
            path,
            held: Batch::default(),
            health: Arc::clone(&health),
            metrics: metrics.clone(),
            pruned_last: Instant::now(),
        };
        keeper.open();
        // Only where the thread has a store is there something to recall.
        let reader = keeper.store.as_ref().and_then(|_| open(&keeper.path).ok()).map(|(store, _)| store);
        let thread = std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || keeper.run(&jobs))
            .context("failed to start the store's thread")?;
        Ok(Self { queue, pending: Batch::default(), reader, health, thread, metrics: metrics.clone() })
    }

    /// For others to ask.
    pub(crate) fn questions(&self) -> Questions {
        Questions(self.queue.clone())
    }

    /// What is remembered of a tenant; what cannot be read is as if it had never been.
    pub(crate) fn recall(&self, key: &str) -> Vec<TenantHistory> {
        let recalled = self.reader.as_ref().map_or(Ok(Vec::new()), |store| store.recall(key));
        recalled.unwrap_or_else(|error| {
            tracing::warn!(error = in_full(&error), key, "no history for this tenant, ignoring");
            Vec::new()
        })
    }

    /// To be kept with the next [`Memory::flush`].
    pub(crate) fn remember(&mut self, history: TenantHistory) {
        self.pending.histories.insert((history.key.clone(), history.device), history);
    }

    /// What is still to be kept.
    pub(crate) const fn pending(&self) -> &BTreeMap<(String, DeviceId), TenantHistory> {
        &self.pending.histories
    }

    /// To be kept with the next [`Memory::flush`].
    pub(crate) fn audit(&mut self, row: AuditRow) {
        self.pending.audit.push(row);
    }

    /// Hands this slice's rows to the thread. When the thread is behind they wait here for the next slice.
    pub(crate) fn flush(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        match self.queue.try_send(Job::Keep(std::mem::take(&mut self.pending))) {
            Ok(()) => {}
            Err(TrySendError::Full(Job::Keep(batch)) | TrySendError::Disconnected(Job::Keep(batch))) => {
                self.metrics.store_rows_dropped.inc_by(self.pending.merge(batch));
            }
            Err(_) => {}
        }
    }

    /// What the store said when it last failed; empty while it works.
    pub(crate) fn error(&self) -> String {
        self.health.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Hands over the last rows and waits until they are kept, or the store has refused them.
    pub(crate) fn close(mut self) {
        let last = std::mem::take(&mut self.pending);
        // The thread takes jobs as long as this end lives, so the wait ends.
        if self.queue.send(Job::Keep(last)).and_then(|()| self.queue.send(Job::End)).is_err() {
            tracing::error!("the store's thread had ended: the last slice is not remembered");
        }
        if self.thread.join().is_err() {
            tracing::error!("the store's thread had panicked: the last slice may not be remembered");
        }
    }
}

/// The thread.
struct Keeper {
    store: Option<Store>,
    opened_last: Option<Instant>,
    path: PathBuf,
    held: Batch,
    health: Arc<Mutex<String>>,
    metrics: Metrics,
    pruned_last: Instant,
}

impl Keeper {
    fn run(&mut self, jobs: &Receiver<Job>) {
        loop {
            match jobs.recv_timeout(PRUNE_PERIOD) {
                Ok(Job::Keep(batch)) => self.keep(batch),
                Ok(Job::Explain { tenant, at_unix_ms, answer }) => {
                    // The asker may have hung up.
                    let _ = answer.send(self.explain(&tenant, at_unix_ms));
                }
                Err(RecvTimeoutError::Timeout) => {}
                // Said by the loop: clients may hold the queue for longer.
                Ok(Job::End) | Err(RecvTimeoutError::Disconnected) => return,
            }
            self.tend();
        }
    }

    fn keep(&mut self, batch: Batch) {
        self.metrics.store_rows_dropped.inc_by(self.held.merge(batch));
        if self.store.is_none() {
            self.open();
        }
        let Some(store) = &mut self.store else { return };
        let histories: Vec<TenantHistory> = self.held.histories.values().cloned().collect();
        let kept = store.remember(&histories).and_then(|()| {
            self.held.histories.clear();
            store.audit(&self.held.audit)
        });
        match kept {
            Ok(()) => {
                self.held.audit.clear();
                self.works();
            }
            Err(error) => self.fails(&error),
        }
    }

    fn explain(&self, tenant: &str, at_unix_ms: Option<i64>) -> Result<Vec<AuditRow>, String> {
        let Some(store) = &self.store else {
            return Err("the store does not work; see `minerva-ctl status`".to_owned());
        };
        store.explain(tenant, at_unix_ms).map_err(|error| in_full(&error))
    }

    /// Deletes what is too old and moves the log into the file, now and then.
    fn tend(&mut self) {
        let Some(store) = &mut self.store else { return };
        if self.pruned_last.elapsed() < PRUNE_PERIOD {
            return;
        }
        self.pruned_last = Instant::now();
        let tended = store.prune(AuditLimits::default()).and_then(|_| store.checkpoint());
        if let Err(error) = tended {
            self.fails(&error);
        }
    }

    fn open(&mut self) {
        if self.opened_last.is_some_and(|instant| instant.elapsed() < REOPEN_PERIOD) {
            return;
        }
        self.opened_last = Some(Instant::now());
        match open(&self.path) {
            Ok((store, notes)) => {
                for note in notes {
                    tracing::warn!("{note}");
                }
                self.store = Some(store);
            }
            Err(error) => self.fails(&error),
        }
    }

    fn works(&self) {
        let mut health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        if !health.is_empty() {
            tracing::info!("the store works again, and nothing of the histories was lost");
            health.clear();
        }
    }

    fn fails(&self, error: &StoreError) {
        self.metrics.store_failures.inc();
        let message = in_full(error);
        let mut health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        // Said once, not every slice; the metric counts on.
        if *health != message {
            tracing::warn!(error = message, "the store does not work, steering goes on");
            *health = message;
        }
    }
}

fn open(path: &Path) -> Result<(Store, Vec<StoreNote>), StoreError> {
    // A store whose boot is unknown serves the operator's groups only, which do not depend on it.
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    if let Some(directory) = path.parent() {
        // What is wrong with the directory, the store says better.
        let _ = std::fs::create_dir_all(directory);
    }
    Store::open(path, boot.trim(), system_clock())
}

/// The message with its causes.
fn in_full(error: &StoreError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}
