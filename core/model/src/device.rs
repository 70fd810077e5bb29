//! What is shared: a whole disk, and the facts that tell which knob bites on it.

use crate::{BackEnd, Nanos};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A block device as the kernel numbers it. Decisions are per whole disk, never per partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DeviceId {
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
}

impl fmt::Display for DeviceId {
    /// `MAJ:MIN`, the form the cgroup files use.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

impl FromStr for DeviceId {
    type Err = ();

    /// Reads `MAJ:MIN`; anything else is an error without detail, because the caller knows the place.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (major, minor) = text.split_once(':').ok_or(())?;
        Ok(Self { major: major.parse().map_err(drop)?, minor: minor.parse().map_err(drop)? })
    }
}

/// Which hierarchy the io (v2) or blkio (v1) controller is mounted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CgroupVersion {
    /// The `blkio` controller of cgroup v1.
    V1,
    /// The `io` controller of the unified hierarchy.
    V2,
    /// Neither: nothing can be steered through the kernel.
    Absent,
}

/// A whole disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Its number.
    pub id: DeviceId,
    /// Its kernel name, such as `sda`.
    pub name: String,
    /// What decides which back end works on it.
    pub facts: DeviceFacts,
}

/// An average seek and half a turn of a disk at 7200 rpm: 8.5 + 4.2 ms in data sheets.
pub const POSITIONING: Nanos = Nanos(12_700_000);

const fn yes() -> bool {
    true
}

/// What the kernel said of a device when it was last looked at. `core/actuate` turns it into a suitability.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceFacts {
    /// The hierarchy in which this host's disk controller lives.
    pub cgroup: CgroupVersion,
    /// On v2: `io` is enabled for child groups of the root (`cgroup.subtree_control`). True on v1.
    pub controller_enabled: bool,
    /// On v2: `memory` is enabled too, so that writeback is charged to whoever dirtied the page. False on v1.
    pub writeback_attributed: bool,
    /// The elevator in force, if the device has a request queue.
    pub elevator: Option<String>,
    /// The elevators that could be chosen.
    pub elevators_available: Vec<String>,
    /// BFQ's `low_latency`, when BFQ is in force.
    pub bfq_low_latency: Option<bool>,
    /// BFQ's `strict_guarantees`, when BFQ is in force.
    #[serde(default)]
    pub bfq_strict_guarantees: Option<bool>,
    /// The kernel offers iocost (`io.cost.qos` exists in the root group).
    pub iocost_available: bool,
    /// iocost is enabled for this device.
    pub iocost_enabled: bool,
    /// iocost goes by a model of this device that the kernel chose by the device's kind (`ctrl=auto` in `io.cost.model`), not by what
    /// was measured on it.
    #[serde(default)]
    pub iocost_model_guessed: bool,
    /// The throttle knobs exist (`io.max`, or `blkio.throttle.*`).
    pub throttle_available: bool,
    /// Requests go through the kernel's blk-mq (`/sys/block/<disk>/mq` exists), which iocost and BFQ need. Not so on disks that pass requests
    /// on, as most stacked ones and NVMe multipath heads do, and on persistent memory. Recordings of earlier versions do not say.
    #[serde(default = "yes")]
    pub multi_queue: bool,
    /// The kernel's flag: seeks cost time.
    pub rotational: bool,
    /// The whole disks below a stacked device (dm, md, loop on a disk), after resolving; empty for a leaf.
    pub stacked_on: Vec<DeviceId>,
    /// Size in bytes.
    pub size_bytes: u64,
    /// The back end the operator's file forces, if any.
    pub back_end_forced: Option<BackEnd>,
}
