//! Where the data of files go that memory has no room for: a directory on the stable pool's disk, a file for each, named by the number
//! that it has in memory. The file in memory stays, with its names, owner and mode, and is empty.
//!
//! A copy has its final name only once it is whole, and the file in memory is emptied after that. Killed in between, the copy is found
//! at the next start and is the file's data: nobody wrote meanwhile.

use crate::account::Account;
use crate::census::{Census, names};
use crate::disk_room::{left_on_disk, room_on_disk};
use crate::file_system::Result;
use crate::node::charge;
use crate::reopen::for_both_or_to_read;
use crate::write_back::send_and_wait;
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, SeekFrom, Stat, Timespec, Timestamps, fstat, ftruncate, futimens, openat, renameat,
    seek, statat, unlinkat,
};
use rustix::io::{Errno, pread, pwrite};
use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes that are copied before it looks whether somebody waits for the file.
const PIECE: usize = 1 << 20;
/// The end of the name of a copy that is not whole.
const PART: &str = ".part";

/// Why a spill area cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("failed to use {} for what memory has no room for", path.display())]
pub struct SpillError {
    path: PathBuf,
    source: std::io::Error,
}

/// What one pass did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpillPass {
    /// Files that went to the disk.
    pub files: u64,
    /// Bytes that memory has free now.
    pub bytes: u64,
    /// The first error; the file that met it is where it was.
    pub error: Option<Errno>,
    /// How often it walked through the tree to find files.
    pub walks: u32,
}

/// A directory for the data of one tenant's files.
#[derive(Debug)]
pub struct SpillArea {
    directory: OwnedFd,
    present: Mutex<HashSet<u64>>,
    account: Arc<Account>,
    /// Bytes that stay free on that disk.
    reserve_bytes: AtomicU64,
}

impl SpillArea {
    /// Makes or finds the directory. What lies there counts on `account`, the tenant's of the stable pool.
    pub fn open(path: &Path, account: Arc<Account>) -> std::result::Result<Self, SpillError> {
        let failed = |source| SpillError { path: path.to_owned(), source };
        std::fs::create_dir_all(path).map_err(failed)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let found = openat(CWD, path, flags, Mode::empty()).and_then(|directory| {
            let present = whole(&directory)?;
            Ok(Self { directory, present: Mutex::new(present), account, reserve_bytes: AtomicU64::new(0) })
        });
        found.map_err(|error| failed(error.into()))
    }

    /// What lies there, by a walk.
    pub fn census(&self) -> Result<Census> {
        crate::census::take_census(&self.directory)
    }

    pub(crate) fn set_reserve(&self, bytes: u64) {
        self.reserve_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Bytes of the longest file that there is room for, as far as the disk says. One of which nothing is to stay free, and that names no
    /// room for others than root, says itself when it is full.
    pub(crate) fn room(&self) -> u64 {
        let reserve_bytes = self.reserve_bytes.load(Ordering::Relaxed);
        let on_disk = left_on_disk(&self.directory, reserve_bytes).unwrap_or(u64::MAX);
        let on_disk = if (reserve_bytes, on_disk) == (0, 0) { u64::MAX } else { on_disk };
        on_disk.min(self.account.bytes_left())
    }

    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    pub(crate) fn has(&self, number: u64) -> bool {
        self.present().contains(&number)
    }

    pub(crate) fn len(&self) -> usize {
        self.present().len()
    }

    pub(crate) fn open_data(&self, number: u64) -> Result<OwnedFd> {
        let name = number.to_string();
        for_both_or_to_read(|flags| openat(&self.directory, &name, flags | OFlags::CLOEXEC, Mode::empty()))
    }

    /// What `stat` shows of the data, without their being opened.
    pub(crate) fn look_at(&self, number: u64) -> Result<Stat> {
        statat(&self.directory, number.to_string(), AtFlags::SYMLINK_NOFOLLOW)
    }

    pub(crate) fn remove(&self, number: u64) {
        self.present().remove(&number);
        // What is left behind is found by its number at the next start, and belongs to no file then.
        let _ = unlinkat(&self.directory, number.to_string(), AtFlags::empty());
    }

    /// Removes what belongs to no file in memory any more.
    pub(crate) fn keep_only(&mut self, numbers: &[u64]) -> Result<()> {
        let keep: HashSet<u64> = numbers.iter().copied().collect();
        let mut present = self.present();
        for orphan in present.iter().filter(|number| !keep.contains(number)) {
            unlinkat(&self.directory, orphan.to_string(), AtFlags::empty())?;
        }
        present.retain(|number| keep.contains(number));
        Ok(())
    }

    /// Copies a file here, holes and times included; `None` if `stop` said so in between. Each piece is given to `send` once it is written,
    /// which may wait for the disk.
    pub(crate) fn receive(
        &self,
        from: &OwnedFd,
        stat: &Stat,
        send: &dyn Fn(&OwnedFd, u64) -> Result<()>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<OwnedFd>> {
        let (name, part) = (stat.st_ino.to_string(), format!("{}{PART}", stat.st_ino));
        let room = room_on_disk(&self.directory, self.reserve_bytes.load(Ordering::Relaxed));
        if charge(stat) > room || !self.account.reserve_bytes(charge(stat)) {
            return Err(Errno::NOSPC);
        }
        let flags = OFlags::CREATE | OFlags::TRUNC | OFlags::RDWR | OFlags::CLOEXEC;
        let copied = openat(&self.directory, part.as_str(), flags, Mode::RUSR | Mode::WUSR).and_then(|to| {
            if !copy(from, &to, stat.st_size as u64, send, stop)? {
                return Ok(None);
            }
            // What the disk fails to take stays in memory. Few programs wait for this: most spill behind their backs. What is in memory does
            // not outlive the power, so that a sync, which flushes the disk's own cache for each small file, would buy nothing.
            send_and_wait(&to)?;
            futimens(&to, &times(stat))?;
            renameat(&self.directory, part.as_str(), &self.directory, name.as_str())?;
            Ok(Some(to))
        });
        match &copied {
            Ok(Some(to)) => {
                self.present().insert(stat.st_ino);
                self.account.correct(charge(stat), fstat(to).map_or(charge(stat), |now| charge(&now)));
            }
            _ => {
                self.account.correct(charge(stat), 0);
                let _ = unlinkat(&self.directory, part.as_str(), AtFlags::empty());
            }
        }
        copied
    }

    fn present(&self) -> MutexGuard<'_, HashSet<u64>> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The numbers of the copies that are whole; others are removed.
fn whole(directory: &OwnedFd) -> Result<HashSet<u64>> {
    let mut present = HashSet::new();
    for name in names(directory)? {
        match name.to_str().ok().and_then(|name| name.parse().ok()) {
            Some(number) => {
                present.insert(number);
            }
            None => unlinkat(directory, &name, AtFlags::empty())?,
        }
    }
    Ok(present)
}

/// Takes the data out of a file whose copy is whole.
pub(crate) fn empty(file: &OwnedFd) -> Result<()> {
    ftruncate(file, 0)
}

/// Copies data and leaves holes; whether it came to the end.
fn copy(
    from: &OwnedFd,
    to: &OwnedFd,
    size: u64,
    send: &dyn Fn(&OwnedFd, u64) -> Result<()>,
    stop: &dyn Fn() -> bool,
) -> Result<bool> {
    let mut buffer = vec![0; PIECE];
    let mut at = 0;
    while at < size {
        at = match seek(from, SeekFrom::Data(at)) {
            Ok(data) => data,
            Err(Errno::NXIO) => break,
            Err(error) => return Err(error),
        };
        let end = seek(from, SeekFrom::Hole(at))?.min(size);
        while at < end {
            if stop() {
                return Ok(false);
            }
            let want = (end - at).min(PIECE as u64) as usize;
            let read = pread(from, &mut buffer[..want], at)?;
            if read == 0 {
                break;
            }
            let mut written = 0;
            while written < read {
                written += pwrite(to, &buffer[written..read], at + written as u64)?;
            }
            send(to, read as u64)?;
            at += read as u64;
        }
    }
    ftruncate(to, size)?;
    Ok(true)
}

fn times(stat: &Stat) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: stat.st_atime, tv_nsec: stat.st_atime_nsec as i64 },
        last_modification: Timespec { tv_sec: stat.st_mtime, tv_nsec: stat.st_mtime_nsec as i64 },
    }
}
