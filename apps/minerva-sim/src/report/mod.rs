//! The report: one HTML file without scripts, its plots as SVG.

mod page;
mod plots;

pub(crate) use page::Page;

use crate::cells::{TENANT_HEADS, promise_text, tenant_rows};
use crate::output::megabytes;
use anyhow::{Context as _, bail};
use minerva_sim_device::Profile;
use minerva_sim_world::{Report, ReportedProcess};
use std::fmt::Write as _;
use std::path::Path;

/// Whether a report could be written there, asked before a long run.
pub(crate) fn judge_path(path: &Path) -> anyhow::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if folder.is_some_and(|folder| !folder.is_dir()) {
        bail!("the report cannot be written to {}: there is no such folder; make it first", path.display());
    }
    Ok(())
}

/// Writes a report on one run, or on several of the same jobs, each with so many requests at the disk at once.
pub(crate) fn write(
    path: &Path,
    job: &Path,
    profile: &Profile,
    reports: &[Report],
    depths: &[u32],
) -> anyhow::Result<()> {
    let page = page(job, profile, reports, depths).context("failed to draw the report")?;
    std::fs::write(path, page).with_context(|| format!("failed to write {}", path.display()))
}

fn page(job: &Path, profile: &Profile, reports: &[Report], depths: &[u32]) -> anyhow::Result<String> {
    let title = format!("{} on {}", escaped(&job.display().to_string()), escaped(&profile.name));
    let mut page = page::head(&title);
    if reports.len() > 1 {
        write!(page, "<h2>Side by side</h2>\n{}{}", overview_table(reports), plots::throughput(reports)?)?;
    }
    for (report, depth) in reports.iter().zip(depths) {
        writeln!(page, "<h2>{}</h2>\n<p>{depth} at the disk at once.</p>", escaped(&report.scheduler))?;
        let tenants = table(&TENANT_HEADS, tenant_rows(report));
        writeln!(page, "{}{}{tenants}", process_table(report), shares(report))?;
        let over_time = plots::throughput_over_time(report)?;
        page.push_str(over_time.as_deref().unwrap_or("<p>The run was too short for a plot over time.</p>\n"));
        page.push_str(&plots::latencies(report)?.unwrap_or_default());
    }
    page.push_str(page::END);
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
        let promises = || report.processes.iter().filter_map(|process| process.promise);
        let missed = promises().map(|promise| promise.seconds_missed).sum::<u64>();
        let promised = promises().map(|promise| promise.seconds).sum::<u64>();
        let worst = report.processes.iter().map(|process| process.latency_p99_ms).fold(0.0, f64::max);
        vec![
            report.scheduler.clone(),
            megabytes(report.bytes_per_second),
            format!("{:.3}", report.jain_index),
            format!("{worst:.1}"),
            if promises().next().is_some() { format!("{missed} of {promised}") } else { "-".to_owned() },
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

/// Each process's part of what was transferred, as one bar, and whose the colours are in all plots of this run.
fn shares(report: &Report) -> String {
    let total: u64 = report.processes.iter().map(|process| process.bytes).sum();
    let shown = plots::shown(report);
    let (mut bar, mut legend) = (String::new(), String::new());
    for (index, process) in shown.iter().enumerate() {
        let (color, percent) = (plots::css(index), 100.0 * process.bytes as f64 / total.max(1) as f64);
        bar += &format!("<div style=\"width:{percent:.2}%;background:{color}\"></div>");
        let name = escaped(&process.name);
        legend +=
            &format!("<span><span style=\"color:{color};margin:0\">&#9632;</span> {name} {percent:.1} %</span>\n");
    }
    if report.processes.len() > shown.len() {
        legend += &format!("<span>and {} more without a colour</span>", report.processes.len() - shown.len());
    }
    format!("<div class=\"bar\">{bar}</div>\n<p class=\"legend\">{legend}</p>\n")
}
