//! What is to be written to the kernel or told a server of ours, and what came of it. A plan is data: `core/actuate` makes it, `linux/actuate`
//! performs it, and in between it can be shown, recorded and refused.

use crate::{CgroupRef, DeviceId, TenantId};
use serde::{Deserialize, Serialize};

/// Ties an answer of the driver to the request it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WriteId(pub u64);

/// Every file that Minerva may write, and every knob of a server of ours. The list is closed: the privileged writer accepts no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KnobFile {
    /// v2 `io.bfq.weight`.
    BfqWeight,
    /// v1 `blkio.bfq.weight`: the group's weight on every device.
    BfqV1Weight,
    /// v1 `blkio.bfq.weight_device`.
    BfqV1WeightDevice,
    /// v2 `io.weight`, read by iocost only.
    IoWeight,
    /// v2 `io.max`.
    IoMax,
    /// v1 `blkio.throttle.read_bps_device`.
    ThrottleReadBps,
    /// v1 `blkio.throttle.write_bps_device`.
    ThrottleWriteBps,
    /// v2 root `io.cost.qos`.
    IoCostQos,
    /// `queue/scheduler` of a disk.
    Elevator,
    /// `queue/iosched/low_latency` of a disk under BFQ.
    BfqLowLatency,
    /// `queue/iosched/strict_guarantees` of a disk under BFQ.
    BfqStrictGuarantees,
    /// The weight of a guest's disk at a server of ours: no file, but a message ([`crate::ServerRequest`]).
    ServerWeight,
}

impl KnobFile {
    /// Every knob, for allow-lists and tests.
    pub const ALL: [Self; 12] = [
        Self::BfqWeight,
        Self::BfqV1Weight,
        Self::BfqV1WeightDevice,
        Self::IoWeight,
        Self::IoMax,
        Self::ThrottleReadBps,
        Self::ThrottleWriteBps,
        Self::IoCostQos,
        Self::Elevator,
        Self::BfqLowLatency,
        Self::BfqStrictGuarantees,
        Self::ServerWeight,
    ];

    /// The path below the cgroup directory, or below the disk's directory in sysfs; of a server's knob its word in messages.
    pub const fn file_name(self) -> &'static str {
        match self {
            Self::BfqWeight => "io.bfq.weight",
            Self::BfqV1Weight => "blkio.bfq.weight",
            Self::BfqV1WeightDevice => "blkio.bfq.weight_device",
            Self::IoWeight => "io.weight",
            Self::IoMax => "io.max",
            Self::ThrottleReadBps => "blkio.throttle.read_bps_device",
            Self::ThrottleWriteBps => "blkio.throttle.write_bps_device",
            Self::IoCostQos => "io.cost.qos",
            Self::Elevator => "queue/scheduler",
            Self::BfqLowLatency => "queue/iosched/low_latency",
            Self::BfqStrictGuarantees => "queue/iosched/strict_guarantees",
            Self::ServerWeight => "weight",
        }
    }
}

/// Whose knob.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KnobTarget {
    /// A cgroup. `tenant` is absent for a group that only stands above tenants.
    Cgroup {
        /// The tenant it belongs to.
        tenant: Option<TenantId>,
        /// The directory, which must still be the same one when the write happens.
        cgroup: CgroupRef,
    },
    /// A disk's own settings in sysfs.
    Disk {
        /// The kernel name, such as `sda`.
        name: String,
    },
    /// A guest's disk at a server of ours, which is told by a message.
    Server {
        /// The server's name: that of its socket.
        server: String,
        /// The disk's name there.
        disk: String,
    },
}

/// A request to read a knob as it stands: before the first write, and later to see whether somebody else wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnobInspection {
    /// Echoed in the answer.
    pub id: WriteId,
    /// Whose.
    pub target: KnobTarget,
    /// Which file.
    pub file: KnobFile,
    /// For which disk.
    pub device: DeviceId,
}

/// A request to write a knob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnobWrite {
    /// Echoed in the answer.
    pub id: WriteId,
    /// Whose.
    pub target: KnobTarget,
    /// Which file.
    pub file: KnobFile,
    /// For which disk.
    pub device: DeviceId,
    /// What to write, without a newline.
    pub text: String,
    /// What to write to have it back as it was before Minerva first wrote this knob. The writer journals it, synced,
    /// before the first write to this (target, file, device).
    pub undo: String,
}

/// A knob that somebody else wrote: from now on it is to be found out who does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnobWatch {
    /// Whose.
    pub target: KnobTarget,
    /// Which file.
    pub file: KnobFile,
    /// For which disk.
    pub device: DeviceId,
}

/// A knob that was left to somebody else: from now on nothing of Minerva's is to be put back there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnobRelease {
    /// Whose.
    pub target: KnobTarget,
    /// Which file.
    pub file: KnobFile,
    /// For which disk.
    pub device: DeviceId,
}

/// What came of an inspection or a write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Done; this is the whole file afterwards, read back.
    Text(String),
    /// The cgroup or disk is gone, or another one stands in its place. Normal.
    Vanished,
    /// The kernel or the guard around it refused.
    Refused {
        /// The error number, if it was the kernel.
        errno: Option<i32>,
        /// A sentence for people: the file, what was written, why it was refused.
        detail: String,
    },
    /// It was not done while somebody puts everything back, which takes a moment. Normal.
    Busy,
}
