//! Where the link of a file is now, for who asks before a mover has looked.

use super::Deferred;
use super::job::{Obstacle, as_logged, find_link, is_before_switching, link_text, open_directory};
use super::site::{Found, Site};
use crate::user::User;
use minerva_store::Deferral;
use std::path::Path;

impl Deferred {
    /// Follows a link that was renamed within its directory to this path, so that its file is known by its name of now. While the place is
    /// looked at, nobody waits but who asks.
    pub(crate) fn follow_link(&self, user: &User, path: &Path) {
        let Ok(text) = user.act(|| std::fs::read_link(path)) else { return };
        let (Some(source), Some(name)) = (text.file_name(), path.file_name()) else { return };
        let found = self.files().values().find(|file| file.row.source == source).map(|file| file.row.clone());
        let Some(row) = found.filter(|row| row.name != name) else { return };
        let (Ok((_, at)), Ok(site)) = (self.tree_of(&row), Site::open(&row.directory, row.directory_identity)) else {
            return;
        };
        // The path may be one of another directory, with a link of the same text.
        if !matches!(site.find_named(name, &row, &link_text(&at, source)), Ok(Found::Link)) {
            return;
        }
        let mut files = self.files();
        let Some(file) = files.get_mut(&row.id).filter(|file| is_before_switching(file.row.step)) else { return };
        name.clone_into(&mut file.row.name);
        // The new name is not on its disk yet.
        file.is_link_synced = false;
        let row = as_logged(&file.row);
        // Where this fails, the next start finds the link by reading its directory.
        let _ = self.log(|log| log.keep(&row));
    }

    /// Whether no link leads to a file any more, though no mover has found that yet.
    pub(super) fn has_lost_link(&self, row: &Deferral) -> bool {
        // While the copy takes the place of the link, that is nowhere for a moment.
        is_before_switching(row.step) && matches!(self.find_its_link(row), Err(Obstacle::Left(_)))
    }

    /// Whether a link leads to a file of which a mover found none.
    pub(super) fn has_link(&self, row: &Deferral) -> bool {
        self.find_its_link(row).is_ok()
    }

    fn find_its_link(&self, row: &Deferral) -> Result<(), Obstacle> {
        let (_, at) = self.tree_of(row)?;
        let link = link_text(&at, &row.source);
        open_directory(row, &link).and_then(|site| find_link(&site, &mut row.clone(), &link, None)).map(drop)
    }
}
