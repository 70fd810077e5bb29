//! The directory to which a file is to go, and what is there under its name: a link, a copy, or something of somebody else's.

use super::failpoint::reach;
use crate::user::User;
use anyhow::{Context, bail};
use minerva_store::Deferral;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, ResolveFlags, Stat, fstat, fsync, openat, openat2,
    readlinkat, renameat_with, statat, symlinkat, unlinkat,
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

/// A directory with this bit gives its group to what is made in it.
const SET_GROUP: u32 = 0o2000;

/// The name by which it was tried whether links can be exchanged in the directory of a file. It is there only after a kill.
pub(super) fn trial_name(row: &Deferral) -> OsString {
    let mut name = row.copy_name.clone();
    name.push("-try");
    name
}

/// Whether an error says that a file system cannot exchange two names.
pub(super) fn cannot_exchange(error: &io::Error) -> bool {
    let number = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(number, Some(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP))
}

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

    /// A directory at a path below this one, if it is the expected one. Other file systems on the way are not asked, as they may not answer.
    pub(crate) fn open_below(&self, path: &Path, expected: (u64, u64)) -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let directory = openat2(&self.directory, path, flags, Mode::empty(), resolve).ok()?;
        (identity(&fstat(&directory).ok()?) == expected).then_some(Self { directory })
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
    pub(crate) fn leads(&self, name: &OsStr, link: &Path) -> bool {
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

    /// The names of the directories in it, by reading it to its end; where an inode is given, of that one only.
    pub(crate) fn directories(&self, inode: Option<u64>) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        let mut entries = Dir::read_from(&self.directory)?;
        entries.rewind();
        for entry in entries {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            let may_be_one = matches!(entry.file_type(), FileType::Directory | FileType::Unknown);
            if may_be_one && name != "." && name != ".." && inode.is_none_or(|inode| inode == entry.ino()) {
                names.push(name.to_owned());
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

    /// Tries whether two names can be exchanged here, with a link of this text that has the one; the other is free again afterwards.
    pub(crate) fn try_exchange(&self, link: &OsStr, free: &OsStr, text: &Path) -> io::Result<()> {
        symlinkat(text, &self.directory, free)?;
        reach();
        let exchanged = self.exchange(link, free);
        reach();
        self.remove(free)?;
        exchanged
    }

    /// The group of a file that somebody makes in it whose own group is this one.
    pub(crate) fn group_of_new(&self, own: u32) -> io::Result<u32> {
        let stat = fstat(&self.directory)?;
        Ok(if stat.st_mode & SET_GROUP == 0 { own } else { stat.st_gid })
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

#[cfg(test)]
mod tests {
    use super::Site;
    use rustix::mount::{UnmountFlags, mount_bind, unmount};
    use std::fs::{create_dir, create_dir_all};
    use std::os::unix::fs::symlink;
    use std::path::Path;

    #[test]
    fn a_directory_below_is_opened_by_its_numbers_and_not_through_links_or_mounts() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        create_dir_all(at("a/b")).unwrap();
        create_dir(at("mounted")).unwrap();
        symlink("a", at("link")).unwrap();
        let (site, other) = Site::open_any(place.path()).unwrap();
        let (_, identity) = Site::open_any(&at("a/b")).unwrap();
        let is_opened = |path: &str, identity| site.open_below(Path::new(path), identity).is_some();
        assert!(is_opened("a/b", identity) && !is_opened("a/b", other));
        assert!(!is_opened("link/b", identity) && !is_opened("a/../a/../../b", identity));
        if let Err(error) = mount_bind(at("a"), at("mounted")) {
            println!("skipped: needs leave to mount: {error}");
            return;
        }
        let is_through = is_opened("mounted/b", identity);
        unmount(at("mounted"), UnmountFlags::DETACH).unwrap();
        assert!(!is_through);
    }
}
