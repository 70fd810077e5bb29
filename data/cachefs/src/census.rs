//! What lies in a directory, by walking through it: what accounts begin with and are checked against.

use crate::descent::Descent;
use crate::file_system::Result;
use rustix::fs::{AtFlags, FileType, RawDir, fstat, statat};
use rustix::io::Errno;
use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

/// Bytes of names that are read at once.
const NAMES_BYTES: usize = 32 << 10;

/// What a walk found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Bytes that regular files occupy, each counted once however many names it has.
    pub bytes: u64,
    /// Nodes below the root.
    pub files: u64,
    /// Bytes that the others occupy, which accounts do not count: directories, the root among them, and links.
    pub besides_bytes: u64,
}

/// A regular file on the way.
pub(crate) struct Found<'a> {
    pub(crate) directory: &'a OwnedFd,
    pub(crate) name: &'a CStr,
    pub(crate) stat: &'a rustix::fs::Stat,
}

/// Counts all that lies below a directory.
pub fn take_census(root: impl AsFd) -> Result<Census> {
    walk(root, &mut |_| ())
}

/// The same where there are at most so many nodes; none where there are more.
pub fn take_census_up_to(root: impl AsFd, nodes_max: u64) -> Result<Option<Census>> {
    walk_up_to(root, nodes_max, &mut |_| ())
}

/// Counts, and shows each regular file once.
pub(crate) fn walk(root: impl AsFd, each: &mut dyn FnMut(Found<'_>)) -> Result<Census> {
    walk_up_to(root, u64::MAX, each).map(Option::unwrap_or_default)
}

fn walk_up_to(root: impl AsFd, nodes_max: u64, each: &mut dyn FnMut(Found<'_>)) -> Result<Option<Census>> {
    let mut census = Census::default();
    let mut seen = HashSet::new();
    census.besides_bytes = occupied(&fstat(root.as_fd())?);
    let mut descent = Descent::new(root)?;
    loop {
        for name in names(descent.folder())? {
            let stat = match statat(descent.folder(), &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(error),
            };
            if stat.st_nlink > 1 && !is_directory(&stat) && !seen.insert(stat.st_ino) {
                continue;
            }
            census.files += 1;
            if census.files > nodes_max {
                return Ok(None);
            }
            if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
                census.bytes += occupied(&stat);
                each(Found { directory: descent.folder(), name: &name, stat: &stat });
                continue;
            }
            census.besides_bytes += occupied(&stat);
            if is_directory(&stat) {
                descent.add(name);
            }
        }
        if !descent.go_on()? {
            return Ok(Some(census));
        }
    }
}

fn occupied(stat: &rustix::fs::Stat) -> u64 {
    stat.st_blocks as u64 * 512
}

fn is_directory(stat: &rustix::fs::Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

/// All names in a directory but itself and its parent.
pub(crate) fn names(folder: &OwnedFd) -> Result<Vec<CString>> {
    let mut found = Vec::new();
    let mut buffer = vec![MaybeUninit::uninit(); NAMES_BYTES];
    let mut entries = RawDir::new(folder, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        if entry.file_name() != c"." && entry.file_name() != c".." {
            found.push(entry.file_name().to_owned());
        }
    }
    Ok(found)
}
