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
    let seen = if forecast.mode == "on" { "" } else { ", not seen by decisions" };
    format!(
        "{horizon}: reads {read}, writes {written}, busy with a probability of {} %, skill {}{seen}",
        forecast.busy_permille / 10,
        skill(forecast.skill)
    )
}

/// What is expected within 15 s, in short: bytes both ways, and the skill of it.
pub(crate) fn brief(forecasts: &[v1::Forecast]) -> String {
    let pattern = forecasts.iter().find(|forecast| forecast.horizon == "pattern");
    pattern.map_or_else(String::new, |forecast| {
        let value = |interval: Option<v1::Interval>| interval.map_or(0.0, |interval| interval.value);
        let bytes = value(forecast.read_bytes) + value(forecast.write_bytes);
        format!("{} {:>5}", size(bytes), skill(forecast.skill))
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
    // Far below 0 it is bad, and how bad is nobody's business.
    format!("{:.2}", skill.max(-9.99))
}

#[cfg(test)]
mod tests {
    use super::within;
    use minerva_api::v1::Interval;

    #[test]
    fn an_interval_that_is_not_known_yet_is_not_told_as_a_sure_forecast() {
        let of = |value: f64, lower: f64, upper: f64| within(Interval { value, lower, upper, coverage_permille: 800 });
        assert_eq!(of(5e6, 4e6, 7e6), "5.0 MB (4.0 MB to 7.0 MB)");
        assert_eq!(of(5e6, 5e6, 5e6), "5.0 MB (no interval yet)");
        assert_eq!((of(0.0, 0.0, 0.0).as_str(), of(0.1, 0.0, 0.2).as_str()), ("nothing", "nothing"));
    }
}
