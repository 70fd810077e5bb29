//! What is deleted: audit that is too old or too much, and what no boot can use again.

use crate::Store;
use crate::error::StoreError;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use std::time::Duration;

/// Rows that one call of [`Store::prune`] deletes at most, so that it does not delay a slice.
const PRUNE_ROWS_MAX: i64 = 5_000;

/// Of accounts with equally many rows, so many are deleted in turn.
const TURN_ROWS: i64 = 16;

/// How much audit is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditLimits {
    /// Nothing older.
    pub age_max: Duration,
    /// Nothing more.
    pub rows_max: u32,
}

impl Default for AuditLimits {
    fn default() -> Self {
        Self { age_max: Duration::from_secs(7 * 24 * 3600), rows_max: 1_000_000 }
    }
}

/// What a call of [`Store::prune`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pruned {
    /// Rows deleted.
    pub rows: usize,
    /// There is more to delete; call again in a later slice.
    pub more: bool,
}

impl Store {
    /// Deletes audit beyond the limits, and what no boot can use again; never the ledger. A bounded number of rows a call.
    ///
    /// Beyond the number of rows, those go first that are the oldest of the account that has most: whoever fills the audit pushes
    /// out its own rows.
    ///
    /// A wall clock that leaps by more than the age deletes nothing: see [`too_old`].
    pub fn prune(&mut self, limits: AuditLimits) -> Result<Pruned, StoreError> {
        let now = (self.clock)();
        let write = |connection: &Connection| {
            let transaction = connection.unchecked_transaction()?;
            let audit = prune_table(&transaction, "audit", now, limits)?;
            let requests = prune_table(&transaction, "participation", now, limits)?;
            let boot = [self.boot_id.as_str()];
            let histories = transaction.execute("DELETE FROM history WHERE boot <> '' AND boot <> ?1", boot)?
                + transaction.execute("DELETE FROM declaration WHERE boot <> ?1", boot)?
                + transaction.execute("DELETE FROM claim WHERE boot <> ?1", boot)?
                + transaction.execute("DELETE FROM bandwidth WHERE boot <> ?1", boot)?;
            transaction.commit()?;
            Ok(Pruned { rows: audit + requests + histories, more: audit.max(requests) as i64 >= PRUNE_ROWS_MAX })
        };
        write(&self.connection).map_err(|error| self.failed("write to", error))
    }
}

/// Deletes a bounded number of the rows of a table that are too old or too many. Both go by an index, so that a call costs what
/// it deletes and not what there is.
fn prune_table(connection: &Connection, table: &str, now: i64, limits: AuditLimits) -> rusqlite::Result<usize> {
    let beyond = delete_excess(connection, table, limits.rows_max)?;
    let by_age = format!(
        "DELETE FROM {table} WHERE id IN
             (SELECT id FROM {table} WHERE at_unix_ms < ?1 AND id < ?2 ORDER BY at_unix_ms LIMIT ?3)"
    );
    let Some((oldest, first_young)) = too_old(connection, table, now, limits)? else { return Ok(beyond) };
    Ok(beyond + connection.execute(&by_age, [oldest, first_young, PRUNE_ROWS_MAX - beyond as i64])?)
}

/// Deletes what is too much, in turns from whichever account has most rows.
fn delete_excess(connection: &Connection, table: &str, rows_max: u32) -> rusqlite::Result<usize> {
    let mut sum = connection.prepare_cached("SELECT coalesce(sum(rows), 0) FROM audit_rows WHERE kind = ?1")?;
    let excess = sum.query_row([table], |row| row.get::<_, i64>(0))? - i64::from(rows_max);
    let mut left = excess.clamp(0, PRUNE_ROWS_MAX);
    let mut heaviest =
        connection.prepare_cached("SELECT account, rows FROM audit_rows WHERE kind = ?1 ORDER BY rows DESC LIMIT 2")?;
    let mut delete = connection.prepare_cached(&format!(
        "DELETE FROM {table} WHERE id IN (SELECT id FROM {table} WHERE account = ?1 ORDER BY id LIMIT ?2)"
    ))?;
    let mut deleted = 0;
    while left > 0 {
        let rows = heaviest.query_map([table], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)))?;
        let rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
        let Some((account, most)) = rows.first() else { break };
        let next = rows.get(1).map_or(0, |(_, rows)| *rows);
        let gone = delete.execute(params![account, left.min((most - next).max(TURN_ROWS))])?;
        if gone == 0 {
            break;
        }
        deleted += gone;
        left -= gone as i64;
    }
    Ok(deleted)
}

/// Which rows of a table are too old: those stamped before the first number that were stored before the second.
///
/// The stamps are the wall clock's, and that may leap. Then the first row stamped after the leap and the one stored before it lie
/// further apart than any row may be old, and nothing is too old until what was stored since is that old itself, by a clock
/// that runs. After an audit that stood still for so long it is the same, and costs only that old rows stay a while. Nor does
/// anything go when no row is young, or for a stamp of a clock that was behind while its neighbours are young.
fn too_old(
    connection: &Connection,
    table: &str,
    now: i64,
    limits: AuditLimits,
) -> rusqlite::Result<Option<(i64, i64)>> {
    let age_ms = i64::try_from(limits.age_max.as_millis()).unwrap_or(i64::MAX);
    let oldest = now.saturating_sub(age_ms);
    let first_young = format!(
        "SELECT id, at_unix_ms FROM {table} WHERE at_unix_ms BETWEEN ?1 AND ?2 ORDER BY at_unix_ms, id LIMIT 1"
    );
    let row = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let first_young: Option<(i64, i64)> = connection.query_row(&first_young, [oldest, now], row).optional()?;
    let Some((id, at)) = first_young else { return Ok(None) };
    let before = format!("SELECT at_unix_ms FROM {table} WHERE id < ?1 ORDER BY id DESC LIMIT 1");
    let before: Option<i64> = connection.query_row(&before, [id], |row| row.get(0)).optional()?;
    Ok(before.filter(|before| at.abs_diff(*before) <= age_ms.unsigned_abs()).map(|_| (oldest, id)))
}
