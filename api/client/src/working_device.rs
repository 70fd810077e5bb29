//! Which block device a path lies on, and what its disk is like.

use rustix::fs::{Stat, major, minor, stat};
use std::io;
use std::path::{Path, PathBuf};

/// Where a process sees what is mounted; see `proc_pid_mountinfo(5)`.
const MOUNTS: &str = "/proc/self/mountinfo";
/// Where it sees, among other things, its mask of new files; see `proc_pid_status(5)`.
pub(crate) const OWN_STATUS: &str = "/proc/self/status";

/// Where in a tenant's tree of the cache files wait to be moved to their place.
const DEFERRED: &str = ".deferred";

/// Whether a path is a link to a file that waits in a pool of the cache to be moved there.
pub(crate) fn leads_to_pool(path: &Path) -> bool {
    let target = path.read_link().unwrap_or_default();
    target.parent().and_then(Path::file_name).is_some_and(|name| name == DEFERRED)
}

/// The path with links followed as far as it leads anywhere; what is not there yet stays as it is.
fn followed(path: &Path) -> PathBuf {
    if let Ok(whole) = path.canonicalize() {
        return whole;
    }
    match (path.parent(), path.file_name(), path.read_link()) {
        // A link to nothing yet. One in a circle leads nowhere.
        (Some(parent), _, Ok(target)) => parent.canonicalize().map_or_else(|_| path.to_owned(), |at| at.join(target)),
        (Some(parent), Some(name), Err(_)) => followed(parent).join(name),
        _ => path.to_owned(),
    }
}

/// The block device of the file system that holds `path`, as `MAJ:MIN`; none if it has none, such as a network's. A path that is
/// not there yet stands for the nearest directory above it that is, and what waits in a pool of the cache for where it will be.
///
/// # Errors
///
/// Nothing on the way to the path can be looked at.
pub(crate) fn of_path(path: &Path) -> io::Result<Option<String>> {
    let path = std::path::absolute(path)?;
    let path = match path.parent() {
        Some(parent) if leads_to_pool(&path) => parent.to_owned(),
        _ => followed(&path),
    };
    let nearest = path.ancestors().find(|at| at.symlink_metadata().is_ok()).unwrap_or(&path);
    let status = stat(nearest)?;
    let device = block_device(&status).unwrap_or(status.st_dev);
    if major(device) != 0 {
        return Ok(Some(text(device)));
    }
    // btrfs and others number their file systems themselves; the device stands in the table of mounts.
    let mounts = std::fs::read_to_string(MOUNTS).unwrap_or_default();
    let source = source_of_mount(&mounts, &text(device));
    Ok(source.and_then(|source| stat(&source).ok()).and_then(|status| block_device(&status)).map(text))
}

/// What the kernel says of block devices; see `Documentation/ABI/stable/sysfs-block`.
const BLOCK_DEVICES: &str = "/sys/dev/block";
/// Devices that stand on others, one on the other, are followed so far down.
const STACK_MAX: usize = 8;

/// What a disk is like, to whoever sees it from outside a guest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskLooks {
    /// Its size.
    pub size_bytes: u64,
    /// What it calls itself; empty if it says nothing.
    pub serial: String,
}

impl DiskLooks {
    /// Of the whole disk that holds this block device, `MAJ:MIN`: of a partition's disk, and of the one below a logical volume. Nothing
    /// where there is no such device, or it stands on several.
    pub fn of(device: &str) -> Option<Self> {
        Self::below(Path::new(BLOCK_DEVICES), device)
    }

    fn below(devices: &Path, device: &str) -> Option<Self> {
        let is_number = device.split_once(':').is_some_and(|(major, minor)| {
            [major, minor].iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
        });
        let mut folder = std::fs::canonicalize(devices.join(device)).ok().filter(|_| is_number)?;
        for _ in 0..STACK_MAX {
            if folder.join("partition").exists() {
                folder.pop();
            }
            let mut below = std::fs::read_dir(folder.join("slaves")).ok().into_iter().flatten().flatten();
            match (below.next(), below.next()) {
                (None, _) => return Some(Self::in_folder(&folder)),
                (Some(one), None) => folder = std::fs::canonicalize(one.path()).ok()?,
                _ => return None,
            }
        }
        None
    }

    fn in_folder(folder: &Path) -> Self {
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default().trim().to_owned();
        let serials = ["serial", "device/serial"].map(read);
        let sectors: u64 = read("size").parse().unwrap_or(0);
        let serial = serials.into_iter().find(|serial| !serial.is_empty()).unwrap_or_default();
        Self { size_bytes: sectors.saturating_mul(512), serial }
    }
}

/// The number of a device file; none of any other.
fn block_device(status: &Stat) -> Option<u64> {
    let is_block = rustix::fs::FileType::from_raw_mode(status.st_mode) == rustix::fs::FileType::BlockDevice;
    is_block.then_some(status.st_rdev)
}

fn text(device: u64) -> String {
    format!("{}:{}", major(device), minor(device))
}

/// What is mounted as the file system of this number.
fn source_of_mount(mounts: &str, number: &str) -> Option<PathBuf> {
    let line = mounts.lines().find(|line| line.split(' ').nth(2) == Some(number))?;
    // ` - TYPE SOURCE OPTIONS` follow a varying number of optional fields.
    let (_, rest) = line.split_once(" - ")?;
    rest.split(' ').nth(1).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::{DiskLooks, of_path, source_of_mount, text};
    use rustix::fs::makedev;
    use std::path::Path;

    #[test]
    fn a_path_that_is_not_there_yet_lies_where_it_will() {
        let directory = tempfile::tempdir().expect("a directory");
        let own = of_path(directory.path()).expect("looked at");
        assert_eq!(of_path(&directory.path().join("not/there/yet")).expect("looked at"), own);
        for (name, target) in
            [("waiting", "/proc/no-such-pool/.deferred/1"), ("dangling", "not there/yet"), ("circle", "circle")]
        {
            let link = directory.path().join(name);
            std::os::unix::fs::symlink(target, &link).expect("linked");
            assert_eq!(of_path(&link).ok(), (name != "circle").then(|| own.clone()), "{name}");
        }
    }

    #[test]
    fn a_partition_and_a_volume_look_like_the_disk_below() {
        let sys = tempfile::tempdir().expect("a directory");
        let write = |path: &str, text: &str| {
            let path = sys.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        };
        let link = |to: &str, at: &str| {
            let at = sys.path().join(at);
            std::fs::create_dir_all(at.parent().expect("a folder")).expect("made");
            std::os::unix::fs::symlink(sys.path().join(to), at).expect("linked");
        };
        write("devices/vda/size", "20971520\n");
        write("devices/vda/serial", "root-disk\n");
        write("devices/vda/vda2/partition", "2\n");
        write("devices/dm-0/size", "2048\n");
        link("devices/vda/vda2", "devices/dm-0/slaves/vda2");
        for (device, number) in [("vda", "254:0"), ("vda/vda2", "254:2"), ("dm-0", "253:0")] {
            link(&format!("devices/{device}"), &format!("block/{number}"));
        }
        let expected = DiskLooks { size_bytes: 20_971_520 * 512, serial: "root-disk".to_owned() };
        for number in ["254:0", "254:2", "253:0"] {
            assert_eq!(DiskLooks::below(&sys.path().join("block"), number).as_ref(), Some(&expected), "{number}");
        }
        for number in ["1:1", "", "..", "254:", "../254:0"] {
            assert_eq!(DiskLooks::below(&sys.path().join("block"), number), None, "{number}");
        }
        // What stands on two disks looks like neither.
        write("devices/vdb/size", "2048\n");
        link("devices/vdb", "devices/dm-0/slaves/vdb");
        assert_eq!(DiskLooks::below(&sys.path().join("block"), "253:0"), None);
    }

    #[test]
    fn what_has_no_block_device_has_none() {
        assert_eq!(of_path(Path::new("/proc/self/stat")).expect("looked at"), None);
    }

    #[test]
    fn a_file_system_with_a_number_of_its_own_is_found_among_the_mounts() {
        let mounts =
            "30 1 0:27 /sub /data rw shared:1 master:2 - btrfs /dev/sdb1 rw\n31 1 8:1 / / rw - ext4 /dev/sda1 rw\n";
        assert_eq!(source_of_mount(mounts, "0:27").as_deref(), Some(Path::new("/dev/sdb1")));
        assert_eq!(source_of_mount(mounts, "0:28"), None);
        assert_eq!(text(makedev(8, 1)), "8:1");
    }
}
