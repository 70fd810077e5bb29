//! Voluntary deprioritization (Malensek et al. 2016, section 3.1): who steps back, how far and until when.
//!
//! A level multiplies the tenant's share; at `idle` the share is the least there is and the floor does not raise it. What a
//! tenant uses at a level counts in `fennel` per percent of the level while the level lasts: otherwise a history that
//! became sparing would give back what the tenant gave up. The history itself is not touched, so coming back costs nothing.

use crate::claims;
use crate::compose::{Pair, SharePolicy};
use minerva_model::{
    Level, LevelClaims, LevelMeaning, LevelSettings, Lifetime, Nanos, PolicyName, Reason, RequestId, SetClaim, Share,
    TenantId,
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
    claimed: BTreeMap<TenantId, Claimed>,
    /// Of those whose claims changed since the last slice ended, the mildest level that they had before.
    #[serde(default)]
    mildest: BTreeMap<TenantId, Level>,
    /// The mildest level of each in the slice that ended last, where it is below `normal`.
    #[serde(default)]
    of_slice: BTreeMap<TenantId, Level>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Claimed {
    claims: LevelClaims,
    /// The request that they came with; of those that an older Minerva stored it is not known.
    request: Option<RequestId>,
}

impl Levels {
    pub(crate) fn configure(&mut self, settings: LevelSettings) {
        self.settings = settings;
    }

    /// A tenant steps back by this alone, or comes back.
    pub(crate) fn set(&mut self, tenant: TenantId, level: Level, lifetime: Lifetime, request: Option<&RequestId>) {
        let until = match lifetime {
            Lifetime::Until(at) => Some(at),
            Lifetime::UntilReleased => None,
        };
        let claims = LevelClaims { set: Some(SetClaim { level, until }), ..LevelClaims::default() };
        self.claim(tenant, claims, request);
    }

    /// A tenant steps back by these claims in place of those before.
    pub(crate) fn claim(&mut self, tenant: TenantId, claims: LevelClaims, request: Option<&RequestId>) {
        if claims::is_empty(&claims) {
            return self.release(tenant);
        }
        self.note(tenant);
        self.claimed.insert(tenant, Claimed { claims, request: request.cloned() });
    }

    /// The request that a tenant's claims came with.
    pub(crate) fn request(&self, tenant: TenantId) -> Option<&RequestId> {
        self.claimed.get(&tenant)?.request.as_ref().filter(|_| self.get(tenant) != Level::Normal)
    }

    pub(crate) fn release(&mut self, tenant: TenantId) {
        self.note(tenant);
        self.claimed.remove(&tenant);
    }

    pub(crate) fn get(&self, tenant: TenantId) -> Level {
        self.claimed.get(&tenant).map_or(Level::Normal, |claimed| claims::level(&claimed.claims))
    }

    /// A tenant's claims are about to change.
    fn note(&mut self, tenant: TenantId) {
        let level = self.get(tenant);
        let mildest = self.mildest.entry(tenant).or_insert(level);
        *mildest = level.min(*mildest);
    }

    /// A slice ended. What ends or begins by itself does so after this ([`Levels::advance`]).
    pub(crate) fn slice_ended(&mut self) {
        let mildest = std::mem::take(&mut self.mildest);
        let of_slice = self.claimed.keys().map(|tenant| {
            let level = self.get(*tenant);
            (*tenant, mildest.get(tenant).map_or(level, |before| level.min(*before)))
        });
        self.of_slice = of_slice.filter(|(_, level)| *level != Level::Normal).collect();
    }

    /// The mildest level that a tenant had in the slice that ended last: one that steps back at the end of each gives up nothing.
    pub(crate) fn of_slice(&self, tenant: TenantId) -> Level {
        self.of_slice.get(&tenant).copied().unwrap_or_default()
    }

    /// When the level ends by itself, if that is known.
    pub(crate) fn until(&self, tenant: TenantId) -> Option<Nanos> {
        claims::until(&self.claimed.get(&tenant)?.claims)
    }

    pub(crate) fn meaning(&self, level: Level) -> Option<LevelMeaning> {
        self.settings.meaning(level)
    }

    /// Nobody steps back.
    pub(crate) fn is_empty(&self) -> bool {
        self.claimed.values().all(|claimed| claims::level(&claimed.claims) == Level::Normal)
    }

    /// Ends what has lasted its time, and goes over to what is scheduled; the tenants whose level is another now.
    pub(crate) fn advance(&mut self, now: Nanos) -> Vec<TenantId> {
        let mut changed = Vec::new();
        self.claimed.retain(|tenant, Claimed { claims, .. }| {
            let before = claims::level(claims);
            claims::advance(claims, now);
            if claims::level(claims) != before {
                changed.push(*tenant);
            }
            !claims::is_empty(claims)
        });
        changed
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
        assert_eq!(levels.advance(Nanos(9)), []);
        assert_eq!(levels.advance(Nanos(10)), [TenantId(1)]);
        assert_eq!((levels.get(TenantId(1)), levels.get(TenantId(2))), (Level::Normal, Level::Idle));
        levels.set(TenantId(2), Level::Normal, Lifetime::UntilReleased, None);
        assert!(levels.is_empty());
    }
}
