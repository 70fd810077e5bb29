//! The disks that a disk lies on: below a volume, an array or an encrypted disk, and beside the first one of a btrfs over several.
//!
//! Of a file in which a disk is (loop(4)) nobody looks where that lies.

use crate::identity::FileIdentity;
use minerva_model::DeviceId;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Layers that are followed: an end for a loop in a broken tree.
const LAYERS_MAX: usize = 16;

/// The whole disks at the bottom of what some work moves: those of its disk, and of all others of the btrfs that it is known to work on. Of
/// a disk that lies on nothing, itself.
pub(crate) fn bottom(sys: &Path, device: DeviceId, identity: Option<&FileIdentity>) -> BTreeSet<DeviceId> {
    let members = identity.map(|identity| members(sys, identity)).unwrap_or_default();
    let mut found = BTreeSet::new();
    for disk in members.into_iter().chain([device]) {
        descend(sys, disk, LAYERS_MAX, &mut found);
    }
    found
}

fn descend(sys: &Path, device: DeviceId, layers: usize, found: &mut BTreeSet<DeviceId>) {
    let below = if layers == 0 { Vec::new() } else { right_below(sys, device) };
    if below.is_empty() {
        found.insert(device);
    }
    below.into_iter().for_each(|lower| descend(sys, lower, layers - 1, found));
}

fn right_below(sys: &Path, device: DeviceId) -> Vec<DeviceId> {
    disks_in(&sys.join("dev/block").join(device.to_string()).join("slaves"))
        .into_iter()
        .filter(|lower| *lower != device)
        .collect()
}

/// The disks of a btrfs by the name of its directory in sysfs, which is its identifier; none of another file system.
fn members(sys: &Path, identity: &FileIdentity) -> Vec<DeviceId> {
    let Some((first, second)) = identity.lasting.map(|lasting| lasting.file_system) else { return Vec::new() };
    // As the bytes lie in memory.
    let bytes = [first.to_ne_bytes(), second.to_ne_bytes()].concat();
    let digits =
        |range: std::ops::Range<usize>| -> String { bytes[range].iter().map(|byte| format!("{byte:02x}")).collect() };
    let name = [0..4, 4..6, 6..8, 8..10, 10..16].map(digits).join("-");
    disks_in(&sys.join("fs/btrfs").join(name).join("devices"))
}

/// The whole disks to which the links in a directory lead.
fn disks_in(directory: &Path) -> Vec<DeviceId> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| number(&whole(fs::canonicalize(entry.path()).ok()?)?)).collect()
}

/// The directory of a partition's disk.
fn whole(folder: PathBuf) -> Option<PathBuf> {
    if folder.join("partition").exists() { folder.parent().map(Path::to_owned) } else { Some(folder) }
}

fn number(folder: &Path) -> Option<DeviceId> {
    fs::read_to_string(folder.join("dev")).ok()?.trim().parse().ok()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::bottom;
    use crate::identity::{FileIdentity, LastingIdentity};
    use crate::loop_disk::LoopDisk;
    use crate::spec::Kind;
    use minerva_model::DeviceId;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    pub(crate) const fn disk(major: u32, minor: u32) -> DeviceId {
        DeviceId { major, minor }
    }

    /// In sysfs below `sys`: a disk, or with a `whole` a partition of that.
    pub(crate) fn add_disk(sys: &Path, name: &str, number: DeviceId, whole: Option<&str>) {
        let block = sys.join("devices/block");
        let folder = whole.map_or_else(|| block.join(name), |whole| block.join(whole).join(name));
        fs::create_dir_all(folder.join("slaves")).unwrap();
        fs::write(folder.join("dev"), format!("{number}\n")).unwrap();
        if whole.is_some() {
            fs::write(folder.join("partition"), "1\n").unwrap();
        }
        fs::create_dir_all(sys.join("dev/block")).unwrap();
        symlink(&folder, sys.join("dev/block").join(number.to_string())).unwrap();
    }

    /// Puts a disk on another one, or on a partition.
    pub(crate) fn lies_on(sys: &Path, upper: DeviceId, lower: DeviceId) {
        let by_number = |number: DeviceId| sys.join("dev/block").join(number.to_string());
        let lower_folder = fs::canonicalize(by_number(lower)).unwrap();
        symlink(&lower_folder, by_number(upper).join("slaves").join(lower_folder.file_name().unwrap())).unwrap();
    }

    #[test]
    fn a_volume_lies_on_the_disks_of_its_array_and_a_btrfs_on_all_of_its_own() {
        let root = tempfile::tempdir().unwrap();
        let sys = root.path();
        for (name, minor) in [("sda", 0), ("sdb", 16), ("sdc", 32)] {
            add_disk(sys, name, disk(8, minor), None);
        }
        add_disk(sys, "sda1", disk(8, 1), Some("sda"));
        add_disk(sys, "md0", disk(9, 0), None);
        add_disk(sys, "dm-0", disk(253, 0), None);
        lies_on(sys, disk(9, 0), disk(8, 1));
        lies_on(sys, disk(9, 0), disk(8, 16));
        lies_on(sys, disk(253, 0), disk(9, 0));
        let at_bottom = |number| bottom(sys, number, None).into_iter().collect::<Vec<_>>();
        assert_eq!(at_bottom(disk(253, 0)), [disk(8, 0), disk(8, 16)]);
        assert_eq!(at_bottom(disk(8, 32)), [disk(8, 32)]);
        assert_eq!(at_bottom(disk(8, 48)), [disk(8, 48)], "it is gone");
        let devices = sys.join("fs/btrfs/00010203-0405-0607-0809-0a0b0c0d0e0f/devices");
        fs::create_dir_all(&devices).unwrap();
        for name in ["sdc", "dm-0"] {
            symlink(sys.join("devices/block").join(name), devices.join(name)).unwrap();
        }
        let half = |from: u8| u64::from_ne_bytes(std::array::from_fn(|byte| from + byte as u8));
        let known = |file_system| FileIdentity {
            device: 40,
            inode: 256,
            lasting: Some(LastingIdentity { file_system, subvolume: 5, born_ns: 0 }),
            parent_inode: None,
        };
        let of = |identity: &FileIdentity| bottom(sys, disk(8, 32), Some(identity)).into_iter().collect::<Vec<_>>();
        assert_eq!(of(&known((half(0), half(8)))), [disk(8, 0), disk(8, 16), disk(8, 32)]);
        assert_eq!(of(&known((half(1), half(8)))), [disk(8, 32)], "another file system");
    }

    #[test]
    fn both_disks_of_a_mirrored_btrfs_are_found_in_the_kernels_own_tree() {
        let Some(mirror) = LoopDisk::mirrored() else { return };
        let identity = Kind::BtrfsScrub.identity(&mirror.mounted, Path::new("/sys")).unwrap();
        assert_eq!(super::members(Path::new("/sys"), &identity).len(), 2);
    }
}
