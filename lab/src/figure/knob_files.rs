//! The files that hold a group's weights and caps, in either cgroup version.

use crate::disk::Disk;
use crate::error::{At, LabError, Result};
use crate::workload::TenantCgroup;
use std::fs;
use std::path::{Path, PathBuf};

/// What a cgroup may hold for a disk, in either version.
const KNOB_FILES: [&str; 7] = [
    "blkio.bfq.weight",
    "blkio.bfq.weight_device",
    "blkio.throttle.read_bps_device",
    "blkio.throttle.write_bps_device",
    "io.bfq.weight",
    "io.weight",
    "io.max",
];

/// The files of weights and caps that a group has: name, path, contents.
pub(crate) fn knob_files(group: &Path) -> impl Iterator<Item = (&'static str, PathBuf, String)> {
    KNOB_FILES.into_iter().filter_map(|name| {
        let path = group.join(name);
        let text = fs::read_to_string(&path).ok()?;
        Some((name, path, text))
    })
}

/// Gives a group a weight of its own on the disk, as an operator might have.
pub(crate) fn weigh(group: &TenantCgroup, disk: &Disk, weight: u32) -> Result<()> {
    write(group, &format!("{} {weight}", disk.info().id))
}

/// Removes a group's weight on the disk from the file alone: what was in force stays so until the group's own is written.
pub(crate) fn remove_line(group: &TenantCgroup, disk: &Disk) -> Result<()> {
    write(group, &format!("{} default", disk.info().id))
}

/// Writes the group's own weight as it stands, which sets what is in force anew.
pub(crate) fn own_weight_anew(group: &TenantCgroup) -> Result<()> {
    write(group, "default 100")
}

fn write(group: &TenantCgroup, text: &str) -> Result<()> {
    let files = ["blkio.bfq.weight_device", "io.bfq.weight"].map(|name| group.path().join(name));
    let path = files.iter().find(|path| path.exists()).ok_or(LabError::Missing {
        what: "a weight",
        needs: "a BFQ weight file in the tenant's cgroup",
        remedy: "load the module with `modprobe bfq`",
    })?;
    fs::write(path, text).at("write", path)
}
