//! From a partition to its disk, and from a stacked disk (dm, md, loop) to the disks below it, through sysfs.

use crate::parse::MountRow;
use crate::read::Reader;
use minerva_model::DeviceId;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What the kernel adds to the path of a file that was removed.
pub(crate) const DELETED: &str = " (deleted)";
/// Layers that are followed: sixteen times what anyone builds, and an end for a loop in a broken tree.
const LAYERS_MAX: usize = 16;

/// Resolves devices below one `/sys`.
pub(crate) struct Stack<'a> {
    pub(crate) sys: &'a Path,
    /// Mounts, by which the file below a loop device leads to a disk. Asking the mount table and not the file keeps Minerva
    /// from waiting for a FUSE server that hangs.
    pub(crate) mounts: &'a [MountRow],
}

impl Stack<'_> {
    /// The whole disk of a block device's sysfs directory: itself, or for a partition the directory above.
    fn whole(folder: PathBuf) -> Option<PathBuf> {
        if folder.join("partition").exists() { folder.parent().map(Path::to_owned) } else { Some(folder) }
    }

    /// The whole disk on which a device number lies.
    pub(crate) fn whole_disk(&self, device: DeviceId, reader: &mut Reader) -> Option<DeviceId> {
        number(&self.folder_of(device)?, reader)
    }

    /// The whole disk of the block device that a name such as `/dev/sda1` means.
    pub(crate) fn whole_disk_named(&self, source: &str, reader: &mut Reader) -> Option<DeviceId> {
        let node = Path::new(source);
        // `/dev/mapper/name` and `/dev/disk/by-id/name` are links to the kernel's own name.
        let node = if node.is_symlink() { node.canonicalize().ok()? } else { node.to_owned() };
        let folder = self.sys.join("class/block").join(node.file_name()?).canonicalize().ok()?;
        number(&Self::whole(folder)?, reader)
    }

    fn folder_of(&self, device: DeviceId) -> Option<PathBuf> {
        let link = self.sys.join("dev/block").join(device.to_string());
        Self::whole(link.canonicalize().ok()?)
    }

    /// The disks at the bottom of the stack below a whole disk; empty for a disk that stands on nothing, among them a loop
    /// device whose file is in memory, on a network or in FUSE.
    pub(crate) fn bottom(&self, device: DeviceId, reader: &mut Reader) -> Vec<DeviceId> {
        let mut found = BTreeSet::new();
        self.descend(device, LAYERS_MAX, &mut found, reader);
        found.remove(&device);
        found.into_iter().collect()
    }

    fn descend(&self, device: DeviceId, layers: usize, found: &mut BTreeSet<DeviceId>, reader: &mut Reader) {
        let below = if layers == 0 { Vec::new() } else { self.right_below(device, reader) };
        if below.is_empty() {
            found.insert(device);
        }
        for lower in below {
            self.descend(lower, layers - 1, found, reader);
        }
    }

    fn right_below(&self, device: DeviceId, reader: &mut Reader) -> Vec<DeviceId> {
        let Some(folder) = self.folder_of(device) else { return Vec::new() };
        let slaves = std::fs::read_dir(folder.join("slaves")).into_iter().flatten().flatten();
        let mut below: Vec<DeviceId> =
            slaves.filter_map(|entry| number(&Self::whole(entry.path().canonicalize().ok()?)?, reader)).collect();
        let backing_file = reader.line(&folder.join("loop/backing_file"));
        if !backing_file.is_empty() {
            below.extend(self.disk_of_file(&backing_file, reader));
        }
        below.retain(|lower| *lower != device);
        below
    }

    /// The whole disk that holds a file, by the longest mount point above it.
    pub(crate) fn disk_of_file(&self, path: &str, reader: &mut Reader) -> Option<DeviceId> {
        let path = Path::new(path.strip_suffix(DELETED).unwrap_or(path));
        let above = self.mounts.iter().filter(|mount| path.starts_with(&mount.mount_point));
        // Of two mounts at one place the later covers the earlier, and `max_by_key` takes the last of equals.
        let mount = above.max_by_key(|mount| mount.mount_point.len())?;
        match mount.device.major {
            0 if mount.file_system == "btrfs" => self.whole_disk_named(&mount.source, reader),
            0 => None,
            _ => self.whole_disk(mount.device, reader),
        }
    }
}

fn number(folder: &Path, reader: &mut Reader) -> Option<DeviceId> {
    reader.line(&folder.join("dev")).parse().ok()
}
