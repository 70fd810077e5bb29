//! Voluntary deprioritization (Malensek et al. 2016, section 3.1): who steps back, how far and until when.
//!
//! A level multiplies the tenant's share; at `idle` the share is the least there is and the floor does not raise it. What a
//! tenant uses at a level counts in `fennel` per percent of the level while the level lasts: otherwise a history that
//! became sparing would give back what the tenant gave up. The history itself is not touched, so coming back costs nothing.

use crate::compose::{Pair, SharePolicy};
use minerva_model::{
    Level, LevelMeaning, LevelSettings, Lifetime, Nanos, PolicyName, Reason, RequestId, Share, TenantId,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The level as a factor. At `idle` it is what brings the share down to the least there is.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Rule;

impl SharePolicy for Rule {
    fn name(&self) -> PolicyName {
        PolicyName::LEVELS
    }

    fn factor(&self, pair: &Pair<'_>, product: f64) -> Option<f64> {
        let (_, percent) = pair.stance.level.filter(|_| pair.stance.boost.is_none())?;
        let part = f64::from(percent) / 100.0;
        if !pair.stance.is_idle() {
            return Some(part);
        }
        let least = f64::from(Share::MIN.get());
        Some(part * (least / (product * part).max(least / 1_000.0)))
    }

    fn reason(&self, pair: &Pair<'_>, _: f64) -> Reason {
        let (level, percent) = pair.stance.level.unwrap_or((Level::Normal, 100));
        Reason::SteppedBack { level, percent, request: None }
    }

    fn mark(&self, pair: &Pair<'_>) -> u8 {
        pair.stance.level.map_or(0, |(level, _)| level as u8)
    }
}

/// Tenants below `normal`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Levels {
    settings: LevelSettings,
    /// With the request that set it; of one that an older Minerva stored it is not known.
    declared: BTreeMap<TenantId, (Level, Lifetime, Option<RequestId>)>,
}

impl Levels {
    pub(crate) fn configure(&mut self, settings: LevelSettings) {
        self.settings = settings;
    }

    /// A tenant steps back, or comes back.
    pub(crate) fn set(&mut self, tenant: TenantId, level: Level, lifetime: Lifetime, request: Option<&RequestId>) {
        match level {
            Level::Normal => self.release(tenant),
            level => drop(self.declared.insert(tenant, (level, lifetime, request.cloned()))),
        }
    }

    /// The request that set a tenant's level.
    pub(crate) fn request(&self, tenant: TenantId) -> Option<&RequestId> {
        self.declared.get(&tenant)?.2.as_ref()
    }

    pub(crate) fn release(&mut self, tenant: TenantId) {
        self.declared.remove(&tenant);
    }

    pub(crate) fn get(&self, tenant: TenantId) -> Level {
        self.declared.get(&tenant).map_or(Level::Normal, |(level, ..)| *level)
    }

    /// When the level ends by itself.
    pub(crate) fn until(&self, tenant: TenantId) -> Option<Nanos> {
        match self.declared.get(&tenant)?.1 {
            Lifetime::Until(at) => Some(at),
            Lifetime::UntilReleased => None,
        }
    }

    pub(crate) fn meaning(&self, level: Level) -> Option<LevelMeaning> {
        self.settings.meaning(level)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.declared.is_empty()
    }

    /// Ends what has lasted its time; the tenants that came back.
    pub(crate) fn expire(&mut self, now: Nanos) -> Vec<TenantId> {
        let over = |lifetime: &Lifetime| matches!(lifetime, Lifetime::Until(at) if *at <= now);
        let back: Vec<TenantId> =
            self.declared.iter().filter(|(_, (_, lifetime, _))| over(lifetime)).map(|(tenant, _)| *tenant).collect();
        back.iter().for_each(|tenant| self.release(*tenant));
        back
    }
}

#[cfg(test)]
mod tests {
    use super::Levels;
    use minerva_model::{Level, Lifetime, Nanos, TenantId};

    #[test]
    fn a_level_ends_with_its_time_or_when_released() {
        let mut levels = Levels::default();
        levels.set(TenantId(1), Level::Low, Lifetime::Until(Nanos(10)), None);
        levels.set(TenantId(2), Level::Idle, Lifetime::UntilReleased, None);
        assert_eq!(levels.expire(Nanos(9)), []);
        assert_eq!(levels.expire(Nanos(10)), [TenantId(1)]);
        assert_eq!((levels.get(TenantId(1)), levels.get(TenantId(2))), (Level::Normal, Level::Idle));
        levels.set(TenantId(2), Level::Normal, Lifetime::UntilReleased, None);
        assert!(levels.is_empty());
    }
}
