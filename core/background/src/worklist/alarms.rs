//! What of a disk's plan would not hold, told once.

use super::{SpaceDate, Whose, Worklist};
use crate::nouns::{Alarm, Plan, Shortage};
use crate::work::Work;
use minerva_model::{BackgroundId, DeviceId, Effect, Finding, FindingKind, Nanos};
use std::collections::BTreeMap;

impl Worklist {
    /// What was last told of a disk's alarms stands still: there is work, and its plan does not hold.
    pub fn is_oversubscribed(&self, device: DeviceId) -> bool {
        let is_told = self.alarmed.get(&device).is_some_and(|told| !told.is_empty());
        is_told && self.works.values().any(|work| work.queue.device == device)
    }

    /// Says of a disk's alarms what was not said before; of space with its date.
    pub(super) fn alarm(
        &mut self,
        now: Nanos,
        device: DeviceId,
        plan: &Plan,
        date: Option<SpaceDate>,
    ) -> Option<Effect> {
        let share = self.against_max(Whose::all(device));
        let told = self.alarmed.entry(device).or_default();
        let what: Vec<String> = plan.alarms.iter().map(|alarm| words(alarm, &self.works)).collect();
        if *told == what.join(", ") {
            return None;
        }
        *told = what.join(", ");
        let first = plan.alarms.first()?;
        let hours = (first.at_seconds - now.as_secs_f64()).max(0.0) / 3600.0;
        let message = format!(
            "oversubscribed: add a disk or move load; even with every gap and {share} of 1,000 parts of the disk's time against others {told}, \
             the first within {hours:.1} h{}",
            date.map_or_else(String::new, |date| format!("; {}", when(now, &date)))
        );
        let finding = Finding { kind: FindingKind::Oversubscribed, device: Some(device), tenant: None, message };
        Some(Effect::Found(finding))
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
