//! Queues of background work, as the operator registered them and as far as they came.

use crate::{Store, StoreError};
use minerva_model::{BackgroundCost, BackgroundId, BackgroundState};
use rusqlite::OptionalExtension;
use serde::{Deserialize, Serialize};

/// A queue. Times are of the wall clock, which goes on while the machine is off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackgroundRow {
    /// Its number, never used again.
    pub id: BackgroundId,
    /// The operator's name for it, of which there is one.
    pub name: String,
    /// What it does, in the word of the command line.
    pub kind: String,
    /// Where.
    pub path: String,
    /// What was at the path when it was registered: the file system's number, and the inode's.
    pub identity: (u64, u64),
    /// The same by what a reboot leaves as it is. Rows of earlier versions have none.
    #[serde(default)]
    pub lasting_identity: Option<LastingIdentity>,
    /// Of what is to be deleted: the inode of the directory that it lay in. Rows of earlier versions have none.
    #[serde(default)]
    pub parent_inode: Option<u64>,
    /// Of a command: the program and its arguments.
    pub command: Vec<String>,
    /// It must not be stopped while others use the disk.
    pub never_stop: bool,
    /// The greater goes first.
    pub priority: u8,
    /// When it was registered.
    pub added_unix_ms: i64,
    /// By when it is to be done.
    pub due_unix_ms: Option<i64>,
    /// The operator paused it.
    pub is_paused: bool,
    /// How it stands.
    pub state: BackgroundState,
    /// What people are told of that.
    pub message: String,
    /// Items done.
    pub done_items: f64,
    /// Items in all, if known.
    pub total_items: Option<f64>,
    /// Where another worker would go on.
    pub position: u64,
    /// What was found up to there. Rows of earlier versions have nothing.
    #[serde(default)]
    pub found: BackgroundFound,
    /// For how long it ran.
    pub ran_ms: u64,
    /// Of a balance of a btrfs: chunks that are used more are left alone.
    #[serde(default = "used_percent_max_default")]
    pub used_percent_max: u8,
    /// What it costs.
    pub cost: BackgroundCost,
}

/// By what something is known again after a reboot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastingIdentity {
    /// What is written on its file system, or of an array on its disks.
    pub file_system: (u64, u64),
    /// Of a btrfs.
    pub subvolume: u64,
    /// When it was made.
    pub born_ns: u64,
}

/// What was found in a file system or an array that is looked through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BackgroundFound {
    /// Bytes that were looked at.
    pub bytes: u64,
    /// Errors in them.
    pub errors: u64,
    /// Of those, what could not be corrected.
    pub uncorrectable: u64,
    /// Of a scrub, those that another look would not find.
    pub corrected: u64,
    /// What the check that is under way counted, beside `errors`.
    pub under_way: u64,
}

/// What rows of versions before it existed mean; no kind that they have goes by it.
const fn used_percent_max_default() -> u8 {
    50
}

impl Store {
    /// Keeps a new queue; durable on return.
    pub fn add_background(&self, row: &BackgroundRow) -> Result<(), StoreError> {
        let text = serde_json::to_string(row).map_err(|error| self.unreadable("write to", error))?;
        let sql = "INSERT INTO background VALUES (?1, ?2, ?3)";
        let kept = self.connection.execute(sql, rusqlite::params![row.id.0, row.name, text]);
        kept.map(drop).map_err(|error| self.failed("write to", error))
    }

    /// Keeps what became of a queue; false if it was forgotten, for then there is nothing to keep. Durable on return.
    pub fn update_background(&self, row: &BackgroundRow) -> Result<bool, StoreError> {
        let text = serde_json::to_string(row).map_err(|error| self.unreadable("write to", error))?;
        let sql = "UPDATE background SET name = ?2, queue = ?3 WHERE id = ?1";
        let kept = self.connection.execute(sql, rusqlite::params![row.id.0, row.name, text]);
        kept.map(|count| count > 0).map_err(|error| self.failed("write to", error))
    }

    /// Forgets a queue; its number is not used again.
    pub fn forget_background(&self, id: BackgroundId) -> Result<(), StoreError> {
        let forgotten = self.connection.execute("DELETE FROM background WHERE id = ?1", [id.0]);
        forgotten.map(drop).map_err(|error| self.failed("write to", error))
    }

    /// All queues, by number, and the last number that was used.
    pub fn background(&self) -> Result<(Vec<BackgroundRow>, BackgroundId), StoreError> {
        let read = || {
            let mut select = self.connection.prepare_cached("SELECT queue FROM background ORDER BY id")?;
            let texts = select.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
            let last = "SELECT seq FROM sqlite_sequence WHERE name = 'background'";
            let last = self.connection.query_row(last, [], |row| row.get::<_, u32>(0)).optional()?;
            Ok((texts, BackgroundId(last.unwrap_or(0))))
        };
        let (texts, last) = read().map_err(|error| self.failed("read from", error))?;
        let parse = |text: String| serde_json::from_str(&text).map_err(|error| self.unreadable("read from", error));
        Ok((texts.into_iter().map(parse).collect::<Result<_, _>>()?, last))
    }
}
