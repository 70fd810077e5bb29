//! The report's plots, as SVG. Colours stand for processes, and the same one for the same process in every plot of a report.

use minerva_sim_world::{Report, ReportedProcess};
use plotters::prelude::{
    ChartBuilder, Circle, Color as _, FontTransform, IntoDrawingArea as _, IntoFont as _, IntoLogRange as _,
    IntoSegmentedCoord as _, LineSeries, PathElement, RGBColor, Rectangle, SVGBackend, SegmentValue, WHITE,
};

const SIZE: (u32, u32) = (900, 320);
const LOW: (u32, u32) = (900, 240);
const FONT: (&str, i32) = ("sans-serif", 17);
const LABELS: (&str, i32) = ("sans-serif", 13);
/// More points than a plot is wide say nothing more.
const POINTS_MAX: usize = 900;

/// Colours that can be told apart on white, also by most who cannot see all of them: Okabe and Ito's without their yellow, and
/// darker ones for more processes.
const COLORS: [RGBColor; 12] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(106, 61, 154),
    RGBColor(0, 0, 0),
    RGBColor(140, 86, 75),
    RGBColor(127, 127, 127),
    RGBColor(0, 105, 92),
    RGBColor(178, 24, 43),
];

/// The processes that plots show: more cannot be told apart.
pub(super) fn shown(report: &Report) -> &[ReportedProcess] {
    &report.processes[..report.processes.len().min(COLORS.len())]
}

/// A process's colour, for CSS.
pub(super) fn css(index: usize) -> String {
    let RGBColor(red, green, blue) = COLORS[index % COLORS.len()];
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Throughput of each scheduler as a bar.
pub(super) fn throughput(reports: &[Report]) -> anyhow::Result<String> {
    let mut svg = String::new();
    let most = reports.iter().map(|report| report.bytes_per_second / 1e6).fold(0.1, f64::max);
    let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let names: Vec<String> = reports.iter().map(|report| report.scheduler.clone()).collect();
    let mut chart = ChartBuilder::on(&area)
        .margin(12)
        .caption("Throughput of the disk", FONT)
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
        .label_style(LABELS)
        .y_desc("MB/s")
        .x_label_formatter(&name)
        .x_labels(reports.len() + 1)
        .draw()?;
    chart.draw_series(reports.iter().enumerate().map(|(index, report)| {
        let corners =
            [(SegmentValue::Exact(index), 0.0), (SegmentValue::Exact(index + 1), report.bytes_per_second / 1e6)];
        let mut bar = Rectangle::new(corners, COLORS[0].filled());
        bar.set_margin(0, 0, 14, 14);
        bar
    }))?;
    area.present()?;
    drop(chart);
    drop(area);
    Ok(svg)
}

/// For each name a bar of each series, from 0 up or down.
pub(super) fn bars(names: &[&str], series: &[(&str, Vec<f64>)]) -> anyhow::Result<String> {
    let values = || series.iter().flat_map(|(_, values)| values.iter().copied());
    let (least, most) = (values().fold(0.0, f64::min), values().fold(1.0, f64::max));
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .margin(12)
        .x_label_area_size(110)
        .y_label_area_size(55)
        .build_cartesian_2d(0.0..names.len() as f64, least * 1.1..most * 1.1)?;
    chart.configure_mesh().disable_x_mesh().disable_x_axis().light_line_style(WHITE).label_style(LABELS).draw()?;
    // Between two names a bar's width is left free.
    let width = 1.0 / (series.len() + 1) as f64;
    for (index, (_, values)) in series.iter().enumerate() {
        chart.draw_series(values.iter().enumerate().map(|(at, value)| {
            let left = at as f64 + (index as f64 + 0.5) * width;
            Rectangle::new([(left, 0.0), (left + width, *value)], COLORS[index % COLORS.len()].filled())
        }))?;
    }
    let style = LABELS.into_font().transform(FontTransform::Rotate90).color(&COLORS[7]);
    for (at, name) in names.iter().enumerate() {
        let (x, y) = chart.backend_coord(&(at as f64 + 0.5, least * 1.1));
        area.draw_text(name, &style, (x + 6, y + 4))?;
    }
    area.present()?;
    drop(chart);
    drop(area);
    Ok(svg)
}

/// Throughput over time, a line a process; nothing when the run was too short for it.
pub(super) fn throughput_over_time(report: &Report) -> anyhow::Result<Option<String>> {
    let shown = shown(report);
    // The last bin is seldom a whole one, and would look like a fall.
    let bins = (report.seconds / report.bin_s) as usize;
    if bins < 2 {
        return Ok(None);
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
    let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let end = (points * group) as f64 * report.bin_s;
    let mut chart = ChartBuilder::on(&area)
        .margin(12)
        .caption(format!("Throughput over time, {}", report.scheduler), FONT)
        .x_label_area_size(38)
        .y_label_area_size(55)
        .build_cartesian_2d(0.0..end, 0.0..most * 1.1)?;
    chart.configure_mesh().light_line_style(WHITE).label_style(LABELS).x_desc("seconds").y_desc("MB/s").draw()?;
    for (index, process) in shown.iter().enumerate() {
        // A point stands in the middle of the time that it sums up.
        let middle = |point: usize| (point as f64 + 0.5) * group as f64 * report.bin_s;
        let series = (0..points).map(|point| (middle(point), rate(process, point)));
        chart.draw_series(LineSeries::new(series, COLORS[index].stroke_width(2)))?;
    }
    area.present()?;
    drop(chart);
    drop(area);
    Ok(Some(svg))
}

/// Median, 95th and 99th percentile of each process's latency, joined by a line; nothing when nothing was served.
pub(super) fn latencies(report: &Report) -> anyhow::Result<Option<String>> {
    let shown = shown(report);
    let served = || shown.iter().enumerate().filter(|(_, process)| process.requests > 0);
    let most = served().map(|(_, process)| process.latency_p99_ms).fold(0.0, f64::max);
    if most <= 0.0 {
        return Ok(None);
    }
    // The account's least latency is a microsecond.
    let least = served().map(|(_, process)| process.latency_p50_ms.max(1e-3)).fold(most, f64::min);
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, LOW).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .margin(12)
        .caption("Latency: median, 95th and 99th percentile", FONT)
        .x_label_area_size(8)
        .y_label_area_size(55)
        .build_cartesian_2d(0.0..shown.len() as f64, (least / 2.0..most * 2.0).log_scale())?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .disable_x_axis()
        .light_line_style(WHITE)
        .label_style(LABELS)
        .y_desc("ms")
        .y_label_formatter(&|ms: &f64| format!("{ms}"))
        .draw()?;
    for (index, process) in served() {
        let color = COLORS[index];
        let percentiles = [process.latency_p50_ms, process.latency_p95_ms, process.latency_p99_ms];
        let points = percentiles.map(|ms| (index as f64 + 0.5, ms.max(1e-3)));
        chart.draw_series([PathElement::new(points.to_vec(), color.stroke_width(2))])?;
        chart.draw_series(points.map(|point| Circle::new(point, 5, color.filled())))?;
    }
    area.present()?;
    drop(chart);
    drop(area);
    Ok(Some(svg))
}
