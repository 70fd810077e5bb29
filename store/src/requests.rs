//! The audit of what tenants asked for and were answered.

use crate::Store;
use crate::error::StoreError;
use crate::ledger::as_shown;
use rusqlite::{Row, params};

/// How a request was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerKind {
    /// It was granted, if only later.
    Granted,
    /// It was refused.
    Refused,
    /// It waited, and was called back.
    Ready,
}

impl AnswerKind {
    const ALL: [Self; 3] = [Self::Granted, Self::Refused, Self::Ready];

    /// The word in the store and in every output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Granted => "granted",
            Self::Refused => "refused",
            Self::Ready => "ready",
        }
    }
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestRow {
    /// When, by the wall clock.
    pub at_unix_ms: i64,
    /// The tenant's name; empty when nobody could tell who asked.
    pub tenant_name: String,
    /// [`minerva_model::Tenant::history_key`]; empty with the name.
    pub account: String,
    /// How it was answered.
    pub kind: AnswerKind,
    /// The request's key; empty when it has none.
    pub request: String,
    /// What was asked for and how it was answered, as one line.
    pub text: String,
}

/// Whose rows are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Everyone's.
    All,
    /// Those of tenants of this name.
    Tenant(String),
    /// Those of this account as people know it: a group, or the path of a cgroup.
    Account(String),
}

impl Store {
    /// Stores answers in one transaction, durable on return.
    pub fn audit_requests(&mut self, rows: &[RequestRow]) -> Result<(), StoreError> {
        self.transact(|connection| {
            let mut insert = connection.prepare_cached(
                "INSERT INTO participation (at_unix_ms, tenant, account, kind, request, text) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?;
            for row in rows {
                let kind = row.kind.as_str();
                insert.execute(params![row.at_unix_ms, row.tenant_name, row.account, kind, row.request, row.text])?;
            }
            Ok(())
        })
    }

    /// The latest answers since an instant, the oldest first and at most `count_max`.
    pub fn requests(&self, whose: &Whose, since_unix_ms: i64, count_max: u32) -> Result<Vec<RequestRow>, StoreError> {
        let (condition, [first, last]) = match whose {
            Whose::All => ("?1 = ?2", Default::default()),
            Whose::Tenant(name) => ("tenant = ?1", [name.clone(), String::new()]),
            Whose::Account(account) => as_shown(account),
        };
        let read = || {
            let mut select = self.connection.prepare_cached(&format!(
                "SELECT at_unix_ms, tenant, account, kind, request, text FROM participation
                 WHERE {condition} AND at_unix_ms >= ?3 ORDER BY id DESC LIMIT ?4"
            ))?;
            let rows = select.query_map(params![first, last, since_unix_ms, count_max], request_row)?;
            let mut rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
            rows.reverse();
            Ok(rows)
        };
        read().map_err(|error| self.failed("read from", error))
    }

    /// The accounts of tenants of a name, as far as answers to them are kept.
    pub fn accounts_of(&self, tenant_name: &str) -> Result<Vec<String>, StoreError> {
        let read = || {
            let mut select =
                self.connection.prepare_cached("SELECT DISTINCT account FROM participation WHERE tenant = ?1")?;
            let rows = select.query_map([tenant_name], |row| row.get(0))?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|error| self.failed("read from", error))
    }
}

fn request_row(row: &Row<'_>) -> rusqlite::Result<RequestRow> {
    let kind: String = row.get(3)?;
    let known = AnswerKind::ALL.into_iter().find(|known| known.as_str() == kind);
    Ok(RequestRow {
        at_unix_ms: row.get(0)?,
        tenant_name: row.get(1)?,
        account: row.get(2)?,
        kind: known.ok_or_else(|| rusqlite::Error::InvalidColumnName(kind))?,
        request: row.get(4)?,
        text: row.get(5)?,
    })
}
