//! No series, however broken, makes a model panic or say something that is no number.

use minerva_forecast::arima::{self, Budget, Workspace};
use minerva_forecast::evaluate::{autocorrelation, decompose, partial_autocorrelation};
use minerva_forecast::online::{Adwin, Cusum, IntervalMeter, Naive, SkillMeter};
use minerva_forecast::seasonal::{
    ArrivalStates, BINS_PER_DAY, Bins, DayClusters, Ensemble, HoltWinters, LongArma, Seasonal, SeasonalNaive, Totals,
};
use minerva_forecast::tenant::{Reading, Usage};
use minerva_forecast::{Forecaster, ForecasterSettings, SliceTime, check};
use minerva_model::{DeviceId, FittedModel, Horizon, ModelKind, Nanos, TenantId};
use proptest::prelude::*;

fn key(tenant: u64) -> (TenantId, DeviceId) {
    (TenantId(tenant), DeviceId { major: 8, minor: 0 })
}

/// Any number, among them the broken ones.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => 0.0..1e9_f64,
        2 => Just(0.0),
        1 => -1e12..1e12_f64,
        1 => prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(f64::NEG_INFINITY), Just(f64::MAX), Just(f64::MIN)],
    ]
}

fn series(most: usize) -> impl Strategy<Value = Vec<f64>> {
    prop_oneof![
        prop::collection::vec(number(), 0..most),
        (number(), 0..most).prop_map(|(value, count)| vec![value; count]),
        prop::collection::vec(0.0..1e6_f64, 0..most),
    ]
}

fn reading() -> impl Strategy<Value = Reading> {
    let usage = prop::option::of([number(), number(), number(), number(), number(), number()].prop_map(
        |[cpus, memory_bytes, network_bytes_per_second, open_files, open_sockets, open_file_bytes]| Usage {
            cpus,
            memory_bytes,
            network_bytes_per_second,
            open_files,
            open_sockets,
            open_file_bytes,
        },
    ));
    (number(), number(), number(), usage, prop::option::of(number()), prop::option::of(number())).prop_map(
        |(elapsed_seconds, read_bytes, write_bytes, usage, declared_bytes, wall_seconds)| Reading {
            elapsed_seconds,
            read_bytes,
            write_bytes,
            usage,
            declared_bytes,
            wall_seconds,
            account: 0,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn seconds_ahead(values in series(320)) {
        let mut budget = Budget::default();
        if let Some(mut model) = arima::fit(&values, &mut Workspace::default(), &mut budget) {
            let path = model.forecast(15);
            prop_assert!(path.mean[..15].iter().all(|mean| !mean.is_nan()), "{model:?}");
            model.update(f64::NAN);
            model.update(1.0);
        }
        autocorrelation(&values, 20);
        partial_autocorrelation(&values, 20);
        decompose(&values, 10);
    }

    #[test]
    fn days_ahead(values in series(6 * BINS_PER_DAY), first in 0_usize..2000) {
        let mut models: Vec<Box<dyn Seasonal>> = vec![
            Box::new(SeasonalNaive::day()),
            Box::new(DayClusters::new(3, 0.3, 0.15)),
            Box::new(HoltWinters::fit(&values)),
            Box::new(Ensemble::default()),
        ];
        models.extend(LongArma::fit(&values).map(|model| Box::new(model) as Box<dyn Seasonal>));
        models.extend(ArrivalStates::fit(&values).map(|model| Box::new(model) as Box<dyn Seasonal>));
        for model in &mut models {
            for (at, value) in values.iter().enumerate() {
                model.observe(first + at, *value);
            }
            model.forecast(first + values.len(), &mut [0.0; 200]);
        }
    }

    #[test]
    fn meters(values in series(400)) {
        let (mut naive, mut skill, mut interval) = (Naive::default(), SkillMeter::default(), IntervalMeter::new(0.8));
        let (mut cusum, mut adwin) = (Cusum::default(), Adwin::default());
        for pair in values.windows(2) {
            skill.observe(pair[0], &naive.forecasts(), pair[1]);
            interval.observe(pair[0], pair[1]);
            naive.observe(pair[1]);
            cusum.observe(pair[1]);
            adwin.observe(pair[1]);
            prop_assert!((0.0..=1.0).contains(&skill.earned()), "{skill:?}");
        }
    }

    #[test]
    fn bins_with_any_clock(steps in prop::collection::vec((any::<u64>(), number(), number()), 0..50)) {
        let mut bins = Bins::default();
        let mut count = 0_u64;
        for (wall, seconds, bytes) in steps {
            let totals = Totals { read_bytes: bytes, write_bytes: 1.0, discard_bytes: bytes };
            bins.add(wall, seconds, totals, |bin| {
                count += 1;
                assert!(bin.number < 1008);
            });
        }
        prop_assert!(count <= 50 * 1010);
    }

    #[test]
    fn any_readings(slices in prop::collection::vec(prop::collection::vec((0_u64..6, 0_u64..3, reading()), 0..8), 0..80)) {
        let settings = ForecasterSettings { tenants_max: 4, ..ForecasterSettings::default() };
        let mut forecaster = Forecaster::new(settings);
        for slice in &slices {
            let slice: Vec<_> = slice.iter().map(|(number, family, reading)| (key(*number), *family, *reading)).collect();
            forecaster.observe(SliceTime::default(), &slice);
            for row in forecaster.to_model(Nanos::SECOND, Nanos::SECOND).forecasts() {
                prop_assert!(row.bytes() >= 0.0);
            }
            for key in (0..6).map(key) {
                if let Some(outlook) = forecaster.outlook(key) {
                    let next = outlook.next_slice;
                    prop_assert!(next.bytes_per_second >= 0.0 && next.skill <= 1.0, "{next:?}");
                    prop_assert!(outlook.session.is_none_or(|session| session.remaining_bytes >= 0.0));
                }
            }
        }
        prop_assert!(forecaster.tenants() <= 4);
    }

    #[test]
    fn damaged_models_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for kind in ModelKind::ALL {
            let model = FittedModel { kind, bytes: bytes.clone() };
            prop_assert!(check(&model).is_err());
        }
    }
}

const MIB: f64 = 1024.0 * 1024.0;

/// The reading of a slice, by its number.
type Slices = fn(u64) -> Option<Reading>;

fn reading_of(bytes: f64) -> Reading {
    Reading { elapsed_seconds: 1.0, read_bytes: bytes, wall_seconds: Some(1_000_000.0), ..Reading::default() }
}

/// Each with the rate that is foreseen of it in the end, in MiB a second, give or take half, where that is certain.
const CASES: [(&str, Slices, Option<f64>); 12] = [
    ("no number now and then", |at| Some(reading_of(if at % 10 == 3 { f64::NAN } else { MIB })), Some(1.0)),
    ("only numbers that are none", |_| Some(reading_of(f64::NAN)), Some(0.0)),
    ("infinities", |at| Some(reading_of(if at == 100 { f64::INFINITY } else { MIB })), Some(1.0)),
    ("negative rates", |at| Some(reading_of(if at % 7 == 0 { -MIB } else { MIB })), None),
    ("a gap of two minutes", |at| (!(200..320).contains(&at)).then(|| reading_of(MIB)), Some(1.0)),
    ("the same time again", |at| Some(Reading { wall_seconds: Some((at / 2) as f64), ..reading_of(MIB) }), Some(1.0)),
    (
        "time that runs backwards",
        |at| Some(Reading { wall_seconds: Some(1e9 - 1e5 * at as f64), ..reading_of(MIB) }),
        Some(1.0),
    ),
    ("slices without length", |_| Some(Reading { elapsed_seconds: 0.0, ..reading_of(MIB) }), Some(1.0)),
    ("slices of negative length", |_| Some(Reading { elapsed_seconds: -5.0, ..reading_of(MIB) }), Some(1.0)),
    ("a constant", |_| Some(reading_of(MIB)), Some(1.0)),
    ("one point", |at| (at == 399).then(|| reading_of(MIB)), None),
    // What a counter of 64 bits gives that began again and was not noticed.
    ("a counter that began again", |at| Some(reading_of(if at == 250 { 1.8e19 } else { MIB })), Some(1.0)),
];

#[test]
fn each_kind_of_bad_reading_leaves_a_forecast_or_none_and_harms_nobody_else() {
    let mut neighbours_alone = None;
    for (case, slices, expected) in std::iter::once(("nobody", (|_| None) as Slices, None)).chain(CASES) {
        let mut forecaster = Forecaster::new(ForecasterSettings::default());
        let mut errors = 0.0;
        for at in 0..400 {
            let neighbour = reading_of(if at % 20 < 5 { 10.0 * MIB } else { 0.0 });
            if let Some(next) = forecaster.next_slice(key(1)) {
                errors += (next.bytes_per_second - neighbour.read_bytes).abs() / MIB;
            }
            let slice = [(key(0), 0, slices(at)), (key(1), 1, Some(neighbour))];
            let named: Vec<_> =
                slice.into_iter().filter_map(|(key, family, reading)| Some((key, family, reading?))).collect();
            forecaster.observe(SliceTime::default(), &named);
            let Some(next) = forecaster.next_slice(key(0)) else { continue };
            let told = [next.bytes_per_second, next.low, next.high];
            assert!(told.iter().all(|value| value.is_finite() && *value >= 0.0), "{case}, slice {at}: {next:?}");
            assert!(next.low <= next.bytes_per_second && next.bytes_per_second <= next.high, "{case}: {next:?}");
            assert!((0.0..=1.0).contains(&next.skill.max(0.0)), "{case}: {next:?}");
        }
        if let (Some(expected), Some(next)) = (expected, forecaster.next_slice(key(0))) {
            let found = next.bytes_per_second / MIB;
            assert!((found - expected).abs() <= 0.5, "{case}: {found} MiB/s in place of {expected}, {next:?}");
        }
        let alone = *neighbours_alone.get_or_insert(errors);
        assert!(errors <= 1.1 * alone, "{case}: the neighbour's error is {errors} MiB in place of {alone}");
    }
}

#[test]
fn ten_thousand_tenants_at_once_cost_a_slice_no_more_fits_than_a_few_do() {
    const TENANTS: u64 = 12_000;
    let settings = ForecasterSettings::default();
    let mut forecaster = Forecaster::new(settings);
    let mut most = 0;
    for at in 0..70_u64 {
        let slice: Vec<_> =
            (0..TENANTS).map(|id| (key(id), id % 7, reading_of(((id + at) % 9) as f64 * MIB))).collect();
        let before = forecaster.fits();
        forecaster.observe(SliceTime::default(), &slice);
        most = most.max(forecaster.fits() - before);
    }
    // A tenant has two series, which are fitted together.
    assert!((1..=u64::from(settings.fits) + 1).contains(&most), "{most} fits in a slice");
    assert_eq!((forecaster.tenants(), forecaster.refused()), (10_000, 70 * 2_000));
    let told = (0..TENANTS).filter_map(|id| forecaster.next_slice(key(id))).filter(|next| next.high.is_finite());
    assert_eq!(told.count(), 10_000, "each has a forecast, and who found no place has honestly none");
}

/// What a session's processes use, the more of it the larger the session is.
type Used = fn(f64) -> Usage;

const USED: [(&str, Used); 2] = [
    ("processors", |amount| Usage { cpus: 0.1 + amount / 40.0, ..Usage::default() }),
    ("open files", |amount| Usage { open_files: 5.0 + amount, ..Usage::default() }),
];

/// Forty sessions of 40 to 160 MB, each of a tenant that goes.
fn after_forty_sessions(used: Used) -> Forecaster {
    let mut forecaster = Forecaster::new(ForecasterSettings::default());
    for number in 0..40_u64 {
        let amount = number * 7 % 13;
        for _ in 0..4 + amount {
            let reading = Reading { usage: Some(used(amount as f64)), ..reading_of(10e6) };
            forecaster.observe(SliceTime::default(), &[(key(number), 7, reading)]);
        }
        forecaster.tenant_gone(key(number).0);
    }
    forecaster
}

#[test]
fn a_session_that_is_unlike_all_before_it_is_told_no_larger_than_twice_the_largest() {
    for ((what, used), is_writer) in USED.into_iter().flat_map(|used| [(used, false), (used, true)]) {
        let mut forecaster = after_forty_sessions(used);
        let skill_of_another = |forecaster: &mut Forecaster| {
            forecaster.observe(SliceTime::default(), &[(key(98), 7, reading_of(10e6))]);
            forecaster.outlook(key(98)).and_then(|outlook| outlook.session).expect("one has begun").skill
        };
        let before = skill_of_another(&mut forecaster.clone());
        let mut reading = Reading { usage: Some(used(5_000.0)), ..reading_of(10e6) };
        if is_writer {
            (reading.read_bytes, reading.write_bytes) = (0.0, reading.read_bytes);
        }
        forecaster.observe(SliceTime::default(), &[(key(99), 7, reading)]);
        // What is no number is not told at all.
        let outlook = forecaster.to_model(Nanos::SECOND, Nanos::SECOND);
        let session = outlook.get(key(99).0, key(99).1, Horizon::Session).expect("a session is foreseen");
        assert!(session.bytes() <= 2.0 * 160e6 && !session.is_naive, "{what}: {session:?}");
        forecaster.tenant_gone(key(99).0);
        let after = skill_of_another(&mut forecaster);
        assert!(after > before - 0.5, "{what}: others' skill {after} in place of {before}");
    }
}

/// Tenants that compute for a slice with a processor and then read; too few for trees.
fn before_trees(within_seen: bool) -> Forecaster {
    let mut forecaster = Forecaster::new(ForecasterSettings::default());
    forecaster.set_next_slice_within_seen(within_seen);
    for at in 0..70_u64 {
        let reading = |id: u64| {
            let step = (at + id) % 8;
            let usage = Some(Usage { cpus: f64::from(u8::from(step == 3)), ..Usage::default() });
            Reading { usage, ..reading_of(if (4..6).contains(&step) { MIB } else { 0.0 }) }
        };
        let slice: Vec<_> = (0..4).map(|id| (key(id), id, reading(id))).collect();
        forecaster.observe(SliceTime::default(), &slice);
    }
    forecaster
}

#[test]
fn before_trees_a_newcomer_that_is_unlike_all_before_it_is_told_no_faster_than_twice_what_was_seen() {
    let told = |mut forecaster: Forecaster| {
        let usage = Some(Usage { cpus: 64.0, ..Usage::default() });
        let reading = Reading { usage, ..reading_of(100.0 * MIB) };
        forecaster.observe(SliceTime::default(), &[(key(9), 9, reading)]);
        forecaster.next_slice(key(9)).expect("known").bytes_per_second / MIB
    };
    let before = told(before_trees(false));
    assert!(before > 1e6, "as in recordings of earlier versions: {before} MiB/s");
    let bounded = told(before_trees(true));
    assert!((100.0..201.0).contains(&bounded), "{bounded} MiB/s");
    let mut next = Forecaster::new(ForecasterSettings::default());
    for model in before_trees(true).models() {
        next.recall(&model).expect("whole");
    }
    let recalled = told(next);
    assert!((100.0..201.0).contains(&recalled), "after a restart: {recalled} MiB/s");
}

/// A burst that was none, of a counter that jumped: its own rate is foreseen again within slices, and no neighbour's is touched. Of the largest
/// number there is its own forecast is naive for as long as errors count, since nothing beside it can be told apart.
#[test]
fn a_counter_that_jumps_as_in_a_burst_is_forgotten_within_slices() {
    for jump in [1e9, 1e12, 1.8e19] {
        let mut forecaster = Forecaster::new(ForecasterSettings::default());
        let mut off = 0;
        for at in 0..500 {
            let bytes = if at == 300 { jump } else { MIB };
            forecaster.observe(SliceTime::default(), &[(key(0), 1, reading_of(bytes)), (key(1), 1, reading_of(MIB))]);
            let [jumped, other] =
                [0, 1].map(|id| forecaster.next_slice(key(id)).expect("known").bytes_per_second / MIB);
            off += u32::from(at >= 300 && (jumped - 1.0).abs() > 0.5);
            assert!((other - 1.0).abs() < 0.5 || at < 60, "{jump}, slice {at}: the other's is {other} MiB/s");
        }
        assert!(off <= 5 || jump > 1e15, "{jump}: {off} slices");
    }
}
