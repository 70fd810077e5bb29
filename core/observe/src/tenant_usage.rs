//! What tenants use besides the disk, their pressure, and what their agents report.
//!
//! Tenants are looked at in turns, so each has its own last reading. Sums over live processes go back when a process ends; the
//! difference is then what the others used, and at least nothing.

use minerva_model::{
    AgentReport, Nanos, Pressure, PressureSignals, Sample, Signals, TenantId, TenantPressure, TenantUsage, UsageSignals,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Last readings by tenant, and reports that wait for the end of the slice.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct TenantReadings {
    usage: BTreeMap<TenantId, (Nanos, TenantUsage)>,
    pressure: BTreeMap<TenantId, (Nanos, Pressure)>,
    host_pressure: Option<(Nanos, Pressure)>,
    reports: BTreeMap<TenantId, AgentReport>,
}

impl TenantReadings {
    /// The latest report of a slice counts; times and bytes of those before are added to it.
    pub(crate) fn reported(&mut self, report: AgentReport) {
        let earlier = self.reports.get(&report.tenant).copied();
        let whole = earlier.map_or(report, |earlier| AgentReport {
            elapsed: earlier.elapsed + report.elapsed,
            cpu_ns: earlier.cpu_ns.saturating_add(report.cpu_ns),
            read_bytes: earlier.read_bytes.saturating_add(report.read_bytes),
            write_bytes: earlier.write_bytes.saturating_add(report.write_bytes),
            network_received_bytes: earlier.network_received_bytes.saturating_add(report.network_received_bytes),
            network_sent_bytes: earlier.network_sent_bytes.saturating_add(report.network_sent_bytes),
            ..report
        });
        self.reports.insert(report.tenant, whole);
    }

    /// Adds the rows of a slice, by tenant whatever the order of the sample.
    pub(crate) fn slice(&mut self, now: Nanos, sample: &Sample, signals: &mut Signals) {
        signals.usage = sample.usage.iter().map(|row| self.usage(now, *row)).collect();
        signals.usage.sort_by_key(|row| row.tenant);
        signals.usage.dedup_by_key(|row| row.tenant);
        signals.pressure = sample.pressure.iter().filter_map(|row| self.pressure(now, row)).collect();
        signals.pressure.sort_by_key(|row| row.tenant);
        signals.pressure.dedup_by_key(|row| row.tenant);
        signals.host_pressure = sample.host_pressure.and_then(|host| {
            let before = self.host_pressure.replace((now, host))?;
            Some(stalled(None, now.since(before.0), before.1, host))
        });
        signals.reports = std::mem::take(&mut self.reports).into_values().collect();
    }

    pub(crate) fn tenant_gone(&mut self, tenant: TenantId) {
        self.usage.remove(&tenant);
        self.pressure.remove(&tenant);
        self.reports.remove(&tenant);
    }

    fn usage(&mut self, now: Nanos, row: TenantUsage) -> UsageSignals {
        let (at, before) = self.usage.insert(row.tenant, (now, row)).unwrap_or((now, row));
        UsageSignals {
            tenant: row.tenant,
            elapsed: now.since(at),
            cpu_ns: row.cpu_ns.saturating_sub(before.cpu_ns),
            memory_bytes: row.memory_bytes,
            network_bytes: row.network_bytes.map(|new| new.saturating_sub(before.network_bytes.unwrap_or(new))),
            open_files: row.open_files,
            open_sockets: row.open_sockets,
            open_file_bytes: row.open_file_bytes,
            processes: row.processes,
            process_read_bytes: row.process_read_bytes.saturating_sub(before.process_read_bytes),
            process_write_bytes: row.process_write_bytes.saturating_sub(before.process_write_bytes),
        }
    }

    fn pressure(&mut self, now: Nanos, row: &TenantPressure) -> Option<PressureSignals> {
        let (at, before) = self.pressure.insert(row.tenant, (now, row.pressure))?;
        Some(stalled(Some(row.tenant), now.since(at), before, row.pressure))
    }
}

fn stalled(tenant: Option<TenantId>, elapsed: Nanos, before: Pressure, now: Pressure) -> PressureSignals {
    let permille = |before: u64, now: u64| {
        let part = u128::from(now.saturating_sub(before)) * 1_000 / u128::from(elapsed.0.max(1));
        part.min(1_000) as u32
    };
    let (some_permille, full_permille) = (permille(before.some_ns, now.some_ns), permille(before.full_ns, now.full_ns));
    PressureSignals { tenant, some_permille, full_permille }
}

#[cfg(test)]
mod tests {
    use super::TenantReadings;
    use minerva_model::{AgentReport, Nanos, Pressure, Sample, Signals, TenantId, TenantPressure, TenantUsage};

    fn usage(tenant: u64, cpu_ns: u64, open_file_bytes: u64) -> TenantUsage {
        TenantUsage {
            tenant: TenantId(tenant),
            cpu_ns,
            memory_bytes: 5,
            network_bytes: None,
            open_files: 2,
            open_sockets: 1,
            open_file_bytes,
            processes: 1,
            process_read_bytes: 10 * cpu_ns,
            process_write_bytes: 0,
        }
    }

    fn slice(readings: &mut TenantReadings, seconds: u64, sample: &Sample) -> Signals {
        let mut signals = Signals::default();
        readings.slice(Nanos::from_secs(seconds), sample, &mut signals);
        signals
    }

    #[test]
    fn tenants_are_compared_with_their_own_last_reading() {
        let mut readings = TenantReadings::default();
        let first =
            slice(&mut readings, 1, &Sample { usage: vec![usage(2, 70, 9), usage(1, 50, 8)], ..Sample::default() });
        let rows: Vec<_> =
            first.usage.iter().map(|row| (row.tenant.0, row.elapsed.0, row.cpu_ns, row.open_file_bytes)).collect();
        assert_eq!(rows, [(1, 0, 0, 8), (2, 0, 0, 9)]);
        slice(&mut readings, 2, &Sample { usage: vec![usage(2, 90, 9)], ..Sample::default() });
        let third =
            slice(&mut readings, 4, &Sample { usage: vec![usage(1, 55, 3), usage(2, 80, 9)], ..Sample::default() });
        let rows: Vec<_> = third.usage.iter().map(|row| (row.elapsed, row.cpu_ns, row.process_read_bytes)).collect();
        // The second one's process has ended, and its sums went back.
        assert_eq!(rows, [(Nanos::from_secs(3), 5, 50), (Nanos::from_secs(2), 0, 0)]);
    }

    #[test]
    fn pressure_is_a_part_of_the_time_that_passed() {
        let mut readings = TenantReadings::default();
        let pressed = |some_ms: u64| {
            let pressure = Pressure { some_ns: some_ms * 1_000_000, full_ns: 0 };
            let row = TenantPressure { tenant: TenantId(1), pressure };
            Sample { pressure: vec![row], host_pressure: Some(pressure), ..Sample::default() }
        };
        let first = slice(&mut readings, 1, &pressed(0));
        assert!(first.pressure.is_empty() && first.host_pressure.is_none());
        let later = slice(&mut readings, 3, &pressed(500));
        assert_eq!((later.pressure[0].some_permille, later.host_pressure.unwrap().some_permille), (250, 250));
        assert_eq!(slice(&mut readings, 4, &pressed(9_000)).pressure[0].some_permille, 1_000);
    }

    #[test]
    fn reports_of_one_slice_are_added_and_those_of_the_gone_are_dropped() {
        let mut readings = TenantReadings::default();
        let report = |tenant, read_bytes, connections| AgentReport {
            tenant: TenantId(tenant),
            elapsed: Nanos::SECOND,
            processes: 1,
            cpu_ns: 7,
            resident_bytes: 0,
            read_bytes,
            write_bytes: 0,
            open_files: 0,
            open_file_bytes: 0,
            open_file_bytes_left: 0,
            memory_available_bytes: 0,
            memory_total_bytes: 0,
            connections,
            network_received_bytes: 0,
            network_sent_bytes: 0,
        };
        for one in [report(1, 100, 3), report(2, 5, 0), report(1, u64::MAX, 4)] {
            readings.reported(one);
        }
        readings.tenant_gone(TenantId(2));
        let signals = slice(&mut readings, 1, &Sample::default());
        let rows: Vec<_> =
            signals.reports.iter().map(|row| (row.tenant.0, row.read_bytes, row.cpu_ns, row.connections)).collect();
        assert_eq!(rows, [(1, u64::MAX, 14, 4)]);
        assert!(slice(&mut readings, 2, &Sample::default()).reports.is_empty());
    }
}
