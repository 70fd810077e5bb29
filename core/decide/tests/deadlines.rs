//! Coordinated operations under random schedules: whoever the disk can serve in time begins in time, and equal tenants get
//! equal outcomes.

#![expect(clippy::disallowed_macros, reason = "measured figures are told with --nocapture")]

mod world;

use minerva_model::{AccessKind, Deadline, EngineConfig, LearntBandwidth, Level, Lifetime, Nanos, Wish};
use std::collections::BTreeMap;
use world::{DISK, World};

const DISK_BYTES_PER_SECOND: f64 = 50e6;

/// A number from the environment, so that figures try other schedules than every test run does.
#[expect(clippy::disallowed_methods, reason = "the test asks, as proptest does")]
fn setting(variable: &str, otherwise: u64) -> u64 {
    let text = std::env::var(variable);
    text.map_or(otherwise, |text| text.parse().unwrap_or_else(|error| panic!("{variable} is \"{text}\": {error}")))
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// One after the other by deadline, from when each is asked for: the disk can make all of them.
fn feasible(asked: &[(u64, f64, u64)]) -> bool {
    let mut order: Vec<&(u64, f64, u64)> = asked.iter().collect();
    order.sort_by_key(|(at, _, deadline)| (*deadline, *at));
    let mut free = 0.0_f64;
    order.iter().all(|(at, bytes, deadline)| {
        free = free.max(*at as f64) + bytes / DISK_BYTES_PER_SECOND;
        free <= *deadline as f64
    })
}

#[test]
fn every_operation_begins_by_its_deadline_under_ten_thousand_schedules() {
    let (mut late, mut latest_s, mut feasible_ones, mut operations_in_them) = (0, 0.0_f64, 0, 0);
    let (schedules, first) = (setting("PROPTEST_CASES", 10_000), setting("PROPTEST_RNG_SEED", 0));
    for seed in (0..schedules).map(|index| first.wrapping_add(index)) {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1);
        let coordinated = 1 + random.below(5) as usize;
        let others = random.below(4) as usize;
        // (asked at, bytes, deadline), in seconds.
        let asked: Vec<(u64, f64, u64)> = (0..coordinated)
            .map(|_| {
                let (at, bytes) = (random.below(6), 1e6 + random.below(200_000_000) as f64);
                (at, bytes, at + 1 + (bytes / DISK_BYTES_PER_SECOND) as u64 + random.below(20))
            })
            .collect();
        let mut sizes: Vec<f64> = asked.iter().map(|(_, bytes, _)| *bytes).collect();
        sizes.extend((0..others).map(|_| 10e6 + random.below(3_000_000_000) as f64));
        let mut world = World::new(&EngineConfig::default(), DISK_BYTES_PER_SECOND, &sizes, seed, 0.2);
        // Before a disk was measured nobody can promise anything of it.
        let (bytes_per_second, access) = (DISK_BYTES_PER_SECOND, AccessKind::SequentialRead);
        let learnt =
            LearntBandwidth { device: DISK, access, bytes_per_second, measured_seconds: 60.0, age: Nanos::ZERO };
        world.decider.bandwidth_recalled(Nanos::ZERO, &learnt);
        world.jobs.iter_mut().take(coordinated).for_each(|job| job.held = true);
        let mut operations = BTreeMap::new();
        for second in 0..40 {
            for (index, (at, _, deadline)) in asked.iter().enumerate() {
                if *at == second {
                    let deadline = Deadline::DoneBefore(Nanos::from_secs(*deadline));
                    operations.insert(index, world.coordinate(index, Some(deadline)));
                }
            }
            world.slice(&operations);
        }
        let can_be = others == 0 && feasible(&asked);
        feasible_ones += u64::from(can_be);
        for (index, (at, bytes, deadline)) in asked.iter().enumerate() {
            operations_in_them += u64::from(can_be);
            let job = &world.jobs[index];
            let released = job.released_at.expect("everyone is released");
            // With the whole disk it could still be done, unless that was too late when it asked.
            let latest = *deadline as f64 - bytes / DISK_BYTES_PER_SECOND;
            let promise = Nanos(((latest.max(*at as f64)) * 1e9) as u64);
            assert!(released <= promise, "schedule {seed}, operation {index}: {released} after {promise}");
            if can_be {
                let late_s = job.done_at.unwrap_or(f64::INFINITY) - *deadline as f64;
                late += u64::from(late_s > 1.0);
                latest_s = latest_s.max(late_s);
            }
        }
    }
    println!(
        "{schedules} schedules; {operations_in_them} operations in {feasible_ones} that the disk can make: {late} late by over a \
         slice, the latest by {latest_s:.1} s"
    );
    // An operation begins with a slice and shares are dealt by the slice, so in a schedule that leaves no time at all one may be
    // late by a little more than one.
    assert!(late * 100 <= operations_in_them, "{late} of {operations_in_them} late by more than a slice");
    assert!(latest_s <= 4.0, "late by {latest_s:.1} s");
}

/// Three coordinate, three say nothing, three step back: within each kind all are alike, and over many scenes it makes no
/// difference who is who.
#[test]
fn equal_tenants_get_equal_outcomes() {
    const SCENES: u64 = 60;
    let sizes = [300e6, 300e6, 300e6, 1e9, 1e9, 1e9, 1e9, 1e9, 1e9];
    let alone = sizes[0] / DISK_BYTES_PER_SECOND;
    let mut sums = [0.0; 9];
    for scene in 0..SCENES {
        let mut world = World::new(&EngineConfig::default(), DISK_BYTES_PER_SECOND, &sizes, scene, 0.0);
        let mut operations = BTreeMap::new();
        let deadline = Nanos::from_secs(10 + scene % 7);
        for place in 0..3 {
            let index = ((scene + place) % 3) as usize;
            world.ask(6 + index, Wish::SetLevel { level: Level::Low, lifetime: Lifetime::UntilReleased });
            operations.insert(index, world.coordinate(index, Some(Deadline::StartBefore(deadline))));
            world.now += Nanos(1);
        }
        for _ in 0..400 {
            world.slice(&operations);
        }
        let done: Vec<f64> = world.jobs.iter().map(|job| job.done_at.expect("it ends")).collect();
        sums.iter_mut().zip(&done).for_each(|(sum, done)| *sum += done);
        // Whoever is first, nobody is later than if all three had shared the disk from the deadline on.
        let last = done[..3].iter().copied().fold(0.0, f64::max);
        assert!(last <= deadline.as_secs_f64() + 3.0 * alone + 2.0, "scene {scene}: {done:.1?}");
        for kind in [&done[3..6], &done[6..9]] {
            let (least, most) = kind.iter().fold((f64::MAX, 0.0_f64), |(low, high), at| (low.min(*at), high.max(*at)));
            assert!(most <= least * 1.05, "scene {scene}: {done:.1?}");
        }
    }
    for kind in sums.chunks(3) {
        let mean = kind.iter().sum::<f64>() / 3.0;
        assert!(kind.iter().all(|sum| (sum / mean - 1.0).abs() < 0.05), "on average: {kind:.0?}");
    }
}

/// One short operation among a stream of shorter ones is not put off for ever.
#[test]
fn nobody_starves_behind_shorter_operations() {
    let sizes: Vec<f64> = std::iter::once(500e6).chain((0..60).map(|_| 50e6)).collect();
    let mut world = World::new(&EngineConfig::default(), DISK_BYTES_PER_SECOND, &sizes, 1, 0.0);
    world.jobs.iter_mut().for_each(|job| job.held = true);
    let mut operations = BTreeMap::new();
    let far = Some(Deadline::StartBefore(Nanos::from_secs(100_000)));
    operations.insert(0, world.coordinate(0, far));
    for index in 1..sizes.len() {
        operations.insert(index, world.coordinate(index, far));
        world.slice(&operations);
    }
    for _ in 0..60 {
        world.slice(&operations);
    }
    let released = world.jobs[0].released_at.expect("it was released");
    assert!(released <= Nanos::from_secs(40), "{released}");
    assert!(world.jobs.iter().all(|job| job.done_at.is_some()));
}

#[test]
fn what_is_cancelled_or_never_begun_makes_room() {
    let sizes = [400e6, 400e6, 400e6];
    let mut world = World::new(&EngineConfig::default(), DISK_BYTES_PER_SECOND, &sizes, 1, 0.0);
    world.jobs.iter_mut().for_each(|job| job.held = true);
    let far = Some(Deadline::StartBefore(Nanos::from_secs(100_000)));
    let operations = BTreeMap::new();
    for index in 0..3 {
        let id = world.coordinate(index, far);
        if index == 1 {
            world.ask(1, Wish::Cancel(id));
        }
    }
    world.slice(&operations);
    let first = (0..3).find(|index| world.jobs[*index].released_at.is_some()).expect("one begins");
    // It never touches the disk: as if its program had crashed.
    world.jobs[first].held = true;
    for _ in 0..15 {
        world.slice(&operations);
    }
    assert!(world.jobs[0].released_at.is_some() && world.jobs[2].released_at.is_some(), "the next had its turn");
}
