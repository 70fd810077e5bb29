//! What happened in one slice: differences of two samples, made by `core/observe`.

use crate::{DeviceId, IoCounters, Nanos, TenantId};
use serde::{Deserialize, Serialize};

/// One slice, for every disk. Rows are sorted as in a [`crate::Sample`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Signals {
    /// Per whole disk.
    pub devices: Vec<DeviceSignals>,
    /// Per (tenant, device) pair that was read in this slice.
    pub io: Vec<IoSignals>,
}

/// One disk in one slice.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceSignals {
    /// The disk.
    pub device: DeviceId,
    /// How long the slice really was.
    pub elapsed: Nanos,
    /// Transferred in the slice.
    pub transferred: IoCounters,
    /// Share of the slice with a request in flight, 0 to 1,000.
    pub busy_permille: u32,
    /// Mean time of a read, queueing included.
    pub read_latency: Option<Nanos>,
    /// Mean time of a write, queueing included.
    pub write_latency: Option<Nanos>,
    /// Tenants that actively used the disk in the slice (Malensek et al. 2016, section 3.1).
    pub contention: u32,
    /// Bytes that the disk moved and no tenant accounts for: writeback on v1, root's own processes, shared inodes.
    pub unattributed_bytes: u64,
}

/// One tenant on one disk in one slice.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IoSignals {
    /// Who.
    pub tenant: TenantId,
    /// Where.
    pub device: DeviceId,
    /// Since this pair was last read, which is more than a slice when a reading failed in between.
    pub elapsed: Nanos,
    /// Transferred in that time.
    pub transferred: IoCounters,
    /// Mean time of its requests, where the kernel accounts it per group.
    pub latency: Option<Nanos>,
    /// It counts towards the contention level.
    pub active: bool,
}

impl IoSignals {
    /// Bytes a second, both ways.
    pub fn bytes_per_second(&self) -> f64 {
        if self.elapsed == Nanos::ZERO {
            return 0.0;
        }
        self.transferred.bytes() as f64 / self.elapsed.as_secs_f64()
    }
}
