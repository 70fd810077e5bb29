//! What somebody else set in a knob, and what becomes of what is Minerva's there.

use super::{Ledger, target_of};
use crate::fights::{self, Reaction};
use crate::knob::KnobKey;
use crate::setting::{Reading, Setting};
use minerva_model::{Effect, KnobRelease, KnobWatch};
use std::collections::BTreeSet;

impl Ledger {
    /// A held knob was found to hold something else than was asked.
    pub(super) fn overwritten(&mut self, key: KnobKey, asked: &Setting, found: Reading) {
        let Some(knob) = self.knobs.get_mut(&key) else { return };
        let setting = found.setting.clone();
        knob.gives_up |= knob.fights.lost_once_more(self.slice, self.rules);
        let keeps = self.rules.keeps_limits_of_others && knob.take_limit_of_others(asked, key.device);
        let reaction = match keeps {
            // Of a limit only what others set is left to them: a way that is Minerva's still goes first.
            true if knob.gives_up => Reaction::GivesUp,
            true if knob.has_limit_of_others() => Reaction::StaysWithin,
            false if knob.gives_up => {
                knob.leave(found);
                Reaction::GivesUp
            }
            _ => Reaction::SetsAgain,
        };
        let Some(owner) = self.owners.get(&key.holder) else { return };
        self.effects.push_back(Effect::Found(fights::overwritten(key, owner, asked, &setting, reaction)));
        if reaction == Reaction::SetsAgain && !keeps {
            self.push_watch(key);
        }
    }

    /// What was journalled of a knob undoes no more what others set there: it is forgotten, and the next write is journalled anew.
    pub(super) fn let_go(&mut self, key: KnobKey) {
        let Some(knob) = self.knobs.get_mut(&key).filter(|knob| knob.is_to_be_let_go()) else { return };
        knob.lets_go = false;
        knob.held_since = None;
        // One of a holder that is to be forgotten is not wished for again.
        knob.given_up = std::mem::take(&mut knob.gives_up) && !self.retired.contains(&key.holder);
        self.held.remove(&key);
        self.push_let_go(key);
    }

    pub(super) fn push_let_go(&mut self, key: KnobKey) {
        let Some(owner) = self.owners.get(&key.holder) else { return };
        let (target, file, device) = (target_of(key, owner), key.file, key.device);
        self.effects.push_back(Effect::LetGo(KnobRelease { target, file, device }));
    }

    /// Whoever writes a held knob that others have written is to be named. Who is let go of is watched no more.
    pub(super) fn push_watch(&mut self, key: KnobKey) {
        let Some(owner) = self.owners.get(&key.holder) else { return };
        let (target, file, device) = (target_of(key, owner), key.file, key.device);
        self.effects.push_back(Effect::Watch(KnobWatch { target, file, device }));
    }

    /// Knobs in which a limit of somebody else lay below what was wished, each once: it may have been taken away since, so they are to be
    /// wished for again.
    pub(crate) fn take_limited(&mut self) -> BTreeSet<KnobKey> {
        std::mem::take(&mut self.limited)
    }
}
