//! What is known of groups in which somebody besides root may make groups.

use std::collections::{BTreeMap, BTreeSet};

/// What is known of delegated groups.
#[derive(Debug, Default)]
pub(crate) struct Delegated {
    /// Groups below each, counted when a look needs it.
    pub(crate) counts: BTreeMap<String, usize>,
    /// Those that count as one tenant from this look on.
    pub(crate) to_join: BTreeSet<String>,
    /// Those that do already.
    pub(crate) joined: BTreeSet<String>,
}

impl Delegated {
    pub(crate) fn begin_look(&mut self) {
        self.counts.clear();
    }

    /// A group whose name is no text lies below one that was delegated.
    pub(crate) fn has_nameless(&mut self, delegated: &str) {
        self.to_join.insert(delegated.to_owned());
    }
}
