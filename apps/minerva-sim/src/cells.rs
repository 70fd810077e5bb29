//! What the table on the terminal and the report say in the same words.

use crate::output::megabytes;
use minerva_sim_world::{Report, ReportedPromise};

/// The columns of [`tenant_rows`].
pub(crate) const TENANT_HEADS: [&str; 4] = ["tenant", "processes", "MB", "share"];

/// What each tenant got of everything that was transferred.
pub(crate) fn tenant_rows(report: &Report) -> impl Iterator<Item = Vec<String>> {
    report.tenants.iter().map(|tenant| {
        let processes = report.processes.iter().filter(|process| process.tenant == tenant.name).count();
        let (bytes, share) = (megabytes(tenant.bytes as f64), format!("{:.1} %", 100.0 * tenant.share));
        vec![tenant.name.clone(), processes.to_string(), bytes, share]
    })
}

/// How a guarantee fared, in a cell.
pub(crate) fn promise_text(promise: Option<ReportedPromise>) -> String {
    promise.map_or("-".to_owned(), |p| {
        let late = format!("{} of {} late", p.requests_late, p.requests);
        match (p.seconds, p.interval_s) {
            (0, _) => format!("rate not checked: never busy for {} s in a row, {late}", p.interval_s),
            (seconds, 1) => format!("{} of {seconds} s, {late}", p.seconds_missed),
            (seconds, interval_s) => format!("{} of {seconds} s in parts of {interval_s} s, {late}", p.seconds_missed),
        }
    })
}
