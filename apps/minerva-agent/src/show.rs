//! `minerva-agent --print-report`: one report, for people who want to know what the host is told.

use crate::report::Watcher;
use anyhow::Context;
use minerva_api::v1;
use std::io::Write;
use std::time::Duration;

/// What the report is of.
const WATCHED: Duration = Duration::from_secs(1);

/// Watches, and prints to standard output.
pub(crate) fn run(json: bool) -> anyhow::Result<()> {
    let mut watcher = Watcher::begin();
    std::thread::sleep(WATCHED);
    let report = watcher.report();
    let text = if json {
        serde_json::to_string(&report).context("failed to write the report as JSON")? + "\n"
    } else {
        text(&report)
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        // Whoever reads has seen enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("failed to print the report"),
    }
}

fn text(report: &v1::ReportRequest) -> String {
    let mut text = format!(
        "up {} s, memory {} of {} MiB available, {} connections, network {} KiB in and {} KiB out\n",
        report.uptime_ns / 1_000_000_000,
        report.memory_available_bytes >> 20,
        report.memory_total_bytes >> 20,
        report.connections,
        report.network_received_bytes >> 10,
        report.network_sent_bytes >> 10,
    );
    for process in &report.processes {
        let kib = |bytes: Option<u64>| bytes.map_or("?".to_owned(), |bytes| (bytes >> 10).to_string());
        text += &format!(
            "{:>8} {:<16} cpu {:>4} ms, memory {:>6} MiB, read {} KiB, written {} KiB, {} connections\n",
            process.pid,
            process.name,
            process.cpu_ns / 1_000_000,
            process.resident_bytes >> 20,
            kib(process.read_bytes),
            kib(process.write_bytes),
            process.connections,
        );
        for file in &process.files {
            let mode = if file.writable { "write" } else { "read" };
            text += &format!("         {mode:>5} {}/{} bytes of {}\n", file.position_bytes, file.size_bytes, file.path);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::text;
    use minerva_api::v1;

    #[test]
    fn a_report_reads_in_lines() {
        let file = v1::OpenFile { path: "/srv/a".to_owned(), size_bytes: 200, position_bytes: 50, writable: false };
        let process = v1::ProcessReport {
            pid: 7,
            name: "tar".to_owned(),
            cpu_ns: 30_000_000,
            resident_bytes: 4 << 20,
            read_bytes: Some(2048),
            files: vec![file],
            ..v1::ProcessReport::default()
        };
        let report = v1::ReportRequest { processes: vec![process], ..v1::ReportRequest::default() };
        let text = text(&report);
        assert!(text.contains("7 tar"), "{text}");
        assert!(text.contains("read 2 KiB, written ? KiB"), "{text}");
        assert!(text.contains("read 50/200 bytes of /srv/a"), "{text}");
    }
}
