//! Plans of background work for people are those that are in force, whether they go by forecasts or not.

use super::{DISK, MIB, MIDNIGHT, configured, on_the_wall, run, sample, seen};
use minerva_engine::{Plan, Span};
use minerva_model::{BackgroundCost, BackgroundHold, BackgroundId, BackgroundQueue, Event, ForecastMode, Nanos};

const DAYS: u64 = 9;

/// In slices of five minutes somebody reads in the first half of each day, each time as much as it happens: what comes is told best by the
/// mean of some days.
fn days(mode: ForecastMode) -> Vec<(Nanos, Event)> {
    let mut events = vec![(Nanos::SECOND, configured(mode, Nanos::from_secs(300))), (Nanos::SECOND, seen(1, None))];
    let (mut read, mut chance) = (0, 1_u64);
    for slice in 0..DAYS * 288 {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        read += if slice % 288 < 144 { (3_000 + (chance >> 33) % 3_000) * MIB } else { (chance >> 33) % 300 * MIB };
        let mut sample = sample(&[read]);
        sample.devices[0].busy_ns = read / MIB * 40_000_000;
        events.push((Nanos::from_secs(slice * 300 + 2), Event::Sampled(Box::new(sample))));
    }
    on_the_wall(events, MIDNIGHT)
}

/// After days on which somebody read in the first half of each: the plan that people are shown.
fn shown(mode: ForecastMode) -> Plan {
    let mut events = days(mode);
    let queue = BackgroundQueue {
        id: BackgroundId(1),
        name: "scrub".to_owned(),
        device: DISK,
        cgroup: "background".to_owned(),
        priority: 0,
        added: Nanos::ZERO,
        due: Some(Nanos::from_secs((DAYS + 1) * 86_400)),
        given: None,
        is_paused: false,
        hold: BackgroundHold::Stop,
        cost: BackgroundCost { seconds_per_item: 1.0, measured_seconds: 0.0, slow_down: None },
        done_items: 0.0,
        total_items: Some(30_000.0),
    };
    events.insert(1, (Nanos::SECOND, Event::BackgroundSet(Box::new(queue))));
    let (engine, _) = run(events);
    let is_scored = engine.outlook().loads().iter().any(|load| load.skill_day > 0.0);
    assert_eq!(is_scored, mode != ForecastMode::Off);
    engine.background_planning().plan(DISK, Span::Day, 24).0
}

#[test]
fn the_plan_that_people_see_goes_by_forecasts_only_where_the_one_in_force_does() {
    let without = shown(ForecastMode::Off);
    assert_eq!(shown(ForecastMode::Shadow), without);
    assert_ne!(shown(ForecastMode::On), without);
}
