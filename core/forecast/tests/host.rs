//! A host's forecaster as a whole: it learns, it bounds its work, it does not believe who lies.

mod drawn;
mod families;

use drawn::{Draws, Host, MIB, Named, key};
use minerva_forecast::host::Answer;
use minerva_forecast::tenant::{Reading, Row, SessionClass};
use minerva_forecast::{Damaged, Forecaster, ForecasterSettings, SliceTime, Source, check};
use minerva_model::{DeviceId, FittedModel, Horizon, ModelKind, Nanos, TenantId};

#[test]
fn the_class_of_a_session_is_told_in_its_first_slice() {
    let told = drawn::classes_told(11, 1500);
    let classes = told.iter().filter(|(_, count)| *count > 0.0).count();
    assert!(classes == 3 && drawn::balanced(&told) >= 0.8, "{told:?}");
}

/// As a decision sees it: below a skill of 0.1 nothing is decided by a forecast.
#[test]
fn by_forecasts_of_white_noise_nothing_is_decided() {
    let (all, skilled) = drawn::noise_with_skill(3, 600, 0.1);
    assert!(all > 20_000 && skilled == 0, "{skilled} of {all}");
}

/// Late in a session most of it is certain, and little of what is left.
#[test]
fn what_is_left_of_a_session_is_within_its_interval_also_late_in_it() {
    let (mut host, mut forecaster) = (Host::new(13, 30, false), Forecaster::new(ForecasterSettings::default()));
    let mut attained = [0.0; 30];
    let (mut held, mut count, mut widths) = (0.0, 0.0, Vec::new());
    for slice in 0..1_500 {
        let (readings, begun) = host.slice();
        forecaster.observe(SliceTime::default(), &readings);
        for (who, _) in begun {
            attained[who.0.0 as usize] = 0.0;
        }
        for (who, _, reading) in readings {
            let number = who.0.0 as usize;
            attained[number] += reading.read_bytes;
            let left = host.tenants[number].0;
            let is_late = left > 0.0 && attained[number] > 1.5 * left;
            if slice < 900 || !is_late {
                continue;
            }
            let session = forecaster.outlook(who).expect("known").session.expect("a session");
            held += f64::from(u8::from((session.low_bytes..=session.high_bytes).contains(&left)));
            count += 1.0;
            widths.push((session.high_bytes - session.low_bytes) / left);
        }
    }
    // Four of five are promised. Whatever is left is within an interval without an end, which would promise nothing.
    assert!(count > 100.0 && (0.75..=0.95).contains(&(held / count)), "{held} of {count}");
    widths.sort_by(f64::total_cmp);
    let middle = widths[widths.len() / 2];
    assert!(middle < 3.0, "the interval is {middle} times what is left");
}

#[test]
fn who_looks_short_and_reads_for_ever_is_heavy_in_the_end_and_harms_nobody() {
    let forecasts = |has_liar: bool| {
        let mut host = Host::new(5, 12, has_liar);
        let mut forecaster = Forecaster::new(ForecasterSettings::default());
        let mut error = 0.0;
        for _ in 0..600 {
            let (readings, _) = host.slice();
            for (who, _, reading) in &readings[1..] {
                if let Some(next) = forecaster.next_slice(*who) {
                    error += (next.bytes_per_second - reading.read_bytes).abs();
                }
            }
            forecaster.observe(SliceTime::default(), &readings);
        }
        (error, forecaster)
    };
    let (honest, _) = forecasts(false);
    let (with_liar, forecaster) = forecasts(true);
    let session = forecaster.outlook(key(0)).expect("known").session.expect("a session");
    assert!(session.class == SessionClass::Heavy && session.remaining_bytes > 1000.0 * MIB, "{session:?}");
    assert_eq!(session.skill, 0.0, "nothing is sure of it");
    assert!(with_liar < 1.1 * honest, "others' error {with_liar} against {honest}");
}

#[test]
fn a_declaration_counts_only_once_it_has_proved_right() {
    let outlook = |declared: f64| {
        let mut forecaster = Forecaster::new(ForecasterSettings::default());
        let mut host = Host::new(9, 9, false);
        for _ in 0..400 {
            let (mut readings, _) = host.slice();
            readings[0].2.declared_bytes = Some(declared);
            forecaster.observe(SliceTime::default(), &readings);
        }
        forecaster.outlook(key(0))
    };
    assert_eq!(outlook(1.0), outlook(1e15), "a lie, small or large, moves nothing");
}

#[test]
fn white_noise_gives_no_skill_and_the_naive_forecast() {
    let (mut draws, mut forecaster) = (Draws(3), Forecaster::new(ForecasterSettings::default()));
    let mut earned = 0;
    for slice in 0..900 {
        let noise: Vec<_> = (0..20_u64)
            .map(|tenant| {
                let bytes = 1e6 * draws.uniform();
                (key(tenant), 0, Reading { elapsed_seconds: 1.0, read_bytes: bytes, ..Reading::default() })
            })
            .collect();
        forecaster.observe(SliceTime::default(), &noise);
        if slice >= 100 {
            earned += (0..20).filter(|tenant| forecaster.next_slice(key(*tenant)).expect("known").skill > 0.02).count();
        }
    }
    assert!(earned < 800 * 20 / 50, "{earned} of 16,000 forecasts claim skill");
}

/// Models of tenants; the days ahead are of disks and groups.
const OF_TENANTS: [ModelKind; 3] = [ModelKind::NextSlice, ModelKind::Sessions, ModelKind::Families];

#[test]
fn fitted_trees_outlive_a_restart() {
    let (mut host, mut forecaster) = (Host::new(2, 20, false), Forecaster::new(ForecasterSettings::default()));
    for _ in 0..300 {
        forecaster.observe(SliceTime::default(), &host.slice().0);
    }
    let models = forecaster.models();
    assert!(models.iter().map(|model| model.kind).eq(OF_TENANTS), "all are fitted after 300 slices");
    let mut next = Forecaster::new(ForecasterSettings::default());
    assert_eq!(next.models(), []);
    for model in &models {
        next.recall(model).expect("whole");
    }
    assert_eq!(next.models(), models);
    // With the rows a refit is under way within a minute, and not only once new ones came.
    for _ in 0..200 {
        next.observe(SliceTime::default(), &[]);
    }
    let refitted = next.models();
    assert!(refitted[0] != models[0] && !refitted[0].bytes.is_empty(), "the trees were fitted anew on what was kept");
    for model in &models {
        next.recall(model).expect("whole");
    }
    for (place, model) in models.iter().enumerate() {
        let mut damaged = model.clone();
        damaged.bytes[model.bytes.len() / 2] ^= 4;
        assert_eq!((check(&damaged), next.recall(&damaged)), (Err(Damaged::Checksum), Err(Damaged::Checksum)));
        let another = FittedModel { kind: ModelKind::ALL[(place + 1) % ModelKind::ALL.len()], ..model.clone() };
        assert_eq!(next.recall(&another), Err(Damaged::Version), "under another's name");
    }
    assert_eq!(next.models(), models, "a damaged one changes nothing");
}

#[test]
fn a_model_of_the_version_before_is_taken_over_and_rows_that_are_shorter_are_read() {
    let learnt = |by_leaves| {
        let (mut host, mut forecaster) = (Host::new(2, 20, false), Forecaster::new(ForecasterSettings::default()));
        forecaster.set_by_leaves(by_leaves);
        (0..300).for_each(|_| forecaster.observe(SliceTime::default(), &host.slice().0));
        forecaster
    };
    let (before, now) = (learnt(false), learnt(true));
    let slice = Host::new(3, 20, false).slice().0;
    let answers = |forecaster: &mut Forecaster| {
        forecaster.observe(SliceTime::default(), &slice);
        slice.iter().map(|(key, _, _)| forecaster.next_slice(*key).expect("known").bytes_per_second).collect::<Vec<_>>()
    };
    let mut earlier = Forecaster::new(ForecasterSettings::default());
    earlier.set_by_leaves(false);
    let mut next = Forecaster::new(ForecasterSettings::default());
    for forecaster in [&mut earlier, &mut next] {
        forecaster.recall(&before.models()[0]).expect("of the version before");
    }
    assert_eq!(answers(&mut earlier), answers(&mut next), "the same trees speak");
    (0..200).for_each(|_| next.observe(SliceTime::default(), &[]));
    assert!(next.models()[0] != before.models()[0], "and are fitted anew from what was kept with them");
    assert_eq!(earlier.recall(&now.models()[0]), Err(Damaged::Version), "what a recording knew nothing of");
    let row: Row = serde_json::from_str(&format!("[{}]", ["1.5"; 30].join(","))).expect("a shorter row");
    assert_eq!((row[29], row[30], row[31]), (1.5, 0.0, 0.0));
}

/// Goes on until sessions are believed; with what skill those are that are under way then.
fn believed(host: &mut Host, forecaster: &mut Forecaster, slices: u32) -> f64 {
    let mut most: f64 = 0.0;
    for _ in 0..slices {
        let readings = host.slice().0;
        forecaster.observe(SliceTime::default(), &readings);
        let rows = forecaster.to_model(Nanos::SECOND, Nanos::SECOND);
        let sessions = rows.forecasts().iter().filter(|row| row.horizon == Horizon::Session);
        most = sessions.map(|row| row.skill).fold(most, f64::max);
    }
    most
}

#[test]
fn what_sessions_have_earned_outlives_a_restart_also_before_there_are_trees() {
    // Too few rows for trees.
    let settings = ForecasterSettings::default();
    let (mut host, mut forecaster) = (Host::new(11, 4, false), Forecaster::new(settings));
    let before = believed(&mut host, &mut forecaster, 600);
    assert!(before >= 0.3, "{before}");
    let mut next = Forecaster::new(settings);
    for model in forecaster.models() {
        next.recall(&model).expect("whole");
    }
    assert_eq!(next.models().len(), OF_TENANTS.len());
    let after = believed(&mut host, &mut next, 60);
    assert!(after >= 0.8 * before, "{after} after {before}");
    let mut without = Forecaster::new(settings);
    assert_eq!(believed(&mut host, &mut without, 60), 0.0, "one that has seen nothing is not believed");
}

#[test]
fn the_last_session_of_its_like_can_stand_in_for_the_model() {
    let foreseen = |by_last| {
        let mut forecaster = Forecaster::new(ForecasterSettings::default());
        forecaster.set_sessions_by_last(by_last);
        let reading = Reading { elapsed_seconds: 1.0, read_bytes: 100.0 * MIB, ..Reading::default() };
        for (tenant, slices) in [(0, 20), (1, 40), (2, 1)] {
            for _ in 0..slices {
                forecaster.observe(SliceTime::default(), &[(key(tenant), 7, reading)]);
            }
            if tenant < 2 {
                forecaster.tenant_gone(key(tenant).0);
            }
        }
        forecaster.outlook(key(2)).and_then(|outlook| outlook.session).expect("a session").remaining_bytes / MIB
    };
    assert!((foreseen(true) - 3900.0).abs() < 1.0, "{}", foreseen(true));
    assert!(foreseen(false) < 3500.0, "{}", foreseen(false));
}

#[test]
fn where_all_have_one_name_the_files_that_they_open_tell_sessions_apart_and_the_last_of_the_name_does_not() {
    let ordering = |by_last| {
        let (mut host, mut forecaster) = (Host::new(17, 30, false), Forecaster::new(ForecasterSettings::default()));
        forecaster.set_sessions_by_last(by_last);
        for _ in 0..1_500 {
            let alike: Vec<Named> = host.slice().0.into_iter().map(|(who, _, reading)| (who, 1, reading)).collect();
            forecaster.observe(SliceTime::default(), &alike);
        }
        let sessions = (0..30).filter_map(|id| forecaster.outlook(key(id))?.session);
        sessions.map(|session| session.ordering).fold(0.0, f64::max)
    };
    let (by_model, by_last) = (ordering(false), ordering(true));
    assert!(by_model >= 0.7 && by_last < 0.1, "{by_model} and {by_last}");
}

#[test]
fn what_is_told_lies_between_median_and_mean_and_is_the_median_alone_in_recordings_of_earlier_versions() {
    let answer = Answer { median: 2.0, mean: 4.0 };
    assert_eq!([0, 75, 100].map(|percent| answer.told(percent)), [2.0, 3.5, 4.0]);
    let told = |between| {
        let (mut host, mut forecaster) = (Host::new(3, 30, false), Forecaster::new(ForecasterSettings::default()));
        forecaster.set_between(between);
        (0..300).for_each(|_| forecaster.observe(SliceTime::default(), &host.slice().0));
        let next: Vec<_> = (0..30).filter_map(|id| forecaster.next_slice(key(id))).collect();
        assert!(next.iter().all(|one| one.low <= one.bytes_per_second && one.bytes_per_second <= one.high), "{next:?}");
        next.iter().map(|one| one.bytes_per_second).sum::<f64>()
    };
    assert!(told(true) != told(false), "the trees' mean is not their median");
}

#[test]
fn a_tenant_that_ends_with_its_work_teaches_what_its_like_transfer() {
    let mut forecaster = Forecaster::new(ForecasterSettings::default());
    let reading = Reading { elapsed_seconds: 1.0, read_bytes: 100.0 * MIB, ..Reading::default() };
    for tenant in 0..5 {
        for _ in 0..20 {
            forecaster.observe(SliceTime::default(), &[(key(tenant), 7, reading)]);
        }
        forecaster.tenant_gone(TenantId(tenant));
        assert_eq!((forecaster.tenants(), forecaster.outlook(key(tenant))), (0, None));
    }
    forecaster.observe(SliceTime::default(), &[(key(9), 7, reading)]);
    let session = forecaster.outlook(key(9)).expect("known").session.expect("one has begun");
    assert!(session.class == SessionClass::Heavy, "2,000 MiB as those before: {session:?}");
    forecaster.device_gone(DeviceId { major: 8, minor: 0 });
    assert_eq!(forecaster.tenants(), 0);
}

#[test]
fn the_pattern_reaches_fifteen_seconds_whatever_the_slice() {
    for slice_seconds in [1, 5, 60] {
        let mut forecaster = Forecaster::new(ForecasterSettings::default());
        forecaster.set_slice(Nanos::from_secs(slice_seconds));
        let seconds = slice_seconds as f64;
        let reading = Reading { elapsed_seconds: seconds, read_bytes: seconds * MIB, ..Reading::default() };
        for _ in 0..200 {
            forecaster.observe(SliceTime { seconds, wall_seconds: None }, &[(key(0), 0, reading)]);
        }
        let outlook = forecaster.to_model(Nanos::SECOND, Nanos::from_secs(slice_seconds));
        let of = |horizon| outlook.get(key(0).0, key(0).1, horizon).expect("forecast").bytes() / MIB;
        let (next, pattern) = (of(Horizon::NextSlice), of(Horizon::Pattern));
        assert!((next - seconds).abs() < 0.01 * seconds && (pattern - 15.0).abs() < 0.15, "{next} and {pattern}");
    }
}

#[test]
fn a_cycle_that_is_longer_than_the_trees_look_back_is_foreseen_by_the_series() {
    let mut forecaster = Forecaster::new(ForecasterSettings::default());
    let mut errors = 0.0;
    for second in 0..700 {
        let reading = Reading {
            elapsed_seconds: 1.0,
            read_bytes: if second % 24 < 4 { 50.0 * MIB } else { 0.0 },
            ..Reading::default()
        };
        if let Some(next) = forecaster.next_slice(key(0)).filter(|_| second >= 400) {
            errors += (next.bytes_per_second - reading.read_bytes).abs() / MIB;
        }
        forecaster.observe(SliceTime::default(), &[(key(0), 0, reading)]);
    }
    let next = forecaster.next_slice(key(0)).expect("known");
    assert_eq!(next.source, Source::Series);
    // Last value errs by 100 MiB in each of the twelve and a half cycles.
    assert!(next.skill > 0.3 && errors < 0.05 * 1_250.0, "{next:?}, {errors} MiB");
}

#[test]
fn who_is_silent_for_minutes_is_not_told_of_and_then_forgotten() {
    let mut forecaster = Forecaster::new(ForecasterSettings::default());
    let reading = Reading { elapsed_seconds: 1.0, read_bytes: MIB, ..Reading::default() };
    forecaster.observe(SliceTime::default(), &[(key(0), 0, reading)]);
    let mut told = 0;
    let mut known = 0;
    while forecaster.knows(key(0)) {
        let outlook = forecaster.to_model(Nanos::SECOND, Nanos::SECOND);
        told += usize::from(!outlook.is_empty());
        known += 1;
        forecaster.observe(SliceTime::default(), &[]);
    }
    assert_eq!((told, known), (300, 900));
}

#[test]
fn forecasts_pass_as_nouns_of_the_model() {
    let (mut host, mut forecaster) = (Host::new(4, 12, false), Forecaster::new(ForecasterSettings::default()));
    for _ in 0..400 {
        forecaster.observe(SliceTime::default(), &host.slice().0);
    }
    let outlook = forecaster.to_model(Nanos(7), Nanos::SECOND);
    for tenant in 0..12 {
        let (who, device) = key(tenant);
        let next = outlook.get(who, device, Horizon::NextSlice).expect("a forecast of each");
        let told = forecaster.next_slice(key(tenant)).expect("known");
        assert!((next.bytes() - told.bytes_per_second).abs() <= 1e-6 * told.bytes_per_second, "{next:?}");
        assert!(next.made_at == Nanos(7) && outlook.get(who, device, Horizon::Pattern).is_some());
        let session = forecaster.outlook(key(tenant)).expect("known").session.is_some();
        assert_eq!(outlook.get(who, device, Horizon::Session).is_some(), session);
    }
}
