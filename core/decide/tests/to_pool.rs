//! Operations that are answered "write to the pool": when, and what is then kept of them.

#![expect(clippy::expect_used, reason = "what a test cannot do without ends it, in its helpers too")]

mod world;

use minerva_decide::DecideInput;
use minerva_model::{
    AccessKind, CoordinationSettings, Deadline, DeviceId, Effect, EngineConfig, Forecast, Grant, Granted, Horizon,
    Interval, Nanos, OperationRequest, Outlook, PoolOffer, RequestId, Signals, TenantId, TenantRequest, Wish,
};
use std::collections::BTreeMap;
use world::{DISK, World};

const ENDLESS: f64 = 1e13;
const MEMORY: PoolOffer = PoolOffer { left_bytes: 1 << 30, device: None };
const BYTES: u64 = 100 << 20;

fn world(tenants: usize) -> World {
    World::new(&EngineConfig::default(), 50e6, &vec![ENDLESS; tenants], 1, 0.0)
}

fn write(pool: Option<PoolOffer>) -> OperationRequest {
    let access = AccessKind::SequentialWrite;
    OperationRequest { device: Some(DISK), access, bytes: BYTES, deadline: None, pool }
}

/// What tenant 0 is answered.
fn answer(world: &mut World, wanted: OperationRequest) -> Grant {
    let asked = world.ask(0, Wish::Coordinate(wanted));
    let granted = world.effects.iter().rev().find_map(|effect| match effect {
        Effect::Granted(Granted { id, grant, .. }) if *id == asked => Some(*grant),
        _ => None,
    });
    granted.expect("an answer")
}

/// `tenants` of which all but the first use the disk.
fn beside(others: usize) -> World {
    let mut world = world(others + 1);
    world.jobs[0].held = true;
    (0..3).for_each(|_| world.slice(&BTreeMap::new()));
    world
}

#[test]
fn an_operation_goes_to_the_pool_where_others_use_its_disk_and_else_not() {
    assert_eq!(answer(&mut beside(0), write(Some(MEMORY))), Grant::Now, "nobody is there");
    assert_eq!(
        answer(&mut beside(1), write(Some(MEMORY))),
        Grant::Now,
        "one is no reason to wait, nor to go elsewhere"
    );
    assert_eq!(answer(&mut beside(3), write(Some(MEMORY))), Grant::ToPool);
    assert_eq!(answer(&mut beside(3), write(None)), Grant::OnCallback, "who offers none is not told to");
}

#[test]
fn a_pool_without_room_or_on_a_disk_as_crowded_is_passed_over() {
    let offers = [
        (PoolOffer { left_bytes: BYTES, device: None }, Grant::ToPool),
        (PoolOffer { left_bytes: BYTES - 1, device: None }, Grant::OnCallback),
        (PoolOffer { device: Some(DISK), ..MEMORY }, Grant::OnCallback),
        (PoolOffer { device: Some(DeviceId { major: 9, minor: 9 }), ..MEMORY }, Grant::ToPool),
    ];
    for (offer, expected) in offers {
        assert_eq!(answer(&mut beside(3), write(Some(offer))), expected, "{offer:?}");
    }
    let reads = OperationRequest { access: AccessKind::SequentialRead, ..write(Some(MEMORY)) };
    assert_eq!(answer(&mut beside(3), reads), Grant::OnCallback, "what is read lies where it lies");
}

#[test]
fn an_operation_that_would_wait_for_another_goes_to_the_pool() {
    let mut world = world(2);
    world.jobs[1].left = 1e9;
    world.coordinate(1, None);
    assert_eq!(answer(&mut world, write(Some(MEMORY))), Grant::ToPool);
    let off = CoordinationSettings { enabled: false, ..CoordinationSettings::default() };
    let config = EngineConfig { coordination: off, ..EngineConfig::default() };
    let mut world = World::new(&config, 50e6, &[ENDLESS; 4], 1, 0.0);
    (0..3).for_each(|_| world.slice(&BTreeMap::new()));
    assert_eq!(answer(&mut world, write(Some(MEMORY))), Grant::Now, "nothing is coordinated");
}

/// Two others that are not there yet are expected with this probability and skill.
fn foreseen(busy_permille: u32, skill: f64) -> Grant {
    let mut world = world(3);
    let none = Interval { value: 1e6, lower: 0.0, upper: 1e7, coverage_permille: 800 };
    let of = |tenant| Forecast {
        tenant: TenantId(tenant),
        device: DISK,
        horizon: Horizon::Pattern,
        read_bytes: none,
        write_bytes: none,
        busy_permille,
        skill,
        is_naive: false,
        made_at: Nanos::SECOND,
    };
    let outlook = Outlook::new(vec![of(1), of(2)]);
    world.decider.slice(Nanos::SECOND, DecideInput { signals: &Signals::default(), outlook });
    answer(&mut world, write(Some(MEMORY)))
}

#[test]
fn others_that_forecasts_with_skill_expect_count_as_if_they_were_there() {
    assert_eq!(foreseen(800, 0.4), Grant::ToPool);
    assert_eq!(foreseen(300, 0.4), Grant::Now, "it is not likely");
    assert_eq!(foreseen(800, 0.0), Grant::Now, "a forecast without skill says nothing");
}

#[test]
fn nothing_is_kept_of_it_and_asked_again_it_is_judged_again() {
    let mut world = beside(3);
    let id = RequestId("same".to_owned());
    let ask = |world: &mut World, pool| {
        let wish = Wish::Coordinate(OperationRequest {
            deadline: Some(Deadline::StartBefore(Nanos::from_secs(60))),
            ..write(pool)
        });
        let request = TenantRequest { id: id.clone(), tenant: TenantId(0), wish };
        world.decider.requested(world.now, &request, &Signals::default()).0
    };
    world.ask(1, Wish::Coordinate(write(None)));
    for _ in 0..2 {
        let effects = ask(&mut world, Some(MEMORY));
        let granted = Granted { id: id.clone(), tenant: TenantId(0), grant: Grant::ToPool };
        assert_eq!(effects, [Effect::Granted(granted)], "no declaration, and nothing under way");
        assert!(world.decider.part(TenantId(0)).expect("known").operations.is_empty());
    }
    // The pool took it not, or is full by now: under the same key it waits for the disk.
    let effects = ask(&mut world, None);
    assert!(matches!(effects.last(), Some(Effect::Granted(Granted { grant: Grant::OnCallback, .. }))), "{effects:?}");
}
