//! Old entries of the ledger, carried forward: what they came to is written down for each account and they are deleted, in one
//! transaction, so that the ledger does not grow without bound and every balance stays the sum of what is there.
//!
//! Carried forward is what was entered first, up to the first row that is younger than the age or gave credits that have not
//! expired; a clock that was ahead for a while does not make its rows younger. Of such a beginning no account's sum is below zero, and of what it holds nothing can be spent any more. The keys of
//! purchases go with their rows: a key is known for as long as the age says.
//!
//! A sum is kept for as long as it says anything: of a cgroup, whose account no other boot has, until the last of its rows is carried
//! forward in a later boot, and a sum of nothing until its account has no row.

use crate::Store;
use crate::error::StoreError;
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::time::Duration;

/// Rows that one call carries forward at most, and sums that it deletes at most, so that it does not delay a slice.
const ROWS_MAX: i64 = 5_000;

/// What a call of [`Store::carry_forward`] did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Rows carried forward.
    pub rows: usize,
    /// Accounts whose rows came to less than nothing, as they can only where the ledger was written wrongly. They were carried forward
    /// as nothing: what was spent too much is forgiven.
    pub overdrawn: Vec<String>,
}

impl Store {
    /// Carries forward entries older than `age`, a bounded number of them a call; durable on return.
    pub fn carry_forward(&mut self, age: Duration) -> Result<Carried, StoreError> {
        let now = (self.clock)();
        let oldest = now.saturating_sub(i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
        let write = |connection: &Connection| {
            let transaction = connection.unchecked_transaction()?;
            let mut carried = Carried::default();
            if let Some(end) = first_kept(&transaction, now, oldest)? {
                carried.overdrawn = add_up(&transaction, end)?;
                carried.rows = transaction.execute("DELETE FROM ledger WHERE id < ?1", [end])?;
            }
            transaction.execute(
                "DELETE FROM ledger_carried WHERE (account, boot) IN (
                     SELECT account, boot FROM ledger_carried AS carried
                     WHERE (boot NOT IN ('', ?1) OR micro_credits = 0)
                         AND NOT EXISTS (SELECT 1 FROM ledger WHERE account = carried.account AND boot = carried.boot)
                     LIMIT ?2
                 )",
                params![self.boot_id, ROWS_MAX],
            )?;
            transaction.commit()?;
            Ok(carried)
        };
        write(&self.connection).map_err(|error| self.failed("write to", error))
    }
}

/// Writes down what each account's rows before `end` come to, with what was carried forward before; whose come to less than nothing.
fn add_up(connection: &Connection, end: i64) -> rusqlite::Result<Vec<String>> {
    let mut sums = connection.prepare_cached(
        "SELECT ledger.account, ledger.boot,
             sum(CASE WHEN kind IN ('earned', 'given') THEN ledger.micro_credits ELSE -ledger.micro_credits END)
                 + coalesce(max(before.micro_credits), 0),
             max(ledger.id)
         FROM ledger LEFT JOIN ledger_carried AS before USING (account, boot)
         WHERE ledger.id < ?1 GROUP BY ledger.account, ledger.boot",
    )?;
    let mut insert = connection.prepare_cached("INSERT OR REPLACE INTO ledger_carried VALUES (?1, ?2, ?3, ?4)")?;
    let row = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
    let sums = sums.query_map([end], row)?.collect::<rusqlite::Result<Vec<(String, String, i64, i64)>>>()?;
    let mut overdrawn = Vec::new();
    for (account, boot, sum, through) in sums {
        insert.execute(params![account, boot, sum.max(0), through])?;
        if sum < 0 {
            overdrawn.push(account);
        }
    }
    Ok(overdrawn)
}

/// The first row that stays; nothing when all do. Stamps are the wall clock's, and that may leap: as with the audit, nothing is too
/// old while no row is young, or while the first young one and the one before it lie further apart than any row may be old.
///
/// A row stamped after `now` was entered by a clock that was ahead, and says nothing of the time. It goes with the row that was
/// entered after it, once that is old.
fn first_kept(connection: &Connection, now: i64, oldest: i64) -> rusqlite::Result<Option<i64>> {
    let mut select = connection.prepare_cached(
        "SELECT id, at_unix_ms FROM ledger WHERE at_unix_ms <= ?2
             AND (at_unix_ms >= ?1 OR kind IN ('earned', 'given') AND coalesce(expires_at_unix_ms, ?3) > ?2)
         ORDER BY id LIMIT 1",
    )?;
    let row = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let first: Option<(i64, i64)> = select.query_row([oldest, now, i64::MAX], row).optional()?;
    let Some((first, at)) = first else { return Ok(None) };
    let mut before = connection.prepare_cached(
        "SELECT id, at_unix_ms FROM ledger WHERE id < ?1 AND at_unix_ms <= ?2 ORDER BY id DESC LIMIT 1",
    )?;
    let before: Option<(i64, i64)> = before.query_row([first, now], row).optional()?;
    let Some((before, _)) = before.filter(|(_, before)| at.abs_diff(*before) <= now.abs_diff(oldest)) else {
        return Ok(None);
    };
    let least: i64 = connection.query_row("SELECT min(id) FROM ledger", [], |row| row.get(0))?;
    let end = before.saturating_add(1).min(least.saturating_add(ROWS_MAX));
    Ok(Some(first_unexpired_ahead(connection, now, end)?.unwrap_or(end)))
}

/// The first row before `end` that is stamped after `now` and may have given credits that have not expired. They were given no later
/// than the next row was entered that has a stamp of the past.
fn first_unexpired_ahead(connection: &Connection, now: i64, end: i64) -> rusqlite::Result<Option<i64>> {
    let mut select = connection.prepare_cached(
        "SELECT min(id) FROM (
             SELECT id, at_unix_ms, kind, expires_at_unix_ms,
                 min(CASE WHEN at_unix_ms <= ?2 THEN at_unix_ms END) OVER (ORDER BY id DESC) AS next_at
             FROM ledger WHERE id < ?1
         ) WHERE at_unix_ms > ?2 AND kind IN ('earned', 'given')
             AND coalesce(expires_at_unix_ms, ?3) - at_unix_ms + coalesce(
                 next_at, (SELECT at_unix_ms FROM ledger WHERE id >= ?1 AND at_unix_ms <= ?2 ORDER BY id LIMIT 1)
             ) > ?2",
    )?;
    select.query_row([end, now, i64::MAX], |row| row.get(0))
}
