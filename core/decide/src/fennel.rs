//! Fennel as a policy: sparing tenants rise, heavy ones sink (Malensek et al. 2016, section 2.1). How use becomes a place
//! among the groups stands in `past_use.rs`.

use crate::compose::{Pair, SharePolicy};
use minerva_model::{PolicyName, Reason};
use serde::{Deserialize, Serialize};

/// The place among the groups, as a factor.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Rule;

impl SharePolicy for Rule {
    fn name(&self) -> PolicyName {
        PolicyName::FENNEL
    }

    fn factor(&self, pair: &Pair<'_>, _: f64) -> Option<f64> {
        Some(pair.fennel.factor(pair.usage.group))
    }

    fn reason(&self, pair: &Pair<'_>, _: f64) -> Reason {
        pair.fennel.reason(pair.usage, pair.everyone, pair.now)
    }

    fn mark(&self, pair: &Pair<'_>) -> u8 {
        pair.usage.group.map_or(0, |group| group.saturating_add(1))
    }
}
