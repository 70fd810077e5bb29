//! The directory to which a file is to go, where it is not what it was: on a disk with another number, under another name, or gone.

use super::answers::is_visible;
use super::disks::Destination;
use super::job::{as_logged, link_text};
use super::read_directories::{Directory, ReadDirectories};
use super::site::{Found, Site};
use super::{Deferred, unix_ms};
use crate::user::User;
use minerva_store::{Deferral, DeferralStep};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{MutexGuard, PoisonError};
use std::time::Instant;

/// Whether the link to a file is in a directory: at its place, or where a move that did not end may have put it.
fn is_link_in(site: &Site, row: &Deferral, link: &Path) -> bool {
    let is_at = |name: &OsStr| matches!(site.find_named(name, row, link), Ok(Found::Link));
    is_at(&row.name) || (row.step == DeferralStep::Switching && is_at(&row.copy_name))
}

impl Deferred {
    /// Knows the directory of a file again: on a disk that has another number by now, as after a reboot, or by another path, as it or
    /// one above it was renamed. By its inode, and by the link in it, which nobody else's is like. Whether it was so.
    pub(super) fn find_directory_again(&self, id: u64) -> bool {
        self.find_directory(id, true)
    }

    /// The same; by another path only if what is above the directory may be read.
    pub(super) fn find_directory(&self, id: u64, reads: bool) -> bool {
        let Some(row) = self.files().get(&id).map(|file| file.row.clone()) else { return false };
        let Ok((_, at)) = self.tree_of(&row) else { return false };
        let link = link_text(&at, &row.source);
        match Site::open_any(&row.directory) {
            Ok((_, identity)) if identity == row.directory_identity => false,
            Ok((site, identity)) if identity.1 == row.directory_identity.1 => {
                is_link_in(&site, &row, &link) && self.renumber(id, identity)
            }
            _ => reads && self.find_renamed(&row, &link),
        }
    }

    /// From now on the directory of a file is one on a disk with another number.
    fn renumber(&self, id: u64, identity: (u64, u64)) -> bool {
        let Some(directory) = self.files().get(&id).map(|file| file.row.directory.clone()) else { return false };
        let destination = Destination::of(&directory, identity.0);
        let mut files = self.files();
        let Some(file) = files.get_mut(&id) else { return false };
        (file.row.directory_identity, file.destination) = (identity, destination);
        (file.tries, file.not_before) = (0, Instant::now());
        "its disk has another number than when it was asked for".clone_into(&mut file.why);
        let row = as_logged(&file.row);
        // Where this fails, the next start finds it again.
        let _ = self.log(|log| log.keep(&row));
        true
    }

    fn find_renamed(&self, row: &Deferral, link: &Path) -> bool {
        let directory = (row.directory.clone(), row.directory_identity);
        let Some((site, path)) = self.renamed_to(&directory) else { return false };
        // Its numbers say which directory it is, also for files whose links are gone: else it would be looked for again for each of them.
        self.move_directory(&directory, &path);
        is_link_in(&site, row, link)
    }

    /// The directory by its new path, where it or one above it was renamed within the lowest directory above it that is still there. That one
    /// is read once, until a name in it changes.
    fn renamed_to(&self, directory: &Directory) -> Option<(Site, PathBuf)> {
        let (path, identity) = directory;
        let above = path.ancestors().skip(1).find(|above| above.is_dir())?;
        let below: PathBuf = path.strip_prefix(above).ok()?.components().skip(1).collect();
        let (site, (file_system, _)) = Site::open_any(above).ok()?;
        let changed = site.changed().ok()?;
        if file_system != identity.0 || self.read_above().is_as_read(directory, changed) {
            return None;
        }
        // What the number of one between them was nobody knows.
        let inode = below.as_os_str().is_empty().then_some(identity.1);
        for name in site.directories(inode).ok()? {
            let mut path = PathBuf::from(name);
            path.extend(below.components());
            if let Some(found) = site.open_below(&path, *identity) {
                return Some((found, above.join(path)));
            }
        }
        self.read_above().note(directory.clone(), changed, unix_ms() / 1000);
        None
    }

    /// Files that were to go to a directory go there by its new path. The log has the old one until anything else of a file's row is kept: a start
    /// before that finds the new one again.
    fn move_directory(&self, from: &Directory, to: &Path) {
        for file in self.files().values_mut() {
            if file.row.directory == from.0 && file.row.directory_identity == from.1 {
                to.clone_into(&mut file.row.directory);
                (file.tries, file.not_before) = (0, Instant::now());
                file.why = format!("its directory was {} when it was asked for", from.0.display());
            }
        }
    }

    /// Knows a directory again of which a user asks, or of something in which, and which had another path when files were asked for in it.
    /// While the place is looked at, nobody waits but who asks.
    pub(crate) fn follow_directory(&self, user: &User, path: &Path) {
        for at in [Some(path), path.parent()].into_iter().flatten() {
            // A link may lead to our own mounts.
            let Ok(shown) = user.act(|| fs::symlink_metadata(at)) else { continue };
            let identity = (shown.dev(), shown.ino());
            let rows = self.rows_for(user, identity);
            if rows.is_empty() {
                continue;
            }
            let Ok((site, path)) = Site::find(at, identity, user) else { continue };
            for row in rows.iter().filter(|row| row.directory != path) {
                let is_there =
                    self.tree_of(row).is_ok_and(|(_, mount)| is_link_in(&site, row, &link_text(&mount, &row.source)));
                // One directory may be at several paths.
                if is_there && Site::open(&row.directory, identity).is_err() {
                    self.move_directory(&(row.directory.clone(), identity), &path);
                }
            }
        }
    }

    /// Files of a user that are to go to a directory, whatever its path.
    fn rows_for(&self, user: &User, identity: (u64, u64)) -> Vec<Deferral> {
        let files = self.files();
        let are_for = |row: &Deferral| row.directory_identity == identity && is_visible(user, row);
        files.values().filter(|file| are_for(&file.row)).map(|file| file.row.clone()).collect()
    }

    fn read_above(&self) -> MutexGuard<'_, ReadDirectories> {
        self.read_above.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
