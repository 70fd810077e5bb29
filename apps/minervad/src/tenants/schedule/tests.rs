//! What a schedule says, and that it is not looked up anew in each slice.

use super::{TimeTable, check_spans, zone_named};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use minerva_model::{CgroupRef, Level, Nanos, Origin, Tenant, TenantId, TenantKind, Terms};
use minerva_store::{Schedule, Span};

#[test]
fn utc_is_known_where_no_other_time_zone_is() {
    let none = TimeZoneDatabase::none();
    assert_eq!(["UTC", "Etc/UTC"].map(|name| zone_named(name, &none).ok()), [Some(TimeZone::UTC), Some(TimeZone::UTC)]);
    assert!(zone_named("Europe/Berlin", &none).is_err());
}

fn table(spans: &[(u16, u16, u8, Level)]) -> Option<TimeTable> {
    let span = |&(begin_minute, end_minute, days, level)| Span { begin_minute, end_minute, days, level };
    let spans = spans.iter().map(span).collect();
    let table = TimeTable::new(Schedule { time_zone: "Europe/Berlin".to_owned(), spans });
    if table.is_err() {
        eprintln!("skipped: needs the time zone database");
    }
    table.ok()
}

fn at(table: &TimeTable, instant: &str) -> Level {
    let instant: jiff::Timestamp = instant.parse().expect("an instant");
    table.level_at(i64::try_from(instant.as_nanosecond()).expect("this century"))
}

#[test]
fn a_night_begins_on_its_days_and_ends_on_the_next() {
    // 22:00 to 06:00, begun on Friday (bit 4) only; and the furthest of two holds.
    let spans = [(1320, 360, 0b1_0000, Level::Low), (0, 60, 0, Level::Idle)];
    let Some(table) = table(&spans) else { return };
    let cases = [
        ("2026-11-20T20:59:59Z", Level::Normal),
        ("2026-11-20T21:00:00Z", Level::Low),
        ("2026-11-20T23:30:00Z", Level::Idle),
        ("2026-11-21T04:59:59Z", Level::Low),
        ("2026-11-21T05:00:00Z", Level::Normal),
        ("2026-11-21T21:00:00Z", Level::Normal),
    ];
    for (instant, level) in cases {
        assert_eq!(at(&table, instant), level, "{instant}");
    }
}

#[test]
fn the_clock_put_forward_and_back_moves_the_instants_and_not_the_times() {
    // 01:00 to 05:00. On 2026-03-29 02:00 becomes 03:00, on 2026-10-25 03:00 becomes 02:00.
    let Some(table) = table(&[(60, 300, 0, Level::Idle)]) else { return };
    let idle_minutes = |day: &str| {
        let first: jiff::Timestamp = format!("{day}T20:00:00Z").parse().expect("an instant");
        let minute =
            |minute: i64| i64::try_from(first.as_nanosecond()).expect("this century") + minute * 60_000_000_000;
        (0..720).filter(|number| table.level_at(minute(*number)) == Level::Idle).count()
    };
    assert_eq!(idle_minutes("2026-03-27"), 240);
    assert_eq!(idle_minutes("2026-03-28"), 180);
    assert_eq!(idle_minutes("2026-10-24"), 300);
    // A span inside the hour that is left out, or that comes twice.
    let Some(table) = self::table(&[(135, 165, 0, Level::Low)]) else { return };
    assert_eq!(at(&table, "2026-03-29T01:20:00Z"), Level::Low, "half past two is half past three");
    assert_eq!(at(&table, "2026-10-25T00:20:00Z"), Level::Low);
    assert_eq!(at(&table, "2026-10-25T01:20:00Z"), Level::Normal, "once is enough");
}

#[test]
fn an_end_that_is_the_begin_is_a_whole_day_and_a_wrong_zone_is_named() {
    let Some(table) = table(&[(600, 600, 0b1, Level::Low)]) else { return };
    assert_eq!(at(&table, "2026-11-23T09:00:00Z"), Level::Low, "Monday at ten");
    assert_eq!(at(&table, "2026-11-24T08:59:00Z"), Level::Low);
    assert_eq!(at(&table, "2026-11-24T09:00:00Z"), Level::Normal);
    let wrong = Schedule { time_zone: "Europe/Atlantis".to_owned(), spans: Vec::new() };
    assert!(TimeTable::new(wrong).expect_err("refused").contains("Europe/Atlantis"));
    assert_eq!(table.level_at(i64::MIN), table.level_at(i64::MIN), "the ends of time are no trouble");
}

#[test]
fn the_next_change_is_where_the_level_is_another() {
    // Low on Friday from 22:00 to 06:00, and every day from 00:00 to 01:00 idle.
    let Some(table) = table(&[(1320, 360, 0b1_0000, Level::Low), (0, 60, 0, Level::Idle)]) else { return };
    let unix = |instant: &str| {
        let instant: jiff::Timestamp = instant.parse().expect("an instant");
        i64::try_from(instant.as_nanosecond()).expect("this century")
    };
    let mut at = unix("2026-11-20T12:00:00Z");
    for (instant, level) in [
        ("2026-11-20T21:00:00Z", Level::Low),
        ("2026-11-20T23:00:00Z", Level::Idle),
        ("2026-11-21T00:00:00Z", Level::Low),
        ("2026-11-21T05:00:00Z", Level::Normal),
        ("2026-11-21T23:00:00Z", Level::Idle),
    ] {
        let claim = table.claim_at(Nanos::from_secs(5), at);
        let next = unix(instant);
        let after = Nanos(u64::try_from(next - at).expect("later"));
        assert_eq!(claim.next, Some((Nanos::from_secs(5) + after, level)), "{instant}");
        assert_eq!(claim.level, table.level_at(at));
        at = next;
    }
    let Some(always) = self::table(&[(0, 0, 0, Level::Low)]) else { return };
    let claim = always.claim_at(Nanos::ZERO, at);
    assert_eq!((claim.level, claim.next), (Level::Low, None), "day after day without a change");
    let Some(empty) = self::table(&[]) else { return };
    assert_eq!(empty.claim_at(Nanos::ZERO, i64::MAX).next, None);
}

#[test]
fn what_was_looked_up_stands_until_the_level_changes_or_the_clock_leaps() {
    // 64 spans of one level that overlap: nothing ever changes, however far one looks.
    let mut spans: Vec<_> = (0..63).map(|number| (number * 20, number * 20 + 600, 0, Level::Low)).collect();
    spans.iter_mut().for_each(|(_, end, ..)| *end %= 1_440);
    spans.push((0, 0, 0, Level::Low));
    let Some(same) = table(&spans) else { return };
    spans[63] = (720, 780, 0, Level::Idle);
    let Some(other) = table(&spans) else { return };
    let first: jiff::Timestamp = "2026-11-20T09:00:00Z".parse().unwrap();
    let at = |seconds: i64| i64::try_from(first.as_nanosecond()).unwrap() + seconds * 1_000_000_000;
    for table in [&same, &other] {
        for slice in 0..100 {
            let claim = table.claim_at(Nanos::ZERO, at(slice));
            assert_eq!(
                (claim.level, claim.next.is_some()),
                (Level::Low, table.schedule.spans[63].level == Level::Idle)
            );
            assert_eq!(table.known.get().unwrap().from, at(0), "slice {slice}");
        }
        // The clock is put back, by little and by a day, and goes on; it passes the next change at noon in Berlin.
        for (seconds, from) in [(-1, -1), (5, -1), (-86_400, -86_400), (-86_300, -86_400)] {
            table.claim_at(Nanos::ZERO, at(seconds));
            assert_eq!(table.known.get().unwrap().from, at(from));
        }
        table.claim_at(Nanos::ZERO, at(7_200));
        assert_eq!(table.known.get().unwrap().from, at(7_200));
    }
    assert_eq!((other.level_at(at(7_200)), same.level_at(at(7_200))), (Level::Idle, Level::Low));
}

fn level_by_each_span(table: &TimeTable, unix_ns: i64) -> Level {
    let today = jiff::Timestamp::from_nanosecond(unix_ns.into()).unwrap().to_zoned(table.zone.clone()).date();
    let days = [today.yesterday().unwrap(), today];
    let spans =
        days.iter().flat_map(|day| table.schedule.spans.iter().map(move |span| (span, table.bounds(span, *day))));
    let within = spans.filter(|(_, bounds)| bounds.is_some_and(|(begin, end)| (begin..end).contains(&unix_ns)));
    within.map(|(span, _)| span.level).max().unwrap_or_default()
}

#[test]
fn one_sweep_says_what_each_instant_says() {
    let mut seed = 7_u64;
    let mut random = |most: u16| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((seed >> 40) % u64::from(most)) as u16
    };
    let levels = [Level::Low, Level::Lowest, Level::Idle];
    let first: jiff::Timestamp = "2026-10-23T22:00:00Z".parse().unwrap();
    let first = i64::try_from(first.as_nanosecond()).unwrap();
    for _ in 0..20 {
        let spans: Vec<_> = (0..1 + random(6))
            .map(|_| (random(96) * 15, random(96) * 15, random(128) as u8, levels[usize::from(random(3))]))
            .collect();
        let Some(table) = table(&spans) else { return };
        let level = |minute: i64| level_by_each_span(&table, first + minute * 60_000_000_000);
        // By quarters of an hour, over a week in which the clock is put back.
        let mut minute = 0;
        while minute < 7 * 1_440 {
            let (now, next) = table.look(first + minute * 60_000_000_000);
            let Some((at, to)) = next else { break };
            let changes = (at - first) / 60_000_000_000;
            assert!((minute..changes).step_by(15).all(|before| level(before) == now), "{spans:?}, {minute}");
            assert_eq!((level(changes), to != now), (to, true), "{spans:?}, {minute}");
            minute = changes;
        }
    }
}

#[test]
fn the_schedules_of_whoever_may_make_groups_have_so_many_spans_and_those_of_an_operators_group_any_number() {
    let Some(full) = table(&[(0, 60, 0, Level::Low); 64]) else { return };
    let cgroup = |path: &str| CgroupRef { path: path.to_owned(), inode: 1 };
    let tenant = |number: u64, delegated_from: Option<&str>| Tenant {
        id: TenantId(number),
        name: format!("t-{number}"),
        kind: TenantKind::VirtualMachine,
        cgroup: cgroup(&format!("u/t-{number}")),
        group: Some("batch".to_owned()),
        weight_percent: 100,
        excluded: false,
        job: None,
        terms: Terms::default(),
        origin: Origin { delegated_from: delegated_from.map(cgroup), ..Origin::default() },
    };
    let check = |tables: u64, count: usize, of: Option<&str>| {
        let others: Vec<Tenant> = (1..=tables).map(|number| tenant(number, of)).collect();
        // It has one itself, which the new one replaces, and somebody else has many.
        let (own, foreign) = (tenant(0, of), tenant(99, Some("other")));
        let all = others.iter().chain([&own]).chain(std::iter::repeat_n(&foreign, 40));
        check_spans(&own, all.map(|tenant| (tenant, &full)), count)
    };
    let user = Some("u");
    assert_eq!((check(15, 64, user), check(16, 0, user)), (Ok(()), Ok(())), "it can be full, and be given up");
    let refused = check(16, 1, user).expect_err("one too many");
    assert!(refused.contains("have 1024 spans already"), "{refused}");
    assert_eq!(check(100, 64, None), Ok(()), "the operator made them");
}
