//! Malensek et al. 2016, Fig. 2 on a fluid disk: four tasks begin together, one steps back, one coordinates. Against equal weights, from
//! launch and with the waiting.

#![expect(clippy::disallowed_macros, reason = "measured figures are told with --nocapture")]

mod world;

use minerva_model::{Deadline, EngineConfig, Level, Lifetime, Nanos, Wish};
use std::collections::BTreeMap;
use world::World;

/// What a tenant does.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    Silent,
    StepsBack,
    Coordinates,
}

const SEED_SIZES: [f64; 4] = [200e6, 500e6, 3e9, 12e9];
const SEED_ROLES: [Role; 4] = [Role::Silent, Role::Coordinates, Role::Silent, Role::StepsBack];

/// When each was done, in seconds.
fn run(sizes: &[f64], roles: &[Role], deadline: fn(Nanos) -> Deadline, take_part: bool, seed: u64) -> Vec<f64> {
    let mut world = World::new(&EngineConfig::default(), 42e6, sizes, seed, if seed == 0 { 0.0 } else { 0.2 });
    let mut operations = BTreeMap::new();
    for (index, role) in roles.iter().enumerate().filter(|_| take_part) {
        match role {
            Role::Silent => {}
            Role::StepsBack => {
                world.ask(index, Wish::SetLevel { level: Level::Low, lifetime: Lifetime::UntilReleased });
            }
            Role::Coordinates => {
                operations.insert(index, world.coordinate(index, Some(deadline(Nanos::from_secs(20)))));
            }
        }
    }
    for _ in 0..100_000 {
        if world.jobs.iter().all(|job| job.done_at.is_some()) {
            break;
        }
        world.slice(&operations);
    }
    world.jobs.iter().map(|job| job.done_at.unwrap_or(f64::INFINITY)).collect()
}

/// Equal weights all the time, which need no decider: processor sharing.
fn equal(sizes: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by(|a, b| sizes[*a].total_cmp(&sizes[*b]));
    let (mut now, mut moved, mut done) = (0.0, 0.0, vec![0.0; sizes.len()]);
    for (rank, index) in order.iter().enumerate() {
        now += (sizes[*index] - moved) * (sizes.len() - rank) as f64 / 42e6;
        moved = sizes[*index];
        done[*index] = now;
    }
    done
}

fn shorter_percent(sizes: &[f64], done: &[f64]) -> Vec<f64> {
    equal(sizes).iter().zip(done).map(|(equal, done)| 100.0 * (1.0 - done / equal)).collect()
}

#[test]
fn the_scene_of_the_seed_gains_more_than_the_seed() {
    for seed in 0..20 {
        let done = run(&SEED_SIZES, &SEED_ROLES, Deadline::StartBefore, true, seed);
        let shorter = shorter_percent(&SEED_SIZES, &done);
        println!("seed {seed}: start before: {shorter:.0?} % shorter");
        // The paper's I/O times: 29, 38, 13 and 1 % shorter.
        // Where the disk deals exactly the goal is 40, 40, 30 and -3; a tenth of jitter either way may cost a slice.
        let slack = if seed == 0 { 0.0 } else { 5.0 };
        let goals = [40.0 - slack, 40.0 - slack, 30.0, -3.0];
        assert!(shorter.iter().zip(goals).all(|(shorter, goal)| *shorter >= goal), "{shorter:?}");
        let strict = run(&SEED_SIZES, &SEED_ROLES, Deadline::DoneBefore, true, seed);
        println!("seed {seed}: done before: {:.0?} % shorter", shorter_percent(&SEED_SIZES, &strict));
        assert!(strict[1] <= 21.0, "done by its deadline: {strict:?}");
    }
}

/// Sizes, orders and numbers of tenants: the mean over all tenants but those that step back is shorter, and who steps back
/// is not later than with equal weights, as it was the last in any case.
#[test]
fn the_gain_holds_for_4_to_16_tenants() {
    let (mut gains, mut back) = (Vec::new(), Vec::new());
    for tenants in [4, 6, 8, 12, 16] {
        for seed in 1..=20_u64 {
            let mut random = seed * 7_919 + tenants as u64;
            let mut next = || {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (random >> 40) as f64 / (1_u64 << 24) as f64
            };
            let mut roles: Vec<Role> = (0..tenants).map(|index| SEED_ROLES[index % 4]).collect();
            let mut sizes: Vec<f64> = (0..tenants).map(|index| SEED_SIZES[index % 4] * (0.5 + next())).collect();
            let by = (next() * tenants as f64) as usize;
            roles.rotate_left(by);
            sizes.rotate_left(by);
            let done = run(&sizes, &roles, Deadline::StartBefore, true, seed);
            let without = equal(&sizes);
            let mean = |times: &[f64], steps_back: bool| {
                let chosen: Vec<f64> = times
                    .iter()
                    .zip(&roles)
                    .filter(|(_, role)| (**role == Role::StepsBack) == steps_back)
                    .map(|(time, _)| *time)
                    .collect();
                chosen.iter().sum::<f64>() / chosen.len() as f64
            };
            gains.push(100.0 * (1.0 - mean(&done, false) / mean(&without, false)));
            back.push(100.0 * (1.0 - mean(&done, true) / mean(&without, true)));
        }
    }
    let spread = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        (values[0], values[values.len() / 2], values[values.len() - 1])
    };
    let (gain, back) = (spread(&mut gains), spread(&mut back));
    println!("mean completion, least / median / most: {gain:.1?} % shorter; of who steps back: {back:.1?} %");
    assert!(gain.0 >= 10.0 && gain.1 >= 25.0, "{gain:?}");
    assert!(back.0 >= -12.0, "{back:?}");
}

/// The part of the disk that all have to spare when each is to be done by its time, in seconds; negative where no schedule can. Who is
/// due first goes first: if any order keeps all of them, that one does (Jackson 1955).
fn spare_of_any_schedule(sizes: &[f64], due: &[f64]) -> f64 {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by(|a, b| due[*a].total_cmp(&due[*b]));
    let mut moved = 0.0;
    let spare = order.iter().map(|index| {
        moved += sizes[*index];
        1.0 - moved / 42e6 / due[*index]
    });
    spare.fold(f64::INFINITY, f64::min)
}

/// The paper's wording first: 40, 40 and 30 % shorter, who steps back at most 3 % longer, the one with a deadline *done* within 20 s.
#[test]
fn some_schedule_can_do_what_the_scene_was_first_asked_for() {
    let alone = equal(&SEED_SIZES);
    let first_asked: Vec<f64> = [0.6, 0.6, 0.7, 1.03].iter().zip(&alone).map(|(part, alone)| part * alone).collect();
    let due = [first_asked[0], first_asked[1].min(20.0), first_asked[2], first_asked[3]];
    // The last has nothing to spare but its 3 %; before it a sixth of the disk may go to whoever only steps back.
    let spare = spare_of_any_schedule(&SEED_SIZES, &due);
    let before_last = spare_of_any_schedule(&SEED_SIZES[..3], &due[..3]);
    assert!((0.02..0.04).contains(&spare) && (0.16..0.18).contains(&before_last), "{spare} {before_last}");
    // Shortest first is the best for each, and for all.
    let mut moved = 0.0;
    let best: Vec<f64> = SEED_SIZES
        .iter()
        .map(|size| {
            moved += size;
            moved / 42e6
        })
        .collect();
    println!(
        "the best of any schedule: {:.0?} % shorter, done after {best:.1?} s",
        shorter_percent(&SEED_SIZES, &best)
    );
    let shorter: Vec<i64> = shorter_percent(&SEED_SIZES, &best).iter().map(|percent| percent.round() as i64).collect();
    assert_eq!(shorter, [75, 59, 45, 0]);
    // What is too much to ask: the one with a deadline done before the first, and the first still sooner than with equal weights by 40 %.
    let too_much = [due[0], 11.9, due[2], due[3]];
    assert!(spare_of_any_schedule(&SEED_SIZES, &too_much) < 0.0);
}
