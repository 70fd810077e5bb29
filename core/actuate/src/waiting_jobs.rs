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
use crate::pace::{PACE_BYTES_MIN, SECONDS_A_REQUEST};
use minerva_model::{DeviceId, JobWait, Nanos, POSITIONING, Signals, TenantId};
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
    /// The most that the disk was seen to deliver.
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
            let rate = row.transferred.bytes() as f64 / row.elapsed.as_secs_f64().max(1e-3);
            self.bytes_per_second_max = self.bytes_per_second_max.max(rate);
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
                (request * requests).max(PACE_BYTES_MIN as f64) as u64
            };
            self.held_back.slice(now, (*tenant, disk.device), row, (true, cap), ledger);
        }
    }
}
