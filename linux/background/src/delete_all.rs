//! The worker's deletion: counts what is there first, so that it can be said how long it will take, and then deletes it.

use crate::commits::Commits;
use crate::delete::{Deletion, Removed};
use crate::error::WorkError;
use crate::sample::{Inode, Sample};
use crate::target::{Target, open_directory};
use crate::worker::Worker;
use rustix::fs::{AtFlags, Dir, FileType, statat};
use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;
use std::time::Instant;

/// Entries between two words on progress.
const ENTRIES_A_WORD: u64 = 64;
const DEPTH_MAX: usize = 256;

/// What is in a tree.
#[derive(Debug, Default)]
struct Counted {
    entries: u64,
    /// Of what is no directory.
    sample: Sample,
}

/// Deletes what the assignment says, if it is still that. Its path is resolved once: others may have put a link or another directory anywhere
/// on it by the time that all is counted.
pub(crate) fn run(worker: &mut Worker) -> Result<(), WorkError> {
    let Some(target) = worker.spec().open_target()? else {
        worker.say("it was gone already");
        return Ok(());
    };
    let counted = count(worker, &target);
    let all = counted.sample.tied_bytes();
    // A file is freed with the last of its names, which may be among the last of all.
    let tied = |removed: Removed| (all - removed.bytes as f64).max(0.0);
    let entries = remove(worker, target, counted.entries, tied)?;
    worker.say(&format!("{entries} entries deleted"));
    Ok(())
}

/// Entries of a tree.
pub(crate) fn entries(worker: &Worker, target: &Target) -> u64 {
    count(worker, target).entries
}

/// Deletes a tree of so many entries, of which what is left when so much was removed ties so many bytes; how many entries were deleted, by
/// workers before this one too.
pub(crate) fn remove(
    worker: &Worker,
    target: Target,
    counted: u64,
    tied: impl Fn(Removed) -> f64,
) -> Result<u64, WorkError> {
    if !target.is_in_place() {
        return Err(worker.spec().is_another());
    }
    let before = worker.spec().position;
    let total = (before + counted) as f64;
    let mut deletion = Deletion::of(target);
    let (mut told, mut commits) = (0, Commits::new(Instant::now()));
    // Of a few large files nothing is told until the last is gone.
    worker.ties(tied(Removed::default()));
    worker.progress(before as f64, Some(total), before);
    let mut removed = deletion.removed();
    while deletion.step() {
        let before_step = std::mem::replace(&mut removed, deletion.removed());
        if commits.is_due(Instant::now(), removed != before_step) || deletion.is_over() {
            deletion.commit(&mut commits);
        }
        let entries = removed.files + removed.directories;
        if entries >= told + ENTRIES_A_WORD {
            told = entries;
            worker.ties(tied(removed));
            worker.progress((before + entries) as f64, Some(total.max((before + entries) as f64)), before + entries);
        }
    }
    let removed = deletion.removed();
    let entries = before + removed.files + removed.directories;
    // What is left was not freed.
    worker.ties(if deletion.left().is_empty() { 0.0 } else { tied(removed) });
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
fn count(worker: &Worker, target: &Target) -> Counted {
    let mut counted = Counted { entries: 1, ..Counted::default() };
    let Some(directory) = &target.directory else {
        counted.sample.name(0, || inode(&target.parent, &target.name));
        return counted;
    };
    let Ok(root) = directory.try_clone() else { return counted };
    let mut open_ones = vec![(names(worker, &root, &mut counted), root)];
    while let Some((directories, directory)) = open_ones.last_mut() {
        let Some(name) = directories.pop() else {
            open_ones.pop();
            continue;
        };
        let Ok(inner) = open_directory(directory, &name) else { continue };
        if open_ones.len() < DEPTH_MAX {
            open_ones.push((names(worker, &inner, &mut counted), inner));
        }
    }
    counted
}

/// Counts the entries of a directory; those of them that are directories.
fn names(worker: &Worker, directory: &OwnedFd, counted: &mut Counted) -> Vec<CString> {
    let Ok(entries) = Dir::read_from(directory) else { return Vec::new() };
    let mut directories = Vec::new();
    for entry in entries.filter_map(Result::ok).filter(|entry| !matches!(entry.file_name().to_bytes(), b"." | b"..")) {
        counted.entries += 1;
        worker.looked(None);
        match entry.file_type() {
            FileType::Directory => directories.push(entry.file_name().to_owned()),
            _ => counted.sample.name(entry.ino(), || inode(directory, entry.file_name())),
        }
    }
    directories
}

fn inode(directory: &OwnedFd, name: &CStr) -> Option<Inode> {
    let stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(Inode { links: stat.st_nlink as u32, bytes: u64::try_from(stat.st_blocks).unwrap_or(0) * 512 })
}

#[cfg(test)]
mod tests {
    use super::{count, remove, run};
    use crate::delete::Removed;
    use crate::error::WorkError;
    use crate::spec::Kind;
    use crate::worker::Worker;
    use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
    use std::fs;
    use std::os::unix::fs::{MetadataExt, symlink};
    use std::path::Path;

    /// A tree `a/lib` that is to be deleted, and a tree `usr/lib` that nobody asked for.
    fn asked_for() -> (tempfile::TempDir, Worker) {
        let folder = tempfile::Builder::new().prefix("minerva-test-").tempdir().unwrap();
        let root = folder.path();
        for file in ["a/lib/one", "a/lib/inner/two", "usr/lib/one", "usr/lib/inner/kept"] {
            fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            fs::write(root.join(file), "text").unwrap();
        }
        let worker = Worker::of(root, Kind::Delete, &root.join("a/lib"));
        (folder, worker)
    }

    /// As long as a tree of millions of entries is counted, nothing of it is done.
    #[test]
    fn who_counts_is_seen_to_look_at_more_and_more() {
        let (folder, worker) = asked_for();
        let tree = folder.path().join("a/lib");
        (0..200).for_each(|file| fs::write(tree.join(file.to_string()), "text").unwrap());
        assert_eq!(count(&worker, &worker.spec().open_target().unwrap().unwrap()).entries, 204);
        let progress = worker.assignment().place.progress().unwrap();
        assert_eq!((progress.done, progress.total, progress.looked), (0.0, None, 192));
    }

    #[test]
    fn what_has_another_name_elsewhere_ties_nothing() {
        let (folder, worker) = asked_for();
        let tree = folder.path().join("a/lib");
        fs::hard_link(tree.join("one"), folder.path().join("usr/other")).unwrap();
        let counted = || count(&worker, &worker.spec().open_target().unwrap().unwrap());
        let bytes = (fs::metadata(tree.join("inner/two")).unwrap().blocks() * 512) as f64;
        assert_eq!(counted().sample.tied_bytes(), bytes);
        fs::remove_file(folder.path().join("usr/other")).unwrap();
        assert_eq!(counted().sample.tied_bytes(), 2.0 * bytes);
        fs::hard_link(tree.join("one"), tree.join("inner/other")).unwrap();
        assert_eq!(counted().sample.tied_bytes(), 2.0 * bytes, "all its names are in the tree");
        let of_file = Worker::of(folder.path(), Kind::Delete, &tree.join("inner/two"));
        let counted = count(&of_file, &of_file.spec().open_target().unwrap().unwrap());
        assert_eq!((counted.entries, counted.sample.tied_bytes()), (1, bytes));
    }

    #[test]
    fn what_is_left_is_still_tied() {
        let (folder, worker) = asked_for();
        let mounted_on = folder.path().join("a/lib/mounted");
        fs::create_dir_all(&mounted_on).unwrap();
        if let Err(errno) = mount("minerva-test", &mounted_on, "tmpfs", MountFlags::empty(), None) {
            return println!("skipped: needs root: {errno}");
        }
        let tied = |removed: Removed| 1000.0 * (5 - removed.files - removed.directories) as f64;
        let outcome = remove(&worker, worker.spec().open_target().unwrap().unwrap(), 5, tied);
        unmount(&mounted_on, UnmountFlags::DETACH).unwrap();
        assert!(matches!(outcome, Err(WorkError::Refused(_))), "{outcome:?}");
        // The tree itself, and what is mounted there.
        let progress = worker.assignment().place.progress().unwrap();
        assert_eq!((progress.done, progress.tied_bytes), (3.0, 2000.0));
    }

    #[test]
    fn a_name_that_cannot_be_deleted_makes_no_line_of_its_own_in_the_message() {
        let (folder, mut worker) = asked_for();
        let mounted_on = folder.path().join("a/lib/a\nbackup  delete  sda  done\x1b[2J");
        fs::create_dir_all(&mounted_on).unwrap();
        if let Err(errno) = mount("minerva-test", &mounted_on, "tmpfs", MountFlags::empty(), None) {
            return println!("skipped: needs root: {errno}");
        }
        let outcome = run(&mut worker);
        unmount(&mounted_on, UnmountFlags::DETACH).unwrap();
        let message = outcome.unwrap_err().in_full();
        let shown = "a\u{FFFD}backup  delete  sda  done\u{FFFD}[2J: something is mounted there";
        assert!(message.contains(shown) && !message.contains(char::is_control), "{message:?}");
    }

    /// Deletes it, after all was counted and others changed something.
    fn deleted(root: &Path, worker: &Worker, change: impl Fn(&Path)) -> Result<u64, WorkError> {
        let target = worker.spec().open_target().unwrap().unwrap();
        let counted = count(worker, &target).entries;
        assert_eq!(counted, 4);
        change(root);
        remove(worker, target, counted, |_| 0.0)
    }

    fn is_spared(root: &Path) -> bool {
        root.join("usr/lib/one").exists() && root.join("usr/lib/inner/kept").exists()
    }

    #[test]
    fn a_directory_above_that_becomes_a_link_while_all_is_counted_leads_nowhere_else() {
        let (folder, worker) = asked_for();
        let deleted = deleted(folder.path(), &worker, |root| {
            fs::rename(root.join("a"), root.join("away")).unwrap();
            symlink("usr", root.join("a")).unwrap();
        });
        assert_eq!(deleted.unwrap(), 4);
        assert!(is_spared(folder.path()));
        assert!(!folder.path().join("away/lib").exists(), "what was asked for is gone");
    }

    #[test]
    fn what_becomes_another_while_all_is_counted_is_left_alone_as_is_what_it_was() {
        let by_link = |root: &Path| symlink("../usr/lib", root.join("a/lib")).unwrap();
        let by_directory = |root: &Path| fs::rename(root.join("usr/lib"), root.join("a/lib")).unwrap();
        let changes: [&dyn Fn(&Path); 2] = [&by_link, &by_directory];
        for change in changes {
            let (folder, worker) = asked_for();
            let deleted = deleted(folder.path(), &worker, |root| {
                fs::rename(root.join("a/lib"), root.join("away")).unwrap();
                change(root);
            });
            assert!(matches!(deleted, Err(WorkError::Absent(_))), "{deleted:?}");
            let root = folder.path();
            assert!(is_spared(root) || root.join("a/lib/inner/kept").exists());
            assert!(root.join("away/one").exists() && root.join("away/inner/two").exists());
        }
    }

    #[test]
    fn what_became_another_before_is_left_alone_and_deleted_once_it_is_there_again() {
        let (folder, mut worker) = asked_for();
        let root = folder.path();
        fs::rename(root.join("a"), root.join("away")).unwrap();
        symlink("usr", root.join("a")).unwrap();
        assert!(matches!(run(&mut worker), Err(WorkError::Absent(_))));
        assert!(is_spared(root) && root.join("away/lib/one").exists());
        fs::remove_file(root.join("a")).unwrap();
        fs::rename(root.join("away"), root.join("a")).unwrap();
        run(&mut worker).unwrap();
        assert!(is_spared(root) && !root.join("a/lib").exists());
        run(&mut worker).unwrap();
        assert_eq!(worker.message(), "it was gone already");
    }

    #[test]
    fn a_directory_of_the_same_number_that_was_made_since_is_another() {
        let (_folder, mut worker) = asked_for();
        let lasting = worker.spec_mut().identity.lasting.as_mut().unwrap();
        if lasting.born_ns == 0 {
            println!("skipped: needs a file system that keeps when files were made");
            return;
        }
        lasting.born_ns += 1;
        assert!(matches!(run(&mut worker), Err(WorkError::Absent(_))));
        assert!(worker.spec().path.join("one").exists());
    }
}
