//! Whose turn it is of the disks that lie on one disk below them: work on two volumes of a disk would move its head to and fro, and each would
//! take the other's requests for those of somebody who came back.

use minerva_model::{DeviceId, Nanos};
use std::collections::{BTreeMap, BTreeSet};

/// How long one has the turn while another waits for it.
const TURN: Nanos = Nanos::from_secs(10);
/// The same, of work that loses what it has done since it last got on: half of a chunk of a btrfs takes a slow disk longer than a turn.
const TURN_MAX: Nanos = Nanos::from_secs(180);

/// A disk with work that may run.
#[derive(Debug)]
pub(crate) struct Wanting {
    /// The disks at its bottom.
    pub(crate) bottom: BTreeSet<DeviceId>,
    /// The work is the operator's and does not hang: it goes before what tenants owe, and before what hangs.
    pub(crate) goes_first: bool,
    /// Where the work is, if it runs and begins there again when it is stopped.
    pub(crate) begins_again_at: Option<u64>,
}

/// The disks with work that have their turn, and those that had it. Disks that share none below have it side by side.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    having: BTreeMap<DeviceId, Turn>,
    /// When it ended.
    had: BTreeMap<DeviceId, Nanos>,
}

#[derive(Clone, Debug)]
struct Turn {
    since: Nanos,
    /// The first of [`Wanting::begins_again_at`] in it: most work runs only once there is a gap.
    began_at: Option<u64>,
    /// Those that kept theirs when this one began: for who waits for it and for them it ends as soon as one of theirs does.
    ends_with: BTreeSet<DeviceId>,
}

impl Turn {
    /// It may end for another one.
    fn may_end(&self, now: Nanos, wanting: &Wanting) -> bool {
        now.since(self.since) >= TURN && !self.is_kept(now, wanting)
    }

    /// It is kept for longer than others, as its work would begin again.
    fn is_kept(&self, now: Nanos, wanting: &Wanting) -> bool {
        let begins_again = wanting.begins_again_at.is_some_and(|at| self.began_at == Some(at));
        begins_again && now.since(self.since) < TURN_MAX
    }
}

/// A disk that waits for turns that end for it.
#[derive(Debug)]
struct Refused {
    device: DeviceId,
    /// Since when the last of those is.
    since: Nanos,
    /// Those of them that are kept: it waits for these all the same, whoever has the rest of its disks meanwhile.
    kept: BTreeSet<DeviceId>,
}

impl Turns {
    /// Takes all disks with work that may run, and gives turns: to work that goes first, then to who has waited longest. Other work gives its
    /// turn up at once where such work waits, and ends none of it: whatever a tenant says that it owes costs the operator's nothing.
    pub(crate) fn give(&mut self, now: Nanos, wanting: &BTreeMap<DeviceId, Wanting>) {
        let meets =
            |one: &DeviceId, other: &DeviceId| one != other && !wanting[one].bottom.is_disjoint(&wanting[other].bottom);
        let goes_before = |one: &DeviceId, other: &DeviceId| wanting[one].goes_first && !wanting[other].goes_first;
        self.had.retain(|device, _| wanting.contains_key(device));
        self.having.retain(|device, _| wanting.contains_key(device));
        self.having
            .iter_mut()
            .for_each(|(device, turn)| turn.began_at = turn.began_at.or(wanting[device].begins_again_at));
        self.end(now, wanting, &meets, &goes_before);
        let mut next: Vec<DeviceId> =
            wanting.keys().filter(|device| !self.having.contains_key(device)).copied().collect();
        next.sort_by_key(|device| (!wanting[device].goes_first, self.had.get(device).copied(), *device));
        let mut refused: Vec<Refused> = Vec::new();
        for device in next {
            let met = || self.having.iter().filter(|(other, _)| meets(&device, other));
            if let Some(since) = met().map(|(_, turn)| turn.since).max() {
                if !met().any(|(other, _)| goes_before(other, &device)) {
                    let kept = met().filter(|(other, turn)| turn.is_kept(now, &wanting[*other]));
                    let kept = kept.map(|(other, _)| *other).collect();
                    refused.push(Refused { device, since, kept });
                }
                continue;
            }
            // Its turn ends with those for which one before it waits: else that would never find all its disks free.
            let before = || refused.iter().filter(|other| meets(&device, &other.device));
            let ends_with: BTreeSet<DeviceId> = before().flat_map(|other| &other.kept).copied().collect();
            let since = before().filter(|other| other.kept.is_empty()).map(|other| other.since).min().unwrap_or(now);
            if now.since(since) < TURN {
                let began_at = wanting[&device].begins_again_at;
                self.having.insert(device, Turn { since, began_at, ends_with });
            } else {
                refused.push(Refused { device, since, kept: BTreeSet::new() });
            }
        }
    }

    /// Ends the turns that are over.
    fn end(
        &mut self,
        now: Nanos,
        wanting: &BTreeMap<DeviceId, Wanting>,
        meets: &impl Fn(&DeviceId, &DeviceId) -> bool,
        goes_before: &impl Fn(&DeviceId, &DeviceId) -> bool,
    ) {
        let waiting: Vec<DeviceId> =
            wanting.keys().filter(|device| !self.having.contains_key(device)).copied().collect();
        let is_over = |device: &DeviceId, turn: &Turn| {
            // What lies below one may change while it has its turn.
            let is_earlier = |(other, that): (&DeviceId, &Turn)| (that.since, other) < (turn.since, device);
            let meets_earlier = self.having.iter().any(|that| is_earlier(that) && meets(device, that.0));
            let mut waiting = waiting.iter().filter(|other| meets(device, other) && !goes_before(device, other));
            let may_end = turn.may_end(now, &wanting[device]);
            meets_earlier || waiting.any(|other| may_end || goes_before(other, device))
        };
        let mut over: BTreeSet<DeviceId> =
            self.having.iter().filter(|(device, turn)| is_over(device, turn)).map(|(device, _)| *device).collect();
        let ends_with_one = |device: &DeviceId, turn: &Turn| {
            let has_ended = turn.ends_with.iter().any(|other| over.contains(other) || !self.having.contains_key(other));
            has_ended && waiting.iter().any(|other| meets(device, other) && !goes_before(device, other))
        };
        let with_one = self.having.iter().filter(|(device, turn)| ends_with_one(device, turn));
        let with_one: Vec<DeviceId> = with_one.map(|(device, _)| *device).collect();
        over.extend(with_one);
        for device in over {
            self.having.remove(&device);
            self.had.insert(device, now);
        }
    }

    /// It has its turn.
    pub(crate) fn has(&self, device: DeviceId) -> bool {
        self.having.contains_key(&device)
    }
}

#[cfg(test)]
mod tests {
    use super::{TURN, TURN_MAX, Turns, Wanting};
    use minerva_model::{DeviceId, Nanos};
    use std::collections::BTreeMap;

    fn disk(minor: u32) -> DeviceId {
        DeviceId { major: 253, minor }
    }

    /// Who has the turn, of disks that lie on these.
    fn having(turns: &mut Turns, seconds: u64, wanting: &[(u32, &[u32])]) -> Vec<u32> {
        having_at(turns, seconds, wanting, None)
    }

    /// The same, where work on the first one would begin again somewhere.
    fn having_at(turns: &mut Turns, seconds: u64, wanting: &[(u32, &[u32])], at: Option<u64>) -> Vec<u32> {
        let wanted = |(of, on): &(u32, &[u32])| {
            let bottom = on.iter().map(|on| disk(*on)).collect();
            // What does not go first has numbers from 50.
            (disk(*of), Wanting { bottom, goes_first: *of < 50, begins_again_at: at.filter(|_| *of == 1) })
        };
        let wanting: BTreeMap<DeviceId, Wanting> = wanting.iter().map(wanted).collect();
        turns.give(Nanos::from_secs(seconds), &wanting);
        wanting.keys().filter(|device| turns.has(**device)).map(|device| device.minor).collect()
    }

    #[test]
    fn of_volumes_on_one_disk_one_has_its_turn_after_the_other_and_others_beside_them() {
        let mut turns = Turns::default();
        let all: [(u32, &[u32]); 4] = [(1, &[10]), (2, &[10, 11]), (3, &[11]), (4, &[12])];
        assert_eq!(having(&mut turns, 0, &all), [1, 3, 4]);
        assert_eq!(having(&mut turns, 9, &all), [1, 3, 4], "not before its turn is over");
        assert_eq!(TURN, Nanos::from_secs(10));
        assert_eq!(having(&mut turns, 10, &all), [2, 4]);
        assert_eq!(having(&mut turns, 20, &all), [1, 3, 4]);
        assert_eq!(having(&mut turns, 21, &all[1..]), [3, 4]);
        assert_eq!(having(&mut turns, 22, &all[1..2]), [2], "the other has nothing to do any more");
        assert_eq!(having(&mut turns, 99, &all[1..2]), [2], "nobody waits for it");
    }

    #[test]
    fn what_a_tenant_owes_takes_no_turn_from_the_operators_work() {
        let mut turns = Turns::default();
        let all: [(u32, &[u32]); 3] = [(1, &[10]), (50, &[10]), (51, &[10])];
        assert_eq!(having(&mut turns, 0, &all[1..]), [50]);
        assert_eq!(having(&mut turns, 1, &all), [1], "at once");
        assert_eq!(having(&mut turns, 99, &all), [1]);
        assert_eq!(having(&mut turns, 100, &all[1..]), [51], "who has waited longer");
        assert_eq!(having(&mut turns, 110, &all[1..]), [50]);
    }

    #[test]
    fn a_volume_that_grows_onto_the_disk_of_another_waits_for_that_ones_turn() {
        let mut turns = Turns::default();
        assert_eq!(having(&mut turns, 0, &[(1, &[10]), (2, &[11])]), [1, 2]);
        assert_eq!(having(&mut turns, 1, &[(1, &[10]), (2, &[10, 11])]), [1]);
        assert_eq!(having(&mut turns, 10, &[(1, &[10]), (2, &[10, 11])]), [2]);
    }

    #[test]
    fn one_that_shares_disks_with_two_others_has_its_turn_however_theirs_overlap() {
        let mut turns = Turns::default();
        let all: [(u32, &[u32]); 3] = [(1, &[10]), (2, &[10, 11]), (3, &[11])];
        assert_eq!(having(&mut turns, 0, &all[..1]), [1]);
        assert_eq!(having(&mut turns, 5, &[all[0], all[2]]), [1, 3]);
        let had: Vec<(u64, Vec<u32>)> = (7..40).map(|second| (second, having(&mut turns, second, &all))).collect();
        let of = |second: u64| had[second as usize - 7].1.clone();
        assert_eq!([7, 10, 14, 15, 24, 25].map(of), [vec![1, 3], vec![1, 3], vec![1, 3], vec![2], vec![2], vec![1, 3]]);
        assert_eq!(of(35), [2], "one after the other");
    }

    #[test]
    fn one_that_waits_for_the_operators_work_keeps_no_other_from_the_rest_of_its_disks() {
        let mut turns = Turns::default();
        let all: [(u32, &[u32]); 3] = [(1, &[10]), (50, &[10, 11]), (51, &[11])];
        for second in 0..40 {
            assert_eq!(having(&mut turns, second, &all), [1, 51]);
        }
        assert_eq!(having(&mut turns, 40, &all[1..]), [50]);
    }

    #[test]
    fn work_that_hangs_takes_turns_with_what_a_tenant_owes_and_gives_way_to_what_gets_on() {
        let mut turns = Turns::default();
        // The first is the operator's, and hangs by now.
        let all: [(u32, &[u32]); 3] = [(50, &[10]), (51, &[10]), (1, &[10])];
        assert_eq!(having(&mut turns, 0, &all[..1]), [50]);
        assert_eq!(having(&mut turns, 10, &all[..2]), [51]);
        assert_eq!(having(&mut turns, 20, &all[..2]), [50]);
        assert_eq!(having(&mut turns, 21, &all), [1]);
    }

    #[test]
    fn what_would_begin_again_keeps_its_turn_until_it_gets_on_or_for_three_minutes() {
        let all: [(u32, &[u32]); 2] = [(1, &[10]), (2, &[10])];
        for gets_on in [false, true] {
            let mut turns = Turns::default();
            let mut at = |second: u64| {
                let place = if gets_on && second >= 25 { 6 } else { 7 };
                having_at(&mut turns, second, &all, Some(place))
            };
            assert_eq!([0, 10, 24].map(&mut at), [[1]; 3]);
            assert_eq!(at(25), [if gets_on { 2 } else { 1 }]);
            assert_eq!(TURN_MAX, Nanos::from_secs(180));
            let outcome = [34, 35, 179, 180].map(&mut at);
            assert_eq!(outcome, if gets_on { [[2], [1], [1], [1]] } else { [[1], [1], [1], [2]] });
        }
    }

    /// What it read of its chunk is lost already.
    #[test]
    fn a_turn_is_kept_for_work_that_would_begin_again_only_while_that_runs() {
        let all: [(u32, &[u32]); 2] = [(1, &[10]), (2, &[10])];
        let mut turns = Turns::default();
        let mut at = |second, place| having_at(&mut turns, second, &all, place);
        assert_eq!(at(0, None), [1]);
        assert_eq!([(10, None), (20, None)].map(|(second, place)| at(second, place)), [[2], [1]], "there is no gap");
        let in_gap = [(25, Some(7)), (26, None), (28, Some(7)), (30, Some(7)), (90, Some(7))];
        assert_eq!(in_gap.map(|(second, place)| at(second, place)), [[1]; 5], "a pause within its time ends nothing");
        assert_eq!(at(91, None), [2], "it was stopped");
        assert_eq!([(92, Some(7)), (100, Some(7))].map(|(second, place)| at(second, place)), [[2]; 2]);
        assert_eq!(
            [(101, Some(7)), (280, Some(7)), (281, Some(7))].map(|(second, place)| at(second, place)),
            [[1], [1], [2]]
        );
    }

    #[test]
    fn while_one_keeps_its_turn_others_have_theirs_on_disks_that_only_who_waits_for_it_would_use_too() {
        let all: [(u32, &[u32]); 3] = [(1, &[10]), (2, &[10, 11]), (3, &[11])];
        for gets_on in [false, true] {
            let mut turns = Turns::default();
            let mut at = |second: u64| {
                let place = if gets_on && second >= 37 { 6 } else { 7 };
                having_at(&mut turns, second, &all, Some(place))
            };
            assert_eq!([0, 9, 10, 24, 36].map(&mut at), [[1, 3]; 5]);
            assert_eq!(at(37), if gets_on { vec![2] } else { vec![1, 3] }, "both end at once");
            assert_eq!([47, 179].map(&mut at), [[1, 3]; 2]);
            if !gets_on {
                assert_eq!([180, 189].map(&mut at), [[2]; 2]);
            }
        }
    }

    #[test]
    fn of_several_beside_one_that_keeps_its_turn_each_has_its_own() {
        let mut turns = Turns::default();
        let all: [(u32, &[u32]); 4] = [(1, &[10]), (2, &[10, 11]), (3, &[11]), (4, &[11])];
        let mut at = |second: u64| having_at(&mut turns, second, &all, Some(7));
        assert_eq!([0, 9, 10, 19, 20].map(&mut at), [[1, 3], [1, 3], [1, 4], [1, 4], [1, 3]]);
    }
}
