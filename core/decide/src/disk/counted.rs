//! What the room and the floor of a disk are made from: the shares of those who use it.
//!
//! Work that goes before others in a part of the time counts as one at the neutral share. For the rest of the time it is stopped, and
//! others share the disk among them. If it counted in full, its share alone would make a floor above what heavy tenants have, who would all
//! be put there, and whoever steps back with them.

use super::{Claim, Deciding, Disk};
use crate::compose::{self, Pair};
use crate::room::SLICES_LINGERING;
use minerva_model::Share;

impl Disk {
    pub(super) fn update_room(&mut self, by: Deciding<'_>) {
        let slice_number = by.slice_number;
        let recent = |claim: &&Claim| claim.active_slice > 0 && slice_number - claim.active_slice < SLICES_LINGERING;
        let steps_back = |claim: &Claim| !claim.excluded && claim.stance.level_percent().is_some();
        let is_dealt = self.dealt_slice > 0 && slice_number - self.dealt_slice < SLICES_LINGERING;
        if !is_dealt && !self.claims.iter().filter(recent).any(steps_back) {
            self.room.update(None);
            return;
        }
        let present = |claim: &&Claim| {
            let active =
                claim.active_slice == slice_number || claim.stance.operation.is_some() || claim.stance.boost.is_some();
            active && !steps_back(claim)
        };
        let shares = self.claims.iter().filter(present).map(|claim| match claim.excluded {
            true => Share::NEUTRAL,
            false => counted(by, Pair { room: 1, floor: None, ..self.pair(by, &self.usage(claim.key), claim) }),
        });
        self.room.update(Some(shares.max().unwrap_or(Share::NEUTRAL)));
    }

    pub(super) fn update_floor(&mut self, by: Deciding<'_>) {
        let Deciding { slice_number, floor_permille, .. } = by;
        let mut active = std::mem::take(&mut self.active);
        active.steered.clear();
        active.excluded = 0;
        for claim in self.claims.iter().filter(|claim| claim.active_slice == slice_number) {
            if claim.excluded {
                active.excluded += 1;
            } else if !claim.stance.is_idle() {
                let usage = self.usage(claim.key);
                active.steered.push(counted(by, Pair { floor: None, ..self.pair(by, &usage, claim) }).get());
            }
        }
        let ppm = active.guarantee_ppm(floor_permille);
        self.floor.update(active.level_needed(ppm), ppm);
        self.active = active;
    }
}

/// The share for which a pair counts.
fn counted(by: Deciding<'_>, pair: Pair<'_>) -> Share {
    let share = compose::share(by.policies, &pair);
    if by.stands_apart(pair.tenant) { share.min(Share::NEUTRAL) } else { share }
}
