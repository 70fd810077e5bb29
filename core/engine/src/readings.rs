//! Signals as the forecaster takes them: a reading for each pair that did I/O, or whose processes were looked at.

use minerva_forecast::online::Account;
use minerva_forecast::tenant::{Reading, Usage};
use minerva_forecast::{Family, Forecaster, Key};
use minerva_model::{AgentReport, DeviceId, Nanos, Signals, TenantId};
use serde::{Deserialize, Serialize};

/// A slice that ended.
#[derive(Clone, Copy)]
pub(crate) struct Ended<'a> {
    pub(crate) now: Nanos,
    /// Since the slice before; nothing at the first sample.
    pub(crate) elapsed: Nanos,
    pub(crate) wall_seconds: Option<u64>,
    pub(crate) signals: &'a Signals,
}

/// What one pair did.
type Row = (Key, Family, Reading);

/// Readings of a step, which is a slice or, where slices are shorter than a second, several.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Readings {
    rows: Vec<Row>,
    elapsed: Nanos,
    slices: u64,
}

impl Readings {
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        (self.elapsed, self.slices) = (Nanos::ZERO, 0);
    }

    pub(crate) fn tenant_gone(&mut self, id: TenantId) {
        self.rows.retain(|((tenant, _), _, _)| *tenant != id);
    }

    pub(crate) fn device_gone(&mut self, id: DeviceId) {
        self.rows.retain(|((_, device), _, _)| *device != id);
    }

    /// Adds a slice. `watched` says of which family a tenant is and on whose account, if it is to be forecast.
    pub(crate) fn add(
        &mut self,
        ended: &Ended<'_>,
        forecaster: &Forecaster,
        watched: impl Fn(TenantId) -> Option<(Family, Account)>,
    ) {
        self.elapsed += ended.elapsed;
        self.slices += 1;
        let (signals, wall_seconds) = (ended.signals, ended.wall_seconds.map(|seconds| seconds as f64));
        for row in &signals.io {
            let key = (row.tenant, row.device);
            let usage = usage_of(signals, row.tenant);
            let did_something = row.transferred.bytes() > 0;
            if !did_something && (usage.is_none() || !forecaster.knows(key)) {
                continue;
            }
            let Some((family, account)) = watched(row.tenant) else { continue };
            let reading = Reading {
                elapsed_seconds: row.elapsed.as_secs_f64(),
                read_bytes: row.transferred.read_bytes as f64,
                write_bytes: row.transferred.write_bytes as f64,
                wall_seconds,
                usage,
                declared_bytes: declared_by(signals, row.tenant),
                account,
            };
            self.rows.push((key, family, reading));
        }
        // Of a tenant that rests no counters are read; what its processes begin to do is known all the same.
        for used in &signals.usage {
            let Some((family, account)) = watched(used.tenant) else { continue };
            for device in forecaster.devices_of(used.tenant) {
                let key = (used.tenant, device);
                if signals.io.binary_search_by_key(&key, |row| (row.tenant, row.device)).is_ok() {
                    continue;
                }
                let reading = Reading {
                    elapsed_seconds: ended.elapsed.as_secs_f64(),
                    wall_seconds,
                    usage: Some(Usage::from(used)),
                    declared_bytes: declared_by(signals, used.tenant),
                    account,
                    ..Reading::default()
                };
                self.rows.push((key, family, reading));
            }
        }
    }

    /// The readings of a step with its length in seconds, if it is over: as soon as slices of `slice` make up `step`.
    pub(crate) fn step(&mut self, step: Nanos, slice: Nanos) -> Option<(f64, &[Row])> {
        let seconds = self.elapsed.as_secs_f64();
        if self.slices < step.0.div_ceil(slice.0.max(1)) {
            return None;
        }
        if self.slices > 1 {
            self.join(seconds);
        }
        Some((seconds, &self.rows))
    }

    /// One reading a pair over what has passed of the step.
    pub(crate) fn so_far(&self) -> Vec<Row> {
        let mut readings = self.clone();
        readings.join(self.elapsed.as_secs_f64());
        readings.rows
    }

    /// One reading a pair, over the whole step.
    fn join(&mut self, seconds: f64) {
        self.rows.sort_by_key(|(key, _, _)| *key);
        self.rows.dedup_by(|(later_key, _, later), (key, _, kept)| {
            if later_key != key {
                return false;
            }
            *kept = Reading {
                elapsed_seconds: kept.elapsed_seconds + later.elapsed_seconds,
                read_bytes: kept.read_bytes + later.read_bytes,
                write_bytes: kept.write_bytes + later.write_bytes,
                wall_seconds: later.wall_seconds,
                usage: later.usage.or(kept.usage),
                declared_bytes: later.declared_bytes.or(kept.declared_bytes),
                account: later.account,
            };
            true
        });
        for (_, _, reading) in &mut self.rows {
            reading.elapsed_seconds = reading.elapsed_seconds.max(seconds);
        }
    }
}

fn usage_of(signals: &Signals, tenant: TenantId) -> Option<Usage> {
    let index = signals.usage.binary_search_by_key(&tenant, |row| row.tenant).ok()?;
    Some(Usage::from(&signals.usage[index]))
}

/// What is left of the files that a tenant says it has open. The rest of what an agent says is left out: it would be learnt from for
/// everyone, and a tenant may say what it likes.
fn declared_by(signals: &Signals, tenant: TenantId) -> Option<f64> {
    let reports: &[AgentReport] = &signals.reports;
    let index = reports.binary_search_by_key(&tenant, |report| report.tenant).ok()?;
    Some(reports[index].open_file_bytes_left as f64)
}

#[cfg(test)]
mod tests {
    use super::{Ended, Readings};
    use minerva_forecast::{Forecaster, ForecasterSettings};
    use minerva_model::{DeviceId, IoCounters, IoSignals, Nanos, Signals, TenantId};

    const DISK: DeviceId = DeviceId { major: 8, minor: 0 };

    #[test]
    fn slices_shorter_than_a_second_are_summed_to_one() {
        let (mut readings, forecaster) = (Readings::default(), Forecaster::new(ForecasterSettings::default()));
        let slice = Nanos::from_millis(300);
        for number in 0..4_u64 {
            assert!(readings.step(Nanos::SECOND, slice).is_none(), "slice {number}");
            let row = |tenant| IoSignals {
                tenant: TenantId(tenant),
                device: DISK,
                elapsed: slice,
                transferred: IoCounters { read_bytes: 600, ..IoCounters::default() },
                latency: None,
                served: None,
                disk_time: Nanos::ZERO,
                active: true,
            };
            // The second tenant reads in one of the four only.
            let io = [1, 2].into_iter().filter(|tenant| *tenant == 1 || number == 2).map(row).collect();
            let signals = Signals { io, ..Signals::default() };
            let ended = Ended { now: Nanos::ZERO, elapsed: slice, wall_seconds: Some(5), signals: &signals };
            readings.add(&ended, &forecaster, |_| Some((7, 1)));
        }
        let (seconds, rows) = readings.step(Nanos::SECOND, slice).expect("1.2 s");
        let rows: Vec<_> =
            rows.iter().map(|((tenant, _), _, row)| (tenant.0, row.read_bytes, row.elapsed_seconds)).collect();
        assert_eq!((seconds, rows), (1.2, vec![(1, 2400.0, 1.2), (2, 600.0, 1.2)]));
    }
}
