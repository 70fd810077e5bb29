//! The results as text.

use super::{Comparison, RunResult, signed_percent};
use std::fmt::Write as _;

/// Every run as a table, and under it what the controller changed.
pub fn render_table(runs: &[RunResult]) -> String {
    runs.iter().map(render_run).collect::<String>() + &render_comparisons(runs)
}

/// One run as a table.
pub fn render_run(run: &RunResult) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_run(&mut text, run);
    text
}

/// What the controller changed in these runs, a line each.
pub fn render_comparisons(runs: &[RunResult]) -> String {
    let mut text = String::new();
    for comparison in Comparison::all(runs) {
        let _ = write_comparison(&mut text, &comparison);
    }
    text
}

fn write_run(text: &mut String, run: &RunResult) -> std::fmt::Result {
    writeln!(text, "{}, {} (scale {})", run.scene, run.steering, run.scale)?;
    writeln!(
        text,
        "  {:<15} {:<20} {:>8} {:>8} {:>12} {:>9} {:>8} {:>8}",
        "tenant", "work", "MB", "start s", "completion s", "MB/s", "p50 ms", "p99 ms"
    )?;
    for tenant in &run.tenants {
        writeln!(
            text,
            "  {:<15} {:<20} {:>8.1} {:>8.1} {:>12.2} {:>9.2} {:>8.1} {:>8.1}",
            tenant.name,
            tenant.description,
            tenant.bytes as f64 / 1e6,
            tenant.started_s,
            tenant.completion_s,
            tenant.mb_per_s,
            tenant.latency_ms_p50,
            tenant.latency_ms_p99
        )?;
    }
    writeln!(text, "  whole disk: {:.2} MB/s over {:.1} s", run.disk_mb_per_s, run.makespan_s)?;
    for phase in &run.phases {
        writeln!(
            text,
            "  {:<10} {:>5.1} to {:>5.1} s: {:>6.2} MB/s, Jain index {:.3}",
            phase.name, phase.from_s, phase.until_s, phase.mb_per_s, phase.jain
        )?;
    }
    writeln!(text)
}

fn write_comparison(text: &mut String, comparison: &Comparison) -> std::fmt::Result {
    write!(text, "{}: {} against equal weights, completion", comparison.scene, comparison.steering)?;
    for tenant in &comparison.tenants {
        write!(text, "  {} {}", tenant.name, signed_percent(tenant.completion_change_percent))?;
    }
    writeln!(
        text,
        "; whole disk {:.0} %, under contention {:.0} %",
        comparison.disk_percent, comparison.contended_percent
    )
}
