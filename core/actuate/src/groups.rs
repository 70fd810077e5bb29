//! The cgroups that hold tenants and those above them, numbered, so that the rest compares numbers instead of paths.
//! A group without tenants at or beneath it is forgotten; its number is used again only for the same path, and only while
//! knobs of the former are being put back, so that one directory never has two holders.

use minerva_model::TenantId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A group's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct GroupNumber(u64);

/// One group.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Group {
    /// Below the root of the hierarchy; empty for the root.
    pub(crate) path: String,
    /// The group above; none for the root.
    pub(crate) parent: Option<GroupNumber>,
    /// 0 for the root.
    pub(crate) depth: u32,
    /// The tenant whose group it is.
    pub(crate) tenant: Option<TenantId>,
    children: u32,
}

/// All of them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Groups {
    by_path: BTreeMap<String, GroupNumber>,
    by_number: BTreeMap<GroupNumber, Group>,
    /// Groups that are forgotten, with knobs that are still being put back.
    lingering: BTreeMap<String, GroupNumber>,
    last: u64,
}

impl Groups {
    pub(crate) fn get(&self, number: GroupNumber) -> Option<&Group> {
        self.by_number.get(&number)
    }

    pub(crate) fn parent(&self, number: GroupNumber) -> Option<GroupNumber> {
        self.get(number)?.parent
    }

    pub(crate) fn numbers(&self) -> impl Iterator<Item = GroupNumber> {
        self.by_number.keys().copied()
    }

    pub(crate) fn find(&self, path: &str) -> Option<GroupNumber> {
        self.by_path.get(path).copied()
    }

    /// Enters a tenant's group, and those above it.
    pub(crate) fn enter(&mut self, path: &str, tenant: TenantId) -> GroupNumber {
        let number = self.number(path);
        if let Some(group) = self.by_number.get_mut(&number) {
            group.tenant = Some(tenant);
        }
        number
    }

    /// The tenant is gone; returns the groups that are forgotten with it.
    pub(crate) fn leave(&mut self, number: GroupNumber) -> Vec<GroupNumber> {
        if let Some(group) = self.by_number.get_mut(&number) {
            group.tenant = None;
        }
        let mut forgotten = Vec::new();
        let mut next = Some(number);
        while let Some(number) = next {
            let unused = self.get(number).is_some_and(|group| group.tenant.is_none() && group.children == 0);
            let Some(group) = unused.then(|| self.by_number.remove(&number)).flatten() else { break };
            self.by_path.remove(&group.path);
            forgotten.push(number);
            if let Some(parent) = group.parent.and_then(|parent| self.by_number.get_mut(&parent)) {
                parent.children -= 1;
            }
            next = group.parent;
            self.lingering.insert(group.path, number);
        }
        forgotten
    }

    /// Keeps the numbers of forgotten groups only as long as `is_busy`.
    pub(crate) fn settle(&mut self, is_busy: impl Fn(GroupNumber) -> bool) {
        self.lingering.retain(|_, number| is_busy(*number));
    }

    fn number(&mut self, path: &str) -> GroupNumber {
        if let Some(number) = self.find(path) {
            return number;
        }
        // The directories of a path bound this recursion.
        let parent = match path.rsplit_once('/') {
            Some((above, _)) => Some(self.number(above)),
            None if path.is_empty() => None,
            None => Some(self.number("")),
        };
        let depth = match parent.and_then(|parent| self.by_number.get_mut(&parent)) {
            Some(parent) => {
                parent.children += 1;
                parent.depth + 1
            }
            None => 0,
        };
        self.last += 1;
        let number = self.lingering.remove(path).unwrap_or(GroupNumber(self.last));
        self.by_path.insert(path.to_owned(), number);
        self.by_number.insert(number, Group { path: path.to_owned(), parent, depth, tenant: None, children: 0 });
        number
    }
}

/// Who is likely to write the knobs of a group above tenants.
pub(crate) fn manager_of_group(path: &str) -> &'static str {
    let name = path.rsplit('/').next().unwrap_or(path);
    match () {
        () if path.contains("kubepods") => "the kubelet",
        () if [".slice", ".scope", ".service"].iter().any(|kind| name.ends_with(kind)) => "systemd",
        () => "another program",
    }
}

#[cfg(test)]
mod tests {
    use super::Groups;
    use minerva_model::TenantId;

    #[test]
    fn groups_live_as_long_as_a_tenant_beneath() {
        let mut groups = Groups::default();
        let first = groups.enter("a/b/c", TenantId(1));
        let second = groups.enter("a/d", TenantId(2));
        assert_eq!(groups.get(first).map(|group| group.depth), Some(3));
        assert_eq!(groups.leave(first).len(), 2, "c and b, not a");
        assert!(groups.find("a").is_some());
        assert_eq!(groups.leave(second).len(), 3, "d, a and the root");
        assert!(groups.find("").is_none());
    }
}
