//! What an agent in a guest or container says of its inside, which the host cannot see.

use crate::{Nanos, TenantId};
use serde::{Deserialize, Serialize};

/// An agent's report, summed over the processes of its machine or container. A tenant may say what it likes here: whoever
/// decides by it must bound what a lie can gain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentReport {
    /// Whose agent.
    pub tenant: TenantId,
    /// The time that the differences below are over.
    pub elapsed: Nanos,
    /// Processes that did something or hold files open.
    pub processes: u64,
    /// Processor time that they used.
    pub cpu_ns: u64,
    /// Their resident memory now.
    pub resident_bytes: u64,
    /// Bytes that they read from disks, as far as the agent may look.
    pub read_bytes: u64,
    /// Bytes that they wrote to disks, as far as the agent may look.
    pub write_bytes: u64,
    /// Regular files that they have open now.
    pub open_files: u64,
    /// Sum of the sizes of those files.
    pub open_file_bytes: u64,
    /// What is left of them behind the position of reading or writing.
    pub open_file_bytes_left: u64,
    /// Memory that programs could still have.
    pub memory_available_bytes: u64,
    /// All memory there is.
    pub memory_total_bytes: u64,
    /// Established connections.
    pub connections: u64,
    /// Bytes received over the network.
    pub network_received_bytes: u64,
    /// Bytes sent over the network.
    pub network_sent_bytes: u64,
}
