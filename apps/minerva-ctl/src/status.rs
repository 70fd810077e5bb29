//! `minerva-ctl status`: the daemon, its disks, and what it found.

use crate::figures::{long_span, rate, span, table};
use crate::output::{self, CommandStatus};
use crate::part;
use minerva_api::client::Operator;
use minerva_api::v1;
use std::fmt::Write;

/// Asks and prints. Warnings among the findings, a refused file or a broken store are findings.
pub(crate) async fn run(mut client: Operator, json: bool) -> anyhow::Result<CommandStatus> {
    let status = client.status(v1::StatusRequest {}).await?.into_inner();
    if json {
        output::json(&status)?;
    } else {
        output::text(&page(&status))?;
    }
    let warned = status.findings.iter().any(|finding| finding.warning);
    Ok(CommandStatus::found_if(warned || !status.config_error.is_empty() || !status.store_error.is_empty()))
}

/// The whole answer as text.
fn page(status: &v1::StatusResponse) -> String {
    let mut text = String::new();
    let slice = status.slice.clone().unwrap_or_default();
    let totals = status.totals.unwrap_or_default();
    let config = if status.config_path.is_empty() { "none, the defaults hold" } else { &status.config_path };
    // Writing into a string cannot fail.
    let _ = writeln!(text, "minervad {}: {} mode, up {}", status.version, status.mode, long_span(status.uptime_ns));
    let _ = writeln!(text, "config:   {config} (generation {})", status.config_generation);
    let _ = writeln!(
        text,
        "slices:   {} so far, the last cost {}; {} writes ({} refused), {} inspections",
        totals.slices,
        span(Some(slice.cost_ns)),
        totals.writes,
        totals.writes_refused,
        totals.inspections
    );
    let _ = writeln!(text, "tenants:  {}", slice.tenants.len());
    let _ = writeln!(text, "{}", forecasts(&slice));
    if !status.config_error.is_empty() {
        let _ = writeln!(text, "\nthe operator's file was refused, the one before it holds:\n{}", status.config_error);
    }
    if !status.store_error.is_empty() {
        let _ = writeln!(text, "\nthe store does not work, steering goes on: {}", status.store_error);
    }
    let _ = write!(text, "\n{}", disks(&slice.devices));
    for device in &slice.devices {
        let _ = writeln!(text, "{}: {}", device.name, device.reason);
    }
    let taking_part: Vec<String> = slice
        .tenants
        .iter()
        .filter_map(|tenant| Some(format!("{}: {}\n", tenant.name, part::full(tenant.part.as_ref()?))))
        .collect();
    if !taking_part.is_empty() {
        let _ = write!(text, "\ntaking part:\n{}", taking_part.concat());
    }
    if !status.findings.is_empty() {
        text.push_str("\nfindings:\n");
    }
    for finding in &status.findings {
        let _ = writeln!(text, "{}  {}: {}", crate::moment::show(finding.unix_ns), finding.kind, finding.message);
    }
    text
}

/// How many forecasts of the next 15 s stand, and what they are worth.
fn forecasts(slice: &v1::Slice) -> String {
    let all = || slice.tenants.iter().flat_map(|tenant| &tenant.uses).flat_map(|used| &used.forecasts);
    let pattern = || all().filter(|forecast| forecast.horizon == "pattern");
    let skilled = pattern().filter(|forecast| forecast.skill > 0.0).count();
    format!("forecasts: {} of the next 15 s, {skilled} of them surely better than naive ones", pattern().count())
}

/// One line a disk.
pub(crate) fn disks(devices: &[v1::Device]) -> String {
    let rows: Vec<Vec<String>> = devices
        .iter()
        .map(|device| {
            vec![
                device.name.clone(),
                device.number.clone(),
                device.back_end.clone(),
                format!("{}", device.contention),
                format!("{}.{} %", device.busy_permille / 10, device.busy_permille % 10),
                rate(device.read_bytes_per_second),
                rate(device.write_bytes_per_second),
                span(device.read_latency_ns),
                span(device.write_latency_ns),
                rate(device.unattributed_bytes_per_second),
            ]
        })
        .collect();
    let header =
        ["DISK", "NUMBER", "BACK END", "ACTIVE", "BUSY", "READ", "WRITE", "READ LAT", "WRITE LAT", "UNATTRIBUTED"];
    table(&header, &rows, &[3, 4, 5, 6, 7, 8, 9])
}
