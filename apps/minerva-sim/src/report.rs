//! The report: one HTML file without scripts, its plots as SVG.

use crate::output::megabytes;
use crate::run::promise_text;
use anyhow::Context as _;
use minerva_sim_device::Profile;
use minerva_sim_world::{Report, ReportedProcess};
use plotters::prelude::{
    BLACK, ChartBuilder, Color as _, IntoDrawingArea as _, IntoSegmentedCoord as _, LineSeries, Palette as _,
    Palette99, PathElement, Rectangle, SVGBackend, SegmentValue, SeriesLabelPosition, WHITE,
};
use std::fmt::Write as _;
use std::path::Path;

const SIZE: (u32, u32) = (900, 340);
/// More lines than this cannot be told apart.
const LINES_MAX: usize = 12;
/// More points than a plot is wide say nothing more.
const POINTS_MAX: usize = 900;

/// Writes a report on one run, or on several of the same jobs.
pub(crate) fn write(path: &Path, job: &Path, profile: &Profile, reports: &[Report]) -> anyhow::Result<()> {
    let page = page(job, profile, reports).context("failed to draw the report")?;
    std::fs::write(path, page).with_context(|| format!("failed to write {}", path.display()))
}

fn page(job: &Path, profile: &Profile, reports: &[Report]) -> anyhow::Result<String> {
    let title = format!("{} on {}", escaped(&job.display().to_string()), escaped(&profile.name));
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n<style>\
         body{{font:15px/1.5 system-ui,sans-serif;max-width:960px;margin:2em auto;padding:0 1em;color:#222}}\
         table{{border-collapse:collapse;margin:1em 0}}td,th{{padding:.25em .8em;text-align:right;border-bottom:1px solid #ddd}}\
         td:first-child,th:first-child{{text-align:left}}svg{{max-width:100%;height:auto}}</style></head><body>\n<h1>{title}</h1>\n"
    );
    if reports.len() > 1 {
        write!(page, "<h2>Side by side</h2>\n{}{}", overview_table(reports), bars(reports)?)?;
    }
    for report in reports {
        writeln!(page, "<h2>{}</h2>\n{}", escaped(&report.scheduler), process_table(report))?;
        page.push_str(&lines(report)?);
    }
    page.push_str("</body></html>\n");
    Ok(page)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn table(heads: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let cells = |cells: &mut dyn Iterator<Item = String>, tag: &str| {
        cells.map(|cell| format!("<{tag}>{}</{tag}>", escaped(&cell))).collect::<String>()
    };
    let head = cells(&mut heads.iter().map(|head| (*head).to_owned()), "th");
    let body: String = rows.map(|row| format!("<tr>{}</tr>\n", cells(&mut row.into_iter(), "td"))).collect();
    format!("<table><tr>{head}</tr>\n{body}</table>\n")
}

fn overview_table(reports: &[Report]) -> String {
    let row = |report: &Report| {
        let missed: u64 = report.processes.iter().filter_map(|p| p.promise).map(|p| p.seconds_missed).sum();
        let worst = report.processes.iter().map(|process| process.latency_p99_ms).fold(0.0, f64::max);
        vec![
            report.scheduler.clone(),
            megabytes(report.bytes_per_second),
            format!("{:.3}", report.jain_index),
            format!("{worst:.1}"),
            missed.to_string(),
        ]
    };
    table(&["scheduler", "MB/s", "Jain's index", "worst p99, ms", "guaranteed seconds missed"], reports.iter().map(row))
}

fn process_table(report: &Report) -> String {
    let row = |process: &ReportedProcess| {
        vec![
            process.name.clone(),
            process.tenant.clone(),
            megabytes(process.bytes_per_second),
            format!("{:.2}", process.latency_p50_ms),
            format!("{:.2}", process.latency_p99_ms),
            format!("{:.2}", process.latency_max_ms),
            promise_text(process.promise),
        ]
    };
    let heads = ["process", "tenant", "MB/s", "p50, ms", "p99, ms", "max, ms", "guarantee missed"];
    table(&heads, report.processes.iter().map(row))
}

/// Throughput of each scheduler as a bar.
fn bars(reports: &[Report]) -> anyhow::Result<String> {
    let mut svg = String::new();
    let most = reports.iter().map(|report| report.bytes_per_second / 1e6).fold(1.0, f64::max);
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let names: Vec<String> = reports.iter().map(|report| report.scheduler.clone()).collect();
        let mut chart = ChartBuilder::on(&area)
            .margin(12)
            .caption("Throughput of the disk", ("sans-serif", 18))
            .x_label_area_size(30)
            .y_label_area_size(55)
            .build_cartesian_2d((0..reports.len()).into_segmented(), 0.0..most * 1.1)?;
        let name = |at: &SegmentValue<usize>| match at {
            SegmentValue::CenterOf(index) => names.get(*index).cloned().unwrap_or_default(),
            SegmentValue::Exact(_) | SegmentValue::Last => String::new(),
        };
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(WHITE)
            .y_desc("MB/s")
            .x_label_formatter(&name)
            .x_labels(reports.len() + 1)
            .draw()?;
        chart.draw_series(reports.iter().enumerate().map(|(index, report)| {
            let corners =
                [(SegmentValue::Exact(index), 0.0), (SegmentValue::Exact(index + 1), report.bytes_per_second / 1e6)];
            let mut bar = Rectangle::new(corners, Palette99::pick(index).filled());
            bar.set_margin(0, 0, 14, 14);
            bar
        }))?;
        area.present()?;
    }
    Ok(svg)
}

/// Throughput over time, a line a process.
fn lines(report: &Report) -> anyhow::Result<String> {
    let shown = &report.processes[..report.processes.len().min(LINES_MAX)];
    let bins = shown.iter().map(|process| process.bins_bytes.len()).max().unwrap_or(0);
    if bins < 2 {
        return Ok("<p>The run was too short for a plot over time.</p>\n".to_owned());
    }
    // Several bins a point when there are more than the plot is wide.
    let group = bins.div_ceil(POINTS_MAX);
    let rate = |process: &ReportedProcess, point: usize| {
        let bytes: u64 = process.bins_bytes.iter().skip(point * group).take(group).sum();
        bytes as f64 / (group as f64 * report.bin_s) / 1e6
    };
    let points = bins / group;
    let most = shown.iter().flat_map(|p| (0..points).map(|point| rate(p, point))).fold(1e-3, f64::max);
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let end = (points * group) as f64 * report.bin_s;
        let mut chart = ChartBuilder::on(&area)
            .margin(12)
            .caption(format!("Throughput over time, {}", report.scheduler), ("sans-serif", 18))
            .x_label_area_size(38)
            .y_label_area_size(55)
            .build_cartesian_2d(0.0..end, 0.0..most * 1.1)?;
        chart.configure_mesh().light_line_style(WHITE).x_desc("seconds").y_desc("MB/s").draw()?;
        for (index, process) in shown.iter().enumerate() {
            let color = Palette99::pick(index).to_rgba();
            let series = (0..points).map(|point| ((point * group) as f64 * report.bin_s, rate(process, point)));
            chart
                .draw_series(LineSeries::new(series, color.stroke_width(2)))?
                .label(process.name.clone())
                .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], color.stroke_width(2)));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.2))
            .draw()?;
        area.present()?;
    }
    if report.processes.len() > LINES_MAX {
        writeln!(svg, "<p>The first {LINES_MAX} of {} processes.</p>", report.processes.len())?;
    }
    Ok(svg)
}
