//! The files that hold a group's weights, in either cgroup version.

use crate::disk::Disk;
use crate::error::{At, LabError, Result};
use crate::workload::TenantCgroup;
use std::fs;
use std::path::{Path, PathBuf};

/// What a cgroup may hold for a disk, in either version.
const WEIGHT_FILES: [&str; 4] = ["blkio.bfq.weight", "blkio.bfq.weight_device", "io.bfq.weight", "io.weight"];

/// The weight files that a group has: name, path, contents.
pub(crate) fn weight_files(group: &Path) -> impl Iterator<Item = (&'static str, PathBuf, String)> {
    WEIGHT_FILES.into_iter().filter_map(|name| {
        let path = group.join(name);
        let text = fs::read_to_string(&path).ok()?;
        Some((name, path, text))
    })
}

/// Gives a group a weight of its own on the disk, as an operator might have.
pub(crate) fn weigh(group: &TenantCgroup, disk: &Disk, weight: u32) -> Result<()> {
    let files = ["blkio.bfq.weight_device", "io.bfq.weight"].map(|name| group.path().join(name));
    let path = files.iter().find(|path| path.exists()).ok_or(LabError::Missing {
        what: "a weight",
        needs: "a BFQ weight file in the tenant's cgroup",
        remedy: "load the module with `modprobe bfq`",
    })?;
    fs::write(path, format!("{} {weight}", disk.info().id)).at("write", path)
}
