//! The directory to which a file is to go, and what is there under its name: a link, a copy, or something of somebody else's.

use crate::user::User;
use anyhow::{Context, bail};
use minerva_store::Deferral;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, Stat, fstat, fsync, openat, readlinkat, renameat_with,
    statat, unlinkat,
};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Names by inode.
pub(crate) type Names = BTreeMap<u64, Vec<OsString>>;

/// A directory that is open.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) directory: OwnedFd,
}

/// What is found under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The link.
    Link,
    /// The copy that was made of the file.
    Copy,
    /// Nothing.
    Nothing,
    /// Something else.
    Other,
}

fn identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

impl Site {
    /// Opens the directory of a path as a user who asks, and names it as this process sees it.
    pub(crate) fn find(path: &Path, seen: (u64, u64), user: &User) -> anyhow::Result<(Self, PathBuf)> {
        // To write in a directory one need not be allowed to read it.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = || openat(CWD, path, flags, Mode::empty()).map_err(io::Error::from);
        let seen_here = user.act(open).with_context(|| format!("failed to open {}", path.display()))?;
        if identity(&fstat(&seen_here)?) != seen {
            bail!(
                "minerva-fs sees another directory at {} than the program that asks, which has its own mount \
                 namespace; write to the destination itself, or run the program on the host",
                path.display()
            );
        }
        let canonical = std::fs::canonicalize(path).with_context(|| format!("failed to follow {}", path.display()))?;
        Ok((Self::open(&canonical, seen)?, canonical))
    }

    /// Opens a directory that is known.
    pub(crate) fn open(path: &Path, expected: (u64, u64)) -> anyhow::Result<Self> {
        let (site, found) = Self::open_any(path)?;
        if found != expected {
            bail!("{} is another directory than when it was asked for; is a disk not mounted?", path.display());
        }
        Ok(site)
    }

    /// Opens whatever directory is at a path, and says which that is.
    pub(crate) fn open_any(path: &Path) -> anyhow::Result<(Self, (u64, u64))> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = openat(CWD, path, flags, Mode::empty())
            .with_context(|| format!("its directory {} cannot be opened", path.display()))?;
        let found = identity(&fstat(&directory)?);
        Ok((Self { directory }, found))
    }

    /// What is found under a name; `link` is the text of the link that is expected.
    pub(crate) fn find_named(&self, name: &OsStr, row: &Deferral, link: &Path) -> io::Result<Found> {
        let stat = match statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(Found::Nothing),
            Err(error) => return Err(error.into()),
        };
        Ok(match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink if self.leads(name, link) && (row.link_inode == 0 || row.link_inode == stat.st_ino) => {
                Found::Link
            }
            FileType::RegularFile if row.copy_inode != 0 && row.copy_inode == stat.st_ino => Found::Copy,
            _ => Found::Other,
        })
    }

    /// The inode under a name.
    pub(crate) fn inode(&self, name: &OsStr) -> io::Result<u64> {
        Ok(statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW)?.st_ino)
    }

    /// Whether a link has this text.
    fn leads(&self, name: &OsStr, link: &Path) -> bool {
        readlinkat(&self.directory, name, Vec::new()).is_ok_and(|text| text.as_bytes() == link.as_os_str().as_bytes())
    }

    /// The names that these inodes have, by reading the directory to its end.
    pub(crate) fn names_of(&self, inodes: &BTreeSet<u64>) -> io::Result<Names> {
        let mut names = Names::new();
        let mut entries = Dir::read_from(&self.directory)?;
        entries.rewind();
        for entry in entries {
            let entry = entry?;
            if inodes.contains(&entry.ino()) {
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                names.entry(entry.ino()).or_default().push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// The name that the link has now, if it was renamed within the directory.
    pub(crate) fn renamed(&self, row: &Deferral, link: &Path, names: &Names) -> Option<OsString> {
        let mut names = names.get(&row.link_inode)?.iter();
        names.find(|name| self.find_named(name, row, link).is_ok_and(|found| found == Found::Link)).cloned()
    }

    /// When a name was last made, removed or replaced in it.
    pub(crate) fn changed(&self) -> io::Result<(i64, u64)> {
        let stat = fstat(&self.directory)?;
        Ok((stat.st_ctime, stat.st_ctime_nsec))
    }

    /// Puts what is called `new` under `name`, and what was there under `new`.
    pub(crate) fn exchange(&self, new: &OsStr, name: &OsStr) -> io::Result<()> {
        renameat_with(&self.directory, new, &self.directory, name, RenameFlags::EXCHANGE).map_err(io::Error::from)
    }

    /// Removes a name, if there is one.
    pub(crate) fn remove(&self, name: &OsStr) -> io::Result<()> {
        match unlinkat(&self.directory, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes names durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        fsync(&self.directory).map_err(io::Error::from)
    }
}
