//! What of a disk's plan would not hold, told once.

use super::{SpaceDate, Whose, Worklist};
use crate::nouns::{Alarm, Plan, Shortage};
use crate::work::Work;
use minerva_model::{BackgroundHold, BackgroundId, BackgroundQueue, DeviceId, Effect, Finding, FindingKind, Nanos};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What plans do not have any more is over after so long: estimates swing, and the next plan may have it again.
const OVER: Nanos = Nanos::from_secs(300);

/// What of a disk was told not to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ToldAlarm {
    /// The queue that misses its deadline; absent: space runs out.
    id: Option<BackgroundId>,
    /// Since when plans do not have it.
    absent_since: Option<Nanos>,
}

impl Worklist {
    /// What was last told of a disk's alarms stands still: there is work, and its plan does not hold.
    pub fn is_oversubscribed(&self, device: DeviceId) -> bool {
        let was_told = self.alarmed.get(&device).is_some_and(|told| !told.is_empty());
        let is_told = was_told || self.alarms.get(&device).is_some_and(|told| !told.is_empty());
        is_told && self.works.values().any(|work| work.queue.device == device)
    }

    /// What does not hold, by a plan of all that is owed. In that a debt goes before the operator's work where it is due sooner, though it comes
    /// after it: so the operator's work misses only what it misses alone, `planned` by itself.
    pub(super) fn alarms_of(
        &self,
        device: DeviceId,
        of_all: &Plan,
        planned: impl FnOnce(Whose<'_>) -> Plan,
    ) -> Vec<Alarm> {
        let ready = || self.ready(Whose::all(device));
        let of_operator = ready().filter(|work| !work.is_debt());
        let operators: BTreeSet<BackgroundId> = of_operator.map(|work| work.queue.id).collect();
        let is_operators = |alarm: &&Alarm| missing(alarm).is_some_and(|id| operators.contains(&id));
        let has_debts = operators.len() < ready().count();
        let is_one = has_debts && of_all.alarms.iter().any(|alarm| is_operators(&alarm));
        if !is_one || !self.settings.debts_raise_no_false_alarm {
            return of_all.alarms.clone();
        }
        let alone = planned(Whose::only(device, Some(&operators)));
        let others = of_all.alarms.iter().filter(|alarm| !is_operators(alarm));
        let mut alarms: Vec<Alarm> = others.chain(alone.alarms.iter().filter(is_operators)).copied().collect();
        alarms.sort_by(|a, b| a.at_seconds.total_cmp(&b.at_seconds));
        alarms
    }

    /// Says of a disk's alarms what was not said before; of space with its date.
    pub(super) fn alarm(
        &mut self,
        now: Nanos,
        device: DeviceId,
        alarms: &[Alarm],
        date: Option<SpaceDate>,
    ) -> Option<Effect> {
        let what: Vec<String> = alarms.iter().map(|alarm| words(alarm, &self.works)).collect();
        let what = what.join(", ");
        let is_news = if self.settings.alarms_outlast_a_plan {
            self.alarmed.remove(&device);
            self.take_alarms(now, device, alarms)
        } else {
            self.alarmed.insert(device, what.clone()).unwrap_or_default() != what
        };
        let first = alarms.first().filter(|_| is_news)?;
        let hours = (first.at_seconds - now.as_secs_f64()).max(0.0) / 3600.0;
        let share = Some(self.against_max(Whose::all(device))).filter(|share| *share > 0.0);
        let against = share
            .map_or_else(String::new, |share| format!(" and {share} of 1,000 parts of the disk's time against others"));
        let message = format!(
            "oversubscribed: add a disk or move load; even with every gap{against} {what}, the first within {hours:.1} h{}",
            date.map_or_else(String::new, |date| format!("; {}", when(now, &date)))
        );
        let finding = Finding { kind: FindingKind::Oversubscribed, device: Some(device), tenant: None, message };
        Some(Effect::Found(finding))
    }

    /// Takes what a new plan tells; whether there is one that does not stand already.
    fn take_alarms(&mut self, now: Nanos, device: DeviceId, alarms: &[Alarm]) -> bool {
        let told = self.alarms.entry(device).or_default();
        let has = |id: Option<BackgroundId>| alarms.iter().any(|alarm| missing(alarm) == id);
        for alarm in told.iter_mut() {
            alarm.absent_since = if has(alarm.id) { None } else { alarm.absent_since.or(Some(now)) };
        }
        let stood = told.len();
        for id in alarms.iter().map(missing) {
            if told.iter().all(|alarm| alarm.id != id) {
                told.push(ToldAlarm { id, absent_since: None });
            }
        }
        told.len() > stood
    }

    /// Ends alarms that plans have not had for a while, and those of work that is done or gone.
    pub(super) fn end_alarms(&mut self, now: Nanos, device: DeviceId) {
        let is_owed = |id: BackgroundId| self.works.get(&id).is_some_and(Work::is_owed);
        if let Some(told) = self.alarms.get_mut(&device) {
            told.retain(|alarm| {
                let is_over = alarm.absent_since.is_some_and(|since| now.since(since) >= OVER);
                !is_over && alarm.id.is_none_or(is_owed)
            });
        }
    }

    /// A queue may have other terms: what was told of it by those before says nothing of these. What tenants owe they may change all the time.
    pub(super) fn forget_alarm_by_terms(&mut self, before: &BackgroundQueue, queue: &BackgroundQueue) {
        let terms = |queue: &BackgroundQueue| (queue.due, queue.priority, queue.is_paused);
        if queue.hold != BackgroundHold::Told && terms(before) != terms(queue) {
            let told = self.alarms.entry(before.device).or_default();
            told.retain(|alarm| alarm.id != Some(before.id));
        }
    }
}

/// The queue that misses its deadline by an alarm; nothing if space runs out.
const fn missing(alarm: &Alarm) -> Option<BackgroundId> {
    match alarm.shortage {
        Shortage::Space { .. } => None,
        Shortage::Deadline { id } => Some(BackgroundId(id.0)),
    }
}

/// When space runs out, and within what that lies.
fn when(now: Nanos, date: &SpaceDate) -> String {
    let within = |at: Option<f64>| {
        at.map_or_else(
            || "not in the next 30 days".to_owned(),
            |at| format!("{:.1} h", (at - now.as_secs_f64()).max(0.0) / 3600.0),
        )
    };
    let likely = within(date.likely_seconds);
    if !date.is_interval_known {
        return format!("space likely runs out within {likely}; how far that can be off is not known yet");
    }
    let (earliest, latest) = (within(date.earliest_seconds), within(date.latest_seconds));
    format!(
        "space likely runs out within {likely}, at the earliest {earliest}, at the latest {latest}, if more or less is written than expected"
    )
}

fn words(alarm: &Alarm, works: &BTreeMap<BackgroundId, Work>) -> String {
    match alarm.shortage {
        Shortage::Space { .. } => "space runs out".to_owned(),
        Shortage::Deadline { id } => {
            let name = works.get(&BackgroundId(id.0)).map_or("?", |work| work.queue.name.as_str());
            format!("{name} misses its deadline")
        }
    }
}
