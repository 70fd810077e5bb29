CREATE TABLE history (
    key TEXT NOT NULL,
    boot TEXT NOT NULL,
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
    decision TEXT NOT NULL,
    text TEXT NOT NULL
) STRICT;
CREATE INDEX audit_of_tenant ON audit (tenant, at_unix_ms);
CREATE INDEX audit_by_time ON audit (at_unix_ms);
CREATE TABLE ledger (
    id INTEGER PRIMARY KEY,
    account TEXT NOT NULL,
    boot TEXT NOT NULL,
    kind TEXT NOT NULL,
    micro_credits INTEGER NOT NULL CHECK (micro_credits >= 0),
    request TEXT,
    at_unix_ms INTEGER NOT NULL,
    expires_at_unix_ms INTEGER
) STRICT;
CREATE UNIQUE INDEX ledger_by_request ON ledger (account, boot, request) WHERE request IS NOT NULL;
CREATE INDEX ledger_of_account ON ledger (account, boot, id);
CREATE TRIGGER ledger_is_not_changed BEFORE UPDATE ON ledger BEGIN SELECT raise(ABORT, 'append-only'); END;
CREATE TRIGGER ledger_is_not_cut BEFORE DELETE ON ledger BEGIN SELECT raise(ABORT, 'append-only'); END;
CREATE TABLE declaration (
    key TEXT NOT NULL,
    boot TEXT NOT NULL,
    declaration TEXT NOT NULL,
    PRIMARY KEY (key, boot)
) STRICT, WITHOUT ROWID;
CREATE TABLE bandwidth (
    major INTEGER NOT NULL,
    minor INTEGER NOT NULL,
    boot TEXT NOT NULL,
    access TEXT NOT NULL,
    bytes_per_second REAL NOT NULL,
    measured_seconds REAL NOT NULL,
    true_at_unix_ms INTEGER NOT NULL,
    PRIMARY KEY (major, minor, boot, access)
) STRICT, WITHOUT ROWID;
CREATE TABLE claim (
    key TEXT NOT NULL,
    boot TEXT NOT NULL,
    claim TEXT NOT NULL,
    PRIMARY KEY (key, boot)
) STRICT, WITHOUT ROWID;
CREATE TABLE participation (
    id INTEGER PRIMARY KEY,
    at_unix_ms INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    account TEXT NOT NULL,
    kind TEXT NOT NULL,
    request TEXT NOT NULL,
    text TEXT NOT NULL
) STRICT;
CREATE INDEX participation_of_tenant ON participation (tenant, id);
CREATE INDEX participation_of_account ON participation (account, id);
CREATE INDEX participation_by_time ON participation (at_unix_ms);
INSERT INTO ledger VALUES (1, 'group:g', '', 'earned', 30000000, NULL, 1800000000000, 1800003600000);
INSERT INTO ledger VALUES (2, 'group:g', '', 'spent', 25000000, 'k', 1800000000000, NULL);
PRAGMA application_id = 0x4d6e7276;
PRAGMA user_version = 3;
