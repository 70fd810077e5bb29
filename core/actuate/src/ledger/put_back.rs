//! All knobs, or all of a disk, put back as they were before Minerva.

use super::Ledger;
use crate::entry::{Asked, Knob};
use crate::knob::KnobKey;
use minerva_model::DeviceId;
use std::cmp::Reverse;

impl Ledger {
    /// The disk is gone: every knob for it is put back, in case that the kernel kept it, and forgotten, whatever comes of that.
    pub(crate) fn forget_device(&mut self, device: DeviceId) {
        for key in self.to_put_back(|key| key.device == device) {
            self.undo_now(key);
        }
        let keys: Vec<KnobKey> = self.knobs.keys().filter(|key| key.device == device).copied().collect();
        keys.into_iter().for_each(|key| self.remove(key));
        self.suspended.retain(|(suspended, _)| *suspended != device);
    }

    /// Puts everything back, newest first and disks last, without waiting for answers under way. A cap is read before: somebody else may have
    /// set a limit there since it was last read, which is then what stays.
    pub(crate) fn release_all(&mut self) {
        for key in self.to_put_back(|_| true) {
            let can_wait = |knob: &Knob| knob.holds_limit() && knob.request.is_none() && knob.retry_at.is_none();
            if self.rules.keeps_limits_of_others && self.knobs.get(&key).is_some_and(can_wait) {
                self.release(key);
            } else {
                self.undo_now(key);
            }
        }
    }

    /// Puts everything back and accepts no further wish.
    pub(crate) fn stop(&mut self) {
        self.stopped = true;
        self.release_all();
    }

    /// The newest first and disks last.
    fn to_put_back(&self, is_meant: impl Fn(&KnobKey) -> bool) -> Vec<KnobKey> {
        let meant = self.knobs.iter().filter(|(key, _)| is_meant(key));
        let mut keys: Vec<(bool, Reverse<Option<u64>>, KnobKey)> =
            meant.map(|(key, knob)| (key.is_of_disk(), Reverse(knob.held_since), *key)).collect();
        keys.sort_unstable();
        keys.into_iter().map(|(.., key)| key).collect()
    }

    fn undo_now(&mut self, key: KnobKey) {
        let Some(knob) = self.knobs.get_mut(&key) else { return };
        if knob.held_since.is_none() {
            return self.remove(key);
        }
        knob.wish = None;
        let under_way = matches!(knob.request, Some((_, Asked::Undo)));
        // At the end even an undo under way is repeated, as nothing would be left to try again if it were refused.
        if knob.given_up || (under_way && !self.stopped) {
            return;
        }
        if let Some((id, _)) = knob.request.take() {
            self.requests.remove(&id);
        }
        let lets_go = std::mem::take(&mut knob.lets_go);
        self.ask(key, Asked::Undo);
        if lets_go {
            self.push_let_go(key);
        }
    }
}
