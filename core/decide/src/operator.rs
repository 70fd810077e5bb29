//! The operator's weight of a tenant.

use crate::compose::{Pair, SharePolicy};
use minerva_model::{PolicyName, Reason};
use serde::{Deserialize, Serialize};

/// The weight as a factor.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Rule;

impl SharePolicy for Rule {
    fn name(&self) -> PolicyName {
        PolicyName::OPERATOR
    }

    fn factor(&self, pair: &Pair<'_>, _: f64) -> Option<f64> {
        (pair.weight_percent != 100).then(|| f64::from(pair.weight_percent) / 100.0)
    }

    fn apply(&self, pair: &Pair<'_>, product: f64, _: f64) -> f64 {
        // Exact for whole products, which a factor of a hundredth is not; and old recordings hold these bits.
        product * f64::from(pair.weight_percent.max(1)) / 100.0
    }

    fn reason(&self, pair: &Pair<'_>, _: f64) -> Reason {
        Reason::OperatorWeight { percent: pair.weight_percent }
    }
}
