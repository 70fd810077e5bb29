//! What runs of a job were like, as a page of its own.

use super::{curves, seconds};
use crate::figures::{rate, size};
use crate::forecast::page::escaped;
use crate::moment::show;
use minerva_api::v1;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 120.0;
const COLOURS: [(&str, &str); 4] = [("read", "#47c"), ("compute", "#bbb"), ("write", "#d33"), ("shuffle", "#e90")];

/// The page; the newest run first.
pub(crate) fn of(name: &str, runs: &[v1::JobRun]) -> String {
    let name = escaped(name);
    let sections: String = runs.iter().rev().map(section).collect();
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Job {name}</title>\n\
         <style>body{{font:15px sans-serif;margin:2em;max-width:60em}}svg{{background:#fafafa;border:1px solid #ddd;display:block}}\
         table{{border-collapse:collapse}}td,th{{padding:.2em .8em;text-align:left}}</style>\n\
         <h1>Job {name}</h1>\n<p>Phases: read (blue), compute (grey), write (red), shuffle (orange)</p>\n{sections}</html>\n"
    )
}

fn section(run: &v1::JobRun) -> String {
    let correlation = |value: Option<f64>| value.map_or_else(|| "unknown".to_owned(), |value| format!("{value:+.2}"));
    let mut text = format!(
        "<h2>{}, {}</h2>\n<p>{}; {} on {}, read {}, wrote {}; the disk busy with it for {} % of the time that others left; \
         correlation with the processor {}, with memory {}</p>\n{}",
        show(run.ended_unix_ns),
        escaped(&run.tenant),
        escaped(&run.intensity),
        seconds(run.seconds),
        escaped(&run.device),
        size(run.read_bytes as f64),
        size(run.write_bytes as f64),
        run.disk_permille / 10,
        correlation(run.cpu_correlation),
        correlation(run.memory_correlation),
        phase_plot(&run.phases),
    );
    for (what, values) in curves(run) {
        let top = values.iter().copied().fold(0.0, f64::max);
        let shown = if what == "cores" { format!("{top:.1}") } else { rate(top as u64) };
        text.push_str(&format!("<p>{what}, up to {shown}</p>\n{}", curve_plot(&values, top)));
    }
    text
}

fn phase_plot(phases: &[v1::JobPhase]) -> String {
    let total: f64 = phases.iter().map(|phase| phase.seconds).sum();
    let mut text = format!("<svg viewBox=\"0 0 {WIDTH} 24\" width=\"{WIDTH}\" height=\"24\">");
    let mut x = 0.0;
    for phase in phases {
        let width = WIDTH * phase.seconds / total.max(f64::MIN_POSITIVE);
        let colour = COLOURS.iter().find(|(kind, _)| *kind == phase.kind).map_or("#fff", |(_, colour)| *colour);
        let title = format!("{} {}", escaped(&phase.kind), seconds(phase.seconds));
        text.push_str(&format!(
            "<rect x=\"{x:.1}\" y=\"0\" width=\"{width:.2}\" height=\"24\" fill=\"{colour}\"><title>{title}</title></rect>"
        ));
        x += width;
    }
    text + "</svg>\n"
}

fn curve_plot(values: &[f64], top: f64) -> String {
    let step = WIDTH / values.len().max(1) as f64;
    let point = |(at, value): (usize, &f64)| {
        format!("{:.1},{:.1}", (at as f64 + 0.5) * step, HEIGHT - value / top.max(f64::MIN_POSITIVE) * (HEIGHT - 4.0))
    };
    let points: Vec<String> = values.iter().enumerate().map(point).collect();
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\"><polyline fill=\"none\" stroke=\"#47c\" points=\"{}\"/></svg>\n",
        points.join(" ")
    )
}

#[cfg(test)]
mod tests {
    use super::of;
    use minerva_api::v1;

    #[test]
    fn the_page_has_a_part_for_each_phase_and_no_foreign_markup() {
        let phase = |kind: &str| v1::JobPhase { kind: kind.to_owned(), seconds: 4.0, ..Default::default() };
        let run = v1::JobRun {
            tenant: "<b>".to_owned(),
            phases: vec![phase("read"), phase("compute")],
            steps: vec![v1::JobStep { seconds: 1.0, read_bytes: 5, ..Default::default() }; 3],
            ..Default::default()
        };
        let page = of("<sort>", &[run]);
        assert_eq!((page.matches("<rect").count(), page.matches("<polyline").count()), (2, 3));
        assert!(page.contains("&lt;b&gt;") && page.contains("&lt;sort&gt;") && !page.contains("<b>"), "{page}");
        assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
    }
}
