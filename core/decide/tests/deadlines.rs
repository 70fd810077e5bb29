//! Coordinated operations under random schedules: whoever the disk can serve in time begins in time, and equal tenants get
//! equal outcomes.

#![expect(clippy::disallowed_macros, reason = "measured figures are told with --nocapture")]
#![expect(clippy::expect_used, reason = "what a test cannot do without ends it, in its helpers too")]

mod rates;
mod world;

use minerva_model::{AccessKind, Deadline, Effect, EngineConfig, LearntBandwidth, Level, Lifetime, Nanos, Wish};
use rates::{Disk, Kind, Random, STEADY};
use std::collections::BTreeMap;
use world::{DISK, World};

const SLICE_SECONDS: f64 = 1.0;
/// Longer than any schedule takes on the slowest disk.
const SECONDS_MAX: u64 = 400;

/// A number from the environment, so that figures try other schedules than every test run does.
#[expect(clippy::disallowed_methods, reason = "the test asks, as proptest does")]
fn setting(variable: &str, otherwise: u64) -> u64 {
    let text = std::env::var(variable);
    text.map_or(otherwise, |text| text.parse().unwrap_or_else(|error| panic!("{variable} is \"{text}\": {error}")))
}

/// An operation of a schedule: when it is asked for, in seconds, its size, and by when it is to be what.
#[derive(Clone, Copy, Debug)]
struct Drawn {
    at: u64,
    bytes: f64,
    deadline: Option<Deadline>,
}

impl Drawn {
    /// Its deadline is fair for a disk like [`STEADY`]; what the disk delivers nobody knows who asks.
    fn draw(random: &mut Random) -> Self {
        let (at, bytes) = (random.below(6), 1e6 + random.below(200_000_000) as f64);
        let patience = 1 + random.below(20);
        let deadline = match random.below(8) {
            0 => None,
            1 => Some(Deadline::StartBefore(Nanos::from_secs(at + patience))),
            _ => Some(Deadline::DoneBefore(Nanos::from_secs(at + patience + (bytes / STEADY) as u64))),
        };
        Self { at, bytes, deadline }
    }

    /// By when it is to be done, in seconds.
    fn done_before(&self) -> Option<u64> {
        match self.deadline {
            Some(Deadline::DoneBefore(at)) => Some(at.0 / Nanos::SECOND.0),
            _ => None,
        }
    }

    /// It may be held no longer than this if the disk was never taken for faster than `fastest`: held by `DoneBefore`, it could
    /// still be done with the whole disk at that rate.
    fn held_until(&self, fastest: f64) -> Nanos {
        let asked = Nanos::from_secs(self.at);
        let latest = match self.deadline {
            None => asked + EngineConfig::default().coordination.hold_max,
            Some(Deadline::StartBefore(at)) => at,
            Some(Deadline::DoneBefore(at)) => at - Nanos((self.bytes / fastest * 1e9) as u64),
        };
        latest.max(asked)
    }
}

/// A drawn schedule: who asks for what, who says nothing, and the disk.
struct Schedule {
    seed: u64,
    disk: Disk,
    operations: Vec<Drawn>,
    /// Bytes of the tenants that say nothing.
    others: Vec<f64>,
}

/// What came of an operation.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    refused: bool,
    /// The slowest and the fastest rate that the disk had been taken for when the operation was last held, or refused.
    taken_for: (f64, f64),
    released_at: Nanos,
    done_at_s: f64,
}

impl Schedule {
    fn draw(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let operations = (0..=random.below(5)).map(|_| Drawn::draw(&mut random)).collect();
        let others = (0..random.below(4)).map(|_| 10e6 + random.below(1_000_000_000) as f64).collect();
        Self { seed, disk: Disk::draw(&mut random), operations, others }
    }

    fn world(&self) -> World {
        let sizes: Vec<f64> = self.operations.iter().map(|one| one.bytes).chain(self.others.iter().copied()).collect();
        let mut world = World::new(&EngineConfig::default(), self.disk.rate(0), &sizes, self.seed, 0.2);
        world.jobs.iter_mut().take(self.operations.len()).for_each(|job| job.held = true);
        world
    }

    fn is_done(&self, world: &World) -> bool {
        world.jobs.iter().take(self.operations.len()).all(|job| job.done_at.is_some())
    }

    /// Each asks when to begin, and begins at once if that is refused, as it is told to.
    fn coordinated(&self) -> Vec<Outcome> {
        let mut world = self.world();
        let assumed = EngineConfig::default().coordination.assumed_bytes_per_second as f64;
        if let Some(bytes_per_second) = self.disk.remembered {
            let access = AccessKind::SequentialRead;
            let learnt =
                LearntBandwidth { device: DISK, access, bytes_per_second, measured_seconds: 60.0, age: Nanos::ZERO };
            world.decider.bandwidth_recalled(Nanos::ZERO, &learnt);
        }
        let first = self.disk.remembered.unwrap_or(assumed);
        let mut taken_for = (first, first);
        let mut outcomes: Vec<Option<Outcome>> = vec![None; self.operations.len()];
        let mut operations = BTreeMap::new();
        let mut idle_slices = 0;
        for second in 0..SECONDS_MAX {
            for (index, drawn) in self.operations.iter().enumerate().filter(|(_, drawn)| drawn.at == second) {
                let id = world.coordinate(index, drawn.deadline);
                let refused = world.effects.iter().any(|effect| matches!(effect, Effect::Refused(one) if one.id == id));
                if refused {
                    (world.jobs[index].held, world.jobs[index].released_at) = (false, Some(world.now));
                } else {
                    operations.insert(index, id);
                }
                outcomes[index] = Some(Outcome { refused, taken_for, released_at: Nanos(u64::MAX), done_at_s: 0.0 });
            }
            let held = |world: &World, index: usize, drawn: &Drawn| drawn.at <= second && world.jobs[index].held;
            for (index, drawn) in self.operations.iter().enumerate() {
                if let Some(outcome) = outcomes[index].as_mut().filter(|_| held(&world, index, drawn)) {
                    outcome.taken_for = taken_for;
                }
            }
            let waited = self.operations.iter().enumerate().any(|(index, drawn)| held(&world, index, drawn));
            world.bytes_per_second = self.disk.rate(second as usize);
            let left = |world: &World| world.jobs.iter().map(|job| job.left).sum::<f64>();
            let before = left(&world);
            world.slice(&operations);
            let moved = before - left(&world);
            // What a slice in which the disk was busy for nine tenths delivered is what the disk is taken for from then on, in
            // a mean; the engine counts whole bytes.
            if moved > 0.89 * world.bytes_per_second {
                taken_for = (taken_for.0.min(moved - world.jobs.len() as f64), taken_for.1.max(moved));
            }
            // One slice passes to see who else begins; then an idle disk is used.
            idle_slices = if waited && moved == 0.0 { idle_slices + 1 } else { 0 };
            assert!(idle_slices <= 1, "schedule {}: held beside an idle disk at {second} s", self.seed);
            if second > 5 && self.is_done(&world) {
                break;
            }
        }
        let ended = outcomes.into_iter().zip(&world.jobs).map(|(outcome, job)| Outcome {
            released_at: job.released_at.expect("everyone is released"),
            done_at_s: job.done_at.expect("everyone is done"),
            ..outcome.expect("everyone asks")
        });
        ended.collect()
    }

    /// When each is done, in seconds, if nobody asks and all begin at once: what the engine does without coordination.
    fn uncoordinated(&self) -> Vec<f64> {
        let mut world = self.world();
        for second in 0..SECONDS_MAX {
            for (index, _) in self.operations.iter().enumerate().filter(|(_, drawn)| drawn.at == second) {
                world.jobs[index].held = false;
            }
            world.bytes_per_second = self.disk.rate(second as usize);
            world.slice(&BTreeMap::new());
            if second > 5 && self.is_done(&world) {
                break;
            }
        }
        world.jobs.iter().take(self.operations.len()).map(|job| job.done_at.expect("everyone is done")).collect()
    }

    /// What is to be done by a deadline is, if the disk serves nobody else.
    fn can_be(&self) -> bool {
        let dated = |drawn: &Drawn| Some((drawn.at, drawn.bytes, drawn.done_before()?));
        self.disk.can_do(&self.operations.iter().filter_map(dated).collect::<Vec<_>>())
    }
}

/// How late operations were done, in seconds; of those that were not it is negative.
#[derive(Debug, Default)]
struct Lateness(Vec<f64>);

impl Lateness {
    /// Those late by more than a slice, in order. Operations begin with one, and shares are dealt by it.
    fn late(&self) -> Vec<f64> {
        let mut late: Vec<f64> = self.0.iter().copied().filter(|late_s| *late_s > SLICE_SECONDS).collect();
        late.sort_by(f64::total_cmp);
        late
    }

    fn late_percent(&self) -> f64 {
        self.late().len() as f64 * 100.0 / self.0.len().max(1) as f64
    }
}

impl std::fmt::Display for Lateness {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let late = self.late();
        let (median, last) = (late.get(late.len() / 2).unwrap_or(&0.0), late.last().unwrap_or(&0.0));
        write!(out, "{} of {} late (median {median:.1} s, most {last:.1} s)", late.len(), self.0.len())
    }
}

/// Operations of one kind of disk, alone or beside others.
#[derive(Debug, Default)]
struct Tally {
    schedules: u32,
    refused: u32,
    coordinated: Lateness,
    uncoordinated: Lateness,
}

impl Tally {
    /// A line of the figure.
    fn figure(&self, kind: Kind, alone: bool) -> String {
        let Self { schedules, refused, coordinated, uncoordinated } = self;
        let (value, goal) = (coordinated.late_percent(), uncoordinated.late_percent());
        let (others, disk) = (if alone { "alone" } else { "beside others" }, kind.as_str());
        let unit = format!("% of operations done late by more than a slice, {others}, disk {disk}");
        let detail = format!(
            "in {schedules} schedules in which the disk could do all in time: {coordinated}, {refused} refused; \
             uncoordinated {uncoordinated}"
        );
        format!(
            r#"{{"id":"deadlines","value":{value:.2},"unit":"{unit}","goal":"less than {goal:.2}, as it is uncoordinated","#
        ) + &format!(r#""met":{},"detail":"{detail}"}}"#, value < goal)
    }
}

/// What always holds, whatever the disk does: see [`Drawn::held_until`]; nothing is refused that the slowest rate seen would
/// allow at twice that rate; and nobody is held beside an idle disk. When an operation is done then depends on the disk, which
/// no promise can bind: how late is measured, where the best order would have been late with none, and told.
#[test]
fn every_operation_begins_by_its_deadline_under_ten_thousand_schedules() {
    let (schedules, first) = (setting("PROPTEST_CASES", 10_000), setting("PROPTEST_RNG_SEED", 0));
    let mut tallies: BTreeMap<(Kind, bool), Tally> = BTreeMap::new();
    for seed in (0..schedules).map(|index| first.wrapping_add(index)) {
        let schedule = Schedule::draw(seed);
        let outcomes = schedule.coordinated();
        for (index, (drawn, outcome)) in schedule.operations.iter().zip(&outcomes).enumerate() {
            let Outcome { refused, taken_for: (slowest, fastest), released_at, .. } = *outcome;
            let until = drawn.held_until(fastest);
            assert!(released_at <= until, "schedule {seed}, operation {index}: {released_at} after {until}");
            if refused {
                let within = drawn.done_before().expect("only a deadline for its end can be too early") - drawn.at;
                assert!(drawn.bytes > 2.0 * slowest * within as f64, "schedule {seed}, operation {index}: refused");
            }
        }
        if schedule.can_be() {
            let tally = tallies.entry((schedule.disk.kind, schedule.others.is_empty())).or_default();
            tally.schedules += 1;
            let ended = outcomes.iter().zip(schedule.uncoordinated());
            for ((outcome, without_s), drawn) in ended.zip(&schedule.operations) {
                let Some(deadline) = drawn.done_before() else { continue };
                tally.refused += u32::from(outcome.refused);
                tally.coordinated.0.push(outcome.done_at_s - deadline as f64);
                tally.uncoordinated.0.push(without_s - deadline as f64);
            }
        }
    }
    println!("{schedules} schedules, every operation begun in time");
    for ((kind, alone), tally) in tallies {
        println!("{}", tally.figure(kind, alone));
    }
}

/// Three coordinate, three say nothing, three step back: within each kind all are alike, and over many scenes it makes no
/// difference who is who.
#[test]
fn equal_tenants_get_equal_outcomes() {
    equal_outcomes(true);
    equal_outcomes(false);
}

fn equal_outcomes(spares_silent: bool) {
    const SCENES: u64 = 60;
    let sizes = [300e6, 300e6, 300e6, 1e9, 1e9, 1e9, 1e9, 1e9, 1e9];
    let alone = sizes[0] / STEADY;
    let mut sums = [0.0; 9];
    for scene in 0..SCENES {
        let mut config = EngineConfig::default();
        config.coordination.spare_silent = spares_silent;
        let mut world = World::new(&config, STEADY, &sizes, scene, 0.0);
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
        // Whoever is first, nobody is later than if all three had shared the disk from the deadline on, where that may cost those
        // who say nothing; else than with equal parts.
        let last = done[..3].iter().copied().fold(0.0, f64::max);
        let most = if spares_silent { 9.0 } else { 3.0 };
        assert!(last <= deadline.as_secs_f64() + most * alone + 2.0, "scene {scene}: {done:.1?}");
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
    let mut world = World::new(&EngineConfig::default(), STEADY, &sizes, 1, 0.0);
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
    let mut world = World::new(&EngineConfig::default(), STEADY, &sizes, 1, 0.0);
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
