//! When space runs out: likely, and within what that lies.

use super::{LIMIT_SHARE, Whose, Worklist};
use crate::ahead::{Foreseen, Span};
use crate::file_system::{End, Written};
use crate::nouns::{Plan, Shortage};
use crate::spread::Spread;
use minerva_model::{DeviceId, Effect, Finding, FindingKind, Nanos};
use serde::{Deserialize, Serialize};

/// That space may run out is told again after so long in which it was not so.
const NOTICE_AGAIN: Nanos = Nanos::from_secs(86_400);

/// When space runs out though work takes every gap, and from others what it may. Each is absent where space lasts as long as the plan.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SpaceDate {
    /// If as much is written as the upper end of the forecast's interval says.
    pub earliest_seconds: Option<f64>,
    /// If as much is written as is expected.
    pub likely_seconds: Option<f64>,
    /// If no more is written than the lower end says.
    pub latest_seconds: Option<f64>,
    /// The forecast has an interval; without one all three are the likely one.
    pub is_interval_known: bool,
}

impl Worklist {
    /// When space runs out on a disk.
    pub fn space_date(&self, now: Nanos, device: DeviceId, span: Span, foreseen: Foreseen<'_>) -> SpaceDate {
        let slots = span.slots();
        let runs_out =
            |end| first_shortage(&self.planned(now, Whose::all(device), (&slots, Spread::Early), foreseen, end));
        let likely_seconds = runs_out(End::Likely);
        let is_interval_known = self.is_growth_foreseen(device, foreseen.1);
        let at = |end| if is_interval_known { runs_out(end) } else { likely_seconds };
        SpaceDate {
            earliest_seconds: at(End::Upper),
            likely_seconds,
            latest_seconds: at(End::Lower),
            is_interval_known,
        }
    }

    /// How far growth can be off is known where that of writes is, and writes account for it.
    fn is_growth_foreseen(&self, device: DeviceId, written: Option<Written<'_>>) -> bool {
        let file_system = self.shortest_of_space(Whose::all(device));
        written.is_some() && self.disks.get(&device).and_then(|disk| disk.kept_of_written(file_system)).is_some()
    }

    /// The file system of a disk whose space a plan is made for: of those on which something is owed the one that runs out first. What is
    /// owed on another frees nothing there.
    pub(super) fn shortest_of_space(&self, whose: Whose<'_>) -> Option<u64> {
        let disk = self.disks.get(&whose.device)?;
        let mut numbers: Vec<u64> = self.owed(whose).filter_map(|work| work.file_system).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let left = |number: &u64| disk.space(Some(*number)).left(LIMIT_SHARE);
        numbers.into_iter().min_by(|a, b| {
            let (a, b) = (left(a), left(b));
            a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
        })
    }
}

/// That space may run out, as it was last told of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct SpaceNotice {
    /// For how long it would last at the least.
    left_seconds: f64,
    /// When that was last so.
    seen_at: Nanos,
}

impl Worklist {
    /// Says that space may run out on a disk on which it likely lasts: once, and again when it may do so in half the time, or after a day
    /// in which it was not so.
    pub(super) fn notice(&mut self, now: Nanos, device: DeviceId, foreseen: Foreseen<'_>) -> Option<Effect> {
        if !self.is_growth_foreseen(device, foreseen.1) {
            return None;
        }
        let plan = self.planned(now, Whose::all(device), (&Span::Month.slots(), Spread::Early), foreseen, End::Upper);
        let left_seconds = (first_shortage(&plan)? - now.as_secs_f64()).max(0.0);
        let last = self.noticed.get(&device).copied();
        let is_old =
            last.filter(|last| now.since(last.seen_at) < NOTICE_AGAIN && left_seconds * 2.0 > last.left_seconds);
        let told_seconds = is_old.map_or(left_seconds, |last| last.left_seconds);
        self.noticed.insert(device, SpaceNotice { left_seconds: told_seconds, seen_at: now });
        if is_old.is_some() {
            return None;
        }
        let message = format!(
            "space likely lasts for the next 30 days, but may run out within {:.1} h at the earliest, if more is written than expected; \
             `minerva-ctl background plan --span month` shows the date as it moves",
            left_seconds / 3600.0
        );
        Some(Effect::Found(Finding { kind: FindingKind::SpaceMayRunOut, device: Some(device), tenant: None, message }))
    }
}

fn first_shortage(plan: &Plan) -> Option<f64> {
    let is_space = |shortage: Shortage| matches!(shortage, Shortage::Space { .. });
    plan.alarms.iter().find(|alarm| is_space(alarm.shortage)).map(|alarm| alarm.at_seconds)
}
