//! Forecasts in the loop: what a slice says of each pair goes to the forecaster, its outlook to decisions and to people.
//!
//! Work is bounded by counts within each slice: some series are fitted in turns, and a part of the host's trees is. So there is no
//! thread beside the loop whose results would have to be recorded, and a replay computes what the live engine did.

use crate::days_ahead::DaysAhead;
use crate::family::{account, family};
use crate::readings::{Ended, Readings};
use minerva_forecast::load::LoadMember;
use minerva_forecast::online::Account;
use minerva_forecast::{Family, Forecaster, ForecasterSettings, SliceTime, TenantOutlook};
use minerva_model::{
    Burst, DeviceId, Effect, Finding, FindingKind, FittedModel, ForecastMode, ForecastSettings, LoadOf, ModelKind,
    Nanos, Outlook, PHASES, Phases, SessionSource, SharedLoad, Tenant, TenantId,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A forecaster takes seconds: shorter slices are summed to one.
const STEP: Nanos = Nanos::SECOND;
/// Busy as likely as not.
const UNKNOWN_PERMILLE: u16 = 500;

/// Who is forecast.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Watched {
    family: Family,
    #[serde(default)]
    account: Account,
    rule: Option<ForecastMode>,
}

/// See the file's documentation.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Forecasts {
    settings: ForecastSettings,
    slice: Nanos,
    tenants: BTreeMap<TenantId, Watched>,
    /// Tenants whose rule asks for forecasts.
    wanted_by_rule: usize,
    forecaster: Forecaster,
    readings: Readings,
    outlook: Outlook,
    last_kept: Option<Nanos>,
    /// What ends the bytes of each model that was kept last: its checksum.
    kept: BTreeMap<ModelKind, [u8; 4]>,
    #[serde(default)]
    days_ahead: DaysAhead,
}

impl Default for Forecasts {
    fn default() -> Self {
        Self {
            settings: ForecastSettings::default(),
            slice: Nanos::SECOND,
            tenants: BTreeMap::new(),
            wanted_by_rule: 0,
            forecaster: Forecaster::new(ForecasterSettings::default()),
            readings: Readings::default(),
            outlook: Outlook::default(),
            last_kept: None,
            kept: BTreeMap::new(),
            days_ahead: DaysAhead::default(),
        }
    }
}

impl Forecasts {
    pub(crate) fn configure(&mut self, settings: ForecastSettings, slice: Nanos) {
        self.settings = settings;
        self.slice = slice.max(Nanos(1));
        self.forecaster.set_slice(self.slice.max(STEP));
        self.forecaster.set_by_leaves(settings.trees_by_leaves);
        self.forecaster.set_between(settings.next_slice_between);
        self.forecaster.set_declared_at_beginning(settings.declared_at_beginning);
        self.forecaster.set_by_order(settings.sessions_by_order);
        self.forecaster.set_skill_by_bytes(settings.skill_by_bytes);
        self.days_ahead.loads_mut().set_skill_by_bytes(settings.skill_by_bytes);
        self.forecaster.set_only_its_own(settings.only_its_own);
        self.forecaster.set_within_bounds(settings.within_bounds);
        self.forecaster.set_next_slice_within_seen(settings.next_slice_within_seen);
        self.days_ahead.loads_mut().set_only_its_own(settings.only_its_own);
        self.forecaster.set_sessions_by_last(settings.sessions == SessionSource::Last);
        let unwanted: Vec<TenantId> =
            self.tenants.keys().copied().filter(|id| self.mode(*id) == ForecastMode::Off).collect();
        unwanted.into_iter().for_each(|id| self.turned_off(id));
        self.readings.clear();
        self.outlook = Outlook::default();
    }

    pub(crate) fn tenant_seen(&mut self, tenant: &Tenant) {
        let rule = tenant.terms.forecast;
        let before = self.tenants.insert(tenant.id, Watched { family: family(tenant), account: account(tenant), rule });
        self.count_rules(before.and_then(|before| before.rule), rule);
        if self.mode(tenant.id) == ForecastMode::Off {
            self.turned_off(tenant.id);
        }
        self.days_ahead.tenant_seen(tenant);
    }

    /// A tenant is not forecast any more. What it has under way is not over, but was taken to be in earlier versions.
    fn turned_off(&mut self, id: TenantId) {
        if self.settings.within_bounds {
            self.forecaster.forget(id);
            self.readings.tenant_gone(id);
        } else {
            self.forecaster.tenant_gone(id);
        }
    }

    pub(crate) fn tenant_gone(&mut self, id: TenantId) {
        if let Some(watched) = self.tenants.remove(&id) {
            self.count_rules(watched.rule, None);
        }
        self.forecaster.tenant_gone(id);
        self.readings.tenant_gone(id);
        self.days_ahead.tenant_gone(id);
    }

    pub(crate) fn device_gone(&mut self, id: DeviceId) {
        self.forecaster.device_gone(id);
        self.readings.device_gone(id);
        self.days_ahead.device_gone(id);
    }

    fn count_rules(&mut self, before: Option<ForecastMode>, now: Option<ForecastMode>) {
        let wants = |rule: Option<ForecastMode>| usize::from(rule.is_some_and(|mode| mode != ForecastMode::Off));
        self.wanted_by_rule = self.wanted_by_rule + wants(now) - wants(before);
    }

    /// What becomes of a tenant's forecasts.
    pub(crate) fn mode(&self, id: TenantId) -> ForecastMode {
        self.tenants.get(&id).and_then(|watched| watched.rule).unwrap_or(self.settings.mode)
    }

    /// Somebody is to be forecast.
    pub(crate) fn are_wanted(&self) -> bool {
        self.settings.mode != ForecastMode::Off || self.wanted_by_rule > 0
    }

    /// The days ahead of disks and groups are forecast.
    fn are_days_wanted(&self) -> bool {
        self.settings.days_ahead && self.settings.mode != ForecastMode::Off
    }

    /// Takes a slice, and gives the forecasts that decisions may see.
    pub(crate) fn slice(&mut self, ended: Ended<'_>) -> Outlook {
        if !self.are_wanted() {
            self.outlook = Outlook::default();
            return Outlook::default();
        }
        let (tenants, default) = (&self.tenants, self.settings.mode);
        let watched = |id: TenantId| {
            let watched = tenants.get(&id)?;
            (watched.rule.unwrap_or(default) != ForecastMode::Off).then_some((watched.family, watched.account))
        };
        self.readings.add(&ended, &self.forecaster, watched);
        if let Some((seconds, readings)) = self.readings.step(STEP, self.slice) {
            let wall_seconds = ended.wall_seconds.map(|seconds| seconds as f64);
            self.forecaster.observe(SliceTime { seconds, wall_seconds }, readings);
            self.readings.clear();
            self.outlook = self.forecaster.to_model(ended.now, self.slice);
        } else if self.settings.sessions_at_once {
            // Who begins within a step is not made to wait for its end: by then a short one is done.
            let begun = self.forecaster.beginnings(ended.now, self.slice, &self.readings.so_far());
            self.outlook = std::mem::take(&mut self.outlook).with_forecasts(begun);
        }
        if self.are_days_wanted() {
            self.days_ahead.slice(&ended);
            self.outlook = std::mem::take(&mut self.outlook).with_loads(self.days_ahead.forecasts());
        }
        self.seen_by_decisions()
    }

    fn seen_by_decisions(&self) -> Outlook {
        if self.wanted_by_rule == 0 && self.settings.mode == ForecastMode::Shadow {
            return Outlook::default();
        }
        let is_on = |tenant| self.mode(tenant) == ForecastMode::On;
        let rows = self.outlook.forecasts().iter().copied().filter(|row| is_on(row.tenant));
        let phases = self.outlook.phases().iter().copied().filter(|phases| is_on(phases.tenant));
        Outlook::new(rows.collect()).with_phases(phases.collect()).with_loads(self.loads_for_decisions())
    }

    /// What is foreseen of the days ahead, where decisions go by it.
    pub(crate) fn loads_for_decisions(&self) -> Vec<SharedLoad> {
        if self.settings.mode == ForecastMode::On { self.outlook.loads().to_vec() } else { Vec::new() }
    }

    /// With the bursts that are told by earlier runs of batch jobs, where nothing is known of their own yet.
    pub(crate) fn with_jobs(&self, outlook: Outlook, jobs: Vec<(TenantId, DeviceId, Burst)>, now: Nanos) -> Outlook {
        let is_on = |tenant| self.mode(tenant) == ForecastMode::On;
        let jobs: Vec<_> = jobs.into_iter().filter(|(tenant, _, _)| is_on(*tenant)).collect();
        if jobs.is_empty() {
            return outlook;
        }
        let mut phases = outlook.phases().to_vec();
        for (tenant, device, burst) in jobs {
            match phases.iter_mut().find(|known| known.tenant == tenant && known.device == device) {
                Some(known) if known.burst.bytes > 0.0 => {}
                Some(known) => known.burst = burst,
                None => {
                    let busy_permille = [UNKNOWN_PERMILLE; PHASES];
                    phases.push(Phases { tenant, device, busy_permille, skill: 0.0, burst, made_at: now });
                }
            }
        }
        outlook.with_phases(phases)
    }

    /// Every forecast that stands, also those that decisions do not see.
    pub(crate) fn outlook(&self) -> &Outlook {
        &self.outlook
    }

    /// Bins of a disk or a group that were measured, oldest first, in bytes a second, at most a week of them.
    pub(crate) fn past(&self, of: &LoadOf) -> Vec<f64> {
        self.days_ahead.loads().past(of)
    }

    /// Which models speak of the reads and of the writes of a disk or a group.
    pub(crate) fn members(&self, of: &LoadOf) -> [Vec<LoadMember>; 2] {
        self.days_ahead.loads().members(of)
    }

    /// Pairs without a forecast because there are too many.
    pub(crate) fn pairs_without_room(&self) -> u64 {
        self.forecaster.refused_in_slice()
    }

    /// Disks and groups without a forecast because there are too many.
    pub(crate) fn without_room(&self) -> u64 {
        self.days_ahead.loads().refused_in_slice()
    }

    /// What is foreseen of one pair, second by second.
    pub(crate) fn of(&self, tenant: TenantId, device: DeviceId) -> Option<TenantOutlook> {
        self.forecaster.outlook((tenant, device))
    }

    /// Takes over a model from before this start.
    pub(crate) fn recalled(&mut self, model: &FittedModel) -> Option<Finding> {
        let taken = match model.kind {
            ModelKind::DaysAhead => self.days_ahead.loads_mut().recall(&model.bytes),
            _ => self.forecaster.recall(model),
        };
        match taken {
            Ok(()) => {
                self.kept.extend(checksum(model).map(|checksum| (model.kind, checksum)));
                None
            }
            Err(damaged) => Some(Finding {
                kind: FindingKind::ModelDamaged,
                device: None,
                tenant: None,
                message: format!(
                    "the model {} of an earlier run is not used: {damaged}. A new one is learnt; there is nothing you have to do.",
                    model.kind.as_str()
                ),
            }),
        }
    }

    /// The models that are to be kept now, if it is time.
    pub(crate) fn due(&mut self, now: Nanos) -> Vec<Effect> {
        let last = *self.last_kept.get_or_insert(now);
        if now.since(last) < self.settings.keep_every { Vec::new() } else { self.keep(now) }
    }

    /// The models that changed since they were kept.
    pub(crate) fn keep(&mut self, now: Nanos) -> Vec<Effect> {
        self.last_kept = Some(now);
        let mut models = self.forecaster.models();
        let bytes = self.days_ahead.loads().encode().filter(|_| self.are_days_wanted());
        models.extend(bytes.map(|bytes| FittedModel { kind: ModelKind::DaysAhead, bytes }));
        models.retain(|model| {
            let Some(checksum) = checksum(model) else { return false };
            self.kept.insert(model.kind, checksum) != Some(checksum)
        });
        models.into_iter().map(Effect::KeepModel).collect()
    }
}

fn checksum(model: &FittedModel) -> Option<[u8; 4]> {
    model.bytes.last_chunk().copied()
}
