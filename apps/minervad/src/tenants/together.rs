//! Requests that wait at once, carried out together: the knobs that they move are journalled with one sync and written once,
//! and the store is given what they change in one piece.
//!
//! A knob may wait only where the tenant hears of the change later than that, by the store: of levels that are set and
//! scheduled. Whatever is answered at once has its knobs written before.

use minerva_model::Effect;

/// What waits for the end of the requests that are carried out together.
#[derive(Debug, Default)]
pub(crate) struct Together {
    /// Some are under way: what is to be committed waits for their end.
    pub(crate) is_under_way: bool,
    /// And so do knobs.
    pub(crate) defers_knobs: bool,
    pub(crate) knobs: Vec<Effect>,
}

impl Together {
    pub(crate) const fn is_under_way(&self) -> bool {
        self.is_under_way
    }

    /// Takes an effect that can wait; hands back one that cannot.
    pub(crate) fn defer(&mut self, effect: Effect) -> Option<Effect> {
        match effect {
            Effect::Inspect(_) | Effect::Write(_) if self.defers_knobs => {
                self.knobs.push(effect);
                None
            }
            effect => Some(effect),
        }
    }
}
