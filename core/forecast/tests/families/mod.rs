//! What is known of names, and whose it is.

use super::*;

/// What is expected of a tenant of a family that has read for one second, by the last of its like.
fn expected(forecaster: &Forecaster, family: u64) -> Option<f64> {
    let mut forecaster = forecaster.clone();
    forecaster.set_sessions_by_last(true);
    let reading = Reading { elapsed_seconds: 1.0, read_bytes: MIB, account: 1, ..Reading::default() };
    forecaster.observe(SliceTime::default(), &[(key(1 << 40), family, reading)]);
    Some(forecaster.outlook(key(1 << 40))?.session?.remaining_bytes)
}

/// Sessions of one slice each, of so many tenants, each of a family of its own, on one account.
fn many_families(forecaster: &mut Forecaster, account: u64, families: std::ops::Range<u64>) {
    let reading = Reading { elapsed_seconds: 1.0, read_bytes: 4096.0, account, ..Reading::default() };
    let slice: Vec<Named> = families.map(|number| (key(number), number, reading)).collect();
    forecaster.observe(SliceTime::default(), &slice);
    slice.iter().for_each(|((tenant, _), _, _)| forecaster.tenant_gone(*tenant));
}

#[test]
fn an_account_that_makes_thousands_of_families_displaces_none_of_others() {
    let mut forecaster = Forecaster::new(ForecasterSettings::default());
    let reading = Reading { elapsed_seconds: 1.0, read_bytes: 1000.0 * MIB, account: 1, ..Reading::default() };
    for tenant in 0..10 {
        forecaster.observe(SliceTime::default(), &[(key(tenant), 7, reading)]);
        forecaster.tenant_gone(key(tenant).0);
    }
    let before = expected(&forecaster, 7).expect("one has begun");
    assert!((before / MIB - 999.0).abs() < 1.0, "{before}");
    let taught = forecaster.clone();
    many_families(&mut forecaster, 2, 1_000..6_000);
    assert_eq!(expected(&forecaster, 7), Some(before));
    // Also where it is not known any more whose a family is, as of a file of an earlier version.
    let mut earlier = taught.clone();
    earlier.set_within_bounds(false);
    let kept = earlier.models().into_iter().find(|model| model.kind == ModelKind::Families).expect("families");
    let mut next = Forecaster::new(ForecasterSettings::default());
    next.recall(&kept).expect("of the version before");
    many_families(&mut next, 2, 1_000..6_000);
    assert!(expected(&next, 7).is_some_and(|expected| (expected / before - 1.0).abs() < 1e-3));
    let families =
        |forecaster: &Forecaster| forecaster.models().into_iter().find(|model| model.kind == ModelKind::Families);
    let again = families(&next).expect("families");
    let mut last = Forecaster::new(ForecasterSettings::default());
    last.recall(&again).expect("whole");
    assert_eq!(families(&last), Some(again), "with the accounts");
    many_families(&mut earlier, 2, 1_000..6_000);
    assert!(
        expected(&earlier, 7).is_some_and(|expected| expected < MIB),
        "recordings of earlier versions replay as they ran"
    );
}

#[test]
fn where_there_is_no_room_the_account_that_has_most_makes_it() {
    let mut forecaster = Forecaster::new(ForecasterSettings { tenants_max: 8, ..ForecasterSettings::default() });
    let named = |account: u64, tenants: std::ops::Range<u64>| {
        let reading = Reading { elapsed_seconds: 1.0, read_bytes: MIB, account, ..Reading::default() };
        tenants.map(move |number| (key(100 * account + number), 0, reading)).collect::<Vec<Named>>()
    };
    let known = |forecaster: &Forecaster| {
        [1, 2, 3].map(|account| (0..20).filter(|number| forecaster.knows(key(100 * account + number))).count())
    };
    forecaster.observe(SliceTime::default(), &named(1, 0..12));
    assert_eq!((known(&forecaster), forecaster.refused()), ([8, 0, 0], 4));
    forecaster.observe(SliceTime::default(), &named(1, 1..8));
    forecaster.observe(SliceTime::default(), &[named(1, 1..12), named(2, 0..1)].concat());
    assert_eq!((known(&forecaster), forecaster.knows(key(100))), ([7, 1, 0], false), "who was silent made room");
    for _ in 0..3 {
        forecaster.observe(SliceTime::default(), &[named(3, 0..2), named(2, 0..6), named(1, 0..12)].concat());
    }
    assert_eq!((known(&forecaster), forecaster.tenants()), ([3, 3, 2], 8));
}

#[test]
fn a_tenant_is_of_the_family_that_it_is_of_now() {
    let foreseen = |within_bounds| {
        let mut forecaster = Forecaster::new(ForecasterSettings::default());
        forecaster.set_within_bounds(within_bounds);
        forecaster.set_sessions_by_last(true);
        let reading = |bytes| Reading { elapsed_seconds: 1.0, read_bytes: bytes, ..Reading::default() };
        for (tenant, family, bytes) in [(0, 7, MIB), (1, 8, 1000.0 * MIB)] {
            forecaster.observe(SliceTime::default(), &[(key(tenant), family, reading(bytes))]);
            forecaster.tenant_gone(key(tenant).0);
        }
        // The operator puts it into another group between two of its sessions.
        for (slice, family) in (0..16).map(|slice| (slice, if slice < 15 { 7 } else { 8 })) {
            let bytes = if slice % 15 == 0 { MIB } else { 0.0 };
            forecaster.observe(SliceTime::default(), &[(key(2), family, reading(bytes))]);
        }
        forecaster.outlook(key(2)).and_then(|outlook| outlook.session).expect("a session").remaining_bytes / MIB
    };
    assert!((foreseen(true) - 999.0).abs() < 1.0, "{}", foreseen(true));
    assert!(foreseen(false) < 10.0, "recordings of earlier versions replay as they ran: {}", foreseen(false));
}
