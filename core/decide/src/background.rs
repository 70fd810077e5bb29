//! Background work that takes time from others goes before them while it has that time.
//!
//! What a plan takes of a disk's time from others work has in stretches, between which it is stopped, and they keep at least half
//! (docs/adr/0020). A stretch in which it had to wait for the others would take from them, and bring the work no further: a heavy
//! tenant has the least share. Only where shares are weights: a cap would outlast the stretch.

use crate::Decider;
use crate::compose::{Pair, SharePolicy};
use minerva_model::{DeviceId, PolicyName, Reason, Share, TenantId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Its share is so many times the neutral one: most of the disk beside a few others, and not more than a weight can say.
const NEUTRAL_TIMES: u32 = 10;

/// Who goes before others, and where.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Rule {
    tenants: BTreeSet<TenantId>,
    devices: BTreeSet<DeviceId>,
}

impl SharePolicy for Rule {
    fn name(&self) -> PolicyName {
        PolicyName::BACKGROUND
    }

    fn factor(&self, pair: &Pair<'_>, product: f64) -> Option<f64> {
        let takes = self.tenants.contains(&pair.tenant) && self.devices.contains(&pair.device);
        let needed = f64::from(NEUTRAL_TIMES * Share::NEUTRAL.get()) / f64::from(pair.room.max(1));
        (takes && needed > product).then(|| needed / product.max(f64::MIN_POSITIVE))
    }

    fn reason(&self, _: &Pair<'_>, _: f64) -> Reason {
        let text =
            "work that gaps alone would not end in time has a part of the disk's time, and goes before others in it";
        Reason::Stated { text: text.to_owned() }
    }
}

impl Decider {
    /// Background work that is stopped but for a part of the time, which it takes from others; and whether shares are weights on a device.
    pub fn background_takes(&mut self, tenants: BTreeSet<TenantId>, is_weighted: impl Fn(DeviceId) -> bool) {
        let is_weighted = |device: &DeviceId| !tenants.is_empty() && is_weighted(*device);
        let devices = self.disks.keys().copied().filter(is_weighted).collect();
        self.policies.background = Rule { tenants, devices };
    }
}
