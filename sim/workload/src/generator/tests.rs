//! Streams of requests against what their plans say.

use super::{Generator, Loop, Pattern, Pause, Plan, scattered};
use crate::{Source, Step};
use minerva_blocksched::Kind;
use minerva_model::Nanos;
use proptest::prelude::{Just, Strategy, prop_assert, prop_oneof, proptest};

fn issued(step: Step) -> Option<u64> {
    match step {
        Step::Issue(request) => Some(request.offset_bytes),
        _ => None,
    }
}

#[test]
fn a_synchronous_reader_thinks_between_requests() {
    let plan = Plan {
        pause: Some(Pause { time: Nanos(10), every: 1 }),
        total_bytes: Some(8192),
        offset_bytes: 4096,
        ..Plan::default()
    };
    let mut reader = Generator::new(plan, 1);
    let Step::Issue(first) = reader.next(Nanos(5)) else { panic!("it starts at once") };
    assert_eq!(first.offset_bytes, 4096);
    assert_eq!(reader.next(Nanos(5)), Step::Blocked);
    reader.completed(Nanos(100), &first);
    assert_eq!(reader.next(Nanos(100)), Step::At(Nanos(110)));
    let Step::Issue(second) = reader.next(Nanos(110)) else { panic!("it goes on after thinking") };
    assert_eq!(second.offset_bytes, 8192);
    assert_eq!(reader.next(Nanos(110)), Step::Blocked);
    reader.completed(Nanos(120), &second);
    assert_eq!(reader.next(Nanos(130)), Step::Finished);
}

#[test]
fn a_rate_is_kept_on_average() {
    let plan = Plan { rate_bytes_per_second: Some(4096), ..Plan::default() };
    let mut reader = Generator::new(plan, 1);
    let Step::Issue(request) = reader.next(Nanos::ZERO) else { panic!("the first is free") };
    reader.completed(Nanos(1), &request);
    assert_eq!(reader.next(Nanos(1)), Step::At(Nanos::SECOND));
}

#[test]
fn a_process_with_several_requests_waits_for_all_of_them_before_it_thinks() {
    let plan =
        Plan { when: Loop::Closed { depth: 4 }, pause: Some(Pause { time: Nanos(10), every: 2 }), ..Plan::default() };
    let mut process = Generator::new(plan, 1);
    let mut made = Vec::new();
    while let Step::Issue(request) = process.next(Nanos::ZERO) {
        made.push(request);
    }
    assert_eq!(made.len(), 4);
    process.completed(Nanos(1), &made[0]);
    assert!(matches!(process.next(Nanos(1)), Step::Issue(_)), "the second completion is the one that counts");
    for (at, next) in [(2, Step::Blocked), (3, Step::Blocked), (4, Step::Blocked), (5, Step::At(Nanos(15)))] {
        process.completed(Nanos(at), &made[0]);
        assert_eq!(process.next(Nanos(at)), next, "at {at}");
    }
    assert!(matches!(process.next(Nanos(15)), Step::Issue(_)));
}

#[test]
fn a_rate_holds_for_reads_and_for_writes() {
    let plan = Plan { rate_bytes_per_second: Some(4096 * 100), read_percent: 80, ..Plan::default() };
    let mut process = Generator::new(plan, 1);
    let (mut now, mut made) = (Nanos::ZERO, [0, 0]);
    while now < Nanos::from_secs(10) {
        match process.next(now) {
            Step::Issue(request) => {
                made[usize::from(request.kind == Kind::Read)] += 1;
                process.completed(now, &request);
            }
            Step::At(at) => now = at,
            other => panic!("{other:?}"),
        }
    }
    // Each way goes at its own rate: what the mix has less of is made while the other waits.
    assert_eq!(made, [1000, 1000]);
}

#[test]
fn discards_take_the_place_of_reads() {
    let mut process = Generator::new(Plan { discards: true, ..Plan::default() }, 1);
    let Step::Issue(request) = process.next(Nanos::ZERO) else { panic!("it starts at once") };
    assert_eq!((request.kind, request.length_bytes, request.sync), (Kind::Discard, 4096, true));
}

#[test]
fn every_block_has_one_rank() {
    for blocks in [1, 2, 3, 7, 8, 1000, 4096, 100_003] {
        let mut seen = vec![false; blocks];
        for rank in 0..blocks {
            let block = scattered(rank as u64, blocks as u64) as usize;
            assert!(!std::mem::replace(&mut seen[block], true), "block {block} of {blocks} has two ranks");
        }
    }
}

#[test]
fn zipf_gives_the_hottest_block_its_part() {
    let blocks = 1000_u64;
    let plan = Plan { pattern: Pattern::Zipf { exponent: 1.0 }, region_bytes: blocks * 4096, ..Plan::default() };
    let mut process = Generator::new(plan, 3);
    let mut counts = vec![0_u32; blocks as usize];
    for _ in 0..200_000 {
        let Step::Issue(request) = process.next(Nanos::ZERO) else { panic!("nothing is outstanding") };
        counts[(request.offset_bytes / 4096) as usize] += 1;
        process.completed(Nanos::ZERO, &request);
    }
    let harmonic: f64 = (1..=blocks).map(|rank| 1.0 / rank as f64).sum();
    let part = |rank: u64| f64::from(counts[scattered(rank - 1, blocks) as usize]) / 200_000.0;
    for rank in [1, 2, 10] {
        let expected = 1.0 / rank as f64 / harmonic;
        assert!((part(rank) / expected - 1.0).abs() < 0.1, "rank {rank}: {} for {expected}", part(rank));
    }
    assert!(counts.iter().all(|count| *count > 0), "every block is read now and then");
    let near = (1..=10).filter(|rank| scattered(*rank, blocks).abs_diff(scattered(*rank - 1, blocks)) < 10).count();
    assert!(near <= 1, "hot blocks lie together");
}

#[test]
fn open_arrivals_come_at_their_mean_rate() {
    let plan = Plan { when: Loop::Open { rate_per_second: 1000.0 }, ..Plan::default() };
    let mut source = Generator::new(plan, 7);
    let mut now = Nanos::ZERO;
    let mut made = 0;
    while now < Nanos::from_secs(20) {
        match source.next(now) {
            Step::Issue(_) => made += 1,
            Step::At(at) => now = at,
            other => panic!("{other:?}"),
        }
    }
    assert!((19_000..21_000).contains(&made), "{made} arrivals in 20 s at 1,000 a second");
}

proptest! {
    #[test]
    fn requests_lie_in_their_region(
        pattern in prop_oneof![
            Just(Pattern::Sequential),
            Just(Pattern::Random),
            (0.1f64..3.0).prop_map(|exponent| Pattern::Zipf { exponent })
        ],
        seed in 0u64..100,
        blocks in 1u64..1000,
    ) {
        let plan = Plan { pattern, offset_bytes: 1 << 20, region_bytes: blocks * 4096, when: Loop::Closed { depth: 500 }, ..Plan::default() };
        let mut source = Generator::new(plan, seed);
        for _ in 0..200 {
            let offset = issued(source.next(Nanos::ZERO)).expect("depth is left");
            prop_assert!(offset >= 1 << 20 && offset + 4096 <= (1 << 20) + blocks * 4096);
        }
    }
}
