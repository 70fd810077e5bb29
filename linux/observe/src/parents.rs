//! Groups above tenants, whose counters hold those of everyone below: while a parent's do not move, none of its tenants' did, and
//! they need not be read.
//!
//! Nothing is missed. A parent is read before what is below it; what a tenant transfers after it was read is transferred after its
//! parent was, and so moves the parent's counters at its next reading. On v2 `io.stat` holds what is below, on v1 the
//! `_recursive` files do, less what a group did that was removed, which moves them too. The hierarchy's root is not read: it always moves.

use crate::read::Reader;
use crate::tenants::Known;
use minerva_model::TenantId;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::OFlags;
use std::collections::{BTreeMap, BTreeSet};

/// A parent of fewer tenants is not worth a reading of its own.
const TENANTS_MIN: usize = 8;
/// The greatest so many: each keeps files open.
const PARENTS_MAX: usize = 256;

/// The parents, outermost first.
#[derive(Debug, Default)]
pub(crate) struct Parents {
    /// Tenants by path, so that those below a group stand together.
    order: Vec<TenantId>,
    parents: Vec<Parent>,
}

#[derive(Debug)]
struct Parent {
    path: String,
    /// Its tenants, as places in the order.
    first: usize,
    end: usize,
    files: Vec<OwnedFd>,
    /// What its files said when its tenants were last read, or would have been; nothing if that is not known.
    said: Option<Vec<u8>>,
}

impl Parents {
    /// Tenants came or went. What is known of parents that stay goes on to hold for their old tenants.
    pub(crate) fn arrange(&mut self, tenants: &BTreeMap<TenantId, Known>) {
        let mut by_path: Vec<(&str, TenantId)> =
            tenants.iter().map(|(id, known)| (known.tenant.cgroup.path.as_str(), *id)).collect();
        by_path.sort_unstable();
        let mut before: BTreeMap<String, Parent> =
            std::mem::take(&mut self.parents).into_iter().map(|parent| (parent.path.clone(), parent)).collect();
        let mut ranges: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for (place, (path, _)) in by_path.iter().enumerate() {
            for (end, _) in path.match_indices('/') {
                ranges.entry(&path[..end]).or_insert((place, place)).1 = place + 1;
            }
        }
        let mut parents: Vec<_> = ranges.into_iter().filter(|(_, (first, end))| end - first >= TENANTS_MIN).collect();
        parents.sort_by_key(|(_, (first, end))| std::cmp::Reverse(end - first));
        parents.truncate(PARENTS_MAX);
        self.parents = parents
            .into_iter()
            .map(|(path, (first, end))| match before.remove(path) {
                Some(parent) => Parent { first, end, ..parent },
                None => Parent { path: path.to_owned(), first, end, files: Vec::new(), said: None },
            })
            .collect();
        // The outer one of two that begin with the same tenant has the shorter path.
        self.parents.sort_by_key(|parent| (parent.first, parent.path.len()));
        self.order = by_path.into_iter().map(|(_, id)| id).collect();
    }

    /// Nothing is known of any parent any more.
    pub(crate) fn forget(&mut self) {
        for parent in &mut self.parents {
            parent.said = None;
            parent.files.clear();
        }
    }

    /// Tenants below parents whose counters, in the `files`, say what they said before.
    pub(crate) fn resting(&mut self, root: &OwnedFd, files: &[&str], reader: &mut Reader) -> BTreeSet<TenantId> {
        let mut resting = BTreeSet::new();
        let mut rest_until = 0;
        for parent in &mut self.parents {
            if parent.end <= rest_until {
                continue;
            }
            let says = parent.says(root, files, reader);
            if says.is_some() && says == parent.said {
                resting.extend(&self.order[parent.first..parent.end]);
                rest_until = parent.end;
            }
            parent.said = says;
        }
        resting
    }
}

impl Parent {
    /// What its files say now; nothing if they cannot be read.
    fn says(&mut self, root: &OwnedFd, names: &[&str], reader: &mut Reader) -> Option<Vec<u8>> {
        if self.files.len() != names.len() {
            self.files.clear();
            for name in names {
                let path = format!("{}/{name}", self.path);
                self.files.push(crate::read::open_below(root.as_fd(), &path, OFlags::RDONLY).ok()?);
                reader.files_opened += 1;
            }
        }
        let mut says = Vec::new();
        for index in 0..self.files.len() {
            match reader.again(&self.files[index]) {
                Ok(text) => says.extend_from_slice(text),
                // It was removed, and perhaps made again.
                Err(_) => {
                    self.files.clear();
                    return None;
                }
            }
        }
        (!names.is_empty()).then_some(says)
    }
}
