//! Slices of high priority that were paid for. A tenant's boosts run one after the other, slice by slice, whether the tenant
//! uses the disk or not: a purchase cannot be hoarded. All boosted tenants have the same share, times the operator's weight,
//! so boosts that are oversubscribed are fair among the boosted.

use crate::compose::{Pair, SharePolicy};
use minerva_model::{Boost, DeviceId, PolicyName, Reason, TenantId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// While a boost runs its progress is remembered once in this many slices; a crash gives the tenant at most so many again.
const SLICES_BETWEEN_DECLARATIONS: u32 = 10;

/// A boost as a factor: history does not count while it runs.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Rule;

impl SharePolicy for Rule {
    fn name(&self) -> PolicyName {
        PolicyName::CREDITS
    }

    fn factor(&self, pair: &Pair<'_>, _: f64) -> Option<f64> {
        let (percent, _) = pair.stance.boost?;
        Some(f64::from(percent) / 100.0 / pair.history())
    }

    fn reason(&self, pair: &Pair<'_>, _: f64) -> Reason {
        let (percent, slices_left) = pair.stance.boost.unwrap_or_default();
        Reason::Boosted { percent, slices_left, request: None }
    }

    fn mark(&self, pair: &Pair<'_>) -> u8 {
        pair.stance.boost.is_some().into()
    }
}

/// Boosts under way.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Boosts {
    by_tenant: BTreeMap<TenantId, Vec<Boost>>,
}

impl Boosts {
    /// A boost was paid for.
    pub(crate) fn add(&mut self, tenant: TenantId, boost: Boost) {
        self.by_tenant.entry(tenant).or_default().push(boost);
    }

    /// The slices that are left of the boost that runs on `device`.
    pub(crate) fn slices_left(&self, tenant: TenantId, device: DeviceId) -> Option<u32> {
        let boost = self.by_tenant.get(&tenant)?.first()?;
        boost.device.is_none_or(|only| only == device).then_some(boost.slices_left)
    }

    /// Whether the tenant has one.
    pub(crate) fn is_boosted(&self, tenant: TenantId) -> bool {
        self.by_tenant.contains_key(&tenant)
    }

    pub(crate) fn of(&self, tenant: TenantId) -> &[Boost] {
        self.by_tenant.get(&tenant).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_tenant.is_empty()
    }

    pub(crate) fn tenant_gone(&mut self, tenant: TenantId) {
        self.by_tenant.remove(&tenant);
    }

    /// A slice has passed; the tenants whose boosts should be remembered anew.
    pub(crate) fn slice(&mut self) -> Vec<TenantId> {
        let mut changed = Vec::new();
        self.by_tenant.retain(|tenant, boosts| {
            let Some(first) = boosts.first_mut() else { return false };
            first.slices_left = first.slices_left.saturating_sub(1);
            if first.slices_left.is_multiple_of(SLICES_BETWEEN_DECLARATIONS) {
                changed.push(*tenant);
            }
            if first.slices_left == 0 {
                boosts.remove(0);
            }
            !boosts.is_empty()
        });
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::Boosts;
    use minerva_model::{Boost, DeviceId, RequestId, TenantId};

    #[test]
    fn boosts_run_one_after_the_other() {
        let (disk, other) = (DeviceId { major: 8, minor: 0 }, DeviceId { major: 8, minor: 16 });
        let boost = |name: &str, device, slices_left| Boost { request: RequestId(name.into()), device, slices_left };
        let mut boosts = Boosts::default();
        boosts.add(TenantId(1), boost("a", Some(disk), 2));
        boosts.add(TenantId(1), boost("b", None, 1));
        let mut seen = Vec::new();
        for _ in 0..4 {
            seen.push((boosts.slices_left(TenantId(1), disk), boosts.slices_left(TenantId(1), other)));
            boosts.slice();
        }
        assert_eq!(seen, [(Some(2), None), (Some(1), None), (Some(1), Some(1)), (None, None)]);
        assert!(boosts.is_empty());
    }
}
