//! How far others are held below what a disk delivers, so that who waits behind their queue does not.
//!
//! A tenant that gets less than half of what its share says is *due*; who gets more than its share says is *over*. When somebody is due, those that
//! are over are held to seven eighths of what the disk delivered before, for two slices; where the due get a little by that but not enough to tell,
//! to three quarters for two more. Where the due get half as much again, they were waiting: then those that are over get a twentieth more each slice
//! while the due lose nothing by it, and a tenth less when they do in two slices (additive increase, multiplicative decrease: Chiu and Jain
//! 1989). What hurt is remembered, and not tried again for some slices. A single slice in which the due have less is as likely the one in which
//! they end, and takes nothing from anybody. Where the due get nothing by a trial, they want no more than they have; all is as before, and it is
//! tried again after a pause that doubles each time. Others that become due shorten it, but not below [`PAUSE_OTHERS`], so that tenants that come
//! and go all the time cost at most a part of the disk.

use minerva_model::TenantId;
use serde::{Deserialize, Serialize};

/// Who gets less than this part of what its share says is due.
const DUE: f64 = 0.5;
/// What those that are over are held to in a trial: enough less for their queue to drain within it.
const FIRST: f64 = 0.875;
/// And where that showed something, and not enough.
const SECOND: f64 = 0.75;
/// Slices of a trial: in the first one what was queued before is still served.
const TRIAL_SLICES: u32 = 2;
/// The due get so much more by a trial, or it was in vain; by so much more it is worth a second one.
const GAIN: f64 = 1.5;
const HINT: f64 = 1.2;
/// Few requests come now in one slice and now in the next, so a difference counts beyond so many standard deviations of their number,
/// and one request.
const DEVIATIONS: f64 = 2.0;
/// While the due keep this part of the best they had, others get [`MORE`] in addition; else [`LESS`] of it.
const KEPT: f64 = 0.85;
const MORE: f64 = 0.05;
const LESS: f64 = 0.9;
/// Slices in which what hurt is not tried again.
const SHY_SLICES: u32 = 8;
/// The least and the most that those that are over are held to.
const RANGE: (f64, f64) = (0.3, 0.97);
/// A slice that delivered less than this part of what the disk can says little of the disk.
const DELIVERED_LEAST: f64 = 0.8;
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
    /// In the slice.
    pub(crate) requests: f64,
}

/// What the due had in a slice, together.
#[derive(Clone, Copy, Debug)]
struct Had {
    bytes_per_second: f64,
    requests: f64,
}

impl Had {
    fn of(due: &[&Claim]) -> Self {
        let sum = |of: fn(&Claim) -> f64| due.iter().map(|one| of(one)).sum();
        Self { bytes_per_second: sum(|one| one.bytes_per_second), requests: sum(|one| one.requests) }
    }

    /// It is more than that by this factor, and by more than chance.
    fn exceeds(self, factor: f64, bytes_per_second: f64) -> bool {
        self.bytes_per_second >= factor * bytes_per_second && self.differs(bytes_per_second)
    }

    /// It is less than this part of that, and by more than chance.
    fn falls_short(self, part: f64, bytes_per_second: f64) -> bool {
        self.bytes_per_second < part * bytes_per_second && self.differs(bytes_per_second)
    }

    fn differs(self, bytes_per_second: f64) -> bool {
        let others = self.requests * bytes_per_second / self.bytes_per_second.max(1.0);
        (self.requests - others).abs() > DEVIATIONS * self.requests.min(others).sqrt() + 1.0
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
enum State {
    /// Nobody is held.
    #[default]
    Rest,
    /// Those that are over are held to a part of what was delivered, to see whether that helps the due, who had `rate`.
    Trial {
        slices: u32,
        rate: f64,
        #[serde(default = "second")]
        part: f64,
    },
    /// It helps: they are held to a part of what was delivered, and the best that the due had.
    Held {
        part: f64,
        best: f64,
        /// The due had less in the last slice.
        #[serde(default)]
        lost: bool,
        /// The part that hurt the due, and for how many slices it is not tried again.
        #[serde(default)]
        hurt: Option<(f64, u32)>,
    },
}

/// Of an older state.
const fn second() -> f64 {
    SECOND
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
    /// What all had in the last slices in which nobody was held, a second.
    #[serde(default)]
    delivered: f64,
    /// Who was due in the last slice, in the order of the claims.
    #[serde(default)]
    due: Vec<TenantId>,
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
        if self.state == State::Rest {
            let total: f64 = claims.iter().map(|one| one.bytes_per_second).sum();
            let total = total.clamp(DELIVERED_LEAST * capacity, capacity);
            self.delivered = if self.delivered > 0.0 { (self.delivered + total) / 2.0 } else { total };
        }
        self.state = match due.is_empty() || over <= 0.0 {
            true => State::Rest,
            false => self.next(&due),
        };
        self.due = due.iter().map(|one| one.tenant).collect();
        let (State::Trial { part, .. } | State::Held { part, .. }) = self.state else { return Vec::new() };
        let delivered = if self.delivered > 0.0 { self.delivered } else { capacity };
        let held = |one: &Claim| is_over(one).then(|| (part * delivered * one.bytes_per_second / over).max(fair(one)));
        claims.iter().map(held).collect()
    }

    fn next(&mut self, due: &[&Claim]) -> State {
        let had = Had::of(due);
        let rate = had.bytes_per_second;
        match self.state {
            State::Rest => {
                let are_others = due.iter().any(|one| !self.vain.contains(&one.tenant));
                let pause = if are_others { self.pause.min(PAUSE_OTHERS) } else { self.pause };
                if self.rested > pause { State::Trial { slices: 0, rate, part: FIRST } } else { State::Rest }
            }
            State::Trial { rate: before, part, .. } if had.exceeds(GAIN, before) => {
                self.pause = 0;
                State::Held { part, best: rate, lost: false, hurt: None }
            }
            State::Trial { slices, rate: before, part } if slices + 1 < TRIAL_SLICES => {
                State::Trial { slices: slices + 1, rate: before, part }
            }
            State::Trial { rate: before, part, .. } if part > SECOND && had.exceeds(HINT, before) => {
                State::Trial { slices: 0, rate: before, part: SECOND }
            }
            State::Trial { .. } => {
                self.pause = (self.pause * 2).clamp(PAUSE.0, PAUSE.1);
                self.rested = 0;
                self.vain.retain(|tenant| due.iter().all(|one| one.tenant != *tenant));
                self.vain.extend(due.iter().map(|one| one.tenant));
                self.vain.drain(..self.vain.len().saturating_sub(VAIN_MAX));
                State::Rest
            }
            // With others the best is another.
            State::Held { part, hurt, .. } if due.iter().map(|one| one.tenant).ne(self.due.iter().copied()) => {
                State::Held { part, best: rate, lost: false, hurt }
            }
            State::Held { part, best, lost, hurt } => held(part, best, lost, hurt, had),
        }
    }
}

/// The next state where the due are the same as before.
fn held(part: f64, best: f64, lost: bool, hurt: Option<(f64, u32)>, had: Had) -> State {
    let hurt = hurt.filter(|(_, slices)| *slices > 0).map(|(part, slices)| (part, slices - 1));
    if !had.falls_short(KEPT, best) {
        let most = hurt.map_or(RANGE.1, |(hurt, _)| (hurt - MORE).min(RANGE.1));
        let part = part.max((part + MORE).min(most));
        return State::Held { part, best: best.max(had.bytes_per_second), lost: false, hurt };
    }
    match lost {
        false => State::Held { part, best, lost: true, hurt },
        // What they want may have become less: the best is forgotten slowly.
        true => {
            let hurt = Some((part, SHY_SLICES));
            State::Held { part: (part * LESS).max(RANGE.0), best: best * KEPT, lost: false, hurt }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Claim, Room};
    use minerva_model::TenantId;

    const CAPACITY: f64 = 16e6;

    fn reader(tenant: u64, share: f64, bytes_per_second: f64) -> Claim {
        Claim { tenant: TenantId(tenant), share, bytes_per_second, requests: bytes_per_second / 8e3 }
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
        let parts = parts(60, 60e3, 700e3);
        // Held to an eighth less at first, then near what hurts, which is above nine tenths here.
        assert!(parts[..2].iter().all(|part| (0.85..0.9).contains(part)), "{parts:?}");
        assert!(parts[2..].iter().all(|part| (0.8..0.98).contains(part)), "{parts:?}");
        let mean = parts.iter().sum::<f64>() / parts.len() as f64;
        assert!(mean > 0.87, "{mean}");
        let hurt = parts.iter().filter(|part| **part > 0.9).count();
        assert!(hurt <= parts.len() / 3, "what hurts is tried seldom: {parts:?}");
    }

    #[test]
    fn that_few_requests_come_unevenly_is_no_gain_and_no_loss() {
        let mut room = Room::default();
        let mut held = 0;
        for slice in 0..200 {
            // Five in two seconds.
            let requests = if slice % 2 == 0 { 2.0 } else { 3.0 };
            let sparing = reader(2, 100.0, 8e3 * requests);
            held += usize::from(!room.slice(CAPACITY, &[reader(1, 5.0, 15e6), sparing]).is_empty());
        }
        assert!(held <= 8, "{held} of 200 slices");
    }

    #[test]
    fn where_an_eighth_shows_little_a_quarter_is_tried() {
        let (mut room, mut most, mut parts) = (Room::default(), 1.0, Vec::new());
        for _ in 0..6 {
            // On a disk that seeks a random reader needs more of its time.
            let rate = match most {
                most if most > 0.9 => 0.8e6,
                most if most > 0.8 => 1.04e6,
                _ => 1.6e6,
            };
            let held = room.slice(CAPACITY, &[reader(1, 5.0, most * CAPACITY - rate), reader(2, 100.0, rate)]);
            most = held.first().copied().flatten().map_or(1.0, |most| most / CAPACITY);
            parts.push((most * 20.0).round() / 20.0);
        }
        assert_eq!(parts, [0.9, 0.9, 0.75, 0.75, 0.8, 0.85]);
    }

    #[test]
    fn one_slice_with_less_takes_nothing_and_who_ends_gives_back_at_once() {
        let mut room = Room::default();
        let mut play = |waits: &[f64]| {
            let mut claims = vec![reader(1, 5.0, 13e6)];
            claims.extend(waits.iter().zip(2..).map(|(rate, tenant)| reader(tenant, 100.0, *rate)));
            room.slice(CAPACITY, &claims).first().copied().flatten()
        };
        play(&[60e3, 60e3]);
        let held = play(&[700e3, 700e3]);
        assert!(held.is_some());
        // One of two ends within the slice, and is gone in the next.
        assert_eq!([play(&[700e3, 100e3]), play(&[700e3])], [held, held]);
        assert_eq!(play(&[]), None, "nobody is left to make room for");
    }

    #[test]
    fn who_wants_no_more_costs_others_little() {
        let parts = parts(200, 10e3, 10e3);
        let held = parts.iter().filter(|part| **part < 1.0).count();
        // Trials of two slices at once, and after pauses of 16, 32 and 64.
        assert!((2..=8).contains(&held), "{held} of 200: {parts:?}");
        assert!(parts.iter().all(|part| *part > 0.85), "and of an eighth of the disk: {parts:?}");
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
