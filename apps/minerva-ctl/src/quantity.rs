//! Amounts as people write them: spans of time, sizes, purchases, parts of a day.

use minerva_client::{BoostAmount, Level, v1};
use minerva_model::{JobSettings, MicroCredits};
use minerva_quantity::{parse_duration, parse_size};
use std::time::Duration;

/// A turning disk does some ten requests in it.
const READING_TIME_MIN: Duration = Duration::from_millis(100);

/// A duration: `60s`, `2 min`, `1h 30m`, or bare seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}

/// How long readers read to show something.
pub(crate) fn reading_time(text: &str) -> Result<Duration, String> {
    match duration(text) {
        Ok(time) if time < READING_TIME_MIN => Err(format!("`{text}` shows nothing: give at least 100ms")),
        time => time,
    }
}

/// How much will be moved: more than nothing.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    match parse_size(text) {
        Ok(0) => Err(format!("`{text}` is nothing")),
        size => size.map_err(|error| error.to_string()),
    }
}

/// The name of a batch job.
pub(crate) fn job_name(text: &str) -> Result<String, String> {
    JobSettings::refusal_of_name(text).map_or_else(|| Ok(text.to_owned()), Err)
}

/// Bytes a second, as of contracts: `8800kB`, `8800kB/s`.
pub(crate) fn rate(text: &str) -> Result<u64, String> {
    size(text.trim_end().trim_end_matches("/s"))
}

/// How much high priority: `30s`, or `30-slices`.
pub(crate) fn boost_amount(text: &str) -> Result<BoostAmount, String> {
    let slices = text.strip_suffix("slices").or_else(|| text.strip_suffix("slice"));
    match slices.map(|number| number.trim_end_matches(['-', ' ']).parse::<u32>()) {
        Some(Ok(slices)) => Ok(BoostAmount::Slices(slices)),
        Some(Err(_)) => Err(format!("'{text}' is no number of slices: write 30-slices, or a time such as 30s")),
        None => duration(text).map(BoostAmount::For),
    }
}

const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// A part of the day at which to step back: `22:00-06:00 idle`, `mon-fri 08:00-18:00 low`, `sat,sun 00:00-24:00 lowest`.
pub(crate) fn schedule_entry(text: &str) -> Result<v1::ScheduleEntry, String> {
    let wrong =
        || format!("'{text}' is no part of a schedule: write \"22:00-06:00 idle\" or \"mon-fri 08:00-18:00 low\"");
    let words: Vec<&str> = text.split_whitespace().collect();
    let (days, span, level) = match words[..] {
        [span, level] => (0, span, level),
        [days, span, level] => (day_set(days).ok_or_else(wrong)?, span, level),
        _ => return Err(wrong()),
    };
    let (begin, end) = span.split_once('-').ok_or_else(wrong)?;
    let level: Level = level.parse().map_err(|error| format!("{error}; {}", wrong()))?;
    Ok(v1::ScheduleEntry {
        begin_minute: minute(begin).ok_or_else(wrong)?,
        end_minute: minute(end).ok_or_else(wrong)?,
        days,
        level: level.to_wire(),
    })
}

/// The same as text.
pub(crate) fn schedule_text(entry: &v1::ScheduleEntry) -> String {
    let days: Vec<&str> =
        DAYS.iter().enumerate().filter(|(bit, _)| entry.days >> bit & 1 == 1).map(|(_, &d)| d).collect();
    let time = |minute: u32| format!("{:02}:{:02}", minute / 60, minute % 60);
    let days = if days.is_empty() { String::new() } else { format!("{} ", days.join(",")) };
    format!("{days}{}-{} {}", time(entry.begin_minute), time(entry.end_minute), Level::from_wire(entry.level))
}

/// Minutes after midnight; midnight at the end of the day is that at its begin.
fn minute(text: &str) -> Option<u32> {
    let (hour, minute) = text.split_once(':')?;
    let (hour, minute): (u32, u32) = (hour.parse().ok()?, minute.parse().ok()?);
    match (hour, minute) {
        (24, 0) => Some(0),
        (0..24, 0..60) => Some(hour * 60 + minute),
        _ => None,
    }
}

/// `mon,wed`, `mon-fri`, or both mixed, as bits.
fn day_set(text: &str) -> Option<u32> {
    let day = |name: &str| DAYS.iter().position(|day| name.eq_ignore_ascii_case(day));
    let mut days = 0;
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (day(first)?, day(last)?);
        // From Saturday to Monday is three days.
        days |= (0..=(7 + last - first) % 7).fold(0, |days, step| days | 1 << ((first + step) % 7));
    }
    Some(days)
}

/// Credits with up to six decimals, and more than none.
pub(crate) fn credits(text: &str) -> Result<MicroCredits, String> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|one| one.is_ascii_digit());
    let amount = (digits(whole) && digits(part) && part.len() <= 6).then(|| {
        Some((whole.parse::<u64>().ok()?.checked_mul(1_000_000)?, format!("{part:0<6}").parse::<u64>().ok()?))
    });
    match amount.flatten().and_then(|(whole, part)| whole.checked_add(part)) {
        None | Some(0) => Err("not a number of credits: write 250, or 0.5 with up to six decimals".to_owned()),
        Some(amount) => Ok(MicroCredits(amount)),
    }
}

#[cfg(test)]
mod tests {
    use super::{boost_amount, duration, schedule_entry, schedule_text, size};
    use minerva_client::BoostAmount;
    use std::time::Duration;

    #[test]
    fn durations_and_sizes_are_those_of_the_settings() {
        assert_eq!([duration("60"), duration("1h 30m")], [60, 5400].map(|seconds| Ok(Duration::from_secs(seconds))));
        assert!(duration("soon").is_err() && duration("-5s").is_err());
        assert_eq!([size("500M"), size("500MB"), size("500MiB")], [Ok(500_000_000), Ok(500_000_000), Ok(500 << 20)]);
        assert!(size("0").is_err() && size("5Mx").is_err());
    }

    #[test]
    fn readers_read_for_long_enough_to_show_something() {
        assert_eq!(super::reading_time("100ms"), Ok(Duration::from_millis(100)));
        for text in ["0", "0s", "99ms", "soon"] {
            assert!(super::reading_time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_boost_is_a_time_or_a_number_of_slices() {
        assert_eq!(boost_amount("30s"), Ok(BoostAmount::For(Duration::from_secs(30))));
        assert_eq!(boost_amount("30-slices"), Ok(BoostAmount::Slices(30)));
        assert_eq!(boost_amount("1 slice"), Ok(BoostAmount::Slices(1)));
        assert!(boost_amount("-slices").is_err());
    }

    #[test]
    fn parts_of_a_day_come_back_as_they_were_written() {
        for text in ["22:00-06:00 idle", "mon,tue,wed,thu,fri 08:00-18:30 low"] {
            assert_eq!(schedule_text(&schedule_entry(text).expect(text)), text);
        }
        let read = |text: &str| schedule_entry(text).map(|entry| (entry.days, entry.begin_minute, entry.end_minute));
        assert_eq!(read("sat-mon 00:00-24:00 lowest"), Ok((0b110_0001, 0, 0)));
        for wrong in ["22:00-06:00", "22-06 idle", "25:00-06:00 idle", "someday 22:00-06:00 idle", "22:00-06:00 nice"] {
            assert!(schedule_entry(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn credits_have_up_to_six_decimals_and_are_more_than_none() {
        let read = |text| super::credits(text).ok().map(|amount| amount.0);
        assert_eq!([read("250"), read("0.5"), read("1.000001")], [Some(250_000_000), Some(500_000), Some(1_000_001)]);
        for text in ["", "0", "0.0", "-1", "+1", "1e3", ".5", "1.", "0.0000001", "99999999999999999999", "ten"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
