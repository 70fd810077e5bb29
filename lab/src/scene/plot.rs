//! Plots of a run, as SVG text.

use super::RunResult;
use crate::error::{LabError, Result};
use plotters::coord::Shift;
use plotters::prelude::{
    BLACK, ChartBuilder, Color, DrawingArea, FontDesc, FontFamily, FontStyle, IntoDrawingArea, IntoFont, LineSeries,
    PathElement, RGBColor, Rectangle, SVGBackend, SeriesLabelPosition, Text, TextStyle, WHITE,
};
use plotters::series::AreaSeries;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::fmt::Display;

/// Okabe and Ito's palette, which people with any kind of colour vision tell apart.
pub(super) const COLOURS: [RGBColor; 4] =
    [RGBColor(0, 114, 178), RGBColor(230, 159, 0), RGBColor(0, 158, 115), RGBColor(204, 121, 167)];
/// For what is not a tenant.
const GREY: RGBColor = RGBColor(120, 120, 120);
const SIZE: (u32, u32) = (900, 340);
/// Bins averaged on each side, so that BFQ's turns of a tenth of a second do not hide the trend.
const SMOOTHING: usize = 1;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Every tenant's rate over time, with the instant at which the last tenant came. The room above the highest curve is the
/// legend's.
pub(super) fn throughput(run: &RunResult, most_s: f64, most_mb: f64) -> Result<String> {
    let most_mb = most_mb * 1.4;
    draw("throughput", |area| {
        let mut chart = ChartBuilder::on(area)
            .margin(12)
            .x_label_area_size(42)
            .y_label_area_size(56)
            .build_cartesian_2d(0.0..most_s, 0.0..most_mb)
            .map_err(text)?;
        let (label, axis) = (font(13), font(14));
        chart
            .configure_mesh()
            .x_desc("seconds since the start of the scene")
            .y_desc("MB/s")
            .label_style(label)
            .axis_desc_style(axis)
            .light_line_style(WHITE)
            .bold_line_style(GREY.mix(0.2))
            .x_label_formatter(&|seconds| format!("{seconds:.0}"))
            .y_label_formatter(&|rate| format!("{rate:.0}"))
            .draw()
            .map_err(text)?;
        if let Some(arrival) = arrival(run) {
            let line = PathElement::new(vec![(arrival, 0.0), (arrival, most_mb)], GREY.stroke_width(1));
            chart.draw_series([line]).map_err(text)?;
            let note = Text::new("tenants arrive".to_owned(), (arrival + most_s * 0.005, most_mb * 0.98), font(12));
            chart.draw_series([note]).map_err(text)?;
        }
        for (index, (tenant, rates)) in run.tenants.iter().zip(&run.series.mb_per_s).enumerate() {
            let colour = COLOURS[index % COLOURS.len()];
            let points = smooth(rates).into_iter().enumerate();
            let points = points.map(|(bin, rate)| ((bin as f64 + 0.5) * run.series.bin_s, rate));
            chart
                .draw_series(LineSeries::new(points, colour.stroke_width(2)))
                .map_err(text)?
                .label(format!("{}: {}", tenant.name, tenant.description))
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(3)));
        }
        legend(&mut chart)
    })
}

/// How the disk's throughput was divided over time, in percent, stacked.
pub(super) fn shares(run: &RunResult, most_s: f64) -> Result<String> {
    let smoothed: Vec<Vec<f64>> = run.series.mb_per_s.iter().map(|rates| smooth(rates)).collect();
    let bins = smoothed.first().map_or(0, Vec::len);
    let total: Vec<f64> = (0..bins).map(|bin| smoothed.iter().map(|rates| rates[bin]).sum()).collect();
    draw("share", |area| {
        let mut chart = ChartBuilder::on(area)
            .margin(12)
            .x_label_area_size(42)
            .y_label_area_size(56)
            .build_cartesian_2d(0.0..most_s, 0.0..100.0)
            .map_err(text)?;
        let (label, axis) = (font(13), font(14));
        chart
            .configure_mesh()
            .x_desc("seconds since the start of the scene")
            .y_desc("share of the disk, %")
            .label_style(label)
            .axis_desc_style(axis)
            .light_line_style(WHITE)
            .bold_line_style(GREY.mix(0.2))
            .x_label_formatter(&|seconds| format!("{seconds:.0}"))
            .y_label_formatter(&|share| format!("{share:.0}"))
            .draw()
            .map_err(text)?;
        // From the top layer down: each covers what lies below it.
        for index in (0..smoothed.len()).rev() {
            let colour = COLOURS[index % COLOURS.len()];
            let below = |bin: usize| smoothed[..=index].iter().map(|rates| rates[bin]).sum::<f64>();
            let points = (0..bins).map(|bin| {
                let share = if total[bin] > 0.0 { below(bin) / total[bin] * 100.0 } else { 0.0 };
                ((bin as f64 + 0.5) * run.series.bin_s, share)
            });
            chart
                .draw_series(AreaSeries::new(points, 0.0, colour).border_style(WHITE.stroke_width(1)))
                .map_err(text)?
                .label(run.tenants[index].name.clone())
                .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 14, y + 5)], colour.filled()));
        }
        legend(&mut chart)
    })
}

/// Completion of each tenant in every run of one scene, as bars side by side.
pub(super) fn completion(runs: &[&RunResult]) -> Result<String> {
    let tenants = runs.first().map_or(0, |run| run.tenants.len());
    let longest = runs.iter().flat_map(|run| &run.tenants).map(|tenant| tenant.completion_s).fold(1.0, f64::max);
    let name = |position: f64| {
        let index = position.floor() as usize;
        runs.first().and_then(|run| run.tenants.get(index)).map_or(String::new(), |tenant| tenant.name.clone())
    };
    draw("completion", |area| {
        let mut chart = ChartBuilder::on(area)
            .margin(12)
            .x_label_area_size(30)
            .y_label_area_size(56)
            .build_cartesian_2d(0.0..tenants as f64, 0.0..longest * 1.15)
            .map_err(text)?;
        let (label, axis) = (font(13), font(14));
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(0)
            .y_desc("completion, s")
            .label_style(label)
            .axis_desc_style(axis)
            .light_line_style(WHITE)
            .bold_line_style(GREY.mix(0.2))
            .y_label_formatter(&|seconds| format!("{seconds:.0}"))
            .draw()
            .map_err(text)?;
        let width = 0.8 / runs.len().max(1) as f64;
        for (which, run) in runs.iter().enumerate() {
            let colour = if run.steering == "equal" { GREY } else { COLOURS[(runs.len() - 1 - which) % COLOURS.len()] };
            let left = |index: usize| index as f64 + 0.1 + width * which as f64;
            let bar = |(index, tenant): (usize, &super::TenantResult)| {
                let corners = [(left(index) + width * 0.05, 0.0), (left(index) + width * 0.95, tenant.completion_s)];
                Rectangle::new(corners, colour.filled())
            };
            chart
                .draw_series(run.tenants.iter().enumerate().map(bar))
                .map_err(text)?
                .label(run.steering.clone())
                .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 14, y + 5)], colour.filled()));
            let centred = centred(13, VPos::Bottom);
            let value = |(index, tenant): (usize, &super::TenantResult)| {
                let place = (left(index) + width * 0.5, tenant.completion_s + longest * 0.015);
                Text::new(format!("{:.1} s", tenant.completion_s), place, centred.clone())
            };
            chart.draw_series(run.tenants.iter().enumerate().map(value)).map_err(text)?;
        }
        legend_at(&mut chart, SeriesLabelPosition::UpperLeft)?;
        names_below(area, &chart, tenants, &name)
    })
}

/// Names in the middle below their bars, where the library would put them at the ticks.
fn names_below<'a, 'b>(
    area: &Area<'a>,
    chart: &plotters::chart::ChartContext<'b, SVGBackend<'a>, Plane>,
    tenants: usize,
    name: &dyn Fn(f64) -> String,
) -> std::result::Result<(), String> {
    let below = centred(14, VPos::Top);
    for index in 0..tenants {
        let (x, y) = chart.backend_coord(&(index as f64 + 0.5, 0.0));
        area.draw_text(&name(index as f64), &below, (x, y + 8)).map_err(text)?;
    }
    Ok(())
}

type Plane = plotters::coord::cartesian::Cartesian2d<
    plotters::coord::types::RangedCoordf64,
    plotters::coord::types::RangedCoordf64,
>;

fn legend<'b, 'a: 'b>(
    chart: &mut plotters::chart::ChartContext<'b, SVGBackend<'a>, Plane>,
) -> std::result::Result<(), String> {
    legend_at(chart, SeriesLabelPosition::UpperRight)
}

fn legend_at<'b, 'a: 'b>(
    chart: &mut plotters::chart::ChartContext<'b, SVGBackend<'a>, Plane>,
    position: SeriesLabelPosition,
) -> std::result::Result<(), String> {
    chart
        .configure_series_labels()
        .position(position)
        .background_style(WHITE.mix(0.85))
        .border_style(GREY.mix(0.5))
        .label_font(font(13))
        .draw()
        .map_err(text)
}

fn draw(plot: &'static str, paint: impl FnOnce(&Area<'_>) -> std::result::Result<(), String>) -> Result<String> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        area.fill(&WHITE)
            .map_err(text)
            .and_then(|()| paint(&area))
            .and_then(|()| area.present().map_err(text))
            .map_err(|message| LabError::Plot { plot, message })?;
    }
    Ok(svg)
}

fn text(error: impl Display) -> String {
    error.to_string()
}

fn font(size: u32) -> TextStyle<'static> {
    FontDesc::new(FontFamily::SansSerif, f64::from(size), FontStyle::Normal).color(&BLACK)
}

fn centred(size: u32, vertical: VPos) -> TextStyle<'static> {
    ("sans-serif", f64::from(size)).into_font().color(&BLACK).pos(Pos::new(HPos::Center, vertical))
}

/// When the last tenant came, if not at the start.
fn arrival(run: &RunResult) -> Option<f64> {
    run.tenants.iter().map(|tenant| tenant.started_s).max_by(f64::total_cmp).filter(|seconds| *seconds > 1.0)
}

/// A running mean that is cut at the ends.
fn smooth(values: &[f64]) -> Vec<f64> {
    let window = |at: usize| &values[at.saturating_sub(SMOOTHING)..(at + SMOOTHING + 1).min(values.len())];
    (0..values.len()).map(|at| window(at).iter().sum::<f64>() / window(at).len() as f64).collect()
}
