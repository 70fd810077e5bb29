//! Plots of runs with guests, as SVG.

use std::fmt::Write as _;

/// Colours that can be told apart on white, also by most who cannot see all of them (Okabe and Ito).
const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];
const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 48.0;

/// The beginning of a page that needs nothing else.
pub(crate) fn head(title: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title><style>\
         body{{font:16px/1.5 system-ui,sans-serif;max-width:900px;margin:2rem auto;padding:0 1rem;color:#222}}pre{{background:#f3f6f9;\
         padding:1rem;overflow-x:auto}}svg{{width:100%;height:auto;background:#fff}}</style></head><body><h1>{title}</h1>"
    )
}

/// A line of a plot over time.
pub(crate) struct Series {
    pub(crate) name: String,
    /// A value a second.
    pub(crate) values: Vec<f64>,
    /// Drawn dashed in the same colour, where there is one.
    pub(crate) level: Option<f64>,
}

/// Values over seconds; `most` is the top of the plot.
pub(crate) fn over_time(series: &[Series], most: f64) -> String {
    let mut svg = format!("<svg viewBox=\"0 0 {WIDTH} {}\">", HEIGHT + 40.0);
    let seconds = series.iter().map(|one| one.values.len()).max().unwrap_or(1).max(2);
    let x = |second: usize| LEFT + (WIDTH - LEFT - 20.0) * second as f64 / (seconds - 1) as f64;
    let y = |value: f64| HEIGHT * (1.0 - value / most.max(f64::MIN_POSITIVE)) + 10.0;
    for tenth in [0.0, 0.5, 1.0] {
        // Writing to a string cannot fail; so everywhere below.
        let _ =
            write!(svg, "<text x=\"2\" y=\"{:.1}\" font-size=\"12\">{:.0}</text>", y(most * tenth) + 4.0, most * tenth);
    }
    for (place, Series { name, values, level }) in series.iter().enumerate() {
        let colour = COLOURS[place % COLOURS.len()];
        let points: Vec<String> =
            values.iter().enumerate().map(|(at, value)| format!("{:.1},{:.1}", x(at), y(*value))).collect();
        let _ = write!(
            svg,
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{}\"/>\
             <text x=\"{:.0}\" y=\"{}\" fill=\"{colour}\">{name}</text>",
            points.join(" "),
            LEFT + 200.0 * place as f64,
            HEIGHT + 35.0
        );
        if let Some(level) = level {
            let level = y(*level);
            let _ = write!(
                svg,
                "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{level:.1}\" y2=\"{level:.1}\" stroke=\"{colour}\" stroke-dasharray=\"5 4\"/>",
                WIDTH - 20.0
            );
        }
    }
    svg.push_str("</svg>");
    svg
}

/// For each name a bar of each series.
pub(crate) fn bars(names: &[String], series: &[(String, Vec<f64>)]) -> String {
    let most = series.iter().flat_map(|(_, values)| values).copied().fold(f64::MIN_POSITIVE, f64::max);
    let mut svg = format!("<svg viewBox=\"0 0 {WIDTH} {}\">", HEIGHT + 70.0);
    let group = (WIDTH - LEFT) / names.len().max(1) as f64;
    let width = group / (series.len() + 1) as f64;
    for (at, name) in names.iter().enumerate() {
        let left = LEFT + group * at as f64;
        // Writing to a string cannot fail; so everywhere below.
        let _ = write!(svg, "<text x=\"{left:.1}\" y=\"{}\" font-size=\"13\">{name}</text>", HEIGHT + 28.0);
        for (place, (_, values)) in series.iter().enumerate() {
            let Some(value) = values.get(at) else { continue };
            let (height, x) = (HEIGHT * value / most, left + width * place as f64);
            let colour = COLOURS[place % COLOURS.len()];
            let top = HEIGHT + 12.0 - height;
            let _ = write!(
                svg,
                "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{height:.1}\" fill=\"{colour}\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" font-size=\"10\">{value:.1}</text>",
                width * 0.9,
                top - 2.0
            );
        }
    }
    for (place, (name, _)) in series.iter().enumerate() {
        let (x, colour) = (LEFT + 200.0 * place as f64, COLOURS[place % COLOURS.len()]);
        let _ = write!(svg, "<text x=\"{x}\" y=\"{}\" fill=\"{colour}\">{name}</text>", HEIGHT + 55.0);
    }
    svg.push_str("</svg>");
    svg
}

#[cfg(test)]
mod tests {
    use super::{Series, bars, over_time};

    #[test]
    fn every_value_is_drawn_within_the_plot() {
        let series = [Series { name: "vm0".to_owned(), values: vec![0.0, 50.0, 100.0], level: Some(25.0) }];
        let svg = over_time(&series, 100.0);
        assert!(svg.contains("48.0,270.0 444.0,140.0 840.0,10.0") && svg.contains("stroke-dasharray"), "{svg}");
        let svg = bars(&["1".to_owned(), "2".to_owned()], &[("htbs".to_owned(), vec![10.0, 20.0])]);
        assert_eq!(svg.matches("<rect").count(), 2);
        assert!(svg.contains("height=\"260.0\"") && svg.contains("height=\"130.0\""), "{svg}");
    }
}
