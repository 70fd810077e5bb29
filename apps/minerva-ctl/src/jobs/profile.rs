//! What runs of a job were like, as text with bars over time.

use super::{curves, page, seconds};
use crate::figures::{rate, size, table};
use crate::moment::show;
use crate::output::{self, CommandStatus};
use anyhow::Context;
use minerva_api::client::Operator;
use minerva_api::v1;
use std::path::Path;
use tonic::Code;

const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const CELLS: usize = 72;

/// Shows the runs; a name without any is a finding.
pub(crate) async fn run(
    mut client: Operator,
    name: String,
    html: Option<&Path>,
    json: bool,
) -> anyhow::Result<CommandStatus> {
    let runs = match client.job_profile(v1::JobProfileRequest { name: name.clone() }).await {
        Ok(answer) => answer.into_inner().runs,
        Err(status) if status.code() == Code::NotFound => {
            if json {
                output::json(&serde_json::json!({ "refusal": status.message() }))?;
            }
            output::note(status.message());
            return Ok(CommandStatus::Found);
        }
        Err(status) => return Err(status.into()),
    };
    if let Some(path) = html {
        std::fs::write(path, page::of(&name, &runs)).with_context(|| format!("failed to write {}", path.display()))?;
    }
    if json {
        runs.iter().try_for_each(output::json)?;
    } else {
        output::text(&text(&name, &runs))?;
    }
    Ok(CommandStatus::Well)
}

fn text(name: &str, runs: &[v1::JobRun]) -> String {
    let header = ["ENDED", "TENANT", "DISK", "TOOK", "READ", "WROTE", "DISK BUSY", "WITH CPU", "WITH MEMORY", "KIND"];
    let rows: Vec<Vec<String>> = runs.iter().map(row).collect();
    let mut text = format!("{name}: the last {} runs\n{}", runs.len(), table(&header, &rows, &[3, 4, 5, 6, 7, 8]));
    let Some(last) = runs.last() else { return text };
    let phases: Vec<Vec<String>> = last.phases.iter().map(phase).collect();
    text.push_str(&format!("\nthe last run\n{}\n", table(&["PHASE", "TOOK", "READS", "WRITES"], &phases, &[1, 2, 3])));
    for (what, per_second) in curves(last) {
        let top = per_second.iter().copied().fold(0.0, f64::max);
        let shown = if what == "cores" { format!("{top:.1}") } else { rate(top as u64) };
        text.push_str(&format!("{what:>6} {} up to {shown}\n", bars(&per_second, top)));
    }
    text
}

/// A bar a cell; several steps make one where there are many.
fn bars(values: &[f64], top: f64) -> String {
    let per_cell = values.len().div_ceil(CELLS).max(1);
    let bar = |cell: &[f64]| {
        let mean = cell.iter().sum::<f64>() / cell.len() as f64;
        let height = if top > 0.0 { (mean / top * 8.0).ceil().clamp(0.0, 8.0) as usize } else { 0 };
        BARS[height]
    };
    values.chunks(per_cell).map(bar).collect()
}

fn row(run: &v1::JobRun) -> Vec<String> {
    let correlation = |value: Option<f64>| value.map_or_else(|| "?".to_owned(), |value| format!("{value:+.2}"));
    vec![
        show(run.ended_unix_ns),
        run.tenant.clone(),
        run.device.clone(),
        seconds(run.seconds),
        size(run.read_bytes as f64),
        size(run.write_bytes as f64),
        format!("{} %", run.disk_permille / 10),
        correlation(run.cpu_correlation),
        correlation(run.memory_correlation),
        run.intensity.clone(),
    ]
}

fn phase(phase: &v1::JobPhase) -> Vec<String> {
    vec![
        phase.kind.clone(),
        seconds(phase.seconds),
        rate(phase.read_bytes_per_second as u64),
        rate(phase.write_bytes_per_second as u64),
    ]
}

#[cfg(test)]
mod tests {
    use super::{bars, text};
    use minerva_api::v1;

    #[test]
    fn a_run_is_shown_with_its_phases_and_curves() {
        let step =
            |read_bytes, write_bytes| v1::JobStep { seconds: 2.0, read_bytes, write_bytes, ..Default::default() };
        let phase = |kind: &str| v1::JobPhase { kind: kind.to_owned(), seconds: 4.0, ..Default::default() };
        let run = v1::JobRun {
            tenant: "one".to_owned(),
            seconds: 8.0,
            phases: vec![phase("read"), phase("write")],
            steps: vec![step(2_000_000, 0), step(1_000_000, 0), step(0, 500_000), step(0, 0)],
            cpu_correlation: Some(-0.5),
            disk_permille: 912,
            intensity: "disk-intensive".to_owned(),
            ..Default::default()
        };
        let text = text("sort", &[run]);
        for part in ["the last 1 runs", "disk-intensive", "-0.50", "91 %", "█▄", "up to 1.0 MB/s"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!((bars(&[1.0; 720], 1.0).chars().count(), bars(&[], 0.0)), (72, String::new()));
    }
}
