//! The floor: every tenant that uses a disk keeps a part of it, however heavy it was (docs/ARCHITECTURE.md, section 3.6).
//!
//! The guarantee is `min(floor_permille, 500 / active tenants)` thousandths: with many tenants half of the disk is dealt
//! out equally by the floor and the policies deal out the rest.

use crate::compose::{Pair, SharePolicy};
use minerva_model::{PolicyName, Reason, Share};
use serde::{Deserialize, Serialize};

/// No product of factors that settings let through is below this.
const PRODUCT_MIN: f64 = 1e-9;

/// The floor as a factor: what raises the share to it, never at level `idle`.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Rule;

impl SharePolicy for Rule {
    fn name(&self) -> PolicyName {
        PolicyName::GUARD
    }

    fn factor(&self, pair: &Pair<'_>, product: f64) -> Option<f64> {
        let floor = pair.floor.filter(|_| !pair.stance.is_idle())?;
        let level = Share::new(floor.level);
        (level > Share::from_f64(product)).then(|| f64::from(level.get()) / product.max(PRODUCT_MIN))
    }

    fn reason(&self, pair: &Pair<'_>, product: f64) -> Reason {
        let permille = pair.floor.map_or(0, |floor| floor.permille);
        Reason::Floor { permille, without: Share::from_f64(product) }
    }
}
