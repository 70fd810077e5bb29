//! Operations that were declared, and how fast each disk was seen to serve them.

use crate::Store;
use crate::error::StoreError;
use minerva_model::{AccessKind, Declaration, DeviceId, LearntBandwidth, Nanos};
use rusqlite::{OptionalExtension, params};

impl Store {
    /// Stores what tenants declared in one transaction, durable on return; one that says nothing deletes what was there.
    pub fn declare(&mut self, rows: &[Declaration]) -> Result<(), StoreError> {
        let mut texts = Vec::with_capacity(rows.len());
        for row in rows {
            texts.push(serde_json::to_string(row).map_err(|error| self.unreadable("write to", error))?);
        }
        self.transact(|connection| {
            for (row, text) in rows.iter().zip(&texts) {
                let mut change = match row.is_empty() {
                    true => connection.prepare_cached("DELETE FROM declaration WHERE key = ?1 AND boot = ?2")?,
                    false => connection.prepare_cached("INSERT OR REPLACE INTO declaration VALUES (?1, ?2, ?3)")?,
                };
                match row.is_empty() {
                    true => change.execute([&row.key, &self.boot_id])?,
                    false => change.execute([&row.key, &self.boot_id, text])?,
                };
            }
            Ok(())
        })
    }

    /// What a tenant declared in this boot ([`minerva_model::Tenant::declaration_key`]).
    pub fn declared(&self, key: &str) -> Result<Option<Declaration>, StoreError> {
        let read = || {
            let mut select =
                self.connection.prepare_cached("SELECT declaration FROM declaration WHERE key = ?1 AND boot = ?2")?;
            select.query_row([key, &self.boot_id], |row| row.get::<_, String>(0)).optional()
        };
        let text = read().map_err(|error| self.failed("read from", error))?;
        let parse = |text: String| serde_json::from_str(&text).map_err(|error| self.unreadable("read from", error));
        text.map(parse).transpose()
    }

    /// Stores what was learnt of disks in one transaction, durable on return.
    pub fn learn(&mut self, rows: &[LearntBandwidth]) -> Result<(), StoreError> {
        let now = (self.clock)();
        self.transact(|connection| {
            let mut insert =
                connection.prepare_cached("INSERT OR REPLACE INTO bandwidth VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
            for row in rows {
                insert.execute(params![
                    row.device.major,
                    row.device.minor,
                    self.boot_id,
                    row.access.as_str(),
                    crate::finite(row.bytes_per_second),
                    crate::finite(row.measured_seconds),
                    now.saturating_sub_unsigned(row.age.0 / 1_000_000),
                ])?;
            }
            Ok(())
        })
    }

    /// What was learnt of a disk in this boot, one row a kind of access.
    pub fn learnt(&self, device: DeviceId) -> Result<Vec<LearntBandwidth>, StoreError> {
        let now = (self.clock)();
        let read = || {
            let mut select = self.connection.prepare_cached(
                "SELECT access, bytes_per_second, measured_seconds, true_at_unix_ms FROM bandwidth
                 WHERE major = ?1 AND minor = ?2 AND boot = ?3 ORDER BY access",
            )?;
            let rows = select.query_map(params![device.major, device.minor, self.boot_id], |row| {
                let (access, true_at): (String, i64) = (row.get(0)?, row.get(3)?);
                let access = AccessKind::ALL.into_iter().find(|known| known.as_str() == access);
                let age_ms = u64::try_from(now.saturating_sub(true_at)).unwrap_or(0);
                let (bytes_per_second, measured_seconds) = (row.get(1)?, row.get(2)?);
                Ok(access.map(|access| LearntBandwidth {
                    device,
                    access,
                    bytes_per_second,
                    measured_seconds,
                    age: Nanos::from_millis(age_ms).min(crate::HISTORY_AGE_MAX),
                }))
            })?;
            // A kind that a later version knows is passed over.
            rows.filter_map(Result::transpose).collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|error| self.failed("read from", error))
    }
}
