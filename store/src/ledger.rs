//! The ledger of credits.
//!
//! It is append-only: the database itself refuses to change a row, or to delete one that was not carried forward (`carry`). A
//! balance is the sum of an account's rows and of what was carried forward, and since credits are used oldest first, what is held
//! are the newest rows that make up the balance; nothing else is kept of it. Times are the wall clock's here, and whatever it
//! does, credits last between no time and the time that they were given for.

use crate::Store;
use minerva_model::{Boost, CreditLot, Declaration, EntryKind, LedgerEntry, MicroCredits, Nanos, Purchase, RequestId};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::StoreError;

/// What became of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Posted {
    /// It is in the ledger.
    Fresh,
    /// The tenant has an entry of this request already; nothing was added.
    Known,
}

/// An entry, and what it buys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posting {
    /// The entry.
    pub entry: LedgerEntry,
    /// Of a purchase: the boost, and the key of the declaration that has it from now on. Both are durable together, so that
    /// no crash takes the price and not the boost.
    pub boost: Option<(String, Boost)>,
}

impl From<LedgerEntry> for Posting {
    fn from(entry: LedgerEntry) -> Self {
        Self { entry, boost: None }
    }
}

/// A row as it was entered, for `minerva-ctl audit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerRow {
    /// When, by the wall clock.
    pub at_unix_ms: i64,
    /// Whose.
    pub account: String,
    /// What it did.
    pub kind: EntryKind,
    /// How much.
    pub amount: MicroCredits,
    /// The request behind it.
    pub request: Option<RequestId>,
    /// When it expires, of what was added.
    pub expires_at_unix_ms: Option<i64>,
}

const KINDS: [EntryKind; 5] =
    [EntryKind::Earned, EntryKind::Given, EntryKind::Spent, EntryKind::Expired, EntryKind::Taken];

/// By the index of rows that have a request: of an account's rows most were earned, and have none. SQLite by itself takes the other
/// index, which has the order, and reads all of them.
const PURCHASES: &str = "SELECT request, slices, device, micro_credits FROM ledger INDEXED BY ledger_by_request
     WHERE account = ?1 AND boot = ?2 AND request IS NOT NULL AND kind = 'spent' AND tenant IN (?3, '')
     ORDER BY id DESC LIMIT ?4";
const PURCHASES_OF_KEY: &str = "SELECT request, slices, device, micro_credits FROM ledger INDEXED BY ledger_by_request
     WHERE account = ?1 AND boot = ?2 AND request = ?5 AND kind = 'spent' AND tenant IN (?3, '')
     ORDER BY id DESC LIMIT ?4";

impl Store {
    /// Enters what happened to credits, in the order given and in one transaction: durable on return, all of it or nothing.
    pub fn post(&mut self, postings: &[Posting]) -> Result<Vec<Posted>, StoreError> {
        let now = (self.clock)();
        self.transact(|connection| {
            // A purchase of which an earlier version did not say whose it was is taken for the one that is meant.
            let mut insert = connection.prepare_cached(
                "INSERT INTO ledger
                     (account, boot, kind, micro_credits, request, at_unix_ms, expires_at_unix_ms, tenant, slices, device)
                 SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10 WHERE NOT EXISTS (
                     SELECT 1 FROM ledger
                     WHERE account = ?1 AND boot = ?2 AND request = ?5 AND tenant = '' AND kind = 'spent'
                 ) ON CONFLICT DO NOTHING",
            )?;
            let mut posted = Vec::with_capacity(postings.len());
            for Posting { entry, boost } in postings {
                let expires_at = entry.expires_in.map(|left| now.saturating_add_unsigned(left.0 / 1_000_000));
                let added = insert.execute(params![
                    entry.account,
                    self.scope(&entry.account),
                    entry.kind.as_str(),
                    i64::try_from(entry.amount.0).unwrap_or(i64::MAX),
                    entry.request.as_ref().map(|id| id.0.as_str()),
                    now,
                    expires_at,
                    boost.as_ref().map_or("", |(tenant, _)| tenant.as_str()),
                    boost.as_ref().map(|(_, boost)| boost.slices_left),
                    boost.as_ref().and_then(|(_, boost)| boost.device).map(|device| device.to_string()),
                ])?;
                if let (1, Some((key, boost))) = (added, boost) {
                    self.add_boost(connection, key, boost)?;
                }
                posted.push(if added == 1 { Posted::Fresh } else { Posted::Known });
            }
            Ok(posted)
        })
    }

    /// Adds a boost to what a tenant declared. What cannot be read of that is as if it had never been.
    fn add_boost(&self, connection: &Connection, key: &str, boost: &Boost) -> rusqlite::Result<()> {
        let mut select =
            connection.prepare_cached("SELECT declaration FROM declaration WHERE key = ?1 AND boot = ?2")?;
        let text = select.query_row([key, &self.boot_id], |row| row.get::<_, String>(0)).optional()?;
        let declared = text.and_then(|text| serde_json::from_str::<Declaration>(&text).ok());
        let mut declared = declared.unwrap_or_else(|| Declaration { key: key.to_owned(), ..Declaration::default() });
        declared.boosts.push(boost.clone());
        let text =
            serde_json::to_string(&declared).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        let mut insert = connection.prepare_cached("INSERT OR REPLACE INTO declaration VALUES (?1, ?2, ?3)")?;
        insert.execute([key, &self.boot_id, &text]).map(drop)
    }

    /// What an account holds by its rows alone. Below zero only if something other than Minerva wrote rows.
    pub fn balance_micro_credits(&self, account: &str) -> Result<i64, StoreError> {
        let read = || {
            let mut select = self.connection.prepare_cached(
                "SELECT coalesce(sum(CASE WHEN kind IN ('earned', 'given') THEN micro_credits ELSE -micro_credits END), 0)
                     + coalesce((SELECT micro_credits FROM ledger_carried WHERE account = ?1 AND boot = ?2), 0)
                 FROM ledger WHERE account = ?1 AND boot = ?2",
            )?;
            select.query_row([account, self.scope(account)], |row| row.get(0))
        };
        read().map_err(|error| self.failed("read from", error))
    }

    /// What an account holds, oldest first, with the time that is left to each lot.
    pub fn lots(&self, account: &str) -> Result<Vec<CreditLot>, StoreError> {
        let now = (self.clock)();
        let mut left = u64::try_from(self.balance_micro_credits(account)?).unwrap_or(0);
        let mut read = || {
            let mut select = self.connection.prepare_cached(
                "SELECT micro_credits, at_unix_ms, expires_at_unix_ms FROM ledger
                 WHERE account = ?1 AND boot = ?2 AND kind IN ('earned', 'given') ORDER BY id DESC",
            )?;
            let mut rows = select.query([account, self.scope(account)])?;
            let mut lots = Vec::new();
            while left > 0 {
                let Some(row) = rows.next()? else { break };
                let (amount, at, expires_at): (i64, i64, Option<i64>) = (row.get(0)?, row.get(1)?, row.get(2)?);
                let amount = u64::try_from(amount).unwrap_or(0).min(left);
                left -= amount;
                let lifetime = expires_at.unwrap_or(i64::MAX).saturating_sub(at).max(0);
                // A wall clock that went back must not make credits last longer than they were given for.
                let remaining = expires_at.unwrap_or(i64::MAX).saturating_sub(now).clamp(0, lifetime);
                let expires_in = Nanos::from_millis(u64::try_from(remaining).unwrap_or(0));
                lots.push(CreditLot { amount: MicroCredits(amount), expires_in });
            }
            if left > 0 {
                // Carried forward, and only what has expired is.
                lots.push(CreditLot { amount: MicroCredits(left), expires_in: Nanos::ZERO });
            }
            lots.reverse();
            Ok(lots)
        };
        read().map_err(|error| self.failed("read from", error))
    }

    /// What a tenant of an account bought, the newest first and at most `count_max`, so that nothing is bought twice. `tenant`
    /// is the key of its declaration.
    pub fn purchases(&self, account: &str, tenant: &str, count_max: u32) -> Result<Vec<Purchase>, StoreError> {
        self.bought(account, tenant, None, count_max)
    }

    /// What a tenant of an account bought under a key.
    pub fn purchase(&self, account: &str, tenant: &str, request: &RequestId) -> Result<Option<Purchase>, StoreError> {
        Ok(self.bought(account, tenant, Some(request), 1)?.pop())
    }

    fn bought(
        &self,
        account: &str,
        tenant: &str,
        request: Option<&RequestId>,
        count_max: u32,
    ) -> Result<Vec<Purchase>, StoreError> {
        let read = || {
            let scope = self.scope(account);
            let Some(request) = request else {
                let mut select = self.connection.prepare_cached(PURCHASES)?;
                let rows = select.query_map(params![account, scope, tenant, count_max], purchase)?;
                return rows.collect::<rusqlite::Result<Vec<_>>>();
            };
            let mut select = self.connection.prepare_cached(PURCHASES_OF_KEY)?;
            let rows = select.query_map(params![account, scope, tenant, count_max, request.0], purchase)?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|error| self.failed("read from", error))
    }

    /// The latest rows of one account, or of all and of every boot: since an instant, the oldest first and at most
    /// `count_max`.
    pub fn ledger(
        &self,
        account: Option<&str>,
        since_unix_ms: i64,
        count_max: u32,
    ) -> Result<Vec<LedgerRow>, StoreError> {
        let (condition, scope) = match account {
            Some(account) => ("account = ?1 AND boot = ?2", self.scope(account)),
            None => ("?1 = ?2", ""),
        };
        self.ledger_where(condition, [account.unwrap_or(""), scope], since_unix_ms, count_max)
    }

    /// The same of an account as people know it: a group, or the path of a cgroup, whatever its directory's number and in every boot.
    pub fn ledger_as_shown(
        &self,
        account: &str,
        since_unix_ms: i64,
        count_max: u32,
    ) -> Result<Vec<LedgerRow>, StoreError> {
        let (condition, [first, last]) = as_shown(account);
        self.ledger_where(condition, [&first, &last], since_unix_ms, count_max)
    }

    fn ledger_where(
        &self,
        condition: &str,
        values: [&str; 2],
        since_unix_ms: i64,
        count_max: u32,
    ) -> Result<Vec<LedgerRow>, StoreError> {
        let read = || {
            let mut select = self.connection.prepare_cached(&format!(
                "SELECT at_unix_ms, kind, micro_credits, request, expires_at_unix_ms, account FROM ledger
                 WHERE {condition} AND at_unix_ms >= ?3 ORDER BY id DESC LIMIT ?4"
            ))?;
            let rows = select.query_map(params![values[0], values[1], since_unix_ms, count_max], ledger_row)?;
            let mut rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
            rows.reverse();
            Ok(rows)
        };
        read().map_err(|error| self.failed("read from", error))
    }
}

/// The condition for rows of an account as people know it, and what it compares with: the first part is a range, for the indices that begin
/// with accounts, and the second leaves out paths that go on behind a `#` of their own.
pub(crate) fn as_shown(account: &str) -> (&'static str, [String; 2]) {
    if account.starts_with("group:") {
        return ("account = ?1", [account.to_owned(), String::new()]);
    }
    // '$' is the character behind '#'.
    let condition = "account >= ?1 AND account < ?2 AND rtrim(account, '0123456789') = ?1";
    (condition, [format!("cgroup:{account}#"), format!("cgroup:{account}$")])
}

fn purchase(row: &Row<'_>) -> rusqlite::Result<Purchase> {
    let (device, price): (Option<String>, i64) = (row.get(2)?, row.get(3)?);
    Ok(Purchase {
        request: row.get(0).map(RequestId)?,
        slices: row.get(1)?,
        device: device.and_then(|text| text.parse().ok()),
        price: MicroCredits(u64::try_from(price).unwrap_or(0)),
    })
}

fn ledger_row(row: &Row<'_>) -> rusqlite::Result<LedgerRow> {
    let (kind, amount): (String, i64) = (row.get(1)?, row.get(2)?);
    let known = KINDS.into_iter().find(|known| known.as_str() == kind);
    Ok(LedgerRow {
        at_unix_ms: row.get(0)?,
        kind: known.ok_or_else(|| rusqlite::Error::InvalidColumnName(kind))?,
        amount: MicroCredits(u64::try_from(amount).unwrap_or(0)),
        request: row.get::<_, Option<String>>(3)?.map(RequestId),
        expires_at_unix_ms: row.get(4)?,
        account: row.get(5)?,
    })
}

#[cfg(test)]
mod tests {
    use super::{PURCHASES, PURCHASES_OF_KEY, Posting};
    use crate::Store;
    use minerva_model::{Boost, EntryKind, EntryNumber, LedgerEntry, MicroCredits, Nanos, RequestId};
    use rusqlite::StatementStatus;

    const ACCOUNT: &str = "group:g";

    fn entry(kind: EntryKind, request: Option<RequestId>) -> LedgerEntry {
        let expires_in = kind.adds().then_some(Nanos::from_secs(3600));
        let amount = MicroCredits::credits(1);
        LedgerEntry { number: EntryNumber(0), account: ACCOUNT.to_owned(), kind, amount, expires_in, request }
    }

    #[test]
    fn what_a_tenant_bought_is_found_without_reading_what_its_account_earned() {
        let directory = tempfile::tempdir().expect("a directory");
        let open = Store::open(&directory.path().join("db"), "boot", Box::new(|| 0));
        let mut store = open.expect("opens").0;
        let request = RequestId("k".to_owned());
        let boost = Boost { request: request.clone(), device: None, slices_left: 3 };
        let bought = Posting {
            entry: entry(EntryKind::Spent, Some(request.clone())),
            boost: Some(("cgroup:a#1".to_owned(), boost)),
        };
        let earned = (0..10_000).map(|_| Posting::from(entry(EntryKind::Earned, None)));
        store.post(&earned.chain([bought]).collect::<Vec<_>>()).expect("written");
        let all = store.purchases(ACCOUNT, "cgroup:a#1", 9).expect("read");
        let one = store.purchase(ACCOUNT, "cgroup:a#1", &request).expect("read");
        assert_eq!((all.len(), all.first()), (1, one.as_ref()));
        for sql in [PURCHASES, PURCHASES_OF_KEY] {
            let steps = store.connection.prepare_cached(sql).expect("cached").get_status(StatementStatus::VmStep);
            assert!((1..200).contains(&steps), "{steps} steps: {sql}");
        }
    }
}
