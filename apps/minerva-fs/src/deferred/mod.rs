//! Files of the pool whose place is elsewhere: at their place at once, as a link, and moved there when its disk is quiet.
//!
//! | file | question |
//! |---|---|
//! | `place` | how does a file come to be in the pool and at its place? |
//! | `membership` | by which tenant, and may it? |
//! | `replaced` | and if another waits to go there? |
//! | `under_way` | how many are being put there, or replaced? |
//! | `site` | what stands at the place? |
//! | `namespace` | does who asks see the tree that the link leads to? |
//! | `user` | in whose name is a place touched? |
//! | `job`, `copy` | how does one file move? |
//! | `settling` | what is found after a crash? |
//! | `attempts` | what becomes of an attempt that did not end? |
//! | `candidates` | which files could move? |
//! | `waited` | for how long has a file waited? |
//! | `links` | where is a link now, before a mover has looked? |
//! | `directory` | and where its directory, if that is not where it was? |
//! | `left`, `read_directories` | is a link back that was gone, and where need nobody look? |
//! | `mover` | which file of a destination moves now, and when does it stop? |
//! | `threads` | who moves to which destination, and what if one does not answer? |
//! | `answers` | what is told of files that wait, and done with them? |
//! | `disks`, `daemon` | who else uses the disk? |
//! | `debts` | who is told what waits, and who says in a guest when it may move? |
//! | `asker`, `reports` | for whom was what moved in gaps, and what did the daemon count of it? |
//!
//! What is to be moved stands in a redo log beside the pool, written before each step that cannot be told by what is found. Order and pace
//! are `core/decide`'s.

mod answers;
mod asker;
mod attempts;
mod candidates;
mod copy;
mod daemon;
mod debts;
mod directory;
mod disks;
mod failpoint;
mod gone;
mod job;
mod left;
#[cfg(test)]
mod link_attributes;
mod links;
mod membership;
mod mover;
mod namespace;
mod place;
mod read_directories;
mod replaced;
mod reports;
mod settling;
mod site;
mod threads;
mod under_way;
mod waited;

pub(crate) use asker::Peer;
pub(crate) use membership::{find_tenant, judge_machine, tenants_of};
pub(crate) use place::Wish;
pub(crate) use reports::Earned;
pub(crate) use threads::start as start_moving;

use crate::guest;
use crate::mount::Mount;
use crate::settings::Settings;
use crate::tenant::{Tenant, Tenants};
use anyhow::Context;
use daemon::DaemonLink;
use disks::Destination;
use job::{Obstacle, is_before_switching, remove_source};
use minerva_api::cache::Pool;
use minerva_cachefs::Tree;
use minerva_model::DeviceId;
use minerva_store::{Deferral, RedoLog, StoreError};
use read_directories::ReadDirectories;
use reports::Reports;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use under_way::UnderWay;
use waited::Waited;

/// The redo log, in the pool's directory.
pub(crate) const LOG: &str = "deferred.db";

/// Milliseconds since 1970: when a file was deferred, also to later processes. For how long it has waited is `waited`'s to say.
fn unix_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

/// A file that waits.
#[derive(Clone, Debug)]
struct Waiting {
    row: Deferral,
    waited: Waited,
    why: String,
    destination: Destination,
    /// What it is expected to occupy at its place, as far as is known.
    bytes: u64,
    /// What it occupied in the pool when it was last looked at.
    occupied_bytes: u64,
    tries: u32,
    not_before: Instant,
    is_link_synced: bool,
    /// It was in the log at the start, and was not looked at since.
    is_found: bool,
}

impl Waiting {
    fn new(row: Deferral) -> Self {
        let destination = Destination::of(&row.directory, row.directory_identity.0);
        Self {
            waited: Waited::begin(&row, unix_ms()),
            row,
            why: "it was asked for just now".to_owned(),
            destination,
            bytes: 0,
            occupied_bytes: 0,
            tries: 0,
            not_before: Instant::now(),
            is_link_synced: false,
            is_found: false,
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
    under_way: UnderWay,
    /// Directories above those that are not where they were, as they were read.
    read_above: Mutex<ReadDirectories>,
    tenants: Tenants,
    settings: Arc<Settings>,
    mounts: PathBuf,
    counts: Mutex<Counts>,
    daemon: DaemonLink,
    pool_disk: DeviceId,
}

impl Deferred {
    /// Opens the log. [`start_moving`] sees to what an earlier process left.
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
            under_way: UnderWay::default(),
            read_above: Mutex::default(),
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
            deferred.add(Waiting { is_found: true, ..Waiting::new(row) });
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
        let file = files.get_mut(&row.id).ok_or(Obstacle::TakenOut)?;
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
        // First here: nobody takes it out who would not find its row. What stays in the log is settled at the next start.
        self.files().remove(&id);
        let _ = self.reports.forget(id);
    }

    /// Removes a file of the pool that is nobody's any more, and its row with it.
    fn discard(&self, row: &Deferral) -> Result<(), Obstacle> {
        let (tree, _) = self.tree_of(row)?;
        remove_source(&tree, row)?;
        self.forget(row.id);
        Ok(())
    }

    /// Where files are to go.
    fn destinations(&self) -> BTreeSet<Destination> {
        self.files().values().map(|file| file.destination).collect()
    }

    /// A directory to which files are to go at a destination, for people.
    fn directory_at(&self, destination: Destination) -> PathBuf {
        let files = self.files();
        let found = files.values().find(|file| file.destination == destination);
        found.map_or_else(PathBuf::new, |file| file.row.directory.clone())
    }

    /// The tree where a file waits and where it is mounted. Tenants can change while the file's destination does not answer.
    fn tree_of(&self, row: &Deferral) -> Result<(Arc<Tree>, PathBuf), Obstacle> {
        let tenants = self.tenants.read().unwrap_or_else(PoisonError::into_inner);
        mount_of(&tenants, row)
            .map(|mount| (Arc::clone(&mount.tree), mount.at.clone()))
            .ok_or_else(|| Obstacle::Destination(not_served(row)))
    }
}

/// Why a file does not move whose tenant the operator's file does not name.
fn not_served(row: &Deferral) -> String {
    format!("its tenant {} is not served", row.tenant)
}

/// The tree where a file waits.
fn mount_of<'a>(tenants: &'a [Tenant], row: &Deferral) -> Option<&'a Mount> {
    mount_in(tenants, &row.tenant, &row.pool)
}

/// A tenant's tree in a pool.
fn mount_in<'a>(tenants: &'a [Tenant], tenant: &str, pool: &str) -> Option<&'a Mount> {
    let pool = if pool == Pool::Temporary.as_str() { Pool::Temporary } else { Pool::Stable };
    tenants.iter().find(|found| found.name == tenant).map(|found| found.mount(pool))
}
