//! What happened in one slice: differences of two samples, made by `core/observe`.

use crate::{AgentReport, DeviceId, IoCounters, Nanos, TenantId};
use serde::{Deserialize, Serialize};

/// One slice, for every disk. Rows are sorted as in a [`crate::Sample`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Signals {
    /// Per whole disk.
    pub devices: Vec<DeviceSignals>,
    /// Per (tenant, device) pair that was read in this slice.
    pub io: Vec<IoSignals>,
    /// Tenants whose processes were looked at in this slice, by tenant.
    pub usage: Vec<UsageSignals>,
    /// Tenants whose pressure was read in this slice, by tenant.
    pub pressure: Vec<PressureSignals>,
    /// The whole host's pressure.
    pub host_pressure: Option<PressureSignals>,
    /// What became of the space of disks, where something is known of it, by disk.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spaces: Vec<SpaceSignals>,
    /// What groups did that no tenant accounts for, by the account that is charged with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<UnseenIo>,
    /// The last report of each agent that reported since the slice before, by tenant.
    pub reports: Vec<AgentReport>,
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
    /// Bytes that the disk moved and no account is charged with: writeback on v1, root's own processes, shared inodes.
    pub unattributed_bytes: u64,
    /// Flushes of its volatile cache that were completed in the slice.
    #[serde(default)]
    pub flushes: u64,
}

/// The space of one disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpaceSignals {
    /// The disk.
    pub device: DeviceId,
    /// Bytes that it was told to forget in the slice.
    pub discarded_bytes: u64,
    /// Free bytes on its file systems now, where somebody looked in this slice.
    pub free_bytes: Option<u64>,
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
    /// How much of the disk's time that was by the kernel's own account, where it keeps one.
    pub served: Option<Nanos>,
    /// For how long the disk was busy with it, of the time for which it was busy at all: an estimate.
    pub disk_time: Nanos,
}

/// What was done in one slice below a group that was delegated to a user, and in no group that is known: in groups that came and went
/// between two looks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnseenIo {
    /// The history that is charged with it: that of all groups below the delegated one.
    pub history_key: String,
    /// The operator's factor on the share of a group there, in percent.
    pub weight_percent: u32,
    /// Where.
    pub device: DeviceId,
    /// Since the delegated group's counters were last read.
    pub elapsed: Nanos,
    /// Transferred in that time.
    pub transferred: IoCounters,
    /// For how long the disk was busy with it: an estimate, as [`IoSignals::disk_time`].
    pub disk_time: Nanos,
}

impl IoSignals {
    /// Bytes a second, both ways.
    pub fn bytes_per_second(&self) -> f64 {
        if self.elapsed == Nanos::ZERO {
            return 0.0;
        }
        self.transferred.bytes() as f64 / self.elapsed.as_secs_f64()
    }

    /// The part of the disk's time that it took, 0 to 1.
    pub fn disk_part(&self) -> f64 {
        if self.elapsed == Nanos::ZERO {
            return 0.0;
        }
        self.disk_time.as_secs_f64() / self.elapsed.as_secs_f64()
    }
}

/// What a tenant's processes used besides the disk. Differences are zero on the first reading, when `elapsed` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageSignals {
    /// Who.
    pub tenant: TenantId,
    /// Since the tenant was last looked at, which is several slices: that goes round in turns.
    pub elapsed: Nanos,
    /// Processor time used.
    pub cpu_ns: u64,
    /// Resident memory now.
    pub memory_bytes: u64,
    /// Bytes received and sent over the network, if the tenant has a network namespace of its own.
    pub network_bytes: Option<u64>,
    /// Open file descriptors now.
    pub open_files: u64,
    /// Of those, sockets.
    pub open_sockets: u64,
    /// Sum of the sizes of the regular files now open.
    pub open_file_bytes: u64,
    /// Live processes now.
    pub processes: u64,
    /// Bytes that the processes had fetched from storage.
    pub process_read_bytes: u64,
    /// Bytes that the processes had sent to storage.
    pub process_write_bytes: u64,
}

/// Stall time because of I/O, as parts of the time that passed. Nothing on the first reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PressureSignals {
    /// Who; absent for the whole host.
    pub tenant: Option<TenantId>,
    /// Time in which some task waited, in thousandths.
    pub some_permille: u32,
    /// Time in which every task that was not idle waited, in thousandths.
    pub full_permille: u32,
}
