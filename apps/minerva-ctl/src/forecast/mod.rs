//! `minerva-ctl forecast`: what a tenant is expected to do, and what it was expected to do before beside what then came.

mod chart;
mod days;
mod evaluate;
pub(crate) mod page;
mod series;
mod words;

pub(crate) use days::run as days;
pub(crate) use evaluate::run as evaluate;
pub(crate) use words::{brief, brief_ahead, sentence, sentence_ahead};

use crate::output::{self, CommandStatus};
use anyhow::Context;
use minerva_api::client::Operator;
use minerva_api::v1;
use series::Series;
use std::path::PathBuf;

/// Asks, and prints a chart and the forecasts for each disk, or writes them as a page.
pub(crate) async fn run(
    mut client: Operator,
    tenant: String,
    html: Option<PathBuf>,
    json: bool,
) -> anyhow::Result<CommandStatus> {
    let answer = client.forecast(v1::ForecastRequest { tenant, horizon: String::new() }).await?.into_inner();
    if let Some(path) = &html {
        std::fs::write(path, page::page(&answer)).with_context(|| format!("failed to write {}", path.display()))?;
    }
    if json {
        output::json(&answer)?;
    } else if html.is_none() {
        output::text(&text(&answer))?;
    }
    if answer.disks.is_empty() {
        output::say(&nothing(&answer));
    }
    Ok(CommandStatus::found_if(answer.disks.is_empty()))
}

fn nothing(answer: &v1::ForecastResponse) -> String {
    let why = match answer.mode.as_str() {
        "off" => "its forecasts are off (mode in [forecast], or a rule's forecast)",
        _ => "it has done no I/O for minutes",
    };
    format!("nothing is forecast of {}: {why}", answer.tenant)
}

fn text(answer: &v1::ForecastResponse) -> String {
    let mut text = String::new();
    for disk in &answer.disks {
        text.push_str(&heading(answer, disk));
        text.push_str("\n\n");
        let series = Series::new(answer, disk);
        text.push_str(&chart::chart(&series));
        text.push('\n');
        for line in said(disk, &series) {
            text.push_str(&format!("{line}\n"));
        }
        text.push('\n');
    }
    text
}

/// What is told below a chart.
fn said(disk: &v1::DiskForecast, series: &Series) -> Vec<String> {
    disk.forecasts.iter().map(sentence).chain(series.held()).chain([SKILL.to_owned()]).collect()
}

/// What the number means, for who sees it for the first time.
const SKILL: &str = "skill: 1 is perfect, 0 no better than the best naive forecast; below 0.1 nothing is decided by it";

fn heading(answer: &v1::ForecastResponse, disk: &v1::DiskForecast) -> String {
    let name = if disk.device_name.is_empty() { &disk.device } else { &disk.device_name };
    let by = match disk.next_slice_by.as_str() {
        "" => String::new(),
        "naive" => "; no model does better than a naive forecast for the next slice".to_owned(),
        by => format!("; the next slice by the model \"{by}\""),
    };
    let session = match disk.session_class.as_str() {
        "" => String::new(),
        class => format!("; in a session of class {class}"),
    };
    format!("{} on {name}: forecast mode {}{by}{session}", answer.tenant, answer.mode)
}

#[cfg(test)]
mod tests {
    use super::{nothing, text};
    use expect_test::expect;
    use minerva_api::v1;

    /// Reads for three of six seconds, as was expected but for the fourth-last slice.
    pub(super) fn answer() -> v1::ForecastResponse {
        let interval =
            |value: f64, lower: f64, upper: f64| v1::Interval { value, lower, upper, coverage_permille: 800 };
        let past = (0..12).map(|second: i64| {
            let reads = if second % 6 < 3 { 10e6 } else { 0.0 };
            let expected = if second == 8 { 0.0 } else { reads };
            v1::PastSlice {
                unix_ns: second * 1_000_000_000,
                read_bytes_per_second: reads,
                write_bytes_per_second: 0.0,
                expected: (second > 2).then(|| interval(expected, expected / 2.0, expected * 1.1)),
            }
        });
        let ahead = |second: i64| {
            let value = if second % 6 < 3 { 10e6 } else { 0.0 };
            v1::SliceAhead { expected: Some(interval(value, value * 0.8, value + 1e6)), busy_permille: 500 }
        };
        let forecast = v1::Forecast {
            horizon: "pattern".to_owned(),
            read_bytes: Some(interval(80e6, 60e6, 90e6)),
            write_bytes: Some(interval(0.0, 0.0, 0.0)),
            busy_permille: 1_000,
            skill: 0.66,
            naive: false,
            mode: "shadow".to_owned(),
            age_ns: 300_000_000,
        };
        let disk = v1::DiskForecast {
            device: "8:0".to_owned(),
            device_name: "sda".to_owned(),
            past: past.collect(),
            forecasts: vec![forecast],
            reads_ahead: (0..15).map(ahead).collect(),
            writes_ahead: Vec::new(),
            next_slice_by: "series".to_owned(),
            session_class: "moderate".to_owned(),
        };
        v1::ForecastResponse {
            tenant: "copy <1>".to_owned(),
            mode: "shadow".to_owned(),
            slice_ns: 1_000_000_000,
            unix_ns: 11_000_000_000,
            disks: vec![disk],
            load: None,
        }
    }

    #[test]
    fn history_forecast_interval_and_what_came_are_drawn() {
        expect![[r#"
            copy <1> on sda: forecast mode shadow; the next slice by the model "series"; in a session of class moderate

            11.0 MB/s ┤      ░░    ┊░░░   ░░░   ░░░
                      ┤●●●   ●●●   ┊───   ───   ───
                      ┤      ░░    ┊░░░   ░░░   ░░░
                      ┤      ░░    ┊░░░   ░░░   ░░░
                      ┤      ░░    ┊░░░   ░░░   ░░░
                      ┤      ░░    ┊
                      ┤      ░░    ┊
             5.5 MB/s ┤      ░░    ┊
                      ┤            ┊
                      ┤            ┊
                      ┤            ┊
                      ┤            ┊
                      ┤            ┊   ░░░   ░░░
                    0 ┤   ●●●  ─●●●┊   ───   ───
                       -12 s       now 1970-01-01 00:00:11
                       ● came   ─ expected   ░ interval: 80 of 100 are within

            next 15 s: reads 80.0 MB (60.0 MB to 90.0 MB), writes nothing, busy with a probability of 100 %, skill 0.66, not seen by decisions
            of 2 slices that had an interval 2 lay within it
            skill: 1 is perfect, 0 no better than the best naive forecast; below 0.1 nothing is decided by it

        "#]].assert_eq(&text(&answer()));
    }

    #[test]
    fn where_nothing_is_forecast_it_is_said_why() {
        let answer = |mode: &str| v1::ForecastResponse { mode: mode.to_owned(), tenant: "a".to_owned(), ..answer() };
        assert!(nothing(&answer("off")).contains("are off"));
        assert!(nothing(&answer("shadow")).contains("no I/O"));
    }
}
