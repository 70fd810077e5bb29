//! Forecasts in words.

use crate::figures::size;
use minerva_api::v1;

/// One forecast as a sentence.
pub(crate) fn sentence(forecast: &v1::Forecast) -> String {
    let horizon = match forecast.horizon.as_str() {
        "next-slice" => "next slice",
        "pattern" => "next 15 s",
        "session" => "rest of the session",
        other => other,
    };
    let read = within(forecast.read_bytes.unwrap_or_default());
    let written = within(forecast.write_bytes.unwrap_or_default());
    let naive = if forecast.naive { " (a naive forecast, as no model does better)" } else { "" };
    let seen = if forecast.mode == "on" { "" } else { ", not seen by decisions" };
    format!(
        "{horizon}: reads {read}, writes {written}, busy with a probability of {} %, skill {}{naive}{seen}",
        forecast.busy_permille / 10,
        skill(forecast.skill)
    )
}

/// What a disk or a group is expected to do within a day or a week, as a sentence.
pub(crate) fn sentence_ahead(ahead: &v1::LoadAhead) -> String {
    let (read, written) = (within(ahead.read_bytes.unwrap_or_default()), within(ahead.write_bytes.unwrap_or_default()));
    let skill = match ahead.days_scored {
        0 => "not measured yet".to_owned(),
        days => format!("{} of {days} days", skill(ahead.skill)),
    };
    format!("next {}: reads {read}, writes {written}, skill {skill}", ahead.horizon)
}

/// The day ahead of a disk or a group in short: bytes both ways, and the skill of it.
pub(crate) fn brief_ahead(ahead: &[v1::LoadAhead]) -> String {
    let day = ahead.iter().find(|ahead| ahead.horizon == "day");
    day.map_or_else(String::new, |day| {
        let bytes: f64 = [day.read_bytes, day.write_bytes].into_iter().flatten().map(|interval| interval.value).sum();
        format!("{} {:>5}", size(bytes), skill(day.skill))
    })
}

/// What is expected within 15 s, in short: bytes both ways, and the skill of it, unless it is a naive forecast.
pub(crate) fn brief(forecasts: &[v1::Forecast]) -> String {
    let pattern = forecasts.iter().find(|forecast| forecast.horizon == "pattern");
    pattern.map_or_else(String::new, |forecast| {
        let value = |interval: Option<v1::Interval>| interval.map_or(0.0, |interval| interval.value);
        let bytes = value(forecast.read_bytes) + value(forecast.write_bytes);
        let skill = if forecast.naive { "naive".to_owned() } else { skill(forecast.skill) };
        format!("{} {skill:>5}", size(bytes))
    })
}

fn within(interval: v1::Interval) -> String {
    if interval.upper < 0.5 {
        return "nothing".to_owned();
    }
    // Both ends are the value until enough came.
    if interval.upper <= interval.lower {
        return format!("{} (no interval yet)", size(interval.value));
    }
    format!("{} ({} to {})", size(interval.value), size(interval.lower), size(interval.upper))
}

fn skill(skill: f64) -> String {
    // Far below 0 it is bad, and the exact number says no more.
    format!("{:.2}", skill.max(-9.99))
}

#[cfg(test)]
mod tests {
    use super::{brief, brief_ahead, sentence, sentence_ahead, within};
    use minerva_api::v1::{Forecast, Interval, LoadAhead};

    fn about(value: f64, lower: f64, upper: f64) -> Option<Interval> {
        Some(Interval { value, lower, upper, coverage_permille: 800 })
    }

    #[test]
    fn a_naive_forecast_is_told_as_one() {
        let read_bytes = about(5e6, 4e6, 7e6);
        let by_model = Forecast { horizon: "pattern".to_owned(), read_bytes, skill: 0.25, ..Forecast::default() };
        let naive = Forecast { naive: true, skill: -0.4, ..by_model.clone() };
        assert!(sentence(&naive).contains("skill -0.40 (a naive forecast, as no model does better)"));
        assert!(!sentence(&by_model).contains("naive"));
        assert_eq!([brief(&[by_model]), brief(&[naive])], ["5.0 MB  0.25", "5.0 MB naive"]);
    }

    #[test]
    fn the_day_and_the_week_of_a_disk_are_told_with_their_intervals() {
        let (read_bytes, write_bytes) = (about(7e9, 5e9, 9e9), about(1e9, 1e9, 1e9));
        let day = LoadAhead { horizon: "day".to_owned(), read_bytes, write_bytes, skill: 0.31, days_scored: 12 };
        assert_eq!(
            sentence_ahead(&day),
            "next day: reads 7.00 GB (5.00 GB to 9.00 GB), writes 1.00 GB (no interval yet), skill 0.31 of 12 days"
        );
        let week = LoadAhead { horizon: "week".to_owned(), days_scored: 0, ..day.clone() };
        assert!(sentence_ahead(&week).ends_with("skill not measured yet"));
        assert_eq!(
            (brief_ahead(&[week.clone(), day]), brief_ahead(&[week])),
            ("8.00 GB  0.31".to_owned(), String::new())
        );
    }

    #[test]
    fn an_interval_that_is_not_known_yet_is_not_told_as_a_sure_forecast() {
        let of = |value: f64, lower: f64, upper: f64| within(Interval { value, lower, upper, coverage_permille: 800 });
        assert_eq!(of(5e6, 4e6, 7e6), "5.0 MB (4.0 MB to 7.0 MB)");
        assert_eq!(of(5e6, 5e6, 5e6), "5.0 MB (no interval yet)");
        assert_eq!((of(0.0, 0.0, 0.0).as_str(), of(0.1, 0.0, 0.2).as_str()), ("nothing", "nothing"));
    }
}
