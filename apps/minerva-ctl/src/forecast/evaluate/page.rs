//! The report: one HTML file without scripts.

use super::{Evaluated, HEADS, LEGEND, cells, plots};
use anyhow::Context as _;
use minerva_forecast::evaluate::{autocorrelation, decompose, partial_autocorrelation};
use minerva_forecast::seasonal::BINS_PER_DAY;
use std::path::Path;

/// Lags of the correlations.
const LAGS: usize = 40;
/// A correlation below this is no cycle.
const CYCLE_MIN: f64 = 0.2;

/// Writes it.
pub(super) fn write(path: &Path, file: &Path, all: &[Evaluated]) -> anyhow::Result<()> {
    let title = format!("Forecasts of {}", escaped(&file.display().to_string()));
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n<style>\
         body{{font:15px/1.5 system-ui,sans-serif;max-width:960px;margin:2em auto;padding:0 1em;color:#222}}\
         table{{border-collapse:collapse;margin:1em 0}}td,th{{padding:.2em .7em;text-align:right;border-bottom:1px solid #ddd}}\
         td:first-child,th:first-child{{text-align:left}}svg{{max-width:100%;height:auto;display:block}}</style></head><body>\n\
         <h1>{title}</h1>\n<p>Black is what came, blue what was forecast, with the interval that is to hold 80 %.</p>\n"
    );
    for one in all {
        page += &section(one).context("failed to draw the report")?;
    }
    page += &format!("<p>{}</p>\n", escaped(LEGEND));
    page += "</body></html>\n";
    std::fs::write(path, page).with_context(|| format!("failed to write {}", path.display()))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn section(one: &Evaluated) -> anyhow::Result<String> {
    let mut text = format!("<h2>{}</h2>\n", escaped(&one.series.name));
    for board in &one.boards {
        text += &format!("<h3>{}</h3>\n", board.horizon);
        if let Some(why) = &board.none_because {
            text += &format!("<p>{}</p>\n", escaped(why));
            continue;
        }
        let head: String = HEADS.iter().map(|head| format!("<th>{head}</th>")).collect();
        let row = |score: &super::Score| -> String {
            let cells: String = cells(score).iter().map(|cell| format!("<td>{}</td>", escaped(cell))).collect();
            format!("<tr>{cells}</tr>\n")
        };
        let rows: String = board.scores(&one.series.name).iter().map(row).collect();
        text += &format!("<table><tr>{head}</tr>\n{rows}</table>\n");
        if let Some(best) = board.best() {
            let points: Vec<_> = best.points.iter().copied().collect();
            text += &plots::forecasts(&format!("{}: {}", board.horizon, best.model), &points)?;
        }
    }
    // Correlations and decomposition know no gaps.
    let values = filled(&one.series.values);
    if values.len() > LAGS {
        let correlation = autocorrelation(&values, LAGS);
        text += &plots::correlations("autocorrelation", &correlation, values.len())?;
        text += &plots::correlations("partial autocorrelation", &partial_autocorrelation(&values, LAGS), values.len())?;
        if let Some(period) = cycle(&correlation) {
            text += &decomposition(&values, period, "steps")?;
        }
    }
    if let Some(binned) = &one.binned {
        text += &decomposition(&filled(&binned.values), BINS_PER_DAY, "bins of ten minutes")?;
    }
    Ok(text)
}

fn decomposition(values: &[f64], period: usize, unit: &str) -> anyhow::Result<String> {
    let Some(parts) = decompose(values, period) else { return Ok(String::new()) };
    let mut text = plots::line(&format!("trend, period {period} {unit}"), &parts.trend)?;
    text += &plots::line("season", &parts.season)?;
    text += &plots::line("residual", &parts.residual)?;
    Ok(text)
}

/// The lag of the highest peak of the autocorrelation.
fn cycle(correlation: &[f64]) -> Option<usize> {
    let is_peak = |lag: &usize| correlation[*lag] > correlation[lag - 1] && correlation[*lag] >= correlation[lag + 1];
    let peaks = (2..correlation.len().saturating_sub(1)).filter(is_peak);
    let highest = peaks.max_by(|a, b| correlation[*a].total_cmp(&correlation[*b]))?;
    (correlation[highest] >= CYCLE_MIN).then_some(highest)
}

/// Gaps as the value before them.
fn filled(values: &[f64]) -> Vec<f64> {
    let mut last = 0.0;
    let fill = |value: &f64| {
        last = if value.is_finite() { *value } else { last };
        last
    };
    values.iter().map(fill).collect()
}
