//! What can be asked of the engine, and supposed for it.

use crate::Engine;
use crate::background::BackgroundPlanning;
use minerva_background::WorkView;
use minerva_decide::{ContractsView, JobView, KnownJob};
use minerva_forecast::TenantOutlook;
use minerva_forecast::load::LoadMember;
use minerva_model::{
    BackEnd, Decision, DeviceId, DiskCalibration, ForecastMode, LoadOf, Mode, Nanos, Outlook, Protection, Signals,
    TenantId,
};

impl Engine {
    /// How far the engine goes at present.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// What stands decided for every pair that used its disk, by disk, then tenant. Nothing in `observe`.
    pub fn decisions(&self) -> impl Iterator<Item = Decision> {
        self.decider.decisions().filter(|_| self.mode != Mode::Observe)
    }

    /// What stands decided for one pair, also if it has not used the disk yet. Nothing in `observe`.
    pub fn decision(&self, tenant: TenantId, device: DeviceId) -> Option<Decision> {
        self.decider.decision(tenant, device).filter(|_| self.mode != Mode::Observe)
    }

    /// What each tenant that is there is called.
    pub fn tenant_names(&self) -> impl Iterator<Item = (TenantId, &str)> {
        self.decider.tenant_names()
    }

    /// What the kernel calls each disk that is there.
    pub fn device_names(&self) -> impl Iterator<Item = (DeviceId, &str)> {
        self.actuator.device_names()
    }

    /// The back end of every disk, with the reason.
    pub fn device_suitabilities(&self) -> impl Iterator<Item = (DeviceId, BackEnd, &str)> {
        self.devices.iter().filter_map(|id| {
            let (back_end, reason) = self.actuator.back_end(*id)?;
            Some((*id, back_end, reason))
        })
    }

    /// How the contracts of each server of ours stand on each device beside other processes: the server's name, the device, and how.
    pub fn protections(&self) -> impl Iterator<Item = (&str, DeviceId, Protection)> {
        self.decider.contracts().map(|view| {
            let (held, why) = match self.holds_others_back(&view) {
                Ok(why) => (true, why),
                Err(why) => (false, why),
            };
            let part_permille = if held { view.part_permille } else { 0 };
            let ContractsView { contracts, others_permille, .. } = view;
            (contracts.server.as_str(), contracts.device, Protection { held, why, part_permille, others_permille })
        })
    }

    /// By what others are held back for a server's contracts, or why they are not.
    fn holds_others_back(&self, view: &ContractsView<'_>) -> Result<String, String> {
        let contracts = view.contracts;
        let Some(tenant) = contracts.tenant else {
            return Err("the server runs in no group that minervad steers; start it as a service".to_owned());
        };
        if self.mode != Mode::Enforce {
            return Err("minervad only watches; set `mode = \"enforce\"`".to_owned());
        }
        if self.decider.is_excluded(tenant) {
            return Err("a rule of the operator's file excludes the server's group; remove it".to_owned());
        }
        match self.actuator.back_end(contracts.device) {
            None => Err("minervad does not look at the disk; see `devices_only`".to_owned()),
            Some((BackEnd::Observe, why)) => Err(format!("nothing takes effect on the disk: {why}")),
            Some((back_end, _)) => Ok(format!("minervad holds others back through {back_end}")),
        }
    }

    /// How many tenants actively used the disk in the last slice.
    pub fn contention(&self, device: DeviceId) -> Option<u32> {
        let index = self.signals.devices.binary_search_by_key(&device, |signals| signals.device).ok()?;
        Some(self.signals.devices[index].contention)
    }

    /// What happened in the last slice.
    pub fn signals(&self) -> &Signals {
        &self.signals
    }

    /// The next decision goes by this outlook instead of the engine's own: for experiments that compare forecasts with an oracle
    /// or with last time's value. It is no event, so a recording does not hold it.
    pub fn suppose(&mut self, outlook: Outlook) {
        self.supposed = Some(outlook);
    }

    /// What each tenant is expected to do, also where [`Self::forecast_mode`] is `shadow` and decisions do not go by it.
    pub fn outlook(&self) -> &Outlook {
        self.forecasts.outlook()
    }

    /// What a disk or a group did in bins of ten minutes before those of its forecast in [`Self::outlook`]: bytes a second both ways,
    /// oldest first, at most a week.
    pub fn load_past(&self, of: &LoadOf) -> Vec<f64> {
        self.forecasts.past(of)
    }

    /// Which models speak of the reads and of the writes of a disk or a group in its forecast of days.
    pub fn load_members(&self, of: &LoadOf) -> [Vec<LoadMember>; 2] {
        self.forecasts.members(of)
    }

    /// Tenants on disks that did I/O in the last slice and of which nothing is forecast because there are too many.
    pub fn pairs_without_room(&self) -> u64 {
        self.forecasts.pairs_without_room()
    }

    /// Disks and groups that did I/O in the last slice and of whose days nothing is forecast because there are too many.
    pub fn loads_without_room(&self) -> u64 {
        self.forecasts.without_room()
    }

    /// What one pair is expected to do, slice by slice; nothing if nothing is known of it.
    pub fn tenant_outlook(&self, tenant: TenantId, device: DeviceId) -> Option<TenantOutlook> {
        self.forecasts.of(tenant, device)
    }

    /// Batch jobs that are there, by tenant.
    pub fn jobs(&self) -> Vec<JobView> {
        self.decider.jobs()
    }

    /// A batch job's number in the order, from 1, and how many jobs there are; nothing while none goes before another.
    pub fn job_order(&self, tenant: TenantId) -> Option<(u32, u32)> {
        self.decider.job_order(tenant)
    }

    /// Names of batch jobs of which runs are known, by name.
    pub fn known_jobs(&self) -> impl Iterator<Item = KnownJob> {
        self.decider.known_jobs()
    }

    /// Background work, by number.
    pub fn background(&self) -> impl Iterator<Item = WorkView<'_>> {
        self.background.views(self.now)
    }

    /// All that plans of background work are made from: what those in force are made from.
    pub fn background_planning(&self) -> BackgroundPlanning {
        self.background.planning(self.now, self.forecasts.loads_for_decisions())
    }

    /// Whether the finding that a disk has more background work than it can do in time stands still.
    pub fn is_oversubscribed(&self, device: DeviceId) -> bool {
        self.background.is_oversubscribed(device)
    }

    /// What a disk serves to others than background work, as plans go by it.
    pub fn disk_serves(&self, device: DeviceId) -> Option<DiskCalibration> {
        self.background.serves(device)
    }

    /// For how long background work of a disk still rests to be calibrated.
    pub fn calibrating_left(&self, device: DeviceId) -> Option<Nanos> {
        self.background.calibrating_left(self.now, device)
    }

    /// Whether samples should tell what tenants use besides the disk.
    pub fn wants_usage(&self) -> bool {
        self.forecasts.are_wanted() || self.decider.has_jobs()
    }

    /// What becomes of a tenant's forecasts.
    pub fn forecast_mode(&self, tenant: TenantId) -> ForecastMode {
        self.forecasts.mode(tenant)
    }
}
