//! The thread that writes to the store.

use crate::condition::{Condition, Task};
use crate::jobs::{Acknowledged, Batch, ClaimCommit, Commits, Entered, Job};
use crate::keep::keep_all;
use crate::metrics::StoreMetrics;
use crate::{Wake, in_full};
use minerva_model::{FittedModel, ModelKind, Purchase};
use minerva_store::{
    AuditLimits, Damage, DiskIdentities, ModelFiles, Posted, Posting, Store, StoreError, StoreNote, system_clock,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SendError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How often a store that could not be opened is tried again.
const REOPEN_PERIOD: Duration = Duration::from_secs(10);
/// How often old rows are deleted.
const PRUNE_PERIOD: Duration = Duration::from_secs(60);
/// How often while there is more to delete than one call does. Between two calls whoever waits for a commit has his.
const PRUNE_AGAIN: Duration = Duration::from_millis(250);
/// How often it is looked whether the check of a large store is done.
const CHECK_PERIOD: Duration = Duration::from_secs(1);
const NOT_OPEN: &str = "the store does not open; see `minerva-ctl status`";

/// The thread's state.
pub(super) struct Keeper {
    store: Option<Store>,
    opened_last: Option<Instant>,
    path: PathBuf,
    boot_id: String,
    models: ModelFiles,
    disks: DiskIdentities,
    /// Older entries of the ledger are carried forward.
    ledger_keep: Duration,
    held: Batch,
    condition: Condition,
    metrics: StoreMetrics,
    pruned_last: Instant,
    /// There is more to delete.
    prunes_more: bool,
    /// What comes of the check of a store that is used meanwhile.
    checking: Option<Receiver<Result<Option<Damage>, StoreError>>>,
    acknowledgements: Sender<Acknowledged>,
    readers: Sender<Store>,
    losses: Sender<StoreNote>,
    wake: Wake,
}

impl Keeper {
    /// With the store open, if it opens. What came of commits goes to the first sender, to the second a further connection
    /// whenever the store has been opened, and to the third a note of each damaged store that was moved aside.
    pub(super) fn new(
        (path, boot_id, models, ledger_keep): (PathBuf, String, ModelFiles, Duration),
        disks: DiskIdentities,
        health: Arc<Mutex<String>>,
        metrics: StoreMetrics,
        (acknowledgements, readers, losses): (Sender<Acknowledged>, Sender<Store>, Sender<StoreNote>),
        wake: Wake,
    ) -> Self {
        let mut keeper = Self {
            store: None,
            opened_last: None,
            path,
            boot_id,
            models,
            disks,
            ledger_keep,
            held: Batch::default(),
            condition: Condition::new(health),
            metrics,
            pruned_last: Instant::now(),
            prunes_more: false,
            checking: None,
            acknowledgements,
            readers,
            losses,
            wake,
        };
        keeper.open();
        keeper
    }

    pub(super) fn run(&mut self, jobs: &Receiver<Job>) {
        let mut next = None;
        loop {
            // Somebody may wait for a store that does not open, and write nothing meanwhile.
            let patience = match &self.store {
                None => REOPEN_PERIOD,
                Some(_) if self.prunes_more => PRUNE_AGAIN,
                Some(_) if self.checking.is_some() => CHECK_PERIOD,
                Some(_) => PRUNE_PERIOD,
            };
            let job = next.take().map_or_else(|| jobs.recv_timeout(patience), Ok);
            match job {
                Ok(Job::Keep(batch)) => self.keep(*batch),
                Ok(Job::Commit(mut commits)) => {
                    // What queued up behind the last sync needs one more, not one each.
                    while let Ok(job) = jobs.try_recv() {
                        match job {
                            Job::Commit(more) => commits.extend(more),
                            other => {
                                next = Some(other);
                                break;
                            }
                        }
                    }
                    self.commit(commits);
                }
                Ok(Job::Look(look)) => {
                    look(self.store.as_ref().ok_or("the store does not work; see `minerva-ctl status`"));
                }
                Ok(Job::Models(models)) => self.keep_models(models),
                Err(RecvTimeoutError::Timeout) => {}
                // Said by the loop: clients may hold the queue for longer.
                Ok(Job::End) | Err(RecvTimeoutError::Disconnected) => return,
            }
            self.tend();
        }
    }

    fn keep(&mut self, batch: Batch) {
        self.metrics.rows_dropped.inc_by(self.held.merge(batch));
        if self.store.is_none() {
            self.open();
        }
        let Some(store) = &mut self.store else { return };
        let kept = keep_all(store, &mut self.held);
        self.metrics.committed("slice", store.take_commits());
        match kept {
            Ok(()) => self.condition.works(Task::Writing),
            Err(error) => self.fails(&error),
        }
    }

    /// Writes fitted models. One that could not be written is not tried again: the next is due in minutes.
    fn keep_models(&self, models: BTreeMap<ModelKind, FittedModel>) {
        for model in models.values() {
            if let Err(error) = self.models.keep(model) {
                self.metrics.failures.inc();
                tracing::warn!("a fitted model is not kept for the next start: {error}");
            }
        }
    }

    /// Commits, and says what came of it.
    fn commit(&mut self, Commits { postings, claims }: Commits) {
        if postings.is_empty() && claims.is_empty() {
            return;
        }
        if self.store.is_none() {
            self.open();
        }
        if !postings.is_empty() {
            self.post(postings);
        }
        if !claims.is_empty() {
            self.claim(&claims);
        }
        (self.wake)();
    }

    /// Keeps what tenants claim, and says what came of it.
    fn claim(&mut self, claims: &[ClaimCommit]) {
        let kept = match &mut self.store {
            None => Err(NOT_OPEN.to_owned()),
            Some(store) => match store.claim(claims.iter().map(|one| (one.key.as_str(), &one.claim))) {
                Ok(()) => {
                    // An older one that waits to be stored again must not take its place.
                    for ClaimCommit { key, .. } in claims {
                        self.held.claims.remove(key);
                    }
                    Ok(())
                }
                Err(error) => {
                    self.fails(&error);
                    Err(in_full(&error))
                }
            },
        };
        self.count_commits();
        for ClaimCommit { number, .. } in claims {
            // The loop may have ended; then nobody waits any more.
            let _ = self.acknowledgements.send(Acknowledged::Claims { number: *number, kept: kept.clone() });
        }
    }

    /// Before it is told what came of them, so that whoever counts sees them.
    fn count_commits(&self) {
        if let Some(store) = &self.store {
            self.metrics.committed("requests", store.take_commits());
        }
    }

    /// Enters what happened to credits, and says what came of it.
    fn post(&mut self, postings: Vec<Posting>) {
        let Some(store) = &mut self.store else {
            return self.acknowledge(postings, |_| Err(NOT_OPEN.to_owned()));
        };
        let posted = store.post(&postings);
        self.metrics.committed("requests", store.take_commits());
        match posted {
            Ok(posted) => {
                for (posting, posted) in postings.iter().zip(&posted) {
                    // A declaration that waits to be stored again must not take the boost back.
                    if let (Posted::Fresh, Some((key, boost))) = (posted, &posting.boost)
                        && let Some(declared) = self.held.declarations.get_mut(key)
                    {
                        declared.boosts.push(boost.clone());
                    }
                }
                let entered = posted.iter().zip(&postings).map(|(posted, posting)| match posted {
                    Posted::Fresh => Entered::Fresh,
                    Posted::Known => Entered::Known(bought_before(store, posting)),
                });
                let entered: Vec<Entered> = entered.collect();
                self.acknowledge(postings, |index| Ok(entered[index].clone()));
                if self.held.is_empty() {
                    self.condition.works(Task::Writing);
                }
            }
            Err(error) => {
                self.fails(&error);
                let detail = in_full(&error);
                self.acknowledge(postings, |_| Err(detail.clone()));
            }
        }
    }

    fn acknowledge(&self, postings: Vec<Posting>, posted: impl Fn(usize) -> Result<Entered, String>) {
        for (index, posting) in postings.into_iter().enumerate() {
            // The loop may have ended; then nobody waits any more.
            let _ = self.acknowledgements.send(Acknowledged::Entry { posting, posted: posted(index) });
        }
    }

    /// Deletes what is too old and moves the log into the file, now and then; opens what did not open.
    fn tend(&mut self) {
        self.end_check();
        if self.store.is_none() {
            return self.open();
        }
        let period = if self.prunes_more { PRUNE_AGAIN } else { PRUNE_PERIOD };
        if self.pruned_last.elapsed() < period {
            return;
        }
        self.prune();
    }

    fn prune(&mut self) {
        let Some(store) = &mut self.store else { return };
        let tended = store.prune(AuditLimits::default()).and_then(|pruned| {
            let carried = store.carry_forward(self.ledger_keep)?;
            if let Some(first) = carried.overdrawn.first() {
                let accounts = carried.overdrawn.len();
                tracing::warn!(first, accounts, "accounts spent more than they held, and begin again at nothing");
            }
            store.checkpoint()?;
            Ok(pruned.more)
        });
        self.pruned_last = Instant::now();
        self.prunes_more = matches!(tended, Ok(true));
        match tended {
            Ok(_) => self.condition.works(Task::Tending),
            Err(error) => self.fails_at(Task::Tending, &error),
        }
    }

    /// Checks a large store on a thread of its own.
    fn begin_check(&mut self) {
        let (give, take) = channel();
        let path = self.path.clone();
        let check = std::thread::Builder::new().name("store-check".to_owned());
        // Nobody listens any more when the daemon ends first.
        match check.spawn(move || drop(give.send(Store::check(&path)))) {
            Ok(_) => self.checking = Some(take),
            Err(error) => tracing::warn!(%error, "the store is not checked"),
        }
    }

    /// A store that was found damaged is moved aside, and another is begun.
    fn end_check(&mut self) {
        let Some(checked) = self.checking.as_ref().and_then(|checking| checking.try_recv().ok()) else { return };
        self.checking = None;
        match checked {
            Ok(None) => tracing::info!("the store was checked, and all of it is well"),
            Ok(Some(damage)) => {
                self.store = None;
                self.opened_last = None;
                match Store::move_aside(&self.path, damage) {
                    Ok(note) => self.tell(note),
                    Err(error) => self.fails(&error),
                }
            }
            Err(error) => tracing::warn!(error = in_full(&error), "the store could not be checked"),
        }
    }

    fn open(&mut self) {
        if self.opened_last.is_some_and(|instant| instant.elapsed() < REOPEN_PERIOD) {
            return;
        }
        self.opened_last = Some(Instant::now());
        let open =
            || open(&self.path, &self.boot_id).map(|(store, notes)| (store.with_disks(self.disks.clone()), notes));
        match open().and_then(|(store, notes)| Ok((store, notes, open()?.0))) {
            Ok((store, notes, reader)) => {
                if notes.contains(&StoreNote::Unchecked) {
                    self.begin_check();
                }
                notes.into_iter().for_each(|note| self.tell(note));
                self.store = Some(store);
                // Whether it can be tended too is found out within a minute.
                Task::ALL.into_iter().for_each(|task| self.condition.works(task));
                // The loop may have ended.
                let _ = self.readers.send(reader);
            }
            Err(error) => self.fails(&error),
        }
    }

    /// Says what happened to the store.
    fn tell(&self, note: StoreNote) {
        match note {
            // The loop says so, or whoever drops what it never took.
            StoreNote::MovedAside { .. } => {
                if let Err(SendError(note)) = self.losses.send(note) {
                    tracing::warn!("{note}");
                }
            }
            StoreNote::Unchecked => tracing::info!("{note}"),
            StoreNote::Migrated { .. } => tracing::warn!("{note}"),
        }
    }

    fn fails(&mut self, error: &StoreError) {
        self.fails_at(Task::Writing, error);
    }

    fn fails_at(&mut self, task: Task, error: &StoreError) {
        self.metrics.failures.inc();
        self.condition.fails(task, in_full(error));
    }
}

/// What a purchase that was not added had bought when it was.
fn bought_before(store: &Store, posting: &Posting) -> Option<Purchase> {
    let (request, (tenant, _)) = (posting.entry.request.as_ref()?, posting.boost.as_ref()?);
    // What cannot be read now is taken for the same purchase, which it nearly always is.
    store.purchase(&posting.entry.account, tenant, request).ok()?
}

fn open(path: &Path, boot_id: &str) -> Result<(Store, Vec<StoreNote>), StoreError> {
    if let Some(directory) = path.parent() {
        // What is wrong with the directory, the store says better.
        let _ = std::fs::create_dir_all(directory);
    }
    Store::open(path, boot_id, system_clock())
}

#[cfg(test)]
mod tests;
