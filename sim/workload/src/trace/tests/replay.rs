//! Replays make the trace's requests, at its instants or as fast as may be.

use super::super::{Addresses, Lane, Pace, ReadOptions, ReplayOptions, TraceReader, TraceSource};
use crate::{Source, Step};
use minerva_model::Nanos;

const TRACE: &str = "1,W,0,4096,0\n2,R,8192,4096,1000\n1,R,1048576,512,2000\n";

fn source(pace: Pace, change: impl FnOnce(&mut ReplayOptions)) -> TraceSource {
    let mut options =
        ReplayOptions { pace, volume: None, capacity_bytes: 1 << 30, addresses: Addresses::Refuse, sync_writes: false };
    change(&mut options);
    TraceSource::new(TraceReader::from_stream(TRACE.as_bytes(), "t", ReadOptions::default()).unwrap(), options)
}

/// The offsets made with the instants; each completes at once.
fn run(source: &mut TraceSource, start: Nanos) -> Vec<(u64, u64)> {
    let mut now = start;
    let mut made = Vec::new();
    loop {
        match source.next(now) {
            Step::Issue(request) => {
                made.push((now.0, request.offset_bytes));
                source.completed(now, &request);
            }
            Step::At(at) => now = at,
            Step::Blocked => panic!("nothing is outstanding"),
            Step::Finished => return made,
        }
    }
}

#[test]
fn open_pace_keeps_the_instants() {
    let mut as_taken = source(Pace::Open { speed: 1.0 }, |_| {});
    assert_eq!(run(&mut as_taken, Nanos(5)), [(5, 0), (1_000_005, 8192), (2_000_005, 1_048_576)]);
    let mut faster = source(Pace::Open { speed: 4.0 }, |_| {});
    assert_eq!(run(&mut faster, Nanos(0)), [(0, 0), (250_000, 8192), (500_000, 1_048_576)]);
    let done = faster.replayed().lock().unwrap().clone();
    assert!(done.completed && done.error.is_none());
    assert_eq!((done.records, done.bytes), (3, 8704));
}

#[test]
fn closed_pace_keeps_the_depth() {
    let mut source = source(Pace::Closed { depth: 2 }, |_| {});
    let Step::Issue(first) = source.next(Nanos::ZERO) else { panic!("room for the first") };
    assert!(!first.sync, "writes are as the options say");
    assert!(matches!(source.next(Nanos::ZERO), Step::Issue(_)));
    assert_eq!(source.next(Nanos::ZERO), Step::Blocked);
    source.completed(Nanos(1), &first);
    assert!(matches!(source.next(Nanos(1)), Step::Issue(_)));
    assert_eq!(source.next(Nanos(1)), Step::Blocked);
}

#[test]
fn one_volume_can_be_picked() {
    let mut one = source(Pace::Closed { depth: 1 }, |options| options.volume = Some(2));
    assert_eq!(run(&mut one, Nanos::ZERO), [(0, 8192)]);
}

#[test]
fn addresses_past_the_end_are_refused_or_folded() {
    let mut refused = source(Pace::Closed { depth: 1 }, |options| options.capacity_bytes = 100_000);
    assert_eq!(run(&mut refused, Nanos::ZERO).len(), 2);
    let error = refused.replayed().lock().unwrap().error.clone().unwrap();
    assert!(
        error.to_string().contains("line 3: the request of 512 bytes at byte 1048576 is past the disk's end at 100000"),
        "{error}"
    );
    let mut folded = source(Pace::Closed { depth: 1 }, |options| {
        options.capacity_bytes = 102_400;
        options.addresses = Addresses::Fold;
    });
    assert_eq!(run(&mut folded, Nanos::ZERO)[2].1, 1_048_576 % 102_400);
    let done = folded.replayed().lock().unwrap().clone();
    assert_eq!((done.folded, done.folded_at[0].to_string().as_str()), (1, "line 3"));
}

/// Runs processes together until all have ended; the (instant, process, offset) of each request, which completes at once.
fn run_all(sources: &mut [TraceSource]) -> Vec<(u64, usize, u64)> {
    let mut due = vec![Some(Nanos::ZERO); sources.len()];
    let mut made = Vec::new();
    while let Some((now, index)) = due.iter().enumerate().filter_map(|(index, due)| Some(((*due)?, index))).min() {
        due[index] = match sources[index].next(now) {
            Step::Issue(request) => {
                made.push((now.0, index, request.offset_bytes));
                sources[index].completed(now, &request);
                Some(now)
            }
            Step::At(at) => Some(at),
            Step::Blocked => panic!("nothing is outstanding"),
            Step::Finished => None,
        };
    }
    made
}

fn two_lanes(trace: String, pace: Pace) -> Vec<TraceSource> {
    let options =
        ReplayOptions { pace, volume: None, capacity_bytes: 0, addresses: Addresses::Refuse, sync_writes: true };
    let lane = |volume, base_bytes| Lane { volume: Some(volume), base_bytes, region_bytes: 1 << 30 };
    let trace = TraceReader::from_stream(std::io::Cursor::new(trace), "t", ReadOptions::default()).unwrap();
    TraceSource::split(trace, options, &[lane(1, 0), lane(2, 1 << 30)])
}

#[test]
fn volumes_are_processes_with_places_of_their_own() {
    let mut both = two_lanes(TRACE.to_owned(), Pace::Open { speed: 1.0 });
    assert_eq!(run_all(&mut both), [(0, 0, 0), (1_000_000, 1, (1 << 30) + 8192), (2_000_000, 0, 1_048_576)]);
    let done = both[0].replayed().lock().unwrap().clone();
    assert!(done.completed);
    assert_eq!((done.records, done.bytes), (3, 8704));
}

#[test]
fn a_volume_that_asks_seldom_is_not_read_for_ahead_without_bound() {
    let others = 200_000_u64;
    let mut trace = String::from("2,R,0,512,0\n");
    (1..=others).for_each(|n| trace += &format!("1,W,{},512,{}\n", n % 1000 * 512, n * 10));
    trace += &format!("2,R,512,512,{}\n", others * 10);
    for pace in [Pace::Open { speed: 2.0 }, Pace::Closed { depth: 1 }] {
        let made = run_all(&mut two_lanes(trace.clone(), pace));
        assert_eq!(made.len() as u64, others + 2);
        let rare: Vec<u64> = made.iter().filter(|(_, index, _)| *index == 1).map(|(at, _, _)| *at).collect();
        assert_eq!(rare.len(), 2);
        if matches!(pace, Pace::Open { .. }) {
            // Half of the two seconds; it may look again a millisecond late.
            assert!((1_000_000_000..=1_001_000_000).contains(&rare[1]), "{rare:?}");
        }
    }
}
