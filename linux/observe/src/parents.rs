//! Groups above tenants, whose counters hold those of everyone below: they tell whose counters need not be read.
//!
//! - While a parent's counters do not move, none of its tenants' did. Nothing is missed: a parent is read before what is below it; what
//!   a tenant transfers after it was read is transferred after its parent was, and so moves the parent's counters at its next reading.
//! - If they moved, tenants that moved lately are read first, those that move most last, and then the parent again. If they account for
//!   all that it counts, the others rest (`remainder` says why that is certain). A request of anybody between two of these readings leaves
//!   the question open: it is put once more where few moved lately, and else everybody is read.
//!
//! On v2 `io.stat` holds what is below, also of groups that are removed since. On v1 the `_recursive` files hold what is there: they fall
//! some milliseconds after a group below is removed, by what it did. A fall moves the parent's counters, and its tenants do not account for
//! it, so that everybody is read. Only if somebody who rests transfers exactly as many bytes on the same disk in the same direction between
//! the same two readings, nothing shows; that is then told with its next transfer. The hierarchy's root is not read: it always moves.

use crate::remainder::{Remainder, Totals};
use crate::tenants::Extent;
use minerva_model::TenantId;
use rustix::fd::OwnedFd;
use std::collections::BTreeMap;
use std::ops::Range;

/// A parent of fewer tenants is not worth a reading of its own.
const TENANTS_MIN: usize = 8;
/// The greatest so many: each keeps files open.
const PARENTS_MAX: usize = 256;
/// Tenants that moved in one of so many slices before are read before a parent is asked about the others.
const LATELY_SLICES: u8 = 30;
/// How often they are read for that, if requests of theirs come between.
const TRIES: usize = 2;
/// They are not read again unless that may save so many readings of others for each of theirs.
const WORTH: usize = 4;

/// What the files of a parent say, one text each.
pub(crate) type Texts = Vec<Vec<u8>>;

/// What is read, and what was read of it before.
pub(crate) trait Groups {
    /// Reads the files of a parent, which stay open in `files`; nothing if they cannot be read.
    fn texts(&mut self, path: &str, files: &mut Vec<OwnedFd>) -> Option<Texts>;
    /// What they mean; nothing if they are damaged.
    fn totals(&self, texts: &Texts) -> Option<Totals>;
    /// A parent's counters lose what a group did that is removed.
    fn may_fall(&self) -> bool;
    /// Reads the counters of the tenant in this place of the order.
    fn read(&mut self, place: usize);
    /// What its last reading gave; nothing if that was not whole, or of another extent.
    fn past(&self, place: usize) -> Option<Past>;
    /// Adds the counters that its last reading gave.
    fn add_last(&self, place: usize, sum: &mut Totals);
}

/// How a tenant's counters moved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Past {
    /// Slices since they did.
    pub(crate) still_slices: u8,
    /// Bytes and operations by which they did when they last did.
    pub(crate) pace: u64,
}

/// The parents, outermost first.
#[derive(Debug, Default)]
pub(crate) struct Parents {
    /// Tenants by path, so that those below a group stand together.
    order: Vec<(TenantId, Extent)>,
    parents: Vec<Parent>,
}

#[derive(Debug)]
struct Parent {
    path: String,
    /// Its tenants, as places in the order.
    below: Range<usize>,
    /// The tenant that its own processes are.
    own: Option<usize>,
    files: Vec<OwnedFd>,
    /// What its files said when its tenants were last read, or would have been; nothing if that is not known.
    said: Option<Texts>,
    /// Nothing until its tenants were read from where they are read now.
    remainder: Option<Remainder>,
}

/// A parent whose counters moved since the last slice.
struct Moved {
    index: usize,
    /// Its totals before any of its tenants were read.
    before: Option<Totals>,
    /// Its tenants accounted for all of them.
    is_explained: bool,
}

impl Parents {
    /// Tenants came or went. What is known of parents that stay goes on to hold for their old tenants. The answer is the order.
    pub(crate) fn arrange<'a>(
        &mut self,
        tenants: impl Iterator<Item = (&'a str, TenantId, Extent)>,
    ) -> Vec<(TenantId, Extent)> {
        let mut by_path: Vec<_> = tenants.collect();
        by_path.sort_unstable_by_key(|(path, ..)| *path);
        let mut ranges: BTreeMap<&str, Range<usize>> = BTreeMap::new();
        for (place, (path, ..)) in by_path.iter().enumerate() {
            for (end, _) in path.match_indices('/') {
                ranges.entry(&path[..end]).or_insert(place..place).end = place + 1;
            }
        }
        let mut parents: Vec<_> = ranges.into_iter().filter(|(_, below)| below.len() >= TENANTS_MIN).collect();
        parents.sort_by_key(|(_, below)| std::cmp::Reverse(below.len()));
        parents.truncate(PARENTS_MAX);

        let order = by_path.iter().map(|(_, id, extent)| (*id, *extent)).collect();
        let order_before = std::mem::replace(&mut self.order, order);
        let before = std::mem::take(&mut self.parents).into_iter();
        let mut before: BTreeMap<String, Parent> = before.map(|parent| (parent.path.clone(), parent)).collect();
        let arranged = parents.into_iter().map(|(path, below)| {
            let own = by_path.binary_search_by_key(&path, |(path, ..)| *path).ok();
            let own = own.filter(|place| by_path[*place].2 == Extent::Own);
            let Some(parent) = before.remove(path) else {
                return Parent { path: path.to_owned(), below, own, files: Vec::new(), said: None, remainder: None };
            };
            let members_before = members(&parent.below, parent.own).map(|place| order_before[place]);
            let members_before: BTreeMap<TenantId, Extent> = members_before.collect();
            // What a group transferred before it was a tenant was part of the remainder.
            let is_known = |place: usize| members_before.get(&self.order[place].0) == Some(&self.order[place].1);
            let is_kept = members(&below, own).all(is_known);
            let remainder = parent.remainder.map(|known| if is_kept { known } else { Remainder::default() });
            Parent { below, own, remainder, ..parent }
        });
        self.parents = arranged.collect();
        // The outer one of two that begin with the same tenant has the shorter path.
        self.parents.sort_by_key(|parent| (parent.below.start, parent.path.len()));
        self.order.clone()
    }

    /// Nothing is known of any parent any more.
    pub(crate) fn forget(&mut self) {
        for parent in &mut self.parents {
            parent.said = None;
            parent.remainder = None;
            parent.files.clear();
        }
    }

    /// Reads everyone's counters, but of tenants that certainly rest.
    pub(crate) fn read(&mut self, groups: &mut impl Groups) {
        // Those that were read in this slice, or rest.
        let mut done = vec![false; self.order.len()];
        let mut moved = self.look(groups, &mut done);
        let mut first: Vec<(u64, usize)> = (0..done.len())
            .filter(|place| !done[*place])
            .filter_map(|place| match groups.past(place) {
                Some(past) => (past.still_slices < LATELY_SLICES).then_some((past.pace, place)),
                None => Some((0, place)),
            })
            .collect();
        // Whoever does most is read right before the parent.
        first.sort_unstable();
        for _ in 0..TRIES {
            for (_, place) in &first {
                groups.read(*place);
                done[*place] = true;
            }
            let open = self.ask(groups, &mut moved, &mut done);
            if first.is_empty() || open < WORTH * first.len() {
                break;
            }
        }
        for place in (0..done.len()).filter(|place| !done[*place]) {
            groups.read(place);
        }
        for moved in moved.into_iter().filter(|moved| !moved.is_explained) {
            self.parents[moved.index].learn(groups, moved.before);
        }
    }

    /// Reads the parents, outermost first. Tenants below one that says what it said before rest.
    fn look(&mut self, groups: &mut impl Groups, done: &mut [bool]) -> Vec<Moved> {
        let mut moved = Vec::new();
        let mut rest_until = 0;
        for (index, parent) in self.parents.iter_mut().enumerate() {
            if parent.below.end <= rest_until {
                continue;
            }
            let texts = groups.texts(&parent.path, &mut parent.files);
            if texts.is_some() && texts == parent.said {
                for place in members(&parent.below, parent.own) {
                    done[place] = groups.past(place).is_some();
                }
                rest_until = parent.below.end;
            } else {
                let before = texts.as_ref().and_then(|texts| groups.totals(texts));
                moved.push(Moved { index, before, is_explained: false });
            }
            parent.said = texts;
        }
        moved
    }

    /// Asks parents that moved whether those of their tenants that were read account for all of it: the others then rest. The answer is
    /// how many tenants there are below the largest parent that may say so if it is asked again.
    fn ask(&mut self, groups: &mut impl Groups, moved: &mut [Moved], done: &mut [bool]) -> usize {
        let (mut rest_until, mut open) = (0, 0);
        for moved in moved {
            let parent = &mut self.parents[moved.index];
            if parent.below.end <= rest_until {
                moved.is_explained = true;
                continue;
            }
            let left = members(&parent.below, parent.own).filter(|place| !done[*place]).count();
            if left < TENANTS_MIN || moved.is_explained {
                continue;
            }
            match parent.is_explained(groups) {
                Some(true) => {
                    members(&parent.below, parent.own).for_each(|place| done[place] = true);
                    rest_until = parent.below.end;
                    moved.is_explained = true;
                }
                Some(false) => open = open.max(left),
                None => {}
            }
        }
        open
    }
}

impl Parent {
    /// Whether its tenants account for all that it counts now; nothing if that cannot be known.
    fn is_explained(&mut self, groups: &mut impl Groups) -> Option<bool> {
        self.remainder.as_ref()?;
        let tenants = self.tenants(groups)?;
        let texts = groups.texts(&self.path, &mut self.files)?;
        let after = groups.totals(&texts)?;
        let is_explained = self.remainder.as_mut()?.explains(&after, &tenants);
        if is_explained {
            self.said = Some(texts);
        }
        Some(is_explained)
    }

    /// Learns from its totals before its tenants were read.
    fn learn(&mut self, groups: &impl Groups, before: Option<Totals>) {
        match (before, self.tenants(groups)) {
            (Some(before), Some(tenants)) => {
                let remainder = self.remainder.get_or_insert_default();
                if groups.may_fall() {
                    *remainder = Remainder::default();
                }
                remainder.learn(&before, &tenants);
            }
            _ => self.remainder = None,
        }
    }

    /// The sum of its tenants' counters as they were last read; nothing if one was not.
    fn tenants(&self, groups: &impl Groups) -> Option<Totals> {
        let mut sum = Totals::new();
        for place in members(&self.below, self.own) {
            groups.past(place)?;
            groups.add_last(place, &mut sum);
        }
        Some(sum)
    }
}

/// The tenants whose counters a parent's hold, as places in the order.
fn members(below: &Range<usize>, own: Option<usize>) -> impl Iterator<Item = usize> + use<> {
    below.clone().chain(own)
}

#[cfg(test)]
#[path = "parents_tests.rs"]
mod tests;
