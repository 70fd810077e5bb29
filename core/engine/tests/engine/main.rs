//! The loop as a whole: modes, wake-ups, silence when nothing changes, and what holds for any order of events.

mod any_order;
mod background;
#[path = "../disk/mod.rs"]
mod disk;
mod jobs;
mod quiet;
mod takers;
mod taking_part;

use disk::{DISK, bfq_disk};
use minerva_engine::Engine;
use minerva_model::{
    BackEnd, CgroupRef, CreditLot, Device, DeviceFacts, DeviceId, DeviceSample, Effect, EngineConfig, EntryNumber,
    Event, Grant, Granted, IoCounters, Level, Lifetime, MicroCredits, Mode, Nanos, Outcome, Recalled, RefusalKind,
    Refused, RequestId, Sample, Skipped, Tenant, TenantHistory, TenantId, TenantIo, TenantKind, TenantRequest,
    WaitCounters, Wish,
};
use std::collections::BTreeMap;

fn config(mode: Mode) -> Event {
    Event::Configured(Box::new(EngineConfig { mode, ..EngineConfig::default() }))
}

fn device(id: DeviceId, bfq: bool) -> Device {
    let facts = DeviceFacts {
        elevator: Some(if bfq { "bfq" } else { "none" }.to_owned()),
        elevators_available: vec!["bfq".to_owned(), "none".to_owned()],
        bfq_low_latency: bfq.then_some(false),
        ..bfq_disk().facts
    };
    Device { id, name: format!("sd{}", id.minor), facts }
}

/// Some stand alone and some below a common group, whose weight follows theirs.
fn path(number: u64) -> String {
    if number < 3 { format!("tenant-{number}") } else { format!("above/tenant-{number}") }
}

fn seen(number: u64, history: Vec<TenantHistory>) -> Event {
    let tenant = Tenant {
        id: TenantId(number),
        name: format!("tenant-{number}"),
        kind: TenantKind::Cgroup,
        cgroup: CgroupRef { path: path(number), inode: number },
        group: None,
        weight_percent: 100,
        excluded: false,
        job: None,
        terms: minerva_model::Terms::default(),
        origin: minerva_model::Origin::default(),
    };
    Event::TenantSeen { tenant, history }
}

/// Cumulative megabytes of the disk's tenants, numbered from 1.
fn sample(megabytes: &[u64]) -> Sample {
    let counters = |megabytes: u64| IoCounters {
        read_bytes: megabytes * 1_000_000,
        read_ops: megabytes * 10,
        ..IoCounters::default()
    };
    let row = |(index, megabytes): (usize, &u64)| TenantIo {
        tenant: TenantId(index as u64 + 1),
        device: DISK,
        counters: counters(*megabytes),
        wait: None,
        served_ns: None,
    };
    let disk = DeviceSample {
        device: DISK,
        counters: counters(megabytes.iter().sum()),
        wait: WaitCounters::default(),
        busy_ns: 0,
        in_flight: 0,
        flushes: 0,
    };
    Sample { devices: vec![disk], io: megabytes.iter().enumerate().map(row).collect(), ..Sample::default() }
}

fn sampled(megabytes: &[u64]) -> Event {
    Event::Sampled(Box::new(sample(megabytes)))
}

fn drain(engine: &mut Engine) -> Vec<Effect> {
    std::iter::from_fn(|| engine.poll_effect()).collect()
}

fn count(effects: &[Effect], wanted: fn(&Effect) -> bool) -> usize {
    effects.iter().filter(|effect| wanted(effect)).count()
}

fn touches_kernel(effect: &Effect) -> bool {
    matches!(effect, Effect::Write(_) | Effect::Inspect(_))
}

/// Two tenants on one disk, configured, and the first sample taken at second 1.
fn engine(mode: Mode) -> Engine {
    let mut engine = Engine::new();
    engine.handle(Nanos::SECOND, config(mode));
    engine.handle(Nanos::SECOND, Event::DeviceSeen(device(DISK, true)));
    engine.handle(Nanos::SECOND, seen(1, Vec::new()));
    engine.handle(Nanos::SECOND, seen(2, Vec::new()));
    engine.handle(Nanos::SECOND, sampled(&[0, 0]));
    drain(&mut engine);
    engine
}

#[test]
fn wake_ups_come_with_the_slices_and_end_with_the_engine() {
    let mut engine = Engine::new();
    assert_eq!(engine.next_wakeup(), None);
    engine.handle(Nanos::from_secs(5), config(Mode::Shadow));
    assert_eq!(engine.next_wakeup(), Some((Nanos::from_secs(5), "the slice ends")));
    engine.handle(Nanos::from_millis(5_020), sampled(&[0]));
    assert_eq!(engine.next_wakeup().unwrap().0, Nanos::from_secs(6));
    engine.handle(Nanos::from_millis(9_700), sampled(&[0]));
    assert_eq!(engine.next_wakeup().unwrap().0, Nanos::from_secs(11), "no burst, and no stub of a slice");
    engine.handle(Nanos::from_secs(10), Event::Stopping);
    assert_eq!(engine.next_wakeup(), None);
}

#[test]
fn shadow_decides_and_observe_only_learns_and_neither_touches_the_kernel() {
    for (mode, decided) in [(Mode::Observe, 0), (Mode::Shadow, 2)] {
        let mut engine = engine(mode);
        engine.handle(Nanos::from_secs(2), sampled(&[30, 1]));
        let effects = drain(&mut engine);
        assert_eq!(count(&effects, |effect| matches!(effect, Effect::Decided(_))), decided, "{mode:?}");
        assert_eq!(count(&effects, |effect| matches!(effect, Effect::Remember(_))), 2, "{mode:?}");
        assert_eq!(count(&effects, touches_kernel), 0, "{mode:?}");
        assert_eq!(engine.contention(DISK), Some(2));
        assert_eq!(engine.decisions().count(), decided);
    }
}

#[test]
fn what_observe_learnt_is_told_when_the_mode_changes() {
    let mut engine = engine(Mode::Observe);
    engine.handle(Nanos::from_secs(2), sampled(&[30, 1]));
    engine.handle(Nanos::from_secs(2), config(Mode::Shadow));
    drain(&mut engine);
    engine.handle(Nanos::from_secs(3), sampled(&[30, 1]));
    assert_eq!(count(&drain(&mut engine), |effect| matches!(effect, Effect::Decided(_))), 2);
}

#[test]
fn a_slice_in_which_nothing_changed_has_no_effect() {
    let mut engine = engine(Mode::Shadow);
    for second in 2..60 {
        engine.handle(Nanos::from_secs(second), sampled(&[20 * second, 19 * second]));
    }
    drain(&mut engine);
    for second in 60..300 {
        engine.handle(Nanos::from_secs(second), sampled(&[20 * 59, 19 * 59]));
        let effects = drain(&mut engine);
        // Ten slices hold what changed just before the silence: rows in their turn, and the floor that sinks.
        assert!(effects.is_empty() || second < 70, "{second}: {effects:?}");
    }
}

#[test]
fn stopping_remembers_everything_once_and_then_only_listens() {
    let mut engine = engine(Mode::Shadow);
    for second in 2..5 {
        engine.handle(Nanos::from_secs(second), sampled(&[20 * second, second]));
    }
    drain(&mut engine);
    engine.handle(Nanos::from_secs(5), Event::Stopping);
    assert_eq!(count(&drain(&mut engine), |effect| matches!(effect, Effect::Remember(_))), 2);
    engine.handle(Nanos::from_secs(6), Event::Stopping);
    engine.handle(Nanos::from_secs(7), sampled(&[900, 900]));
    engine.handle(Nanos::from_secs(7), config(Mode::Enforce));
    assert!(drain(&mut engine).is_empty());
}

#[test]
fn places_that_cannot_be_read_are_one_finding() {
    let mut engine = engine(Mode::Shadow);
    let skipped = Skipped { place: "io.stat".to_owned(), why: "a line was cut".to_owned(), count: 4 };
    for second in 2..9 {
        let sample = Sample { skipped: vec![skipped.clone()], ..sample(&[0, 0]) };
        engine.handle(Nanos::from_secs(second), Event::Sampled(Box::new(sample)));
    }
    assert_eq!(count(&drain(&mut engine), |effect| matches!(effect, Effect::Found(_))), 1);
}

/// Answers everything as a kernel would that has weight files and accepts every write. Returns how many writes there were.
fn serve(engine: &mut Engine, now: Nanos, files: &mut BTreeMap<String, String>) -> usize {
    let mut writes = 0;
    serve_each(engine, now, files, |effect| writes += usize::from(matches!(effect, Effect::Write(_))));
    writes
}

/// The same; `look` sees every effect.
fn serve_each(engine: &mut Engine, now: Nanos, files: &mut BTreeMap<String, String>, mut look: impl FnMut(&Effect)) {
    while let Some(effect) = engine.poll_effect() {
        look(&effect);
        let (id, target, written) = match effect {
            Effect::Inspect(inspection) => (inspection.id, inspection.target, None),
            Effect::Write(write) => (write.id, write.target, Some(write.text)),
            _ => continue,
        };
        let file = files.entry(format!("{target:?}")).or_insert_with(|| "default 100\n".to_owned());
        if let Some(text) = written {
            *file = match text.ends_with("default") {
                true => "default 100\n".to_owned(),
                false => format!("default 100\n{text}\n"),
            };
        }
        engine.handle(now, Event::Answered { id, outcome: Outcome::Text(file.clone()) });
    }
}

#[test]
fn enforce_writes_what_changed_and_leaving_it_puts_everything_back() {
    for leave in [config(Mode::Shadow), Event::Stopping] {
        let (mut engine, mut files) = (engine(Mode::Enforce), BTreeMap::new());
        for second in 2..30 {
            engine.handle(Nanos::from_secs(second), sampled(&[20 * second, second / 3]));
            let writes = serve(&mut engine, Nanos::from_secs(second), &mut files);
            assert_eq!(writes, usize::from(second == 2), "one heavy tenant, one write; second {second}");
        }
        assert!(files.values().any(|file| file.contains("8:0 5\n")), "{files:?}");
        engine.handle(Nanos::from_secs(30), leave);
        serve(&mut engine, Nanos::from_secs(30), &mut files);
        assert!(files.values().all(|file| file == "default 100\n"), "{files:?}");
        let suitabilities: Vec<_> = engine.device_suitabilities().map(|(id, back_end, _)| (id, back_end)).collect();
        assert_eq!(suitabilities, [(DISK, BackEnd::Bfq)]);
    }
}

fn ask(key: &str, wish: Wish) -> Event {
    Event::Requested(TenantRequest { id: RequestId(key.to_owned()), tenant: TenantId(1), wish })
}

#[test]
fn a_level_is_written_before_the_tenant_hears_of_it_and_within_the_slice() {
    let (mut engine, mut files) = (engine(Mode::Enforce), BTreeMap::new());
    serve(&mut engine, Nanos::SECOND, &mut files);
    let wish = Wish::SetLevel { level: Level::Low, lifetime: Lifetime::UntilReleased };
    engine.handle(Nanos::from_millis(1_300), ask("a", wish));
    let effects: Vec<Effect> = std::iter::from_fn(|| engine.poll_effect()).collect();
    let place = |wanted: fn(&Effect) -> bool| effects.iter().position(wanted).expect("it is there");
    let (decided, inspected) = (place(|e| matches!(e, Effect::Decided(_))), place(|e| matches!(e, Effect::Inspect(_))));
    let (declared, granted) = (place(|e| matches!(e, Effect::Declare(_))), place(|e| matches!(e, Effect::Granted(_))));
    assert!(decided < inspected && inspected < declared && declared < granted, "{effects:?}");
}

#[test]
fn a_share_of_before_is_not_in_force_again_when_enforce_comes_back() {
    for away in [Mode::Observe, Mode::Shadow] {
        let (mut engine, mut files) = (engine(Mode::Enforce), BTreeMap::new());
        let wish = Wish::SetLevel { level: Level::Idle, lifetime: Lifetime::UntilReleased };
        let events = [ask("a", wish), config(away), ask("b", Wish::ReleaseLevel), config(Mode::Enforce)];
        for (second, event) in (2..).zip(events) {
            engine.handle(Nanos::from_secs(second), event);
            serve(&mut engine, Nanos::from_secs(second), &mut files);
            let is_stepping_back = second == 2;
            assert_eq!(files.values().any(|file| file.contains("8:0 ")), is_stepping_back, "{second}: {files:?}");
        }
        // Somebody else uses the disk, who would have it capped as well.
        for second in 6..9 {
            engine.handle(Nanos::from_secs(second), sampled(&[0, second]));
            serve(&mut engine, Nanos::from_secs(second), &mut files);
        }
        assert!(files.values().all(|file| !file.contains("8:0 1")), "{away:?}: {files:?}");
        let share = engine.decision(TenantId(1), DISK).map_or(100, |decision| decision.share.get());
        assert_eq!(share, 100, "{away:?}");
    }
}

#[test]
fn a_boost_is_spent_and_begins_only_with_the_commit() {
    let mut engine = engine(Mode::Enforce);
    let lots = vec![CreditLot { amount: MicroCredits::credits(60), expires_in: Nanos::from_secs(600) }];
    let recalled = Recalled { tenant: TenantId(1), lots, purchases: Vec::new(), declaration: None };
    engine.handle(Nanos::SECOND, Event::Recalled(Box::new(recalled)));
    let share = |engine: &Engine| engine.decision(TenantId(1), DISK).map_or(100, |decision| decision.share.get());
    let held = |engine: &Engine| engine.part(TenantId(1)).expect("known").held;
    let boost = || Wish::Boost { slices: 2, device: None };
    for (key, commits) in [("refused by the store", false), ("bought", true)] {
        engine.handle(Nanos::SECOND, ask(key, boost()));
        engine.handle(Nanos::SECOND, ask(key, boost()));
        let entries: Vec<EntryNumber> = drain(&mut engine)
            .into_iter()
            .filter_map(|effect| if let Effect::Ledger(entry) = effect { Some(entry.number) } else { None })
            .collect();
        assert_eq!((entries.len(), share(&engine), held(&engine)), (1, 100, MicroCredits::credits(10)));
        let entry = entries[0];
        let answer = match commits {
            true => Event::Committed { entry, fresh: true, known: None },
            false => Event::CommitFailed { entry, detail: "the disk is full".to_owned() },
        };
        engine.handle(Nanos::SECOND, answer);
        let effects = drain(&mut engine);
        if commits {
            assert!(effects.iter().any(|e| matches!(e, Effect::Granted(Granted { grant: Grant::Now, .. }))));
            assert_eq!((share(&engine), held(&engine)), (1_000, MicroCredits::credits(10)));
        } else {
            let kind = RefusalKind::NotCommitted;
            assert!(effects.iter().any(|e| matches!(e, Effect::Refused(Refused { kind: k, .. }) if *k == kind)));
            assert_eq!((share(&engine), held(&engine)), (100, MicroCredits::credits(60)));
        }
    }
    for second in 2..5 {
        engine.handle(Nanos::from_secs(second), sampled(&[0, 0]));
    }
    assert_eq!(share(&engine), 100, "two slices later it is over");
}

#[test]
fn steering_goes_on_from_a_snapshot_without_a_write() {
    let (mut original, mut files) = (engine(Mode::Enforce), BTreeMap::new());
    for second in 2..30 {
        let now = Nanos::from_secs(second);
        original.handle(now, sampled(&[20 * second, second / 3]));
        serve(&mut original, now, &mut files);
    }
    let mut restored = Engine::restored(&original.snapshot()).expect("a state");
    let mut theirs = files.clone();
    for second in 30..40 {
        let now = Nanos::from_secs(second);
        restored.handle(now, sampled(&[20 * second, second / 3]));
        assert_eq!(serve(&mut restored, now, &mut theirs), 0, "what is held stays");
    }
    restored.handle(Nanos::from_secs(40), Event::Stopping);
    serve(&mut restored, Nanos::from_secs(40), &mut theirs);
    assert!(theirs.values().all(|file| file == "default 100\n"), "what the original wrote is put back: {theirs:?}");
}

#[test]
fn bytes_that_are_no_state_are_refused() {
    let snapshot = engine(Mode::Enforce).snapshot();
    assert!(Engine::restored(&snapshot[..snapshot.len() - 1]).is_err());
    assert!(Engine::restored(&[&snapshot[..], b"more"].concat()).is_err());
    assert!(Engine::restored(b"{}").is_err());
}
