//! What tenants claim, and which disk they mean, from events alone: so a replay and a simulation see it as the daemon does.

use crate::{DISK, ask, config, device, drain, engine, sample, sampled, seen};
use minerva_engine::Engine;
use minerva_model::{
    AccessKind, CoordinationSettings, Deadline, Declaration, DeclaredOperation, DeviceId, Effect, EngineConfig, Event,
    Grant, Level, LevelClaims, Mode, Nanos, Operation, OperationRequest, Recalled, RefusalKind, Refused, RequestId,
    ScheduledClaim, SetClaim, TenantHistory, TenantId, UsageAverage, Wish,
};

const OTHER: DeviceId = DeviceId { major: 8, minor: 16 };

fn level(engine: &Engine) -> Level {
    engine.part(TenantId(1)).map_or(Level::Normal, |part| part.level)
}

#[test]
fn several_connections_a_set_level_and_a_schedule_are_one_level_and_each_ends_alone() {
    let mut engine = engine(Mode::Enforce);
    let set = Some(SetClaim { level: Level::Low, until: Some(Nanos::from_secs(5)) });
    let scheduled = Some(ScheduledClaim { level: Level::Normal, next: Some((Nanos::from_secs(7), Level::Idle)) });
    let claims = |held: &[Level]| LevelClaims { set, held: held.to_vec(), scheduled };
    let tell = |engine: &mut Engine, at: u64, held: &[Level]| {
        let event = Event::LevelClaimsChanged { tenant: TenantId(1), claims: claims(held) };
        engine.handle(Nanos::from_secs(at), event);
        level(engine)
    };
    engine.handle(Nanos::SECOND, ask("a", Wish::ClaimLevels(claims(&[Level::Lowest, Level::Low]))));
    assert!(drain(&mut engine).iter().any(|effect| matches!(effect, Effect::Granted(_))));
    assert_eq!(level(&engine), Level::Lowest);
    assert_eq!(tell(&mut engine, 2, &[Level::Low]), Level::Low, "one connection has gone");
    assert_eq!(engine.part(TenantId(1)).and_then(|part| part.level_until), None, "the other may last longer");
    assert_eq!(tell(&mut engine, 3, &[]), Level::Low);
    assert_eq!(engine.part(TenantId(1)).and_then(|part| part.level_until), Some(Nanos::from_secs(5)));
    drain(&mut engine);
    // Nobody tells the engine anything more: the level ends, and the schedule goes on, with the slices.
    let levels: Vec<Level> = (4..9)
        .map(|second| {
            engine.handle(Nanos::from_secs(second), sampled(&[second, second]));
            level(&engine)
        })
        .collect();
    assert_eq!(levels, [Level::Low, Level::Normal, Level::Normal, Level::Idle, Level::Idle]);
    let declared = drain(&mut engine).into_iter().filter_map(|effect| match effect {
        Effect::Declare(declaration) => Some(declaration.level),
        _ => None,
    });
    assert_eq!(declared.collect::<Vec<_>>(), [Level::Normal, Level::Idle], "each change is remembered");
}

/// What two tenants of two disks are told of an operation on no disk in particular.
#[test]
fn an_operation_without_a_disk_is_for_the_one_that_the_tenant_uses() {
    let operation =
        || OperationRequest { device: None, access: AccessKind::default(), bytes: 1 << 20, deadline: None, pool: None };
    let asked = |engine: &mut Engine, key: &str| {
        engine.handle(Nanos::SECOND, ask(key, Wish::Coordinate(operation())));
        let refused = drain(engine).into_iter().find_map(|effect| match effect {
            Effect::Refused(Refused { kind, message, .. }) => Some((kind, message)),
            _ => None,
        });
        let part = engine.part(TenantId(1)).expect("known");
        refused.map_or(Ok(part.operations.last().map(|(_, operation, _)| operation.device)), Err)
    };
    // The only disk there is.
    let mut alone = engine(Mode::Enforce);
    assert_eq!(asked(&mut alone, "a"), Ok(Some(DISK)));
    // Two, and nothing to go by.
    let mut two = Engine::new();
    two.handle(Nanos::SECOND, config(Mode::Enforce));
    for id in [DISK, OTHER] {
        two.handle(Nanos::SECOND, Event::DeviceSeen(device(id, true)));
    }
    two.handle(Nanos::SECOND, seen(1, Vec::new()));
    let message = "This tenant has used no disk yet, so say which one: 8:0, 8:16.".to_owned();
    assert_eq!(asked(&mut two, "a"), Err((RefusalKind::UnknownDevice, message)));
    // What is remembered of it.
    let usage = UsageAverage { recent_bytes_per_second: 0.0, long_term_bytes_per_second: 5e6 };
    let key = "cgroup:tenant-1#1".to_owned();
    let history = TenantHistory { key, device: OTHER, usage, disk_part: 0.0, group: 0, age: Nanos::ZERO };
    two.handle(Nanos::SECOND, seen(1, vec![history]));
    drain(&mut two);
    assert_eq!(asked(&mut two, "b"), Ok(Some(OTHER)));
    // What it does now counts more.
    for megabytes in [0, 30] {
        two.handle(Nanos::from_secs(2 + megabytes), Event::Sampled(Box::new(sample(&[megabytes]))));
    }
    drain(&mut two);
    assert_eq!(asked(&mut two, "c"), Ok(Some(DISK)));
}

#[test]
fn nobody_waits_outside_enforce() {
    let waits = |mode: Mode| {
        let mut engine = engine(mode);
        (2..5).for_each(|number| engine.handle(Nanos::SECOND, seen(number, Vec::new())));
        for second in 1..4 {
            engine.handle(Nanos::from_secs(1 + second), sampled(&[0, 9 * second, 9 * second, 9 * second]));
        }
        drain(&mut engine);
        let wish = OperationRequest {
            device: Some(DISK),
            access: AccessKind::default(),
            bytes: 1 << 20,
            deadline: None,
            pool: None,
        };
        engine.handle(Nanos::from_secs(4), ask("a", Wish::Coordinate(wish)));
        let granted = drain(&mut engine).into_iter().find_map(|effect| match effect {
            Effect::Granted(granted) => Some(granted.grant),
            _ => None,
        });
        granted.expect("an answer") != Grant::Now
    };
    assert_eq!([Mode::Observe, Mode::Shadow, Mode::Enforce].map(waits), [false, false, true]);
}

/// An engine that begins, and recalls an operation that waits for the disk; in which of the slices that follow it is told to begin, if
/// tenants 2 and 3 have read so many megabytes by then.
fn begins_in(coordination: CoordinationSettings, slice: Nanos, read: &[[u64; 2]]) -> Option<usize> {
    let mut engine = Engine::new();
    let mut config = EngineConfig { mode: Mode::Enforce, coordination, ..EngineConfig::default() };
    config.observe.slice = slice;
    engine.handle(Nanos::SECOND, Event::Configured(Box::new(config)));
    engine.handle(Nanos::SECOND, Event::DeviceSeen(device(DISK, true)));
    (1..4).for_each(|number| engine.handle(Nanos::SECOND, seen(number, Vec::new())));
    let deadline = Some(Deadline::StartBefore(Nanos::from_secs(60)));
    let operation = Operation { device: DISK, access: AccessKind::default(), bytes: 1 << 20, deadline };
    let waits =
        DeclaredOperation { request: RequestId("w".to_owned()), operation, asked_at: Nanos::ZERO, released: false };
    let declaration = Declaration { operations: vec![waits], ..Declaration::default() };
    let (lots, purchases) = (Vec::new(), Vec::new());
    let recalled = Recalled { tenant: TenantId(1), lots, purchases, declaration: Some(declaration) };
    engine.handle(Nanos::SECOND, Event::Recalled(Box::new(recalled)));
    engine.handle(Nanos::SECOND, sampled(&[0, 0, 0]));
    let begins = |effect: Effect| matches!(effect, Effect::Ready { .. });
    (1..).zip(read).find_map(|(number, [second, third])| {
        engine.handle(Nanos(Nanos::SECOND.0 + number as u64 * slice.0), sampled(&[0, *second, *third]));
        drain(&mut engine).into_iter().any(begins).then_some(number)
    })
}

#[test]
fn an_operation_that_is_resumed_waits_until_it_is_known_who_uses_the_disk() {
    let settings = CoordinationSettings { contention_accepted: 0, ..CoordinationSettings::default() };
    let tenth = Nanos::from_millis(100);
    // One of two that are busy is served only in the third tenth of a second.
    let late = [[0, 0], [0, 0], [9, 0], [18, 0], [27, 0], [36, 0], [45, 0], [54, 0]];
    assert_eq!(begins_in(settings, tenth, &late), None);
    let older = CoordinationSettings { watch_before_resuming: false, ..settings };
    assert_eq!(begins_in(older, tenth, &late), Some(1), "recordings made before replay as they were");
    // Nobody comes; and a slice of a second tells enough.
    assert_eq!(begins_in(settings, tenth, &[[0, 0]; 9]), Some(5));
    assert_eq!(begins_in(settings, Nanos::SECOND, &[[0, 0]; 9]), Some(1));
    assert_eq!(begins_in(settings, Nanos::SECOND, &[[9, 9], [18, 18], [18, 18], [18, 18]]), Some(3));
    // Busy throughout: it begins in time all the same.
    let busy: Vec<[u64; 2]> = (1..80).map(|second| [9 * second, 0]).collect();
    assert_eq!(begins_in(settings, Nanos::SECOND, &busy), Some(58));
}
