//! One disk: the histories that compete on it and the tenants that have a claim.

use crate::compose::Opinions;
use crate::fennel::Fennel;
use crate::floor::{Active, Floor};
use crate::keys::Key;
use crate::usage::{Averages, Usage};
use minerva_model::{Decision, DeviceId, Nanos, Share, TenantId};

/// What is remembered of one disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    /// By [`Key`].
    usages: Vec<Usage>,
    /// Sorted by tenant.
    claims: Vec<Claim>,
    heaviest: Averages,
    floor: Floor,
    active: Active,
    /// Where the next row is expected, as rows come in the order of the claims.
    cursor: usize,
}

/// A tenant that has used the disk, or is remembered to have.
#[derive(Clone, Copy, Debug)]
struct Claim {
    tenant: TenantId,
    key: Key,
    weight_percent: u32,
    excluded: bool,
    /// The turn in which it was last active.
    active_turn: u64,
    /// What was last decided. A newcomer without history has this from the start, so it is no news.
    told: (Share, Option<u8>),
}

/// The part of a tenant's record that a claim repeats, so that a slice reads one vector only.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Standing {
    pub(crate) key: Key,
    pub(crate) weight_percent: u32,
    pub(crate) excluded: bool,
}

impl Standing {
    /// The operator's factor. Zero, which no configuration lets through, counts as the least.
    pub(crate) fn weight(&self) -> f64 {
        f64::from(self.weight_percent.max(1)) / 100.0
    }
}

const UNTOLD: (Share, Option<u8>) = (Share::NEUTRAL, None);

impl Disk {
    /// The history `key`, made if it is not there.
    pub(crate) fn usage_mut(&mut self, key: Key) -> &mut Usage {
        if self.usages.len() <= key {
            self.usages.resize(key + 1, Usage::default());
        }
        &mut self.usages[key]
    }

    /// The history `key`; an empty one if there is none.
    pub(crate) fn usage(&self, key: Key) -> Usage {
        self.usages.get(key).copied().unwrap_or_default()
    }

    /// Every history and its key.
    pub(crate) fn usages_mut(&mut self) -> impl Iterator<Item = (Key, &mut Usage)> {
        self.usages.iter_mut().enumerate()
    }

    /// Makes sure that the tenant has a claim, and says where.
    pub(crate) fn claim(&mut self, tenant: TenantId, standing: Standing) -> usize {
        let expected = self.claims.get(self.cursor).is_some_and(|claim| claim.tenant == tenant);
        let position = match expected {
            true => Ok(self.cursor),
            false => self.claims.binary_search_by_key(&tenant, |claim| claim.tenant),
        };
        let index = position.unwrap_or_else(|index| {
            let Standing { key, weight_percent, excluded } = standing;
            let claim = Claim { tenant, key, weight_percent, excluded, active_turn: 0, told: UNTOLD };
            self.claims.insert(index, claim);
            index
        });
        self.cursor = index + 1;
        index
    }

    /// Adds one slice of a tenant's use.
    pub(crate) fn learn(&mut self, tenant: TenantId, standing: Standing, turn: Option<u64>, rate: f64, gain: Averages) {
        let index = self.claim(tenant, standing);
        if let Some(turn) = turn {
            self.claims[index].active_turn = turn;
        }
        if rate > 0.0 {
            self.usage_mut(standing.key).add(rate, gain);
        }
    }

    /// A tenant's rule changed.
    pub(crate) fn restand(&mut self, tenant: TenantId, standing: Standing) {
        if let Ok(index) = self.claims.binary_search_by_key(&tenant, |claim| claim.tenant) {
            let Standing { key, weight_percent, excluded } = standing;
            let claim = &mut self.claims[index];
            // A tenant that is steered again begins from nothing told.
            let told = if claim.excluded != excluded { UNTOLD } else { claim.told };
            *claim = Claim { key, weight_percent, excluded, told, ..*claim };
        }
    }

    /// A tenant is gone.
    pub(crate) fn drop_claim(&mut self, tenant: TenantId) {
        if let Ok(index) = self.claims.binary_search_by_key(&tenant, |claim| claim.tenant) {
            self.claims.remove(index);
            self.cursor = 0;
        }
    }

    /// A history is forgotten.
    pub(crate) fn drop_usage(&mut self, key: Key) {
        if let Some(usage) = self.usages.get_mut(key) {
            *usage = Usage::default();
        }
    }

    /// Everything that was decided counts as not told.
    pub(crate) fn forget_told(&mut self) {
        self.claims.iter_mut().for_each(|claim| claim.told = UNTOLD);
    }

    /// Settles the groups and the floor, and tells what changed.
    ///
    /// All histories take part, also idle ones: their place sinks while others use the disk, and a tenant that comes back
    /// must find its weight in place, not a slice later. That costs a comparison each.
    pub(crate) fn decide(
        &mut self,
        place: (DeviceId, Nanos, u64),
        fennel: &Fennel,
        floor_permille: u32,
        news: &mut Vec<Decision>,
    ) {
        let (device, now, turn) = place;
        self.cursor = 0;
        let heavier = |heaviest: Averages, usage: &Usage| heaviest.or_heavier(usage.averages);
        self.heaviest = self.usages.iter().fold(Averages::default(), heavier);
        let yardstick = fennel.yardstick(self.heaviest, now);
        self.usages.iter_mut().for_each(|usage| fennel.settle(usage, &yardstick));
        self.update_floor(turn, fennel, floor_permille);
        for index in 0..self.claims.len() {
            let claim = self.claims[index];
            if claim.excluded {
                continue;
            }
            let usage = self.usage(claim.key);
            let opinions = self.opinions(fennel, &usage, claim.weight_percent);
            let verdict = (opinions.share(), usage.group);
            if verdict != claim.told {
                news.push(opinions.decision(claim.tenant, device, self.heaviest, now));
                self.claims[index].told = verdict;
            }
        }
    }

    fn update_floor(&mut self, turn: u64, fennel: &Fennel, floor_permille: u32) {
        let mut active = std::mem::take(&mut self.active);
        active.steered.clear();
        active.excluded = 0;
        for claim in self.claims.iter().filter(|claim| claim.active_turn == turn) {
            if claim.excluded {
                active.excluded += 1;
            } else {
                let usage = self.usage(claim.key);
                active.steered.push(self.opinions(fennel, &usage, claim.weight_percent).without_floor().get());
            }
        }
        let ppm = active.guarantee_ppm(floor_permille);
        self.floor.update(active.level_needed(ppm), ppm);
        self.active = active;
    }

    /// What stands decided for a tenant.
    pub(crate) fn decision(
        &self,
        place: (DeviceId, Nanos),
        fennel: &Fennel,
        tenant: TenantId,
        standing: Standing,
    ) -> Decision {
        let usage = self.usage(standing.key);
        self.opinions(fennel, &usage, standing.weight_percent).decision(tenant, place.0, self.heaviest, place.1)
    }

    /// Steered tenants that have a claim.
    pub(crate) fn steered(&self) -> impl Iterator<Item = (TenantId, Standing)> {
        self.claims.iter().filter(|claim| !claim.excluded).map(|claim| {
            let Claim { tenant, key, weight_percent, excluded, .. } = *claim;
            (tenant, Standing { key, weight_percent, excluded })
        })
    }

    fn opinions<'a>(&'a self, fennel: &'a Fennel, usage: &'a Usage, weight_percent: u32) -> Opinions<'a> {
        Opinions { fennel, usage, weight_percent, floor: &self.floor }
    }
}
