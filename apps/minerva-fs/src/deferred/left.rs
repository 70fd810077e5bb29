//! Files of the pool to which no link leads any more. The link may come back, under any name of its directory, so directories are read: one in
//! a slice, and only where a name has changed since. So however many files are left, and however large directories are, others move.

use super::candidates::in_turn;
use super::job::{Obstacle, link_text, open_directory};
use super::mover::Moves;
use super::read_directories::Directory;
use super::settling::{is_in_pool, settle_at};
use super::site::Site;
use super::{Deferred, Waiting, unix_ms};
use minerva_store::{Deferral, DeferralStep};
use std::collections::BTreeSet;
use std::time::Instant;

/// Directories that are looked at in a slice, of which one is read.
const LOOKED_AT: usize = 16;

impl Moves<'_> {
    /// A link that went elsewhere may be back.
    pub(super) fn look_for_left(&mut self) {
        for (first, directory) in self.directories_in_turn() {
            self.looked_up_to = first;
            // All of them, also those that were looked for a moment ago: from now on the directory counts as read.
            let rows = self.left_in(&directory);
            match Site::open(&directory.0, directory.1).and_then(|site| Ok((site.changed()?, site))) {
                Ok((changed, _)) if self.read_directories.is_as_read(&directory, changed) => {
                    rows.iter().for_each(|row| self.deferred.still_left(row));
                }
                Ok((changed, site)) => {
                    if self.deferred.look_for_links(rows, &site) {
                        self.read_directories.note(directory, changed, unix_ms() / 1000);
                    }
                    return;
                }
                // What is above it is read once for all of them, and once in a slice.
                Err(_) => {
                    let look = |(nth, row): (usize, &Deferral)| self.deferred.look_for_directory(row.id, nth == 0);
                    return rows.iter().enumerate().for_each(look);
                }
            }
        }
    }

    /// Directories to which it is time to look again, each with the first file for which it is, those first that were not looked at for long.
    fn directories_in_turn(&self) -> Vec<(u64, Directory)> {
        let now = Instant::now();
        let files = self.deferred.files();
        let mut directories: Vec<(u64, Directory)> = Vec::new();
        for file in in_turn(&files, self.looked_up_to) {
            let is_due = self.is_left(file) && file.not_before <= now;
            if is_due && directories.iter().all(|(_, directory)| !is_of(directory, &file.row)) {
                directories.push((file.row.id, (file.row.directory.clone(), file.row.directory_identity)));
            }
            if directories.len() == LOOKED_AT {
                break;
            }
        }
        directories
    }

    fn left_in(&self, directory: &Directory) -> Vec<Deferral> {
        let files = self.deferred.files();
        let left = files.values().filter(|file| self.is_left(file) && is_of(directory, &file.row));
        left.map(|file| file.row.clone()).collect()
    }

    fn is_left(&self, file: &Waiting) -> bool {
        self.is_for(file) && file.row.step == DeferralStep::Left
    }
}

impl Deferred {
    /// Looks for the links of files in their directory, which is read once for all; whether it is known of each whether its link is there.
    fn look_for_links(&self, rows: Vec<Deferral>, site: &Site) -> bool {
        let names = match site.names_of(&rows.iter().map(|row| row.link_inode).collect::<BTreeSet<u64>>()) {
            Ok(names) => names,
            Err(error) => {
                self.all_failed(&rows, &error.into());
                return false;
            }
        };
        let mut are_known = true;
        for row in rows {
            let id = row.id;
            let settled = self.tree_of(&row).and_then(|(tree, at)| settle_at(row, site, Some(&names), &tree, &at));
            are_known &= matches!(settled, Ok(_) | Err(Obstacle::Left(_)));
            self.note_settled(id, settled);
        }
        are_known
    }

    /// Its directory is not where it was, or cannot be opened for another reason; but somebody may have removed the file. `reads`: what is above
    /// the directory is read, if need be.
    fn look_for_directory(&self, id: u64, reads: bool) {
        if self.find_directory(id, reads) {
            return;
        }
        // It may have another path by now, with that of another file of the same directory.
        let Some(row) = self.files().get(&id).map(|file| file.row.clone()) else { return };
        let looked = self.tree_of(&row).and_then(|(tree, at)| {
            let is_there = is_in_pool(&tree, &row)?;
            if is_there { open_directory(&row, &link_text(&at, &row.source)).map(drop) } else { Err(Obstacle::Gone) }
        });
        if let Err(obstacle) = looked {
            self.failed(id, &obstacle);
        }
    }

    fn all_failed(&self, rows: &[Deferral], obstacle: &Obstacle) {
        rows.iter().for_each(|row| self.failed(row.id, obstacle));
    }

    /// Its link cannot be back; but somebody may have removed the file.
    fn still_left(&self, row: &Deferral) {
        if matches!(self.tree_of(row).and_then(|(tree, _)| is_in_pool(&tree, row)), Ok(false)) {
            return self.forget(row.id);
        }
        self.files().entry(row.id).and_modify(Waiting::postpone);
    }
}

fn is_of(directory: &Directory, row: &Deferral) -> bool {
    directory.0 == row.directory && directory.1 == row.directory_identity
}
