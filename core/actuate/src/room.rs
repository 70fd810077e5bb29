//! How far others are held below what a disk delivers, so that who waits behind their queue does not.
//!
//! A tenant that gets less than half of what its share says is *due*; who gets more than its share says is *over*. When somebody is due, those that
//! are over are held to three quarters of the capacity for two slices. Where the due get half as much again by that, they were waiting: then those that are
//! over get a twentieth more each slice while the due lose nothing by it, and a fifth less when they do (additive increase, multiplicative
//! decrease: Chiu and Jain 1989). Where the due get nothing by it, they want no more than they have; all is as before, and it is tried again after
//! a pause that doubles each time. Others that become due shorten it, but not below [`PAUSE_OTHERS`], so that tenants that come and go all the
//! time cost at most a sixteenth of the disk.

use minerva_model::TenantId;
use serde::{Deserialize, Serialize};

/// Who gets less than this part of what its share says is due.
const DUE: f64 = 0.5;
/// What those that are over are held to at first, of the capacity: enough less for their queue to drain within the trial.
const FIRST: f64 = 0.75;
/// Slices of a trial: in the first one what was queued before is still served.
const TRIAL_SLICES: u32 = 2;
/// The due get so much more by a trial, or it was in vain.
const GAIN: f64 = 1.5;
/// While the due keep this part of the best they had, others get [`MORE`] in addition; else [`LESS`] of it.
const KEPT: f64 = 0.85;
const MORE: f64 = 0.05;
const LESS: f64 = 0.8;
/// The least and the most that those that are over are held to.
const RANGE: (f64, f64) = (0.3, 0.95);
/// Slices until the next trial after one in vain, at first and at most.
const PAUSE: (u32, u32) = (16, 256);
/// The same where somebody is due who was not in a trial in vain.
const PAUSE_OTHERS: u32 = 6;
/// So many of those are remembered.
const VAIN_MAX: usize = 64;

/// What a tenant did in a slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub(crate) tenant: TenantId,
    pub(crate) share: f64,
    pub(crate) bytes_per_second: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
enum State {
    /// Nobody is held.
    #[default]
    Rest,
    /// Those that are over are held, to see whether that helps the due, who had `rate`.
    Trial { slices: u32, rate: f64 },
    /// It helps: they are held to a part of the capacity, and the best that the due had.
    Held { part: f64, best: f64 },
}

/// One disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Room {
    state: State,
    /// Slices since the last trial in vain, and until which no other begins.
    rested: u32,
    pause: u32,
    /// Who was due in trials in vain, the latest last.
    vain: Vec<TenantId>,
}

impl Room {
    /// A slice in which the tenants of a disk of this capacity did as `claims` says. The most that each may have, where it is held.
    pub(crate) fn slice(&mut self, capacity: f64, claims: &[Claim]) -> Vec<Option<f64>> {
        let shares: f64 = claims.iter().map(|one| one.share).sum();
        let fair = |one: &Claim| capacity * one.share / shares;
        let is_over = |one: &Claim| one.bytes_per_second > fair(one);
        let over: f64 = claims.iter().filter(|one| is_over(one)).map(|one| one.bytes_per_second).sum();
        let due: Vec<&Claim> = claims.iter().filter(|one| one.bytes_per_second < DUE * fair(one)).collect();
        self.rested = self.rested.saturating_add(1);
        self.state = match due.is_empty() || over <= 0.0 {
            true => State::Rest,
            false => self.next(&due),
        };
        let part = match self.state {
            State::Rest => return Vec::new(),
            State::Trial { .. } => FIRST,
            State::Held { part, .. } => part,
        };
        let held = |one: &Claim| is_over(one).then(|| (part * capacity * one.bytes_per_second / over).max(fair(one)));
        claims.iter().map(held).collect()
    }

    fn next(&mut self, due: &[&Claim]) -> State {
        let rate: f64 = due.iter().map(|one| one.bytes_per_second).sum();
        match self.state {
            State::Rest => {
                let are_others = due.iter().any(|one| !self.vain.contains(&one.tenant));
                let pause = if are_others { self.pause.min(PAUSE_OTHERS) } else { self.pause };
                if self.rested > pause { State::Trial { slices: 0, rate } } else { State::Rest }
            }
            State::Trial { slices, rate: before } if slices + 1 < TRIAL_SLICES => {
                State::Trial { slices: slices + 1, rate: before }
            }
            State::Trial { rate: before, .. } if rate >= GAIN * before => {
                self.pause = 0;
                State::Held { part: FIRST, best: rate }
            }
            State::Trial { .. } => {
                self.pause = (self.pause * 2).clamp(PAUSE.0, PAUSE.1);
                self.rested = 0;
                self.vain.retain(|tenant| due.iter().all(|one| one.tenant != *tenant));
                self.vain.extend(due.iter().map(|one| one.tenant));
                self.vain.drain(..self.vain.len().saturating_sub(VAIN_MAX));
                State::Rest
            }
            State::Held { part, best } if rate >= KEPT * best => {
                State::Held { part: (part + MORE).min(RANGE.1), best: best.max(rate) }
            }
            // What they want may have become less: the best is forgotten slowly.
            State::Held { part, best } => State::Held { part: (part * LESS).max(RANGE.0), best: best * KEPT },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Claim, Room};
    use minerva_model::TenantId;

    const CAPACITY: f64 = 16e6;

    fn reader(tenant: u64, share: f64, bytes_per_second: f64) -> Claim {
        Claim { tenant: TenantId(tenant), share, bytes_per_second }
    }

    /// Slices of a scanner of share 5 beside a reader of share 100, who gets `waits` while the scanner has more than nine tenths and
    /// `free` otherwise. What the scanner had in each slice, of the capacity.
    fn parts(slices: usize, waits: f64, free: f64) -> Vec<f64> {
        let (mut room, mut most) = (Room::default(), 1.0);
        (0..slices)
            .map(|_| {
                let rate = if most > 0.9 { waits } else { free };
                let uses = [reader(1, 5.0, most * (CAPACITY - rate)), reader(2, 100.0, rate)];
                let held = room.slice(CAPACITY, &uses);
                most = held.first().copied().flatten().map_or(1.0, |most| most / CAPACITY);
                assert!(held.get(1).copied().flatten().is_none(), "who is due is not held");
                most
            })
            .collect()
    }

    #[test]
    fn who_waits_behind_a_queue_gets_room_and_the_disk_stays_in_use() {
        let parts = parts(40, 60e3, 700e3);
        assert!(parts[..4].iter().all(|part| (0.74..0.81).contains(part)), "{parts:?}");
        // From then on between a fifth below what hurts and that.
        assert!(parts[12..].iter().all(|part| (0.7..0.96).contains(part)), "{parts:?}");
        let mean = parts[12..].iter().sum::<f64>() / parts[12..].len() as f64;
        assert!(mean > 0.8, "{mean}");
    }

    #[test]
    fn who_wants_no_more_costs_others_little() {
        let parts = parts(200, 10e3, 10e3);
        let held = parts.iter().filter(|part| **part < 1.0).count();
        // Trials of two slices at once, and after pauses of 16, 32 and 64.
        assert!((2..=8).contains(&held), "{held} of 200: {parts:?}");
    }

    #[test]
    fn tenants_that_come_and_go_cost_a_part_of_the_disk() {
        let mut room = Room::default();
        let mut held = 0;
        for slice in 0..400 {
            let claims = [reader(1, 5.0, 15e6), reader(2 + slice, 100.0, 10e3)];
            held += usize::from(!room.slice(CAPACITY, &claims).is_empty());
        }
        assert!(held <= 400 / 4, "{held} of 400 slices");
    }

    #[test]
    fn nobody_is_held_while_nobody_is_due() {
        let mut room = Room::default();
        assert_eq!(room.slice(CAPACITY, &[reader(1, 100.0, 8e6), reader(2, 100.0, 7e6)]), Vec::new());
        assert_eq!(room.slice(CAPACITY, &[reader(1, 100.0, 1e6), reader(2, 100.0, 1e6)]), Vec::new());
    }
}
