//! The last report of each tenant's agent, in memory only and bounded.

use minerva_api::v1::ReportRequest;
use minerva_model::{AgentReport, Nanos, TenantId};
use prost::Message;
use std::collections::BTreeMap;

/// Bytes of all reports together; of the account that has the most the oldest go first.
const BYTES_MAX: usize = 16 << 20;

#[derive(Debug)]
struct Report {
    at: Nanos,
    account: String,
    /// As it came over the wire: in memory a report can be many times as large, and it is looked at seldom.
    wire: Vec<u8>,
}

/// See the file's documentation.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    by_tenant: BTreeMap<TenantId, Report>,
    /// Bytes of each account.
    by_account: BTreeMap<String, usize>,
    bytes: usize,
}

impl Reports {
    /// Keeps the latest report of a tenant.
    pub(crate) fn keep(&mut self, now: Nanos, tenant: TenantId, account: String, report: &ReportRequest) {
        self.forget(tenant);
        let wire = report.encode_to_vec();
        self.bytes += wire.len();
        *self.by_account.entry(account.clone()).or_default() += wire.len();
        self.by_tenant.insert(tenant, Report { at: now, account, wire });
        while self.bytes > BYTES_MAX {
            let Some(oldest) = self.oldest_of_the_largest() else { return };
            self.forget(oldest);
        }
    }

    /// A tenant's last report, how old it is, and its length on the wire, unless that is more than `bytes_max`.
    pub(crate) fn get(&self, now: Nanos, tenant: TenantId, bytes_max: usize) -> Option<(ReportRequest, Nanos, usize)> {
        let one = self.by_tenant.get(&tenant).filter(|one| one.wire.len() <= bytes_max)?;
        let report = ReportRequest::decode(one.wire.as_slice()).ok()?;
        Some((report, now.since(one.at), one.wire.len()))
    }

    pub(crate) fn forget(&mut self, tenant: TenantId) {
        let Some(Report { account, wire, .. }) = self.by_tenant.remove(&tenant) else { return };
        self.bytes -= wire.len();
        let Some(of_account) = self.by_account.get_mut(&account) else { return };
        *of_account -= wire.len();
        if *of_account == 0 {
            self.by_account.remove(&account);
        }
    }

    fn oldest_of_the_largest(&self) -> Option<TenantId> {
        let (largest, _) = self.by_account.iter().max_by_key(|(_, bytes)| **bytes)?;
        let own = self.by_tenant.iter().filter(|(_, report)| report.account == *largest);
        own.min_by_key(|(_, report)| report.at).map(|(tenant, _)| *tenant)
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
    use minerva_api::v1::{OpenFile, ProcessReport, ReportRequest};
    use minerva_model::{Nanos, TenantId};

    /// A report of so many bytes on the wire, and of this age of the machine.
    fn report(uptime_ns: u64, bytes: usize) -> ReportRequest {
        ReportRequest { uptime_ns, agent: "x".repeat(bytes), ..ReportRequest::default() }
    }

    fn uptime(reports: &Reports, tenant: u64) -> Option<u64> {
        reports.get(Nanos(9), TenantId(tenant), usize::MAX).map(|(report, ..)| report.uptime_ns)
    }

    #[test]
    fn the_latest_counts_and_what_there_is_no_room_for_is_not_told() {
        let mut reports = Reports::default();
        reports.keep(Nanos(1), TenantId(1), "a".to_owned(), &report(1, 100));
        reports.keep(Nanos(5), TenantId(1), "a".to_owned(), &report(2, 200));
        let (latest, age, bytes) = reports.get(Nanos(9), TenantId(1), usize::MAX).expect("one");
        assert_eq!((latest, age, bytes > 200), (report(2, 200), Nanos(4), true));
        assert!(reports.get(Nanos(9), TenantId(1), bytes - 1).is_none());
        reports.forget(TenantId(1));
        assert!(reports.bytes == 0 && reports.by_account.is_empty());
    }

    #[test]
    fn the_oldest_of_the_account_with_the_most_go_first() {
        let mut reports = Reports::default();
        reports.keep(Nanos(1), TenantId(1), "a".to_owned(), &report(1, BYTES_MAX / 8));
        for number in 2..10 {
            reports.keep(Nanos(number), TenantId(number), "b".to_owned(), &report(number, BYTES_MAX / 8));
        }
        let kept: Vec<u64> = (1..10).filter_map(|tenant| uptime(&reports, tenant)).collect();
        assert_eq!(kept, [1, 4, 5, 6, 7, 8, 9]);
        assert!(reports.bytes <= BYTES_MAX);
    }

    #[test]
    fn what_is_kept_is_no_larger_than_it_came() {
        let mut reports = Reports::default();
        let process = ProcessReport { files: vec![OpenFile::default(); 32], ..ProcessReport::default() };
        let report = ReportRequest { processes: vec![process; 256], ..ReportRequest::default() };
        reports.keep(Nanos(1), TenantId(1), "a".to_owned(), &report);
        assert_eq!(uptime(&reports, 1), Some(0));
        let kept = &reports.by_tenant[&TenantId(1)];
        assert_eq!((kept.wire.capacity(), reports.bytes), (kept.wire.len(), kept.wire.len()));
        assert!(reports.bytes < 20_000, "{}", reports.bytes);
    }
}
