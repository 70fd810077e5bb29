//! The report's plots, as SVG.

use super::score::Point;
use plotters::prelude::{
    ChartBuilder, Color as _, IntoDrawingArea as _, LineSeries, PathElement, Polygon, RGBColor, SVGBackend, WHITE,
};

const SIZE: (u32, u32) = (900, 260);
const FONT: (&str, i32) = ("sans-serif", 16);
const LABELS: (&str, i32) = ("sans-serif", 12);
const CAME: RGBColor = RGBColor(0, 0, 0);
const FORESEEN: RGBColor = RGBColor(0, 114, 178);
/// More points than a plot is wide say nothing more.
const POINTS_MAX: usize = 1_800;

/// Forecasts with their intervals, and what came.
pub(super) fn forecasts(caption: &str, points: &[Point]) -> anyhow::Result<String> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Ok(String::new()) };
    let most = points.iter().flat_map(|point| [point.actual, point.forecast]).fold(f64::MIN_POSITIVE, f64::max);
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .margin(10)
        .caption(caption, FONT)
        .x_label_area_size(28)
        .y_label_area_size(70)
        .build_cartesian_2d(first.step as f64..last.step as f64 + 1.0, 0.0..most * 1.1)?;
    chart.configure_mesh().light_line_style(WHITE).label_style(LABELS).draw()?;
    let held = points.iter().filter_map(|point| Some((point.step as f64, point.interval?)));
    let (lows, highs): (Vec<_>, Vec<_>) = held.map(|(at, (low, high))| ((at, low), (at, high.min(most * 1.1)))).unzip();
    if !lows.is_empty() {
        let outline: Vec<(f64, f64)> = lows.into_iter().chain(highs.into_iter().rev()).collect();
        chart.draw_series([Polygon::new(outline, FORESEEN.mix(0.15).filled())])?;
    }
    let line = |of: fn(&Point) -> f64| points.iter().map(move |point| (point.step as f64, of(point)));
    chart.draw_series(LineSeries::new(line(|point| point.actual), CAME.stroke_width(1)))?;
    chart.draw_series(LineSeries::new(line(|point| point.forecast), FORESEEN.stroke_width(2)))?;
    area.present()?;
    drop(chart);
    drop(area);
    Ok(svg)
}

/// Bars from lag 1 on, with the bounds within which 95 % of a white noise's are.
pub(super) fn correlations(caption: &str, values: &[f64], seen: usize) -> anyhow::Result<String> {
    let bound = 1.96 / (seen.max(1) as f64).sqrt();
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, (SIZE.0, 180)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .margin(10)
        .caption(caption, FONT)
        .x_label_area_size(28)
        .y_label_area_size(70)
        .build_cartesian_2d(0.0..values.len() as f64, -1.0..1.0)?;
    chart.configure_mesh().disable_x_mesh().light_line_style(WHITE).label_style(LABELS).draw()?;
    chart.draw_series(values.iter().enumerate().skip(1).map(|(lag, value)| {
        PathElement::new(vec![(lag as f64, 0.0), (lag as f64, *value)], FORESEEN.stroke_width(3))
    }))?;
    for level in [bound, -bound] {
        chart.draw_series([PathElement::new(vec![(0.0, level), (values.len() as f64, level)], CAME.mix(0.4))])?;
    }
    area.present()?;
    drop(chart);
    drop(area);
    Ok(svg)
}

/// A line.
pub(super) fn line(caption: &str, values: &[f64]) -> anyhow::Result<String> {
    let group = values.len().div_ceil(POINTS_MAX).max(1);
    let points: Vec<(f64, f64)> = values
        .chunks(group)
        .enumerate()
        .map(|(index, part)| ((index * group) as f64, part.iter().sum::<f64>() / part.len() as f64))
        .filter(|(_, value)| value.is_finite())
        .collect();
    let bound = |from: f64, pick: fn(f64, f64) -> f64| points.iter().map(|(_, value)| *value).fold(from, pick);
    let (least, most) = (bound(0.0, f64::min), bound(f64::MIN_POSITIVE, f64::max));
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, (SIZE.0, 160)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .margin(10)
        .caption(caption, FONT)
        .x_label_area_size(28)
        .y_label_area_size(70)
        .build_cartesian_2d(0.0..values.len().max(1) as f64, least * 1.1..most * 1.1)?;
    chart.configure_mesh().light_line_style(WHITE).label_style(LABELS).draw()?;
    chart.draw_series(LineSeries::new(points, FORESEEN.stroke_width(1)))?;
    area.present()?;
    drop(chart);
    drop(area);
    Ok(svg)
}
