//! Forecasts in the loop: who is forecast, who sees it, what is kept for the next start, and that a replay is the same.

use expect_test::expect;
use minerva_engine::{Engine, replay};
use minerva_model::{
    CgroupRef, DeviceId, DeviceSample, DeviceSpace, Effect, EngineConfig, Event, FindingKind, FittedModel, Forecast,
    ForecastMode, ForecastSettings, Horizon, IoCounters, LoadOf, Mode, ModelKind, Nanos, Origin, Outlook, Sample,
    Tenant, TenantId, TenantIo, TenantKind, TenantUsage, Terms, WaitCounters,
};
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop, prop_assert_eq, prop_oneof, proptest};

#[path = "forecasts/at_once.rs"]
mod at_once;
#[path = "forecasts/crowd.rs"]
mod crowd;
#[path = "forecasts/plans.rs"]
mod plans;
#[path = "forecasts/turned_off.rs"]
mod turned_off;

const DISK: DeviceId = DeviceId { major: 8, minor: 0 };
const MIB: u64 = 1 << 20;

fn configured(forecast: ForecastMode, slice: Nanos) -> Event {
    let mut config = EngineConfig { mode: Mode::Shadow, ..EngineConfig::default() };
    config.forecast =
        ForecastSettings { mode: forecast, keep_every: Nanos::from_secs(120), ..ForecastSettings::default() };
    config.observe.slice = slice;
    Event::Configured(Box::new(config))
}

fn seen(number: u64, rule: Option<ForecastMode>) -> Event {
    let tenant = Tenant {
        id: TenantId(number),
        name: format!("job-{number}"),
        kind: TenantKind::Cgroup,
        cgroup: CgroupRef { path: format!("job-{number}"), inode: number },
        group: None,
        weight_percent: 100,
        excluded: false,
        job: None,
        terms: Terms { forecast: rule, ..Terms::default() },
        origin: Origin::default(),
    };
    Event::TenantSeen { tenant, history: Vec::new() }
}

fn read(bytes: u64) -> IoCounters {
    IoCounters { read_bytes: bytes, read_ops: bytes / 4096, ..IoCounters::default() }
}

/// Cumulative bytes that tenants from number 1 on have read.
fn sample(bytes: &[u64]) -> Sample {
    let row = |(index, bytes): (usize, &u64)| TenantIo {
        tenant: TenantId(index as u64 + 1),
        device: DISK,
        counters: read(*bytes),
        wait: None,
        served_ns: None,
    };
    let disk = DeviceSample {
        device: DISK,
        counters: read(bytes.iter().sum()),
        wait: WaitCounters::default(),
        busy_ns: 0,
        in_flight: 0,
        flushes: 0,
    };
    Sample { devices: vec![disk], io: bytes.iter().enumerate().map(row).collect(), ..Sample::default() }
}

/// Reads for five seconds of every twenty; the second tenant as much, shifted by ten.
fn periodic(second: u64) -> Vec<u64> {
    let read = |second: u64| (second / 20 * 5 + (second % 20).min(5)) * 10 * MIB;
    vec![read(second), read(second + 10) - read(10)]
}

/// What an engine is told when two periodic readers run for so many seconds.
fn readers(mode: ForecastMode, rule: Option<ForecastMode>, seconds: u64) -> Vec<(Nanos, Event)> {
    let mut events = vec![
        (Nanos::SECOND, configured(mode, Nanos::SECOND)),
        (Nanos::SECOND, seen(1, None)),
        (Nanos::SECOND, seen(2, rule)),
    ];
    events.extend(
        (0..seconds).map(|second| (Nanos::from_secs(second + 1), Event::Sampled(Box::new(sample(&periodic(second)))))),
    );
    events
}

/// The first Monday of 2010, at midnight.
const MIDNIGHT: u64 = 14_613 * 86_400;

/// The same with a wall clock, which shows `at` at the first second.
fn on_the_wall(mut events: Vec<(Nanos, Event)>, at: u64) -> Vec<(Nanos, Event)> {
    for (now, event) in &mut events {
        if let Event::Sampled(sample) = event {
            sample.wall_seconds = Some(at + now.0 / 1_000_000_000);
        }
    }
    events
}

fn run(events: Vec<(Nanos, Event)>) -> (Engine, Vec<Effect>) {
    let mut engine = Engine::new();
    let mut effects = Vec::new();
    for (now, event) in events {
        engine.handle(now, event);
        effects.extend(std::iter::from_fn(|| engine.poll_effect()));
    }
    (engine, effects)
}

fn kept(effects: &[Effect]) -> Vec<FittedModel> {
    effects
        .iter()
        .filter_map(|effect| if let Effect::KeepModel(model) = effect { Some(model.clone()) } else { None })
        .collect()
}

fn shown(outlook: &Outlook) -> String {
    let line = |row: &Forecast| {
        let mib = [row.read_bytes.value, row.read_bytes.lower, row.read_bytes.upper].map(|bytes| bytes / MIB as f64);
        let (who, horizon) = (row.tenant, row.horizon.as_str());
        let [value, lower, upper] = mib;
        let (busy, skill) = (row.busy_permille, row.skill);
        format!("{who} {horizon}: {value:.1} MiB ({lower:.1} to {upper:.1}), busy {busy} of 1000, skill {skill:.2}\n")
    };
    outlook.forecasts().iter().map(line).collect()
}

#[test]
fn a_periodic_reader_is_foreseen_with_skill() {
    let (engine, _) = run(readers(ForecastMode::Shadow, None, 601));
    // The next slice is the first of one's five seconds; the other is in the midst of its pause.
    expect![[r#"
        t1 next-slice: 10.0 MiB (0.0 to 10.0), busy 999 of 1000, skill 0.53
        t1 pattern: 50.0 MiB (38.7 to 50.0), busy 1000 of 1000, skill 0.66
        t2 next-slice: 0.0 MiB (0.0 to 0.0), busy 0 of 1000, skill 0.54
        t2 pattern: 50.0 MiB (38.7 to 50.0), busy 1000 of 1000, skill 0.66
        t2 session: 50.0 MiB (0.0 to 50.0), busy 1000 of 1000, skill 0.00
    "#]]
    .assert_eq(&shown(engine.outlook()));
}

#[test]
fn no_forecasts_are_made_where_none_are_wanted() {
    let (engine, effects) = run(readers(ForecastMode::Off, None, 200));
    assert!(engine.outlook().is_empty() && kept(&effects).is_empty());
    let (engine, _) = run(readers(ForecastMode::Shadow, Some(ForecastMode::Off), 200));
    assert!(!engine.outlook().is_empty());
    assert!(engine.outlook().forecasts().iter().all(|row| row.tenant == TenantId(1)), "the other's rule says off");
    let (mut engine, _) = run(readers(ForecastMode::Off, Some(ForecastMode::On), 200));
    assert!(engine.outlook().forecasts().iter().all(|row| row.tenant == TenantId(2)) && !engine.outlook().is_empty());
    assert_eq!([1, 2].map(|id| engine.forecast_mode(TenantId(id))), [ForecastMode::Off, ForecastMode::On]);
    engine.handle(Nanos::from_secs(201), Event::TenantGone(TenantId(2)));
    engine.handle(Nanos::from_secs(202), Event::Sampled(Box::new(sample(&periodic(201)))));
    assert!(engine.outlook().is_empty());
}

/// In `shadow` everything else is as if there were none.
#[test]
fn decisions_do_not_see_forecasts_in_shadow_mode() {
    let without = |mode| {
        let (_, effects) = run(readers(mode, None, 400));
        let is_kept = |effect: &Effect| matches!(effect, Effect::KeepModel(_));
        effects.into_iter().filter(|effect| !is_kept(effect)).collect::<Vec<_>>()
    };
    assert_eq!(without(ForecastMode::Shadow), without(ForecastMode::Off));
}

#[test]
fn fitted_models_are_kept_at_times_and_at_the_end_and_taken_over_by_the_next() {
    let mut events = on_the_wall(readers(ForecastMode::Shadow, None, 1_300), MIDNIGHT);
    events.push((Nanos::from_secs(1_301), Event::Stopping));
    let (_, effects) = run(events);
    let models = kept(&effects);
    let times = |kind| models.iter().filter(|model| model.kind == kind).count();
    let all = ModelKind::ALL.map(times);
    assert!(all.iter().all(|times| (1..=11).contains(times)), "once in two minutes at most: {all:?}");
    let last = |kind| models.iter().rfind(|model| model.kind == kind).expect("kept").clone();

    let mut events = vec![(Nanos::SECOND, configured(ForecastMode::Shadow, Nanos::SECOND))];
    events.extend(ModelKind::ALL.map(|kind| (Nanos::SECOND, Event::ModelRecalled(last(kind)))));
    events.push((Nanos::SECOND, Event::Stopping));
    assert_eq!(run(events).1, [], "what was taken over is not kept again");

    let mut damaged = last(ModelKind::NextSlice);
    damaged.bytes[20] ^= 1;
    let event = (Nanos::SECOND, Event::ModelRecalled(damaged));
    let (_, effects) = run(vec![(Nanos::SECOND, configured(ForecastMode::Shadow, Nanos::SECOND)), event]);
    let [Effect::Found(finding)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(finding.kind, FindingKind::ModelDamaged);
}

#[test]
fn of_slices_shorter_than_a_second_the_next_slice_is_told_in_bytes_of_a_slice() {
    let mut events = vec![
        (Nanos::SECOND, configured(ForecastMode::Shadow, Nanos::from_millis(250))),
        (Nanos::SECOND, seen(1, None)),
    ];
    events.extend(
        (0..400)
            .map(|slice| (Nanos::from_millis(1_000 + 250 * slice), Event::Sampled(Box::new(sample(&[slice * MIB]))))),
    );
    let (engine, _) = run(events);
    let next = engine.outlook().get(TenantId(1), DISK, Horizon::NextSlice).expect("a forecast");
    assert!((next.bytes() / MIB as f64 - 1.0).abs() < 0.05, "{next:?}");
}

/// What may be said of a tenant in a slice.
#[derive(Clone, Debug)]
struct Said {
    tenant: u64,
    bytes: u64,
    usage: Option<TenantUsage>,
    wall_seconds: Option<u64>,
    gone: bool,
}

fn said() -> impl Strategy<Value = Said> {
    let usage =
        (any::<u64>(), any::<u64>(), any::<u64>(), 0..2_000_000_u64).prop_map(|(cpu_ns, memory, bytes, files)| {
            TenantUsage {
                tenant: TenantId(0),
                cpu_ns,
                memory_bytes: memory,
                network_bytes: (memory % 2 == 0).then_some(bytes),
                open_files: files,
                open_sockets: files / 2,
                open_file_bytes: bytes,
                processes: 1,
                process_read_bytes: 0,
                process_write_bytes: 0,
            }
        });
    let bytes = prop_oneof![2 => Just(0), 4 => 0..64 * MIB, 1 => any::<u64>()];
    (1..5_u64, bytes, prop::option::of(usage), prop::option::of(any::<u64>()), prop::bool::weighted(0.02))
        .prop_map(|(tenant, bytes, usage, wall_seconds, gone)| Said { tenant, bytes, usage, wall_seconds, gone })
}

fn events(slices: &[Vec<Said>]) -> Vec<(Nanos, Event)> {
    let mut events = vec![(Nanos::ZERO, configured(ForecastMode::On, Nanos::SECOND))];
    events.extend((1..5).map(|number| (Nanos::ZERO, seen(number, None))));
    for (second, slice) in slices.iter().enumerate() {
        let now = Nanos::from_secs(second as u64);
        let mut bytes = [0; 4];
        let mut sample_of = Sample::default();
        for said in slice {
            if said.gone {
                events.push((now, Event::TenantGone(TenantId(said.tenant))));
                events.push((now, seen(said.tenant, None)));
            }
            bytes[said.tenant as usize - 1] = said.bytes;
            sample_of.usage.extend(said.usage.map(|usage| TenantUsage { tenant: TenantId(said.tenant), ..usage }));
            sample_of.wall_seconds = said.wall_seconds.or(sample_of.wall_seconds);
        }
        let whole =
            Sample { usage: sample_of.usage, wall_seconds: sample_of.wall_seconds, ..sample(&bytes.map(|b| b / 8)) };
        events.push((now, Event::Sampled(Box::new(whole))));
    }
    events.push((Nanos::from_secs(slices.len() as u64), Event::Stopping));
    events
}

/// Series and trees are in the midst of being fitted when it is cut.
#[test]
fn an_engine_restored_from_a_snapshot_forecasts_as_the_original() {
    let events = readers(ForecastMode::On, None, 1_200);
    let (before, after) = events.split_at(903);
    let (mut original, _) = run(before.to_vec());
    let mut restored = Engine::restored(&original.snapshot()).unwrap();
    for (now, event) in after {
        let effects = [&mut original, &mut restored].map(|engine| {
            engine.handle(*now, event.clone());
            std::iter::from_fn(|| engine.poll_effect()).collect::<Vec<_>>()
        });
        assert_eq!(effects[0], effects[1]);
        assert_eq!(original.outlook(), restored.outlook());
    }
    assert!(original.snapshot() == restored.snapshot(), "the same events lead to the same state");
}

/// Three days in slices of a minute: tenant 1, in a group, reads in the first half of each day, tenant 2 all the time.
fn days(mode: ForecastMode, days: u64) -> Vec<(Nanos, Event)> {
    let Event::TenantSeen { mut tenant, history } = seen(1, None) else { unreachable!("as it was made") };
    tenant.group = Some("nightly".to_owned());
    let mut events = vec![
        (Nanos::SECOND, configured(mode, Nanos::from_secs(60))),
        (Nanos::SECOND, Event::TenantSeen { tenant, history }),
        (Nanos::SECOND, seen(2, None)),
    ];
    let (mut first, mut second) = (0, 0);
    for minute in 0..days * 1_440 {
        first += if minute % 1_440 < 720 { 600 * MIB } else { 0 };
        second += 60 * MIB;
        let mut sample = sample(&[first, second]);
        sample.spaces =
            vec![DeviceSpace { device: DISK, discarded_bytes: Some(minute * MIB), free_bytes: Some(1 << 40) }];
        events.push((Nanos::from_secs(minute * 60 + 2), Event::Sampled(Box::new(sample))));
    }
    on_the_wall(events, MIDNIGHT)
}

#[test]
fn the_day_ahead_of_disks_and_groups_is_in_the_outlook() {
    let (engine, _) = run(days(ForecastMode::Shadow, 3));
    let outlook = engine.outlook();
    let (disk, group) = (LoadOf::Device(DISK), LoadOf::Group("nightly".to_owned()));
    assert!(outlook.loads().iter().map(|load| &load.of).eq([&disk, &group]));
    let rate = |of: &LoadOf, hours: u64| {
        let at = Nanos::from_secs((3 * 24 + hours) * 3_600 + 300);
        let bin = outlook.load(of).and_then(|load| load.at(at)).expect("within the week");
        (f64::from(bin.read.value) / MIB as f64).round()
    };
    assert_eq!([rate(&disk, 6), rate(&disk, 18), rate(&group, 6), rate(&group, 18)], [11.0, 1.0, 10.0, 0.0]);
    let bin = outlook.load(&disk).and_then(|load| load.bins.get(3)).expect("bins");
    assert_eq!(bin.free.map(|free| (free.value / 1e9).round()), Some(1_100.0));
    assert_eq!((f64::from(bin.discarded.value) / (MIB as f64 / 60.0)).round(), 1.0, "a MiB a minute is discarded");
    let past = engine.load_past(&disk);
    assert_eq!((past.len(), (past[0] / MIB as f64).round()), (3 * 144 - 1, 11.0));
}

#[test]
fn days_ahead_are_forecast_only_where_they_are_wanted() {
    let (engine, effects) = run(days(ForecastMode::Off, 2));
    assert!(engine.outlook().is_empty() && kept(&effects).is_empty());
    let mut events = days(ForecastMode::Shadow, 2);
    let Event::Configured(config) = &mut events[0].1 else { unreachable!("as it was made") };
    config.forecast.days_ahead = false;
    let (engine, effects) = run(events);
    assert!(
        engine.outlook().loads().is_empty() && kept(&effects).iter().all(|model| model.kind != ModelKind::DaysAhead)
    );
    // A recording of an earlier version says nothing of them.
    let settings: ForecastSettings = serde_json::from_str(r#"{"mode":"shadow","keep_every":600000000000}"#).unwrap();
    assert!(!settings.days_ahead && ForecastSettings::default().days_ahead);
    assert!(!settings.sessions_by_order && ForecastSettings::default().sessions_by_order);
    assert!(!settings.sessions_at_once && ForecastSettings::default().sessions_at_once);
    assert!(!settings.waiting_take_part && ForecastSettings::default().waiting_take_part);
    assert!(!settings.sessions_are_no_past && ForecastSettings::default().sessions_are_no_past);
    assert!(!settings.skill_by_bytes && ForecastSettings::default().skill_by_bytes);
    assert!(!settings.only_its_own && ForecastSettings::default().only_its_own);
    assert!(!settings.within_bounds && ForecastSettings::default().within_bounds);
    assert!(!settings.next_slice_within_seen && ForecastSettings::default().next_slice_within_seen);
    assert!(!settings.declared_at_beginning && ForecastSettings::default().declared_at_beginning);
    assert!(!settings.trees_by_leaves && ForecastSettings::default().trees_by_leaves);
}

/// Bins, fits and forecasts are under way when it is cut, and what was kept is taken over by another.
#[test]
fn days_ahead_outlive_a_snapshot_and_a_restart_byte_for_byte() {
    let events = days(ForecastMode::On, 9);
    let cut = events.len() - 1_500;
    let (mut original, effects) = run(events[..cut].to_vec());
    let mut restored = Engine::restored(&original.snapshot()).unwrap();
    for (now, event) in &events[cut..] {
        let effects = [&mut original, &mut restored].map(|engine| {
            engine.handle(*now, event.clone());
            std::iter::from_fn(|| engine.poll_effect()).collect::<Vec<_>>()
        });
        assert_eq!(effects[0], effects[1]);
        assert_eq!(original.outlook(), restored.outlook());
    }
    let model = kept(&effects).into_iter().rfind(|model| model.kind == ModelKind::DaysAhead).expect("kept");
    let mut next = days(ForecastMode::On, 1);
    next.insert(1, (Nanos::SECOND, Event::ModelRecalled(model)));
    next.truncate(200);
    let (engine, _) = run(next);
    assert_eq!(engine.outlook().loads().len(), 2, "a week is foreseen after minutes");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// A recording holds events as text: what is read back from it gives the same effects, byte for byte, models included.
    #[test]
    fn a_replay_of_a_recording_with_forecasts_gives_the_same_bytes(
        slices in prop::collection::vec(prop::collection::vec(said(), 0..4), 1..200)
    ) {
        let events = events(&slices);
        let text = serde_json::to_string(&events).unwrap();
        let read_back: Vec<(Nanos, Event)> = serde_json::from_str(&text).unwrap();
        let live = serde_json::to_string(&replay(events.into_iter())).unwrap();
        let replayed = serde_json::to_string(&replay(read_back.into_iter())).unwrap();
        prop_assert_eq!(&live, &replayed);
    }
}
