//! When a tenant steps back by the clock on the wall. Pure: the instant is an argument.

use jiff::civil::Date;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, Zoned};
use minerva_model::{Level, Nanos, ScheduledClaim, Tenant};
use minerva_store::{Schedule, Span};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;

/// How many days are looked at for the next change, from yesterday, whose spans may last until now: at first until tomorrow, and where
/// nothing changes until then all days of a week with the one that is like today.
const DAYS_LOOKED_AT: [usize; 2] = [3, 10];
/// For how long it stands that nothing changes within them.
const UNCHANGED_FOR_NS: i64 = 86_400_000_000_000;

/// Spans of all schedules of groups that somebody made in one that was delegated.
const DELEGATED_SPANS_MAX: usize = 1_024;

/// A schedule in its time zone.
#[derive(Clone, Debug)]
pub(crate) struct TimeTable {
    schedule: Schedule,
    zone: TimeZone,
    /// What was looked up last. It is asked for in each slice, and looking costs hundreds of conversions.
    known: Cell<Option<Known>>,
}

/// What a schedule says from one instant until another, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    from: i64,
    until: i64,
    level: Level,
    /// When the level changes next, and to what.
    next: Option<(i64, Level)>,
}

impl TimeTable {
    /// Looks up the time zone; the error is a sentence.
    pub(crate) fn new(schedule: Schedule) -> Result<Self, String> {
        let name = &schedule.time_zone;
        let zone = zone_named(name, jiff::tz::db()).map_err(|error| match name.is_empty() {
            true => format!("The host's time zone is not known ({error}); name one, such as Europe/Berlin."),
            false => format!("There is no time zone {name} ({error}); write a name such as Europe/Berlin."),
        })?;
        Ok(Self { schedule, zone, known: Cell::new(None) })
    }

    /// What is to be kept of it.
    pub(crate) const fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// How far to step back at an instant, in nanoseconds since 1970.
    pub(crate) fn level_at(&self, unix_ns: i64) -> Level {
        self.known_at(unix_ns).level
    }

    /// What it says at an instant of both clocks, with its next change in the clock that the engine knows.
    pub(crate) fn claim_at(&self, now: Nanos, unix_ns: i64) -> ScheduledClaim {
        let Known { level, next, .. } = self.known_at(unix_ns);
        ScheduledClaim { level, next: next.map(|(at, level)| (now + Nanos(at.abs_diff(unix_ns)), level)) }
    }

    /// What was looked up last, unless the clock has passed that, or was put back before it.
    fn known_at(&self, unix_ns: i64) -> Known {
        let known = self.known.get().filter(|known| (known.from..known.until).contains(&unix_ns));
        known.unwrap_or_else(|| {
            let (level, next) = self.look(unix_ns);
            let until = next.map_or(unix_ns.saturating_add(UNCHANGED_FOR_NS), |(at, _)| at);
            let known = Known { from: unix_ns, until, level, next };
            self.known.set(Some(known));
            known
        })
    }

    /// The level at an instant, and when it changes next within a week and a day, and to what.
    fn look(&self, unix_ns: i64) -> (Level, Option<(i64, Level)>) {
        let today = Timestamp::from_nanosecond(unix_ns.into()).ok().map(|now| now.to_zoned(self.zone.clone()).date());
        let Some(yesterday) = today.and_then(|today| today.yesterday().ok()) else { return Default::default() };
        let [few, all] = DAYS_LOOKED_AT;
        match self.look_at_days(unix_ns, yesterday, few) {
            (_, None) => self.look_at_days(unix_ns, yesterday, all),
            found => found,
        }
    }

    /// The same of so many days. The ends of all spans are gone through once, in their order.
    fn look_at_days(&self, unix_ns: i64, yesterday: Date, days: usize) -> (Level, Option<(i64, Level)>) {
        let all_days = || std::iter::successors(Some(yesterday), |day| day.tomorrow().ok());
        // From here on spans may begin that are not looked at.
        let end = all_days().nth(days).and_then(|day| unix_of(&self.zone.to_zoned(day.into()).ok()?));
        let end = end.unwrap_or(i64::MAX);
        let mut ends: Vec<(i64, bool, Level)> = Vec::new();
        for day in all_days().take(days) {
            for span in &self.schedule.spans {
                if let Some((begin, end)) = self.bounds(span, day).filter(|(begin, end)| begin < end) {
                    ends.extend([(begin, true, span.level), (end, false, span.level)]);
                }
            }
        }
        ends.sort_unstable();
        let (mut under_way, mut level) = (BTreeMap::<Level, u32>::new(), Level::Normal);
        for at_once in ends.chunk_by(|one, other| one.0 == other.0) {
            let at = at_once[0].0;
            if at >= end {
                break;
            }
            at_once.iter().for_each(|(_, begins, level)| {
                let count = under_way.entry(*level).or_default();
                *count = if *begins { *count + 1 } else { count.saturating_sub(1) };
            });
            let furthest = under_way.iter().rev().find(|(_, count)| **count > 0).map(|(level, _)| *level);
            let furthest = furthest.unwrap_or_default();
            if at <= unix_ns {
                level = furthest;
            } else if furthest != level {
                return (level, Some((at, furthest)));
            }
        }
        (level, None)
    }

    /// Begin and end of a span that begins on a day. Both are instants of the zone's own clock, so a span that the clock is put back
    /// or forward in is longer or shorter.
    fn bounds(&self, span: &Span, day: Date) -> Option<(i64, i64)> {
        let weekday = day.weekday().to_monday_zero_offset();
        if span.days != 0 && span.days >> weekday & 1 == 0 {
            return None;
        }
        let last = if span.end_minute > span.begin_minute { day } else { day.tomorrow().ok()? };
        let instant = |day: Date, minute: u16| {
            let (hour, minute) = (i8::try_from(minute / 60).ok()?, i8::try_from(minute % 60).ok()?);
            let time = jiff::civil::Time::new(hour, minute, 0, 0).ok()?;
            unix_of(&self.zone.to_zoned(jiff::civil::DateTime::from_parts(day, time)).ok()?)
        };
        Some((instant(day, span.begin_minute)?, instant(last, span.end_minute)?))
    }
}

/// Whether a tenant may have a schedule of so many spans beside all these, also its own from before; the error is a sentence. An operator's group may
/// have any number.
pub(crate) fn check_spans<'a>(
    tenant: &Tenant,
    scheduled: impl Iterator<Item = (&'a Tenant, &'a TimeTable)>,
    count: usize,
) -> Result<(), String> {
    if tenant.maker() == tenant.cgroup.path {
        return Ok(());
    }
    let others = scheduled.filter(|(other, _)| other.id != tenant.id && other.maker() == tenant.maker());
    let spans: usize = others.map(|(_, table)| table.schedule.spans.len()).sum();
    if count > 0 && spans + count > DELEGATED_SPANS_MAX {
        return Err(format!(
            "The schedules of the other groups of this tenant's owner have {spans} spans already; \
             with these {count} they are more than {DELEGATED_SPANS_MAX}, which is the limit. Join some first."
        ));
    }
    Ok(())
}

/// In nanoseconds since 1970.
fn unix_of(instant: &Zoned) -> Option<i64> {
    i64::try_from(instant.timestamp().as_nanosecond()).ok()
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
mod tests;
