//! One disk: the histories that compete on it and the tenants that have a claim.

mod beside;
mod counted;

use crate::compose::{self, Pair, SharePolicy};
use crate::deal::{Dealing, Deals};
use crate::equal_part::Everyone;
use crate::floor_level::{Active, Floor};
use crate::keys::Key;
use crate::past_use::Fennel;
use crate::presence::{PAUSE, Presence};
use crate::room::Room;
use crate::stance::Stance;
use crate::usage::{Averages, Usage, Used};
use minerva_model::{Decision, DeviceId, Nanos, Outlook, Share, TenantId};
use serde::{Deserialize, Serialize};

/// What is remembered of one disk.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Disk {
    /// By [`Key`].
    usages: Vec<Usage>,
    /// Sorted by tenant.
    claims: Vec<Claim>,
    everyone: Everyone,
    floor: Floor,
    room: Room,
    #[serde(default)]
    beside: u32,
    deals: Deals,
    #[serde(default)]
    presence: Presence,
    /// The slice in which shares were last dealt anew.
    #[serde(alias = "dealt_turn")]
    dealt_slice: u64,
    active: Active,
    /// Where the next row is expected, as rows come in the order of the claims.
    cursor: usize,
}

/// A tenant that has used the disk, or is remembered to have.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Claim {
    tenant: TenantId,
    key: Key,
    weight_percent: u32,
    excluded: bool,
    /// The slice in which it was last active.
    #[serde(alias = "active_turn")]
    active_slice: u64,
    /// The end of that slice.
    #[serde(default)]
    active_at: Option<Nanos>,
    /// The group of its history when the use that is under way began, after a pause.
    #[serde(default)]
    before: Option<u8>,
    /// What it asked for.
    stance: Stance,
    /// What was last decided. A newcomer without history has this from the start, so it is no news.
    told: Told,
}

impl Claim {
    fn new(tenant: TenantId, terms: TenantTerms) -> Self {
        let TenantTerms { key, weight_percent, excluded } = terms;
        let (stance, active_slice, active_at, before) = (Stance::default(), 0, None, None);
        Self { tenant, key, weight_percent, excluded, active_slice, active_at, before, stance, told: UNTOLD }
    }

    /// It uses the disk, and has this history without that.
    fn uses(&mut self, slice_number: u64, now: Nanos, group: Option<u8>) {
        if self.active_at.is_none_or(|at| now.since(at) >= PAUSE) {
            self.before = group;
        }
        (self.active_slice, self.active_at) = (slice_number, Some(now));
    }
}

/// The part of a tenant's record that a claim repeats, so that a slice reads one vector only.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct TenantTerms {
    pub(crate) key: Key,
    pub(crate) weight_percent: u32,
    pub(crate) excluded: bool,
}

impl TenantTerms {
    /// The operator's factor. Zero, which no configuration lets through, counts as the least.
    pub(crate) fn weight(&self) -> f64 {
        f64::from(self.weight_percent.max(1)) / 100.0
    }
}

/// The share, and what else people are told of when it changes.
type Told = (Share, u128);

const UNTOLD: Told = (Share::NEUTRAL, 0);

/// What a disk's shares are decided by.
#[derive(Clone, Copy)]
pub(crate) struct Deciding<'a> {
    pub(crate) device: DeviceId,
    pub(crate) now: Nanos,
    pub(crate) slice_number: u64,
    pub(crate) fennel: &'a Fennel,
    pub(crate) policies: &'a [&'a dyn SharePolicy],
    pub(crate) outlook: &'a Outlook,
    pub(crate) floor_permille: u32,
    pub(crate) dealing: Dealing,
}

impl Deciding<'_> {
    /// The tenant goes before others in a part of the time, and is stopped for the rest of it.
    fn stands_apart(&self, tenant: TenantId) -> bool {
        self.policies.iter().any(|policy| policy.stands_apart(tenant, self.device))
    }
}

/// A tenant that used the disk in the last slice, as those who coordinate see it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Present {
    pub(crate) tenant: TenantId,
    pub(crate) key: Key,
    /// Before everyone is raised.
    pub(crate) share: Share,
    /// As it was dealt by.
    pub(crate) in_force: Share,
}

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
    pub(crate) fn claim(&mut self, tenant: TenantId, terms: TenantTerms) -> usize {
        let expected = self.claims.get(self.cursor).is_some_and(|claim| claim.tenant == tenant);
        let position = match expected {
            true => Ok(self.cursor),
            false => self.claims.binary_search_by_key(&tenant, |claim| claim.tenant),
        };
        let index = position.unwrap_or_else(|index| {
            self.claims.insert(index, Claim::new(tenant, terms));
            index
        });
        self.cursor = index + 1;
        index
    }

    /// Adds one slice of a tenant's use.
    pub(crate) fn learn(
        &mut self,
        tenant: TenantId,
        terms: TenantTerms,
        active: Option<(u64, Nanos)>,
        used: Used,
        gain: Averages,
    ) {
        let index = self.claim(tenant, terms);
        if let Some((slice_number, now)) = active {
            let group = self.usage(terms.key).group;
            self.claims[index].uses(slice_number, now, group);
        }
        if used.bytes_per_second > 0.0 || used.disk_part > 0.0 {
            self.usage_mut(terms.key).add(used, gain);
        }
    }

    /// A tenant's rule changed.
    pub(crate) fn set_terms(&mut self, tenant: TenantId, terms: TenantTerms) {
        if let Ok(index) = self.claims.binary_search_by_key(&tenant, |claim| claim.tenant) {
            let TenantTerms { key, weight_percent, excluded } = terms;
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

    /// Settles the groups, the room and the floor, and tells what changed. `stance` says what a tenant asked for; absent when
    /// nobody asked for anything.
    ///
    /// All histories take part, also idle ones: their place sinks while others use the disk, and a tenant that comes back
    /// must find its weight in place, not a slice later. That costs a comparison each.
    pub(crate) fn decide(
        &mut self,
        by: Deciding<'_>,
        stance: Option<&dyn Fn(TenantId) -> Stance>,
        news: &mut Vec<Decision>,
    ) {
        let Deciding { now, fennel, .. } = by;
        self.cursor = 0;
        self.take_stances(stance);
        self.everyone = fennel.everyone(&self.usages, now);
        let yardstick = fennel.yardstick(self.everyone, now);
        self.usages.iter_mut().for_each(|usage| fennel.settle(usage, &yardstick));
        let lately = self.claims.iter().filter(|claim| claim.active_at.is_some_and(|at| now.since(at) < PAUSE));
        self.presence = Presence::of(lately.map(|claim| claim.told.0));
        self.update_deals(by);
        self.update_room(by);
        self.update_floor(by);
        self.update_beside(by);
        for index in 0..self.claims.len() {
            news.extend(self.tell(index, by));
        }
    }

    /// A tenant asked for something within a slice: what changes for it at once. It has a claim from now on.
    pub(crate) fn reconsider(
        &mut self,
        by: Deciding<'_>,
        tenant: TenantId,
        terms: TenantTerms,
        stance: Stance,
    ) -> Option<Decision> {
        let index = self.claim(tenant, terms);
        self.cursor = 0;
        self.claims[index].stance = stance;
        self.tell(index, by)
    }

    fn tell(&mut self, index: usize, by: Deciding<'_>) -> Option<Decision> {
        let claim = self.claims[index];
        if claim.excluded {
            return None;
        }
        let usage = self.usage(claim.key);
        let pair = self.pair(by, &usage, &claim);
        let told = (compose::share(by.policies, &pair), compose::marks(by.policies, &pair));
        if told == claim.told {
            return None;
        }
        let decision = compose::decision(by.policies, &pair);
        self.claims[index].told = told;
        Some(decision)
    }

    /// A history counts per percent of a level only when all who have it step back, and then of the mildest.
    fn take_stances(&mut self, stance: Option<&dyn Fn(TenantId) -> Stance>) {
        let asked = |tenant| stance.map_or(Stance::default(), |stance| stance(tenant));
        self.claims.iter_mut().for_each(|claim| claim.stance = asked(claim.tenant));
        self.usages.iter_mut().for_each(|usage| usage.level_percent = None);
        let Self { claims, usages, .. } = self;
        let percent = |claim: &Claim| claim.stance.level_percent().unwrap_or(100);
        if stance.is_none() || claims.iter().all(|claim| percent(claim) == 100) {
            return;
        }
        for claim in claims.iter() {
            if let Some(usage) = usages.get_mut(claim.key) {
                usage.level_percent = Some(usage.level_percent.unwrap_or(1).max(percent(claim)));
            }
        }
    }

    fn update_deals(&mut self, by: Deciding<'_>) {
        self.deals = Deals::default();
        if by.policies.iter().any(|policy| policy.has_stakes()) {
            let usages: Vec<Usage> = self.claims.iter().map(|claim| self.usage(claim.key)).collect();
            let present =
                self.claims.iter().zip(&usages).filter(|(claim, _)| self.is_present(by, claim) && !claim.excluded);
            self.deals = compose::deals(by.policies, present.map(|(claim, usage)| self.pair(by, usage, claim)));
        }
        if self.deals.are_dealt() {
            self.dealt_slice = by.slice_number;
        }
    }

    /// The share that a tenant has, before everyone is raised and in force; neutral when it has no claim or is not steered.
    pub(crate) fn shares(&self, by: Deciding<'_>, tenant: TenantId) -> (Share, Share) {
        let position = self.claims.binary_search_by_key(&tenant, |claim| claim.tenant);
        match position.map(|index| &self.claims[index]) {
            Ok(claim) if !claim.excluded => {
                let usage = self.usage(claim.key);
                let pair = self.pair(by, &usage, claim);
                let without_room = Pair { room: 1, floor: None, ..pair };
                (compose::share(by.policies, &without_room), compose::share(by.policies, &pair))
            }
            _ => (Share::NEUTRAL, Share::NEUTRAL),
        }
    }

    /// What stands decided for a tenant.
    pub(crate) fn decision(&self, by: Deciding<'_>, tenant: TenantId, terms: TenantTerms) -> Decision {
        let usage = self.usage(terms.key);
        let position = self.claims.binary_search_by_key(&tenant, |claim| claim.tenant);
        let known = position.map_or_else(|_| Claim::new(tenant, terms), |index| self.claims[index]);
        let TenantTerms { key, weight_percent, excluded } = terms;
        let claim = Claim { key, weight_percent, excluded, ..known };
        compose::decision(by.policies, &self.pair(by, &usage, &claim))
    }

    /// Steered tenants that have a claim.
    pub(crate) fn steered(&self) -> impl Iterator<Item = (TenantId, TenantTerms)> {
        self.claims.iter().filter(|claim| !claim.excluded).map(|claim| {
            let Claim { tenant, key, weight_percent, excluded, .. } = *claim;
            (tenant, TenantTerms { key, weight_percent, excluded })
        })
    }

    fn pair<'a>(&'a self, by: Deciding<'a>, usage: &'a Usage, claim: &Claim) -> Pair<'a> {
        Pair {
            tenant: claim.tenant,
            device: by.device,
            now: by.now,
            fennel: by.fennel,
            usage,
            everyone: self.everyone,
            stance: claim.stance,
            weight_percent: claim.weight_percent,
            room: self.room.times(),
            floor: Some(&self.floor),
            outlook: by.outlook,
            beside: self.beside,
            deals: &self.deals,
            present: self.is_present(by, claim),
            before: by.dealing.sessions_are_no_past.then_some(claim.before),
        }
    }

    /// It used the disk in the last slice, or may be waiting for its turn.
    fn is_present(&self, by: Deciding<'_>, claim: &Claim) -> bool {
        let waits = |at: Nanos| self.presence.may_wait(claim.told.0, by.now.since(at));
        claim.active_slice == by.slice_number || by.dealing.waiting_take_part && claim.active_at.is_some_and(waits)
    }
}
