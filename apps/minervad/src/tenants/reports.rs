//! The last report of each tenant's agent, in memory only and bounded.

use minerva_api::v1::ReportRequest;
use minerva_model::{AgentReport, Nanos, TenantId};
use std::collections::BTreeMap;

/// Bytes of all reports together, as they came over the wire; the oldest go first.
const BYTES_MAX: usize = 16 << 20;

#[derive(Debug)]
struct Report {
    at: Nanos,
    bytes: usize,
    report: ReportRequest,
}

/// See the file's documentation.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    by_tenant: BTreeMap<TenantId, Report>,
    bytes: usize,
}

impl Reports {
    /// Keeps the latest report of a tenant; `bytes` is its length on the wire.
    pub(crate) fn keep(&mut self, now: Nanos, tenant: TenantId, report: ReportRequest, bytes: usize) {
        self.forget(tenant);
        self.bytes += bytes;
        self.by_tenant.insert(tenant, Report { at: now, bytes, report });
        while self.bytes > BYTES_MAX {
            let oldest = self.by_tenant.iter().min_by_key(|(_, report)| report.at).map(|(tenant, _)| *tenant);
            let Some(oldest) = oldest else { return };
            self.forget(oldest);
        }
    }

    /// A tenant's last report, how old it is, and its length on the wire.
    pub(crate) fn get(&self, now: Nanos, tenant: TenantId) -> Option<(&ReportRequest, Nanos, usize)> {
        self.by_tenant.get(&tenant).map(|one| (&one.report, now.since(one.at), one.bytes))
    }

    pub(crate) fn forget(&mut self, tenant: TenantId) {
        if let Some(report) = self.by_tenant.remove(&tenant) {
            self.bytes -= report.bytes;
        }
    }
}

/// An agent's report in the engine's words, summed over its processes.
pub(crate) fn summed(tenant: TenantId, report: &ReportRequest) -> AgentReport {
    let processes = || report.processes.iter();
    let files = || processes().flat_map(|process| &process.files);
    let sum = |numbers: &mut dyn Iterator<Item = u64>| numbers.fold(0, u64::saturating_add);
    AgentReport {
        tenant,
        elapsed: Nanos(report.elapsed_ns),
        processes: report.processes.len() as u64,
        cpu_ns: sum(&mut processes().map(|process| process.cpu_ns)),
        resident_bytes: sum(&mut processes().map(|process| process.resident_bytes)),
        read_bytes: sum(&mut processes().filter_map(|process| process.read_bytes)),
        write_bytes: sum(&mut processes().filter_map(|process| process.write_bytes)),
        open_files: files().count() as u64,
        open_file_bytes: sum(&mut files().map(|file| file.size_bytes)),
        open_file_bytes_left: sum(&mut files().map(|file| file.size_bytes.saturating_sub(file.position_bytes))),
        memory_available_bytes: report.memory_available_bytes,
        memory_total_bytes: report.memory_total_bytes,
        connections: report.connections.into(),
        network_received_bytes: report.network_received_bytes,
        network_sent_bytes: report.network_sent_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::{BYTES_MAX, Reports};
    use minerva_api::v1::ReportRequest;
    use minerva_model::{Nanos, TenantId};

    #[test]
    fn the_latest_counts_and_the_oldest_go_first() {
        let mut reports = Reports::default();
        let report = |uptime_ns| ReportRequest { uptime_ns, ..ReportRequest::default() };
        reports.keep(Nanos(1), TenantId(1), report(1), 100);
        reports.keep(Nanos(5), TenantId(1), report(2), 200);
        assert_eq!(
            reports.get(Nanos(9), TenantId(1)).map(|(r, age, bytes)| (r.uptime_ns, age, bytes)),
            Some((2, Nanos(4), 200))
        );
        reports.keep(Nanos(6), TenantId(2), report(3), BYTES_MAX - 100);
        assert!(reports.get(Nanos(9), TenantId(1)).is_none());
        reports.forget(TenantId(2));
        assert_eq!(reports.bytes, 0);
    }
}
