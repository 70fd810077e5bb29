//! The thread that writes to the store.

use super::{Acknowledged, Batch, Job, in_full};
use crate::command::{Command, Commands};
use crate::metrics::Metrics;
use minerva_model::TenantHistory;
use minerva_store::{AuditLimits, Posted, Posting, Store, StoreError, StoreNote, system_clock};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often a store that could not be opened is tried again.
const REOPEN_PERIOD: Duration = Duration::from_secs(10);
/// How often old rows are deleted.
const PRUNE_PERIOD: Duration = Duration::from_secs(60);

/// The thread's state.
pub(super) struct Keeper {
    pub(super) store: Option<Store>,
    opened_last: Option<Instant>,
    path: PathBuf,
    held: Batch,
    health: Arc<Mutex<String>>,
    metrics: Metrics,
    pruned_last: Instant,
    acknowledgements: Sender<Acknowledged>,
    commands: Commands,
}

impl Keeper {
    /// With the store open, if it opens.
    pub(super) fn new(
        path: PathBuf,
        health: Arc<Mutex<String>>,
        metrics: Metrics,
        acknowledgements: Sender<Acknowledged>,
        commands: Commands,
    ) -> Self {
        let mut keeper = Self {
            store: None,
            opened_last: None,
            path,
            held: Batch::default(),
            health,
            metrics,
            pruned_last: Instant::now(),
            acknowledgements,
            commands,
        };
        keeper.open();
        keeper
    }

    pub(super) fn run(&mut self, jobs: &Receiver<Job>) {
        let mut next = None;
        loop {
            let job = next.take().map_or_else(|| jobs.recv_timeout(PRUNE_PERIOD), Ok);
            match job {
                Ok(Job::Keep(batch)) => self.keep(*batch),
                Ok(Job::Post(mut postings)) => {
                    // What queued up behind the last sync needs one more, not one each.
                    while let Ok(job) = jobs.try_recv() {
                        match job {
                            Job::Post(more) => postings.extend(more),
                            other => {
                                next = Some(other);
                                break;
                            }
                        }
                    }
                    self.post(postings);
                }
                Ok(Job::Look(look)) => {
                    look(self.store.as_ref().ok_or("the store does not work; see `minerva-ctl status`"));
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
        match keep_all(store, &mut self.held) {
            Ok(()) => self.works(),
            Err(error) => self.fails(&error),
        }
    }

    /// Enters what happened to credits, and says what came of it.
    fn post(&mut self, postings: Vec<Posting>) {
        if postings.is_empty() {
            return;
        }
        if self.store.is_none() {
            self.open();
        }
        let Some(store) = &mut self.store else {
            return self.acknowledge(postings, |_| Err("the store does not open; see `minerva-ctl status`".to_owned()));
        };
        match store.post(&postings) {
            Ok(posted) => {
                for (posting, posted) in postings.iter().zip(&posted) {
                    // A declaration that waits to be stored again must not take the boost back.
                    if let (Posted::Fresh, Some((key, boost))) = (posted, &posting.boost)
                        && let Some(declared) = self.held.declarations.get_mut(key)
                    {
                        declared.boosts.push(boost.clone());
                    }
                }
                self.acknowledge(postings, |index| Ok(posted.get(index) == Some(&Posted::Fresh)));
                if self.held.is_empty() {
                    self.works();
                }
            }
            Err(error) => {
                self.fails(&error);
                let detail = in_full(&error);
                self.acknowledge(postings, |_| Err(detail.clone()));
            }
        }
    }

    fn acknowledge(&self, postings: Vec<Posting>, fresh: impl Fn(usize) -> Result<bool, String>) {
        for (index, posting) in postings.into_iter().enumerate() {
            // The loop may have ended; then nobody waits any more.
            let _ = self.acknowledgements.send(Acknowledged { posting, fresh: fresh(index) });
        }
        // A full queue means that the loop is awake.
        let _ = self.commands.send(Command::StoreAnswered);
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

/// Stores all of it, in the order of what it costs to lose, and takes out what is stored.
fn keep_all(store: &mut Store, held: &mut Batch) -> Result<(), StoreError> {
    if !held.declarations.is_empty() {
        let declarations: Vec<_> = held.declarations.values().cloned().collect();
        store.declare(&declarations)?;
        held.declarations.clear();
    }
    if !held.claims.is_empty() {
        store.claim(held.claims.iter().map(|(key, claim)| (key.as_str(), claim)))?;
        held.claims.clear();
    }
    if !held.learnt.is_empty() {
        let learnt: Vec<_> = held.learnt.values().copied().collect();
        store.learn(&learnt)?;
        held.learnt.clear();
    }
    if !held.histories.is_empty() {
        let histories: Vec<TenantHistory> = held.histories.values().cloned().collect();
        store.remember(&histories)?;
        held.histories.clear();
    }
    if !held.requests.is_empty() {
        store.audit_requests(&held.requests)?;
        held.requests.clear();
    }
    if !held.audit.is_empty() {
        store.audit(&held.audit)?;
        held.audit.clear();
    }
    Ok(())
}

pub(super) fn open(path: &Path) -> Result<(Store, Vec<StoreNote>), StoreError> {
    // A store whose boot is unknown serves the operator's groups only, which do not depend on it.
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    if let Some(directory) = path.parent() {
        // What is wrong with the directory, the store says better.
        let _ = std::fs::create_dir_all(directory);
    }
    Store::open(path, boot.trim(), system_clock())
}
