//! When a tenant steps back by the clock on the wall. Pure: the instant is an argument.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use minerva_model::Level;
use minerva_store::{Schedule, Span};

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
        let zone = if name.is_empty() { TimeZone::try_system() } else { TimeZone::get(name) };
        let zone = zone.map_err(|error| match name.is_empty() {
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
        let within = |span: &&Span| days.iter().flatten().any(|day| self.is_within(&now, span, *day));
        self.schedule.spans.iter().filter(within).map(|span| span.level).max().unwrap_or_default()
    }

    /// Both ends are instants of the zone's own clock, so a span that the clock is put back or forward in is longer or shorter.
    fn is_within(&self, now: &Zoned, span: &Span, day: Date) -> bool {
        let weekday = day.weekday().to_monday_zero_offset();
        if span.days != 0 && span.days >> weekday & 1 == 0 {
            return false;
        }
        let last = if span.end_minute > span.begin_minute { Some(day) } else { day.tomorrow().ok() };
        let instant = |day: Date, minute: u16| {
            let (hour, minute) = (i8::try_from(minute / 60).ok()?, i8::try_from(minute % 60).ok()?);
            self.zone
                .to_zoned(jiff::civil::DateTime::from_parts(day, jiff::civil::Time::new(hour, minute, 0, 0).ok()?))
                .ok()
        };
        let (begin, end) = (instant(day, span.begin_minute), last.and_then(|day| instant(day, span.end_minute)));
        begin.is_some_and(|begin| begin <= *now) && end.is_some_and(|end| *now < end)
    }
}

#[cfg(test)]
mod tests {
    use super::TimeTable;
    use minerva_model::Level;
    use minerva_store::{Schedule, Span};

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
}
