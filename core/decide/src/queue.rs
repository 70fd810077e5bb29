//! Which waiting operations of one disk begin now. Pure and without state, so that it can be tested by itself.
//!
//! 1. Whoever would be too late with the next slice begins, whatever else goes on. This is the promise.
//! 2. While a place is free and no more than the accepted number of other tenants is on the disk, the next begins: the one
//!    with the highest response ratio, `(waited + estimate) / estimate`. Of operations asked for together that is the
//!    shortest, which makes the mean completion least; and as waiting raises the ratio without bound, nobody starves. Only
//!    if all others can still be in time after it; otherwise the one with the earliest latest start.
//! 3. While a place is free and others are on the disk, an operation begins only if, were all waiting ones done one after
//!    the other, the wait would make one of them late: the disk could make it, so Minerva must not be what prevents it.

use minerva_model::Nanos;

/// A waiting operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) asked_at: Nanos,
    /// How long it will take.
    pub(crate) estimate: Nanos,
    /// It must begin by then.
    pub(crate) latest_start: Nanos,
}

/// The disk as it is now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) now: Nanos,
    /// When this is looked at again, at the latest.
    pub(crate) next_look: Nanos,
    /// Operations that may begin beside those under way.
    pub(crate) slots_free: usize,
    /// Others are on the disk.
    pub(crate) contended: bool,
}

/// The indices in `waiting` of those that begin now, in the order in which they do.
pub(crate) fn begin_now(moment: Moment, waiting: &[Waiting]) -> Vec<usize> {
    let mut left: Vec<usize> = (0..waiting.len()).collect();
    left.sort_by_key(|index| rank_of(waiting, *index));
    let mut begin: Vec<usize> =
        left.iter().copied().filter(|index| waiting[*index].latest_start < moment.next_look).collect();
    left.retain(|index| !begin.contains(index));
    while begin.len() < moment.slots_free && !left.is_empty() {
        if moment.contended && !is_pressed(moment.next_look, waiting, &left) {
            break;
        }
        let position = next(moment.now, waiting, &left);
        begin.push(left.remove(position));
    }
    begin
}

/// All of them can still be in time, one after the other, if the first begins with the next look.
pub(crate) fn can_wait(next_look: Nanos, waiting: &[Waiting]) -> bool {
    let mut left: Vec<usize> = (0..waiting.len()).collect();
    left.sort_by_key(|index| rank_of(waiting, *index));
    !is_pressed(next_look, waiting, &left)
}

/// By latest start, and of equal ones whoever asked first.
fn rank_of(waiting: &[Waiting], index: usize) -> (Nanos, Nanos, usize) {
    (waiting[index].latest_start, waiting[index].asked_at, index)
}

/// One of them would be late if the first began at `start`. `left` is sorted by latest start.
fn is_pressed(start: Nanos, waiting: &[Waiting], left: &[usize]) -> bool {
    let mut at = start;
    left.iter().any(|index| {
        let late = at > waiting[*index].latest_start;
        at += waiting[*index].estimate;
        late
    })
}

fn next(now: Nanos, waiting: &[Waiting], left: &[usize]) -> usize {
    let before = |one: &Waiting, other: &Waiting| {
        let estimate = |w: &Waiting| u128::from(w.estimate.0.max(1));
        let response = |w: &Waiting| u128::from(now.since(w.asked_at).0) + estimate(w);
        let (mine, theirs) = (response(one) * estimate(other), response(other) * estimate(one));
        mine > theirs || (mine == theirs && one.estimate < other.estimate)
    };
    let mut best = 0;
    for position in 1..left.len() {
        if before(&waiting[left[position]], &waiting[left[best]]) {
            best = position;
        }
    }
    let others: Vec<usize> = left.iter().copied().filter(|index| *index != left[best]).collect();
    if is_pressed(now + waiting[left[best]].estimate, waiting, &others) { 0 } else { best }
}

#[cfg(test)]
mod tests {
    use super::{Moment, Waiting, begin_now};
    use minerva_model::Nanos;

    const fn waiting(asked: u64, estimate: u64, latest: u64) -> Waiting {
        Waiting {
            asked_at: Nanos::from_secs(asked),
            estimate: Nanos::from_secs(estimate),
            latest_start: Nanos::from_secs(latest),
        }
    }

    fn moment(now: u64, slots_free: usize, contended: bool) -> Moment {
        Moment { now: Nanos::from_secs(now), next_look: Nanos::from_secs(now + 1), slots_free, contended }
    }

    #[test]
    fn cases_by_hand() {
        let long_and_short = [waiting(0, 9, 90), waiting(0, 3, 90)];
        // (moment, waiting, begin)
        let cases: [(Moment, &[Waiting], &[usize]); 10] = [
            (moment(0, 1, false), &[], &[]),
            (moment(0, 1, false), &long_and_short, &[1]),
            (moment(0, 2, false), &long_and_short, &[1, 0]),
            (moment(0, 1, true), &long_and_short, &[]),
            // Having waited for 60 s, the long one's ratio is 69/9 against 8/3.
            (moment(60, 1, false), &[waiting(0, 9, 90), waiting(55, 3, 90)], &[0]),
            // The short one first would make the long one late.
            (moment(0, 1, false), &[waiting(0, 9, 2), waiting(0, 3, 90)], &[0]),
            // Nothing is free, but the second is at its last slice.
            (moment(5, 0, true), &[waiting(0, 9, 90), waiting(0, 3, 5)], &[1]),
            // One after the other they just fit: the disk could make it, so the first begins.
            (moment(0, 1, true), &[waiting(0, 10, 10), waiting(0, 10, 10)], &[0]),
            (moment(0, 1, true), &[waiting(0, 10, 31), waiting(0, 10, 30)], &[]),
            // Alike but for when they asked, and one of them will be late.
            (moment(2, 1, false), &[waiting(1, 10, 4), waiting(0, 10, 4)], &[1]),
        ];
        for (index, (moment, waiting, expected)) in cases.iter().enumerate() {
            assert_eq!(begin_now(*moment, waiting), *expected, "case {index}");
        }
    }
}
