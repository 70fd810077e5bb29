//! What is said at the socket of `minerva-fs`: a line of JSON asks, a line of JSON answers, one of each a connection. Later versions add
//! questions and fields; what is not known is passed over.

pub use crate::pool::Pool;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where the service listens unless the operator's file says otherwise.
pub const SOCKET_DEFAULT: &str = "/run/minerva-fs/control.sock";
/// The environment variable that names another socket.
pub const SOCKET_VARIABLE: &str = "MINERVA_CACHE_SOCKET";
/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// The socket that is meant where none is named.
pub fn socket() -> PathBuf {
    std::env::var_os(SOCKET_VARIABLE).map_or_else(|| PathBuf::from(SOCKET_DEFAULT), PathBuf::from)
}

/// What is asked. Root sees and does everything, others what is their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "ask")]
pub enum Request {
    /// Who uses how much.
    Status,
    /// A file of the pool that is at `path` at once, as a link, and is moved there later.
    Defer {
        /// Where it is to go, from the root.
        path: PathBuf,
        /// Device and inode of the directory of `path` as the asker sees it, so that a path of another namespace is not taken for one
        /// of the service's.
        directory: (u64, u64),
        /// Permissions of the new file.
        mode: u32,
        /// Which pool it waits in.
        #[serde(default)]
        pool: Pool,
        /// As which tenant, where the asker is several or root.
        #[serde(default)]
        tenant: Option<String>,
        /// How long it is expected to become, in bytes; 0 where that is not known.
        #[serde(default)]
        bytes: u64,
    },
    /// The files that wait.
    Deferred {
        /// Only those that are to go to this directory, or below it.
        #[serde(default)]
        directory: Option<PathBuf>,
    },
    /// Files that wait are to be moved now, slowly where others use the disk.
    Flush {
        /// Only those that are to go to this directory, or below it.
        #[serde(default)]
        directory: Option<PathBuf>,
    },
    /// Where a file lies, why, and what happens next.
    Explain {
        /// The file, from the root: in a pool, or a link into one.
        path: PathBuf,
    },
    /// A file of the pool to which no link leads any more is removed.
    Drop {
        /// Its number.
        id: u64,
    },
    /// The operator's file is read again and put in force. Only root may ask.
    Reload,
    /// A directory of the pool in which the files of a unit or a command lie that belong to one directory elsewhere; it is made where it is
    /// not there. Only root may ask.
    UnitDirectory {
        /// Its name: nothing but one component of a path.
        name: String,
        /// In which pool.
        #[serde(default)]
        pool: Pool,
        /// Of which tenant, where there are several.
        #[serde(default)]
        tenant: Option<String>,
        /// Who owns it: user and group.
        owner: (u32, u32),
        /// Its permissions.
        mode: u32,
    },
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "answer")]
pub enum Answer {
    /// Who uses how much.
    Status {
        /// Everybody whom the asker may see.
        tenants: Vec<TenantStatus>,
        /// What waits, over all of them.
        #[serde(default)]
        migration: MigrationStatus,
    },
    /// The file is there, and empty.
    Deferring {
        /// Its number.
        id: u64,
        /// What is to be opened and written.
        data: PathBuf,
    },
    /// Files that wait.
    Deferred {
        /// Each.
        files: Vec<DeferredFile>,
    },
    /// It is done.
    Done {
        /// For so many files.
        files: u64,
    },
    /// Where a file lies.
    Explained {
        /// In words, a sentence each.
        lines: Vec<String>,
    },
    /// The file is in force.
    Reloaded {
        /// What changed, a line each.
        changes: Vec<String>,
    },
    /// The directory is there.
    UnitDirectory {
        /// Where.
        path: PathBuf,
    },
    /// It could not be done.
    Refused {
        /// Why, and what to do.
        why: String,
    },
}

/// What waits, and what was moved since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigrationStatus {
    /// Files that wait.
    pub waiting_files: u64,
    /// Their bytes.
    pub waiting_bytes: u64,
    /// Files to which no link leads any more.
    pub left_files: u64,
    /// Their bytes.
    #[serde(default)]
    pub left_bytes: u64,
    /// Files moved.
    pub moved_files: u64,
    /// Their bytes.
    pub moved_bytes: u64,
    /// Attempts that ended without a move.
    pub failed: u64,
    /// Who tells how many use a disk: `daemon` or `counters`; in a guest `host`.
    pub told_by: String,
}

/// A file that waits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeferredFile {
    /// Its number.
    pub id: u64,
    /// Whose it is.
    pub tenant: String,
    /// In which pool of it.
    #[serde(default)]
    pub pool: String,
    /// Where it is to go.
    pub path: String,
    /// Where it lies.
    pub data: String,
    /// Bytes that it occupies.
    pub bytes: u64,
    /// Seconds since it was asked for.
    pub waited_seconds: u64,
    /// `waiting`, `copying`, `switching`, `left`.
    pub step: String,
    /// Why it has not moved yet.
    pub why: String,
    /// Bytes of it, from its beginning, that were moved in gaps and count for the credits of whoever asked for it.
    #[serde(default)]
    pub counted_bytes: u64,
}

/// One tenant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantStatus {
    /// Its name.
    pub name: String,
    /// In memory.
    pub temporary: TreeStatus,
    /// On the disk.
    pub stable: TreeStatus,
    /// The operator's file does not name it any more: why it is served all the same. Empty where the file names it.
    #[serde(default)]
    pub leaving: String,
    /// What its files earned since the start because they moved in gaps, in millionths of a credit.
    #[serde(default)]
    pub earned_micro_credits: u64,
    /// What the daemon said of that last. Empty before it did.
    #[serde(default)]
    pub earned_why: String,
}

/// One tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeStatus {
    /// Where it is mounted.
    pub path: PathBuf,
    /// Whether it is.
    pub is_served: bool,
    /// Whether the kernel reads files by itself.
    pub has_passthrough: bool,
    /// Bytes used.
    pub bytes: u64,
    /// Bytes allowed.
    pub bytes_max: u64,
    /// Files and directories.
    pub files: u64,
    /// How many are allowed.
    pub files_max: u64,
    /// Files that somebody has open.
    pub open: u64,
    /// Files that went from memory to the disk since the start.
    pub spilled_files: u64,
    /// Their bytes.
    pub spilled_bytes: u64,
    /// Bytes written through the service since the start.
    pub bytes_written: u64,
    /// Bytes read through it, in place of by the kernel.
    pub bytes_read: u64,
    /// What the quota refused since the start.
    pub refused: u64,
    /// Descriptors of the service that its files have: the kernel knows half as many of them.
    #[serde(default)]
    pub descriptors: u64,
    /// What was refused for want of descriptors since the start.
    #[serde(default)]
    pub refused_descriptors: u64,
    /// Requests of the tenant that waited for the pool's disk because others used it, since the start.
    #[serde(default)]
    pub disk_waits: u64,
    /// The most bytes of others that went to that disk while one of them waited.
    #[serde(default)]
    pub passed_by_bytes_max: u64,
    /// Bytes that it still takes of files that are to go elsewhere later.
    #[serde(default)]
    pub deferrable_bytes: u64,
    /// The disk that it lies on, as `MAJ:MIN`; empty: memory, or none that can be told.
    #[serde(default)]
    pub device: String,
    /// Who counts beside the service. Empty: nobody.
    #[serde(default)]
    pub second_account: String,
    /// What they count.
    #[serde(default)]
    pub second_account_bytes: u64,
    /// What they count otherwise than the service, and what to do. Empty: nothing.
    #[serde(default)]
    pub difference: String,
}

/// Asks the service that listens at `socket`. An error says that nobody does, or that its answer cannot be read; of kind `InvalidInput`, that
/// nobody can be asked this, because a name in it is not UTF-8.
pub fn ask(socket: &Path, request: &Request) -> io::Result<Answer> {
    ask_within(socket, request, Some(PATIENCE))
}

/// The same, and its answer may take so long; any time where none is named.
pub fn ask_within(socket: &Path, request: &Request, patience: Option<Duration>) -> io::Result<Answer> {
    let line = serde_json::to_string(request)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "minerva-fs takes no names that are not UTF-8"))?;
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(patience)?;
    stream.set_write_timeout(patience)?;
    writeln!(stream, "{line}")?;
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

#[cfg(test)]
mod tests {
    use super::{Answer, Pool, Request};

    #[test]
    fn what_other_versions_say_is_understood_as_far_as_it_is_known() {
        let older = r#"{"ask":"defer","path":"/data/a","directory":[1,2],"mode":420,"of_a_later_version":1}"#;
        let request: Request = serde_json::from_str(older).unwrap();
        let Request::Defer { pool: Pool::Stable, tenant: None, bytes: 0, mode: 420, .. } = request else {
            panic!("{request:?}")
        };
        let answer: Answer = serde_json::from_str(r#"{"answer":"status","tenants":[]}"#).unwrap();
        assert!(matches!(answer, Answer::Status { .. }), "{answer:?}");
    }
}
