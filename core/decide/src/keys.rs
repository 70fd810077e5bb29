//! Names of histories as small numbers, so that a disk finds a history by its place in a vector.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The number of a history; it may be used again once nobody refers to it.
pub(crate) type Key = usize;

/// Who shares which history.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Keys {
    by_name: BTreeMap<String, Key>,
    rows: Vec<Row>,
    free: Vec<Key>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Row {
    name: String,
    members: u32,
    /// An operator's group is remembered while it has no member, and what the groups of a user did; a cgroup that is gone never comes
    /// back.
    lasting: bool,
}

impl Keys {
    /// Another tenant has the history `name`.
    pub(crate) fn join(&mut self, name: &str, lasting: bool) -> Key {
        let key = self.find_or_make(name, lasting);
        self.rows[key].members += 1;
        key
    }

    /// The history `name` lasts whether anybody has it or not.
    pub(crate) fn keep(&mut self, name: &str) -> Key {
        let key = self.find_or_make(name, true);
        self.rows[key].lasting = true;
        key
    }

    fn find_or_make(&mut self, name: &str, lasting: bool) -> Key {
        if let Some(key) = self.by_name.get(name) {
            return *key;
        }
        let key = self.free.pop().unwrap_or_else(|| {
            self.rows.push(Row::default());
            self.rows.len() - 1
        });
        self.rows[key] = Row { name: name.to_owned(), members: 0, lasting };
        self.by_name.insert(name.to_owned(), key);
        key
    }

    /// A tenant left the history. True when it was the last one and the history is to be forgotten.
    pub(crate) fn leave(&mut self, key: Key) -> bool {
        let row = &mut self.rows[key];
        row.members = row.members.saturating_sub(1);
        let forget = row.members == 0 && !row.lasting;
        if forget {
            self.forget(key);
        }
        forget
    }

    /// Gives the number back.
    pub(crate) fn forget(&mut self, key: Key) {
        let name = std::mem::take(&mut self.rows[key].name);
        self.by_name.remove(&name);
        self.free.push(key);
    }

    /// The name under which the history is stored.
    pub(crate) fn name(&self, key: Key) -> &str {
        &self.rows[key].name
    }

    /// Histories that nobody has at present.
    pub(crate) fn orphans(&self) -> Vec<Key> {
        self.by_name.values().copied().filter(|key| self.rows[*key].members == 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Keys;

    #[test]
    fn a_group_outlives_its_members_and_a_cgroup_does_not() {
        let mut keys = Keys::default();
        let (cgroup, group) = (keys.join("cgroup:a#1", false), keys.join("group:web", true));
        assert_eq!(keys.join("group:web", true), group);
        assert!(keys.leave(cgroup));
        assert!(!keys.leave(group) && !keys.leave(group));
        assert_eq!(keys.orphans(), [group]);
        assert_eq!(keys.join("cgroup:b#2", false), cgroup, "the number is used again");
        assert_eq!(keys.name(cgroup), "cgroup:b#2");
        assert_eq!(keys.keep("cgroup:b#2"), cgroup);
        assert!(!keys.leave(cgroup), "what a user's groups did lasts while there is none of them");
        assert_eq!(keys.join("cgroup:b#2", false), cgroup);
    }
}
