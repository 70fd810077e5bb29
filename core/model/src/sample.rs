//! What the kernel's counters said at one instant. Counters are cumulative; `core/observe` takes the differences.

use crate::{CgroupRef, DeviceId, Nanos, TenantId};
use serde::{Deserialize, Serialize};

/// One reading of everything. Rows are sorted by their ids and no id stands twice.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Whole disks (`/proc/diskstats`).
    pub devices: Vec<DeviceSample>,
    /// One row a (tenant, device) pair that has ever done I/O, sorted by tenant, then device.
    pub io: Vec<TenantIo>,
    /// Tenants whose processes were looked at in this slice: that costs more, so it goes round in turns.
    pub usage: Vec<TenantUsage>,
    /// Tenants whose pressure files were read.
    pub pressure: Vec<TenantPressure>,
    /// The host's own `/proc/pressure/io`.
    pub host_pressure: Option<Pressure>,
    /// The host's own `/proc/pressure/memory`. Recordings of earlier versions have none.
    #[serde(default)]
    pub memory_pressure: Option<Pressure>,
    /// The wall clock at that instant in the host's time zone, in seconds since 1970 there; absent where nobody knows it. For
    /// forecasts only: work is often started by the clock.
    #[serde(default)]
    pub wall_seconds: Option<u64>,
    /// What disks were told to discard, and the free space on their file systems, sorted by disk. Recordings of earlier versions have
    /// none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spaces: Vec<DeviceSpace>,
    /// What lies below groups that were delegated to users, each as a whole, sorted by inode, then disk. Recordings of earlier versions
    /// have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subtrees: Vec<SubtreeIo>,
    /// What could not be read, by kind of place.
    pub skipped: Vec<Skipped>,
}

/// Cumulative transfers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoCounters {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Read requests completed.
    pub read_ops: u64,
    /// Write requests completed.
    pub write_ops: u64,
}

/// Cumulative time that completed requests took, where the kernel gives it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitCounters {
    /// Time from issue to completion, summed over reads.
    pub read_ns: u64,
    /// The same over writes.
    pub write_ns: u64,
}

/// A whole disk's counters (`Documentation/admin-guide/iostats.rst`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceSample {
    /// The disk.
    pub device: DeviceId,
    /// What it transferred for everyone.
    pub counters: IoCounters,
    /// How long its requests took, queueing included.
    pub wait: WaitCounters,
    /// Time with at least one request in flight.
    pub busy_ns: u64,
    /// Requests in flight now.
    pub in_flight: u64,
    /// Flushes of its volatile cache that were completed. Recordings of earlier versions have none.
    #[serde(default)]
    pub flushes: u64,
}

/// What lies on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceSpace {
    /// The disk.
    pub device: DeviceId,
    /// Bytes that the disk was told to forget, cumulative, where the kernel counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discarded_bytes: Option<u64>,
    /// Free bytes on the file systems that lie on this disk alone, where somebody has looked lately: not in each sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_bytes: Option<u64>,
}

/// What one tenant transferred on one disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantIo {
    /// Who.
    pub tenant: TenantId,
    /// Where.
    pub device: DeviceId,
    /// How much, ever.
    pub counters: IoCounters,
    /// How long it took, where the kernel accounts it per group.
    pub wait: Option<WaitCounters>,
    /// How much of the disk's time that was by the kernel's own account, in nanoseconds: `cost.usage` of iocost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served_ns: Option<u64>,
}

/// What all that ever ran at and below a group that was delegated to a user transferred on one disk, also in groups that are removed
/// since. So it holds what a group did that came and went between two looks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubtreeIo {
    /// The delegated group.
    pub group: CgroupRef,
    /// The key of the history that the groups below share: see [`crate::Tenant::history_key`].
    pub history_key: String,
    /// The operator's factor on the share of a group below, in percent.
    pub weight_percent: u32,
    /// The tenant that the delegated group itself is, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<TenantId>,
    /// Where.
    pub device: DeviceId,
    /// How much, ever.
    pub counters: IoCounters,
}

/// What a tenant's processes use besides the disk, for forecasts (Malensek et al. 2016, section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantUsage {
    /// Who.
    pub tenant: TenantId,
    /// Processor time, cumulative.
    pub cpu_ns: u64,
    /// Resident memory now.
    pub memory_bytes: u64,
    /// Bytes received and sent over the network, cumulative, if the tenant has a network namespace of its own.
    pub network_bytes: Option<u64>,
    /// Open file descriptors now.
    pub open_files: u64,
    /// Of those, sockets.
    pub open_sockets: u64,
    /// Sum of the sizes of the regular files now open.
    pub open_file_bytes: u64,
    /// Live processes now.
    pub processes: u64,
    /// Bytes that the processes had fetched from storage, cumulative (`/proc/<pid>/io` read_bytes).
    pub process_read_bytes: u64,
    /// Bytes that the processes had sent to storage, cumulative (`write_bytes` less `cancelled_write_bytes`).
    pub process_write_bytes: u64,
}

/// Stall time because of I/O or memory (`Documentation/accounting/psi.rst`), cumulative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pressure {
    /// Time in which some task waited.
    pub some_ns: u64,
    /// Time in which every non-idle task waited.
    pub full_ns: u64,
}

/// A tenant's I/O pressure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantPressure {
    /// Who.
    pub tenant: TenantId,
    /// How much.
    pub pressure: Pressure,
}

/// Something that could not be read in this slice and was passed over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// The file, without the tenant's part, such as `io.stat`.
    pub place: String,
    /// Why, with the first offending text cut to a line.
    pub why: String,
    /// How many times in this slice.
    pub count: u64,
}

impl IoCounters {
    /// Bytes both ways.
    pub const fn bytes(&self) -> u64 {
        self.read_bytes.saturating_add(self.write_bytes)
    }

    /// Requests both ways.
    pub const fn ops(&self) -> u64 {
        self.read_ops.saturating_add(self.write_ops)
    }
}

impl WaitCounters {
    /// Mean time of `ops` requests that took `total` together.
    pub fn mean(total: u64, ops: u64) -> Option<Nanos> {
        (ops > 0).then(|| Nanos(total / ops))
    }
}
