//! What the decider offers tenants that take part.

use crate::disk::Present;
use crate::requests::Known;
use crate::usual_disk::usual_disk;
use crate::{Decider, Deciding, TenantTerms};
use minerva_model::{
    Adjustment, Boost, Decision, DeviceId, Effect, EntryNumber, LearntBandwidth, Level, LevelClaims, MicroCredits,
    MigrationReport, Nanos, Operation, Purchase, Recalled, RequestId, Share, Signals, TenantId, TenantRequest, Wish,
};
use std::collections::BTreeMap;

/// A tenant's part, for `status`.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// How far it steps back.
    pub level: Level,
    /// Until when, if that is known.
    pub level_until: Option<Nanos>,
    /// What its account can spend.
    pub held: MicroCredits,
    /// What its account has earned that is not in the ledger yet.
    pub accruing: MicroCredits,
    /// Boosts under way, in the order of their purchase.
    pub boosts: Vec<Boost>,
    /// Its operations, and whether each was released.
    pub operations: Vec<(RequestId, Operation, bool)>,
}

impl Decider {
    /// A tenant asks for something: the answer and what else is to be done, and the shares that change at once. `signals` are
    /// those of the last slice.
    pub fn requested(
        &mut self,
        now: Nanos,
        request: &TenantRequest,
        signals: &Signals,
    ) -> (Vec<Effect>, Vec<Decision>) {
        self.advance(now);
        let now = self.now;
        // While somebody takes part, each slice tells who is on the disks; otherwise that is looked up when it is asked for.
        if self.participation.is_quiet() {
            let present = self.present(signals);
            self.participation.take_crowd(now, present);
        }
        let request = &self.with_disk(request, signals);
        let Self { participation, fennel, disks, tenants, devices, outlook, .. } = self;
        let history = |tenant, device| history(fennel, disks, tenants, tenant, device);
        let handled = participation.requested(now, request, Known { devices, history: &history, outlook });
        let news = handled.changed.iter().flat_map(|tenant| self.reconsider(*tenant)).collect();
        (handled.effects, news)
    }

    /// An operation for no disk in particular is for the tenant's usual one, if it has one.
    fn with_disk(&self, request: &TenantRequest, signals: &Signals) -> TenantRequest {
        let mut request = request.clone();
        if let Wish::Coordinate(operation) = &mut request.wish {
            let tenant = (request.tenant, terms(&self.tenants, request.tenant));
            let usual = || usual_disk(tenant, signals, &self.disks, &self.devices);
            operation.device = operation.device.or_else(usual);
        }
        request
    }

    /// What a tenant claims without having asked anew: what is to be remembered, and the shares that change at once.
    pub fn claims_changed(
        &mut self,
        now: Nanos,
        tenant: TenantId,
        claims: LevelClaims,
    ) -> (Option<Effect>, Vec<Decision>) {
        self.advance(now);
        let declaration = self.participation.claims_changed(tenant, claims);
        (declaration, self.reconsider(tenant))
    }

    /// The operator adjusts what an account holds: the entry, or why there is none.
    pub fn adjusted(&mut self, now: Nanos, adjustment: &Adjustment) -> Vec<Effect> {
        self.advance(now);
        self.participation.adjust(self.now, adjustment)
    }

    /// The cache reports what it moved: the entry, or that there is none. `signals` are those of the last slice.
    pub fn migration_reported(&mut self, now: Nanos, report: MigrationReport, signals: &Signals) -> Vec<Effect> {
        self.advance(now);
        let present = self.present(signals);
        self.participation.migration_reported(self.now, report, signals, &present)
    }

    /// The store committed an entry of the ledger.
    pub fn committed(
        &mut self,
        now: Nanos,
        entry: EntryNumber,
        fresh: bool,
        known: Option<Purchase>,
    ) -> (Vec<Effect>, Vec<Decision>) {
        self.advance(now);
        let (effects, boosted) = self.participation.committed(self.now, entry, fresh, known);
        (effects, boosted.map_or_else(Vec::new, |tenant| self.reconsider(tenant)))
    }

    /// The store could not commit an entry of the ledger.
    pub fn commit_failed(&mut self, entry: EntryNumber, detail: &str) -> Vec<Effect> {
        self.participation.commit_failed(entry, detail).into_iter().collect()
    }

    /// What the store knows of a tenant's credits and declarations; the shares that change at once.
    pub fn recalled(&mut self, now: Nanos, recalled: &Recalled) -> Vec<Decision> {
        self.advance(now);
        let now = self.now;
        let Self { participation, fennel, disks, tenants, .. } = self;
        let history = |tenant, device| history(fennel, disks, tenants, tenant, device);
        participation.recall(now, recalled, &history);
        self.reconsider(recalled.tenant)
    }

    /// What the store knows of a disk.
    pub fn bandwidth_recalled(&mut self, now: Nanos, row: &LearntBandwidth) {
        self.advance(now);
        self.participation.bandwidths.recall(self.now, row);
    }

    /// A slice ended: who is called back, what was earned, what is to be remembered. Shares and uses are those of the slice that
    /// ended.
    pub(crate) fn take_part(&mut self, now: Nanos, signals: &Signals) -> Vec<Effect> {
        self.advance(now);
        let now = self.now;
        let present = if self.participation.is_quiet() { BTreeMap::new() } else { self.present(signals) };
        let Self { participation, fennel, disks, tenants, .. } = self;
        let history = |tenant, device| history(fennel, disks, tenants, tenant, device);
        participation.slice(now, signals, present, &history)
    }

    /// What was earned and is not in the ledger yet; for the end.
    pub fn all_entries(&mut self, now: Nanos) -> Vec<Effect> {
        self.advance(now);
        self.participation.all_entries(self.now).into_iter().map(Effect::Ledger).collect()
    }

    /// What a tenant takes part in; nothing if it is unknown.
    pub fn part(&self, tenant: TenantId) -> Option<Part> {
        let participation = &self.participation;
        let account = &participation.members.get(&tenant)?.account;
        let declared = participation.declaration(tenant)?;
        Some(Part {
            level: declared.level,
            level_until: declared.level_until,
            held: participation.credits.held(account),
            accruing: participation.credits.accruing(account),
            boosts: declared.boosts,
            operations: declared.operations.into_iter().map(|one| (one.request, one.operation, one.released)).collect(),
        })
    }

    /// What a tenant bought under a key.
    pub fn purchase(&self, tenant: TenantId, request: &RequestId) -> Option<&Purchase> {
        let member = self.participation.members.get(&tenant)?;
        self.participation.credits.bought(&member.account, &member.declaration_key, request)
    }

    /// Whether what the store says of the credits of a tenant's account is known already, and would be ignored.
    pub fn knows_credits(&self, tenant: TenantId) -> bool {
        let member = self.participation.members.get(&tenant);
        member.is_some_and(|member| self.participation.credits.is_known(&member.account))
    }

    /// What all accounts hold together.
    pub fn credits_held(&self) -> MicroCredits {
        self.participation.credits.held_in_all()
    }

    /// Who used which disk in the slice, and the shares that each had.
    fn present(&self, signals: &Signals) -> BTreeMap<DeviceId, Vec<Present>> {
        let mut present: BTreeMap<DeviceId, Vec<Present>> = BTreeMap::new();
        let policies = self.policies.each();
        for row in signals.io.iter().filter(|row| row.active) {
            let Some(terms) = terms(&self.tenants, row.tenant) else { continue };
            let disk = self.disks.get(&row.device);
            let neutral = (Share::NEUTRAL, Share::NEUTRAL);
            let (share, in_force) =
                disk.map_or(neutral, |disk| disk.shares(self.deciding(row.device, policies.as_ref()), row.tenant));
            let one = Present { tenant: row.tenant, key: terms.key, share, in_force };
            present.entry(row.device).or_default().push(one);
        }
        present
    }

    /// The tenant's shares on every disk anew, used or not: who steps back does so from its first request on.
    fn reconsider(&mut self, tenant: TenantId) -> Vec<Decision> {
        let Some(terms) = terms(&self.tenants, tenant) else { return Vec::new() };
        let mut news = Vec::new();
        let Self { devices, disks, participation, fennel, policies, outlook, .. } = self;
        let policies = policies.each();
        for device in devices.iter() {
            let stance = participation.stance(tenant, *device);
            if stance == crate::Stance::default() && !disks.contains_key(device) {
                continue;
            }
            let by = Deciding {
                device: *device,
                now: self.now,
                slice_number: self.slice_number,
                fennel,
                policies: policies.as_ref(),
                outlook,
                floor_permille: self.floor_permille,
                dealing: self.dealing,
            };
            news.extend(disks.entry(*device).or_default().reconsider(by, tenant, terms, stance));
        }
        news.iter_mut().for_each(|decision| self.participation.name_requests(decision));
        news
    }
}

fn terms(tenants: &[(TenantId, TenantTerms)], tenant: TenantId) -> Option<TenantTerms> {
    let index = tenants.binary_search_by_key(&tenant, |(id, _)| *id).ok()?;
    Some(tenants[index].1)
}

/// The factor of a tenant's place among the groups, and the operator's weight in percent.
fn history(
    fennel: &crate::Fennel,
    disks: &BTreeMap<DeviceId, crate::Disk>,
    tenants: &[(TenantId, TenantTerms)],
    tenant: TenantId,
    device: DeviceId,
) -> (f64, u32) {
    let Some(terms) = terms(tenants, tenant) else { return (1.0, 100) };
    let group = disks.get(&device).and_then(|disk| disk.usage(terms.key).group);
    (fennel.factor(group), terms.weight_percent)
}
