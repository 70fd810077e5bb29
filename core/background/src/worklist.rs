//! The work of a host: which queue of each disk may run in the next slice, by what was measured and by the plan.
//!
//! Of each disk one queue runs at a time, because two would move its head to and fro between them: the one whose deadline is near,
//! else the one of the greatest priority. It has the gaps that others leave. Only where the plan says that a deadline or space would
//! not hold by gaps alone it gets a part of the disk's time against others: never more than [`SHARE_MAX`], and where it was measured to
//! cost others more than its own time, so little less that they keep half of their requests all the same. The plan is made with that
//! bound, so that what costs others much is begun sooner and goes slower (docs/adr/0033). Alarms are of all that is owed; what is taken from
//! others is for the work that goes first, not for what tenants say that they owe beside it, nor for what hangs (docs/adr/0034).

mod alarms;
mod calibration;
mod counted;
mod due;
mod ends;
mod measure;
mod orders;
mod space;
mod view;

use alarms::ToldAlarm;
use calibration::Calibrating;
use counted::Whose;
pub use space::SpaceDate;
use space::SpaceNotice;
pub use view::WorkView;

use crate::ahead::{Disk, Expecting, Foreground, Foreseen, PARTS, Span, slots_in_force};
use crate::debt::Debts;
use crate::file_system::End;
use crate::nouns::{Plan, PlanInput, QueueOverTime, Shortage};
use crate::spread::Spread;
use crate::work::Work;
use minerva_model::{
    BackgroundHold, BackgroundId, BackgroundPace, BackgroundQueue, BackgroundReport, BackgroundSettings, DeviceId,
    Effect, Nanos,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Whatever is late, others keep half of the disk's time, and half of the requests that they make without the work.
const SHARE_MAX: u16 = 500;
/// Shares are told in steps of this.
const SHARE_STEP: u16 = 50;
/// Used and tied blocks may take this part of a file system.
const LIMIT_SHARE: f64 = 0.95;
/// Time is taken from others only for what would not hold within this: what is further away may never come.
const STEAL_AHEAD: Nanos = Nanos::from_secs(6 * 3600);
/// A plan is made anew after this time in any case.
const REPLAN: Nanos = Nanos::from_secs(3600);
/// The last part of its time in which work goes before priorities.
const URGENT_PART: u64 = 8;

/// A disk's plan in force.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct InForce {
    plan: Plan,
    made: Nanos,
    /// Core-seconds that ran since.
    served: f64,
    /// Estimates moved since.
    is_stale: bool,
    /// Core-seconds that the foreground left since, and those that it was expected to leave.
    #[serde(default)]
    left: (f64, f64),
    /// Blocks in use, beside what debt ties, when it was made.
    #[serde(default)]
    used_blocks: f64,
    /// When each queue will be done by it, and which goes after which.
    #[serde(default)]
    ends: BTreeMap<BackgroundId, f64>,
    #[serde(default)]
    order: Vec<BackgroundId>,
    /// The queues that it is made for. Absent: all that could run.
    #[serde(default)]
    counted: Option<BTreeSet<BackgroundId>>,
}

/// The work of a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Worklist {
    works: BTreeMap<BackgroundId, Work>,
    disks: BTreeMap<DeviceId, Disk>,
    plans: BTreeMap<DeviceId, InForce>,
    /// What was last told of each disk's alarms, in recordings of earlier versions.
    alarmed: BTreeMap<DeviceId, String>,
    /// See [`BackgroundSettings::alarms_outlast_a_plan`].
    #[serde(default)]
    alarms: BTreeMap<DeviceId, Vec<ToldAlarm>>,
    /// What was last told of space that may run out.
    #[serde(default)]
    noticed: BTreeMap<DeviceId, SpaceNotice>,
    #[serde(default = "BackgroundSettings::absent")]
    settings: BackgroundSettings,
    /// Disks on which work rests to be measured without it.
    #[serde(default)]
    calibrating: BTreeMap<DeviceId, Calibrating>,
}

impl Worklist {
    /// Nothing is to be done.
    pub fn is_empty(&self) -> bool {
        self.works.is_empty()
    }

    /// How plans are made from now on.
    pub fn configure(&mut self, settings: BackgroundSettings) {
        if std::mem::replace(&mut self.settings, settings) != settings {
            self.plans.clear();
        }
    }

    /// Takes a queue, or other terms of one that is there.
    pub fn set(&mut self, queue: BackgroundQueue) {
        self.plans.remove(&queue.device);
        let work = match self.works.remove(&queue.id) {
            Some(before) => {
                self.forget_alarm_by_terms(&before.queue, &queue);
                Work { is_told: false, queue, ..before }
            }
            None => Work::new(queue),
        };
        self.works.insert(work.queue.id, work);
    }

    /// A queue is no more.
    pub fn remove(&mut self, id: BackgroundId) {
        if let Some(work) = self.works.remove(&id) {
            self.plans.remove(&work.queue.device);
            if !self.devices().contains(&work.queue.device) {
                self.alarms.remove(&work.queue.device);
            }
        }
    }

    /// A disk is gone, and with it what was measured, planned and told of it: another may get its number. Its queues wait for it.
    pub fn device_gone(&mut self, device: DeviceId) {
        if !self.settings.forgets_gone_disks {
            return;
        }
        self.disks.remove(&device);
        self.plans.remove(&device);
        self.alarmed.remove(&device);
        self.alarms.remove(&device);
        self.noticed.remove(&device);
        self.calibrating.remove(&device);
    }

    /// Takes how far a queue is; of one that is not there nothing.
    pub fn reported(&mut self, now: Nanos, report: &BackgroundReport) {
        let Some(work) = self.works.get_mut(&report.id) else { return };
        let was_owed = work.is_owed();
        let freed = work.reported(now, report, &self.settings);
        let device = work.queue.device;
        if work.is_owed() != was_owed {
            self.plans.remove(&device);
        }
        if let Some(in_force) = self.plans.get_mut(&device).filter(|in_force| in_force.counts(report.id)) {
            in_force.served += f64::from(PARTS) * report.ran.as_secs_f64();
        }
        let space = self.disks.entry(device).or_default().space_mut(report.file_system);
        space.reported(now, (report.used_bytes, report.size_bytes), freed, self.settings.growth_is_net);
    }

    /// The queue that runs in a cgroup.
    pub fn queue_in(&self, cgroup: &str) -> Option<&BackgroundQueue> {
        self.works.values().map(|work| &work.queue).find(|queue| queue.cgroup == cgroup)
    }

    /// Disks on which something is to be done.
    pub fn devices(&self) -> Vec<DeviceId> {
        let mut devices: Vec<DeviceId> = self.works.values().map(|work| work.queue.device).collect();
        devices.sort_unstable();
        devices.dedup();
        devices
    }

    /// How a queue is kept from the disk.
    pub fn hold(&self, id: BackgroundId) -> Option<BackgroundHold> {
        self.works.get(&id).map(|work| work.queue.hold)
    }

    /// When a queue may run.
    pub fn pace(&self, id: BackgroundId) -> Option<BackgroundPace> {
        self.works.get(&id).map(|work| work.order.pace)
    }

    /// A slice of `seconds` ended on a disk: what its foreground did. Answers with what is to be told: orders, estimates, alarms.
    pub fn slice(
        &mut self,
        now: Nanos,
        device: DeviceId,
        (foreground, seconds): (Foreground, f64),
        foreseen: Foreseen<'_>,
    ) -> Vec<Effect> {
        self.measure(now, device, (foreground, seconds), foreseen.0);
        let mut effects = self.learn(device);
        effects.extend(self.end_calibration(now, device));
        self.end_alarms(now, device);
        if self.is_plan_due(now, device) {
            effects.extend(self.plan_anew(now, device, foreseen));
        }
        effects.extend(self.orders(now, device).into_iter().map(Effect::Background));
        effects
    }

    /// Puts a new plan in force. Answers with what it tells.
    fn plan_anew(&mut self, now: Nanos, device: DeviceId, foreseen: Foreseen<'_>) -> Vec<Effect> {
        let slots = slots_in_force(self.settings.first_hour_by_minutes);
        let planned = |whose: Whose<'_>| self.planned(now, whose, (&slots, Spread::Headroom), foreseen, End::Likely);
        let of_all = planned(Whose::all(device));
        let counted = self.counted(now, device);
        let whose = Whose::only(device, counted.as_ref());
        let of_counted = counted.is_some().then(|| planned(whose));
        let used_blocks = self.used_blocks(whose);
        let is_short_of_space = of_all.alarms.iter().any(|alarm| matches!(alarm.shortage, Shortage::Space { .. }));
        let date = is_short_of_space.then(|| self.space_date(now, device, Span::Month, foreseen));
        let alarms = self.alarms_of(device, &of_all, planned);
        let mut effects: Vec<Effect> = self.alarm(now, device, &alarms, date).into_iter().collect();
        effects.extend(if is_short_of_space { None } else { self.notice(now, device, foreseen) });
        let plan = of_counted.unwrap_or(of_all);
        let order = self.in_order(now, device);
        let ends = self.ends(now, &plan, &order);
        if let Some(before) = self.plans.remove(&device) {
            self.slipped(&before, now, &ends, &order);
        }
        let (served, is_stale, left) = (0.0, false, (0.0, 0.0));
        let in_force = InForce { plan, made: now, served, is_stale, left, used_blocks, ends, order, counted };
        self.plans.insert(device, in_force);
        effects
    }

    /// The plan of a disk, for people: work takes every gap, and from others what it must.
    pub fn plan(&self, now: Nanos, device: DeviceId, span: Span, foreseen: Foreseen<'_>) -> Plan {
        self.planned(now, Whose::all(device), (&span.slots(), Spread::Early), foreseen, End::Likely)
    }

    /// The same, with what each queue has and owes over time, in so many stretches at most.
    pub fn plan_by_queue(
        &self,
        now: Nanos,
        device: DeviceId,
        (span, stretches): (Span, usize),
        foreseen: Foreseen<'_>,
    ) -> (Plan, Vec<QueueOverTime>) {
        self.with_input(now, Whose::all(device), (&span.slots(), Spread::Early), foreseen, End::Likely, |input| {
            let plan = Plan::new(input);
            let queues = plan.by_queue(input, stretches);
            (plan, queues)
        })
    }

    /// To go by a plan is spread: it says how much must be done by when, and nobody is behind who does that. Of what will be
    /// written `end` of the interval is.
    fn planned(
        &self,
        now: Nanos,
        whose: Whose<'_>,
        (slots, spread): (&[f64], Spread),
        foreseen: Foreseen<'_>,
        end: End,
    ) -> Plan {
        self.with_input(now, whose, (slots, spread), foreseen, end, Plan::new)
    }

    fn with_input<T>(
        &self,
        now: Nanos,
        whose: Whose<'_>,
        (slots, spread): (&[f64], Spread),
        foreseen: Foreseen<'_>,
        end: End,
        make: impl FnOnce(&PlanInput<'_>) -> T,
    ) -> T {
        let nothing = Disk::default();
        let disk = self.disks.get(&whose.device).unwrap_or(&nothing);
        let file_system = self.shortest_of_space(whose);
        let mut debts = Debts::default();
        let due = |work: &Work| if self.settings.slips_count { work.planned_due(now) } else { work.due() };
        let believed = self.believed_part(whose, file_system);
        for work in self.ready(whose) {
            let tied_part = if work.is_debt() { believed } else { 1.0 };
            work.defer_into(&mut debts, due(work), file_system, tied_part);
        }
        let is_corrected = self.settings.replan_on_error;
        make(&PlanInput {
            now_seconds: now.as_secs_f64(),
            machine: Disk::machine(),
            debts: &debts,
            expected: &disk.expected(Expecting { slots, foreseen, end, file_system, is_corrected }),
            used_blocks: disk.space(file_system).used_blocks(debts.tied_blocks()),
            limit_share: LIMIT_SHARE,
            spread,
            against_cores_max: self.against_max(whose),
            wait_seconds: None,
        })
    }
}
