//! What earlier versions did in another way: a replay of what they recorded does it so.

use super::Forecaster;
use crate::host::{Growth, LearnerSettings};

impl Forecaster {
    /// How the trees of the next slice grow: by leaves, as [`Growth::CHOSEN`], or as in earlier versions. Where that is another way than
    /// before, they begin anew.
    pub fn set_by_leaves(&mut self, by_leaves: bool) {
        let growth = if by_leaves { Growth::CHOSEN } else { Growth::ByLevels };
        self.settings.next_slice.growth = growth;
        self.next_slice.set_growth(growth);
        self.forget_next_slices();
    }

    /// The next slice is told between the trees' median and their mean, at [`LearnerSettings::MEAN_PERCENT`]; otherwise, as by earlier
    /// versions, the median is.
    pub fn set_between(&mut self, between: bool) {
        self.next_slice.set_mean_percent(if between { LearnerSettings::MEAN_PERCENT } else { 0 });
        self.forget_next_slices();
    }

    /// Before a host's trees no rate is told that is more than twice the greatest that was seen. In earlier versions it was not so.
    pub fn set_next_slice_within_seen(&mut self, within_seen: bool) {
        self.settings.next_slice.within_seen = within_seen;
        self.next_slice.set_within_seen(within_seen);
    }

    /// See [`super::ForecasterSettings::by_order`].
    pub fn set_by_order(&mut self, by_order: bool) {
        self.settings.by_order = by_order;
    }

    /// See [`super::ForecasterSettings::skill_by_bytes`].
    pub fn set_skill_by_bytes(&mut self, skill_by_bytes: bool) {
        self.settings.skill_by_bytes = skill_by_bytes;
    }

    /// What a tenant's agent says is left is measured by its first word in a session against what that session transfers. Otherwise, as by
    /// earlier versions, by its last, which is next to nothing where it tells the truth, so that nobody was ever believed.
    pub fn set_declared_at_beginning(&mut self, at_beginning: bool) {
        self.sessions.declared_at_beginning = at_beginning;
    }

    /// A session without bytes and a rate that has shifted leave nothing behind, and what sessions are worth is told of each account by its
    /// own. In earlier versions it was not so.
    pub fn set_only_its_own(&mut self, only_its_own: bool) {
        self.sessions.only_its_own = only_its_own;
    }

    /// What is told keeps within the range of what was learnt, where there is no room the account that has most makes it, no account has more
    /// than its part of what the host's models learn from, and a tenant's family is that of its last slice. In earlier versions it was not so.
    pub fn set_within_bounds(&mut self, within_bounds: bool) {
        self.settings.within_bounds = within_bounds;
        self.next_slice.set_within_bounds(within_bounds);
        self.sessions.learner.set_within_bounds(within_bounds);
        self.families.within_bounds = within_bounds;
    }
}
