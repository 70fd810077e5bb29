//! Project quotas (ext4, XFS): the kernel counts what belongs to a project, a number that each file has and that a directory can pass on to
//! what is made in it. Numbers and structures are those of `linux/fs.h` and `linux/quota.h`.

use crate::census::names;
use crate::descent::Descent;
use crate::file_system::Result;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, statat};
use rustix::io::Errno;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

const FS_IOC_FSGETXATTR: libc::c_ulong = 0x801c_581f;
const FS_IOC_FSSETXATTR: libc::c_ulong = 0x401c_5820;
/// What is made in the directory has its project.
const INHERITS: u32 = 0x200;
const Q_GETQUOTA: libc::c_int = 0x0080_0007;
const PROJECT: libc::c_int = 2;

/// `struct fsxattr`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct FileAttributes {
    flags: u32,
    extent_bytes: u32,
    extents: u32,
    project: u32,
    cow_extent_bytes: u32,
    padding: [u8; 8],
}

/// What the kernel counts of a project.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProjectUsage {
    /// Bytes that everything of it occupies: files, and unlike in our accounts directories and links too.
    pub bytes: u64,
    /// Inodes.
    pub files: u64,
    /// Somebody has set limits for it.
    pub has_limits: bool,
}

/// What the kernel counts of a project on the file system where `at` lies. An error means that it does not count: `ESRCH` without project
/// quotas, `ENOSYS` before Linux 5.14 or without quotas in the kernel.
pub fn project_usage(at: impl AsFd, project: u32) -> Result<ProjectUsage> {
    // SAFETY: the structure consists of numbers, for which zero is a value.
    let mut quota: libc::dqblk = unsafe { std::mem::zeroed() };
    let command = (Q_GETQUOTA << 8) | PROJECT;
    let at = at.as_fd().as_raw_fd();
    // SAFETY: the descriptor is open, and the kernel writes one `struct if_dqblk` (quotactl_fd(2)), which `dqblk` is.
    let done = unsafe { libc::syscall(libc::SYS_quotactl_fd, at, command, project, &raw mut quota) };
    if done != 0 {
        return Err(last_error());
    }
    let has_limits = [quota.dqb_bhardlimit, quota.dqb_bsoftlimit, quota.dqb_ihardlimit, quota.dqb_isoftlimit] != [0; 4];
    Ok(ProjectUsage { bytes: quota.dqb_curspace, files: quota.dqb_curinodes, has_limits })
}

/// The project of a file or directory that is open; 0 for none.
pub fn project_of(file: impl AsFd) -> Result<u32> {
    Ok(attributes(file.as_fd().as_raw_fd())?.project)
}

fn attributes(file: i32) -> Result<FileAttributes> {
    let mut found = FileAttributes::default();
    // SAFETY: the descriptor is open, and the kernel writes one `struct fsxattr`.
    let done = unsafe { libc::ioctl(file, FS_IOC_FSGETXATTR, &raw mut found) };
    if done == 0 { Ok(found) } else { Err(last_error()) }
}

/// Gives it a project, and what is made in it from now on; 0 takes it away.
fn set_project(file: &OwnedFd, is_directory: bool, project: u32) -> Result<()> {
    let before = attributes(file.as_raw_fd())?;
    let inherits = if is_directory && project != 0 { INHERITS } else { 0 };
    let after = FileAttributes { project, flags: (before.flags & !INHERITS) | inherits, ..before };
    if (before.project, before.flags) == (after.project, after.flags) {
        return Ok(());
    }
    // SAFETY: the descriptor is open, and the kernel reads one `struct fsxattr`.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FSSETXATTR, &raw const after) };
    if done == 0 { Ok(()) } else { Err(last_error()) }
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// What a walk met that has no project: links, sockets and devices cannot be given one before Linux 6.17, and could not be renamed
/// within a directory that passes one on.
pub fn count_without_project(root: impl AsFd) -> Result<u64> {
    let mut count = 0;
    walk(root, &mut |met| {
        count += u64::from(matches!(met, Met::Other));
        Ok(())
    })?;
    Ok(count)
}

/// Gives everything below a directory, and the directory, the project `to` that has the project `from`. Nobody else may use it meanwhile.
pub fn change_project(root: impl AsFd, from: u32, to: u32) -> Result<()> {
    walk(root, &mut |met| match met {
        Met::Directory(file) if project_of(file)? == from => set_project(file, true, to),
        Met::File(file) if project_of(file)? == from => set_project(file, false, to),
        _ => Ok(()),
    })
}

/// What a walk meets.
enum Met<'a> {
    Directory(&'a OwnedFd),
    File(&'a OwnedFd),
    /// What cannot be opened.
    Other,
}

/// Shows every directory before what is in it, and every regular file, open; of others only that they are there.
fn walk(root: impl AsFd, each: &mut dyn FnMut(Met<'_>) -> Result<()>) -> Result<()> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut descent = Descent::new(root)?;
    each(Met::Directory(descent.folder()))?;
    loop {
        for name in names(descent.folder())? {
            let folder = descent.folder();
            let stat = statat(folder, &name, AtFlags::SYMLINK_NOFOLLOW)?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => {
                    each(Met::Directory(&openat(folder, &name, flags | OFlags::DIRECTORY, Mode::empty())?))?;
                    descent.add(name);
                }
                FileType::RegularFile => each(Met::File(&openat(folder, &name, flags, Mode::empty())?))?,
                _ => each(Met::Other)?,
            }
        }
        if !descent.go_on()? {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FileAttributes, change_project, count_without_project, project_of, project_usage};
    use std::fs::File;

    #[test]
    fn the_kernels_structure_is_as_large_as_its_number_says() {
        assert_eq!(size_of::<FileAttributes>() as u64, (super::FS_IOC_FSGETXATTR >> 16) & 0x3fff);
        // Bounds, usage and times as eight numbers of 64 bits, and what is valid of them.
        assert_eq!(size_of::<libc::dqblk>(), 72);
    }

    #[test]
    fn where_no_project_is_counted_that_is_an_error_and_a_walk_meets_each_kind_of_file() {
        let proc = File::open("/proc").unwrap();
        assert!(project_usage(&proc, 0).is_err(), "/proc counts no project");
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("a/b")).unwrap();
        std::fs::write(folder.path().join("a/file"), "text").unwrap();
        std::os::unix::fs::symlink("nowhere", folder.path().join("a/link")).unwrap();
        let root = File::open(folder.path()).unwrap();
        assert_eq!(count_without_project(&root).unwrap(), 1);
        // What has another project stays as it is.
        if project_of(&root).is_ok() {
            change_project(&root, 77, 78).unwrap();
            assert_ne!(project_of(&root).unwrap(), 78);
        }
    }
}
