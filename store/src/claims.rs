//! The level that a tenant set for itself, and its schedule: what of its claims outlives the daemon.

use crate::Store;
use crate::error::StoreError;
use minerva_model::{Level, Nanos};
use rusqlite::{Connection, OptionalExtension};
use serde::{Deserialize, Serialize};

/// To be stored whole, in place of what was stored under the same key before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredClaim {
    /// The level that was set.
    pub set: Option<SetLevel>,
    /// When to step back by the clock on the wall.
    pub schedule: Option<Schedule>,
}

/// A level that was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetLevel {
    /// How far.
    pub level: Level,
    /// Until when, on the clock of this boot; absent: until released, or until `process` ends.
    pub until: Option<Nanos>,
    /// The process with which it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<BoundProcess>,
}

/// A process of this boot. Its number alone may be another's by the time that it is read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundProcess {
    /// Its number.
    pub pid: u32,
    /// When it started, in clock ticks since boot.
    pub start_ticks: u64,
}

/// When to step back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// The IANA name of the time zone; empty: the host's.
    pub time_zone: String,
    /// Where they overlap, the furthest step back holds.
    pub spans: Vec<Span>,
}

/// A part of the day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Minutes after midnight, 0 to 1439.
    pub begin_minute: u16,
    /// The same. An end that is not after the begin is on the next day.
    pub end_minute: u16,
    /// Days on which it begins: bit 0 Monday to bit 6 Sunday; 0: every day.
    pub days: u8,
    /// How far to step back.
    pub level: Level,
}

impl StoredClaim {
    /// Nothing is claimed.
    pub const fn is_empty(&self) -> bool {
        self.set.is_none() && self.schedule.is_none()
    }
}

impl Store {
    /// Stores claims by [`minerva_model::Tenant::declaration_key`] in one transaction; one that says nothing deletes what was
    /// there. On return they outlive the daemon. They end with the boot, so that no loss of power is worth waiting for the disk:
    /// a claim is written to the log of the database and not synced, so that it seldom waits for a disk that others keep busy.
    pub fn claim<'a>(&mut self, rows: impl Iterator<Item = (&'a str, &'a StoredClaim)>) -> Result<(), StoreError> {
        let mut texts = Vec::new();
        for (key, claim) in rows {
            let text = serde_json::to_string(claim).map_err(|error| self.unreadable("write to", error))?;
            texts.push((key, (!claim.is_empty()).then_some(text)));
        }
        let write = |connection: &Connection| {
            for (key, text) in &texts {
                match text {
                    None => connection
                        .prepare_cached("DELETE FROM claim WHERE key = ?1 AND boot = ?2")?
                        .execute([*key, &self.boot_id])?,
                    Some(text) => connection
                        .prepare_cached("INSERT OR REPLACE INTO claim VALUES (?1, ?2, ?3)")?
                        .execute([*key, &self.boot_id, text])?,
                };
            }
            Ok(())
        };
        if !self.connection.is_autocommit() {
            // Beside rows that are worth a sync.
            return self.transact(write);
        }
        let synchronous = |level| {
            let set = self.connection.pragma_update(None, "synchronous", level);
            set.map_err(|error| self.failed("write to", error))
        };
        let written = synchronous("NORMAL").and_then(|()| self.transact(write));
        // The ledger's entries are worth it.
        synchronous("FULL").and(written)
    }

    /// What a tenant claims in this boot.
    pub fn claimed(&self, key: &str) -> Result<Option<StoredClaim>, StoreError> {
        let read = || {
            let mut select = self.connection.prepare_cached("SELECT claim FROM claim WHERE key = ?1 AND boot = ?2")?;
            select.query_row([key, &self.boot_id], |row| row.get::<_, String>(0)).optional()
        };
        let text = read().map_err(|error| self.failed("read from", error))?;
        let parse = |text: String| serde_json::from_str(&text).map_err(|error| self.unreadable("read from", error));
        text.map(parse).transpose()
    }
}
