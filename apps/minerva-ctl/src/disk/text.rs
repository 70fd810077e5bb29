//! Disks and promises for people.

use crate::figures::{long_span, size, span, table};
use minerva_model::{DiskReport, DiskTerms, FailureFigures, Protection, RefusedDisk, ServedDevice, ServerReport};

/// All disks of a server.
pub(crate) fn list(report: &ServerReport) -> String {
    let scheduler = |name: &str| {
        let found = report.devices.iter().find(|device| device.name == name);
        found.map_or_else(|| name.to_owned(), |device| format!("{name} ({})", device.scheduler))
    };
    let row = |disk: &DiskReport| {
        let settings = &disk.settings;
        vec![
            settings.name.clone(),
            scheduler(&disk.device),
            size(disk.length_bytes as f64),
            disk.front_end.map_or_else(|| "-".to_owned(), |process| process.to_string()),
            disk.share.to_string(),
            (disk.io.read_ops + disk.io.write_ops + disk.other_ops).to_string(),
            size((disk.io.read_bytes + disk.io.write_bytes) as f64),
            disk.under_way.to_string(),
            (disk.failed_ops + disk.refused_ops).to_string(),
            promise(&settings.terms),
            contract(disk),
        ]
    };
    let header =
        ["disk", "on", "length", "guest", "share", "requests", "moved", "queued", "failed", "promise", "contract"];
    let rows: Vec<Vec<String>> = report.disks.iter().map(row).collect();
    format!(
        "{}, process {}, file {}\n\n{}{}{}{}",
        report.program,
        report.process,
        report.config,
        table(&header, &rows, &[2, 3, 4, 5, 6, 7, 8]),
        image_failures(report),
        protection(report),
        refused(report)
    )
}

/// What images failed, and which have no name any more, a line each with what to do.
pub(crate) fn image_failures(report: &ServerReport) -> String {
    let line = |disk: &DiskReport| {
        let (name, figures) = (&disk.settings.name, &disk.figures);
        let failed = figures.failure.as_ref().map(|FailureFigures { ago, why, .. }| {
            let (count, ago) = (disk.failed_ops, long_span(ago.0));
            format!("\n{name}: {count} failed, the last one {ago} ago: {why}")
        });
        let removed = figures.image_removed.as_ref().map(|why| format!("\n{name}: {why}"));
        failed.unwrap_or_default() + &removed.unwrap_or_default()
    };
    let lines: String = report.disks.iter().map(line).collect();
    if lines.is_empty() { lines } else { format!("{lines}\n") }
}

/// How contracts stand beside other processes of the host, a line for each disk of the host with contracts.
pub(crate) fn protection(report: &ServerReport) -> String {
    let line = |device: &ServedDevice| {
        let ServedDevice { name, reserved_permille, protection, .. } = device;
        let is_promised =
            |disk: &DiskReport| disk.device == *name && disk.settings.terms.rate_bytes_per_second.is_some();
        if device.device.is_none() || !report.disks.iter().any(is_promised) {
            return String::new();
        }
        let reserve = match reserved_permille {
            0 => format!("\nthe contracts on {name} are"),
            reserved => format!("\nthe contracts on {name} reserve {} % of its time and are", reserved.div_ceil(10)),
        };
        match protection {
            None => format!(
                "{reserve} not protected from other processes of this host: minervad does not run, or does not look at {name}"
            ),
            Some(Protection { held: false, why, others_permille, .. }) => format!(
                "{reserve} not protected from other processes of this host, which had {} % lately: {why}",
                others_permille / 10
            ),
            Some(Protection { why, part_permille, others_permille, .. }) => format!(
                "{reserve} given {} % beside others, who had {} % lately: {why}",
                part_permille / 10,
                others_permille / 10
            ),
        }
    };
    let lines: String = report.devices.iter().map(line).collect();
    if lines.is_empty() { lines } else { format!("{lines}\n") }
}

/// Disks of the operator's file that are not served, a line each.
pub(crate) fn refused(report: &ServerReport) -> String {
    let line = |disk: &RefusedDisk| {
        let again = disk.retry_in.map(|time| format!(" (tried again in {})", long_span(time.0)));
        format!("\n{} is not served: {}{}", disk.name, disk.why, again.unwrap_or_default())
    };
    let lines: String = report.refused.iter().map(line).collect();
    if lines.is_empty() { lines } else { format!("{lines}\n") }
}

/// Whether its contract was kept; more is in `disk top`.
fn contract(disk: &DiskReport) -> String {
    match (&disk.figures.hung_up, &disk.figures.contract) {
        (Some(why), _) => format!("not served: {why}"),
        (None, None) => "-".to_owned(),
        (None, Some(contract)) if contract.is_kept() => "kept".to_owned(),
        (None, Some(contract)) => {
            format!("missed in {} of {} s", contract.seconds_late.max(contract.seconds_short), contract.seconds)
        }
    }
}

/// What a disk is promised, in a line.
pub(crate) fn promise(terms: &DiskTerms) -> String {
    let mut parts = vec![format!("weight {}", terms.weight)];
    if let Some(rate) = terms.rate_bytes_per_second {
        let (burst, delay) = (size(terms.burst_bytes as f64), span(Some(terms.delay.0)));
        let by_force = if terms.force { ", by force" } else { "" };
        parts.push(format!("{}/s with {burst} at once within {delay}{by_force}", size(rate as f64)));
    }
    if let Some(limit) = terms.limit_bytes_per_second {
        parts.push(format!("at most {}/s", size(limit as f64)));
    }
    parts.push(format!("tags {} to at most {}", terms.tag_default, terms.tag_max));
    parts.join(", ")
}
