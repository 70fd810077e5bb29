//! What is found of a file that was on its way when an earlier process ended, and what is done.
//!
//! | found after a crash | what was done | what is done |
//! |---|---|---|
//! | `placing` | a link may be there, to an empty file | with the link it waits; without, both go, but for what somebody wrote: `left` |
//! | `placing`, it once had a link, and something else is at its place | another was being put there | it goes |
//! | `waiting`, `left` | nothing, or a part of a copy | it goes, and the copy is begun anew |
//! | `switching`, the link at its place | nothing yet | as `waiting` |
//! | `switching`, the copy at its place, the link beside it | the exchange | the link goes, then the file in the pool |
//! | `switching`, the copy at its place, something else beside it | the exchange, though somebody had replaced the link | back again |
//!
//! `copying` is not in the log, only in memory, for people. It would say that there may be a part of a copy, which is nobody's but ours
//! by its name, never stands at the file's place, and is removed unasked wherever a row is found and wherever a copy begins. So a log that
//! says `waiting` leads to the same end. `switching` has to be there before the exchange: without the copy's inode, what stands at
//! the place could not be told from somebody else's file. A log of an earlier version may still say `copying`.

use super::job::{Obstacle, find_link, link_text, open_directory, remove_if_empty, remove_source};
use super::site::{Found, Names, Site, trial_name};
use minerva_cachefs::{MoveRefusal, Tree};
use minerva_store::{Deferral, DeferralStep};
use rustix::io::Errno;
use std::path::Path;

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
    let site = match open_directory(&row, &link_text(mount, &row.source)) {
        // Which of link and copy is where cannot be told without it.
        Err(Obstacle::Left(_)) if row.step == DeferralStep::Switching => {
            Site::open(&row.directory, row.directory_identity)?
        }
        Err(Obstacle::Left(_)) if !is_in_pool(tree, &row)? => return Ok(None),
        // Nobody was told of it.
        Err(Obstacle::Left(_))
            if row.step == DeferralStep::Placing && row.link_inode == 0 && remove_if_empty(tree, &row)? =>
        {
            return Ok(None);
        }
        opened => opened?,
    };
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
    remove_unfinished(site, &row)?;
    match (row.step, site.find_named(&row.name, &row, &link)?) {
        (DeferralStep::Switching, Found::Copy) => return settle_exchanged(row, site, tree, &link),
        (DeferralStep::Placing, found @ (Found::Nothing | Found::Other | Found::Copy)) => {
            // Once it had a link, and another was about to be put in its place.
            let is_replaced = row.link_inode != 0 && found == Found::Other;
            if is_replaced {
                remove_source(tree, &row)?;
                return Ok(None);
            }
            if remove_if_empty(tree, &row)? {
                return Ok(None);
            }
            return Err(Obstacle::Left(
                "an earlier process failed to put it there, and no link leads to it".to_owned(),
            ));
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

/// Removes what a step that did not end left beside the file's place.
fn remove_unfinished(site: &Site, row: &Deferral) -> Result<(), Obstacle> {
    if row.step != DeferralStep::Switching {
        site.remove(&row.copy_name)?;
    }
    if row.step == DeferralStep::Placing {
        site.remove(&trial_name(row))?;
    }
    Ok(())
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
