//! The files of a tree, through no link and into nothing that has another number: no mount, and no other subvolume.

use crate::error::WorkError;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;
use std::path::Path;

/// Each level holds a descriptor.
const DEPTH_MAX: usize = 256;

/// Files of a tree, opened for reading, with their sizes; directory by directory, in an order that is the same the next time. What cannot
/// be looked at or opened is passed over: it may be gone by now.
pub(crate) struct Files {
    device: u64,
    /// Directories under way, with the names in them that are left, last first.
    open: Vec<(OwnedFd, Vec<CString>)>,
}

impl Files {
    /// Those below a directory.
    pub(crate) fn below(root: &OwnedFd, path: &Path) -> Result<Self, WorkError> {
        let device = fstat(root).map_err(WorkError::io("look at", path))?.st_dev;
        let root = rustix::io::dup(root).map_err(WorkError::io("open", path))?;
        let names = names(&root);
        Ok(Self { device, open: vec![(root, names)] })
    }
}

impl Iterator for Files {
    type Item = (OwnedFd, u64);

    fn next(&mut self) -> Option<(OwnedFd, u64)> {
        loop {
            let depth = self.open.len();
            let (directory, left) = self.open.last_mut()?;
            let Some(name) = left.pop() else {
                self.open.pop();
                continue;
            };
            match open(directory, &name, self.device) {
                Some((inner, stat)) if is(&stat, FileType::Directory) && depth < DEPTH_MAX => {
                    let names = names(&inner);
                    self.open.push((inner, names));
                }
                Some((file, stat)) if is(&stat, FileType::RegularFile) && stat.st_size > 0 => {
                    return Some((file, u64::try_from(stat.st_size).unwrap_or(0)));
                }
                _ => {}
            }
        }
    }
}

fn is(stat: &Stat, kind: FileType) -> bool {
    FileType::from_raw_mode(stat.st_mode) == kind
}

/// A file or directory of this name, if it has that number.
fn open(directory: &OwnedFd, name: &CStr, device: u64) -> Option<(OwnedFd, Stat)> {
    // Looked at before it is opened, because opening a device does something.
    let before = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    if !is(&before, FileType::Directory) && !is(&before, FileType::RegularFile) {
        return None;
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = openat(directory, name, flags, Mode::empty()).ok()?;
    // And after, because it may be another by then.
    let stat = fstat(&file).ok()?;
    (stat.st_dev == device).then_some((file, stat))
}

/// Names in a directory, the first in order last.
fn names(directory: &OwnedFd) -> Vec<CString> {
    let Ok(entries) = Dir::read_from(directory) else { return Vec::new() };
    let names = entries.filter_map(Result::ok).map(|entry| entry.file_name().to_owned());
    let mut names: Vec<CString> = names.filter(|name| !matches!(name.to_bytes(), b"." | b"..")).collect();
    names.sort_unstable_by(|a, b| b.cmp(a));
    names
}

#[cfg(test)]
mod tests {
    use super::Files;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn every_file_is_found_once_in_order_and_no_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (tree, outside) = (folder.path().join("tree"), folder.path().join("outside"));
        fs::create_dir_all(tree.join("b/c")).unwrap();
        fs::create_dir(&outside).unwrap();
        let files = ["a", "b/c/d", "b/e"];
        files.iter().zip(1..).for_each(|(name, size)| fs::write(tree.join(name), vec![0; size]).unwrap());
        fs::write(outside.join("not"), [0; 100]).unwrap();
        fs::write(tree.join("empty"), []).unwrap();
        symlink(&outside, tree.join("link")).unwrap();
        symlink(outside.join("not"), tree.join("file-link")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(tree.join("socket")).unwrap();
        let root = fs::File::open(&tree).unwrap().into();
        let sizes: Vec<u64> = Files::below(&root, &tree).unwrap().map(|(_, size)| size).collect();
        assert_eq!(sizes, [1, 2, 3]);
    }
}
