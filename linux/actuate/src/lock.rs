//! Two locks in the runtime directory. The *instance lock* is held by a daemon for as long as it lives. The *undo lock* is held
//! for the length of one write or one restore, so that a restore never runs between the journalling and the writing of a
//! knob, whoever performs it. Both are `flock`s: the kernel lets go of them when the holder dies, however it dies.

use crate::error::ActuateError;
use crate::runtime_dir::RuntimeDir;
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

const INSTANCE_FILE: &str = "minervad.lock";
const UNDO_FILE: &str = "undo.lock";
const NAMED_FILE: &str = "named.lock";

/// Looking whether a daemon lives takes its lock, shared, for some microseconds; a daemon that starts at that moment
/// must not take this for another daemon.
const INSTANCE_TRIES: u32 = 20;

/// A restore of 10,000 knobs takes about a second; who waits longer than five waits for something stuck.
const UNDO_TRIES: u32 = 500;

const TRY_EVERY: Duration = Duration::from_millis(10);

/// Proof that this process is the only daemon on its runtime directory. Dropping it, or dying, lets the next one start.
#[derive(Debug)]
pub struct InstanceLock {
    _file: File,
    path: PathBuf,
}

impl InstanceLock {
    /// Takes the lock and writes this process's id into it, or says which process holds it. Makes the runtime directory
    /// if it is not there.
    pub fn acquire(runtime_dir: &Path) -> Result<Self, ActuateError> {
        let dir = RuntimeDir::create(runtime_dir)?;
        let path = dir.path_of(INSTANCE_FILE);
        let file = dir.open_or_create(INSTANCE_FILE)?;
        let taken = take(&file, FlockOperation::NonBlockingLockExclusive, INSTANCE_TRIES)
            .map_err(ActuateError::io("lock", &path))?;
        if !taken {
            let pid = pid_in(&file).map_or_else(|| "(unknown as yet)".to_owned(), |pid| pid.to_string());
            return Err(ActuateError::AlreadyRunning { path, pid });
        }
        file.set_len(0)
            .and_then(|()| file.write_all_at(format!("{}\n", std::process::id()).as_bytes(), 0))
            .map_err(ActuateError::io("write", &path))?;
        Ok(Self { _file: file, path })
    }

    /// Where the lock is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The process id of the daemon that now runs on this directory, if one does; 0 if it has not written it yet.
    pub fn holder(runtime_dir: &Path) -> Result<Option<u32>, ActuateError> {
        match RuntimeDir::open(runtime_dir)? {
            Some(dir) => holder_in(&dir),
            None => Ok(None),
        }
    }
}

/// [`InstanceLock::holder`] of an open directory.
pub(crate) fn holder_in(dir: &RuntimeDir) -> Result<Option<u32>, ActuateError> {
    let Some(file) = dir.open_existing(INSTANCE_FILE)? else { return Ok(None) };
    let free = take(&file, FlockOperation::NonBlockingLockShared, 1)
        .map_err(ActuateError::io("lock", &dir.path_of(INSTANCE_FILE)))?;
    Ok((!free).then(|| pid_in(&file).unwrap_or(0)))
}

/// A lock that is held for the length of an operation: an open file.
#[derive(Debug)]
pub(crate) struct FileLock {
    file: File,
    path: PathBuf,
}

/// Such a lock, held until this is dropped.
#[derive(Debug)]
pub(crate) struct FileLockHeld<'a>(&'a FileLock);

impl FileLock {
    pub(crate) fn open(dir: &RuntimeDir) -> Result<Self, ActuateError> {
        Ok(Self { file: dir.open_or_create(UNDO_FILE)?, path: dir.path_of(UNDO_FILE) })
    }

    /// Another of its kind, for whoever makes and removes named groups and notes their weights.
    pub(crate) fn of_named(dir: &RuntimeDir) -> Result<Self, ActuateError> {
        Ok(Self { file: dir.open_or_create(NAMED_FILE)?, path: dir.path_of(NAMED_FILE) })
    }

    /// Holds it if nobody does.
    pub(crate) fn try_hold(&self) -> Result<Option<FileLockHeld<'_>>, ActuateError> {
        let taken = take(&self.file, FlockOperation::NonBlockingLockExclusive, 1);
        taken.map(|taken| taken.then_some(FileLockHeld(self))).map_err(ActuateError::io("lock", &self.path))
    }

    /// Waits for the lock, some seconds at most.
    pub(crate) fn hold(&self) -> Result<FileLockHeld<'_>, ActuateError> {
        match take(&self.file, FlockOperation::NonBlockingLockExclusive, UNDO_TRIES) {
            Ok(true) => Ok(FileLockHeld(self)),
            Ok(false) => Err(ActuateError::JournalBusy { path: self.path.clone() }),
            Err(errno) => Err(ActuateError::io("lock", &self.path)(errno)),
        }
    }
}

impl Drop for FileLockHeld<'_> {
    fn drop(&mut self) {
        // Unlocking a lock that is held cannot fail, and closing the file would unlock it anyway.
        let _ = rustix::fs::flock(&self.0.file, FlockOperation::Unlock);
    }
}

fn take(file: &File, operation: FlockOperation, tries: u32) -> Result<bool, Errno> {
    for attempt in 0..tries {
        if attempt > 0 {
            thread::sleep(TRY_EVERY);
        }
        match rustix::fs::flock(file, operation) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK | Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(false)
}

fn pid_in(file: &File) -> Option<u32> {
    let mut bytes = [0; 16];
    let count = file.read_at(&mut bytes, 0).ok()?;
    std::str::from_utf8(&bytes[..count]).ok()?.trim().parse().ok()
}
