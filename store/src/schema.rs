//! The tables, and how an older file becomes a newer one.

use rusqlite::{Connection, TransactionBehavior};

/// "Mnrv": tells our database from another program's.
pub(crate) const APPLICATION_ID: i64 = 0x4d6e_7276;

/// Step `n` brings a file of version `n` to `n + 1`. Steps are never edited, only added.
const MIGRATIONS: [&str; 11] = [
    "
    CREATE TABLE history (
        key TEXT NOT NULL,
        boot TEXT NOT NULL,             -- empty: valid in every boot
        major INTEGER NOT NULL,
        minor INTEGER NOT NULL,
        recent_bytes_per_second REAL NOT NULL,
        long_term_bytes_per_second REAL NOT NULL,
        priority_group INTEGER NOT NULL,
        true_at_unix_ms INTEGER NOT NULL,
        PRIMARY KEY (key, boot, major, minor)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE audit (
        id INTEGER PRIMARY KEY,
        at_unix_ms INTEGER NOT NULL,
        tenant TEXT NOT NULL,
        cgroup TEXT NOT NULL,
        device TEXT NOT NULL,
        decision TEXT NOT NULL,         -- JSON
        text TEXT NOT NULL
    ) STRICT;
    CREATE INDEX audit_of_tenant ON audit (tenant, at_unix_ms);
    CREATE INDEX audit_by_time ON audit (at_unix_ms);
",
    "
    CREATE TABLE ledger (               -- append-only: rows are never changed, and never deleted
        id INTEGER PRIMARY KEY,
        account TEXT NOT NULL,
        boot TEXT NOT NULL,             -- empty: valid in every boot
        kind TEXT NOT NULL,             -- earned, given, spent, expired, taken
        micro_credits INTEGER NOT NULL CHECK (micro_credits >= 0),
        request TEXT,                   -- the idempotency key
        at_unix_ms INTEGER NOT NULL,
        expires_at_unix_ms INTEGER      -- of what was added
    ) STRICT;
    CREATE UNIQUE INDEX ledger_by_request ON ledger (account, boot, request) WHERE request IS NOT NULL;
    CREATE INDEX ledger_of_account ON ledger (account, boot, id);
    CREATE TRIGGER ledger_is_not_changed BEFORE UPDATE ON ledger BEGIN SELECT raise(ABORT, 'append-only'); END;
    CREATE TRIGGER ledger_is_not_cut BEFORE DELETE ON ledger BEGIN SELECT raise(ABORT, 'append-only'); END;
    CREATE TABLE declaration (
        key TEXT NOT NULL,
        boot TEXT NOT NULL,
        declaration TEXT NOT NULL,      -- JSON
        PRIMARY KEY (key, boot)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE bandwidth (
        major INTEGER NOT NULL,
        minor INTEGER NOT NULL,
        boot TEXT NOT NULL,             -- a number is another disk after a boot
        access TEXT NOT NULL,
        bytes_per_second REAL NOT NULL,
        measured_seconds REAL NOT NULL,
        true_at_unix_ms INTEGER NOT NULL,
        PRIMARY KEY (major, minor, boot, access)
    ) STRICT, WITHOUT ROWID;
",
    "
    CREATE TABLE claim (                -- the level that a tenant set, and its schedule
        key TEXT NOT NULL,
        boot TEXT NOT NULL,
        claim TEXT NOT NULL,            -- JSON
        PRIMARY KEY (key, boot)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE participation (        -- what tenants asked for and were answered
        id INTEGER PRIMARY KEY,
        at_unix_ms INTEGER NOT NULL,
        tenant TEXT NOT NULL,
        account TEXT NOT NULL,
        kind TEXT NOT NULL,             -- granted, refused, ready
        request TEXT NOT NULL,          -- the idempotency key; empty when there is none
        text TEXT NOT NULL
    ) STRICT;
    CREATE INDEX participation_of_tenant ON participation (tenant, id);
    CREATE INDEX participation_of_account ON participation (account, id);
    CREATE INDEX participation_by_time ON participation (at_unix_ms);
",
    "
    -- Of a purchase: the key of the declaration of the tenant that bought, within which the request is unique; empty where an
    -- earlier version did not say. And what it bought, on which disk, as MAJ:MIN.
    ALTER TABLE ledger ADD COLUMN tenant TEXT NOT NULL DEFAULT '';
    ALTER TABLE ledger ADD COLUMN slices INTEGER;
    ALTER TABLE ledger ADD COLUMN device TEXT;
    DROP INDEX ledger_by_request;
    CREATE UNIQUE INDEX ledger_by_request ON ledger (account, boot, request, tenant) WHERE request IS NOT NULL;
    CREATE TABLE ledger_carried (       -- what an account's rows came to that were deleted because of their age
        account TEXT NOT NULL,
        boot TEXT NOT NULL,
        micro_credits INTEGER NOT NULL CHECK (micro_credits >= 0),
        through_id INTEGER NOT NULL,    -- no row up to this one counts any more
        PRIMARY KEY (account, boot)
    ) STRICT, WITHOUT ROWID;
    DROP TRIGGER ledger_is_not_cut;
    CREATE TRIGGER ledger_is_not_cut BEFORE DELETE ON ledger WHEN NOT EXISTS (
        SELECT 1 FROM ledger_carried WHERE account = OLD.account AND boot = OLD.boot AND through_id >= OLD.id
    ) BEGIN SELECT raise(ABORT, 'append-only'); END;
",
    "
    ALTER TABLE audit ADD COLUMN account TEXT NOT NULL DEFAULT '';  -- empty where an earlier version did not say
    CREATE INDEX audit_of_account ON audit (account, id);
    CREATE TABLE audit_rows (           -- how many rows of either audit an account has
        kind TEXT NOT NULL,             -- the table
        account TEXT NOT NULL,
        rows INTEGER NOT NULL,
        PRIMARY KEY (kind, account)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX audit_rows_most ON audit_rows (kind, rows);
    INSERT INTO audit_rows SELECT 'audit', account, count(*) FROM audit GROUP BY account;
    INSERT INTO audit_rows SELECT 'participation', account, count(*) FROM participation GROUP BY account;
    CREATE TRIGGER audit_is_counted AFTER INSERT ON audit BEGIN
        INSERT INTO audit_rows VALUES ('audit', NEW.account, 1) ON CONFLICT DO UPDATE SET rows = rows + 1;
    END;
    CREATE TRIGGER participation_is_counted AFTER INSERT ON participation BEGIN
        INSERT INTO audit_rows VALUES ('participation', NEW.account, 1) ON CONFLICT DO UPDATE SET rows = rows + 1;
    END;
    CREATE TRIGGER audit_is_discounted AFTER DELETE ON audit BEGIN
        UPDATE audit_rows SET rows = rows - 1 WHERE kind = 'audit' AND account = OLD.account;
        DELETE FROM audit_rows WHERE kind = 'audit' AND account = OLD.account AND rows <= 0;
    END;
    CREATE TRIGGER participation_is_discounted AFTER DELETE ON participation BEGIN
        UPDATE audit_rows SET rows = rows - 1 WHERE kind = 'participation' AND account = OLD.account;
        DELETE FROM audit_rows WHERE kind = 'participation' AND account = OLD.account AND rows <= 0;
    END;
",
    "ALTER TABLE history ADD COLUMN disk_part REAL NOT NULL DEFAULT 0;",
    "
    CREATE TABLE history_by_disk (
        key TEXT NOT NULL,
        boot TEXT NOT NULL,             -- empty: valid in every boot
        disk TEXT NOT NULL,             -- what it says of itself; its number, as MAJ:MIN, where that is nothing or not known
        major INTEGER NOT NULL,         -- its number when the row was written
        minor INTEGER NOT NULL,
        recent_bytes_per_second REAL NOT NULL,
        long_term_bytes_per_second REAL NOT NULL,
        priority_group INTEGER NOT NULL,
        true_at_unix_ms INTEGER NOT NULL,
        disk_part REAL NOT NULL,
        PRIMARY KEY (key, boot, disk)
    ) STRICT, WITHOUT ROWID;
    INSERT INTO history_by_disk SELECT key, boot, major || ':' || minor, major, minor, recent_bytes_per_second,
        long_term_bytes_per_second, priority_group, true_at_unix_ms, disk_part FROM history;
    DROP TABLE history;
    ALTER TABLE history_by_disk RENAME TO history;
",
    "
    CREATE TABLE background (           -- work that is put off
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL UNIQUE,
        queue TEXT NOT NULL             -- JSON
    ) STRICT;
",
    "
    CREATE TABLE job_run (              -- batch jobs that ended
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL,
        bytes INTEGER NOT NULL,         -- read and written in all
        run TEXT NOT NULL               -- JSON
    ) STRICT;
    CREATE INDEX job_run_of_name ON job_run (name, id);
",
    "
    CREATE TABLE calibration (          -- what disks serve to others than background work
        disk TEXT PRIMARY KEY,
        calibration TEXT NOT NULL       -- JSON
    ) STRICT, WITHOUT ROWID;
",
    "
    ALTER TABLE job_run ADD COLUMN tenant TEXT NOT NULL DEFAULT '';
    UPDATE job_run SET tenant = coalesce(json_extract(run, '$.tenant_name'), '') WHERE json_valid(run);
    CREATE INDEX job_run_of_tenant ON job_run (tenant, id);
",
];

/// A database of ours: the number that tells it from another program's, and the steps that bring it to what this program writes.
#[derive(Clone, Copy)]
pub(crate) struct Schema {
    application_id: i64,
    steps: &'static [&'static str],
    /// It is read through at every opening, however large: nobody does it later.
    pub(crate) is_always_checked: bool,
    /// What is lost where a damaged file is replaced, for people.
    pub(crate) loss: &'static str,
}

/// The daemon's store.
pub(crate) const STORE: Schema = Schema {
    application_id: APPLICATION_ID,
    steps: &MIGRATIONS,
    is_always_checked: false,
    loss: "histories, credits, levels, background work and runs of jobs are lost",
};

impl Schema {
    /// A database of this number and these steps, the loss of which means `loss`. It is read through at every opening.
    pub(crate) const fn new(application_id: i64, steps: &'static [&'static str], loss: &'static str) -> Self {
        Self { application_id, steps, is_always_checked: true, loss }
    }

    /// Whether a file is one of these.
    pub(crate) fn is_of(self, identity: &Identity) -> bool {
        identity.is_empty || identity.application_id == self.application_id
    }

    /// The version that this program writes.
    pub(crate) const fn version(self) -> i64 {
        self.steps.len() as i64
    }

    /// As an earlier version of this program had it.
    #[cfg(test)]
    pub(crate) fn of_version(self, version: usize) -> Self {
        Self { steps: &self.steps[..version], ..self }
    }

    /// Brings a file from `version` to [`Schema::version`] in one transaction.
    pub(crate) fn migrate(self, connection: &mut Connection, version: i64) -> rusqlite::Result<()> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for step in self.steps.iter().skip(usize::try_from(version).unwrap_or(0)) {
            transaction.execute_batch(step)?;
        }
        transaction.pragma_update(None, "application_id", self.application_id)?;
        transaction.pragma_update(None, "user_version", self.version())?;
        transaction.commit()
    }
}

/// What a file says of itself.
pub(crate) struct Identity {
    pub(crate) application_id: i64,
    pub(crate) version: i64,
    pub(crate) is_empty: bool,
}

pub(crate) fn identity(connection: &Connection) -> rusqlite::Result<Identity> {
    Ok(Identity {
        application_id: connection.pragma_query_value(None, "application_id", |row| row.get(0))?,
        version: connection.pragma_query_value(None, "user_version", |row| row.get(0))?,
        is_empty: connection.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))?,
    })
}
