//! Where a queue's worker is: its directories and its groups.
//!
//! | file | in | what |
//! |---|---|---|
//! | `spec` | runtime | what is to be done, and in which groups |
//! | `lock` | runtime | locked by the worker for as long as it lives |
//! | `progress` | runtime | how far it is; replaced whole |
//! | `stopped` | runtime | its call into the kernel was cancelled to stop it |
//! | `speeds` | runtime | what an array's knobs held |
//! | `scrub-speeds` | runtime | what the knobs that limit a scrub held, and what was written to them |
//! | `checking` | runtime | the check that an array is in was begun by a worker |
//! | `processors` | runtime | to which processors the group was confined before |
//! | `begun` | state | a command was begun |
//! | `result` | state | how it ended |
//! | `output` | state | what a command printed |
//! | `left-out` | state | devices that a scrub left out |

use crate::error::WorkError;
use crate::spec::Found;
use minerva_model::{BackgroundId, Nanos};
use rustix::fs::{FlockOperation, flock};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Directories of one queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct QueueDirectories {
    /// Gone after a reboot, as the worker is.
    pub(crate) runtime: PathBuf,
    /// Kept.
    pub(crate) state: PathBuf,
    /// Groups that the worker enters, one in the hierarchy of the disk controller and one that can be frozen; both may be the same.
    pub(crate) groups: Groups,
}

/// Groups of one queue, as directories.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Groups {
    /// In the hierarchy of the disk controller.
    pub(crate) io: PathBuf,
    /// In one that can freeze.
    pub(crate) freezer: PathBuf,
    /// In one that confines processes to some of the processors, where there is such a hierarchy. Workers of earlier versions have none.
    #[serde(default)]
    pub(crate) processors: Option<PathBuf>,
}

/// How far a worker is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Progress {
    /// Items done.
    pub(crate) done: f64,
    /// Items in all, if known.
    pub(crate) total: Option<f64>,
    /// Bytes that what is left ties.
    pub(crate) tied_bytes: f64,
    /// Entries that this worker looked at before it does anything with them.
    pub(crate) looked: u64,
    /// Where another worker would go on.
    pub(crate) position: u64,
    /// What was found up to there.
    pub(crate) found: Found,
    /// Processor time that the worker's own process used so far.
    pub(crate) worker: Nanos,
}

/// How a worker ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ended {
    /// All was done.
    pub(crate) is_done: bool,
    /// Nothing was: what it is for was not there. Workers of earlier versions do not say so.
    #[serde(default)]
    pub(crate) is_absent: bool,
    /// A sentence for people.
    pub(crate) message: String,
    /// How far it came.
    pub(crate) progress: Progress,
}

impl Groups {
    /// Processes may be in them.
    pub(crate) fn are_there(&self) -> bool {
        self.io.is_dir() || self.freezer.is_dir()
    }
}

impl QueueDirectories {
    /// That of a queue below the daemon's directories.
    pub(crate) fn of(runtime_dir: &Path, state_dir: &Path, id: BackgroundId, groups: Groups) -> Self {
        let below = |directory: &Path| directory.join("background").join(id.to_string());
        Self { runtime: below(runtime_dir), state: below(state_dir), groups }
    }

    /// Makes the directories.
    pub(crate) fn make(&self) -> Result<(), WorkError> {
        for directory in [&self.runtime, &self.state] {
            fs::create_dir_all(directory).map_err(WorkError::io("make", directory))?;
        }
        Ok(())
    }

    /// Removes the directories; what a command printed goes too.
    pub(crate) fn remove(&self) {
        for directory in [&self.runtime, &self.state] {
            // What is left in them the next daemon removes, as it does what belongs to no queue that it knows.
            let _ = fs::remove_dir_all(directory);
        }
    }

    /// Takes the worker's lock; nothing if a worker has it.
    pub(crate) fn lock(&self) -> Result<Option<File>, WorkError> {
        let path = self.runtime.join("lock");
        let file = File::options().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(WorkError::io("open", &path))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(file)),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(WorkError::io("lock", &path)(errno)),
        }
    }

    /// A worker lives.
    pub(crate) fn is_alive(&self) -> bool {
        self.runtime.join("lock").exists() && matches!(self.lock(), Ok(None))
    }

    /// How it ended, if it did.
    pub(crate) fn ended(&self) -> Option<Ended> {
        read(&self.state.join("result"))
    }

    pub(crate) fn progress(&self) -> Option<Progress> {
        read(&self.runtime.join("progress"))
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.state.join("begun").exists()
    }

    /// A worker begins a check of an array, which may outlive it.
    pub(crate) fn begin_check(&self) -> Result<(), WorkError> {
        replace(&self.runtime.join("checking"), &(), false)
    }

    /// The check that an array is in was begun by a worker, and not by the host's own timer or an operator.
    pub(crate) fn has_check(&self) -> bool {
        self.runtime.join("checking").exists()
    }

    /// That check is over, or was none.
    pub(crate) fn forget_check(&self) {
        // Not there, it is forgotten.
        let _ = fs::remove_file(self.runtime.join("checking"));
    }

    /// A worker found nothing to begin with: another may.
    pub(crate) fn forget_end(&self) {
        // Not there, it is forgotten.
        let _ = fs::remove_file(self.state.join("result"));
    }

    /// What an earlier run left, so that another can begin.
    pub(crate) fn forget_run(&self) {
        for path in [self.state.join("result"), self.state.join("begun"), self.runtime.join("progress")] {
            // Most are not there.
            let _ = fs::remove_file(path);
        }
    }
}

/// Reads JSON; what is not there, or damaged, is nothing.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Replaces a file whole, and on the disk if it is to survive a loss of power.
pub(crate) fn replace(path: &Path, value: &impl Serialize, is_synced: bool) -> Result<(), WorkError> {
    let new = path.with_extension("new");
    let write = || {
        let file = File::create(&new)?;
        serde_json::to_writer(&file, value)?;
        if is_synced {
            file.sync_all()?;
        }
        fs::rename(&new, path)?;
        match path.parent() {
            Some(directory) if is_synced => File::open(directory)?.sync_all(),
            _ => Ok(()),
        }
    };
    write().map_err(|source: std::io::Error| WorkError::Io { operation: "write", path: path.to_owned(), source })
}
