//! The same as a page that needs nothing but itself.

use super::series::{INTERVAL, Point, Series};
use super::{heading, nothing, said};
use crate::figures::{long_span, rate};
use minerva_api::v1;
use std::fmt::Write;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 90.0;
const BOTTOM: f64 = 30.0;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:2em;max-width:62em}svg{width:100%;height:auto}\
    .came{fill:none;stroke:#1b4f8f;stroke-width:1.6}.expected{fill:none;stroke:#c2571a;stroke-width:1.4;stroke-dasharray:5 3}\
    .interval{fill:#c2571a;fill-opacity:.16}.axis{stroke:#777}text{font-size:12px;fill:#444}";

/// The whole page of a tenant.
pub(super) fn page(answer: &v1::ForecastResponse) -> String {
    let mut text = head(&format!("Forecast of {}", answer.tenant));
    text.push_str(&legend(answer.unix_ns, INTERVAL));
    for disk in &answer.disks {
        // Writing into a string cannot fail; the same holds below.
        let series = Series::new(answer, disk);
        let _ = writeln!(text, "<h2>{}</h2>\n{}", escaped(&heading(answer, disk)), plot(&series));
        text.push_str(&list(said(disk, &series).into_iter()));
    }
    if answer.disks.is_empty() {
        let _ = writeln!(text, "<p>{}</p>", escaped(&nothing(answer)));
    }
    text.push_str(END);
    text
}

/// A page of one series, with what is said of it.
pub(super) fn page_of(title: &str, answer: &v1::ForecastResponse, series: &Series, said: &[String]) -> String {
    let list = list(said.iter().cloned());
    format!("{}{}{}{list}{END}", head(title), legend(answer.unix_ns, &series.interval), plot(series))
}

/// A page that says why there is nothing to show.
pub(super) fn page_without(title: &str, why: &str) -> String {
    format!("{}<p>{}</p>\n{END}", head(title), escaped(why))
}

const END: &str = "</body></html>\n";

fn head(title: &str) -> String {
    let title = escaped(title);
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title><style>{STYLE}</style></head>\n\
         <body><h1>{title}</h1>\n"
    )
}

fn legend(unix_ns: i64, interval: &str) -> String {
    format!(
        "<p>At {}. Solid: what came. Dashed: what was expected when it began, and of what is to come. Shaded: {}.</p>\n",
        escaped(&crate::moment::show(unix_ns)),
        escaped(interval)
    )
}

fn list(lines: impl Iterator<Item = String>) -> String {
    let items: String = lines.map(|line| format!("<li>{}</li>\n", escaped(&line))).collect();
    format!("<ul>{items}</ul>\n")
}

/// Where values stand on the page.
struct Axes {
    top: f64,
    slices: usize,
}

impl Axes {
    fn x(&self, index: usize) -> f64 {
        LEFT + (WIDTH - LEFT) * index as f64 / (self.slices.max(2) - 1) as f64
    }

    fn y(&self, value: f64) -> f64 {
        (HEIGHT - BOTTOM) * (1.0 - (value / self.top).clamp(0.0, 1.0)) + 5.0
    }

    fn line(&self, class: &str, points: impl Iterator<Item = (usize, f64)>) -> String {
        let points: Vec<String> =
            points.map(|(index, value)| format!("{:.1},{:.1}", self.x(index), self.y(value))).collect();
        format!("<polyline class=\"{class}\" points=\"{}\"/>\n", points.join(" "))
    }
}

fn plot(series: &Series) -> String {
    let axes = Axes { top: series.top(), slices: series.points.len() };
    let of = |value: fn(&Point) -> Option<f64>| {
        series.points.iter().enumerate().filter_map(move |(index, point)| Some((index, value(point)?)))
    };
    let upper = of(|point| point.expected.map(|ends| ends[2]));
    let lower: Vec<_> = of(|point| point.expected.map(|ends| ends[1])).collect();
    let (now, floor) = (axes.x(series.past.saturating_sub(1)), axes.y(0.0));
    let mut text = format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">\n");
    text.push_str(&axes.line("interval", upper.chain(lower.into_iter().rev())));
    text.push_str(&axes.line("expected", of(|point| point.expected.map(|ends| ends[0]))));
    text.push_str(&axes.line("came", of(|point| point.came)));
    let _ = write!(
        text,
        "<line class=\"axis\" x1=\"{LEFT}\" y1=\"{floor:.1}\" x2=\"{WIDTH}\" y2=\"{floor:.1}\"/>\n\
         <line class=\"axis\" x1=\"{now:.1}\" y1=\"0\" x2=\"{now:.1}\" y2=\"{floor:.1}\" stroke-dasharray=\"2 3\"/>\n\
         <text x=\"{now:.1}\" y=\"{:.1}\" text-anchor=\"middle\">now</text>\n\
         <text x=\"{LEFT}\" y=\"{:.1}\">{} before</text>\n",
        HEIGHT - 8.0,
        HEIGHT - 8.0,
        long_span((series.past as f64 * series.slice_seconds * 1e9) as u64),
    );
    for part in [0.5, 1.0] {
        let (value, y) = (axes.top * part, axes.y(axes.top * part) + 8.0);
        let _ = writeln!(
            text,
            "<text x=\"{:.1}\" y=\"{y:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 8.0,
            rate(value as u64)
        );
    }
    text.push_str("</svg>\n");
    text
}

/// Names are their owners' choice, and a page is read by a browser.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::super::tests::answer;
    use super::page;
    use minerva_api::v1;

    #[test]
    fn a_page_has_the_lines_and_no_markup_of_a_tenants_making() {
        let text = page(&answer());
        for class in ["interval", "expected", "came"] {
            assert_eq!(text.matches(&format!("class=\"{class}\" points=\"")).count(), 1, "{class}");
        }
        assert!(text.contains("copy &lt;1&gt;") && !text.contains("copy <1>"));
        assert!(text.contains("skill 0.66") && text.ends_with("</html>\n"));
        let empty = page(&v1::ForecastResponse { disks: Vec::new(), mode: "off".to_owned(), ..answer() });
        assert!(empty.contains("are off"));
    }
}
