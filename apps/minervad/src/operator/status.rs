//! How things stand, as clients see it. Made only when somebody looks.

use crate::metrics::DeviceLabel;
use crate::slice_loop::Driver;
use crate::tenants::claims::Claims;
use minerva_api::v1;
use minerva_model::{DeviceId, DeviceSignals, IoSignals, LoadOf, Mode, Nanos, Tenant};
use minerva_operator_server::audit;

/// Bytes of agents' reports in one answer. A client takes four megabytes, and there are tenants to be shown beside them.
const REPORT_BYTES_MAX: usize = 1 << 20;

impl Driver {
    /// Everything.
    pub(crate) fn status(&self) -> v1::StatusResponse {
        v1::StatusResponse {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            mode: mode(self.engine.mode()).to_owned(),
            uptime_ns: self.progress.uptime().0,
            config_path: self.file.path_in_force(),
            config_generation: self.file.generation,
            config_error: self.file.error.clone(),
            slice: Some(self.picture(REPORT_BYTES_MAX)),
            findings: self.findings.shown(),
            totals: Some(v1::Totals {
                slices: self.progress.slices,
                writes: self.metrics.writes_total(),
                writes_refused: self.metrics.writes_of("refused"),
                inspections: self.metrics.inspections.get(),
                dropped: self.metrics.client_slices_dropped.get(),
            }),
            store_error: self.memory.error(),
        }
    }

    /// The latest slice, with so many bytes of agents' reports at most.
    pub(crate) fn picture(&self, mut report_bytes_max: usize) -> v1::Slice {
        let tenants = self.tenants.values().map(|tenant| self.tenant(tenant, &mut report_bytes_max)).collect();
        v1::Slice {
            number: self.progress.slices,
            mode: mode(self.engine.mode()).to_owned(),
            unix_ns: self.progress.unix_ns,
            cost_ns: self.progress.cost.0,
            devices: self
                .engine
                .device_suitabilities()
                .filter_map(|(id, back_end, reason)| {
                    let device = self.devices.get(&id)?;
                    Some(self.device(id, &device.name, back_end.as_str(), reason))
                })
                .collect(),
            tenants,
            groups: self.groups_ahead(),
        }
    }

    fn device(&self, id: DeviceId, name: &str, back_end: &str, reason: &str) -> v1::Device {
        let mut device = v1::Device {
            number: id.to_string(),
            name: name.to_owned(),
            back_end: back_end.to_owned(),
            reason: reason.to_owned(),
            ahead: self.loads_ahead(&LoadOf::Device(id)),
            ..v1::Device::default()
        };
        let rows = &self.engine.signals().devices;
        let Ok(index) = rows.binary_search_by_key(&id, |row| row.device) else { return device };
        let DeviceSignals { elapsed, transferred, .. } = rows[index];
        device.contention = rows[index].contention;
        device.busy_permille = rows[index].busy_permille;
        device.read_bytes_per_second = per_second(transferred.read_bytes, elapsed);
        device.write_bytes_per_second = per_second(transferred.write_bytes, elapsed);
        device.read_latency_ns = rows[index].read_latency.map(|latency| latency.0);
        device.write_latency_ns = rows[index].write_latency.map(|latency| latency.0);
        device.unattributed_bytes_per_second = per_second(rows[index].unattributed_bytes, elapsed);
        device
    }

    fn tenant(&self, tenant: &Tenant, report_bytes_left: &mut usize) -> v1::Tenant {
        let rows = &self.engine.signals().io;
        let first = rows.partition_point(|row| row.tenant < tenant.id);
        let own = rows[first..].iter().take_while(|row| row.tenant == tenant.id);
        v1::Tenant {
            id: tenant.id.to_string(),
            name: tenant.name.clone(),
            kind: tenant.kind.as_str().to_owned(),
            cgroup: tenant.cgroup.path.clone(),
            group: tenant.group.clone().unwrap_or_default(),
            weight_percent: tenant.weight_percent,
            excluded: tenant.excluded,
            uses: own.map(|row| self.used(row)).collect(),
            part: self.part(tenant.id, report_bytes_left),
            guest_name: tenant.origin.guest_name.clone().unwrap_or_default(),
            account: audit::shown(&tenant.history_key()),
        }
    }

    fn used(&self, row: &IoSignals) -> v1::Use {
        let IoSignals { elapsed, transferred, .. } = *row;
        let decision = self.engine.decision(row.tenant, row.device);
        v1::Use {
            device: row.device.to_string(),
            read_bytes_per_second: per_second(transferred.read_bytes, elapsed),
            write_bytes_per_second: per_second(transferred.write_bytes, elapsed),
            read_operations_per_second: per_second(transferred.read_ops, elapsed),
            write_operations_per_second: per_second(transferred.write_ops, elapsed),
            latency_ns: row.latency.map(|latency| latency.0),
            active: row.active,
            share: decision.as_ref().map(|decision| decision.share.get()),
            why: decision.map(|decision| decision.on(&self.disk_called(row.device))).unwrap_or_default(),
            forecasts: self.forecasts_of(row.tenant, row.device),
        }
    }

    /// The gauges of the latest slice.
    pub(crate) fn measure_signals(&self) {
        self.metrics.tenants.set(i64::try_from(self.tenants.len()).unwrap_or(i64::MAX));
        self.metrics.devices.set(i64::try_from(self.devices.len()).unwrap_or(i64::MAX));
        self.metrics.credits_held.set(self.engine.credits_held().0 as f64 / 1e6);
        let claims: usize = self.parts.claims.values().map(Claims::count).sum();
        self.metrics.level_claims.set(i64::try_from(claims).unwrap_or(i64::MAX));
        for row in &self.engine.signals().devices {
            let Some(device) = self.devices.get(&row.device) else { continue };
            let label = DeviceLabel { device: device.name.clone() };
            self.metrics.contention.get_or_create(&label).set(i64::from(row.contention));
            self.metrics.busy.get_or_create(&label).set(f64::from(row.busy_permille) / 1000.0);
        }
    }
}

/// The mode as the operator's file spells it.
pub(crate) const fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Observe => "observe",
        Mode::Shadow => "shadow",
        Mode::Enforce => "enforce",
    }
}

fn per_second(count: u64, elapsed: Nanos) -> u64 {
    if elapsed == Nanos::ZERO {
        return 0;
    }
    (count as f64 / elapsed.as_secs_f64()).round() as u64
}
