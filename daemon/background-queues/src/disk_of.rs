//! The disk that a path's work would use.

use minerva_linux_background::Kind;
use minerva_linux_observe::{MountFacts, Roots, disks_below, read_mount_facts};
use minerva_model::DeviceId;
use rustix::fs::{FileType, major, minor, stat};
use std::path::{Path, PathBuf};

/// All mounts. A sentence if they cannot be read.
pub(crate) fn mounts(roots: &Roots) -> Result<Vec<MountFacts>, String> {
    read_mount_facts(roots).map_err(|error| format!("{:#}", anyhow::Error::new(error)))
}

/// The whole disk below a path; of an array the array itself. A sentence if there is none.
pub(crate) fn disk_of(roots: &Roots, mounts: &[MountFacts], kind: Kind, path: &Path) -> Result<DeviceId, String> {
    if kind.is_of_array() {
        let facts = stat(path).map_err(|errno| format!("failed to look at {}: {errno}", path.display()))?;
        let number = DeviceId { major: major(facts.st_rdev), minor: minor(facts.st_rdev) };
        let is_block = FileType::from_raw_mode(facts.st_mode) == FileType::BlockDevice;
        let disk = disks_below(&roots.sys, number).first().copied().filter(|_| is_block);
        return disk.ok_or_else(|| format!("{} is no block device", path.display()));
    }
    // What is to be deleted may be a link, and may be gone: what it lay in is on the same disk.
    let above = path.ancestors().skip(1).find(|above| above.exists());
    let place = above.filter(|_| kind.removes_path()).unwrap_or(path);
    let place = std::fs::canonicalize(place).map_err(|error| format!("failed to find {}: {error}", place.display()))?;
    let place: PathBuf =
        if kind.removes_path() && path.is_dir() && !path.is_symlink() { path.to_owned() } else { place };
    let mount = mounts
        .iter()
        .filter(|mount| place.starts_with(&mount.mount_point))
        .max_by_key(|mount| mount.mount_point.len())
        .ok_or_else(|| format!("no mount holds {}", place.display()))?;
    mount.devices.first().copied().ok_or_else(|| {
        let why = mount.hidden_because.unwrap_or("it is on no disk that the kernel shows");
        format!("{} is on {} ({}): {why}", place.display(), mount.mount_point, mount.file_system)
    })
}
