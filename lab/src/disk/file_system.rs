//! A file system on an emulated disk that keeps its contents: ext4, with a journal, as most hosts have.

use super::claim::files;
use super::{Disk, unmount};
use crate::error::{At, LabError, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Its size: far more than a scene writes, and little beside the disk, at whose start it lies.
const SIZE: &str = "4G";

/// A mounted file system. Dropping it unmounts it; the disk must still be there then.
#[derive(Debug)]
pub struct FileSystem {
    mount_point: PathBuf,
}

impl FileSystem {
    /// Makes one at the start of the disk and mounts it.
    ///
    /// # Errors
    ///
    /// When `mkfs.ext4` or `mount` is missing or fails.
    pub fn create(disk: &Disk) -> Result<Self> {
        let info = disk.info();
        let mount_point = files(&info.name);
        fs::create_dir_all(&mount_point).at("create", &mount_point)?;
        // The kernel is not to write inode tables while a scene plays.
        let options = "lazy_itable_init=1,lazy_journal_init=1,nodiscard";
        done(Command::new("mkfs.ext4").args(["-q", "-F", "-E", options]).arg(&info.device).arg(SIZE))?;
        done(Command::new("mount").args(["-t", "ext4", "-o", "noinit_itable"]).arg(&info.device).arg(&mount_point))?;
        Ok(Self { mount_point })
    }

    /// Makes a btrfs instead, which can be scrubbed; one copy of everything.
    ///
    /// # Errors
    ///
    /// When `mkfs.btrfs` or `mount` is missing or fails.
    pub fn create_btrfs(disk: &Disk) -> Result<Self> {
        let info = disk.info();
        let mount_point = files(&info.name);
        fs::create_dir_all(&mount_point).at("create", &mount_point)?;
        let options = ["-q", "-f", "-K", "-m", "single", "-d", "single", "-b", SIZE];
        done(Command::new("mkfs.btrfs").args(options).arg(&info.device))?;
        done(Command::new("mount").args(["-t", "btrfs", "-o", "nodiscard"]).arg(&info.device).arg(&mount_point))?;
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

fn done(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().at("start", &program)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(LabError::BadPlan(format!("{program} failed ({}): {said}", output.status)))
}
