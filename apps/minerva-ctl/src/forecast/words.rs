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
        "{horizon}: reads {read}, writes {written}, busy with {} %, skill {}{seen}",
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
    if interval.upper <= 0.0 {
        return "nothing".to_owned();
    }
    format!("{} ({} to {})", size(interval.value), size(interval.lower), size(interval.upper))
}

fn skill(skill: f64) -> String {
    // Far below 0 it is bad, and how bad is nobody's business.
    format!("{:.2}", skill.max(-9.99))
}
