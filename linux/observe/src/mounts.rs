//! What the disk controller sees of each mounted file system: for `minerva-ctl doctor`.

use crate::ObserveError;
use crate::parse::{MountRow, parse_mountinfo};
use crate::read::Reader;
use crate::roots::Roots;
use crate::stack::Stack;
use minerva_model::{CgroupVersion, DeviceId};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// File systems whose dirty pages the kernel charges to the group that dirtied them (cgroup-v2.rst, "Writeback").
const CHARGES_WRITEBACK: [&str; 5] = ["ext2", "ext4", "btrfs", "f2fs", "xfs"];
/// File systems that hold no one's files.
const PSEUDO: [&str; 24] = [
    "proc",
    "sysfs",
    "cgroup",
    "cgroup2",
    "devtmpfs",
    "devpts",
    "mqueue",
    "hugetlbfs",
    "debugfs",
    "tracefs",
    "securityfs",
    "pstore",
    "bpf",
    "configfs",
    "fusectl",
    "autofs",
    "binfmt_misc",
    "efivarfs",
    "nsfs",
    "rpc_pipefs",
    "selinuxfs",
    "binder",
    "nfsd",
    "none",
];

/// A mounted file system, as far as steering its I/O goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountFacts {
    /// Where it is mounted.
    pub mount_point: String,
    /// Type, such as `ext4`.
    pub file_system: String,
    /// What is mounted.
    pub source: String,
    /// Whole disks on which it stands; a stacked disk (dm, md, loop) stands here itself, what is below it is in its
    /// [`minerva_model::DeviceFacts::stacked_on`].
    pub devices: Vec<DeviceId>,
    /// Why the disk controller does not see this mount's I/O as its users'; `None` when it does.
    pub hidden_because: Option<&'static str>,
    /// Buffered writes are charged to the tenant that made them, not to the root.
    pub writeback_attributed: bool,
}

/// Reads the mount table and judges every mount that holds files.
pub fn read_mount_facts(roots: &Roots) -> Result<Vec<MountFacts>, ObserveError> {
    let path = roots.proc.join("self/mountinfo");
    let text = std::fs::read(&path).map_err(|source| ObserveError::Read { path, source })?;
    let mounts = parse_mountinfo(&text).rows;
    let mut reader = Reader::new();
    let enabled = reader.line(&roots.cgroup.join("cgroup.subtree_control"));
    let has = |name| enabled.split_whitespace().any(|word| word == name);
    let charges = roots.version == CgroupVersion::V2 && has("io") && has("memory");
    let stack = Stack { sys: &roots.sys, mounts: &mounts };
    // A mount on the place of an earlier one hides it.
    let on_top: BTreeMap<&str, usize> =
        mounts.iter().enumerate().map(|(index, mount)| (mount.mount_point.as_str(), index)).collect();
    let seen = mounts.iter().enumerate().filter(|(index, mount)| on_top[mount.mount_point.as_str()] == *index);
    let holding_files = seen.map(|(_, mount)| mount).filter(|mount| !PSEUDO.contains(&mount.file_system.as_str()));
    Ok(holding_files.map(|mount| judge(mount, &stack, charges, &mut reader)).collect())
}

fn judge(mount: &MountRow, stack: &Stack<'_>, charges: bool, reader: &mut Reader) -> MountFacts {
    let devices = devices(mount, stack, reader);
    let hidden_because = hidden_because(&mount.file_system, &devices);
    MountFacts {
        mount_point: mount.mount_point.clone(),
        file_system: mount.file_system.clone(),
        source: mount.source.clone(),
        writeback_attributed: charges
            && hidden_because.is_none()
            && CHARGES_WRITEBACK.contains(&mount.file_system.as_str()),
        devices,
        hidden_because,
    }
}

fn devices(mount: &MountRow, stack: &Stack<'_>, reader: &mut Reader) -> Vec<DeviceId> {
    if mount.file_system == "btrfs" {
        return btrfs_devices(mount, stack, reader);
    }
    let device = if mount.device.major == 0 { None } else { stack.whole_disk(mount.device, reader) };
    device.into_iter().collect()
}

/// A btrfs has a device number of its own; its members stand in sysfs.
fn btrfs_devices(mount: &MountRow, stack: &Stack<'_>, reader: &mut Reader) -> Vec<DeviceId> {
    let source: BTreeSet<DeviceId> = stack.whole_disk_named(&mount.source, reader).into_iter().collect();
    let file_systems = std::fs::read_dir(stack.sys.join("fs/btrfs")).into_iter().flatten().flatten();
    for file_system in file_systems {
        let members: BTreeSet<DeviceId> = std::fs::read_dir(file_system.path().join("devices"))
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| stack.whole_disk_named(Path::new("/dev").join(entry.file_name()).to_str()?, reader))
            .collect();
        if !source.is_empty() && source.is_subset(&members) {
            return members.into_iter().collect();
        }
    }
    source.into_iter().collect()
}

fn hidden_because(file_system: &str, devices: &[DeviceId]) -> Option<&'static str> {
    match file_system {
        "zfs" => Some("ZFS issues I/O from its own kernel threads, which belong to no tenant"),
        "overlay" | "overlayfs" | "aufs" => Some("its files lie on the file systems of its layers; look at those"),
        "tmpfs" | "ramfs" => Some("its files are in memory"),
        "virtiofs" | "9p" => Some("its disks belong to the host of this guest"),
        "btrfs" if devices.len() > 1 => {
            Some("a btrfs over several disks issues I/O from threads that belong to no tenant")
        }
        name if name.starts_with("fuse") => Some("its server does the I/O, and the kernel sees the server as the user"),
        name if name.starts_with("nfs") || matches!(name, "cifs" | "smb3" | "ceph" | "afs" | "lustre") => {
            Some("its disks are on another machine")
        }
        _ if devices.is_empty() => Some("no disk was found below it"),
        _ => None,
    }
}
