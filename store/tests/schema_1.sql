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
INSERT INTO history VALUES ('group:batch', '', 8, 0, 1.5, 0.5, 4, 1800000000000);
INSERT INTO audit VALUES (1, 1800000000000, 'web', 'a', 'sda', '{"tenant":1,"device":{"major":8,"minor":0},"share":40,"factors":[]}', 'text');
PRAGMA application_id = 0x4d6e7276;
PRAGMA user_version = 1;
