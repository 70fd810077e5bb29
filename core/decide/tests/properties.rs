//! What holds of every decider, whatever the tenants do.

use minerva_decide::{DecideInput, Decided, Decider};
use minerva_model::{
    CgroupRef, CountedUse, Decision, DeviceId, EngineConfig, IoCounters, IoSignals, Nanos, Outlook, Reason, Signals,
    Tenant, TenantHistory, TenantId, TenantKind, UsageAverage,
};
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};
use std::collections::BTreeMap;

const DISK: DeviceId = DeviceId { major: 8, minor: 0 };

fn tenant(number: u64, weight_percent: u32, excluded: bool) -> Tenant {
    Tenant {
        id: TenantId(number),
        name: format!("tenant-{number}"),
        kind: TenantKind::Cgroup,
        cgroup: CgroupRef { path: format!("t/{number}"), inode: number },
        group: None,
        weight_percent,
        excluded,
        job: None,
        terms: minerva_model::Terms::default(),
        origin: minerva_model::Origin::default(),
    }
}

fn decider(config: &EngineConfig, tenants: &[Tenant]) -> Decider {
    let mut decider = Decider::default();
    decider.configure(Nanos::ZERO, config);
    for tenant in tenants {
        assert!(decider.tenant_seen(Nanos::ZERO, tenant, &[]).is_empty());
    }
    decider
}

/// One slice of a second on a disk that takes 3 ns for a byte; row `i` is of tenant `i`.
fn slice(bytes: &[u64]) -> Signals {
    slice_on(3.0, bytes)
}

fn slice_on(nanoseconds_per_byte: f64, bytes: &[u64]) -> Signals {
    let row = |(index, bytes): (usize, &u64)| IoSignals {
        tenant: TenantId(index as u64),
        device: DISK,
        elapsed: Nanos::SECOND,
        transferred: IoCounters { read_bytes: *bytes, read_ops: u64::from(*bytes > 0), ..IoCounters::default() },
        latency: None,
        active: *bytes > 0,
        served: None,
        disk_time: Nanos((*bytes as f64 * nanoseconds_per_byte) as u64).min(Nanos::SECOND),
    };
    Signals { io: bytes.iter().enumerate().map(row).collect(), ..Signals::default() }
}

fn decided(decider: &mut Decider, now: Nanos, signals: &Signals) -> Decided {
    decider.slice(now, DecideInput { signals, outlook: Outlook::default() })
}

/// What is told after a slice.
fn slice_of(decider: &mut Decider, now: Nanos, signals: &Signals) -> Vec<Decision> {
    decided(decider, now, signals).decisions
}

fn shares(decider: &Decider) -> Vec<(u64, u32)> {
    decider.decisions().map(|decision| (decision.tenant.0, decision.share.get())).collect()
}

/// Bytes of up to six tenants over some slices; often idle.
fn any_slices() -> impl Strategy<Value = Vec<Vec<u64>>> {
    let bytes = (any::<bool>(), 1..50_000_000_u64).prop_map(|(busy, bytes)| if busy { bytes } else { 0 });
    (1..7_usize).prop_flat_map(move |tenants| {
        proptest::collection::vec(proptest::collection::vec(bytes.clone(), tenants), 1..80)
    })
}

proptest! {
    #[test]
    fn more_use_never_gives_a_larger_share(slices in any_slices(), parts in proptest::collection::vec(1..=1_000_u64, 80)) {
        // Hysteresis by counting lets the heavier of two lag for a slice or two; everything else is in order always.
        let mut config = EngineConfig::default();
        config.fennel.group_change_slices = 1;
        let tenants: Vec<Tenant> = (0..8).map(|number| tenant(number, 100, false)).collect();
        let mut decider = decider(&config, &tenants);
        for (turn, bytes) in slices.iter().enumerate() {
            // The last two begin together, and the very last never uses more than the one before it.
            let heavier = bytes[0].max(1_000);
            let mut bytes = bytes.clone();
            bytes.extend([heavier, heavier * parts[turn] / 1_000]);
            slice_of(&mut decider, Nanos::from_secs(turn as u64 + 1), &slice(&bytes));
            let share = |index: usize| decider.decision(TenantId(index as u64), DISK).unwrap().share;
            prop_assert!(share(bytes.len() - 2) <= share(bytes.len() - 1));
        }
    }

    #[test]
    fn everyone_active_keeps_the_floor_and_shares_stay_in_range(
        slices in any_slices(),
        standings in proptest::collection::vec((1..2_000_u32, 0..5_u8), 6),
        floor in 0..300_u32,
    ) {
        let mut config = EngineConfig::default();
        config.fennel.floor_permille = floor;
        let tenants: Vec<Tenant> =
            standings.iter().enumerate().map(|(i, (weight, excluded))| tenant(i as u64, *weight, *excluded == 0)).collect();
        let mut decider = decider(&config, &tenants);
        for (turn, bytes) in slices.iter().enumerate() {
            slice_of(&mut decider, Nanos::from_secs(turn as u64 + 1), &slice(bytes));
            let steered = shares(&decider);
            prop_assert!(steered.iter().all(|(_, share)| (1..=10_000).contains(share)));
            let active = |tenant: usize| bytes[tenant] > 0;
            let excluded = (0..bytes.len()).filter(|i| tenants[*i].excluded && active(*i)).count() as u64;
            let mine: Vec<u64> = steered.iter().filter(|(i, _)| active(*i as usize)).map(|(_, s)| u64::from(*s)).collect();
            let count = mine.len() as u64 + excluded;
            let sum = mine.iter().sum::<u64>() + excluded * 100;
            if let Some(half) = 500_000_u64.checked_div(count) {
                let ppm = half.min(u64::from(floor) * 1_000);
                prop_assert!(mine.iter().all(|share| share * 1_000_000 >= ppm * sum), "{mine:?} + {excluded} at {ppm}");
            }
        }
    }

    #[test]
    fn the_order_of_rows_changes_nothing(slices in any_slices()) {
        let tenants: Vec<Tenant> = (0..6).map(|number| tenant(number, 100, false)).collect();
        let (mut one, mut other) = (decider(&EngineConfig::default(), &tenants), decider(&EngineConfig::default(), &tenants));
        for (turn, bytes) in slices.iter().enumerate() {
            let now = Nanos::from_secs(turn as u64 + 1);
            let forward = slice(bytes);
            let mut backward = forward.clone();
            backward.io.reverse();
            prop_assert_eq!(slice_of(&mut one, now, &forward), slice_of(&mut other, now, &backward));
        }
    }

    #[test]
    fn only_the_ratio_of_bytes_counts(slices in any_slices(), doublings in 0..20_u32) {
        let mut config = EngineConfig::default();
        config.fennel.quiet_bytes_per_second = 0.0;
        let tenants: Vec<Tenant> = (0..6).map(|number| tenant(number, 100, false)).collect();
        let (mut one, mut other) = (decider(&config, &tenants), decider(&config, &tenants));
        for (turn, bytes) in slices.iter().enumerate() {
            let now = Nanos::from_secs(turn as u64 + 1);
            let scaled: Vec<u64> = bytes.iter().map(|bytes| bytes << doublings).collect();
            let faster = 3.0 / f64::from(1 << doublings);
            slice_of(&mut one, now, &slice(bytes));
            slice_of(&mut other, now, &slice_on(faster, &scaled));
            prop_assert_eq!(shares(&one), shares(&other));
        }
    }

    #[test]
    fn a_restart_changes_no_share(slices in any_slices(), away in 0..100_000_u64) {
        let mut config = EngineConfig::default();
        config.fennel.floor_permille = 0;
        config.fennel.quiet_bytes_per_second = 0.0;
        let tenants: Vec<Tenant> = (0..6).map(|number| tenant(number, 100, false)).collect();
        let mut before = decider(&config, &tenants);
        // What the store was told last of each, and when.
        let mut stored: BTreeMap<String, (Nanos, TenantHistory)> = BTreeMap::new();
        for (turn, bytes) in slices.iter().enumerate() {
            let now = Nanos::from_secs(turn as u64 + 1);
            let histories = decided(&mut before, now, &slice(bytes)).histories;
            stored.extend(histories.into_iter().map(|row| (row.key.clone(), (now, row))));
        }
        let now = Nanos::from_secs(slices.len() as u64);
        stored.extend(before.all_histories(now).into_iter().map(|row| (row.key.clone(), (now, row))));
        prop_assert!(before.all_histories(now).is_empty(), "all of it is stored");
        let stored: Vec<TenantHistory> =
            stored.into_values().map(|(at, row)| TenantHistory { age: now - at, ..row }).collect();

        let mut after = Decider::default();
        after.configure(Nanos::from_secs(7), &config);
        for tenant in &tenants {
            let own: Vec<TenantHistory> = stored.iter().filter(|row| row.key == tenant.history_key()).cloned().collect();
            let own: Vec<TenantHistory> = own.into_iter().map(|row| TenantHistory { age: row.age + Nanos::from_secs(away), ..row }).collect();
            prop_assert!(after.tenant_seen(Nanos::from_secs(7), tenant, &own).is_empty());
        }
        let used = |(tenant, _): &(u64, u32)| slices.iter().any(|bytes| bytes[*tenant as usize] > 0);
        let expected: Vec<_> = shares(&before).into_iter().filter(used).collect();
        prop_assert_eq!(shares(&after), expected);
    }

    /// Damaged rows of the store, clocks that jump, half-lives of nothing: shares stay sane.
    #[test]
    fn nothing_that_is_stored_or_configured_breaks_it(
        rates in (any::<f64>(), any::<f64>()), age in any::<u64>(), group in any::<u8>(), groups in any::<u8>(),
        half_life in any::<u64>(), times in proptest::collection::vec(any::<u64>(), 1..10), bytes in any::<u64>(),
    ) {
        let mut config = EngineConfig::default();
        config.fennel.groups = groups;
        config.fennel.recent_half_life = Nanos(half_life % 1_000);
        config.fennel.long_term_half_life = Nanos(half_life);
        let tenants = [tenant(0, 100, false), tenant(1, 100, false)];
        let mut decider = decider(&config, &tenants);
        let usage = UsageAverage { recent_bytes_per_second: rates.0, long_term_bytes_per_second: rates.1 };
        let row = TenantHistory { key: tenants[0].history_key(), device: DISK, usage, disk_part: 0.5, group, age: Nanos(age) };
        let findings = decider.tenant_seen(Nanos(age), &tenants[0], &[row]);
        let sane = (0.0..=1e15).contains(&rates.0) && (0.0..=1e15).contains(&rates.1);
        prop_assert_eq!(findings.len(), usize::from(!sane));
        for time in times {
            let decisions: Vec<Decision> = slice_of(&mut decider, Nanos(time), &slice(&[bytes, bytes / 2]));
            prop_assert!(decisions.iter().flat_map(|d| &d.factors).all(|factor| factor.value.is_finite()));
        }
        for row in decider.all_histories(Nanos::ZERO) {
            prop_assert!(row.usage.recent_bytes_per_second.is_finite() && row.usage.long_term_bytes_per_second.is_finite());
        }
    }
}

#[test]
fn an_idle_slice_says_nothing_and_stores_nothing() {
    let tenants: Vec<Tenant> = (0..50).map(|number| tenant(number, 100, false)).collect();
    let mut decider = decider(&EngineConfig::default(), &tenants);
    let busy: Vec<u64> = (0..50).map(|number| number * 1_000_000).collect();
    let mut stored_at_most = 0;
    for second in 1..=200 {
        // All together have three fifths of the disk.
        let stored = decided(&mut decider, Nanos::from_secs(second), &slice_on(0.5, &busy)).histories.len();
        if second > 1 {
            stored_at_most = stored_at_most.max(stored);
        }
    }
    assert!(stored_at_most <= 10, "stores are spread over the slices, {stored_at_most} in one");
    decider.all_histories(Nanos::from_secs(200));
    for second in 201..=300 {
        let now = Nanos::from_secs(second);
        // The floor sinks once, ten slices after the last use.
        let Decided { decisions, histories, .. } = decided(&mut decider, now, &slice(&[0; 50]));
        assert!(decisions.is_empty() || second == 210, "{second}: {decisions:?}");
        assert!(histories.is_empty());
    }
}

/// The random reader of ADR 15: 4 KiB at a time it moves next to nothing beside the scanners and has nine tenths of the disk.
fn random_reader_and_two_scanners(parts: [f64; 3]) -> Signals {
    let mut signals = slice(&[100_000, 20_000_000, 20_000_000]);
    for (row, part) in signals.io.iter_mut().zip(parts) {
        row.disk_time = Nanos((part * 1e9) as u64);
    }
    signals
}

#[test]
fn who_holds_the_disk_sinks_after_a_while_and_rises_again_as_it_is_forgotten() {
    let mut decider = decider(&EngineConfig::default(), &[0, 1, 2].map(|number| tenant(number, 100, false)));
    let share = |decider: &Decider| decider.decision(TenantId(0), DISK).unwrap().share.get();
    let mut held_back_at = None;
    for second in 1..=120 {
        slice_of(&mut decider, Nanos::from_secs(second), &random_reader_and_two_scanners([0.9, 0.05, 0.05]));
        if share(&decider) < 100 {
            held_back_at.get_or_insert(second);
        }
    }
    // An average with a half-life of a minute that starts at zero is at a third after 40 seconds.
    assert!(held_back_at.is_some_and(|second| (35..50).contains(&second)), "{held_back_at:?}");
    let told = decider.decision(TenantId(0), DISK).unwrap().to_string();
    assert!(
        told.contains("share 5 ") && told.contains("% of the disk's time per weight against an equal part"),
        "{told}"
    );
    // In idle slices its average sinks, and so does its group, once each.
    let mut shares = Vec::new();
    for second in 121..=300 {
        slice_of(&mut decider, Nanos::from_secs(second), &slice(&[0; 3]));
        shares.push(share(&decider));
    }
    assert!(shares.is_sorted() && shares.last() == Some(&100), "{shares:?}");
}

#[test]
fn who_has_no_more_than_an_equal_part_is_judged_by_its_bytes() {
    let tenants = [0, 1, 2].map(|number| tenant(number, 100, false));
    let mut decider = decider(&EngineConfig::default(), &tenants);
    for second in 1..=600 {
        slice_of(&mut decider, Nanos::from_secs(second), &random_reader_and_two_scanners([0.3, 0.35, 0.35]));
        assert_eq!(decider.decision(TenantId(0), DISK).unwrap().share.get(), 100);
    }
}

#[test]
fn an_equal_part_is_by_the_operators_weight_and_of_those_who_use_the_disk() {
    // A reader that is to have three times as much has half of the disk beside two others, and a hundred that are hardly there
    // take next to nothing from it.
    let mut tenants = vec![tenant(0, 300, false), tenant(1, 100, false), tenant(2, 100, false)];
    tenants.extend((3..103).map(|number| tenant(number, 100, false)));
    let mut decider = decider(&EngineConfig::default(), &tenants);
    for second in 1..=600 {
        let mut signals = random_reader_and_two_scanners([0.55, 0.2, 0.2]);
        let idlers = (3..103).map(|number| IoSignals {
            tenant: TenantId(number),
            disk_time: Nanos::from_micros(20),
            transferred: IoCounters { read_bytes: 4096, read_ops: 1, ..IoCounters::default() },
            ..signals.io[0]
        });
        let idlers: Vec<IoSignals> = idlers.collect();
        signals.io.extend(idlers);
        slice_of(&mut decider, Nanos::from_secs(second), &signals);
    }
    assert_eq!(decider.decision(TenantId(0), DISK).unwrap().share.get(), 300);
}

#[test]
fn where_bytes_are_counted_disk_time_is_not() {
    let mut config = EngineConfig::default();
    config.fennel.counted = CountedUse::Bytes;
    let mut decider = decider(&config, &[0, 1, 2].map(|number| tenant(number, 100, false)));
    for second in 1..=600 {
        slice_of(&mut decider, Nanos::from_secs(second), &random_reader_and_two_scanners([0.9, 0.05, 0.05]));
    }
    assert_eq!(decider.decision(TenantId(0), DISK).unwrap().share.get(), 100);
    assert!(decider.all_histories(Nanos::from_secs(600)).iter().all(|row| row.disk_part == 0.0));
}

#[test]
fn an_empty_group_is_remembered_until_its_use_has_faded() {
    let member = |number| Tenant { group: Some("web".to_owned()), ..tenant(number, 100, false) };
    for (days, remembered) in [(1, true), (20, false)] {
        let mut decider = decider(&EngineConfig::default(), &[member(0)]);
        for second in 1..=10 {
            slice_of(&mut decider, Nanos::from_secs(second), &slice(&[20_000_000]));
        }
        decider.tenant_gone(TenantId(0));
        let later = Nanos::from_secs(days * 86_400);
        decider.tenant_seen(later, &member(1), &[]);
        let reason = decider.decision(TenantId(1), DISK).unwrap().factors[0].reason.clone();
        assert_eq!(!matches!(reason, Reason::NoHistory), remembered, "after {days} days: {reason}");
    }
}

#[test]
fn a_leap_of_the_clock_leaves_a_sane_history() {
    let mut decider = decider(&EngineConfig::default(), &[tenant(0, 100, false)]);
    let first = decided(&mut decider, Nanos::SECOND, &slice(&[20_000_000])).histories;
    assert_eq!(first.len(), 1);
    let year = Nanos::from_secs(365 * 86_400);
    let usage = UsageAverage { recent_bytes_per_second: 5e6, long_term_bytes_per_second: 1e6 };
    let late = tenant(1, 100, false);
    let row =
        TenantHistory { key: late.history_key(), device: DISK, usage, disk_part: 0.5, group: 9, age: Nanos::ZERO };
    assert!(decider.tenant_seen(year, &late, std::slice::from_ref(&row)).is_empty());
    let stored = decider.all_histories(year);
    assert!(
        stored.iter().all(|row| row.key != late.history_key()),
        "the newcomer's row is the store's own: {stored:?}"
    );
    slice_of(&mut decider, year + Nanos::SECOND, &slice(&[1_000_000, 1_000_000]));
    assert!(
        decider.all_histories(year + Nanos::SECOND).iter().all(|row| row.usage.recent_bytes_per_second.is_finite())
    );
}
