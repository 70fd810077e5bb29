//! Files of the pool whose place is elsewhere: at their place at once, as a link, and moved there when its disk is quiet.
//!
//! | file | question |
//! |---|---|
//! | `place` | how does a file come to be in the pool and at its place? |
//! | `site` | what stands at the place? |
//! | `user` | in whose name is a place touched? |
//! | `job`, `copy` | how does one file move, and what is found after a crash? |
//! | `candidates` | which files could move? |
//! | `mover`, `thread` | which file moves now, and when does it stop? |
//! | `answers` | what is told of files that wait, and done with them? |
//! | `disks`, `daemon` | who else uses the disk? |
//! | `debts` | who is told what waits, and who says in a guest when it may move? |
//! | `asker`, `reports` | for whom was what moved in gaps, and what did the daemon count of it? |
//!
//! What is to be moved stands in a redo log beside the pool, written before each step that cannot be told by what is found. Order and pace
//! are `core/decide`'s.

mod answers;
mod asker;
mod candidates;
mod copy;
mod daemon;
mod debts;
mod disks;
mod failpoint;
mod job;
mod mover;
mod place;
mod reports;
mod site;
mod thread;
mod user;

pub(crate) use place::{Wish, find_tenant, judge_machine};
pub(crate) use reports::Earned;
pub(crate) use thread::Mover;
pub(crate) use user::User;

use crate::guest;
use crate::settings::Settings;
use crate::tenant::{Mount, Tenant, Tenants};
use anyhow::Context;
use daemon::DaemonLink;
use job::{Obstacle, as_logged, is_before_switching, link_text, settle};
use minerva_api::cache::Pool;
use minerva_model::DeviceId;
use minerva_store::{Deferral, DeferralStep, RedoLog, StoreError};
use reports::Reports;
use site::{Found, Site};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The redo log, in the pool's directory.
pub(crate) const LOG: &str = "deferred.db";
/// After a failed attempt a file waits so long, after each further one twice as long, up to this.
const AGAIN_MIN: Duration = Duration::from_millis(500);
const AGAIN_MAX: Duration = Duration::from_secs(30);

/// Milliseconds since 1970, for people: nothing goes by them.
fn unix_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

/// A file that waits.
#[derive(Clone, Debug)]
struct Waiting {
    row: Deferral,
    why: String,
    device: DeviceId,
    tries: u32,
    not_before: Instant,
    is_link_synced: bool,
}

impl Waiting {
    fn new(row: Deferral) -> Self {
        let device = disks::disk_of(&row.directory, row.directory_identity.0);
        Self {
            row,
            why: "it was asked for just now".to_owned(),
            device,
            tries: 0,
            not_before: Instant::now(),
            is_link_synced: false,
        }
    }
}

/// What was done so far for one pool of a tenant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MoveCounts {
    pub(crate) moved_files: u64,
    pub(crate) moved_bytes: u64,
    pub(crate) failed: u64,
}

/// The same of all, by tenant and pool.
type Counts = BTreeMap<(String, String), MoveCounts>;

/// All files that wait.
pub(crate) struct Deferred {
    log: Arc<Mutex<RedoLog>>,
    reports: Arc<Reports>,
    files: Mutex<BTreeMap<u64, Waiting>>,
    tenants: Tenants,
    settings: Arc<Settings>,
    mounts: PathBuf,
    counts: Mutex<Counts>,
    daemon: DaemonLink,
    pool_disk: DeviceId,
}

impl Deferred {
    /// Opens the log, and sees to what an earlier process left.
    pub(crate) fn open(settings: Arc<Settings>, tenants: Tenants) -> anyhow::Result<Self> {
        let config = settings.now();
        let (log, notes) =
            RedoLog::open(&config.stable.path.join(LOG)).context("failed to open the log of deferred files")?;
        for note in notes {
            eprintln!("minerva-fs: {note}");
        }
        let pool = &config.stable.path;
        let pool_disk = fs::metadata(pool).map_or(disks::NO_DISK, |shown| disks::disk_of(pool, shown.dev()));
        let rows = log.all().context("failed to read the log of deferred files")?;
        let log = Arc::new(Mutex::new(log));
        let reports = Reports::open(Arc::clone(&log), &rows).context("failed to read the log of deferred files")?;
        let reports = Arc::new(reports);
        let deferred = Self {
            log,
            reports: Arc::clone(&reports),
            files: Mutex::default(),
            tenants,
            settings,
            mounts: config.server.mount.clone(),
            counts: Mutex::default(),
            daemon: if config.server.is_guest {
                DaemonLink::of_guest(guest::agent(&config))
            } else {
                DaemonLink::start(config.migration.daemon.clone(), reports).context("failed to start a thread")?
            },
            pool_disk,
        };
        for row in rows {
            let id = row.id;
            deferred.add(Waiting::new(row));
            deferred.settle(id);
        }
        Ok(deferred)
    }

    /// On which disk `stable` lies, as `MAJ:MIN`; empty where that cannot be told.
    pub(crate) fn pool_disk(&self) -> String {
        if self.pool_disk == disks::NO_DISK { String::new() } else { self.pool_disk.to_string() }
    }

    /// Nothing is left in trees that have no such files.
    pub(crate) fn close(&self) {
        let tenants = self.tenants.read().unwrap_or_else(PoisonError::into_inner);
        for tenant in tenants.iter() {
            tenant.temporary.tree.remove_deferred_directory();
            tenant.stable.tree.remove_deferred_directory();
        }
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<u64, Waiting>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, row: &Deferral, add: impl FnOnce(&mut MoveCounts)) {
        add(self.counts().entry((row.tenant.clone(), row.pool.clone())).or_default());
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log<T>(&self, write: impl FnOnce(&RedoLog) -> Result<T, StoreError>) -> anyhow::Result<T> {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        write(&log).context("the log of deferred files failed")
    }

    /// Keeps what became of a row, before it is done; whether somebody asked for the file is not the mover's to say.
    fn keep(&self, row: &Deferral) -> Result<(), Obstacle> {
        let mut files = self.files();
        let file = files.get_mut(&row.id).ok_or(Obstacle::Gone)?;
        let row = Deferral { is_asked_for: file.row.is_asked_for, ..row.clone() };
        if is_before_switching(file.row.step) && is_before_switching(row.step) {
            // A copy that was begun or given up is found without the log (`job`), and a renamed link as it was found now.
            file.row = row;
            return Ok(());
        }
        let kept = self.reports.keep(&row).context("the log of deferred files failed");
        kept.map_err(|error| Obstacle::Log(format!("{error:#}")))?;
        file.row = row;
        Ok(())
    }

    fn add(&self, file: Waiting) {
        self.files().insert(file.row.id, file);
    }

    /// It waits no more.
    fn forget(&self, id: u64) {
        // What stays in the log is settled at the next start.
        let _ = self.reports.forget(id);
        self.files().remove(&id);
    }

    /// Takes out the file that waits to go to this very place, because another is about to be put there. From now on it is one of which the
    /// link may not be there: a crash finds it replaced and removes it, or finds its link and lets it wait on.
    fn take_replaced(&self, row: &Deferral, site: &Site, tenants: &[Tenant]) -> anyhow::Result<Option<Waiting>> {
        let mut files = self.files();
        let is_there = |file: &&Waiting| {
            let mount = mount_of(tenants, &file.row);
            // By its link: one that was renamed is another file's, whatever its row says.
            file.row.directory_identity == row.directory_identity
                && file.row.name == row.name
                && mount.is_some_and(|mount| {
                    let link = link_text(&mount.at, &file.row.source);
                    matches!(site.find_named(&row.name, &file.row, &link), Ok(Found::Link))
                })
        };
        let Some(found) = files.values().find(is_there).cloned() else { return Ok(None) };
        self.log(|log| log.keep(&Deferral { step: DeferralStep::Placing, ..found.row.clone() }))?;
        files.remove(&found.row.id);
        Ok(Some(found))
    }

    /// It was not replaced after all.
    fn put_back(&self, file: Waiting) {
        // Where this fails the next start finds its link.
        let _ = self.log(|log| log.keep(&as_logged(&file.row)));
        self.add(file);
    }

    /// Removes a file of the pool that is nobody's any more.
    fn discard(&self, row: &Deferral, tenants: &[Tenant]) {
        if let Some(mount) = mount_of(tenants, row) {
            let _ = mount.tree.remove_deferred(&row.source);
        }
        self.forget(row.id);
    }

    /// Sees to what an earlier attempt left.
    fn settle(&self, id: u64) {
        let Some(row) = self.files().get(&id).map(|file| file.row.clone()) else { return };
        let tenants = self.tenants.read().unwrap_or_else(PoisonError::into_inner);
        let Some(mount) = mount_of(&tenants, &row) else {
            return self.failed(id, &Obstacle::Destination(format!("its tenant {} is not served", row.tenant)));
        };
        match settle(row, &mount.tree, &mount.at) {
            Ok(None) => self.forget(id),
            Ok(Some(row)) => {
                if let Err(error) = self.keep(&row) {
                    self.failed(id, &error);
                }
            }
            Err(obstacle) => self.failed(id, &obstacle),
        }
    }

    /// An attempt ended without a move.
    fn failed(&self, id: u64, obstacle: &Obstacle) {
        if matches!(obstacle, Obstacle::Gone) {
            return self.forget(id);
        }
        let mut files = self.files();
        let Some(file) = files.get_mut(&id) else { return };
        self.count(&file.row, |counts| counts.failed += 1);
        file.why = obstacle.to_string();
        file.tries += 1;
        file.not_before = Instant::now() + (AGAIN_MIN * (1 << file.tries.min(8))).min(AGAIN_MAX);
        if matches!(obstacle, Obstacle::Left(_)) && file.row.step != DeferralStep::Left {
            file.row.step = DeferralStep::Left;
            let row = &file.row;
            // A name of a user's choice: escaped, so that it cannot look like a line of ours.
            eprintln!("minerva-fs: {:?} of {} stays in the pool: {obstacle}", row.target(), row.tenant);
            // Where this fails it is found out again.
            let _ = self.log(|log| log.keep(row));
        }
    }
}

/// The tree where a file waits.
fn mount_of<'a>(tenants: &'a [Tenant], row: &Deferral) -> Option<&'a Mount> {
    let pool = if row.pool == Pool::Temporary.as_str() { Pool::Temporary } else { Pool::Stable };
    tenants.iter().find(|tenant| tenant.name == row.tenant).map(|tenant| tenant.mount(pool))
}
