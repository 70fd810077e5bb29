//! On which device a guest's image lies: the largest file or block device that the guest's own processes have open for writing.
//! Firmware, CD images and lock files are smaller, or open for reading only.

use crate::disks::read_mounts;
use crate::read::{Reader, for_each_entry};
use crate::stack::Stack;
use minerva_model::DeviceId;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Statx, StatxFlags};
use std::ops::ControlFlow;
use std::path::Path;

/// Open files of a process that are looked at.
const FILES_MAX: usize = 1024;

/// The device of the largest image that these processes have open for writing; it may be a partition, or stand on others.
pub(crate) fn device_of_image(proc: &Path, sys: &Path, pids: &[u32], reader: &mut Reader) -> Option<DeviceId> {
    let mut images: Vec<(u64, DeviceId)> = Vec::new();
    for pid in pids {
        images.extend(images_of(proc, sys, *pid, reader));
    }
    images.into_iter().max().map(|(_, device)| device)
}

/// The size and device of each.
fn images_of(proc: &Path, sys: &Path, pid: u32, reader: &mut Reader) -> Vec<(u64, DeviceId)> {
    let folder = proc.join(pid.to_string()).join("fd");
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(directory) = rustix::fs::open(&folder, flags, Mode::empty()) else { return Vec::new() };
    let Ok(listed) = directory.try_clone() else { return Vec::new() };
    let (mut images, mut seen) = (Vec::new(), 0);
    for_each_entry(listed, |name, _| {
        seen += 1;
        // The link's own permissions tell how the file was opened.
        let link = rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW);
        let is_written = link.is_ok_and(|link| Mode::from_raw_mode(link.st_mode).contains(Mode::WUSR));
        // From what the kernel has: a file system whose server hangs must not hang Minerva.
        let wanted = StatxFlags::TYPE | StatxFlags::SIZE;
        if is_written && let Ok(file) = rustix::fs::statx(&directory, name, AtFlags::STATX_DONT_SYNC, wanted) {
            images.extend(image(&file, || std::fs::read_link(folder.join(name)).ok(), (proc, sys, pid), reader));
        }
        if seen < FILES_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    images
}

/// The size of what is open, and the device on which it is; nothing where it is no image, or on no disk.
fn image(
    file: &Statx,
    path: impl Fn() -> Option<std::path::PathBuf>,
    (proc, sys, pid): (&Path, &Path, u32),
    reader: &mut Reader,
) -> Option<(u64, DeviceId)> {
    let device = |major, minor| DeviceId { major, minor };
    match FileType::from_raw_mode(u32::from(file.stx_mode)) {
        FileType::BlockDevice => {
            let id = device(file.stx_rdev_major, file.stx_rdev_minor);
            let sectors = reader.line(&sys.join(format!("dev/block/{id}/size"))).parse::<u64>().ok()?;
            Some((sectors.saturating_mul(512), id))
        }
        FileType::RegularFile if file.stx_dev_major != 0 => {
            Some((file.stx_size, device(file.stx_dev_major, file.stx_dev_minor)))
        }
        // btrfs numbers its files otherwise: the process's own mounts tell.
        FileType::RegularFile => {
            let mounts = read_mounts(&proc.join(pid.to_string()), reader);
            let id = Stack { sys, mounts: &mounts }.disk_of_file(path()?.to_str()?, reader)?;
            Some((file.stx_size, id))
        }
        _ => None,
    }
}
