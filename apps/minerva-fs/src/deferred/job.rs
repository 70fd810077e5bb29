//! One file on its way: what is found where it is to go, the copy, the exchange, and what a step that was not finished left behind.
//!
//! | found after a crash | what was done | what is done |
//! |---|---|---|
//! | `placing` | a link may be there, to an empty file | with the link it waits; without, both go |
//! | `waiting`, `left` | nothing, or a part of a copy | it goes, and the copy is begun anew |
//! | `switching`, the link at its place | nothing yet | as `waiting` |
//! | `switching`, the copy at its place, the link beside it | the exchange | the link goes, then the file in the pool |
//! | `switching`, the copy at its place, something else beside it | the exchange, though somebody had replaced the link | back again |
//!
//! `copying` is not in the log, only in memory, for people. It would say that there may be a part of a copy, which is nobody's but ours
//! by its name, never stands at the file's place, and is removed unasked wherever a row is found and wherever a copy begins. So a log that
//! says `waiting` leads to the same end. `switching` has to be there before the exchange: without the copy's inode, what stands at
//! the place could not be told from somebody else's file. A log of an earlier version may still say `copying`.

use super::copy::Copy;
use super::failpoint::reach;
use super::site::{Found, Names, Site};
use crate::user::User;
use minerva_cachefs::{DEFERRED, MoveRefusal, Moving, Tree};
use minerva_store::{Deferral, DeferralStep};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why a file has not moved.
#[derive(Debug, thiserror::Error)]
pub(super) enum Obstacle {
    /// It cannot be moved now.
    #[error(transparent)]
    Pool(#[from] MoveRefusal),
    /// The link is gone, or another's.
    #[error("{0}")]
    Left(String),
    /// It is not in the pool any more.
    #[error("it was removed from the pool")]
    Gone,
    /// It cannot be done there.
    #[error("{0}")]
    Destination(String),
    /// The log of what is under way cannot be written.
    #[error("{0}")]
    Log(String),
}

impl From<io::Error> for Obstacle {
    fn from(error: io::Error) -> Self {
        Self::Destination(match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::NOSPC) => "its disk has no room for it".to_owned(),
            Some(Errno::DQUOT) => "its user's quota there has no room for it".to_owned(),
            Some(Errno::ROFS) => "its disk is read-only".to_owned(),
            Some(Errno::ACCESS | Errno::PERM) => format!("its user may not write there any more ({error})"),
            Some(Errno::INVAL | Errno::NOSYS) => format!("its file system cannot exchange two names ({error})"),
            _ => format!("its disk says: {error}"),
        })
    }
}

impl From<anyhow::Error> for Obstacle {
    fn from(error: anyhow::Error) -> Self {
        Self::Destination(format!("{error:#}"))
    }
}

/// Keeps what becomes of a row before it is done.
pub(super) type Keep<'a> = &'a dyn Fn(&Deferral) -> Result<(), Obstacle>;

/// Whether nothing at the file's place has changed yet by a move. Between these steps the log says `waiting`.
pub(super) fn is_before_switching(step: DeferralStep) -> bool {
    matches!(step, DeferralStep::Waiting | DeferralStep::Copying)
}

/// As the log has it.
pub(super) fn as_logged(row: &Deferral) -> Deferral {
    let step = if is_before_switching(row.step) { DeferralStep::Waiting } else { row.step };
    Deferral { step, ..row.clone() }
}

/// The text of the link to a file of the pool.
pub(super) fn link_text(mount: &Path, source: &OsStr) -> PathBuf {
    mount.join(DEFERRED).join(source)
}

/// The user of a row.
pub(super) fn user(row: &Deferral) -> User {
    let (uid, gid, groups) = row.user.clone();
    User { uid, gid, groups }
}

/// A file on its way.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) row: Deferral,
    link: PathBuf,
    site: Site,
    moving: Moving,
    copy: Copy,
}

impl Job {
    /// Looks whether the file can be moved, and begins the copy.
    pub(super) fn begin(mut row: Deferral, tree: &Arc<Tree>, mount: &Path, keep: Keep<'_>) -> Result<Self, Obstacle> {
        let link = link_text(mount, &row.source);
        let site = Site::open(&row.directory, row.directory_identity)?;
        // What an earlier attempt left: of it there may be nothing in the log.
        site.remove(&row.copy_name)?;
        find_link(&site, &mut row, &link, None)?;
        let moving = tree.begin_move(&row.source)?;
        let attributes = moving.attributes().map_err(MoveRefusal::Failed)?;
        row.step = DeferralStep::Copying;
        keep(&row)?;
        reach();
        let begun = user(&row).act(|| Copy::begin(&site.directory, &row.copy_name, &attributes, row.counted_bytes));
        match begun {
            Ok(copy) => Ok(Self { row, link, site, moving, copy }),
            Err(error) => {
                let _ = site.remove(&row.copy_name);
                Err(error.into())
            }
        }
    }

    /// Copies the next piece; whether there was one.
    pub(super) fn piece(&mut self) -> Result<bool, Obstacle> {
        if self.moving.is_disturbed() {
            return Err(MoveRefusal::Open.into());
        }
        reach();
        Ok(self.copy.piece(self.moving.data())?)
    }

    /// Whether somebody came to the file, so that going on is in vain.
    pub(super) fn is_disturbed(&self) -> bool {
        self.moving.is_disturbed()
    }

    /// As [`Copy::take_fresh`].
    pub(super) fn take_fresh(&mut self) -> (u64, u64) {
        self.copy.take_fresh()
    }

    /// How far it has come.
    pub(super) fn done_bytes(&self) -> u64 {
        self.copy.done()
    }

    /// Puts the copy in the link's place and removes what is in the pool. On an error the file is still in the pool.
    pub(super) fn finish(mut self, keep: Keep<'_>) -> Result<(), Obstacle> {
        self.row.copy_inode = self.copy.finish(&self.moving)?;
        reach();
        self.row.step = DeferralStep::Switching;
        keep(&self.row)?;
        reach();
        let Self { row, link, site, moving, .. } = self;
        if let Err(obstacle) = moving.switch(|| switch(&site, &row, &link)) {
            // Only what is known to be the copy: what else may be under that name is somebody's.
            if site.find_named(&row.copy_name, &row, &link)? == Found::Copy {
                site.remove(&row.copy_name)?;
            }
            return Err(obstacle);
        }
        reach();
        // Only now that the new name is durable may the old file go.
        site.remove(&row.copy_name)?;
        reach();
        site.sync()?;
        reach();
        moving.remove().map_err(|error| Obstacle::Pool(MoveRefusal::Failed(error)))?;
        reach();
        Ok(())
    }

    /// Ends it where it is; the copy goes.
    pub(super) fn abandon(self) -> Deferral {
        let _ = self.site.remove(&self.row.copy_name);
        self.row
    }
}

/// Exchanges link and copy in the name of who asked, and back if it was not the link that stood there. When it succeeds the copy, and
/// nothing else, stands at the place.
fn switch(site: &Site, row: &Deferral, link: &Path) -> Result<(), Obstacle> {
    let copy = &*row.copy_name;
    let exchange = || site.exchange(copy, &row.name).map_err(Obstacle::from);
    match site.find_named(&row.name, row, link)? {
        Found::Link => (),
        found => return Err(replaced(found)),
    }
    if site.find_named(copy, row, link)? != Found::Copy {
        return Err(Obstacle::Destination("its copy was removed or replaced there".to_owned()));
    }
    user(row).act(exchange)?;
    reach();
    match site.find_named(copy, row, link)? {
        Found::Link => (),
        found => {
            // Somebody replaced the link since it was looked at: what they made goes back under its name.
            user(row).act(exchange)?;
            return Err(replaced(found));
        }
    }
    match site.find_named(&row.name, row, link)? {
        Found::Copy => Ok(()),
        found => {
            // Somebody replaced the copy, before the exchange or after it. What stands there may be theirs, so it stays, and so does what is
            // in the pool; the link, to which nothing leads any more, goes.
            site.remove(copy)?;
            Err(replaced(found))
        }
    }
}

fn replaced(by: Found) -> Obstacle {
    Obstacle::Left(match by {
        Found::Nothing => "the link to it was removed, or moved to another directory".to_owned(),
        _ => "something else has taken the place of the link to it".to_owned(),
    })
}

/// Finds the link under its name, or under another of the directory, which is read where it was not.
fn find_link(site: &Site, row: &mut Deferral, link: &Path, names: Option<&Names>) -> Result<(), Obstacle> {
    let found = site.find_named(&row.name, row, link)?;
    if found == Found::Link {
        return Ok(());
    }
    let renamed = match names {
        Some(names) => site.renamed(row, link, names),
        None => site.renamed(row, link, &site.names_of(&BTreeSet::from([row.link_inode]))?),
    };
    match renamed {
        Some(name) => {
            row.name = name;
            Ok(())
        }
        None => Err(replaced(found)),
    }
}

/// It may well be there where that cannot be seen: a pool that fails, or a host that is away, must not cost the link.
pub(super) fn is_in_pool(tree: &Tree, row: &Deferral) -> Result<bool, Obstacle> {
    match tree.deferred_attributes(&row.source) {
        Ok(_) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(MoveRefusal::Failed(error).into()),
    }
}

/// What a row becomes that an earlier process left.
pub(super) fn settle(row: Deferral, tree: &Tree, mount: &Path) -> Result<Option<Deferral>, Obstacle> {
    let site = Site::open(&row.directory, row.directory_identity)?;
    settle_at(row, &site, None, tree, mount)
}

/// What a row becomes that an earlier process left, or that stands as it was; `names` of the place, if it was read already. Under the copy's
/// name there is, before `switching`, a copy that is not whole, whether or not the log knows of it, or the link that was to be put.
pub(super) fn settle_at(
    mut row: Deferral,
    site: &Site,
    names: Option<&Names>,
    tree: &Tree,
    mount: &Path,
) -> Result<Option<Deferral>, Obstacle> {
    let link = link_text(mount, &row.source);
    let copy = &row.copy_name.clone();
    let is_in_pool = is_in_pool(tree, &row)?;
    if row.step != DeferralStep::Switching {
        site.remove(copy)?;
    }
    match (row.step, site.find_named(&row.name, &row, &link)?) {
        (DeferralStep::Switching, Found::Copy) => return settle_exchanged(row, site, tree, &link),
        (DeferralStep::Placing, Found::Nothing | Found::Other | Found::Copy) => {
            remove_source(tree, &row)?;
            return Ok(None);
        }
        (_, Found::Link) if !is_in_pool => {
            // Memory that is no more, or somebody removed it: a link to nothing would be worse than none.
            site.remove(copy)?;
            site.remove(&row.name)?;
            return Ok(None);
        }
        _ if !is_in_pool => return Ok(None),
        (_, found) => {
            site.remove(copy)?;
            if row.step == DeferralStep::Left {
                find_link(site, &mut row, &link, names)?;
            }
            if row.link_inode == 0 && found == Found::Link {
                row.link_inode = site.inode(&row.name)?;
            }
            (row.step, row.copy_inode) = (DeferralStep::Waiting, 0);
        }
    }
    Ok(Some(row))
}

/// The same of a row whose copy stands at its place: that was meant, unless somebody had replaced the link before.
fn settle_exchanged(mut row: Deferral, site: &Site, tree: &Tree, link: &Path) -> Result<Option<Deferral>, Obstacle> {
    let copy = &*row.copy_name;
    match site.find_named(copy, &row, link)? {
        Found::Link | Found::Nothing => {
            site.remove(copy)?;
            site.sync()?;
            remove_source(tree, &row)?;
            Ok(None)
        }
        Found::Copy | Found::Other => {
            site.exchange(copy, &row.name)?;
            site.remove(copy)?;
            row.step = DeferralStep::Left;
            Ok(Some(row))
        }
    }
}

fn remove_source(tree: &Tree, row: &Deferral) -> Result<(), Obstacle> {
    match tree.remove_deferred(&row.source) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(Obstacle::Pool(MoveRefusal::Failed(error))),
    }
}

#[cfg(test)]
mod tests {
    use super::{Obstacle, switch};
    use crate::deferred::site::Site;
    use minerva_store::{Deferral, DeferralStep};
    use std::fs;
    use std::os::unix::fs::{MetadataExt, symlink};
    use std::path::Path;

    fn row(directory: &Path) -> Deferral {
        let shown = fs::metadata(directory).unwrap();
        Deferral {
            id: 1,
            tenant: "web".to_owned(),
            pool: "stable".to_owned(),
            source: "source".into(),
            directory: directory.to_owned(),
            directory_identity: (shown.dev(), shown.ino()),
            name: "file".into(),
            link_inode: fs::symlink_metadata(directory.join("file")).unwrap().ino(),
            copy_inode: fs::metadata(directory.join("copy")).unwrap().ino(),
            copy_name: "copy".into(),
            user: (0, 0, Vec::new()),
            added_unix_ms: 0,
            is_asked_for: false,
            step: DeferralStep::Switching,
            cgroup: String::new(),
            counted_bytes: 0,
        }
    }

    #[test]
    fn nothing_but_the_copy_comes_to_the_place_of_the_link() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let link = Path::new("/nowhere/source");
        symlink(link, at("file")).unwrap();
        fs::write(at("copy"), "whole").unwrap();
        let row = row(folder.path());
        let site = Site::open(&row.directory, row.directory_identity).unwrap();
        // Another's copy, which is not whole, under the same name.
        fs::rename(at("copy"), at("kept")).unwrap();
        fs::write(at("copy"), "ha").unwrap();
        let refused = switch(&site, &row, link).unwrap_err();
        assert!(matches!(refused, Obstacle::Destination(_)), "{refused}");
        assert_eq!(fs::read_link(at("file")).unwrap(), link);
        fs::rename(at("kept"), at("copy")).unwrap();
        switch(&site, &row, link).unwrap();
        assert_eq!(
            (fs::read(at("file")).unwrap(), fs::read_link(at("copy")).unwrap()),
            (b"whole".to_vec(), link.into())
        );
    }
}
