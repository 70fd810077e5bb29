//! What a tenant's processes use besides the disk, as features take it.

use crate::number::quantity;
use minerva_model::{Nanos, UsageSignals};
use serde::{Deserialize, Serialize};

/// What a tenant's processes use besides the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Processors in use.
    pub cpus: f64,
    /// Resident memory.
    pub memory_bytes: f64,
    /// Network traffic both ways, bytes a second.
    pub network_bytes_per_second: f64,
    /// Open file descriptors.
    pub open_files: f64,
    /// Of those, sockets.
    pub open_sockets: f64,
    /// Sizes of the open regular files together.
    pub open_file_bytes: f64,
}

impl From<&UsageSignals> for Usage {
    fn from(row: &UsageSignals) -> Self {
        // A first look has no length, and says nothing of rates.
        let per_second = |amount: u64| {
            if row.elapsed == Nanos::ZERO { 0.0 } else { amount as f64 / row.elapsed.as_secs_f64() }
        };
        Self {
            cpus: per_second(row.cpu_ns) / 1e9,
            memory_bytes: row.memory_bytes as f64,
            network_bytes_per_second: per_second(row.network_bytes.unwrap_or(0)),
            open_files: row.open_files as f64,
            open_sockets: row.open_sockets as f64,
            open_file_bytes: row.open_file_bytes as f64,
        }
    }
}

impl Usage {
    pub(super) fn sane(self) -> Self {
        Self {
            cpus: quantity(self.cpus),
            memory_bytes: quantity(self.memory_bytes),
            network_bytes_per_second: quantity(self.network_bytes_per_second),
            open_files: quantity(self.open_files),
            open_sockets: quantity(self.open_sockets),
            open_file_bytes: quantity(self.open_file_bytes),
        }
    }
}
