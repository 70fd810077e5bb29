//! Which disk of this host an image lies on.

use minerva_linux_observe::disks_below;
use minerva_model::DeviceId;
use std::fs;
use std::path::Path;

/// Where the kernel tells of its disks.
const SYS: &str = "/sys";

/// A disk of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostDisk {
    pub(crate) name: String,
    /// The kernel's number; none for what lies on none.
    pub(crate) number: Option<DeviceId>,
    pub(crate) is_rotational: bool,
}

/// The disk at the bottom of what a device number means; none for what lies on no disk: memory, network, FUSE. Of several disks
/// below a stacked one the stacked one itself is taken: what is sent to it they share among themselves.
pub(crate) fn host_disk(device: u64) -> Option<HostDisk> {
    let device = DeviceId { major: rustix::fs::major(device), minor: rustix::fs::minor(device) };
    let below = disks_below(Path::new(SYS), device);
    let disk = match below.as_slice() {
        [_, bottom] => *bottom,
        [whole, ..] => *whole,
        [] => return None,
    };
    let folder = fs::canonicalize(Path::new(SYS).join("dev/block").join(disk.to_string())).ok()?;
    let name = folder.file_name()?.to_string_lossy().into_owned();
    let is_rotational = fs::read_to_string(folder.join("queue/rotational")).is_ok_and(|text| text.trim() == "1");
    Some(HostDisk { name, number: Some(disk), is_rotational })
}
