//! Disks with work that may run, second by second.

use super::{BeginsAgain, TURN, TURN_IN_VAIN, TURN_LIMITED_MAX, TURN_MAX, Turns, Wanting};
use minerva_model::{DeviceId, Nanos};
use std::collections::BTreeMap;

fn disk(minor: u32) -> DeviceId {
    DeviceId { major: 253, minor }
}

/// Who has the turn, of disks that lie on these.
fn having(turns: &mut Turns, seconds: u64, wanting: &[(u32, &[u32])]) -> Vec<u32> {
    having_at(turns, seconds, wanting, None)
}

fn chunk(at: u64) -> BeginsAgain {
    BeginsAgain { at, is_limited: false }
}

/// The same, where work on the first one would begin again somewhere.
fn having_at(turns: &mut Turns, seconds: u64, wanting: &[(u32, &[u32])], chunk: Option<BeginsAgain>) -> Vec<u32> {
    let wanted = |(of, on): &(u32, &[u32])| {
        let bottom = on.iter().map(|on| disk(*on)).collect();
        // What does not go first has numbers from 50.
        let begins_again = chunk.filter(|_| *of == 1);
        (disk(*of), Wanting { bottom, goes_first: *of < 50, takes: false, is_at_work: false, begins_again })
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
            having_at(&mut turns, second, &all, Some(chunk(place)))
        };
        assert_eq!([0, 10, 24].map(&mut at), [[1]; 3]);
        assert_eq!(at(25), [if gets_on { 2 } else { 1 }]);
        assert_eq!(TURN_MAX, Nanos::from_secs(180));
        let outcome = [34, 35, 179, 180].map(&mut at);
        assert_eq!(outcome, if gets_on { [[2], [1], [1], [1]] } else { [[1], [1], [1], [2]] });
    }
}

#[test]
fn at_a_limit_a_turn_is_kept_for_as_long_as_a_chunk_takes_at_the_least_one() {
    let all: [(u32, &[u32]); 2] = [(1, &[10]), (2, &[10])];
    for gets_on in [false, true] {
        let mut turns = Turns::default();
        let mut at = |second: u64| {
            let place = if gets_on && second >= 1000 { 6 } else { 7 };
            having_at(&mut turns, second, &all, Some(BeginsAgain { is_limited: true, ..chunk(place) }))
        };
        assert_eq!([0, 10, 181, 999].map(&mut at), [[1]; 4]);
        assert_eq!(at(1000), [if gets_on { 2 } else { 1 }]);
        if !gets_on {
            assert_eq!(TURN_LIMITED_MAX, Nanos::from_secs(4096));
            assert_eq!([4095, 4096].map(&mut at), [[1], [2]]);
        }
    }
}

/// What it read of its chunk is lost already.
#[test]
fn a_turn_is_kept_for_work_that_would_begin_again_only_while_that_runs() {
    let all: [(u32, &[u32]); 2] = [(1, &[10]), (2, &[10])];
    let mut turns = Turns::default();
    let mut at = |second, place: Option<u64>| having_at(&mut turns, second, &all, place.map(chunk));
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
            having_at(&mut turns, second, &all, Some(chunk(place)))
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
    let mut at = |second: u64| having_at(&mut turns, second, &all, Some(chunk(7)));
    assert_eq!([0, 9, 10, 19, 20].map(&mut at), [[1, 3], [1, 3], [1, 4], [1, 4], [1, 3]]);
}

/// A volume that has a share, and one that waits for gaps; who has the turn at each second, where the second finds one from a second on.
fn beside_one_that_takes(gap_from: u64) -> Vec<u32> {
    let mut turns = Turns::default();
    let bottom = || [disk(10)].into_iter().collect();
    let mut at = |second| {
        let one =
            |takes, is_at_work| Wanting { bottom: bottom(), goes_first: true, takes, is_at_work, begins_again: None };
        let wanting: BTreeMap<DeviceId, Wanting> =
            [(disk(1), one(true, true)), (disk(2), one(false, second >= gap_from))].into();
        turns.give(Nanos::from_secs(second), &wanting);
        let having: Vec<u32> = [1, 2].into_iter().filter(|of| turns.has(disk(*of))).collect();
        assert_eq!(having.len(), 1, "{second}");
        having[0]
    };
    (0..33).map(&mut at).collect()
}

#[test]
fn who_waits_for_gaps_in_vain_gives_its_turn_to_one_that_takes_time_from_others() {
    assert_eq!(TURN_IN_VAIN, Nanos::from_secs(1));
    let having = beside_one_that_takes(100);
    assert_eq!((having[10], having[11], having[20], having[21], having[22]), (2, 1, 1, 2, 1));
    assert_eq!(having.iter().filter(|of| **of == 2).count(), 3, "{having:?}");
    let having = beside_one_that_takes(10);
    assert_eq!(having.iter().filter(|of| **of == 2).count(), 13, "in a gap it keeps its turn: {having:?}");
}
