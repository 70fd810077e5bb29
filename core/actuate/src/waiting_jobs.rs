//! Batch jobs that wait for others on a disk.
//!
//! Where no weight acts, on NVMe disks, mostly, and under mq-deadline, shares order nothing, so a job that waits is capped, as tenants at
//! `idle` are (`idle`). Beside weights it is as long as it is known when its turn comes (`Steering::hold_back`; docs/adr/0081). It has said that it
//! is a job or is one by the operator's word, and what it gives up it gets back when its turn comes; that holds only among jobs, so nobody is
//! capped here while anybody else uses the disk. The part of the disk's time that the policy leaves it (Matteussi and Geyer 2018;
//! docs/adr/0073) becomes requests: where seeks cost time each costs two, one to its place and one back, whatever its size.
//!
//! Caps are lifted when the host is short of memory (`memory`).

use crate::held_back::HeldBack;
use crate::ledger::Ledger;
use crate::pace::{CAP_BYTES_MIN, SECONDS_A_REQUEST};
use crate::peak::peak;
use minerva_model::{DeviceId, DeviceSignals, JobWait, Nanos, POSITIONING, Signals, TenantId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A disk delivers at least this much until more was measured, in bytes a second.
const CAPACITY_MIN: f64 = 1e6;

/// Those of one disk.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct WaitingJobs {
    /// Flat, as snapshots of earlier versions are.
    #[serde(flatten)]
    pub(crate) held_back: HeldBack,
    /// The most that the disk was seen to deliver ([`peak`]).
    bytes_per_second_max: f64,
}

/// A disk, as far as it matters here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfDisk {
    pub(crate) device: DeviceId,
    /// Seeks cost time.
    pub(crate) rotational: bool,
    /// What the operator's file says that it delivers.
    pub(crate) bytes_per_second: Option<f64>,
    /// The length of a slice.
    pub(crate) slice: Nanos,
    /// What it delivered once is forgotten in slices in which it is at least so busy, in thousandths; absent: never.
    pub(crate) forgets_at_busy_permille: Option<u32>,
}

impl WaitingJobs {
    /// A slice ended. `waiting` has the part of the disk's time of each job that waits in the next.
    pub(crate) fn slice(
        &mut self,
        now: Nanos,
        disk: OfDisk,
        waiting: &BTreeMap<TenantId, JobWait>,
        signals: &Signals,
        ledger: &mut Ledger,
    ) {
        self.held_back.lift_all_but(disk.device, |tenant| waiting.contains_key(&tenant), ledger);
        if let Some(row) = signals.devices.iter().find(|row| row.device == disk.device) {
            self.learn(disk, row);
        }
        let capacity = disk.bytes_per_second.unwrap_or(self.bytes_per_second_max).max(CAPACITY_MIN);
        let positioning = if disk.rotational { 2.0 * POSITIONING.as_secs_f64() } else { 0.0 };
        for (tenant, wait) in waiting {
            let row = signals.io.binary_search_by_key(&(*tenant, disk.device), |row| (row.tenant, row.device));
            let row = row.ok().map(|index| &signals.io[index]).filter(|row| row.transferred.ops() > 0);
            if row.is_none() && !self.held_back.has(*tenant) {
                // How large its requests are is not known, so neither is what they cost.
                continue;
            }
            let cap = |request: u64| {
                let request = request as f64;
                let requests =
                    (wait.disk_part / (positioning + request / capacity)).max(1.0 / SECONDS_A_REQUEST as f64);
                (request * requests).max(CAP_BYTES_MIN as f64) as u64
            };
            self.held_back.slice(now, (*tenant, disk.device), row, (true, cap), ledger);
        }
    }

    /// What the slice shows of what the disk delivers. Where seeks cost time a low rate shows seeks, which count by themselves.
    fn learn(&mut self, disk: OfDisk, row: &DeviceSignals) {
        let rate = row.transferred.bytes() as f64 / row.elapsed.as_secs_f64().max(1e-3);
        let is_busy = disk.forgets_at_busy_permille.is_some_and(|least| row.busy_permille >= least);
        let known = self.bytes_per_second_max;
        self.bytes_per_second_max =
            if is_busy && !disk.rotational { peak(known, rate, disk.slice) } else { known.max(rate) };
    }
}

#[cfg(test)]
mod tests {
    use super::{OfDisk, WaitingJobs};
    use minerva_model::{DeviceId, DeviceSignals, IoCounters, Nanos};

    #[test]
    fn what_a_disk_delivered_once_is_forgotten_where_seeks_cost_no_time() {
        let device = DeviceId { major: 259, minor: 0 };
        let after = |disk: OfDisk, busy_permille: u32| {
            let mut jobs = WaitingJobs::default();
            for slice in 0..600 {
                let read_bytes = if slice == 0 { 3_000_000_000 } else { 400_000_000 };
                let row = DeviceSignals {
                    device,
                    elapsed: Nanos::SECOND,
                    transferred: IoCounters { read_bytes, read_ops: 1, ..Default::default() },
                    busy_permille,
                    read_latency: None,
                    write_latency: None,
                    contention: 2,
                    unattributed_bytes: 0,
                    flushes: 0,
                };
                jobs.learn(disk, &row);
            }
            jobs.bytes_per_second_max
        };
        let (slice, bytes_per_second) = (Nanos::SECOND, None);
        let disk = OfDisk { device, rotational: false, bytes_per_second, slice, forgets_at_busy_permille: Some(900) };
        assert!(after(disk, 1_000) < 410e6);
        assert_eq!(after(disk, 500), 3e9, "a disk with time to spare shows nothing");
        assert_eq!(after(OfDisk { rotational: true, ..disk }, 1_000), 3e9);
        assert_eq!(after(OfDisk { forgets_at_busy_permille: None, ..disk }, 1_000), 3e9);
    }
}
