//! One file on its way: the copy, the exchange with the link at its place, and the end of the file in the pool.

use super::copy::Copy;
use super::failpoint::reach;
use super::gone::is_gone;
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
    /// It waits no more, unless what is being put in its place is not put after all.
    #[error("another file is being put in its place")]
    TakenOut,
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

/// Opens the directory of a file, to which a link of this text leads. Where it is gone, though its file system is there, no link stands at
/// the file's place.
pub(super) fn open_directory(row: &Deferral, link: &Path) -> Result<Site, Obstacle> {
    match Site::open(&row.directory, row.directory_identity) {
        Err(_) if is_gone(row, link) => {
            Err(Obstacle::Left(format!("its directory {} was removed, or moved elsewhere", row.directory.display())))
        }
        opened => Ok(opened?),
    }
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
        let site = open_directory(&row, &link)?;
        // What an earlier attempt left: of it there may be nothing in the log.
        site.remove(&row.copy_name)?;
        find_link(&site, &mut row, &link, None)?;
        let moving = tree.begin_move(&row.source)?;
        let attributes = moving.attributes().map_err(MoveRefusal::Failed)?;
        let xattrs = moving.xattrs().map_err(MoveRefusal::Failed)?;
        row.step = DeferralStep::Copying;
        keep(&row)?;
        reach();
        let begun = user(&row).act(|| Copy::begin(&site.directory, &row.copy_name, &attributes, row.counted_bytes));
        let prepared = begun.and_then(|copy| copy.prepare(&xattrs).map(|()| copy));
        match prepared {
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

    /// Puts the copy in the link's place and removes what is in the pool. On an error the file is still in the pool, and no copy is left.
    pub(super) fn finish(mut self, keep: Keep<'_>) -> Result<(), Obstacle> {
        if let Err(obstacle) = self.complete(keep) {
            let _ = self.site.remove(&self.row.copy_name);
            return Err(obstacle);
        }
        let Self { row, link, site, moving, .. } = self;
        if let Err(obstacle) = moving.switch(|| switch(&site, &row, &link)) {
            // Only what is known to be the copy: what else may be under that name is somebody's.
            if matches!(site.find_named(&row.copy_name, &row, &link), Ok(Found::Copy)) {
                let _ = site.remove(&row.copy_name);
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

    /// The copy is the file in all but its name, and the log says that it is about to be in the link's place.
    fn complete(&mut self, keep: Keep<'_>) -> Result<(), Obstacle> {
        let xattrs = self.moving.xattrs().map_err(MoveRefusal::Failed)?;
        self.row.copy_inode = self.copy.finish(&xattrs)?;
        reach();
        self.row.step = DeferralStep::Switching;
        keep(&self.row)?;
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
pub(super) fn find_link(site: &Site, row: &mut Deferral, link: &Path, names: Option<&Names>) -> Result<(), Obstacle> {
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

pub(super) fn remove_source(tree: &Tree, row: &Deferral) -> Result<(), Obstacle> {
    match tree.remove_deferred(&row.source) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(Obstacle::Pool(MoveRefusal::Failed(error))),
    }
}

/// Removes a file of the pool that nobody was told of, unless somebody has written to it all the same; whether it is gone.
pub(super) fn remove_if_empty(tree: &Tree, row: &Deferral) -> Result<bool, Obstacle> {
    match tree.deferred_attributes(&row.source) {
        Ok(shown) if shown.size > 0 => Ok(false),
        Ok(_) => remove_source(tree, row).map(|()| true),
        Err(Errno::NOENT) => Ok(true),
        Err(error) => Err(MoveRefusal::Failed(error).into()),
    }
}

#[cfg(test)]
mod tests;
