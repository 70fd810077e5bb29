//! What the daemon remembers, kept off the slice loop: a thread of its own writes to the store, because the disk under it may be
//! the very one that is overloaded. Steering goes on whatever the store says.
//!
//! Histories and declarations that could not be written are kept and merged, so nothing is lost while the store fails; audit
//! rows are kept up to a bound and then given up and counted. Entries of the ledger and what tenants claim are committed in the
//! order given and each is acknowledged; what cannot be committed is told to the loop, which takes it back.

mod calibrations;
#[cfg(test)]
mod churn_tests;
mod condition;
mod health;
mod jobs;
mod keep;
mod metrics;
mod models;
mod past;
mod questions;
mod thread;

pub use jobs::Kept;
pub use metrics::StoreMetrics;
pub use models::Models;
pub use questions::Questions;

use health::Losses;
use jobs::{Acknowledged, Batch, ClaimCommit, Commits, Entered, Job};
use minerva_model::{
    AccessKind, Boost, Declaration, DeviceId, Event, LearntBandwidth, LedgerEntry, Nanos, Tenant, TenantHistory,
};
use minerva_store::{AuditRow, DiskIdentities, ModelFiles, Posting, RequestRow, Store, StoreError, StoredClaim};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use thread::Keeper;

/// Batches and questions that may wait for the store.
const QUEUE_LENGTH: usize = 64;

/// Where the store is, and how long it keeps what.
#[derive(Clone, Debug)]
pub struct MemorySettings {
    /// The directory of the store and of fitted models.
    pub state_dir: PathBuf,
    /// The kernel's name of this boot, to which histories of cgroups belong. Where it is unknown (empty) only those of the operator's
    /// groups are kept.
    pub boot_id: String,
    /// Older entries of the ledger are carried forward.
    pub ledger_keep: Nanos,
}

/// Tells the loop to look what came of commits.
pub type Wake = Box<dyn Fn() + Send>;

/// The store's thread could not be started.
#[derive(Debug, thiserror::Error)]
#[error("failed to start the store's thread")]
pub struct NotStarted(#[source] std::io::Error);

/// The loop's end of the store.
pub struct Memory {
    queue: SyncSender<Job>,
    pending: Batch,
    /// What the thread could not take yet.
    commits: Commits,
    /// Commits that are not acknowledged.
    under_way: usize,
    last_claim: u64,
    /// Declarations that wait for a purchase under way, and for how many: stored before it, they would come without its boost
    /// after it.
    purchases_under_way: BTreeMap<String, u32>,
    acknowledgements: Receiver<Acknowledged>,
    /// Of stores that were damaged, and another is in their place.
    losses: Losses,
    /// What the engine declared last in this run, by key, and learnt, for an engine that is begun anew.
    declared: BTreeMap<String, Declaration>,
    learnt: BTreeMap<(DeviceId, AccessKind), LearntBandwidth>,
    /// A second connection: SQLite's log lets it read while the thread writes, so that a recall never waits for a sync. The
    /// thread opens it: that checks the whole file, for which the loop cannot wait.
    reader: Option<Store>,
    /// What the disks that are there say of themselves.
    disks: DiskIdentities,
    readers: Receiver<Store>,
    /// The last read failed; said once, not every slice.
    unreadable: Cell<bool>,
    health: Arc<Mutex<String>>,
    thread: JoinHandle<()>,
    metrics: StoreMetrics,
    /// Fitted models.
    pub models: Models,
}

impl Memory {
    /// Opens the store in the state directory and starts its thread. A store that does not open is reported and tried again.
    /// `wake` is called, by that thread, when something was committed or could not be: look at [`Memory::acknowledged`].
    pub fn start(settings: MemorySettings, metrics: StoreMetrics, wake: Wake) -> Result<Self, NotStarted> {
        let MemorySettings { state_dir, boot_id, ledger_keep } = settings;
        let health = Arc::new(Mutex::new(String::new()));
        let (queue, jobs) = sync_channel(QUEUE_LENGTH);
        let (sender, acknowledgements) = channel();
        let path = state_dir.join("minerva.db");
        let files = ModelFiles::new(state_dir.join("models"));
        let models = Models::read(&files);
        let (give_reader, readers) = channel();
        let (tell_loss, losses) = channel();
        let disks = DiskIdentities::default();
        let mut keeper = Keeper::new(
            (path, boot_id, files, Duration::from_nanos(ledger_keep.0)),
            disks.clone(),
            Arc::clone(&health),
            metrics.clone(),
            (sender, give_reader, tell_loss),
            wake,
        );
        let reader = readers.try_recv().ok();
        let thread = std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || keeper.run(&jobs))
            .map_err(NotStarted)?;
        Ok(Self {
            queue,
            pending: Batch::default(),
            commits: Commits::default(),
            under_way: 0,
            last_claim: 0,
            purchases_under_way: BTreeMap::new(),
            acknowledgements,
            losses: Losses(losses),
            declared: BTreeMap::new(),
            learnt: BTreeMap::new(),
            reader,
            disks,
            readers,
            unreadable: Cell::new(false),
            health,
            thread,
            metrics,
            models,
        })
    }

    /// For others to ask.
    pub fn questions(&self) -> Questions {
        Questions::new(self.queue.clone())
    }

    /// To be kept with the next [`Memory::flush`].
    pub fn remember(&mut self, history: TenantHistory) {
        self.pending.histories.insert((history.key.clone(), history.device), history);
    }

    /// To be kept with the next [`Memory::flush`].
    pub fn audit(&mut self, row: AuditRow) {
        self.pending.audit.push(row);
    }

    /// To be kept with the next [`Memory::flush`].
    pub fn audit_request(&mut self, row: RequestRow) {
        self.pending.requests.push(row);
    }

    /// To be kept with the next [`Memory::flush`].
    pub fn declare(&mut self, declaration: Declaration) {
        self.declared.insert(declaration.key.clone(), declaration.clone());
        self.pending.declarations.insert(declaration.key.clone(), declaration);
    }

    /// To be kept with the next [`Memory::send_commits`]; acknowledged under the number.
    pub fn claim(&mut self, tenant: &Tenant, claim: StoredClaim) -> u64 {
        let key = tenant.declaration_key();
        self.pending.claims.remove(&key);
        self.last_claim += 1;
        self.under_way += 1;
        self.commits.claims.push(ClaimCommit { number: self.last_claim, key, claim });
        self.last_claim
    }

    /// To be kept when that can be done, and not acknowledged.
    pub fn claim_later(&mut self, tenant: &Tenant, claim: StoredClaim) {
        self.pending.claims.insert(tenant.declaration_key(), claim);
    }

    /// To be kept with the next [`Memory::flush`].
    pub fn learn(&mut self, row: LearntBandwidth) {
        self.learnt.insert((row.device, row.access), row);
        self.pending.learnt.insert((row.device, row.access), row);
    }

    /// The tenant is gone; if its cgroup is, it never comes back.
    pub fn tenant_gone(&mut self, tenant: &Tenant, is_cgroup_gone: bool) {
        let key = tenant.declaration_key();
        self.declared.remove(&key);
        if is_cgroup_gone {
            self.pending.forget(key);
        }
    }

    /// A disk is there, and says this of itself. False if that was known.
    pub fn disk_seen(&mut self, device: DeviceId, identity: String) -> bool {
        self.disks.enter(device, identity)
    }

    /// The disk is gone, and its number may be another's.
    pub fn device_gone(&mut self, device: DeviceId) {
        self.disks.strike(device);
        self.learnt.retain(|(of, _), _| *of != device);
    }

    /// To be entered in the ledger with the next [`Memory::send_commits`]; of a purchase with the boost, and the key of the
    /// declaration that is to have it.
    pub fn post(&mut self, entry: LedgerEntry, boost: Option<(String, Boost)>) {
        if let Some((key, _)) = &boost {
            *self.purchases_under_way.entry(key.clone()).or_default() += 1;
        }
        self.under_way += 1;
        self.commits.postings.push(Posting { entry, boost });
    }

    /// Hands to the thread what is to be committed. When it is behind that waits here.
    pub fn send_commits(&mut self) {
        if self.commits.is_empty() {
            return;
        }
        let sent = self.queue.try_send(Job::Commit(std::mem::take(&mut self.commits)));
        if let Err(TrySendError::Full(Job::Commit(commits)) | TrySendError::Disconnected(Job::Commit(commits))) = sent {
            self.commits = commits;
        }
    }

    /// What came of commits.
    pub fn acknowledged(&mut self) -> Vec<Kept> {
        let mut all = Vec::new();
        for acknowledged in self.acknowledgements.try_iter() {
            self.under_way = self.under_way.saturating_sub(1);
            let (posting, posted) = match acknowledged {
                Acknowledged::Entry { posting, posted } => (posting, posted),
                Acknowledged::Claims { number, kept } => {
                    all.push(Kept::Claims(number, kept));
                    continue;
                }
            };
            if let Some((key, _)) = &posting.boost
                && let Some(count) = self.purchases_under_way.get_mut(key)
            {
                *count -= 1;
                if *count == 0 {
                    self.purchases_under_way.remove(key);
                }
            }
            let entry = posting.entry.number;
            all.push(Kept::Entry(Box::new(match posted {
                Ok(Entered::Fresh) => Event::Committed { entry, fresh: true, known: None },
                Ok(Entered::Known(known)) => Event::Committed { entry, fresh: false, known },
                Err(detail) => Event::CommitFailed { entry, detail },
            })));
        }
        all
    }

    /// Commits are under way.
    pub const fn is_committing(&self) -> bool {
        self.under_way > 0
    }

    /// Hands this slice's rows to the thread. When the thread is behind they wait here for the next slice.
    pub fn flush(&mut self) {
        self.send_commits();
        self.send_models();
        if self.pending.is_empty() {
            return;
        }
        let mut batch = std::mem::take(&mut self.pending);
        for key in self.purchases_under_way.keys() {
            self.pending.declarations.extend(batch.declarations.remove_entry(key));
        }
        let sent = self.queue.try_send(Job::Keep(Box::new(batch)));
        if let Err(TrySendError::Full(Job::Keep(mut batch)) | TrySendError::Disconnected(Job::Keep(mut batch))) = sent {
            self.metrics.rows_dropped.inc_by(batch.merge(std::mem::take(&mut self.pending)));
            self.pending = *batch;
        }
    }

    fn send_models(&mut self) {
        let models = self.models.take_unsent();
        if models.is_empty() {
            return;
        }
        let sent = self.queue.try_send(Job::Models(models));
        if let Err(TrySendError::Full(Job::Models(models)) | TrySendError::Disconnected(Job::Models(models))) = sent {
            self.models.give_back(models);
        }
    }

    /// Hands over the last rows and waits until they are kept, or the store has refused them.
    pub fn close(mut self) {
        let commits = std::mem::take(&mut self.commits);
        let mut last = std::mem::take(&mut self.pending);
        // What was declared before a purchase under way would take its boost back.
        last.declarations.retain(|key, _| !self.purchases_under_way.contains_key(key));
        // The thread takes jobs as long as this end lives, so the wait ends.
        let models = self.models.take_unsent();
        let jobs = [Job::Commit(commits), Job::Keep(Box::new(last)), Job::Models(models), Job::End];
        if jobs.into_iter().try_for_each(|job| self.queue.send(job)).is_err() {
            tracing::error!("the store's thread had ended: the last slice is not remembered");
        }
        if self.thread.join().is_err() {
            tracing::error!("the store's thread had panicked: the last slice may not be remembered");
        }
    }
}

/// The message with its causes.
pub(crate) fn in_full(error: &StoreError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}
