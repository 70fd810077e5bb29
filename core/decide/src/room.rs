//! Room below the others for tenants that step back, or that wait for others by what is foreseen. Fennel puts heavy tenants at a
//! share of 5, and below it there is little: a tenant at a twentieth of its share would still have a fifth of what a heavy one has.
//! So while somebody steps back or shares are dealt anew, and everyone else on the disk is heavy, all are raised alike, as far as
//! the highest of them reaches the neutral share. Tenants
//! that Minerva does not steer stand at the neutral share, so nobody overtakes them.

use crate::compose::{Pair, SharePolicy};
use minerva_model::{PolicyName, Reason, Share};
use serde::{Deserialize, Serialize};

/// The room as a factor on everyone who is not idle.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Rule;

impl SharePolicy for Rule {
    fn name(&self) -> PolicyName {
        PolicyName::GUARD
    }

    fn factor(&self, pair: &Pair<'_>, _: f64) -> Option<f64> {
        (pair.room > 1 && !pair.stance.is_idle()).then_some(f64::from(pair.room))
    }

    fn reason(&self, pair: &Pair<'_>, _: f64) -> Reason {
        Reason::Room { times: pair.room }
    }
}

/// Slices in which more room was wanted before all are raised again: each change is a write for everyone on the disk.
const SLICES_BEFORE_RAISING: u32 = 5;
/// Slices after the last use of the disk by somebody who steps back, or the last dealing, until the room is given up.
pub(crate) const SLICES_LINGERING: u64 = 10;

/// One disk's room.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Room {
    times: u32,
    more_would_do: u32,
}

impl Room {
    /// Everyone on the disk is raised so many times: a power of two.
    pub(crate) fn times(self) -> u32 {
        self.times.max(1)
    }

    /// One slice: the highest share on the disk of those who do not step back, if somebody does.
    pub(crate) fn update(&mut self, highest: Option<Share>) {
        let Some(highest) = highest else {
            *self = Self::default();
            return;
        };
        let wanted = 1 << (Share::NEUTRAL.get() / highest.get()).max(1).ilog2();
        if wanted <= self.times() {
            self.more_would_do = 0;
        } else {
            self.more_would_do += 1;
        }
        if self.times == 0 || wanted < self.times || self.more_would_do >= SLICES_BEFORE_RAISING {
            *self = Self { times: wanted, more_would_do: 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Room;
    use minerva_model::Share;

    #[test]
    fn room_is_made_at_once_given_up_at_once_and_made_again_late() {
        let mut room = Room::default();
        let mut seen = Vec::new();
        for highest in [2, 2, 400, 2, 2, 2, 2, 2, 3, 2] {
            room.update(Some(Share::new(highest)));
            seen.push(room.times());
        }
        assert_eq!(seen, [32, 32, 1, 1, 1, 1, 1, 32, 32, 32]);
        room.update(None);
        assert_eq!(room.times(), 1);
    }
}
