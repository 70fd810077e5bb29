//! The results as one HTML page that needs nothing else.

use super::{Comparison, RunResult, Scene, plot, words};
use crate::error::{At, Result};
use std::fmt::Write as _;
use std::path::Path;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:960px;margin:2rem auto;padding:0 1rem;color:#222}\
h1{font-size:1.6rem}h2{font-size:1.3rem;margin-top:2.5rem;border-top:1px solid #ccc;padding-top:1.5rem}h3{font-size:1rem}\
table{border-collapse:collapse;width:100%;font-size:.9rem;margin:.5rem 0 1rem}\
th,td{padding:.25rem .5rem;text-align:right;border-bottom:1px solid #ddd}\
th:first-child,td:first-child,th:nth-child(2),td:nth-child(2){text-align:left}\
svg{width:100%;height:auto;border-radius:6px}.note{color:#666;font-size:.9rem}\
.summary{background:#f3f6f9;padding:.75rem 1rem;border-left:4px solid #0072b2}\
@media(prefers-color-scheme:dark){body{background:#1b1d20;color:#ddd}th,td{border-color:#444}h2{border-color:#555}\
.note{color:#aaa}.summary{background:#262b31}}";

/// Writes the report of all `runs`. `disk` names the disk on which they ran.
pub fn write_report(path: &Path, disk: &str, scenes: &[Scene], runs: &[RunResult]) -> Result<()> {
    std::fs::write(path, render(disk, scenes, runs)?).at("write", path)
}

fn render(disk: &str, scenes: &[Scene], runs: &[RunResult]) -> Result<String> {
    let mut page = String::from("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
    // Writing to a string cannot fail; so everywhere below.
    let _ = write!(page, "<title>Minerva: the demonstration</title><style>{STYLE}</style></head><body>");
    let scale = scenes.first().map_or(1.0, |scene| scene.scale);
    let _ = write!(
        page,
        "<h1>Minerva: who gets the disk?</h1><p>Four tenants share an emulated disk, profile <b>{}</b>, through the \
         kernel's own BFQ elevator. Their work is that of the Minerva paper's section 3.3, scaled by <b>{scale}</b>. \
         Each scene ran once with equal weights and BFQ's low_latency off, once under each of the others that are named, on this \
         machine, one after the other: `kernel` is BFQ as it is shipped, `fennel` the Minerva paper's reaction to past use \
         without forecasts.</p>",
        escape(disk)
    );
    for scene in scenes {
        let of_scene: Vec<&RunResult> = runs.iter().filter(|run| run.scene == scene.name).collect();
        write_scene(&mut page, scene, &of_scene)?;
    }
    page.push_str("</body></html>\n");
    Ok(page)
}

fn write_scene(page: &mut String, scene: &Scene, runs: &[&RunResult]) -> Result<()> {
    let _ = write!(page, "<h2>{}</h2>", escape(&scene.title));
    let owned: Vec<RunResult> = runs.iter().map(|run| (*run).clone()).collect();
    for comparison in Comparison::all(&owned) {
        write_summary(page, scene, &comparison);
    }
    let _ = write!(page, "<h3>Completion of each tenant</h3>{}", plot::completion(runs)?);
    let longest = runs.iter().map(|run| run.makespan_s).fold(1.0, f64::max);
    let fastest = runs.iter().flat_map(|run| run.series.mb_per_s.iter().flatten()).copied().fold(1.0, f64::max);
    for run in runs {
        let name = escape(&run.steering);
        let _ = write!(page, "<h3>Throughput over time, {name}</h3>{}", plot::throughput(run, longest, fastest)?);
        let _ = write!(page, "<h3>Share of the disk over time, {name}</h3>{}", plot::shares(run, longest)?);
        write_tables(page, run);
    }
    page.push_str(
        "<p class=\"note\">Curves are running means over 0.75 s. A tenant's completion is from its own start.</p>",
    );
    Ok(())
}

fn write_summary(page: &mut String, scene: &Scene, comparison: &Comparison) {
    let text = words::sentence(scene, comparison);
    let contended = comparison.contended_percent;
    let _ = write!(
        page,
        "<p class=\"summary\">{} While tenants competed, the disk delivered {contended:.0} % of what it did with equal \
         weights.</p>",
        escape(&text)
    );
}

fn write_tables(page: &mut String, run: &RunResult) {
    page.push_str(
        "<table><tr><th>tenant</th><th>work</th><th>MB</th><th>start, s</th><th>completion, s</th><th>MB/s</th>\
         <th>p50, ms</th><th>p99, ms</th></tr>",
    );
    for tenant in &run.tenants {
        let _ = write!(
            page,
            "<tr><td>{}</td><td>{}</td><td>{:.1}</td><td>{:.1}</td><td>{:.2}</td><td>{:.2}</td><td>{:.1}</td><td>{:.1}</td></tr>",
            escape(&tenant.name),
            escape(&tenant.description),
            tenant.bytes as f64 / 1e6,
            tenant.started_s,
            tenant.completion_s,
            tenant.mb_per_s,
            tenant.latency_ms_p50,
            tenant.latency_ms_p99
        );
    }
    page.push_str(
        "</table><table><tr><th>phase</th><th>from – until</th><th>whole disk, MB/s</th><th>Jain index</th></tr>",
    );
    for phase in &run.phases {
        let _ = write!(
            page,
            "<tr><td>{}</td><td>{:.1} – {:.1} s</td><td>{:.2}</td><td>{:.3}</td></tr>",
            phase.name, phase.from_s, phase.until_s, phase.mb_per_s, phase.jain
        );
    }
    let _ = write!(
        page,
        "<tr><td>all</td><td>0.0 – {:.1} s</td><td>{:.2}</td><td></td></tr></table>",
        run.makespan_s, run.disk_mb_per_s
    );
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
