//! Background work in the loop: what the foreground of each disk did goes to the worklist, and what that says becomes effects. Work
//! runs at level `idle` unless the plan gives it a part of the disk against others.

use minerva_background::{Foreground, Foreseen, Plan, QueueOverTime, SpaceDate, Span, WorkView, Worklist, Written};
use minerva_decide::Decider;
use minerva_model::{
    BackgroundHold, BackgroundId, BackgroundQueue, BackgroundReport, BackgroundSettings, Decision, Device, DeviceId,
    DiskCalibration, Effect, Expectation, IoSignals, Level, LevelClaims, LoadBin, LoadOf, LoadPart, Nanos, Outlook,
    SharedLoad, Signals, Tenant, TenantId,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The work, and the tenants that carry it out.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Background {
    worklist: Worklist,
    tenants: BTreeMap<TenantId, BackgroundId>,
    /// The level that each was last given.
    levels: BTreeMap<TenantId, Level>,
    /// Every tenant that there is, so that a queue that comes later finds its own.
    cgroups: BTreeMap<TenantId, String>,
    /// See [`BackgroundSettings::takers_stand_apart`].
    #[serde(default)]
    takers_stand_apart: bool,
    /// What disks lie on, where they lie on others.
    #[serde(default)]
    stacked_on: BTreeMap<DeviceId, Vec<DeviceId>>,
}

/// Background work as it is at an instant: what plans for people are made from, wherever there is time for them.
#[derive(Clone, Debug)]
pub struct BackgroundPlanning {
    now: Nanos,
    worklist: Worklist,
    outlook: Outlook,
}

impl BackgroundPlanning {
    /// The plan of a disk, with what each queue has and owes over time, in so many stretches at most.
    pub fn plan(&self, device: DeviceId, span: Span, stretches: usize) -> (Plan, Vec<QueueOverTime>) {
        let Self { now, worklist, outlook } = self;
        ask_with(outlook, device, *now, |foreseen| worklist.plan_by_queue(*now, device, (span, stretches), foreseen))
    }

    /// When space runs out on a disk.
    pub fn space_date(&self, device: DeviceId, span: Span) -> SpaceDate {
        let Self { now, worklist, outlook } = self;
        ask_with(outlook, device, *now, |foreseen| worklist.space_date(*now, device, span, foreseen))
    }
}

impl Background {
    pub(crate) fn configure(&mut self, settings: BackgroundSettings) {
        self.takers_stand_apart = settings.takers_stand_apart;
        self.worklist.configure(settings);
    }

    pub(crate) fn is_oversubscribed(&self, device: DeviceId) -> bool {
        self.worklist.is_oversubscribed(device)
    }

    pub(crate) fn set(&mut self, queue: BackgroundQueue) {
        let its = self.cgroups.iter().filter(|(_, cgroup)| **cgroup == queue.cgroup);
        self.tenants.extend(its.map(|(tenant, _)| (*tenant, queue.id)));
        self.worklist.set(queue);
    }

    pub(crate) fn gone(&mut self, id: BackgroundId) {
        self.worklist.remove(id);
        // A tenant may owe several.
        let (worklist, cgroups) = (&self.worklist, &self.cgroups);
        self.tenants.retain(|tenant, of| {
            let other = || cgroups.get(tenant).and_then(|cgroup| worklist.queue_in(cgroup)).map(|queue| queue.id);
            if *of == id { other().map(|other| *of = other).is_some() } else { true }
        });
    }

    pub(crate) fn device_seen(&mut self, device: &Device) {
        match device.facts.stacked_on.is_empty() {
            true => self.stacked_on.remove(&device.id),
            false => self.stacked_on.insert(device.id, device.facts.stacked_on.clone()),
        };
    }

    pub(crate) fn device_gone(&mut self, device: DeviceId) {
        self.stacked_on.remove(&device);
        self.worklist.device_gone(device);
    }

    pub(crate) fn reported(&mut self, now: Nanos, report: &BackgroundReport) {
        self.worklist.reported(now, report);
    }

    pub(crate) fn tenant_seen(&mut self, tenant: &Tenant) {
        self.cgroups.insert(tenant.id, tenant.cgroup.path.clone());
        if let Some(queue) = self.worklist.queue_in(&tenant.cgroup.path) {
            self.tenants.insert(tenant.id, queue.id);
        }
    }

    pub(crate) fn tenant_gone(&mut self, id: TenantId) {
        self.tenants.remove(&id);
        self.levels.remove(&id);
        self.cgroups.remove(&id);
    }

    /// Tenants that are stopped while others use their disk, and so need no cap.
    pub(crate) fn stopped_elsewhere(&self) -> BTreeSet<TenantId> {
        let stops = |id: &BackgroundId| self.worklist.hold(*id) == Some(BackgroundHold::Stop);
        self.tenants.iter().filter(|(_, id)| stops(id)).map(|(tenant, _)| *tenant).collect()
    }

    /// A slice ended. Answers with what is to be told, and with decisions on levels that changed.
    pub(crate) fn slice(
        &mut self,
        now: Nanos,
        (signals, outlook): (&Signals, &Outlook),
        decider: &mut Decider,
    ) -> (Vec<Effect>, Vec<Decision>) {
        let mut effects = Vec::new();
        for device in self.worklist.devices() {
            let slice = self.foreground(signals, device);
            let told = ask_with(outlook, device, now, |foreseen| self.worklist.slice(now, device, slice, foreseen));
            effects.extend(told);
        }
        (effects, self.levels(now, decider))
    }

    /// All that plans for people are made from.
    pub(crate) fn planning(&self, now: Nanos, loads: Vec<SharedLoad>) -> BackgroundPlanning {
        let outlook = Outlook::default().with_loads(loads);
        BackgroundPlanning { now, worklist: self.worklist.clone(), outlook }
    }

    pub(crate) fn calibrate(&mut self, now: Nanos, device: DeviceId, length: Nanos) {
        self.worklist.calibrate(now, device, length);
    }

    pub(crate) fn calibrated(&mut self, device: DeviceId, calibration: DiskCalibration) {
        self.worklist.calibrated(device, calibration);
    }

    pub(crate) fn serves(&self, device: DeviceId) -> Option<DiskCalibration> {
        self.worklist.serves(device)
    }

    pub(crate) fn calibrating_left(&self, now: Nanos, device: DeviceId) -> Option<Nanos> {
        self.worklist.calibrating_left(now, device)
    }

    pub(crate) fn views(&self, now: Nanos) -> impl Iterator<Item = WorkView<'_>> {
        self.worklist.views(now)
    }

    /// Gives each tenant its level, where that changed.
    fn levels(&mut self, now: Nanos, decider: &mut Decider) -> Vec<Decision> {
        let mut decisions = Vec::new();
        let is_told = |id: &BackgroundId| self.worklist.hold(*id).is_some_and(|hold| hold == BackgroundHold::Told);
        for (tenant, id) in self.tenants.iter().filter(|(_, id)| !is_told(id)) {
            let level = if self.worklist.takes_from_others(*id) { Level::Normal } else { Level::Idle };
            if self.levels.insert(*tenant, level) != Some(level) {
                let held = if level == Level::Normal { Vec::new() } else { vec![level] };
                // Nothing of it is declared: what works is told anew at each start.
                let (_, changed) = decider.claims_changed(now, *tenant, LevelClaims { held, ..LevelClaims::default() });
                decisions.extend(changed);
            }
        }
        decisions
    }

    /// Tenants whose work has a part of the time against others, and is stopped for the rest of it; each with the disks of which it has that,
    /// where it stands apart.
    pub(crate) fn takers(&self) -> BTreeMap<TenantId, Option<BTreeSet<DeviceId>>> {
        let takers = self.tenants.iter().filter(|(_, id)| self.worklist.goes_before_others(**id));
        takers.map(|(tenant, _)| (*tenant, self.takers_stand_apart.then(|| self.disks_of(*tenant)))).collect()
    }

    /// The disk that a tenant's work was planned for, and those that it lies on. Of the other disks of a btrfs nothing is known here.
    fn disks_of(&self, tenant: TenantId) -> BTreeSet<DeviceId> {
        let queue = self.cgroups.get(&tenant).and_then(|cgroup| self.worklist.queue_in(cgroup));
        let device = queue.map(|queue| queue.device);
        let below = device.and_then(|device| self.stacked_on.get(&device)).into_iter().flatten().copied();
        device.into_iter().chain(below).collect()
    }

    /// What a tenant does on a disk is background work.
    fn is_work(&self, tenant: TenantId, device: DeviceId) -> bool {
        let is_told = |id: &BackgroundId| self.worklist.hold(*id) == Some(BackgroundHold::Told);
        let may_do = |cgroup: &String| self.worklist.may_do_what_it_owes(cgroup, device);
        // Who owes some work has a foreground of its own too. The operator's work has none, on whichever disks it is.
        self.tenants.get(&tenant).is_some_and(|id| !is_told(id) || self.cgroups.get(&tenant).is_none_or(may_do))
    }

    /// What others than background work did on a disk, and the length of the slice in seconds.
    fn foreground(&self, signals: &Signals, device: DeviceId) -> (Foreground, f64) {
        let Some(disk) = signals.devices.iter().find(|disk| disk.device == device) else {
            return (Foreground::default(), 0.0);
        };
        let seconds = disk.elapsed.as_secs_f64();
        if seconds <= 0.0 {
            return (Foreground::default(), 0.0);
        }
        let rows = || signals.io.iter().filter(|row| row.device == device);
        let is_work = |row: &&IoSignals| self.is_work(row.tenant, device);
        let mine = rows().any(|row| row.active && is_work(&row));
        let others = || rows().filter(|row| !is_work(row));
        // What no tenant accounts for is the foreground's only where no work of ours ran that the kernel may do for it.
        let busy =
            if mine { others().map(|row| row.disk_part()).sum() } else { f64::from(disk.busy_permille) / 1000.0 };
        let bytes =
            if mine { others().map(|row| row.transferred.bytes()).sum::<u64>() } else { disk.transferred.bytes() };
        let written = if mine {
            others().map(|row| row.transferred.write_bytes).sum::<u64>()
        } else {
            disk.transferred.write_bytes
        };
        let requests: u64 = others().map(|row| row.transferred.ops()).sum();
        let foreground = Foreground {
            busy: f64::min(busy, 1.0),
            bytes_per_second: bytes as f64 / seconds,
            written_bytes_per_second: written as f64 / seconds,
            requests_per_second: requests as f64 / seconds,
            is_beside_work: mine,
        };
        (foreground, seconds)
    }
}

/// Asks with all that is foreseen of a disk.
fn ask_with<T>(outlook: &Outlook, device: DeviceId, now: Nanos, ask: impl FnOnce(Foreseen<'_>) -> T) -> T {
    let written = foreseen_written(outlook, device);
    ask((&foreseen(outlook, device, now), written.as_ref().map(|written| written as Written<'_>)))
}

/// The bytes that will be written to a disk within so many seconds from now; nothing unless enough sums of days or weeks came, and unless they
/// were better foreseen than by naive forecasts.
fn foreseen_written(outlook: &Outlook, device: DeviceId) -> Option<impl Fn(f64) -> Expectation> {
    let load = outlook.load(&LoadOf::Device(device))?;
    // What is read as well has no part in it.
    let [skill_day, skill_week] = load.skill_written.unwrap_or([load.skill_day, load.skill_week]);
    let sums = [(skill_week, load.week.written), (skill_day, load.day.written)];
    let is_known = |(skill, sum): (f64, Expectation)| skill > 0.0 && sum.value > 0.0 && sum.lower < sum.upper;
    sums.into_iter().any(is_known).then_some(move |seconds| load.sum_within(LoadPart::Written, seconds))
}

/// What is forecast of a disk so many seconds from now; nothing unless its forecasts of days were better than naive ones.
fn foreseen(outlook: &Outlook, device: DeviceId, now: Nanos) -> impl Fn(f64) -> Option<f64> {
    let load = outlook.load(&LoadOf::Device(device)).filter(|load| load.skill_day > 0.0);
    move |seconds| {
        let instant = now + Nanos((seconds.max(0.0) * 1e9) as u64);
        load.and_then(|load| load.at(instant)).map(LoadBin::bytes_per_second)
    }
}
