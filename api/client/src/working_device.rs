//! Which block device a path lies on.

use rustix::fs::{Stat, major, minor, stat};
use std::io;
use std::path::{Path, PathBuf};

/// Where a process sees what is mounted; see `proc_pid_mountinfo(5)`.
const MOUNTS: &str = "/proc/self/mountinfo";
/// Where it sees, among other things, its mask of new files; see `proc_pid_status(5)`.
pub(crate) const OWN_STATUS: &str = "/proc/self/status";

/// The block device of the file system that holds `path`, as `MAJ:MIN`; none if it has none, such as a network's. A path that is
/// not there yet stands for the nearest directory above it that is.
///
/// # Errors
///
/// Nothing on the way to the path can be looked at.
pub(crate) fn of_path(path: &Path) -> io::Result<Option<String>> {
    let path = std::path::absolute(path)?;
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
    use super::{of_path, source_of_mount, text};
    use rustix::fs::makedev;
    use std::path::Path;

    #[test]
    fn a_path_that_is_not_there_yet_lies_where_it_will() {
        let directory = tempfile::tempdir().expect("a directory");
        let own = of_path(directory.path()).expect("looked at");
        assert_eq!(of_path(&directory.path().join("not/there/yet")).expect("looked at"), own);
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
