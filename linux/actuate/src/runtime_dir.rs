//! Minerva's own directory. What stands in it is later written to the kernel by root, so nobody else may write there:
//! a symbolic link, another owner or a mode that lets others write is refused.

use crate::error::ActuateError;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The most that is read of one of Minerva's own files: a journal of 10,000 knobs has some 5 MB.
const READ_BYTES_MAX: u64 = 256 << 20;

/// An open runtime directory; files are named relative to it, so that a directory that is moved or replaced later does
/// not matter.
#[derive(Debug)]
pub(crate) struct RuntimeDir {
    fd: OwnedFd,
    path: PathBuf,
}

impl RuntimeDir {
    /// Opens the directory, making it with mode 0700 if it is not there.
    pub(crate) fn create(path: &Path) -> Result<Self, ActuateError> {
        match rustix::fs::mkdir(path, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(ActuateError::io("make the directory", path)(errno)),
        }
        Self::open(path)?.ok_or_else(|| ActuateError::io("open", path)(Errno::NOENT))
    }

    /// Opens the directory if it is there.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, ActuateError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let unsafe_because = |why: String| ActuateError::UnsafeRuntimeDir { path: path.to_path_buf(), why };
        let fd = match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::NOTDIR) => {
                return Err(unsafe_because("it is a symbolic link or no directory; remove it".into()));
            }
            Err(errno) => return Err(ActuateError::io("open", path)(errno)),
        };
        let status = rustix::fs::fstat(&fd).map_err(ActuateError::io("examine", path))?;
        let owner = rustix::process::geteuid().as_raw();
        if status.st_uid != owner {
            return Err(unsafe_because(format!("it belongs to user {}; chown it to user {owner}", status.st_uid)));
        }
        if status.st_mode & 0o022 != 0 {
            let mode = status.st_mode & 0o7777;
            return Err(unsafe_because(format!("its mode {mode:04o} lets others write there; chmod it to 0700")));
        }
        Ok(Some(Self { fd, path: path.to_path_buf() }))
    }

    /// The path of a file in it, for messages.
    pub(crate) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Opens a file for reading and writing, making it with mode 0600 if it is not there.
    pub(crate) fn open_or_create(&self, name: &str) -> Result<File, ActuateError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(&self.fd, name, flags, Mode::RUSR | Mode::WUSR)
            .map(File::from)
            .map_err(ActuateError::io("open", &self.path_of(name)))
    }

    /// Opens a file for reading and writing if it is there.
    pub(crate) fn open_existing(&self, name: &str) -> Result<Option<File>, ActuateError> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.fd, name, flags, Mode::empty()) {
            Ok(fd) => Ok(Some(File::from(fd))),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(ActuateError::io("open", &self.path_of(name))(errno)),
        }
    }

    /// The whole of a file, if it is there.
    pub(crate) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, ActuateError> {
        let Some(file) = self.open_existing(name)? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.take(READ_BYTES_MAX).read_to_end(&mut bytes).map_err(ActuateError::io("read", &self.path_of(name)))?;
        Ok(Some(bytes))
    }

    /// Puts `bytes` in the place of a file: either all of it is there afterwards, synced, or what was there before.
    pub(crate) fn replace(&self, name: &str, bytes: &[u8]) -> Result<File, ActuateError> {
        let temporary = format!("{name}.new");
        let path = self.path_of(name);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let written = rustix::fs::openat(&self.fd, &*temporary, flags, Mode::RUSR | Mode::WUSR)
            .map_err(std::io::Error::from)
            .map(File::from)
            .and_then(|mut file| {
                file.write_all(bytes)?;
                file.sync_all()?;
                Ok(file)
            });
        let file = match written {
            Ok(file) => file,
            Err(error) => {
                // A half-written file keeps space that the next try needs. That it cannot be removed changes nothing.
                let _ = rustix::fs::unlinkat(&self.fd, &*temporary, AtFlags::empty());
                return Err(ActuateError::io("write", &path)(error));
            }
        };
        #[cfg(test)]
        crate::failpoint::reach();
        rustix::fs::renameat(&self.fd, &*temporary, &self.fd, name).map_err(ActuateError::io("put in place", &path))?;
        self.sync()?;
        Ok(file)
    }

    /// Removes a file, synced; that it is not there is as good.
    pub(crate) fn remove(&self, name: &str) -> Result<(), ActuateError> {
        match rustix::fs::unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) => self.sync(),
            Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(ActuateError::io("remove", &self.path_of(name))(errno)),
        }
    }

    /// Syncs the directory itself: that a file is there, or is not.
    fn sync(&self) -> Result<(), ActuateError> {
        rustix::fs::fsync(&self.fd).map_err(ActuateError::io("sync", &self.path))
    }
}
