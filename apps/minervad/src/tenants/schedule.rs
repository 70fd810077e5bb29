//! When a tenant steps back by the clock on the wall. Pure: the instant is an argument.

use jiff::civil::Date;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, Zoned};
use minerva_model::{Level, Nanos, ScheduledClaim};
use minerva_store::{Schedule, Span};
use std::path::Path;

/// Yesterday, whose spans may last until now, and all days of a week with the one that is like today.
const DAYS_AHEAD: usize = 10;

/// A schedule in its time zone.
#[derive(Clone, Debug)]
pub(crate) struct TimeTable {
    schedule: Schedule,
    zone: TimeZone,
}

impl TimeTable {
    /// Looks up the time zone; the error is a sentence.
    pub(crate) fn new(schedule: Schedule) -> Result<Self, String> {
        let name = &schedule.time_zone;
        let zone = zone_named(name, jiff::tz::db()).map_err(|error| match name.is_empty() {
            true => format!("The host's time zone is not known ({error}); name one, such as Europe/Berlin."),
            false => format!("There is no time zone {name} ({error}); write a name such as Europe/Berlin."),
        })?;
        Ok(Self { schedule, zone })
    }

    /// What is to be kept of it.
    pub(crate) const fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// How far to step back at an instant, in nanoseconds since 1970.
    pub(crate) fn level_at(&self, unix_ns: i64) -> Level {
        let Ok(now) = Timestamp::from_nanosecond(unix_ns.into()) else { return Level::Normal };
        let now = now.to_zoned(self.zone.clone());
        // A span that began yesterday may last until now.
        let days = [Some(now.date()), now.date().yesterday().ok()];
        let is_between = |(begin, end): (Zoned, Zoned)| begin <= now && now < end;
        let within = |span: &&Span| days.iter().flatten().filter_map(|day| self.bounds(span, *day)).any(is_between);
        self.schedule.spans.iter().filter(within).map(|span| span.level).max().unwrap_or_default()
    }

    /// What it says at an instant of both clocks, with its next change in the clock that the engine knows.
    pub(crate) fn claim_at(&self, now: Nanos, unix_ns: i64) -> ScheduledClaim {
        let next = self.next_change(unix_ns).map(|(at, level)| (now + Nanos(at.abs_diff(unix_ns)), level));
        ScheduledClaim { level: self.level_at(unix_ns), next }
    }

    /// When the level changes next, within a week and a day, and to what: at an end of a span, as nothing changes between.
    fn next_change(&self, unix_ns: i64) -> Option<(i64, Level)> {
        let today = Timestamp::from_nanosecond(unix_ns.into()).ok()?.to_zoned(self.zone.clone()).date();
        let days = std::iter::successors(today.yesterday().ok(), |day| day.tomorrow().ok()).take(DAYS_AHEAD);
        let bounds = days.flat_map(|day| self.schedule.spans.iter().filter_map(move |span| self.bounds(span, day)));
        let mut ends: Vec<i64> = bounds
            .flat_map(|(begin, end)| [begin, end])
            .filter_map(|at| i64::try_from(at.timestamp().as_nanosecond()).ok())
            .filter(|at| *at > unix_ns)
            .collect();
        ends.sort_unstable();
        let level = self.level_at(unix_ns);
        ends.into_iter().map(|at| (at, self.level_at(at))).find(|(_, next)| *next != level)
    }

    /// Begin and end of a span that begins on a day. Both are instants of the zone's own clock, so a span that the clock is put back
    /// or forward in is longer or shorter.
    fn bounds(&self, span: &Span, day: Date) -> Option<(Zoned, Zoned)> {
        let weekday = day.weekday().to_monday_zero_offset();
        if span.days != 0 && span.days >> weekday & 1 == 0 {
            return None;
        }
        let last = if span.end_minute > span.begin_minute { day } else { day.tomorrow().ok()? };
        let instant = |day: Date, minute: u16| {
            let (hour, minute) = (i8::try_from(minute / 60).ok()?, i8::try_from(minute % 60).ok()?);
            let time = jiff::civil::Time::new(hour, minute, 0, 0).ok()?;
            self.zone.to_zoned(jiff::civil::DateTime::from_parts(day, time)).ok()
        };
        Some((instant(day, span.begin_minute)?, instant(last, span.end_minute)?))
    }
}

/// The time zone of this name; of an empty one the host's. UTC needs no database, and is the zone of a host that names none
/// (localtime(5)).
fn zone_named(name: &str, zones: &TimeZoneDatabase) -> Result<TimeZone, jiff::Error> {
    match name {
        "" => TimeZone::try_system().or_else(|error| match Path::new("/etc/localtime").exists() {
            true => Err(error),
            false => Ok(TimeZone::UTC),
        }),
        "UTC" | "Etc/UTC" => Ok(zones.get(name).unwrap_or(TimeZone::UTC)),
        _ => zones.get(name),
    }
}

#[cfg(test)]
mod tests {
    use super::{TimeTable, zone_named};
    use jiff::tz::{TimeZone, TimeZoneDatabase};
    use minerva_model::{Level, Nanos};
    use minerva_store::{Schedule, Span};

    #[test]
    fn utc_is_known_where_no_other_time_zone_is() {
        let none = TimeZoneDatabase::none();
        assert_eq!(
            ["UTC", "Etc/UTC"].map(|name| zone_named(name, &none).ok()),
            [Some(TimeZone::UTC), Some(TimeZone::UTC)]
        );
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
}
