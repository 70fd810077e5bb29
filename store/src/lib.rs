//! What Minerva remembers: the tenants' histories, the audit of decisions and of requests, the ledger of credits, what tenants
//! declared and claimed, and what disks deliver in SQLite ([`Store`]), recordings of events and effects ([`Recorder`], [`Recording`]), and
//! fitted models ([`ModelFiles`]).
//!
//! The database has one writer, the daemon. A method that returned has made its rows durable (WAL with `synchronous=FULL`, but
//! for claims, which end with the boot); one that failed has changed nothing, and the store can be used on. A damaged file is
//! moved aside, never deleted.
//!
//! The wall clock appears here only: history outlives the monotonic clock, so its age is told by the wall clock, and what a
//! jump of that clock can do is bounded ([`HISTORY_AGE_MAX`], [`Store::prune`]).

mod background;
mod calibrations;
mod carry;
mod claims;
mod deferred;
mod disks;
mod error;
mod explain;
mod jobs;
mod ledger;
mod models;
mod moved;
mod open;
mod operations;
mod prune;
mod recording;
mod requests;
mod schema;
mod transaction;

pub use background::{BackgroundFound, BackgroundRow, LastingIdentity};
pub use carry::Carried;
pub use claims::{BoundProcess, Schedule, SetLevel, Span, StoredClaim};
pub use deferred::{Deferral, DeferralStep, RedoLog};
pub use disks::DiskIdentities;
pub use error::{StoreError, StoreErrorKind};
pub use jobs::{JobPast, JobRunRow};
pub use ledger::{LedgerRow, Posted, Posting};
pub use models::{MODEL_GENERATIONS, ModelFileError, ModelFiles};
pub use moved::{CountedBytes, MovedRow};
pub use open::{Damage, StoreNote};
pub use prune::{AuditLimits, Pruned};
pub use recording::{
    BEHAVIOUR_REVISION, Entry, LINE_BYTES_MAX, Recorder, Recording, RecordingError, RecordingErrorKind,
    SNAPSHOT_BYTES_MAX, WINDOW_LOG_MAX, changes_since, read_entries,
};
pub use requests::{AnswerKind, RequestRow, Whose};

use minerva_model::{Decision, DeviceId, Nanos, TenantHistory, UsageAverage};
use rusqlite::{Connection, Row, params};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// No history counts as older, whatever the wall clock says.
pub const HISTORY_AGE_MAX: Nanos = Nanos::from_secs(30 * 24 * 3600);

/// Milliseconds since 1970 by the wall clock. Tests pass their own.
pub type WallClock = Box<dyn Fn() -> i64 + Send>;

/// The system's wall clock; before 1970 it is 1970.
pub fn system_clock() -> WallClock {
    Box::new(|| {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX)
    })
}

/// A decision as it was taken, under the names that people know: numbers of tenants do not outlive the daemon.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditRow {
    /// When, by the wall clock.
    pub at_unix_ms: i64,
    /// The tenant's name.
    pub tenant_name: String,
    /// Its cgroup, below the root of the hierarchy.
    pub cgroup_path: String,
    /// [`minerva_model::Tenant::history_key`]: of how much is kept, accounts have equal parts.
    pub account: String,
    /// The disk's kernel name.
    pub device_name: String,
    /// The decision.
    pub decision: Decision,
    /// The line that was logged.
    pub text: String,
}

/// The database.
pub struct Store {
    path: PathBuf,
    boot_id: String,
    clock: WallClock,
    connection: Connection,
    disks: DiskIdentities,
    /// Transactions since they were last counted.
    commits: Cell<u64>,
}

impl Store {
    /// Opens the file, or makes it. `boot_id` is the kernel's (`/proc/sys/kernel/random/boot_id`): histories of cgroups are
    /// valid only within the boot that numbered them.
    ///
    /// A damaged file is moved to `NAME.corrupt-<n>` and a new one made; the notes tell. Of a large file only the beginning is
    /// looked at, because the rest takes long to read ([`StoreNote::Unchecked`]): it is for [`Store::check`].
    pub fn open(path: &Path, boot_id: &str, clock: WallClock) -> Result<(Self, Vec<StoreNote>), StoreError> {
        let mut notes = Vec::new();
        let connection = open::open(path, schema::STORE, &mut notes)?;
        Ok((
            Self {
                path: path.to_owned(),
                boot_id: boot_id.to_owned(),
                clock,
                connection,
                disks: DiskIdentities::default(),
                commits: Cell::new(0),
            },
            notes,
        ))
    }

    /// Keeps histories by these identities of disks instead of their numbers.
    #[must_use]
    pub fn with_disks(self, disks: DiskIdentities) -> Self {
        Self { disks, ..self }
    }

    /// Reads the whole file, on a connection of its own, while others use it: what is damaged, if anything. Takes as long as the
    /// disk takes to read it.
    pub fn check(path: &Path) -> Result<Option<Damage>, StoreError> {
        open::check(path)
    }

    /// Moves a damaged file aside. To be called when no connection of this process is open any more that anybody wants to use;
    /// then it can be opened anew.
    pub fn move_aside(path: &Path, damage: Damage) -> Result<StoreNote, StoreError> {
        open::note_aside(path, damage, schema::STORE.loss)
    }

    /// Stores histories in one transaction, durable on return. A later row of the same key and disk replaces the earlier.
    pub fn remember(&mut self, rows: &[TenantHistory]) -> Result<(), StoreError> {
        let now = (self.clock)();
        let scopes: Vec<&str> = rows.iter().map(|row| self.scope(&row.key)).collect();
        self.transact(|connection| {
            let mut insert = connection
                .prepare_cached("INSERT OR REPLACE INTO history VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")?;
            let mut forget =
                connection.prepare_cached("DELETE FROM history WHERE key = ?1 AND boot = ?2 AND disk = ?3")?;
            for (row, scope) in rows.iter().zip(&scopes) {
                let true_at = now.saturating_sub_unsigned(row.age.0 / 1_000_000);
                let (disk, number) = (self.disks.name_of(row.device), row.device.to_string());
                if disk != number {
                    // From before the disk had a name here.
                    forget.execute(params![row.key, scope, number])?;
                }
                insert.execute(params![
                    row.key,
                    scope,
                    disk,
                    row.device.major,
                    row.device.minor,
                    finite(row.usage.recent_bytes_per_second),
                    finite(row.usage.long_term_bytes_per_second),
                    row.group,
                    true_at,
                    finite(row.disk_part),
                ])?;
            }
            Ok(())
        })
    }

    /// Deletes what is remembered under keys that never come back, such as those of cgroups that are gone.
    pub fn forget<'a>(&mut self, keys: impl Iterator<Item = &'a str>) -> Result<(), StoreError> {
        self.transact(|connection| {
            for key in keys {
                for table in ["history", "declaration", "claim"] {
                    let sql = format!("DELETE FROM {table} WHERE key = ?1 AND boot = ?2");
                    connection.prepare_cached(&sql)?.execute([key, self.scope(key)])?;
                }
            }
            Ok(())
        })
    }

    /// What is remembered under a key ([`minerva_model::Tenant::history_key`]) of the disks that are there, one row a disk, aged by
    /// the wall clock.
    pub fn recall(&self, key: &str) -> Result<Vec<TenantHistory>, StoreError> {
        let now = (self.clock)();
        let read = || {
            let mut select = self.connection.prepare_cached(
                "SELECT major, minor, recent_bytes_per_second, long_term_bytes_per_second, priority_group, true_at_unix_ms,
                        disk_part, disk
                 FROM history WHERE key = ?1 AND boot = ?2",
            )?;
            let rows = select
                .query_map([key, self.scope(key)], |row| Ok((row.get::<_, String>(7)?, history_of(row, key, now)?)))?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        let rows = read().map_err(|error| self.failed("read from", error))?;
        let mut found: BTreeMap<DeviceId, TenantHistory> = BTreeMap::new();
        for (disk, row) in rows {
            let Some(device) = self.disks.disk_called(&disk, row.device) else { continue };
            let has_name = disk != row.device.to_string();
            // A row that has only a number gives way to one by the disk's name.
            if has_name || !found.contains_key(&device) {
                found.insert(device, TenantHistory { device, ..row });
            }
        }
        Ok(found.into_values().collect())
    }

    /// Stores decisions in one transaction, durable on return.
    pub fn audit(&mut self, rows: &[AuditRow]) -> Result<(), StoreError> {
        let mut decisions = Vec::with_capacity(rows.len());
        for row in rows {
            let json = serde_json::to_string(&row.decision);
            decisions.push(json.map_err(|error| self.unreadable("write to", error))?);
        }
        self.transact(|connection| {
            let mut insert = connection.prepare_cached(
                "INSERT INTO audit (at_unix_ms, tenant, cgroup, account, device, decision, text)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?;
            for (row, json) in rows.iter().zip(&decisions) {
                let (tenant, cgroup, device) = (&row.tenant_name, &row.cgroup_path, &row.device_name);
                insert.execute(params![row.at_unix_ms, tenant, cgroup, row.account, device, json, row.text])?;
            }
            Ok(())
        })
    }

    /// Moves the log into the database, as far as no reader needs it. To be called when nothing waits for the store.
    pub fn checkpoint(&mut self) -> Result<(), StoreError> {
        let moved = self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        moved.map_err(|error| self.failed("write to", error))
    }

    /// The boot in which a key is valid; empty when it is valid in every one.
    fn scope(&self, key: &str) -> &str {
        if key.starts_with("group:") { "" } else { &self.boot_id }
    }

    fn failed(&self, operation: &'static str, error: rusqlite::Error) -> StoreError {
        let kind = StoreErrorKind::of(&error);
        StoreError { path: self.path.clone(), operation, kind, source: Some(Box::new(error)) }
    }

    fn unreadable(&self, operation: &'static str, error: serde_json::Error) -> StoreError {
        let kind = StoreErrorKind::UnreadableRow;
        StoreError { path: self.path.clone(), operation, kind, source: Some(Box::new(error)) }
    }
}

fn history_of(row: &Row<'_>, key: &str, now_unix_ms: i64) -> rusqlite::Result<TenantHistory> {
    let true_at: i64 = row.get(5)?;
    let age_ms = u64::try_from(now_unix_ms.saturating_sub(true_at)).unwrap_or(0);
    Ok(TenantHistory {
        key: key.to_owned(),
        device: DeviceId { major: row.get(0)?, minor: row.get(1)? },
        usage: UsageAverage { recent_bytes_per_second: row.get(2)?, long_term_bytes_per_second: row.get(3)? },
        disk_part: row.get(6)?,
        group: row.get(4)?,
        age: Nanos::from_millis(age_ms).min(HISTORY_AGE_MAX),
    })
}

/// SQLite has no number that is none, and one such row must not keep the whole slice from being remembered.
fn finite(value: f64) -> f64 {
    if value.is_finite() { value } else { 0.0 }
}
