//! On which device a guest's image lies: of the files and block devices that the guest's own processes have open for writing the one
//! that the process's arguments give the serial that the guest sees, else one of the size that the guest sees, which raw images and block
//! devices have, else the largest: firmware, CD images and lock files are smaller, or open for reading only.

use crate::disks::read_mounts;
use crate::parse::parse_file_of_serial;
use crate::read::{Reader, for_each_entry};
use crate::stack::Stack;
use minerva_model::DeviceId;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Statx, StatxFlags};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Open files of a process that are looked at.
const FILES_MAX: usize = 1024;
/// And of all processes of a machine, each of which counts as one too: beside QEMU there may be some that serve it trees, with a file open for
/// each of theirs.
const FILES_IN_ALL_MAX: usize = 4 * FILES_MAX;

/// A disk as a guest sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuestDisk {
    /// Its size; 0 if that is not known.
    pub size_bytes: u64,
    /// What it calls itself; empty if it says nothing.
    pub serial: String,
}

/// The device of the image that is most like the disk, of those that these processes have open for writing; it may be a partition,
/// or stand on others.
pub(crate) fn device_of_image(
    proc: &Path,
    sys: &Path,
    pids: &[u32],
    disk: &GuestDisk,
    reader: &mut Reader,
) -> Option<DeviceId> {
    let mut images: Vec<(bool, bool, u64, DeviceId)> = Vec::new();
    let mut left = FILES_IN_ALL_MAX;
    for pid in pids {
        if left == 0 {
            break;
        }
        left -= 1;
        let named =
            if disk.serial.is_empty() { None } else { file_of_serial(&proc.join(pid.to_string()), disk, reader) };
        for (path, size, device) in images_of((proc, sys, *pid), &mut left, reader) {
            let has_serial = named.is_some() && path == named;
            images.push((has_serial, disk.size_bytes > 0 && size == disk.size_bytes, size, device));
        }
    }
    images.into_iter().max().map(|(.., device)| device)
}

/// The file that QEMU's arguments give the disk's serial. Of other processes nothing is read: that waits for the process's memory.
fn file_of_serial(process: &Path, disk: &GuestDisk, reader: &mut Reader) -> Option<PathBuf> {
    let name = reader.line(&process.join("comm"));
    // As distributions call it, and as libvirt does where it names processes by guests.
    if !(name.starts_with("qemu") || name == "kvm") {
        return None;
    }
    parse_file_of_serial(reader.path(&process.join("cmdline")).ok()?, &disk.serial)
}

/// The path, size and device of each.
fn images_of(
    (proc, sys, pid): (&Path, &Path, u32),
    left: &mut usize,
    reader: &mut Reader,
) -> Vec<(Option<PathBuf>, u64, DeviceId)> {
    let folder = proc.join(pid.to_string()).join("fd");
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(directory) = rustix::fs::open(&folder, flags, Mode::empty()) else { return Vec::new() };
    let Ok(listed) = directory.try_clone() else { return Vec::new() };
    let (mut images, mut seen, most) = (Vec::new(), 0, FILES_MAX.min(*left));
    for_each_entry(listed, |name, _| {
        seen += 1;
        // The link's own permissions tell how the file was opened.
        let link = rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW);
        let is_written = link.is_ok_and(|link| Mode::from_raw_mode(link.st_mode).contains(Mode::WUSR));
        // From what the kernel has: a file system whose server hangs must not hang Minerva.
        let wanted = StatxFlags::TYPE | StatxFlags::SIZE;
        if is_written && let Ok(file) = rustix::fs::statx(&directory, name, AtFlags::STATX_DONT_SYNC, wanted) {
            let path = std::fs::read_link(folder.join(name)).ok();
            let found = image(&file, path.as_deref(), (proc, sys, pid), reader);
            images.extend(found.map(|(size, device)| (path, size, device)));
        }
        if seen < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    *left = left.saturating_sub(seen);
    images
}

/// The size of what is open, and the device on which it is; nothing where it is no image, or on no disk.
fn image(
    file: &Statx,
    path: Option<&Path>,
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
            let id = Stack { sys, mounts: &mounts }.disk_of_file(path?.to_str()?, reader)?;
            Some((file.stx_size, id))
        }
        _ => None,
    }
}
