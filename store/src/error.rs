//! Why the store could not do what it was asked.

use std::path::PathBuf;

/// A failed operation on the store. Nothing that was acknowledged before is lost by it.
#[derive(Debug, thiserror::Error)]
#[error("{operation} the store {}: {kind}", path.display())]
pub struct StoreError {
    /// The database.
    pub path: PathBuf,
    /// What was tried: `open`, `write to`, `read from`.
    pub operation: &'static str,
    /// What happened.
    pub kind: StoreErrorKind,
    /// The engine's or the system's own words.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// What sort of failure it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreErrorKind {
    /// A later version of Minerva wrote it.
    #[error("its schema is version {found}, this program knows {known}; use the newer program, or move the file away")]
    NewerSchema {
        /// In the file.
        found: i64,
        /// The latest this program knows.
        known: i64,
    },
    /// Another program's database.
    #[error("it is another program's database (application id {application_id:#x}); set `state_dir` to another place")]
    NotOurs {
        /// As SQLite keeps it.
        application_id: i64,
    },
    /// No room, or no quota.
    #[error("the disk is full; free some space, it is tried again with the next slice")]
    DiskFull,
    /// The file became damaged while it was in use.
    #[error("it is damaged; the next start moves it aside and makes a new one")]
    Damaged,
    /// Another process holds it.
    #[error("another process holds it for long")]
    Busy,
    /// A row that this version cannot read.
    #[error("a row was written by another version or is damaged")]
    UnreadableRow,
    /// Anything else.
    #[error("the operation failed")]
    Other,
}

impl StoreErrorKind {
    /// Sorts an error of the engine.
    pub(crate) fn of(error: &rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => Self::DiskFull,
            Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase) => Self::Damaged,
            Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => Self::Busy,
            _ => Self::Other,
        }
    }
}
