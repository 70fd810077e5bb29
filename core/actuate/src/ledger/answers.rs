//! What follows from the driver's answers.

use super::{Ledger, RETRY_SLICES_MAX};
use crate::entry::Asked;
use crate::fights;
use crate::knob::{self, KnobKey};
use crate::setting::{Reading, Setting};
use minerva_model::{Effect, FindingKind, Outcome, WriteId};

impl Ledger {
    /// Takes an answer; returns what the knob holds, if that became known.
    pub(crate) fn answered(&mut self, id: WriteId, outcome: &Outcome) -> Option<(KnobKey, Setting)> {
        let key = self.requests.remove(&id)?;
        let (_, asked) = self.knobs.get_mut(&key)?.request.take()?;
        let text = match outcome {
            Outcome::Vanished => {
                self.remove(key);
                return None;
            }
            Outcome::Refused { detail, .. } => {
                self.refused(key, &asked, detail.clone());
                return None;
            }
            // That nothing is read while all is put back is no trouble of the knob.
            Outcome::Busy => {
                self.not_done(key, &asked);
                self.retry_after(key, 1);
                return None;
            }
            Outcome::Text(text) => text,
        };
        let Some(reading) = knob::parse(key.file, key.device, text) else {
            let start: String = text.chars().take(60).collect();
            self.refused(key, &Asked::Inspect, format!("it reads {start:?}, which Minerva does not understand"));
            return None;
        };
        let setting = reading.setting.clone();
        match asked {
            Asked::Inspect => self.inspected(key, reading),
            Asked::Write { setting, .. } => self.written(key, &setting, reading),
            Asked::Undo => self.undone(key, reading),
        }
        Some((key, setting))
    }

    fn inspected(&mut self, key: KnobKey, reading: Reading) {
        let Some(knob) = self.knobs.get_mut(&key) else { return };
        let found = reading.setting.clone();
        let asked = knob.current.replace(found.clone()).filter(|asked| knob.held_since.is_some() && *asked != found);
        knob.original.get_or_insert_with(|| reading.clone());
        if let Some(asked) = asked {
            self.overwritten(key, &asked, reading);
        }
        self.advance_read(key);
    }

    fn written(&mut self, key: KnobKey, asked: &Setting, reading: Reading) {
        let Some(knob) = self.knobs.get_mut(&key) else { return };
        let found = reading.setting;
        knob.current = Some(found.clone());
        if found == *asked {
            knob.refusals = 0;
            knob.told.clear();
            return self.advance_read(key);
        }
        let detail =
            format!("Minerva wrote '{}' and '{}' stands there", asked.render(key.device), found.render(key.device));
        self.tell(key, FindingKind::ReadBackDiffers, detail);
        self.retry_later(key);
    }

    fn undone(&mut self, key: KnobKey, reading: Reading) {
        let Some(knob) = self.knobs.get_mut(&key) else { return };
        knob.held_since = None;
        knob.current = Some(reading.setting.clone());
        let original = knob.original.replace(reading.clone());
        self.held.remove(&key);
        if let Some(original) = original.filter(|original| original.setting != reading.setting) {
            let (wanted, stands) = (original.undo, reading.setting.render(key.device));
            self.tell(
                key,
                FindingKind::ReadBackDiffers,
                format!("'{wanted}' was to undo it and '{stands}' stands there"),
            );
        }
        self.advance(key);
    }

    fn refused(&mut self, key: KnobKey, asked: &Asked, detail: String) {
        let kind = match asked {
            Asked::Inspect => FindingKind::Unreadable,
            Asked::Write { .. } | Asked::Undo => FindingKind::WriteRefused,
        };
        self.not_done(key, asked);
        // What cannot be undone because it was lost with the elevator is no news.
        if !(self.is_suspended(key) && *asked == Asked::Undo) {
            self.tell(key, kind, detail);
        }
        self.retry_later(key);
    }

    /// After a first write that was not done nothing of ours stands there, and what does is read again before the next try.
    fn not_done(&mut self, key: KnobKey, asked: &Asked) {
        let Asked::Write { first: true, .. } = asked else { return };
        let Some(knob) = self.knobs.get_mut(&key) else { return };
        knob.held_since = None;
        knob.current = None;
        knob.original = None;
        self.held.remove(&key);
    }

    /// Says a trouble of a knob once.
    fn tell(&mut self, key: KnobKey, kind: FindingKind, detail: String) {
        let (Some(knob), Some(owner)) = (self.knobs.get_mut(&key), self.owners.get(&key.holder)) else { return };
        if knob.told != detail {
            let message =
                format!("{}: {detail}. Minerva tries again, at growing distances.", fights::knob_name(key, owner));
            knob.told = detail;
            self.effects.push_back(Effect::Found(fights::finding(kind, key, message)));
        }
    }

    fn retry_later(&mut self, key: KnobKey) {
        let Some(knob) = self.knobs.get_mut(&key) else { return };
        knob.refusals += 1;
        let slices = 2_u64.saturating_pow(knob.refusals).min(RETRY_SLICES_MAX);
        self.retry_after(key, slices);
    }

    fn retry_after(&mut self, key: KnobKey, slices: u64) {
        let Some(knob) = self.knobs.get_mut(&key) else { return };
        let at = self.slice + slices;
        if let Some(earlier) = knob.retry_at.replace(at) {
            self.retries.remove(&(earlier, key));
        }
        self.retries.insert((at, key));
    }
}
