//! Properties of every built-in disk under arbitrary requests.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use minerva_model::Nanos;
use minerva_sim_device::{Completion, Kind, Media, Request, WriteBack, profile, profile_names};
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Ask {
    gap_us: u64,
    kind: Kind,
    offset_bytes: u64,
    length_bytes: u32,
}

fn asks() -> impl Strategy<Value = Vec<Ask>> {
    let kind = prop_oneof![
        4 => Just(Kind::Read),
        4 => Just(Kind::Write),
        1 => Just(Kind::Flush),
        1 => Just(Kind::Discard),
    ];
    // Some places are hit again and again, some are past the end.
    let offset = prop_oneof![(0u64..64).prop_map(|page| page * 4096), 0u64..(90 << 30), Just(u64::MAX)];
    let ask = (0u64..30_000, kind, offset, 0u32..(1 << 20))
        .prop_map(|(gap_us, kind, offset_bytes, length_bytes)| Ask { gap_us, kind, offset_bytes, length_bytes });
    prop::collection::vec(ask, 1..60)
}

/// With `looks`, somebody asks for completions between the requests as well.
fn run(name: &str, write_back: WriteBack, asks: &[Ask], capacity: Option<u64>, looks: u64) -> Vec<(Nanos, Completion)> {
    let mut disk = profile(name).expect("built in");
    if let Media::Hdd(hdd) = &mut disk.media {
        hdd.cache.write_back = write_back;
    }
    let mut device = disk.build(capacity, 9);
    let mut submitted = Vec::new();
    let mut done = Vec::new();
    let mut now = Nanos::ZERO;
    for (tag, ask) in (0u64..).zip(asks) {
        for look in 1..=looks {
            let at = now + Nanos(ask.gap_us * 1000 / (looks + 1) * look);
            while let Some(completion) = device.complete(at) {
                done.push((submitted[completion.tag as usize], completion));
            }
        }
        now += Nanos::from_micros(ask.gap_us);
        while let Some(completion) = device.complete(now) {
            done.push((submitted[completion.tag as usize], completion));
        }
        let Ask { kind, offset_bytes, length_bytes, .. } = *ask;
        device.submit(now, Request { tag, kind, offset_bytes, length_bytes });
        submitted.push(now);
    }
    while let Some(at) = device.next_completion() {
        let completion = device.complete(at).expect("what is announced is due");
        assert!(completion.at <= at);
        done.push((submitted[completion.tag as usize], completion));
    }
    let statistics = device.statistics();
    let counted = statistics.reads + statistics.writes + statistics.flushes + statistics.discards;
    assert_eq!(counted, asks.len() as u64);
    done
}

fn modes() -> impl Strategy<Value = WriteBack> {
    prop_oneof![Just(WriteBack::Off), Just(WriteBack::Single), Just(WriteBack::On)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_request_completes_once_and_not_before_its_overhead(asks in asks(), mode in modes(), small in any::<bool>()) {
        for name in profile_names() {
            let done = run(name, mode, &asks, small.then_some(64 << 20), 0);
            let mut tags: Vec<u64> = done.iter().map(|(_, completion)| completion.tag).collect();
            tags.sort_unstable();
            prop_assert_eq!(tags, (0..asks.len() as u64).collect::<Vec<_>>());
            for (submitted, completion) in done {
                prop_assert!(completion.at.since(submitted) >= Nanos(4_000), "{} {completion:?}", name);
            }
        }
    }

    #[test]
    fn the_same_requests_see_the_same_times_however_often_one_looks(asks in asks(), mode in modes()) {
        for name in profile_names() {
            prop_assert_eq!(run(name, mode, &asks, None, 0), run(name, mode, &asks, None, 3));
        }
    }
}
