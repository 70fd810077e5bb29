//! Tenants that take part: one place for what they asked for, and what a slice does to it.

use crate::adjusting::Adjusting;
use crate::answers::{Answers, key_reused};
use crate::bandwidth::Bandwidths;
use crate::boosts::Boosts;
use crate::coordination::{Coordination, OperationKey, Rank};
use crate::credits::Credits;
use crate::crowd::{Around, Crowd, Neighbour};
use crate::disk::Present;
use crate::lag::{Contender, Lags};
use crate::levels::Levels;
use crate::member::Member;
use crate::operation::{Asked, Stage};
use crate::reported::Reported;
use crate::stance::{OperationStance, Stance};
use minerva_model::{
    Boost, Decision, Declaration, DeclaredOperation, DeviceId, Effect, EngineConfig, EntryNumber, Grant, Granted,
    IoSignals, LedgerEntry, Level, LevelClaims, Lifetime, Mode, Nanos, Purchase, Reason, Recalled, RefusalKind,
    Refused, RequestId, Signals, Tenant, TenantId,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A purchase that waits for its commit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PendingPurchase {
    pub(crate) tenant: TenantId,
    pub(crate) boost: Boost,
}

/// See the file's documentation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Participation {
    pub(crate) levels: Levels,
    pub(crate) credits: Credits,
    pub(crate) boosts: Boosts,
    pub(crate) coordination: Coordination,
    pub(crate) bandwidths: Bandwidths,
    pub(crate) members: BTreeMap<TenantId, Member>,
    /// How many members an account has: those of one group, or of what was delegated to one user.
    sharers: BTreeMap<String, u32>,
    #[serde(alias = "buying")]
    pub(crate) purchases_under_way: BTreeMap<EntryNumber, PendingPurchase>,
    pub(crate) adjusting: Adjusting,
    #[serde(default)]
    pub(crate) reported: Reported,
    pub(crate) answers: Answers,
    pub(crate) enforces: bool,
    pub(crate) crowd: Crowd,
    #[serde(default)]
    lags: Lags,
}

impl Participation {
    pub(crate) fn configure(&mut self, config: &EngineConfig) {
        self.enforces = config.mode == Mode::Enforce;
        self.levels.configure(config.levels);
        self.credits.configure(config.credits);
        self.coordination.configure(config.coordination, config.observe.slice, self.enforces);
        self.bandwidths.configure(config.coordination.bandwidth_half_life);
        self.crowd.configure(&config.coordination);
    }

    /// Nobody asked for anything that bears on shares.
    pub(crate) fn is_quiet(&self) -> bool {
        self.levels.is_empty() && self.boosts.is_empty() && self.coordination.is_empty()
    }

    /// What a tenant's own requests say of its share on a disk.
    pub(crate) fn stance(&self, tenant: TenantId, device: DeviceId) -> Stance {
        let level = self.levels.get(tenant);
        let precedence = self.coordination.precedence(tenant, device);
        Stance {
            level: self.levels.meaning(level).map(|meaning| (level, meaning.percent)),
            boost: self
                .boosts
                .slices_left(tenant, device)
                .map(|left| (self.credits.settings().boost_percent.max(1), left)),
            operation: precedence.map(|(_, operation, running)| OperationStance {
                bytes: operation.bytes,
                percent: match self.coordination.rank(tenant, device) {
                    Rank::Leads => self.coordination.settings().raise_percent,
                    Rank::Equal if self.crowd.competes_with(tenant, device) => {
                        self.coordination.settings().raise_percent
                    }
                    Rank::Equal | Rank::Yields => 100,
                },
                history_factor: running.history_factor,
                is_held_back: self.coordination.settings().spare_silent && self.lags.hold_back(device),
            }),
        }
    }

    /// Adds to a decision's reasons the requests behind them.
    pub(crate) fn name_requests(&self, decision: &mut Decision) {
        let tenant = decision.tenant;
        for factor in &mut decision.factors {
            match &mut factor.reason {
                Reason::Boosted { request, .. } => {
                    *request = self.boosts.of(tenant).first().map(|boost| boost.request.clone());
                }
                Reason::Coordinated { request, .. } => {
                    *request = self.coordination.precedence(tenant, decision.device).map(|(id, ..)| id.clone());
                }
                Reason::SteppedBack { request, .. } => *request = self.levels.request(tenant).cloned(),
                _ => {}
            }
        }
    }

    /// A tenant appeared, or its rule changed.
    pub(crate) fn tenant_seen(&mut self, tenant: &Tenant) {
        let is_made = tenant.origin.is_login_users || tenant.origin.delegated_from.is_some();
        let maker = Some(tenant.maker()).filter(|_| is_made);
        let member = Member {
            account: tenant.history_key(),
            has_group: tenant.group.is_some(),
            maker: maker.filter(|maker| *maker != tenant.cgroup.path).map(str::to_owned),
            declaration_key: tenant.declaration_key(),
            excluded: tenant.excluded,
            terms: tenant.terms,
        };
        *self.sharers.entry(member.account.clone()).or_default() += 1;
        self.credits.join(&member.account);
        if let Some(before) = self.members.insert(tenant.id, member) {
            self.leave_account(&before);
        }
    }

    /// A member has the account no more. An operator's group stays.
    fn leave_account(&mut self, member: &Member) {
        if let Some(count) = self.sharers.get_mut(&member.account) {
            *count -= 1;
            if *count > 0 {
                return;
            }
            self.sharers.remove(&member.account);
        }
        match self.credits.settings().accounts_outlive_tenants {
            _ if member.has_group => {}
            true => self.credits.leave(&member.account),
            false => self.credits.forget(&member.account),
        }
    }

    /// A tenant is gone, and what it declared with it.
    pub(crate) fn tenant_gone(&mut self, tenant: TenantId) -> Option<Effect> {
        let declared = !self.declaration(tenant)?.is_empty();
        self.levels.release(tenant);
        self.boosts.tenant_gone(tenant);
        self.coordination.tenant_gone(tenant);
        self.answers.tenant_gone(tenant);
        self.purchases_under_way.retain(|_, purchase| purchase.tenant != tenant);
        self.adjusting.tenant_gone(tenant);
        self.reported.tenant_gone(tenant);
        let member = self.members.remove(&tenant)?;
        self.leave_account(&member);
        let nothing = Declaration { key: member.declaration_key, ..Declaration::default() };
        declared.then_some(Effect::Declare(nothing))
    }

    /// What a tenant declared, to be remembered.
    pub(crate) fn declaration(&self, tenant: TenantId) -> Option<Declaration> {
        let operation = |(request, one): (&RequestId, &Asked)| DeclaredOperation {
            request: request.clone(),
            operation: one.operation,
            asked_at: one.asked_at,
            released: matches!(one.stage, Stage::Running(_)),
        };
        Some(Declaration {
            key: self.members.get(&tenant)?.declaration_key.clone(),
            level: self.levels.get(tenant),
            level_until: self.levels.until(tenant),
            level_request: self.levels.request(tenant).cloned(),
            boosts: self.boosts.of(tenant).to_vec(),
            operations: self.coordination.of(tenant).map(operation).collect(),
        })
    }

    /// What the store knows of a tenant. What it declared counts unless it declared something since.
    pub(crate) fn recall(
        &mut self,
        now: Nanos,
        recalled: &Recalled,
        around: &dyn Fn(TenantId, DeviceId) -> (f64, u32),
    ) {
        let Some(member) = self.members.get(&recalled.tenant) else { return };
        let (account, key) = (&member.account, &member.declaration_key);
        self.credits.recall(now, (account, key), &recalled.lots, &recalled.purchases);
        let tenant = recalled.tenant;
        let fresh = self.declaration(tenant).is_some_and(|declared| declared.is_empty());
        let Some(declared) = recalled.declaration.as_ref().filter(|_| fresh) else { return };
        let lifetime = declared.level_until.map_or(Lifetime::UntilReleased, Lifetime::Until);
        self.levels.set(tenant, declared.level, lifetime, declared.level_request.as_ref());
        declared.boosts.iter().for_each(|boost| self.boosts.add(tenant, boost.clone()));
        for one in &declared.operations {
            let key = (tenant, one.request.clone());
            let Self { coordination, crowd, bandwidths, members, .. } = self;
            if coordination.settings().watch_before_resuming {
                crowd.must_watch(one.operation.device);
            }
            let around = Around::new(crowd, bandwidths, members, around);
            coordination.restore(now, key, (one.operation, one.asked_at, one.released), &around);
        }
    }

    /// What a tenant claims without having asked anew; what is to be remembered of it.
    pub(crate) fn claims_changed(&mut self, tenant: TenantId, claims: LevelClaims) -> Option<Effect> {
        let before = self.declaration(tenant)?;
        let request = self.levels.request(tenant).cloned();
        self.levels.claim(tenant, claims, request.as_ref());
        self.declaration(tenant).filter(|declaration| *declaration != before).map(Effect::Declare)
    }

    /// A disk is gone; who waited for it is told to go on.
    pub(crate) fn device_gone(&mut self, device: DeviceId) -> Vec<Effect> {
        self.bandwidths.device_gone(device);
        self.crowd.device_gone(device);
        let gone = self.coordination.device_gone(device);
        gone.into_iter().map(ready).collect()
    }

    /// A slice ended. `present` tells who used which disk, and with which share.
    pub(crate) fn slice(
        &mut self,
        now: Nanos,
        signals: &Signals,
        present: BTreeMap<DeviceId, Vec<Present>>,
        history: &dyn Fn(TenantId, DeviceId) -> (f64, u32),
    ) -> Vec<Effect> {
        let mut effects = Vec::new();
        effects.extend(signals.devices.iter().filter_map(|row| self.bandwidths.learn(now, row)).map(Effect::Learnt));
        let mut changed: BTreeSet<TenantId> = BTreeSet::new();
        self.crowd.watched(&signals.devices);
        self.credits.slice_ended();
        self.levels.slice_ended();
        if !self.is_quiet() {
            self.take_crowd(now, present);
            self.note_lags(signals, history);
            if self.enforces {
                self.earn(signals);
            }
            let around = Around::new(&self.crowd, &self.bandwidths, &self.members, history);
            let moved = |tenant, device| moved(signals, tenant, device);
            let changes = self.coordination.slice(now, moved, &around);
            let held_back =
                if self.coordination.settings().spare_silent { self.lags.held_back() } else { BTreeSet::new() };
            self.coordination.hold_back(held_back);
            changed.extend(changes.over.iter().chain(&changes.ready).map(|(tenant, _)| *tenant));
            effects.extend(changes.ready.into_iter().map(ready));
            changed.extend(self.boosts.slice());
        }
        changed.extend(self.levels.advance(now));
        effects.extend(self.credits.entries(now, false).into_iter().map(Effect::Ledger));
        effects.extend(changed.into_iter().filter_map(|tenant| self.declaration(tenant)).map(Effect::Declare));
        effects
    }

    /// The store committed an entry; of a purchase, the boost begins. The tenant whose share changes comes with it. `known` is
    /// what was bought under the key long ago, if the entry is not fresh.
    pub(crate) fn committed(
        &mut self,
        now: Nanos,
        number: EntryNumber,
        fresh: bool,
        known: Option<Purchase>,
    ) -> (Vec<Effect>, Option<TenantId>) {
        self.credits.committed(now, number, fresh, known.clone());
        let answer = self.adjusting.committed(number, fresh).or_else(|| self.reported.committed(number, fresh));
        if let Some(answer) = answer {
            return (vec![answer], None);
        }
        // Whatever has become of the account that paid: the tenant may have another by now.
        let Some(purchase) = self.purchases_under_way.remove(&number) else { return (Vec::new(), None) };
        let (tenant, id) = (purchase.tenant, purchase.boost.request.clone());
        if known.is_some_and(|known| !fresh && !known.is_of(purchase.boost.slices_left, purchase.boost.device)) {
            self.answers.forget(tenant, &id);
            return (vec![key_reused(tenant, &id)], None);
        }
        let mut effects = Vec::new();
        if fresh {
            self.boosts.add(tenant, purchase.boost);
            effects.extend(self.declaration(tenant).map(Effect::Declare));
        }
        effects.push(Effect::Granted(Granted { id, tenant, grant: Grant::Now }));
        self.answers.note(&effects);
        (effects, fresh.then_some(tenant))
    }

    /// The store did not commit an entry; a purchase is refused, and may be tried again under the same key.
    pub(crate) fn commit_failed(&mut self, number: EntryNumber, detail: &str) -> Option<Effect> {
        self.credits.failed(number);
        let answer = self.adjusting.failed(number, detail).or_else(|| self.reported.failed(number, detail));
        if let Some(answer) = answer {
            return Some(answer);
        }
        let PendingPurchase { tenant, boost } = self.purchases_under_way.remove(&number)?;
        self.answers.forget(tenant, &boost.request);
        let message = format!(
            "The purchase could not be written to the ledger: {detail}. Nothing was spent; send it again, under the same \
             key if you like."
        );
        let kind = RefusalKind::NotCommitted;
        Some(Effect::Refused(Refused { id: boost.request, tenant, kind, message }))
    }

    /// Everything that is earned goes into the ledger, for the end.
    pub(crate) fn all_entries(&mut self, now: Nanos) -> Vec<LedgerEntry> {
        self.credits.entries(now, true)
    }

    pub(crate) fn take_crowd(&mut self, now: Nanos, present: BTreeMap<DeviceId, Vec<Present>>) {
        let Self { levels, coordination, crowd, members, .. } = self;
        let neighbour = |device, present: Present| {
            let forward = levels.get(present.tenant) == Level::Normal;
            let competes = forward && coordination.precedence(present.tenant, device).is_none();
            let waits = coordination.waits(present.tenant, device);
            Neighbour { present, forward, competes, waits, seen_at: now }
        };
        crowd.take(now, present, |tenant| members.contains_key(&tenant), neighbour);
    }

    /// Who says nothing and is behind for it, on each disk with operations.
    fn note_lags(&mut self, signals: &Signals, history: &dyn Fn(TenantId, DeviceId) -> (f64, u32)) {
        let Self { coordination, boosts, crowd, lags, .. } = self;
        let weight = |tenant, device| f64::from(history(tenant, device).1);
        lags.retain(|device| coordination.has_operations_on(device));
        for (device, all) in crowd.devices().filter(|(device, _)| coordination.has_operations_on(**device)) {
            let device = *device;
            let present = all.iter().map(|one| Contender {
                tenant: one.present.tenant,
                weight: weight(one.present.tenant, device),
                in_force: f64::from(one.present.in_force.get()),
                is_silent: one.forward
                    && !boosts.is_boosted(one.present.tenant)
                    && coordination.of(one.present.tenant).next().is_none(),
            });
            let mut contenders: Vec<Contender> = present.collect();
            for tenant in coordination.waiting_for(device) {
                if contenders.iter().all(|one| one.tenant != tenant) {
                    let weight = weight(tenant, device);
                    contenders.push(Contender { tenant, weight, in_force: 0.0, is_silent: false });
                }
            }
            lags.slice(device, &contenders, signals.io.iter().filter(|row| row.device == device));
        }
    }
}

pub(crate) fn io(signals: &Signals, tenant: TenantId, device: DeviceId) -> Option<&IoSignals> {
    // Rows are sorted, as a sample promises; a driver that breaks the promise costs time only.
    let position = signals.io.binary_search_by_key(&(tenant, device), |row| (row.tenant, row.device));
    let found = position.ok().map(|index| &signals.io[index]);
    found.or_else(|| signals.io.iter().find(|row| row.tenant == tenant && row.device == device))
}

fn moved(signals: &Signals, tenant: TenantId, device: DeviceId) -> u64 {
    io(signals, tenant, device).map_or(0, |row| row.transferred.bytes())
}

fn ready((tenant, id): OperationKey) -> Effect {
    Effect::Ready { tenant, id }
}
