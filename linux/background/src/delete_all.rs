//! The worker's deletion: counts what is there first, so that it can be said how long it will take, and then deletes it.

use crate::delete::{Deletion, open_directory};
use crate::error::WorkError;
use crate::worker::Worker;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, open, statat};
use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// How many files are looked at to learn how large they are in the mean.
const SAMPLED: u64 = 256;
/// Entries between two words on progress.
const ENTRIES_A_WORD: u64 = 64;
const DEPTH_MAX: usize = 256;

/// What is in a tree.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    entries: u64,
    sampled: u64,
    sampled_bytes: u64,
}

/// Deletes what the assignment says, if it is still that.
pub(crate) fn run(worker: &mut Worker) -> Result<(), WorkError> {
    let path = worker.spec().path.clone();
    if std::fs::symlink_metadata(&path).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
        worker.say("it was gone already");
        return Ok(());
    }
    worker.spec().is_same()?;
    let counted = count(worker, &path);
    let bytes_per_entry = counted.sampled_bytes as f64 / counted.sampled.max(1) as f64;
    let entries = remove(worker, &path, counted.entries, bytes_per_entry)?;
    worker.say(&format!("{entries} entries deleted"));
    Ok(())
}

/// Entries of a tree.
pub(crate) fn entries(worker: &Worker, path: &Path) -> u64 {
    count(worker, path).entries
}

/// Deletes a tree of so many entries, each of which ties so many bytes; how many entries were deleted, by workers before this one too.
pub(crate) fn remove(worker: &Worker, path: &Path, counted: u64, bytes_per_entry: f64) -> Result<u64, WorkError> {
    let before = worker.spec().position;
    let total = (before + counted) as f64;
    let mut deletion = Deletion::begin(path, true).map_err(|error| WorkError::Refused(error.to_string()))?;
    let mut told = 0;
    while deletion.step() {
        let removed = deletion.removed();
        let entries = removed.files + removed.directories;
        if entries >= told + ENTRIES_A_WORD {
            told = entries;
            worker.ties(bytes_per_entry * counted.saturating_sub(entries) as f64);
            worker.progress((before + entries) as f64, Some(total.max((before + entries) as f64)), before + entries);
        }
    }
    let removed = deletion.removed();
    let entries = before + removed.files + removed.directories;
    worker.ties(0.0);
    worker.progress(entries as f64, Some(entries as f64), entries);
    match deletion.left() {
        [] => Ok(entries),
        [first, more @ ..] => Err(WorkError::Refused(format!(
            "{entries} entries deleted; left {}: {}{}",
            first.path.display(),
            first.reason,
            if more.is_empty() { String::new() } else { format!(", and {} more", more.len()) }
        ))),
    }
}

/// Counts a tree, through no link and into no mount. What cannot be read is not counted.
fn count(worker: &Worker, path: &Path) -> Counted {
    let mut counted = Counted { entries: 1, ..Counted::default() };
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return counted };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let (Ok(parent), Ok(name)) = (open(parent, flags, Mode::empty()), CString::new(name.as_bytes())) else {
        return counted;
    };
    let Ok(root) = open_directory(&parent, &name) else { return counted };
    let mut open_ones = vec![(names(&root, &mut counted), root)];
    while let Some((directories, directory)) = open_ones.last_mut() {
        let Some(name) = directories.pop() else {
            open_ones.pop();
            continue;
        };
        let Ok(inner) = open_directory(directory, &name) else { continue };
        if open_ones.len() < DEPTH_MAX {
            open_ones.push((names(&inner, &mut counted), inner));
        }
        // Nothing is done yet, and the daemon sees that it lives.
        worker.progress(worker.spec().position as f64, None, worker.spec().position);
    }
    counted
}

/// Counts the entries of a directory; those of them that are directories.
fn names(directory: &OwnedFd, counted: &mut Counted) -> Vec<CString> {
    let Ok(entries) = Dir::read_from(directory) else { return Vec::new() };
    let mut directories = Vec::new();
    for entry in entries.filter_map(Result::ok).filter(|entry| !matches!(entry.file_name().to_bytes(), b"." | b"..")) {
        counted.entries += 1;
        match entry.file_type() {
            FileType::Directory => directories.push(entry.file_name().to_owned()),
            _ if counted.sampled < SAMPLED => {
                if let Ok(stat) = statat(directory, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
                    counted.sampled += 1;
                    counted.sampled_bytes += u64::try_from(stat.st_blocks).unwrap_or(0) * 512;
                }
            }
            _ => {}
        }
    }
    directories
}
