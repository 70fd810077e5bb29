//! Old entries of the ledger, carried forward: what they came to is written down for each account and they are deleted, in one
//! transaction, so that the ledger does not grow without bound and every balance stays the sum of what is there.
//!
//! Carried forward is what was entered first, up to the first row that is younger than the age or gave credits that have not
//! expired. Of such a beginning no account's sum is below zero, and of what it holds nothing can be spent any more. The keys of
//! purchases go with their rows: a key is known for as long as the age says.

use crate::Store;
use crate::error::StoreError;
use rusqlite::{Connection, OptionalExtension, Row};
use std::time::Duration;

/// Rows that one call carries forward at most, so that it does not delay a slice.
const ROWS_MAX: i64 = 5_000;

impl Store {
    /// Carries forward entries older than `age`, a bounded number of them a call; how many, durable on return.
    pub fn carry_forward(&mut self, age: Duration) -> Result<usize, StoreError> {
        let now = (self.clock)();
        let oldest = now.saturating_sub(i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
        let write = |connection: &Connection| {
            let transaction = connection.unchecked_transaction()?;
            let Some(end) = first_kept(&transaction, now, oldest)? else { return Ok(0) };
            transaction.execute(
                "INSERT OR REPLACE INTO ledger_carried (account, boot, micro_credits, through_id)
                 SELECT ledger.account, ledger.boot,
                     sum(CASE WHEN kind IN ('earned', 'given') THEN ledger.micro_credits ELSE -ledger.micro_credits END)
                         + coalesce(max(before.micro_credits), 0),
                     max(ledger.id)
                 FROM ledger LEFT JOIN ledger_carried AS before USING (account, boot)
                 WHERE ledger.id < ?1 GROUP BY ledger.account, ledger.boot",
                [end],
            )?;
            let rows = transaction.execute("DELETE FROM ledger WHERE id < ?1", [end])?;
            transaction.commit()?;
            Ok(rows)
        };
        write(&self.connection).map_err(|error| self.failed("write to", error))
    }
}

/// The first row that stays; nothing when all do. Stamps are the wall clock's, and that may leap: as with the audit, nothing is too
/// old while no row is young, or while the first young one and the one before it lie further apart than any row may be old.
fn first_kept(connection: &Connection, now: i64, oldest: i64) -> rusqlite::Result<Option<i64>> {
    let mut select = connection.prepare_cached(
        "SELECT id, at_unix_ms FROM ledger WHERE at_unix_ms >= ?1
             OR kind IN ('earned', 'given') AND coalesce(expires_at_unix_ms, ?3) > ?2
         ORDER BY id LIMIT 1",
    )?;
    let row = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let first: Option<(i64, i64)> = select.query_row([oldest, now, i64::MAX], row).optional()?;
    let Some((first, at)) = first else { return Ok(None) };
    let mut before =
        connection.prepare_cached("SELECT at_unix_ms FROM ledger WHERE id < ?1 ORDER BY id DESC LIMIT 1")?;
    let before: Option<i64> = before.query_row([first], |row| row.get(0)).optional()?;
    if before.is_none_or(|before| at.abs_diff(before) > now.abs_diff(oldest)) {
        return Ok(None);
    }
    let least: i64 = connection.query_row("SELECT min(id) FROM ledger", [], |row| row.get(0))?;
    Ok(Some(first.min(least.saturating_add(ROWS_MAX))))
}
