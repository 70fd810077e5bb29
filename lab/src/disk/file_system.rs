//! A file system on an emulated disk that keeps its contents: ext4, with a journal, as most hosts have, or btrfs.

use super::claim::files;
use super::{Disk, unmount};
use crate::error::{At, LabError, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The size of one that is made empty: far more than a scene writes, and little beside the disk, at whose start it lies.
const SIZE_BYTES: u64 = 4 << 30;

/// Which file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystemKind {
    /// With a journal.
    Ext4,
    /// It can be scrubbed; one copy of everything.
    Btrfs,
}

impl FileSystemKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Btrfs => "btrfs",
        }
    }

    const fn mount_options(self) -> &'static str {
        match self {
            Self::Ext4 => "noinit_itable",
            Self::Btrfs => "nodiscard",
        }
    }

    /// Makes one at the start of a disk or of the file that holds its contents.
    fn make(self, at: &Path, size_bytes: u64) -> Result<()> {
        match self {
            // The kernel is not to write inode tables while a scene plays.
            Self::Ext4 => {
                let options = "lazy_itable_init=1,lazy_journal_init=1,nodiscard";
                let size = format!("{}k", size_bytes >> 10);
                done(Command::new("mkfs.ext4").args(["-q", "-F", "-E", options]).arg(at).arg(size))
            }
            Self::Btrfs => {
                let options = ["-q", "-f", "-K", "-m", "single", "-d", "single", "-b"];
                done(Command::new("mkfs.btrfs").args(options).arg(size_bytes.to_string()).arg(at))
            }
        }
    }

    fn mount(self, at: &Path, further: &str, mount_point: &Path) -> Result<()> {
        let options = format!("{}{further}", self.mount_options());
        done(Command::new("mount").args(["-t", self.name(), "-o", &options]).arg(at).arg(mount_point))
    }
}

/// A mounted file system. Dropping it unmounts it; the disk must still be there then.
#[derive(Debug)]
pub struct FileSystem {
    mount_point: PathBuf,
}

impl FileSystem {
    /// Makes an ext4 at the start of the disk and mounts it.
    ///
    /// # Errors
    ///
    /// When `mkfs.ext4` or `mount` is missing or fails.
    pub fn create(disk: &Disk) -> Result<Self> {
        let info = disk.info();
        FileSystemKind::Ext4.make(&info.device, SIZE_BYTES)?;
        Self::mount(disk, FileSystemKind::Ext4)
    }

    /// Makes one at the start of the disk, has `fill` put files into it, and mounts it. It is made and filled through the file that holds
    /// the disk's contents, so that this takes none of the disk's time. Nothing of it is in memory as the disk's then: what reads it reads it
    /// from the disk.
    ///
    /// # Errors
    ///
    /// When the disk forgets its contents, `mkfs` or `mount` is missing or fails, or what `fill` fails with.
    pub fn create_filled(
        disk: &Disk,
        kind: FileSystemKind,
        size_bytes: u64,
        fill: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<Self> {
        let info = disk.info();
        let Some(backing) = &info.backing else {
            return Err(LabError::BadPlan(format!(
                "disk {} forgets its contents: a file system needs some",
                info.name
            )));
        };
        kind.make(backing, size_bytes)?;
        let mount_point = make_mount_point(disk)?;
        kind.mount(backing, ",loop", &mount_point)?;
        let filled = fill(&mount_point);
        unmount(&mount_point);
        filled?;
        // The kernel may have kept blocks of what was on the disk before.
        done(Command::new("blockdev").arg("--flushbufs").arg(&info.device))?;
        Self::mount(disk, kind)
    }

    fn mount(disk: &Disk, kind: FileSystemKind) -> Result<Self> {
        let mount_point = make_mount_point(disk)?;
        kind.mount(&disk.info().device, "", &mount_point)?;
        Ok(Self { mount_point })
    }

    /// Where files lie.
    pub fn path(&self) -> &Path {
        &self.mount_point
    }
}

impl Drop for FileSystem {
    fn drop(&mut self) {
        unmount(&self.mount_point);
        let _ = fs::remove_dir(&self.mount_point);
    }
}

fn make_mount_point(disk: &Disk) -> Result<PathBuf> {
    let mount_point = files(&disk.info().name);
    fs::create_dir_all(&mount_point).at("create", &mount_point)?;
    Ok(mount_point)
}

fn done(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().at("start", &program)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(LabError::BadPlan(format!("{program} failed ({}): {said}", output.status)))
}
