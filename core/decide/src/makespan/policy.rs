//! What the order of jobs does to shares, and how that is told.

use super::Rule;
use super::position::QueuePosition;
use crate::compose::{DecideInput, Pair, SharePolicy};
use minerva_model::{DeviceId, Nanos, PolicyName, Reason};

impl SharePolicy for Rule {
    fn name(&self) -> PolicyName {
        PolicyName::new("makespan")
    }

    fn slice(&mut self, now: Nanos, input: &DecideInput<'_>) {
        if !self.has_jobs() {
            self.running.clear();
            self.places.clear();
            self.traces.clear();
            self.courses.clear();
            self.attained.clear();
            self.active.clear();
            return;
        }
        input.signals.io.iter().for_each(|row| self.note(now, row));
        self.trace(input.signals);
        self.note_active(now, input.signals);
        self.end_rested(now);
        let mut devices: Vec<DeviceId> = self.running.keys().map(|(device, _)| *device).collect();
        devices.dedup();
        devices.into_iter().for_each(|device| self.sort(now, device, input));
    }

    fn factor(&self, pair: &Pair<'_>, _: f64) -> Option<f64> {
        let place = self.place(pair)?;
        // The past of jobs counts against others, not among themselves: at the least share there is no room below for who waits.
        let past = if place.alone { pair.history() } else { 1.0 };
        Some(place.part() / past)
    }

    fn reason(&self, pair: &Pair<'_>, _: f64) -> Reason {
        let place = self.place(pair);
        let text =
            place.map_or_else(|| "no job".to_owned(), |position| self.explain((pair.device, pair.tenant), position));
        match place.and_then(QueuePosition::waits_with) {
            Some(disk_part) => Reason::JobWaits { text, disk_part },
            None => Reason::Stated { text },
        }
    }

    fn mark(&self, pair: &Pair<'_>) -> u8 {
        let mark = |place: &QueuePosition| {
            // Three states of a job that waits or not.
            let state = if place.is_ahead() { 0 } else { 1 + u8::from(place.alone) };
            3 * (place.place.min(80) as u8) + state + 1
        };
        self.place(pair).map_or(0, mark)
    }
}
