//! Arms beside each other, as bars.

use crate::error::{LabError, Result};
use plotters::prelude::*;

/// Bars of one contest: for each arm, a value and its least and greatest over the rounds. `unit` names the axis.
pub fn plot(title: &str, unit: &str, arms: &[(String, [f64; 3])]) -> Result<String> {
    let failed = |message: String| LabError::Plot { plot: "contest", message };
    let mut svg = String::new();
    draw(&mut svg, title, unit, arms).map_err(|error| failed(error.to_string()))?;
    Ok(svg)
}

fn draw(
    svg: &mut String,
    title: &str,
    unit: &str,
    arms: &[(String, [f64; 3])],
) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let most = arms.iter().map(|(_, [_, _, most])| *most).fold(f64::MIN_POSITIVE, f64::max);
    let area = SVGBackend::with_string(svg, (900, 360)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 16))
        .margin(12)
        .x_label_area_size(30)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..arms.len().max(1) as f64, 0.0..most * 1.15)?;
    chart.configure_mesh().disable_x_mesh().x_labels(0).y_desc(unit).draw()?;
    for (index, (name, [middle, least, greatest])) in arms.iter().enumerate() {
        let (left, centre) = (index as f64, index as f64 + 0.5);
        let colour = if name.starts_with("minerva") { RGBColor(0, 114, 178) } else { RGBColor(150, 150, 150) };
        chart.draw_series([Rectangle::new([(left + 0.15, 0.0), (left + 0.85, *middle)], colour.filled())])?;
        chart.draw_series([PathElement::new([(centre, *least), (centre, *greatest)], BLACK.stroke_width(2))])?;
        let label = Text::new(format!("{middle:.2}"), (left + 0.2, *middle + most * 0.06), ("sans-serif", 13));
        chart.draw_series([label])?;
        let (x, y) = chart.backend_coord(&(left + 0.15, 0.0));
        area.draw(&Text::new(name.clone(), (x, y + 8), ("sans-serif", 13)))?;
    }
    area.present()?;
    Ok(())
}
