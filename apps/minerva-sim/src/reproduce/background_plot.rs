//! Plots of days of background work, as one SVG: the load, the cores that pay debt, and how full the pool is.

use minerva_sim_background::{Hour, Outcome};
use plotters::prelude::{
    ChartBuilder, Color as _, DrawingArea, IntoDrawingArea as _, LineSeries, PathElement, RGBColor, SVGBackend, WHITE,
};

const SIZE: (u32, u32) = (1000, 900);
const FONT: (&str, i32) = ("sans-serif", 17);
const LABELS: (&str, i32) = ("sans-serif", 13);
/// As in the reports: can be told apart by nearly all.
const COLORS: [RGBColor; 3] = [RGBColor(213, 94, 0), RGBColor(0, 114, 178), RGBColor(0, 158, 115)];

/// One plot below the other; a line for each policy.
pub(super) fn days(outcomes: &[(&str, &Outcome)]) -> anyhow::Result<String> {
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let parts = area.split_evenly((3, 1));
    let load = [("foreground", outcomes[0].1)];
    lines(&parts[0], "Foreground, requests a second", &load, |hour| hour.ops)?;
    lines(&parts[1], "Cores that pay debt", outcomes, |hour| hour.background_cores)?;
    lines(&parts[2], "Used and tied, % of the pool", outcomes, |hour| 100.0 * (hour.used_share + hour.debt_share))?;
    area.present()?;
    drop(parts);
    drop(area);
    Ok(svg)
}

fn lines(
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    caption: &str,
    outcomes: &[(&str, &Outcome)],
    value: fn(&Hour) -> f64,
) -> anyhow::Result<()> {
    let values = outcomes.iter().flat_map(|(_, outcome)| outcome.hours.iter().map(value));
    let most = values.fold(1.0, f64::max);
    let hours = outcomes.iter().map(|(_, outcome)| outcome.hours.len()).max().unwrap_or(1);
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .caption(caption, FONT)
        .x_label_area_size(30)
        .y_label_area_size(55)
        .build_cartesian_2d(0.0..hours as f64, 0.0..most * 1.1)?;
    chart.configure_mesh().light_line_style(WHITE).label_style(LABELS).x_desc("hours from Wednesday, 07:00").draw()?;
    for ((name, outcome), color) in outcomes.iter().zip(COLORS) {
        let points = outcome.hours.iter().enumerate().map(|(hour, of)| (hour as f64 + 0.5, value(of)));
        chart
            .draw_series(LineSeries::new(points, color.stroke_width(2)))?
            .label(*name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2)));
    }
    chart.configure_series_labels().background_style(WHITE.mix(0.8)).label_font(LABELS).draw()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_plots_name_every_policy() {
        let outcome = Outcome { hours: vec![Hour { ops: 5.0, ..Hour::default() }; 3], ..Outcome::default() };
        let svg = days(&[("fixed bucket", &outcome), ("Minerva", &outcome)]).expect("a plot");
        assert!(svg.contains("fixed bucket") && svg.contains("Minerva") && svg.contains("% of the pool"), "{svg}");
    }
}
