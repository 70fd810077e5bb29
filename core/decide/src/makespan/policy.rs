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
        self.named.advance(now, self.settings.knowledge_fades);
        if !self.has_jobs() {
            self.running.clear();
            self.places.clear();
            self.told.clear();
            self.traces.clear();
            self.courses.clear();
            self.attained.clear();
            self.left.clear();
            self.active.clear();
            if self.settings.whole_runs_teach {
                self.parts.clear();
            }
            return;
        }
        self.look_up_names();
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
        let Some(position) = self.place(pair) else { return Reason::Stated { text: "no job".to_owned() } };
        let mut text = self.explain((pair.device, pair.tenant), position);
        match position.waits_with().filter(|_| !self.is_let_on(pair)) {
            Some(disk_part) => {
                text.push_str(&self.explain_cap(position));
                Reason::JobWaits { text, disk_part, turn_is_known: self.tells_turn(position) }
            }
            None => Reason::Stated { text },
        }
    }

    fn mark(&self, pair: &Pair<'_>) -> u8 {
        self.place(pair).map_or(0, |position| self.mark_at(position, self.is_let_on(pair)))
    }
}

impl Rule {
    /// It waits where only jobs use the disk, and people and knobs are told that it is known when its turn comes.
    pub(super) fn tells_turn(&self, position: &QueuePosition) -> bool {
        self.settings.turns_are_told && position.waits_with().is_some() && position.turn_is_known()
    }

    /// It was told that its operation begins now, so no cap is to delay that.
    fn is_let_on(&self, pair: &Pair<'_>) -> bool {
        self.settings.caps_are_told && pair.stance.operation.is_some_and(|operation| !operation.is_held_back)
    }

    /// What is to be told anew of a job differs in it.
    pub(super) fn mark_at(&self, position: &QueuePosition, is_let_on: bool) -> u8 {
        if self.settings.caps_are_told {
            return 2 * position.told + u8::from(is_let_on) + 1;
        }
        // States of a job that waits or not: three, and a fourth where turns are told.
        let waits = || 1 + u8::from(position.alone) + u8::from(self.tells_turn(position));
        let state = if position.is_ahead() { 0 } else { waits() };
        let (states, place_max) = if self.settings.turns_are_told { (4, 60) } else { (3, 80) };
        states * (position.place.min(place_max) as u8) + state + 1
    }
}
