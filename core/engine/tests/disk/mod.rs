//! The disk of tests that need one and not several.

use minerva_model::{CgroupVersion, Device, DeviceFacts, DeviceId};

pub(crate) const DISK: DeviceId = DeviceId { major: 8, minor: 0 };

/// A hard disk under BFQ on cgroup v2, where weights take effect.
pub(crate) fn bfq_disk() -> Device {
    let facts = DeviceFacts {
        cgroup: CgroupVersion::V2,
        controller_enabled: true,
        writeback_attributed: true,
        elevator: Some("bfq".to_owned()),
        elevators_available: vec!["bfq".to_owned()],
        bfq_low_latency: Some(false),
        bfq_strict_guarantees: None,
        iocost_available: false,
        iocost_enabled: false,
        iocost_model_guessed: false,
        throttle_available: true,
        multi_queue: true,
        rotational: true,
        stacked_on: Vec::new(),
        size_bytes: 80_000_000_000,
        back_end_forced: None,
    };
    Device { id: DISK, name: "sda".to_owned(), facts }
}
