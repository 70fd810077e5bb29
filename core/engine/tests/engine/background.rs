//! Background work in the loop: what it is told is what a replay tells, and who works is at level `idle`.

use super::{DISK, config, device, drain, sample, sampled, seen};
use minerva_engine::{Engine, replay};
use minerva_model::{
    BackgroundCost, BackgroundHold, BackgroundId, BackgroundOrder, BackgroundPace, BackgroundQueue, BackgroundReport,
    BackgroundSettings, BackgroundState, DeviceId, DiskCalibration, Effect, EngineConfig, Event, Mode, Nanos, TenantId,
};

pub(crate) const OTHER_DISK: DeviceId = DeviceId { major: 8, minor: 16 };

/// Carried out by the second tenant.
fn queue(hold: BackgroundHold) -> Event {
    Event::BackgroundSet(Box::new(queue_of(hold)))
}

pub(crate) fn queue_of(hold: BackgroundHold) -> BackgroundQueue {
    BackgroundQueue {
        id: BackgroundId(1),
        name: "scrub".to_owned(),
        device: DISK,
        cgroup: "tenant-2".to_owned(),
        priority: 0,
        added: Nanos::ZERO,
        due: None,
        given: None,
        is_paused: false,
        hold,
        cost: BackgroundCost { seconds_per_item: 1.0, measured_seconds: 0.0, slow_down: None },
        done_items: 0.0,
        total_items: Some(100.0),
    }
}

fn report(second: u64) -> Event {
    Event::BackgroundReported(report_of(second))
}

pub(crate) fn report_of(second: u64) -> BackgroundReport {
    BackgroundReport {
        id: BackgroundId(1),
        state: if second < 20 { BackgroundState::Running } else { BackgroundState::Done },
        done_items: second as f64,
        total_items: Some(100.0),
        tied_bytes: 4096.0,
        ran: Nanos::from_millis(700),
        used_bytes: 1 << 30,
        size_bytes: 1 << 40,
        file_system: None,
        processors: None,
        gets_on: None,
        is_beside_others: false,
        ran_beside: Nanos::ZERO,
        beside: None,
    }
}

/// A reader and background work, both at the disk.
fn events(hold: BackgroundHold) -> Vec<(Nanos, Event)> {
    let mut events: Vec<(Nanos, Event)> = [
        config(Mode::Enforce),
        Event::DeviceSeen(device(DISK, true)),
        queue(hold),
        seen(1, Vec::new()),
        seen(2, Vec::new()),
    ]
    .into_iter()
    .map(|event| (Nanos::SECOND, event))
    .collect();
    for second in 1..25 {
        let now = Nanos::from_secs(second);
        events.push((now, report(second)));
        events.push((now, sampled(&[second * 50, second * 20])));
    }
    events.push((Nanos::from_secs(25), Event::BackgroundGone(BackgroundId(1))));
    events
}

fn orders(effects: &[(Nanos, Effect)]) -> Vec<(u64, BackgroundPace)> {
    let order = |(now, effect): &(Nanos, Effect)| match effect {
        Effect::Background(BackgroundOrder { pace, .. }) => Some((now.as_secs_f64() as u64, *pace)),
        _ => None,
    };
    effects.iter().filter_map(order).collect()
}

#[test]
fn a_replay_and_an_engine_that_goes_on_from_a_snapshot_order_the_same() {
    let events = events(BackgroundHold::Stop);
    let told = replay(events.iter().cloned());
    assert_eq!(orders(&told), [(1, BackgroundPace::Gaps), (20, BackgroundPace::Hold)]);
    assert!(told.iter().any(|(_, effect)| matches!(effect, Effect::BackgroundLearnt { .. })));
    let text = serde_json::to_string(&events).expect("JSON");
    let read: Vec<(Nanos, Event)> = serde_json::from_str(&text).expect("events");
    assert_eq!(replay(read.into_iter()), told);
    let (before, after) = events.split_at(20);
    let mut engine = Engine::new();
    let mut effects = Vec::new();
    for (now, event) in before.iter().cloned() {
        engine.handle(now, event);
        effects.extend(drain(&mut engine).into_iter().map(|effect| (now, effect)));
    }
    let mut engine = Engine::restored(&engine.snapshot()).expect("an engine");
    for (now, event) in after.iter().cloned() {
        engine.handle(now, event);
        effects.extend(drain(&mut engine).into_iter().map(|effect| (now, effect)));
    }
    assert_eq!(effects, told);
}

#[test]
fn who_works_in_the_background_is_at_idle_and_capped_only_where_it_cannot_be_stopped() {
    for (hold, is_capped) in [(BackgroundHold::Stop, false), (BackgroundHold::Cap, true)] {
        let mut engine = Engine::new();
        let mut asks_for_caps = false;
        for (now, event) in events(hold).into_iter().take(20) {
            engine.handle(now, event);
            // What holds the cap is looked at before it is written.
            asks_for_caps |= drain(&mut engine).iter().any(|effect| format!("{effect:?}").contains("IoMax"));
        }
        let decision = engine.decision(TenantId(2), DISK).expect("a decision");
        assert!(decision.is_only_when_idle(), "{decision}");
        assert!(!engine.decision(TenantId(1), DISK).expect("a decision").is_only_when_idle());
        assert_eq!(asks_for_caps, is_capped, "{hold:?}");
    }
}

#[test]
fn work_that_takes_time_from_others_goes_before_them_where_it_is_stopped_for_the_rest() {
    let share_at = |hold, has_weights, background, is_beside_others| {
        let due = Some(Nanos::from_secs(300));
        let queue = BackgroundQueue { due, given: due, ..queue_of(hold) };
        let mut engine = Engine::new();
        let configured = EngineConfig { mode: Mode::Enforce, background, ..EngineConfig::default() };
        for event in [
            Event::Configured(Box::new(configured)),
            Event::DeviceSeen(device(DISK, has_weights)),
            Event::BackgroundSet(Box::new(queue)),
            seen(1, Vec::new()),
            seen(2, Vec::new()),
        ] {
            engine.handle(Nanos::SECOND, event);
        }
        for second in 1..60 {
            let now = Nanos::from_secs(second);
            let report = BackgroundReport { done_items: 0.0, ran: Nanos::ZERO, is_beside_others, ..report_of(1) };
            engine.handle(now, Event::BackgroundReported(report));
            // It was at the disk once, and waits since.
            let mut slice = sample(&[second * 50, second.min(2)]);
            slice.devices[0].busy_ns = second * 1_000_000_000;
            engine.handle(now, Event::Sampled(Box::new(slice)));
        }
        let pace = engine.background().next().map(|work| work.order.pace);
        assert!(matches!(pace, Some(BackgroundPace::Share(_))), "{pace:?}");
        engine.decision(TenantId(2), DISK).expect("a decision").share.get()
    };
    let share = |hold, has_weights, background| share_at(hold, has_weights, background, false);
    let default = BackgroundSettings::default();
    assert_eq!(share(BackgroundHold::Stop, true, default), 1_000);
    assert!(share_at(BackgroundHold::Stop, true, default, true) <= 100, "at a limit it is not stopped");
    assert!(share(BackgroundHold::Cap, true, default) <= 100, "what is not stopped would have it all the time");
    assert!(share(BackgroundHold::Stop, false, default) <= 100, "where shares are caps it has none");
    let before = BackgroundSettings { goes_before_others: false, ..default };
    assert!(share(BackgroundHold::Stop, true, before) <= 100, "as in recordings of earlier versions");
}

#[test]
fn what_ends_beside_others_at_a_limit_keeps_its_level_until_it_is_stopped_and_goes_before_nobody() {
    let mut engine = Engine::new();
    for event in [
        config(Mode::Enforce),
        Event::DeviceSeen(device(DISK, true)),
        queue(BackgroundHold::Stop),
        seen(1, Vec::new()),
        seen(2, Vec::new()),
    ] {
        engine.handle(Nanos::SECOND, event);
    }
    for (second, is_beside_others) in [(1, false), (2, true), (3, true), (4, false)] {
        let now = Nanos::from_secs(second);
        let report = BackgroundReport { is_beside_others, ..report_of(second) };
        engine.handle(now, Event::BackgroundReported(report));
        engine.handle(now, sampled(&[second * 50, second * 2]));
        let pace = engine.background().next().map(|work| work.order.pace);
        assert_eq!(pace, Some(BackgroundPace::Gaps));
        let decision = engine.decision(TenantId(2), DISK).expect("a decision");
        assert_eq!(decision.is_only_when_idle(), !is_beside_others, "{second}: {decision}");
        assert!(decision.share.get() <= 100, "{second}: {decision}");
    }
}

#[test]
fn a_disk_is_not_calibrated_while_one_who_must_not_be_stopped_uses_it() {
    let is_calibrated = |background, megabytes_of_work: u64| {
        let configured = EngineConfig { mode: Mode::Observe, background, ..EngineConfig::default() };
        let begin = [
            Event::Configured(Box::new(configured)),
            Event::DeviceSeen(device(DISK, true)),
            queue(BackgroundHold::Cap),
            seen(1, Vec::new()),
            seen(2, Vec::new()),
            Event::BackgroundCalibrate { device: DISK, length: Nanos::from_secs(15) },
        ];
        let slices = (1..20).map(|second| {
            let mut slice = sample(&[second * 50, second * megabytes_of_work]);
            slice.devices[0].busy_ns = second * 600_000_000;
            (second, Event::Sampled(Box::new(slice)))
        });
        let events = begin.into_iter().map(|event| (1, event)).chain(slices);
        let told = replay(events.map(|(second, event)| (Nanos::from_secs(second), event)));
        told.iter().any(|(_, effect)| matches!(effect, Effect::BackgroundCalibrated { .. }))
    };
    assert!(is_calibrated(BackgroundSettings::default(), 0));
    assert!(!is_calibrated(BackgroundSettings::default(), 20));
    assert!(is_calibrated(BackgroundSettings::absent(), 20), "in recordings of earlier versions");
}

/// Requests a second of others, as they are seen beside a debt of the second tenant's, which reads as the first one does. Both read 20 MB a
/// second, ten requests each.
fn seen_beside_a_debt(background: BackgroundSettings, owed_at: DeviceId, more: Option<Event>) -> f64 {
    let configured = EngineConfig { mode: Mode::Observe, background, ..EngineConfig::default() };
    let debt = BackgroundQueue { id: BackgroundId(2), device: owed_at, ..queue_of(BackgroundHold::Told) };
    let mut engine = Engine::new();
    let begin = [
        Event::Configured(Box::new(configured)),
        Event::DeviceSeen(device(DISK, true)),
        Event::DeviceSeen(device(OTHER_DISK, true)),
        Event::BackgroundSet(Box::new(debt)),
        seen(1, Vec::new()),
        seen(2, Vec::new()),
    ];
    begin.into_iter().chain(more).for_each(|event| engine.handle(Nanos::SECOND, event));
    for second in 1..40 {
        let mut slice = sample(&[second * 20, second * 20]);
        slice.devices[0].busy_ns = second * 600_000_000;
        engine.handle(Nanos::from_secs(second), Event::Sampled(Box::new(slice)));
    }
    engine.disk_serves(DISK).map_or(0.0, |serves| serves.requests_per_second)
}

#[test]
fn what_a_tenant_does_is_work_only_on_the_disk_for_which_it_owes_some_and_while_that_may_be_done() {
    let of_operator = BackgroundQueue { cgroup: "minerva/background-b1".to_owned(), ..queue_of(BackgroundHold::Stop) };
    let of_operator = || Some(Event::BackgroundSet(Box::new(of_operator.clone())));
    let done = BackgroundReport { id: BackgroundId(2), state: BackgroundState::Done, ..report_of(1) };
    let done = || Some(Event::BackgroundReported(done));
    let seen = |background, owed_at, more| (seen_beside_a_debt(background, owed_at, more) / 100.0).round();
    let default = BackgroundSettings::default();
    assert_eq!(seen(default, DISK, None), 2.0, "it may be done");
    assert_eq!(seen(default, OTHER_DISK, of_operator()), 4.0, "it is owed elsewhere");
    assert_eq!(seen(default, DISK, of_operator()), 4.0, "the operator's work goes first");
    assert_eq!(seen(default, DISK, done()), 4.0, "it is done");
    let before = BackgroundSettings { debts_are_told_apart: false, ..default };
    assert_eq!(seen(before, OTHER_DISK, of_operator()), 2.0, "as in recordings of earlier versions");
}

#[test]
fn what_a_disk_serves_and_its_calibration_are_gone_with_it() {
    for background in [BackgroundSettings::default(), BackgroundSettings::absent()] {
        let configured = EngineConfig { mode: Mode::Observe, background, ..EngineConfig::default() };
        let calibration =
            DiskCalibration { bytes_per_busy_second: 1e8, requests_per_second: 100.0, busy_seconds: 60.0 };
        let mut engine = Engine::new();
        for event in [
            Event::Configured(Box::new(configured)),
            Event::DeviceSeen(device(DISK, true)),
            queue(BackgroundHold::Stop),
            Event::BackgroundCalibrated { device: DISK, calibration },
            Event::BackgroundCalibrate { device: DISK, length: Nanos::from_secs(60) },
            Event::DeviceGone(DISK),
            // Another gets its number.
            Event::DeviceSeen(device(DISK, true)),
        ] {
            engine.handle(Nanos::SECOND, event);
        }
        let stays = !background.forgets_gone_disks;
        assert_eq!((engine.disk_serves(DISK).is_some(), engine.calibrating_left(DISK).is_some()), (stays, stays));
    }
}
