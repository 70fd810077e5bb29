//! Background work that takes time from others goes before them while it has that time.
//!
//! What a plan takes of a disk's time from others work has in stretches, between which it is stopped, and they keep at least half
//! (docs/adr/0020). A stretch in which it had to wait for the others would take from them, and bring the work no further: a heavy
//! tenant has the least share. Only where shares are weights: where they are caps, it has none (`core/actuate/src/background.rs`). And
//! only on the disk that it was planned for and on those below it.
//!
//! It stands apart: it is stopped for most of the time, so sums that say what others have count it at the neutral share at most
//! (`disk/counted`). A server with contracts counts all of it, also after slices in which it had no stretch (`disk/beside`).

use crate::Decider;
use crate::compose::{Pair, SharePolicy};
use minerva_model::{DeviceId, PolicyName, Reason, Share, TenantId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Its share is so many times the neutral one: most of the disk beside a few others, and not more than a weight can say.
const NEUTRAL_TIMES: u32 = 10;

/// Who goes before others, and where.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Rule {
    tenants: BTreeSet<TenantId>,
    devices: BTreeSet<DeviceId>,
    /// Those of them that stand apart, each with its own disks.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    apart: BTreeMap<TenantId, BTreeSet<DeviceId>>,
}

impl Rule {
    fn takes(&self, tenant: TenantId, device: DeviceId) -> bool {
        let is_own = || self.apart.get(&tenant).is_none_or(|own| own.contains(&device));
        self.tenants.contains(&tenant) && self.devices.contains(&device) && is_own()
    }
}

impl SharePolicy for Rule {
    fn name(&self) -> PolicyName {
        PolicyName::BACKGROUND
    }

    fn factor(&self, pair: &Pair<'_>, product: f64) -> Option<f64> {
        let takes = self.takes(pair.tenant, pair.device);
        let needed = f64::from(NEUTRAL_TIMES * Share::NEUTRAL.get()) / f64::from(pair.room.max(1));
        (takes && needed > product).then(|| needed / product.max(f64::MIN_POSITIVE))
    }

    fn stands_apart(&self, tenant: TenantId, device: DeviceId) -> bool {
        self.apart.contains_key(&tenant) && self.takes(tenant, device)
    }

    fn reason(&self, pair: &Pair<'_>, _: f64) -> Reason {
        // Its group competes with those beside it, the groups above with those beside them, and what they weigh is not decided here.
        let how_far = match self.apart.contains_key(&pair.tenant) {
            true => ", as far as the weights of the groups above its own let it",
            false => "",
        };
        let text = format!(
            "work that gaps alone would not end in time has a part of the disk's time, and goes before others in it{how_far}"
        );
        Reason::Stated { text }
    }
}

impl Decider {
    /// Background work that is stopped but for a part of the time, which it takes from others, each with its own disks; and whether shares are
    /// weights on a device. Without disks of its own, as in recordings of earlier versions, it goes before others on every one, and counts as
    /// they do.
    pub fn background_takes(
        &mut self,
        takers: &BTreeMap<TenantId, Option<BTreeSet<DeviceId>>>,
        is_weighted: impl Fn(DeviceId) -> bool,
    ) {
        let is_weighted = |device: &DeviceId| !takers.is_empty() && is_weighted(*device);
        let devices = self.disks.keys().copied().filter(is_weighted).collect();
        let apart = takers.iter().filter_map(|(tenant, own)| Some((*tenant, own.clone()?))).collect();
        self.policies.background = Rule { tenants: takers.keys().copied().collect(), devices, apart };
    }
}
