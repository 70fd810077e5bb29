//! The way of a walk through directories, each before what is in it. However deep they lie, few of them are open at once: a tenant makes
//! them as deep as it likes, by putting new ones above.

use crate::file_system::Result;
use rustix::fs::{Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};

/// Directories on the way that stay open, beside the first: of those farther up it is found out later where they are.
const OPEN_MAX: usize = 32;

/// One directory on the way.
struct Level {
    /// Its name in the one above.
    name: CString,
    folder: Option<OwnedFd>,
    /// Device and number, by which it is known again.
    identity: (u64, u64),
    /// Names of directories in it to which the walk has not come yet.
    ahead: Vec<CString>,
}

impl Level {
    fn new(name: CString, folder: OwnedFd) -> Result<Self> {
        let identity = identity(&folder)?;
        Ok(Self { name, folder: Some(folder), identity, ahead: Vec::new() })
    }
}

/// Where a walk is.
pub(crate) struct Descent {
    /// The first, which is always open.
    root: OwnedFd,
    /// From the first to the one where it is. Never empty but at the end.
    levels: Vec<Level>,
}

impl Descent {
    /// Begins in this directory.
    pub(crate) fn new(root: impl AsFd) -> Result<Self> {
        let name = CString::from(c".");
        let level = Level::new(name.clone(), directory(root.as_fd(), &name)?)?;
        Ok(Self { root: directory(root, &name)?, levels: vec![level] })
    }

    /// The directory where it is.
    pub(crate) fn folder(&self) -> &OwnedFd {
        self.levels.last().and_then(|level| level.folder.as_ref()).unwrap_or(&self.root)
    }

    /// The walk goes into this directory of it later.
    pub(crate) fn add(&mut self, name: CString) {
        if let Some(level) = self.levels.last_mut() {
            level.ahead.push(name);
        }
    }

    /// Goes on to the next directory; whether there is one.
    pub(crate) fn go_on(&mut self) -> Result<bool> {
        while let Some(level) = self.levels.last_mut() {
            let Some(name) = level.ahead.pop() else {
                self.go_up()?;
                continue;
            };
            match directory(self.folder(), &name) {
                Ok(folder) => self.levels.push(Level::new(name, folder)?),
                // Removed meanwhile.
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(error),
            }
            if let Some(far) = self.levels.len().checked_sub(OPEN_MAX + 1) {
                self.levels[far].folder = None;
            }
            return Ok(true);
        }
        Ok(false)
    }

    /// Leaves a directory for the one above. Where that was moved away meanwhile, what was ahead in it is not met.
    fn go_up(&mut self) -> Result<()> {
        let Some(left) = self.levels.pop() else { return Ok(()) };
        while let Some(above) = self.levels.last().filter(|above| above.folder.is_none()) {
            let by_child = left.folder.as_ref().map_or(Err(Errno::NOENT), |folder| directory(folder, c".."));
            let is_same = |folder: &OwnedFd| identity(folder) == Ok(above.identity);
            match by_child.ok().filter(is_same).map_or_else(|| self.by_names(), |folder| Ok(Some(folder))) {
                Ok(Some(folder)) => {
                    if let Some(above) = self.levels.last_mut() {
                        above.folder = Some(folder);
                    }
                }
                Ok(None) => drop(self.levels.pop()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The last directory on the way, by the names that lead there; none where they no longer do.
    fn by_names(&self) -> Result<Option<OwnedFd>> {
        let mut folder = directory(&self.root, c".")?;
        for level in self.levels.iter().skip(1) {
            folder = match directory(&folder, &level.name) {
                Ok(folder) => folder,
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
                Err(error) => return Err(error),
            };
        }
        let is_same = self.levels.last().is_some_and(|level| identity(&folder) == Ok(level.identity));
        Ok(is_same.then_some(folder))
    }
}

fn identity(folder: &OwnedFd) -> Result<(u64, u64)> {
    fstat(folder).map(|stat| (stat.st_dev, stat.st_ino))
}

fn directory(parent: impl AsFd, name: &CStr) -> Result<OwnedFd> {
    openat(parent, name, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}

#[cfg(test)]
mod tests {
    use super::{Descent, OPEN_MAX};
    use crate::census::{names, take_census};
    use rustix::fs::{AtFlags, FileType, statat};
    use std::fs::{self, File};
    use std::path::Path;

    const DEPTH: usize = 4 * OPEN_MAX;

    /// At each level two directories, and a file in the one that goes no deeper.
    fn make_deep(at: &Path) {
        let mut at = at.to_owned();
        for _ in 0..DEPTH {
            fs::create_dir(at.join("beside")).unwrap();
            fs::write(at.join("beside/file"), [1; 4096]).unwrap();
            at.push("deep");
            fs::create_dir(&at).unwrap();
        }
    }

    /// Walks; how many directories it met, and how many were open at most. `at_each` is called at each.
    fn walk(at: &Path, mut at_each: impl FnMut(usize)) -> (usize, usize) {
        let mut descent = Descent::new(File::open(at).unwrap()).unwrap();
        let (mut met, mut open) = (0, 0);
        loop {
            met += 1;
            open = open.max(descent.levels.iter().filter(|level| level.folder.is_some()).count());
            at_each(met);
            let mut found = names(descent.folder()).unwrap();
            found.sort();
            for name in found {
                let stat = statat(descent.folder(), &name, AtFlags::SYMLINK_NOFOLLOW).unwrap();
                if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                    descent.add(name);
                }
            }
            if !descent.go_on().unwrap() {
                return (met, open);
            }
        }
    }

    #[test]
    fn of_a_deep_tree_few_directories_are_open_and_all_are_met() {
        let folder = tempfile::tempdir().unwrap();
        make_deep(folder.path());
        let (met, open) = walk(folder.path(), |_| ());
        assert_eq!(met, 1 + 2 * DEPTH);
        assert!(open <= OPEN_MAX + 1, "{open} were open");
        let census = take_census(File::open(folder.path()).unwrap()).unwrap();
        assert_eq!(census.files, 3 * DEPTH as u64);
        assert_eq!(census.bytes, 4096 * DEPTH as u64);
    }

    #[test]
    fn a_walk_goes_on_though_directories_are_moved_under_it() {
        for is_moved_twice in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            make_deep(folder.path());
            let at = |name: &str| folder.path().join(name);
            let (met, _) = walk(folder.path(), |met| {
                // It is at the bottom, and has closed those at the top.
                if met == DEPTH + 1 {
                    fs::rename(at("deep/deep/deep"), at("moved")).unwrap();
                    if is_moved_twice {
                        fs::rename(at("deep"), at("elsewhere")).unwrap();
                    }
                }
            });
            // What is above the first is found by its names, or where those lead nowhere left out.
            let left_out = if is_moved_twice { 2 } else { 0 };
            assert_eq!(met, 1 + 2 * DEPTH - left_out);
        }
    }
}
