//! Instants as people write them.

use jiff::civil::{DateTime, Time};
use jiff::{Span, Timestamp, Zoned};

/// Reads an instant: RFC 3339, a local date and time, a local time of today (of yesterday, if that is still to come), or a
/// span ago.
pub(crate) fn parse(text: &str, now: &Zoned) -> Result<Timestamp, String> {
    let text = text.trim();
    if text == "now" {
        return Ok(now.timestamp());
    }
    if let Ok(instant) = text.parse::<Timestamp>() {
        return Ok(instant);
    }
    // A date and time would read as a time alone, too.
    if !text.contains('-')
        && let Ok(time) = text.parse::<Time>()
    {
        return local_time(time, now);
    }
    if let Ok(moment) = text.parse::<DateTime>() {
        return moment.to_zoned(now.time_zone().clone()).map(|z| z.timestamp()).map_err(|error| error.to_string());
    }
    if text.ends_with("ago")
        && let Ok(span) = text.parse::<Span>()
    {
        return now.checked_add(span).map(|z| z.timestamp()).map_err(|error| error.to_string());
    }
    Err(format!(
        "'{text}' is no instant: write 2026-03-01T14:30:00Z, \"2026-03-01 14:30\", 14:30 or \"10 minutes ago\""
    ))
}

fn local_time(time: Time, now: &Zoned) -> Result<Timestamp, String> {
    let today = now.with().time(time).build().map_err(|error| error.to_string())?;
    let past = if today > *now { today.yesterday().map_err(|error| error.to_string())? } else { today };
    Ok(past.timestamp())
}

/// An instant in local time, to the second.
pub(crate) fn show(unix_ns: i64) -> String {
    match Timestamp::from_nanosecond(i128::from(unix_ns)) {
        Ok(instant) => instant.to_zoned(jiff::tz::TimeZone::system()).strftime("%F %T").to_string(),
        Err(_) => format!("{unix_ns} ns"),
    }
}

#[cfg(test)]
mod tests {
    use super::parse;
    use jiff::Zoned;

    #[test]
    fn the_ways_to_write_an_instant() {
        let now: Zoned = "2026-03-01T14:00:00+00:00[UTC]".parse().expect("an instant");
        let read = |text: &str| parse(text, &now).map(|instant| instant.to_string());
        assert_eq!(read("now").as_deref(), Ok("2026-03-01T14:00:00Z"));
        assert_eq!(read("2026-02-01T10:00:00+01:00").as_deref(), Ok("2026-02-01T09:00:00Z"));
        assert_eq!(read("2026-02-01 10:00").as_deref(), Ok("2026-02-01T10:00:00Z"));
        assert_eq!(read("13:30").as_deref(), Ok("2026-03-01T13:30:00Z"));
        assert_eq!(read("14:30").as_deref(), Ok("2026-02-28T14:30:00Z"));
        assert_eq!(read("10 minutes ago").as_deref(), Ok("2026-03-01T13:50:00Z"));
        assert_eq!(read("1h 30m ago").as_deref(), Ok("2026-03-01T12:30:00Z"));
        assert!(read("tomorrow-ish").is_err());
    }
}
