//! What a log of requests says of promises. Pure.

use super::log::Record;
use minerva_model::Nanos;

/// What one guest is promised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VmPromise {
    /// In every second in which it asks all the time.
    pub bytes_per_second: f64,
    /// The contract: its rate, which is more than what every second has, because a rate with a delay promises nothing for the beginning of a second.
    pub contract_bytes_per_second: f64,
    /// The contract: beyond the rate, at once.
    pub burst_bytes: f64,
    /// The contract: each request is done within this from when rate and burst allow it.
    pub delay: Nanos,
    /// The guest asks again so long after an answer.
    pub think: Nanos,
}

/// How a promise fared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VmKept {
    /// Whole seconds that were looked at.
    pub seconds: u64,
    /// Seconds in which the guest asked all the time.
    pub asked: u64,
    /// Those of them in which it had less than promised.
    pub missed: u64,
    /// Seconds in which it had less than promised, whether it asked or not.
    pub below: u64,
    /// Bytes of the least second.
    pub least_bytes: u64,
    /// Bytes of all seconds.
    pub bytes: u64,
    /// Requests.
    pub requests: u64,
    /// Those that were done after their deadline: a delay after they came, or after rate and burst allow them, whichever is later,
    /// where every request counts against rate and burst (Gulati and others, pClock, 2007).
    pub late: u64,
    /// The greatest time from when a request came, or was allowed, to when it was done.
    pub longest: Nanos,
    /// Requests within rate and burst where what is beyond them counts as if it had never been asked for. No scheduler promises
    /// that.
    pub within: u64,
    /// Those of them that took longer than the delay.
    pub within_late: u64,
    /// The part of the time in which it had nothing under way.
    pub idle: f64,
}

/// A guest that has nothing under way for more than this part of a second did not ask all the time.
const IDLE_MAX: Nanos = Nanos::from_millis(100);

/// Judges the requests of one guest, in the order in which they came, over the whole seconds from `begin` to `end`. The guest asks again
/// after each answer until then.
pub fn judge_contract(records: &[&Record], promise: &VmPromise, begin: Nanos, end: Nanos) -> VmKept {
    let starved = unanswered(records, promise, begin, end);
    let records: Vec<&Record> = records.iter().copied().chain(&starved).collect();
    let records = records.as_slice();
    let seconds = end.since(begin).0 / Nanos::SECOND.0;
    let mut kept = VmKept { seconds, least_bytes: u64::MAX, ..VmKept::default() };
    judge_requests(records, promise, begin, end, &mut kept);
    let mut idle_all = 0;
    for second in 0..seconds {
        let from = begin + Nanos(second * Nanos::SECOND.0);
        let until = from + Nanos::SECOND;
        let bytes = records.iter().filter(|r| from <= r.done && r.done < until).map(|r| r.bytes).sum::<u64>();
        let idle = idle_within(records, from, until);
        let is_below = (bytes as f64) < promise.bytes_per_second;
        let asked = idle <= IDLE_MAX;
        kept.asked += u64::from(asked);
        kept.missed += u64::from(asked && is_below);
        kept.below += u64::from(is_below);
        kept.bytes += bytes;
        kept.least_bytes = kept.least_bytes.min(bytes);
        idle_all += idle.0;
    }
    kept.idle = idle_all as f64 / (seconds.max(1) * Nanos::SECOND.0) as f64;
    kept
}

/// The request that was still queued at the end, if there was one. Only what is answered is in the log, so a guest that is starved to the
/// end would look as if it had not asked.
fn unanswered(records: &[&Record], promise: &VmPromise, begin: Nanos, end: Nanos) -> Option<Record> {
    let last = records.iter().max_by_key(|record| record.done);
    let arrived = last.map_or(begin, |record| record.done + promise.think);
    (arrived < end).then(|| Record {
        disk: last.map(|record| record.disk.clone()).unwrap_or_default(),
        tag: last.map_or(0, |record| record.tag),
        bytes: last.map_or(0, |record| record.bytes),
        arrived,
        sent: end,
        done: end,
    })
}

/// Each request on its own.
fn judge_requests(records: &[&Record], promise: &VmPromise, begin: Nanos, end: Nanos, kept: &mut VmKept) {
    let (rate, burst) = (promise.contract_bytes_per_second, promise.burst_bytes);
    // What rate and burst leave: with every request charged, and with those only that they allow.
    let (mut charged, mut free, mut refilled) = (burst, burst, Nanos::ZERO);
    for record in records {
        let bytes = record.bytes as f64;
        let earned = rate * record.arrived.since(refilled).as_secs_f64();
        refilled = record.arrived;
        charged = (charged + earned).min(burst.max(bytes)) - bytes;
        free = (free + earned).min(burst.max(bytes));
        let is_within = free >= bytes;
        free -= if is_within { bytes } else { 0.0 };
        if record.arrived < begin || record.arrived >= end {
            continue;
        }
        let allowed = record.arrived + Nanos(((-charged).max(0.0) / rate * 1e9) as u64);
        let (took, waited) = (record.done.since(record.arrived), record.done.since(allowed));
        kept.requests += 1;
        kept.late += u64::from(waited > promise.delay);
        kept.longest = kept.longest.max(waited);
        kept.within += u64::from(is_within);
        kept.within_late += u64::from(is_within && took > promise.delay);
    }
}

/// For how long nothing was under way between two instants.
fn idle_within(records: &[&Record], from: Nanos, until: Nanos) -> Nanos {
    let (mut covered, mut idle) = (from, 0);
    for record in records.iter().filter(|r| r.done > from && r.arrived < until) {
        idle += record.arrived.since(covered).0;
        covered = covered.max(record.done.min(until));
    }
    Nanos(idle + until.since(covered).0)
}

/// What one priority had.
#[derive(Clone, Debug, PartialEq)]
pub struct VmTagged {
    /// Its number.
    pub tag: u8,
    /// Bytes in the window.
    pub bytes: u64,
    /// So many of its requests waited in the server, on average, when one of any was sent.
    pub queued_mean: f64,
    /// The part of those moments in which none did.
    pub empty: f64,
}

/// What each priority had between two instants, the greatest first. `tags` says which there are.
pub fn judge_tags(records: &[Record], tags: &[u8], begin: Nanos, end: Nanos) -> Vec<VmTagged> {
    let mut sorted = tags.to_vec();
    sorted.sort_unstable_by(|left, right| right.cmp(left));
    let sent: Vec<Nanos> = records.iter().map(|r| r.sent).filter(|at| begin <= *at && *at < end).collect();
    let of = |tag: u8| {
        let own: Vec<&Record> = records.iter().filter(|r| r.tag == tag).collect();
        let bytes = own.iter().filter(|r| begin <= r.done && r.done < end).map(|r| r.bytes).sum();
        let (came, went) = (sorted_by(&own, |r| r.arrived), sorted_by(&own, |r| r.sent));
        let waiting = |at: &Nanos| {
            let gone = went.partition_point(|instant| instant < at);
            came.partition_point(|instant| instant <= at) - gone
        };
        let counts: Vec<usize> = sent.iter().map(waiting).collect();
        let all = counts.len().max(1) as f64;
        let queued_mean = counts.iter().sum::<usize>() as f64 / all;
        let empty = counts.iter().filter(|count| **count == 0).count() as f64 / all;
        VmTagged { tag, bytes, queued_mean, empty }
    };
    sorted.into_iter().map(of).collect()
}

fn sorted_by(records: &[&Record], instant: impl Fn(&Record) -> Nanos) -> Vec<Nanos> {
    let mut instants: Vec<Nanos> = records.iter().map(|record| instant(record)).collect();
    instants.sort_unstable();
    instants
}

/// Pairs of which the one with the lesser priority had more; what each had, the greatest priority first.
pub fn inversions(bytes: &[u64]) -> usize {
    let worse = |(at, had): (usize, &u64)| bytes[at + 1..].iter().filter(|later| *later > had).count();
    bytes.iter().enumerate().map(worse).sum()
}

/// By how much the one that is furthest off is away from its part by priority.
pub fn proportion_error(tagged: &[VmTagged]) -> f64 {
    let bytes = tagged.iter().map(|one| one.bytes).sum::<u64>() as f64;
    let tags = tagged.iter().map(|one| f64::from(one.tag)).sum::<f64>();
    let off = |one: &VmTagged| (one.bytes as f64 / bytes.max(1.0) / (f64::from(one.tag) / tags) - 1.0).abs();
    tagged.iter().map(off).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::{Record, VmPromise, inversions, judge_contract, judge_tags, proportion_error};
    use minerva_model::Nanos;

    fn record(tag: u8, bytes: u64, at_ms: [u64; 3]) -> Record {
        let [arrived, sent, done] = at_ms.map(Nanos::from_millis);
        Record { disk: "vm".to_owned(), tag, bytes, arrived, sent, done }
    }

    /// One request after the other, each of `ms`, with a pause of `think_ms`.
    fn reader(bytes: u64, ms: u64, think_ms: u64, seconds: u64) -> Vec<Record> {
        let count = seconds * 1000 / (ms + think_ms);
        let at = |n: u64| n * (ms + think_ms);
        (0..count).map(|n| record(1, bytes, [at(n), at(n), at(n) + ms])).collect()
    }

    const PROMISE: VmPromise = VmPromise {
        bytes_per_second: 900.0,
        contract_bytes_per_second: 1000.0,
        burst_bytes: 100.0,
        delay: Nanos::from_millis(200),
        think: Nanos::ZERO,
    };

    fn judge(records: &[Record]) -> super::VmKept {
        judge_contract(&records.iter().collect::<Vec<_>>(), &PROMISE, Nanos::SECOND, Nanos::from_secs(4))
    }

    #[test]
    fn a_second_is_missed_when_a_reader_that_asks_all_the_time_has_too_little() {
        // Ten a second, nine of which are promised.
        let kept = judge(&reader(100, 100, 0, 5));
        assert_eq!((kept.seconds, kept.asked, kept.missed, kept.late), (3, 3, 0, 0));
        // Five a second, each of 200 ms.
        let slow = judge(&reader(100, 200, 0, 5));
        assert_eq!((slow.asked, slow.missed, slow.below, slow.late), (3, 3, 3, 0));
        // A reader that thinks as long as it reads asks for less than it could have.
        let thinks = judge(&reader(100, 100, 100, 5));
        assert_eq!((thinks.asked, thinks.missed, thinks.below), (0, 0, 3));
        assert!((thinks.idle - 0.5).abs() < 0.02, "{thinks:?}");
    }

    #[test]
    fn a_request_is_late_a_delay_after_rate_and_burst_allow_it() {
        let kept = judge(&reader(100, 250, 0, 5));
        assert!(kept.late == kept.requests && kept.requests >= 11, "{kept:?}");
        assert_eq!((kept.longest, kept.within_late), (Nanos::from_millis(250), kept.requests));
        // Twenty at once, of which one is allowed every 100 ms: served so, none is late but for the wait that it had coming.
        let at_once: Vec<_> = (0..20).map(|n| record(1, 100, [1000, 1000 + n * 100, 1100 + n * 100])).collect();
        let at_once: Vec<&Record> = at_once.iter().collect();
        let kept = judge_contract(&at_once, &PROMISE, Nanos::SECOND, Nanos::from_secs(3));
        assert_eq!((kept.requests, kept.late, kept.longest), (20, 0, Nanos::from_millis(100)));
        assert_eq!((kept.within, kept.within_late), (1, 0));
    }

    #[test]
    fn a_guest_that_waits_to_the_end_for_an_answer_has_asked_all_the_while() {
        // Served for two seconds, then never again.
        let kept = judge(&reader(100, 100, 0, 2));
        assert_eq!((kept.seconds, kept.asked, kept.missed), (3, 3, 2));
        assert_eq!((kept.late, kept.longest), (1, Nanos::from_secs(2)));
        // Never served.
        let kept = judge(&[]);
        assert_eq!((kept.asked, kept.missed, kept.late, kept.requests), (3, 3, 1, 1));
        // One that was served until just before the end has missed nothing.
        let just_before = judge_contract(
            &reader(100, 100, 0, 4).iter().collect::<Vec<_>>(),
            &PROMISE,
            Nanos::SECOND,
            Nanos::from_millis(4050),
        );
        assert_eq!((just_before.asked, just_before.missed, just_before.late), (3, 0, 0));
    }

    #[test]
    fn inversions_are_pairs_and_queues_are_those_at_each_decision() {
        assert_eq!(inversions(&[6, 5, 4]), 0);
        assert_eq!(inversions(&[4, 5, 6]), 3);
        let records = [record(2, 200, [0, 10, 20]), record(2, 200, [0, 30, 40]), record(1, 200, [20, 20, 30])];
        let tagged = judge_tags(&records, &[1, 2], Nanos::ZERO, Nanos::SECOND);
        assert_eq!((tagged[0].tag, tagged[0].bytes, tagged[1].bytes), (2, 400, 200));
        assert!((tagged[0].queued_mean - 4.0 / 3.0).abs() < 1e-9, "{tagged:?}");
        assert!((tagged[1].empty - 2.0 / 3.0).abs() < 1e-9, "{tagged:?}");
        assert!(proportion_error(&tagged) < 1e-9, "{tagged:?}");
    }
}
