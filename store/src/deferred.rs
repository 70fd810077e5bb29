//! The redo log of files that wait in the cache's pool for their own disk: a database of its own, beside the pool.
//!
//! A row is written before the step that it names is taken, so that whoever finds it after a crash knows what may have happened and can
//! go on or go back. What was acknowledged is durable, as in [`crate::Store`].

use crate::error::StoreErrorKind;
use crate::schema::Schema;
use crate::{Damage, StoreError, StoreNote, open};
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// "MnrD": tells it from the daemon's store.
const SCHEMA: Schema = Schema::new(
    0x4d6e_7244,
    &["
    CREATE TABLE deferral (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        tenant TEXT NOT NULL,
        pool TEXT NOT NULL,             -- temporary, stable
        source BLOB NOT NULL,           -- name in the pool
        directory BLOB NOT NULL,        -- where it is to go
        directory_device INTEGER NOT NULL,
        directory_inode INTEGER NOT NULL,
        name BLOB NOT NULL,             -- and under which name
        link_inode INTEGER NOT NULL,    -- of the link that stands there; 0 before there was one
        copy_inode INTEGER NOT NULL,    -- of the copy that takes its place; 0 before there was one
        user INTEGER NOT NULL,
        user_group INTEGER NOT NULL,
        user_groups TEXT NOT NULL,      -- JSON
        added_unix_ms INTEGER NOT NULL,
        is_asked_for INTEGER NOT NULL,
        step TEXT NOT NULL
    ) STRICT;
",
    "
    ALTER TABLE deferral ADD COLUMN cgroup TEXT NOT NULL DEFAULT '';    -- of whoever asked; empty where that is not known
    ALTER TABLE deferral ADD COLUMN counted_bytes INTEGER NOT NULL DEFAULT 0;
    CREATE TABLE moved (                -- what the daemon has not counted yet
        report TEXT NOT NULL,           -- the key
        tenant TEXT NOT NULL,           -- of the cache
        cgroup TEXT NOT NULL,
        device TEXT NOT NULL,           -- MAJ:MIN
        bytes INTEGER NOT NULL,
        PRIMARY KEY (report, device)
    ) STRICT, WITHOUT ROWID;
",
    "
    ALTER TABLE deferral ADD COLUMN copy_name BLOB NOT NULL DEFAULT x'';    -- what the copy is called until it is whole
    UPDATE deferral SET copy_name = CAST('.minerva-' || id || '.part' AS BLOB);
"],
    "files that waited in the pool stay there, and the links to them where they are; minerva-fs doctor lists them",
);

/// How far a file has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeferralStep {
    /// The link may not be at its place yet.
    Placing,
    /// It waits.
    Waiting,
    /// A copy may be there, in part, under [`Deferral::copy_name`].
    Copying,
    /// The copy is whole and durable, and may have taken the link's place.
    Switching,
    /// The link is gone or another's. What is in the pool stays there, and is nobody's but the tenant's.
    Left,
}

impl DeferralStep {
    const ALL: [Self; 5] = [Self::Placing, Self::Waiting, Self::Copying, Self::Switching, Self::Left];

    /// As it is kept and shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Placing => "placing",
            Self::Waiting => "waiting",
            Self::Copying => "copying",
            Self::Switching => "switching",
            Self::Left => "left",
        }
    }
}

/// A file in the pool whose place is elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deferral {
    /// Its number, never used again; 0 before it is kept.
    pub id: u64,
    /// Whose it is.
    pub tenant: String,
    /// In which pool: `temporary` or `stable`.
    pub pool: String,
    /// Its name there.
    pub source: OsString,
    /// The directory where it is to go.
    pub directory: PathBuf,
    /// That directory's device and inode, so that another at its path is not taken for it.
    pub directory_identity: (u64, u64),
    /// Its name there.
    pub name: OsString,
    /// The inode of the link that stands there.
    pub link_inode: u64,
    /// The inode of the copy.
    pub copy_inode: u64,
    /// What the copy is called until it is whole. No other file of any log has that name: logs of a host and a guest may lead to one
    /// directory. It says nothing of the file's own name, which may be as long as a name can be.
    pub copy_name: OsString,
    /// In whose name it was asked for: user, group and further groups.
    pub user: (u32, u32, Vec<u32>),
    /// When.
    pub added_unix_ms: i64,
    /// Somebody asked that it be moved now.
    pub is_asked_for: bool,
    /// How far it has come.
    pub step: DeferralStep,
    /// The cgroup of whoever asked, as the service writes it; empty where that is not known.
    pub cgroup: String,
    /// Its bytes up to here were counted for that group, however often its copy is begun anew. Only `RedoLog::count` changes it.
    pub counted_bytes: u64,
}

impl Deferral {
    /// Where it is to go.
    pub fn target(&self) -> PathBuf {
        self.directory.join(&self.name)
    }
}

/// The redo log.
pub struct RedoLog {
    path: PathBuf,
    pub(crate) connection: Connection,
}

impl RedoLog {
    /// What is wrong with the file, read to its end; nothing is moved.
    pub fn check(path: &Path) -> Result<Option<Damage>, StoreError> {
        open::check(path)
    }

    /// Opens the file, or makes it. It is read to its end; a damaged one is moved aside, and the notes tell.
    pub fn open(path: &Path) -> Result<(Self, Vec<StoreNote>), StoreError> {
        let mut notes = Vec::new();
        let connection = open::open(path, SCHEMA, &mut notes)?;
        Ok((Self { path: path.to_owned(), connection }, notes))
    }

    /// Keeps a new row, durable on return; its number.
    pub fn add(&self, row: &Deferral) -> Result<u64, StoreError> {
        let groups = serde_json::to_string(&row.user.2).unwrap_or_default();
        let sql = "INSERT INTO deferral (tenant, pool, source, directory, directory_device, directory_inode, name, link_inode,
            copy_inode, user, user_group, user_groups, added_unix_ms, is_asked_for, step, cgroup, copy_name)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)";
        let added = self.connection.execute(
            sql,
            params![
                row.tenant,
                row.pool,
                row.source.as_bytes(),
                row.directory.as_os_str().as_bytes(),
                signed(row.directory_identity.0),
                signed(row.directory_identity.1),
                row.name.as_bytes(),
                signed(row.link_inode),
                signed(row.copy_inode),
                row.user.0,
                row.user.1,
                groups,
                row.added_unix_ms,
                row.is_asked_for,
                row.step.as_str(),
                row.cgroup,
                row.copy_name.as_bytes(),
            ],
        );
        added.map_err(|error| self.failed("write to", error))?;
        Ok(self.connection.last_insert_rowid().unsigned_abs())
    }

    /// Keeps what changes of a row that is there, durable on return: its source, its name, its directory and
    /// the numbers of that, the inodes of link and copy, the wish, the step.
    pub fn keep(&self, row: &Deferral) -> Result<(), StoreError> {
        update(&self.connection, row).map_err(|error| self.failed("write to", error))
    }

    /// Somebody asked that these be moved now: all of it durable on return, or nothing. Nothing else of a row is written, because its step may
    /// have changed since it was read.
    pub fn ask_for(&self, ids: &[u64]) -> Result<(), StoreError> {
        let write = || {
            let transaction = self.connection.unchecked_transaction()?;
            for id in ids {
                transaction
                    .prepare_cached("UPDATE deferral SET is_asked_for = 1 WHERE id = ?1")?
                    .execute([signed(*id)])?;
            }
            transaction.commit()
        };
        write().map_err(|error| self.failed("write to", error))
    }

    /// Forgets a row; its number is not used again.
    pub fn forget(&self, id: u64) -> Result<(), StoreError> {
        let forgotten = self.connection.execute("DELETE FROM deferral WHERE id = ?1", [signed(id)]);
        forgotten.map(drop).map_err(|error| self.failed("write to", error))
    }

    /// All rows, by number.
    pub fn all(&self) -> Result<Vec<Deferral>, StoreError> {
        let read = || {
            let mut select = self.connection.prepare_cached("SELECT * FROM deferral ORDER BY id")?;
            select.query_map([], deferral)?.collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|error| self.failed("read from", error))
    }

    /// The number of the last row that was ever kept.
    pub fn last_id(&self) -> Result<u64, StoreError> {
        let sql = "SELECT seq FROM sqlite_sequence WHERE name = 'deferral'";
        let last = self.connection.query_row(sql, [], |row| row.get::<_, i64>(0)).optional();
        last.map(|last| last.unwrap_or(0).unsigned_abs()).map_err(|error| self.failed("read from", error))
    }

    pub(crate) fn failed(&self, operation: &'static str, error: rusqlite::Error) -> StoreError {
        let kind = StoreErrorKind::of(&error);
        StoreError { path: self.path.clone(), operation, kind, source: Some(Box::new(error)) }
    }
}

/// Changes what changes of a row.
pub(crate) fn update(connection: &Connection, row: &Deferral) -> rusqlite::Result<()> {
    let sql =
        "UPDATE deferral SET source = ?2, name = ?3, link_inode = ?4, copy_inode = ?5, is_asked_for = ?6, step = ?7,
        directory_device = ?8, directory_inode = ?9, directory = ?10 WHERE id = ?1";
    let kept = connection.execute(
        sql,
        params![
            signed(row.id),
            row.source.as_bytes(),
            row.name.as_bytes(),
            signed(row.link_inode),
            signed(row.copy_inode),
            row.is_asked_for,
            row.step.as_str(),
            signed(row.directory_identity.0),
            signed(row.directory_identity.1),
            row.directory.as_os_str().as_bytes()
        ],
    );
    // Of a row that is not there nothing would be kept.
    kept.and_then(|rows| if rows == 1 { Ok(()) } else { Err(rusqlite::Error::StatementChangedRows(rows)) })
}

/// SQLite's numbers have a sign; the bits are kept.
pub(crate) fn signed(number: u64) -> i64 {
    number.cast_signed()
}

fn deferral(row: &Row<'_>) -> rusqlite::Result<Deferral> {
    let number = |name: &str| row.get::<_, i64>(name).map(i64::cast_unsigned);
    let bytes = |name: &str| row.get::<_, Vec<u8>>(name);
    let groups: String = row.get("user_groups")?;
    let step: String = row.get("step")?;
    Ok(Deferral {
        id: number("id")?,
        tenant: row.get("tenant")?,
        pool: row.get("pool")?,
        source: OsString::from_vec(bytes("source")?),
        directory: PathBuf::from(OsStr::from_bytes(&bytes("directory")?)),
        directory_identity: (number("directory_device")?, number("directory_inode")?),
        name: OsString::from_vec(bytes("name")?),
        link_inode: number("link_inode")?,
        copy_inode: number("copy_inode")?,
        copy_name: OsString::from_vec(bytes("copy_name")?),
        // Fewer groups let it do less.
        user: (row.get("user")?, row.get("user_group")?, serde_json::from_str(&groups).unwrap_or_default()),
        added_unix_ms: row.get("added_unix_ms")?,
        is_asked_for: row.get("is_asked_for")?,
        // A word of a later version: the row is left as it is, and so is the file.
        step: DeferralStep::ALL.into_iter().find(|known| known.as_str() == step).unwrap_or(DeferralStep::Left),
        cgroup: row.get("cgroup")?,
        counted_bytes: number("counted_bytes")?,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{Deferral, DeferralStep, RedoLog, SCHEMA};
    use crate::{Store, StoreErrorKind, StoreNote};
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    use std::path::PathBuf;

    pub(crate) fn row() -> Deferral {
        Deferral {
            id: 0,
            tenant: "web".to_owned(),
            pool: "stable".to_owned(),
            source: "7".into(),
            directory: PathBuf::from("/data"),
            directory_identity: (u64::MAX, 2),
            name: OsString::from_vec(vec![0xff, b'a']),
            link_inode: 0,
            copy_inode: 0,
            copy_name: ".minerva-7.part".into(),
            user: (1000, 1000, vec![4, 24]),
            added_unix_ms: 5,
            is_asked_for: false,
            step: DeferralStep::Placing,
            cgroup: "{}".to_owned(),
            counted_bytes: 0,
        }
    }

    #[test]
    fn rows_are_found_again_as_they_were_kept_and_numbers_are_not_used_twice() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deferred.db");
        let (log, notes) = RedoLog::open(&path).unwrap();
        assert_eq!(notes, []);
        let mut kept = row();
        kept.id = log.add(&kept).unwrap();
        drop(log);
        let (log, _) = RedoLog::open(&path).unwrap();
        assert_eq!(log.all().unwrap(), [kept.clone()]);
        kept.step = DeferralStep::Switching;
        (kept.copy_inode, kept.is_asked_for, kept.name) = (9, true, "b".into());
        kept.directory_identity = (7, u64::MAX);
        kept.directory = PathBuf::from("/data/renamed");
        log.keep(&kept).unwrap();
        assert_eq!(log.all().unwrap(), [kept.clone()]);
        log.forget(kept.id).unwrap();
        assert!(log.keep(&kept).is_err() && log.count(&[], Some(&kept)).is_err(), "nothing of it would be kept");
        assert_eq!(log.all().unwrap(), []);
        assert!(log.add(&row()).unwrap() > kept.id);
        assert_eq!(log.last_id().unwrap(), kept.id + 1);
    }

    #[test]
    fn asking_for_files_takes_back_no_step_that_was_kept_since() {
        let folder = tempfile::tempdir().unwrap();
        let (log, _) = RedoLog::open(&folder.path().join("deferred.db")).unwrap();
        let mut rows = [row(), row(), row()];
        for row in &mut rows {
            row.id = log.add(row).unwrap();
        }
        (rows[1].step, rows[1].copy_inode) = (DeferralStep::Switching, 9);
        log.keep(&rows[1]).unwrap();
        log.ask_for(&[rows[0].id, rows[1].id]).unwrap();
        rows[..2].iter_mut().for_each(|row| row.is_asked_for = true);
        assert_eq!(log.all().unwrap(), rows);
    }

    #[test]
    fn a_row_of_an_earlier_version_keeps_the_name_that_its_copy_has() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deferred.db");
        let mut connection = rusqlite::Connection::open(&path).unwrap();
        SCHEMA.of_version(2).migrate(&mut connection, 0).unwrap();
        let sql = "INSERT INTO deferral (tenant, pool, source, directory, directory_device, directory_inode, name, link_inode,
            copy_inode, user, user_group, user_groups, added_unix_ms, is_asked_for, step)
            VALUES ('web', 'stable', x'37', x'2f', 1, 2, x'61', 3, 4, 0, 0, '[]', 5, 0, 'switching')";
        connection.execute(sql, []).unwrap();
        drop(connection);
        let (log, notes) = RedoLog::open(&path).unwrap();
        assert_eq!(notes, [StoreNote::Migrated { from: 2, to: 3 }]);
        assert_eq!(log.all().unwrap()[0].copy_name, ".minerva-1.part");
    }

    #[test]
    fn a_damaged_log_is_moved_aside_and_another_database_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deferred.db");
        std::fs::write(&path, [b'x'; 8192]).unwrap();
        let (_, notes) = RedoLog::open(&path).unwrap();
        let said = notes[0].to_string();
        assert!(
            matches!(notes[0], StoreNote::MovedAside { .. }) && said.contains("minerva-fs doctor lists them"),
            "{said}"
        );
        let store = folder.path().join("minerva.db");
        drop(Store::open(&store, "boot", crate::system_clock()).unwrap());
        let Err(error) = RedoLog::open(&store) else { panic!("the daemon's store was taken for a redo log") };
        assert!(matches!(error.kind, StoreErrorKind::NotOurs { .. }), "{error}");
    }
}
