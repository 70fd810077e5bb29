//! What a machine must have for a scene, told before anything is built or made.

use crate::disk;
use crate::error::{LabError, Result};
use crate::workload::blkio_version;
use minerva_model::CgroupVersion;
use std::process::Command;

/// Says what the machine lacks for a scene, if anything: what an emulated disk needs, a disk controller and BFQ.
pub fn check_machine() -> Result<()> {
    disk::check_machine()?;
    let what = "a scene with tenants";
    if blkio_version() == CgroupVersion::Absent {
        let needs = "the io controller of cgroup v2 or the blkio controller of v1";
        let remedy = "mount one, or start the container with the host's /sys/fs/cgroup, writable";
        return Err(LabError::Missing { what, needs, remedy });
    }
    if !has_bfq() {
        let remedy = "run `modprobe bfq`, or boot a kernel that has CONFIG_IOSCHED_BFQ";
        return Err(LabError::Missing { what, needs: "the elevator bfq", remedy });
    }
    Ok(())
}

/// Every disk offers it, or the module can be loaded, which the kernel does when it is chosen.
fn has_bfq() -> bool {
    let disks = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let offers = |text: String| text.split_whitespace().any(|word| word.trim_matches(['[', ']']) == "bfq");
    let mut offered = disks.map(|disk| std::fs::read_to_string(disk.path().join("queue/scheduler")).is_ok_and(offers));
    let can_be_loaded = || {
        let modprobe = Command::new("modprobe").args(["--dry-run", "--quiet", "bfq"]).status();
        modprobe.is_ok_and(|status| status.success())
    };
    offered.any(|offered| offered) || can_be_loaded()
}
