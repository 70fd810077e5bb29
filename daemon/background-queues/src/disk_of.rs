//! The disk that a path's work would use.

use minerva_linux_background::Kind;
use minerva_linux_observe::{MountFacts, Roots, disks_below, read_mount_facts};
use minerva_model::DeviceId;
use rustix::fs::{FileType, major, minor, stat};
use std::path::Path;

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
    let mut place =
        std::fs::canonicalize(place).map_err(|error| format!("failed to find {}: {error}", place.display()))?;
    // A directory may be another disk's: its own name in what it lies in, as links and `..` may lead to what that is.
    if kind.removes_path() && path.is_dir() && !path.is_symlink() {
        place.extend(path.file_name());
    }
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

#[cfg(test)]
mod tests {
    use super::disk_of;
    use crate::testing::queues_in;
    use minerva_linux_background::Kind;
    use minerva_linux_observe::MountFacts;
    use minerva_model::DeviceId;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_is_reached_by_a_link_or_by_going_up_is_on_the_disk_that_it_lies_on() {
        let folder = tempfile::tempdir().expect("a directory");
        let root = fs::canonicalize(folder.path()).expect("a path");
        fs::create_dir_all(root.join("first/own")).expect("directories");
        fs::create_dir_all(root.join("second/tree/inner")).expect("directories");
        fs::write(root.join("second/tree/file"), "").expect("a file");
        symlink(root.join("second/tree"), root.join("first/link")).expect("a link");
        let mount = |name: &str, minor: u32| MountFacts {
            mount_point: root.join(name).to_str().expect("a plain path").to_owned(),
            file_system: "ext4".to_owned(),
            source: format!("/dev/{name}"),
            devices: vec![DeviceId { major: 8, minor }],
            hidden_because: None,
            writeback_attributed: false,
        };
        let mounts = [mount("first", 0), mount("second", 16)];
        let roots = queues_in(&root).roots;
        let minor = |path: &str| disk_of(&roots, &mounts, Kind::Delete, &root.join(path)).map(|disk| disk.minor);
        assert_eq!(minor("first/own"), Ok(0));
        assert_eq!(minor("first/link"), Ok(0), "the link itself is deleted");
        for path in
            ["first/link/inner", "first/link/file", "first/link/gone", "first/../second/tree", "first/link/../tree"]
        {
            assert_eq!(minor(path), Ok(16), "{path}");
        }
    }
}
