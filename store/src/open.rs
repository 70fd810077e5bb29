//! Opening: the pragmas, the check, and what is done with a damaged file.

use crate::error::{StoreError, StoreErrorKind};
use crate::schema::{self, Schema};
use rusqlite::Connection;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long another process (a backup, a curious reader) may hold the file before an operation fails.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

/// Pages of log at which a commit moves it into the file by itself: 32 MiB. The driver calls [`crate::Store::checkpoint`]
/// between slices long before, because a checkpoint inside a commit made the 99th percentile of commits 30 ms.
const CHECKPOINT_PAGES_MAX: i64 = 8192;

/// A file up to this size is read through when it is opened: that takes some tenths of a second at most. One with a million rows of
/// audit has hundreds of megabytes, and nobody is to wait for that.
const CHECKED_BYTES_MAX: u64 = 16 << 20;

/// What is wrong with a file, as SQLite says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage(pub String);

/// Something that happened while opening, for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreNote {
    /// The file was damaged: it lies at `moved_to` now, and a new one took its place.
    MovedAside {
        /// The store.
        path: PathBuf,
        /// Where the damaged file is now.
        moved_to: PathBuf,
        /// What was wrong with it.
        damage: String,
        /// What that means.
        loss: &'static str,
    },
    /// The file is large and was not read through: [`crate::Store::check`] does that, beside whoever uses it.
    Unchecked,
    /// The tables were brought to a newer version.
    Migrated {
        /// Before.
        from: i64,
        /// Now.
        to: i64,
    },
}

impl fmt::Display for StoreNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MovedAside { path, moved_to, damage, loss } => write!(
                f,
                "the store {} is damaged ({damage}); it was moved to {}, and a new one was made: {loss}",
                path.display(),
                moved_to.display()
            ),
            Self::Unchecked => write!(f, "the store is large: it is used at once, and checked beside that"),
            Self::Migrated { from, to } => write!(f, "the store's schema went from version {from} to {to}"),
        }
    }
}

/// Opens or makes the file, ready to be written to.
pub(crate) fn open(path: &Path, schema: Schema, notes: &mut Vec<StoreNote>) -> Result<Connection, StoreError> {
    // What cannot be looked at, the connection says better.
    let bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let is_checked = schema.is_always_checked || bytes <= CHECKED_BYTES_MAX;
    let (connection, migrated) = match open_as_it_is(path, schema, is_checked) {
        Ok(opened) => {
            notes.extend((!is_checked).then_some(StoreNote::Unchecked));
            opened
        }
        // Also where only a migration came upon it.
        Err(Refused::Damaged(damage)) => {
            notes.push(note_aside(path, Damage(damage), schema.loss)?);
            open_as_it_is(path, schema, true).map_err(|refused| refused.into_error(path))?
        }
        Err(refused) => return Err(refused.into_error(path)),
    };
    notes.extend(migrated);
    Ok(connection)
}

/// Opens or makes the file, whatever is in it; whether its tables were brought to a newer version.
fn open_as_it_is(path: &Path, schema: Schema, is_checked: bool) -> Result<(Connection, Option<StoreNote>), Refused> {
    let mut connection = if is_checked { connect_checked(path) } else { connect(path) }?;
    let identity = schema::identity(&connection)?;
    if !schema.is_of(&identity) {
        return Err(Refused::Unfit(StoreErrorKind::NotOurs { application_id: identity.application_id }));
    }
    if identity.version > schema.version() {
        let kind = StoreErrorKind::NewerSchema { found: identity.version, known: schema.version() };
        return Err(Refused::Unfit(kind));
    }
    // Only now, when the file is known to be ours, is anything in it changed.
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES_MAX)?;
    if identity.version == schema.version() {
        return Ok((connection, None));
    }
    schema.migrate(&mut connection, identity.version)?;
    let note = StoreNote::Migrated { from: identity.version, to: schema.version() };
    Ok((connection, (!identity.is_empty).then_some(note)))
}

/// Why a file could not be opened as it is.
enum Refused {
    Damaged(String),
    /// It is not for this program.
    Unfit(StoreErrorKind),
    Failed(rusqlite::Error),
}

impl Refused {
    fn into_error(self, path: &Path) -> StoreError {
        match self {
            Self::Damaged(damage) => failed(path, StoreErrorKind::Damaged, Some(damage.into())),
            Self::Unfit(kind) => failed(path, kind, None),
            Self::Failed(error) => failed(path, StoreErrorKind::of(&error), Some(Box::new(error))),
        }
    }
}

impl From<rusqlite::Error> for Refused {
    fn from(error: rusqlite::Error) -> Self {
        match StoreErrorKind::of(&error) {
            StoreErrorKind::Damaged => Self::Damaged(error.to_string()),
            _ => Self::Failed(error),
        }
    }
}

/// What is wrong with the file, read to its end.
pub(crate) fn check(path: &Path) -> Result<Option<Damage>, StoreError> {
    match connect_checked(path) {
        Ok(_) => Ok(None),
        Err(Refused::Damaged(damage)) => Ok(Some(Damage(damage))),
        Err(refused) => Err(refused.into_error(path)),
    }
}

/// Moves the damaged file aside, and says so.
pub(crate) fn note_aside(path: &Path, Damage(damage): Damage, loss: &'static str) -> Result<StoreNote, StoreError> {
    let moved_to = move_aside(path).map_err(|error| failed(path, StoreErrorKind::Damaged, Some(Box::new(error))))?;
    Ok(StoreNote::MovedAside { path: path.to_owned(), moved_to, damage, loss })
}

/// A connection to what is a database by its first page.
fn connect(path: &Path) -> Result<Connection, Refused> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(connection)
}

fn connect_checked(path: &Path) -> Result<Connection, Refused> {
    let connection = connect(path)?;
    let found: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if found != "ok" {
        return Err(Refused::Damaged(found));
    }
    Ok(connection)
}

/// Moves the file and its log to the first free `NAME.corrupt-<n>`. Nothing is deleted: a person may still rescue it.
fn move_aside(path: &Path) -> std::io::Result<PathBuf> {
    let beside = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    let mut number = 1u32;
    let target = loop {
        let candidate = beside(&format!(".corrupt-{number}"));
        // `symlink_metadata` sees a dangling link too, which `exists` would overlook.
        if candidate.symlink_metadata().is_err() {
            break candidate;
        }
        number += 1;
    };
    // The log first: were the file moved and the log left behind, a new file could be taken for the log's own.
    for suffix in ["-wal", "-shm", ""] {
        let from = beside(suffix);
        if from.symlink_metadata().is_ok() {
            let mut to = target.clone().into_os_string();
            to.push(suffix);
            std::fs::rename(from, to)?;
        }
    }
    Ok(target)
}

fn failed(path: &Path, kind: StoreErrorKind, source: Option<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
    StoreError { path: path.to_owned(), operation: "open", kind, source }
}
